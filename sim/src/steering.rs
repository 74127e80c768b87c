//! What a run may be told from one root step to the next.

use crate::error::SimError;
use crate::parameters::RunParameters;
use serde::{Deserialize, Serialize};

/// What holds from the next root step on, until something else is said. It belongs to the restart data: a checkpoint goes on
/// with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Steering {
    /// Largest Δt of a root step, code time; the other limits on Δt still hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dt_max: Option<f64>,
    /// Finest level, no finer than the run's own `max_level`; finer ones go with the next regrid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_level: Option<u8>,
    /// Factor on the thresholds of all criteria, from the next regrid on: above 1 less is refined (`jeans_cells_below` and
    /// thresholds within `not` are divided by it; regions and expressions have no threshold).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold_factor: Option<f64>,
}

impl Steering {
    /// Whether the run goes as its parameters say.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// The parameters of a run that is steered so.
    ///
    /// # Errors
    /// [`SimError::Parameter`] for what no run can use, or for more than `asked` allows.
    pub fn on(&self, asked: &RunParameters) -> Result<RunParameters, SimError> {
        let positive = "must be positive";
        for (name, value) in [("dt_max", self.dt_max), ("threshold_factor", self.threshold_factor)] {
            let value = value.unwrap_or(1.0);
            SimError::require(name, &value, value > 0.0 && value.is_finite(), positive)?;
        }
        let mut steered = asked.clone();
        if let Some(level) = self.max_level {
            let reason = format!("must be at most the run's max_level = {}", asked.max_level);
            SimError::require("max_level", &level, level <= asked.max_level, reason)?;
            steered.max_level = level;
        }
        if let Some(factor) = self.threshold_factor {
            steered.refine.iter_mut().for_each(|criterion| criterion.raise(factor));
            steered.refine.iter().try_for_each(|criterion| criterion.check(steered.gravity))?;
        }
        Ok(steered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Criterion;

    #[test]
    fn a_run_is_steered_within_its_parameters() {
        let refine = vec![
            Criterion::DensityAbove { thresholds: vec![8.0, 64.0] },
            Criterion::JeansCellsBelow { thresholds: vec![4.0] },
            Criterion::InsideBall { center: [0.5; 3], radius: 0.1, level: 2 },
        ];
        let asked = RunParameters { max_level: 2, refine, ..RunParameters::default() };
        assert_eq!(Steering::default().on(&asked).unwrap(), asked);
        let steering = Steering { dt_max: Some(0.1), max_level: Some(1), threshold_factor: Some(2.0) };
        let steered = steering.on(&asked).unwrap();
        assert_eq!(steered.max_level, 1);
        assert_eq!(steered.refine[0], Criterion::DensityAbove { thresholds: vec![16.0, 128.0] });
        assert_eq!(steered.refine[1], Criterion::JeansCellsBelow { thresholds: vec![2.0] });
        assert_eq!(steered.refine[2], asked.refine[2]);
        for (wrong, message) in [
            (Steering { max_level: Some(3), ..steering }, "max_level = 3: must be at most the run's max_level"),
            (Steering { dt_max: Some(0.0), ..steering }, "dt_max = 0: must be positive"),
            (Steering { threshold_factor: Some(f64::NAN), ..steering }, "threshold_factor = NaN: must be positive"),
        ] {
            let error = wrong.on(&asked).unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }
}
