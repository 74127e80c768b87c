//! Sums whose bits do not depend on the order of their terms.

use crate::parallel::communicator::Communicator;

/// A sum in 128-bit fixed point with 2⁻⁶⁴ as its unit: terms up to 10¹⁸ add exactly after one rounding each, so any
/// order of terms, threads or ranks gives the same bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ExactSum(i128);

const UNIT: f64 = 18_446_744_073_709_551_616.0; // 2⁶⁴

impl ExactSum {
    /// Adds a term. One that is not finite or exceeds the range poisons nothing here: it saturates, and the checks for
    /// unphysical cells name its cause.
    pub(crate) fn add(&mut self, term: f64) {
        self.0 = self.0.saturating_add((term * UNIT) as i128);
    }

    /// Takes together sums of all ranks: collective.
    pub(crate) fn reduce<'a>(sums: impl IntoIterator<Item = &'a mut Self>, communicator: &Communicator) {
        if communicator.size() > 1 {
            let mut sums: Vec<&mut Self> = sums.into_iter().collect();
            let mut numbers: Vec<i128> = sums.iter().map(|sum| sum.0).collect();
            communicator.sum_wide(&mut numbers);
            sums.iter_mut().zip(numbers).for_each(|(sum, number)| sum.0 = number);
        }
    }

    /// The sum, rounded to double precision.
    pub(crate) fn value(self) -> f64 {
        self.0 as f64 / UNIT
    }
}

impl std::ops::AddAssign for ExactSum {
    fn add_assign(&mut self, other: Self) {
        self.0 = self.0.saturating_add(other.0);
    }
}

impl FromIterator<f64> for ExactSum {
    fn from_iter<I: IntoIterator<Item = f64>>(terms: I) -> Self {
        let mut sum = Self::default();
        terms.into_iter().for_each(|term| sum.add(term));
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn order_does_not_matter(mut terms in prop::collection::vec(-1e6f64..1e6, 1..50), at in 0usize..50) {
            let sum: ExactSum = terms.iter().copied().collect();
            let n = terms.len();
            terms.rotate_left(at % n);
            terms.reverse();
            prop_assert_eq!(sum, terms.iter().copied().collect());
            prop_assert!((sum.value() - terms.iter().sum::<f64>()).abs() < 1e-8);
        }
    }
}
