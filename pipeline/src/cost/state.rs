//! State of a run at a place on its way.

/// State of a run at a place.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct State {
    /// Fraction of the box that each level covers, the root's first.
    pub fractions: Vec<f64>,
    /// The longest root step that gas and particles allow; infinite where that is not known.
    pub step: f64,
}

impl State {
    /// The fraction of the box that a level covers; 0 for one that the run does not have.
    pub(super) fn fraction(&self, level: usize) -> f64 {
        self.fractions.get(level).copied().unwrap_or(0.0)
    }
}
