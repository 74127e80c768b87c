//! When a root step is retried in smaller parts.
//!
//! A step that leaves cells without physical values, or floors more of them than the budget allows, or in which signals
//! have become so fast that the scheme is not stable, is always retried, as often as the recipe allows. One that
//! floors a few is retried too, unless that has lately been of no use: gas colder than the floor itself is floored
//! at any time step. So after a retry that did not at least halve the floored cells such steps are let pass, one at
//! first, twice as many after every other retry in vain. What the rule remembers belongs to the restart data.

use serde::{Deserialize, Serialize};

/// Most steps that are let pass in a row.
const LONGEST_WAIT: u32 = 64;

/// What an attempt at a step came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Attempt {
    /// Whether all cells have physical values and no more were floored than the budget allows.
    pub(crate) acceptable: bool,
    /// Whether no signal got further in a sweep than the scheme is stable for.
    pub(crate) stable: bool,
    /// Cells floored per leaf cell and sweep.
    pub(crate) floored: f64,
}

/// The memory of the rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RetryPolicy {
    /// Steps with a few floored cells that are still let pass.
    wait: u32,
    /// How many were let pass after the last retry in vain.
    last_wait: u32,
}

impl RetryPolicy {
    /// Whether the step is to be retried after these attempts, each in twice as many parts as the one before.
    pub(crate) fn should_retry(&self, attempts: &[Attempt]) -> bool {
        let Some((last, before)) = attempts.split_last() else { return true };
        let helped = before.last().is_none_or(|before| 2.0 * last.floored <= before.floored || !before.acceptable);
        !last.acceptable || !last.stable || last.floored > 0.0 && self.wait == 0 && helped
    }

    /// What to remember after a step with these attempts.
    pub(crate) fn after(self, attempts: &[Attempt]) -> Self {
        match attempts {
            [first, .., last] if 2.0 * last.floored > first.floored => {
                let wait = (2 * self.last_wait).clamp(1, LONGEST_WAIT);
                Self { wait, last_wait: wait }
            }
            [_, _, ..] => Self::default(),
            [only] if only.floored > 0.0 => Self { wait: self.wait.saturating_sub(1), ..self },
            _ => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(floored: u32) -> Attempt {
        Attempt { acceptable: floored < 1000, stable: true, floored: f64::from(floored) }
    }

    /// Takes `steps` steps whose attempts floor `floors`; how many retries that takes.
    fn retries(steps: usize, floors: [u32; 3]) -> usize {
        let mut policy = RetryPolicy::default();
        let mut retries = 0;
        for _ in 0..steps {
            let mut attempts = Vec::new();
            while attempts.len() < 3 && policy.should_retry(&attempts) {
                attempts.push(attempt(floors[attempts.len()]));
            }
            retries += attempts.len() - 1;
            policy = policy.after(&attempts);
        }
        retries
    }

    #[test]
    fn retries_that_help_are_made_and_those_in_vain_become_rare() {
        assert_eq!(retries(100, [0, 0, 0]), 0);
        assert_eq!(retries(100, [8, 0, 0]), 100);
        assert_eq!(retries(100, [8, 4, 0]), 200);
        // steps 1, 3, 6, 11, 20, 37, 70
        assert_eq!(retries(100, [8, 8, 8]), 7);
        // more than the budget: every time
        assert_eq!(retries(100, [2000, 2000, 2000]), 200);
        assert_eq!(retries(100, [2000, 8, 8]), 200);
    }

    #[test]
    fn unstable_steps_are_taken_again_whatever_was_in_vain_before() {
        let unstable = Attempt { stable: false, ..attempt(0) };
        let policy = RetryPolicy::default().after(&[attempt(8), attempt(8)]);
        assert!(!policy.should_retry(&[attempt(8)]) && policy.should_retry(&[unstable]));
        assert!(policy.should_retry(&[unstable, unstable]) && !policy.should_retry(&[unstable, attempt(0)]));
    }
}
