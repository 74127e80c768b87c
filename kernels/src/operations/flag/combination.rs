//! Criteria joined by all, any and not, cell by cell: before the buffer around flagged cells is added.

use super::FlagCriterion;

/// Sets of cells that a device keeps at a time while it evaluates a combination.
pub const STACK: usize = 16;

/// Criteria in postfix order: each step works on a stack of sets of cells, and one set remains.
#[derive(Clone, Debug, PartialEq)]
pub struct Combination<T> {
    steps: Vec<Step<T>>,
    /// Sets on the stack at most.
    depth: usize,
}

/// A step of a [`Combination`].
#[derive(Clone, Debug, PartialEq)]
pub enum Step<T> {
    /// Pushes the cells that meet a criterion.
    Criterion(FlagCriterion<T>),
    /// Pushes the empty set.
    Nowhere,
    /// Replaces the two upper sets by the cells in both.
    And,
    /// Replaces the two upper sets by the cells in either.
    Or,
    /// Replaces the upper set by all other cells.
    Not,
}

impl<T> From<FlagCriterion<T>> for Combination<T> {
    fn from(criterion: FlagCriterion<T>) -> Self {
        Self { steps: vec![Step::Criterion(criterion)], depth: 1 }
    }
}

impl<T> Combination<T> {
    /// All cells.
    pub fn everywhere() -> Self {
        Self { steps: vec![Step::Nowhere, Step::Not], depth: 1 }
    }

    /// The cells in all of these; `None` for none.
    pub fn all(of: impl IntoIterator<Item = Self>) -> Option<Self> {
        Self::joined(of, || Step::And)
    }

    /// The cells in any of these; `None` for none.
    pub fn any(of: impl IntoIterator<Item = Self>) -> Option<Self> {
        Self::joined(of, || Step::Or)
    }

    /// All other cells.
    #[must_use]
    pub fn complement(mut self) -> Self {
        self.steps.push(Step::Not);
        self
    }

    fn joined(of: impl IntoIterator<Item = Self>, by: fn() -> Step<T>) -> Option<Self> {
        of.into_iter().reduce(|mut first, second| {
            first.depth = first.depth.max(1 + second.depth);
            first.steps.extend(second.steps);
            first.steps.push(by());
            first
        })
    }

    /// The steps in order.
    pub fn steps(&self) -> &[Step<T>] {
        &self.steps
    }

    /// The criteria among the steps.
    pub fn criteria(&self) -> impl Iterator<Item = &FlagCriterion<T>> {
        self.steps.iter().filter_map(|step| match step {
            Step::Criterion(criterion) => Some(criterion),
            _ => None,
        })
    }

    /// Sets on the stack at most.
    pub fn depth(&self) -> usize {
        self.depth
    }
}
