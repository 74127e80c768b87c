//! A time step as a list of operations: what a scheme lays down, and [`mod@crate::step::uniform_step`] and [`crate::step::individual_step`] carry
//! out.

use comove_kernels::Scheme;

/// One operation of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A hydro sweep along all three axes. The sweeps of a step take equal parts of Δt.
    Sweep(Direction),
    /// The gravity kick over Δt, from the potential at this time.
    Kick,
    /// The sources over Δt: they change no momentum and the kick no internal energy, so the order of the two is free.
    Sources,
}

/// The order of the axes in a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The run's order: x, y, z.
    Forward,
    /// The opposite one.
    Backward,
}

impl Direction {
    /// The axes in the order in which they are swept.
    ///
    /// * `forward`: of a forward sweep
    pub fn axes(self, forward: [usize; 3]) -> [usize; 3] {
        let [first, second, third] = forward;
        match self {
            Self::Forward => [first, second, third],
            Self::Backward => [third, second, first],
        }
    }
}

/// The operations of a step, in order.
#[derive(Clone, Copy, Debug)]
pub struct StepPlan(&'static [Operation]);

/// Strang splitting, second order in time: xyz(½Δt) G(Δt) zyx(½Δt) (paper, section 2.3), with sources beside G.
const STRANG: StepPlan = StepPlan(&[
    Operation::Sweep(Direction::Forward),
    Operation::Kick,
    Operation::Sources,
    Operation::Sweep(Direction::Backward),
]);

impl StepPlan {
    /// The plan of a scheme.
    pub fn of(scheme: Scheme) -> Self {
        match scheme {
            Scheme::Ppm | Scheme::Plm | Scheme::RelaxingTvd | Scheme::Hll => STRANG,
        }
    }

    /// Sweeps of a step: each is over Δt divided by their number.
    pub fn sweeps(self) -> u32 {
        self.0.iter().filter(|operation| matches!(operation, Operation::Sweep(_))).count() as u32
    }

    /// The operations, each with the part of Δt that the gas has passed before it.
    pub fn operations(self) -> impl Iterator<Item = (f64, Operation)> {
        let part = 1.0 / f64::from(self.sweeps());
        self.0.iter().scan(0.0, move |passed, &operation| {
            let before = *passed;
            *passed += if matches!(operation, Operation::Sweep(_)) { part } else { 0.0 };
            Some((before, operation))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strang_kicks_in_the_middle() {
        let plan = StepPlan::of(Scheme::RelaxingTvd);
        assert_eq!(plan.sweeps(), 2);
        let expected = [
            (0.0, Operation::Sweep(Direction::Forward)),
            (0.5, Operation::Kick),
            (0.5, Operation::Sources),
            (0.5, Operation::Sweep(Direction::Backward)),
        ];
        assert_eq!(plan.operations().collect::<Vec<_>>(), expected);
    }
}
