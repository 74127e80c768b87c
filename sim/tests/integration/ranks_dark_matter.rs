//! The bits of a run with dark matter do not depend on how many ranks share it, nor on who owns what.

use crate::dark_matter::{counting, parameters, waves, waves_without_gas, zoom};
use crate::ranks::{ALONE, From, Team, assert_same, chance, curve, paced, rebalances, run, run_with_checkpoint};
use comove_sim::{Criterion, Precision, RunParameters, Snapshot, TimeSteps};

/// Records, files and what is in memory of some teams and of one rank, also after a restart by others.
fn ranks_leave_the_bits_alone(initial: &Snapshot, parameters: RunParameters, steps: u64, teams: [Team; 2]) {
    let refine = vec![Criterion::OverdensityAbove { thresholds: vec![2.2, 6.5] }];
    let parameters = &RunParameters { refine, regrid_every: 2, ..parameters };
    let alone = run(From::Memory(initial), ALONE, parameters, steps);
    assert_eq!(alone.end.state.tree.level_count(), 3, "the test needs three levels");
    assert!(alone.records.iter().filter(|record| record.regridded).count() >= 2, "the test needs regrids");
    let begun = run_with_checkpoint(From::Shares(initial), teams[0], parameters, steps, Some(2 * steps / 3));
    let shared = run(From::Memory(initial), teams[1], parameters, steps);
    for (team, shared) in teams.iter().zip([&begun, &shared]) {
        assert_same(&alone, shared, &format!("{team:?}"));
    }
    let moved = rebalances(&begun) + rebalances(&shared);
    assert!(moved >= 2, "the test needs groups that change hands, and they did {moved} times");
    let (checkpoint, file) = (begun.checkpoint.as_ref().expect("a checkpoint"), begun.file("checkpoint.h5"));
    for (team, from) in
        [(ALONE, From::Memory(checkpoint)), (chance(3, 9), From::File(&file)), (curve(2), From::Shares(checkpoint))]
    {
        assert_same(&alone, &run(from, team, parameters, steps), &format!("a restart with {team:?}"));
    }
}

#[test]
fn of_uniform_steps() {
    let parameters = parameters(TimeSteps::Uniform, Precision::Double);
    ranks_leave_the_bits_alone(&waves(2), parameters, 6, [chance(3, 1), curve(4)]);
}

#[test]
fn of_individual_steps() {
    let parameters = parameters(TimeSteps::Individual, Precision::Single);
    ranks_leave_the_bits_alone(&waves(2), parameters, 6, [chance(4, 3), paced(&[0.5, 1.5])]);
}

#[test]
fn of_dark_matter_alone() {
    let parameters = RunParameters { poisson_cycles: Some(2), ..parameters(TimeSteps::Individual, Precision::Single) };
    ranks_leave_the_bits_alone(&waves_without_gas(2), parameters, 6, [chance(3, 5), curve(2)]);
}

/// Three mass classes, with deposits of the lightest at each regrid.
#[test]
fn of_particles_of_several_masses() {
    let mut parameters = parameters(TimeSteps::Individual, Precision::Single);
    parameters.refine = vec![Criterion::OverdensityAbove { thresholds: vec![2.2, 6.5] }];
    parameters.refine.extend(counting());
    parameters.regrid_every = 2;
    let initial = zoom(2);
    let alone = run(From::Memory(&initial), ALONE, &parameters, 6);
    assert!(alone.end.state.tree.level_count() > 1, "the test needs refinement");
    for team in [chance(3, 7), curve(2)] {
        assert_same(&alone, &run(From::Memory(&initial), team, &parameters, 6), &format!("{team:?}"));
    }
}
