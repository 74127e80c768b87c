//! A run's bits do not depend on how many ranks share its octree, nor on who owns what, nor on how many it is continued by.

use crate::common;

use common::{cosmological, cosmological_parameters};
use comove_kernels::Scheme;
use comove_kernels::layout::GROUP_VALUES;
use comove_sim::RankGroup;
use comove_sim::TimeSteps;
use comove_sim::parallel::LoadBalancer;
use comove_sim::parallel::{Communicator, Ranks, on_ranks};
use comove_sim::records::{RanksRecord, StepRecord};
use comove_sim::snapshot::file_digest;
use comove_sim::{
    Criterion, HostParticles, HostState, Key, Octree, Precision, RunParameters, SimError, Simulation, Snapshot,
    SnapshotHeader, StartFrom, Steering, StoredSnapshot,
};
use serde_json::Value;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// So many ranks, which own what a curve says or, by a number, what chance says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Team {
    ranks: usize,
    scattered: Option<u64>,
    /// What groups cost them to begin with; all the same if this is empty.
    costs: &'static [f64],
}

pub(crate) const ALONE: Team = curve(1);

pub(crate) const fn curve(ranks: usize) -> Team {
    Team { ranks, scattered: None, costs: &[] }
}

pub(crate) const fn chance(ranks: usize, seed: u64) -> Team {
    Team { scattered: Some(seed), ..curve(ranks) }
}

pub(crate) const fn paced(costs: &'static [f64]) -> Team {
    Team { costs, ..curve(costs.len()) }
}

/// What one run leaves.
pub(crate) struct Outcome {
    pub(crate) records: Vec<StepRecord>,
    output: Snapshot,
    pub(crate) end: Snapshot,
    /// A checkpoint on the way, if one was wanted.
    pub(crate) checkpoint: Option<Snapshot>,
    /// Where the files of these are.
    folder: TempDir,
}

impl Outcome {
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// What a run starts from.
#[derive(Clone, Copy)]
pub(crate) enum From<'a> {
    Memory(&'a Snapshot),
    /// In memory, each rank with some layers of groups along z.
    Shares(&'a Snapshot),
    File(&'a Path),
}

/// Starts a run on one of its ranks.
fn start(from: From<'_>, ranks: Ranks, parameters: &RunParameters) -> Result<Simulation, SimError> {
    let device = common::device_of(ranks.communicator.rank(), 1);
    let header_alone = |header: &SnapshotHeader, tree: &Octree| {
        let none = Octree::share(tree.root_groups(), tree.periodic(), Vec::new());
        Snapshot { header: header.clone(), state: HostState::zeros(none) }
    };
    let first = ranks.communicator.rank() == 0;
    match from {
        From::Memory(snapshot) if first => Simulation::start_on(device, ranks, snapshot, parameters.clone()),
        From::Memory(Snapshot { header, state }) => {
            Simulation::start_on(device, ranks, &header_alone(header, &state.tree), parameters.clone())
        }
        From::Shares(snapshot) => {
            let share = share(snapshot, ranks.communicator.rank(), ranks.communicator.size());
            Simulation::start_on(device, ranks, &share, parameters.clone())
        }
        From::File(path) => {
            let stored = StoredSnapshot::open(path)?;
            if first {
                return Simulation::start_on(device, ranks, StartFrom::File(&stored, &|_| ()), parameters.clone());
            }
            Simulation::start_on(device, ranks, &header_alone(&stored.header, stored.tree()), parameters.clone())
        }
    }
}

/// What a rank has of a snapshot whose root groups are dealt out by layers along z, the first layers to the last rank.
fn share(snapshot: &Snapshot, rank: usize, ranks: usize) -> Snapshot {
    let tree = &snapshot.state.tree;
    let of = |key: &Key| ranks - 1 - ((key.coordinate[2] >> key.level) as usize).min(ranks - 1);
    let own = |level: usize| tree.level(level).iter().copied().filter(|key| of(key) == rank).collect();
    let levels = (0..tree.level_count()).map(own).collect();
    let own = Octree::share(tree.root_groups(), tree.periodic(), levels);
    let mut state = HostState::zeros_of(own, &snapshot.header.fields);
    let keys: Vec<Key> = state.tree.keys().collect();
    for (values, key) in state.fluid.chunks_mut(GROUP_VALUES).zip(keys) {
        let place = tree.index(key).expect("a group of the whole") * GROUP_VALUES;
        values.copy_from_slice(&snapshot.state.fluid[place..place + GROUP_VALUES]);
    }
    // particles may be on any rank
    state.particles = snapshot.state.particles.as_ref().map(|all| {
        let own: Vec<usize> = (0..all.len()).filter(|n| n / 7 % ranks == rank).collect();
        HostParticles {
            particle_mass: all.particle_mass,
            position: all.position.each_ref().map(|column| own.iter().map(|&n| column[n]).collect()),
            velocity: all.velocity.each_ref().map(|column| own.iter().map(|&n| column[n]).collect()),
            id: own.iter().map(|&n| all.id[n]).collect(),
        }
    });
    Snapshot { header: snapshot.header.clone(), state }
}

/// Writes what the ranks of a run have made; on the first of them a file comes to be.
fn write(simulation: &Simulation, snapshot: &Snapshot, path: &Path) {
    if let Some(file) = simulation.write(snapshot, path).expect("a file") {
        file.complete().expect("a file that reads back");
    }
}

/// Runs to step `steps`, with an output in the next.
pub(crate) fn run(from: From<'_>, team: Team, parameters: &RunParameters, steps: u64) -> Outcome {
    run_with_checkpoint(from, team, parameters, steps, None)
}

/// The same with a checkpoint after step `save`.
pub(crate) fn run_with_checkpoint(
    from: From<'_>,
    team: Team,
    parameters: &RunParameters,
    steps: u64,
    save: Option<u64>,
) -> Outcome {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let files = ["output.h5", "end.h5", "checkpoint.h5"].map(|name| folder.path().join(name));
    let [output_file, end_file, checkpoint_file] = &files;
    let rank = |communicator: Communicator| {
        let ranks = match team.scattered {
            Some(seed) => Ranks::of(communicator).scattered(seed),
            None => Ranks::of(communicator),
        };
        let ranks = if team.costs.is_empty() { ranks } else { ranks.with_load_balancer(LoadBalancer::of(team.costs)) };
        let mut simulation = start(from, ranks, parameters).expect("start");
        let mut records = Vec::new();
        while simulation.step_number() < steps {
            records.push(simulation.step().expect("step"));
            if save == Some(simulation.step_number()) {
                let checkpoint = simulation.checkpoint().expect("checkpoint");
                write(&simulation, &checkpoint, checkpoint_file);
            }
        }
        let target = 0.7 * simulation.now() + 0.3 * simulation.next_stop();
        let output = simulation.output_at(target).expect("output");
        write(&simulation, &output, output_file);
        let end = simulation.checkpoint().expect("checkpoint");
        write(&simulation, &end, end_file);
        records
    };
    let records = on_ranks(team.ranks, rank).swap_remove(0);
    let read = |path: &PathBuf| Snapshot::read(path).expect("what was written");
    let (output, end, checkpoint) = (read(output_file), read(end_file), save.map(|_| read(checkpoint_file)));
    Outcome { records, output, end, checkpoint, folder }
}

/// What a record says of the run, and not of the machine.
fn of_the_run(record: &StepRecord) -> StepRecord {
    let mut record = record.clone();
    (record.timing, record.cell_updates_per_second, record.device_bytes, record.ranks) = Default::default();
    record
}

fn assert_same_state(one: &Snapshot, other: &Snapshot, what: &str) {
    assert!(one.state.tree == other.state.tree, "the octree of {what}");
    assert!(one.state.fluid == other.state.fluid, "the fluid of {what}");
    assert!(one.state.potential == other.state.potential, "the potential of {what}");
    assert!(one.state.particles == other.state.particles, "the particles of {what}");
    assert!(one.state.dark_matter == other.state.dark_matter, "the density of particles of {what}");
    assert_eq!(one.header, other.header, "the header of {what}");
}

/// The last steps of `one` are those of `other`, and both end alike.
pub(crate) fn assert_same(one: &Outcome, other: &Outcome, what: &str) {
    for (a, b) in one.records.iter().rev().zip(other.records.iter().rev()) {
        assert_eq!(of_the_run(a), of_the_run(b), "{what}");
    }
    assert_same_state(&one.output, &other.output, what);
    assert_same_state(&one.end, &other.end, what);
    for name in ["output.h5", "end.h5"] {
        let [one, other] = [one, other].map(|outcome| file_digest(&outcome.file(name)).expect("a file"));
        assert_eq!(one, other, "{name} of {what}");
    }
}

/// Steps in which groups changed hands.
pub(crate) fn rebalances(outcome: &Outcome) -> usize {
    let moved = |record: &&StepRecord| record.ranks.as_ref().is_some_and(|ranks| ranks.moved_groups > 0);
    outcome.records.iter().filter(moved).count()
}

fn refined(time_steps: TimeSteps, precision: Precision) -> RunParameters {
    RunParameters {
        time_steps,
        regrid_every: 2,
        max_level: 3,
        refine: vec![Criterion::DensityAbove { thresholds: vec![1.5, 1.8, 2.1] }],
        ..cosmological_parameters(precision)
    }
}

/// The run of one rank, of `team`, of `continued`, and of this from two thirds on by each of `restarts`: from memory, from
/// the file, and from shares.
fn ranks_leave_the_bits_alone(
    parameters: &RunParameters,
    steps: u64,
    [continued, team]: [Team; 2],
    restarts: [Team; 3],
) {
    let initial = cosmological(2);
    let initial = From::Memory(&initial);
    let alone = run(initial, ALONE, parameters, steps);
    let (levels, groups) = (alone.end.state.tree.level_count(), alone.end.state.tree.groups());
    assert_eq!(levels, usize::from(parameters.max_level) + 1, "the test needs all levels: {groups:?}");
    let saved = 2 * steps / 3;
    let shared = run(initial, team, parameters, steps);
    let begun = run_with_checkpoint(initial, continued, parameters, steps, Some(saved));
    for (team, shared) in [(team, &shared), (continued, &begun)] {
        assert_same(&alone, shared, &format!("{team:?}"));
        let rebalances = rebalances(shared);
        assert!(rebalances >= 3, "the test needs three rebalances, and there were {rebalances} with {team:?}");
    }
    // continued by others than have begun
    let (checkpoint, file) = (begun.checkpoint.as_ref().expect("a checkpoint"), begun.file("checkpoint.h5"));
    let sources = [From::Memory(checkpoint), From::File(&file), From::Shares(checkpoint)];
    for (team, from) in restarts.into_iter().zip(sources) {
        let rest = run(from, team, parameters, steps);
        assert_eq!(rest.records.len() as u64, steps - saved);
        assert_same(&alone, &rest, &format!("a restart with {team:?}"));
    }
}

#[test]
fn of_uniform_steps() {
    let parameters = refined(TimeSteps::Uniform, Precision::Single);
    let restarts = [curve(3), ALONE, chance(2, 4)];
    // three ranks take the first of these steps in the test of ranks that are not as fast as each other
    ranks_leave_the_bits_alone(&parameters, 8, [chance(2, 1), curve(4)], restarts);
}

#[test]
fn of_individual_steps() {
    // as many groups as make three rebalances, and no more: a step of level 0 takes four of level 2
    let parameters = RunParameters {
        max_level: 2,
        refine: vec![Criterion::DensityAbove { thresholds: vec![1.7, 1.9] }],
        ..refined(TimeSteps::Individual, Precision::Double)
    };
    let restarts = [ALONE, chance(3, 9), curve(3)];
    ranks_leave_the_bits_alone(&parameters, 6, [chance(4, 3), curve(2)], restarts);
}

/// A step of a middle level within that of another.
#[test]
fn of_individual_steps_on_four_levels() {
    let refine = vec![Criterion::DensityAbove { thresholds: vec![1.7, 1.8, 1.9] }];
    let parameters =
        RunParameters { refine, poisson_cycles: Some(2), ..refined(TimeSteps::Individual, Precision::Single) };
    let initial = cosmological(2);
    let [alone, shared] = [ALONE, chance(2, 7)].map(|team| run(From::Memory(&initial), team, &parameters, 1));
    assert_eq!(alone.end.state.tree.level_count(), 4, "the test needs four levels");
    assert_same(&alone, &shared, "two ranks");
}

/// Marks of one rank's cells reach groups of others, boundaries are made from what is inside, and a limit of cells is
/// kept by all together.
#[test]
fn of_shocks_in_a_closed_box() {
    let snapshot = common::initial_on([3, 2, 2], comove_sim::mesh::CLOSED, None, 1.0, |x| {
        let far = (0..3).map(|a| (x[a] - [0.55, 0.3, 0.35][a]).powi(2)).sum::<f64>();
        (1.0 + 0.5 * (-40.0 * far).exp(), [40.0 * (8.0 * x[0]).sin(), -30.0 * (9.0 * x[1]).cos(), 0.0], 1e-3)
    });
    let parameters = RunParameters {
        boundary: comove_sim::Boundaries::all(comove_sim::Boundary::Reflecting),
        regrid_every: 2,
        max_cells: Some(110 * 4096),
        // it needs many redos
        ..common::plain_parameters(Precision::Single, 2, vec![1.1, 1.4]).with_scheme(Scheme::RelaxingTvd)
    };
    let snapshot = From::Memory(&snapshot);
    let alone = run(snapshot, ALONE, &parameters, 6);
    let redone: u64 = alone.records.iter().map(|record| record.ladder.redone_cells).sum();
    assert!(redone > 100, "the test needs redos: {redone}");
    assert!(alone.records.iter().any(|record| record.raised.is_some()), "the test needs its limit of cells");
    for team in [curve(2), chance(3, 5)] {
        assert_same(&alone, &run(snapshot, team, &parameters, 6), &format!("{team:?}"));
    }
}

#[test]
fn of_more_ranks_than_groups() {
    let parameters = RunParameters { max_level: 0, refine: Vec::new(), ..cosmological_parameters(Precision::Single) };
    for groups in [1, 2] {
        let initial = cosmological(groups);
        let alone = run(From::Memory(&initial), ALONE, &parameters, 2);
        for team in [curve(2), chance(3, 1), curve(9)] {
            for from in [From::Memory(&initial), From::Shares(&initial)] {
                assert_same(&alone, &run(from, team, &parameters, 2), &format!("{groups} groups a side, {team:?}"));
            }
        }
    }
}

/// Each rank has its part of every level, and no more ghosts than surround it.
#[test]
fn ranks_share_evenly() {
    let parameters = refined(TimeSteps::Uniform, Precision::Single);
    let shared = run(From::Memory(&cosmological(2)), curve(2), &parameters, 4);
    for record in &shared.records {
        let RanksRecord { imbalance, traffic, count, .. } = record.ranks.as_ref().expect("two ranks");
        assert!(*count == 2 && traffic.len() == 2 && traffic.iter().all(|of_rank| of_rank.bytes > 0));
        assert!(*imbalance < 0.06, "step {}: {imbalance}", record.step);
    }
}

/// Those to whom groups cost more have fewer of them, until they have measured that they do not; the bits stay.
#[test]
fn of_ranks_that_are_not_as_fast_as_each_other() {
    let parameters = refined(TimeSteps::Uniform, Precision::Single);
    let initial = cosmological(2);
    let initial = From::Memory(&initial);
    let alone = run(initial, ALONE, &parameters, 6);
    let [even, slow] = [curve(3), paced(&[0.6, 1.8, 0.6])].map(|team| run(initial, team, &parameters, 6));
    for outcome in [&even, &slow] {
        assert_same(&alone, outcome, "ranks of other speeds");
    }
    let ranks_of = |outcome: &Outcome, step: usize| outcome.records[step].ranks.clone().expect("three ranks");
    // enough of them for threads, but not for GPUs; those that read ghosts are swept apart
    let groups_fill_devices = 64 / 3 >= 2 * common::device_of(0, 1).saturating_group_count();
    for step in 0..6 {
        let measured = ranks_of(&even, step).sweep_imbalance;
        assert_eq!(measured.is_some(), groups_fill_devices, "step {step}");
        assert!(measured.is_none_or(|measured| measured >= 0.0 && measured.is_finite()), "step {step}: {measured:?}");
        assert_eq!(ranks_of(&even, step).costs, [1.0; 3], "step {step}");
    }
    // three in seven groups, one, and three, but for those of the root; even parts would take 1.4 times as long again
    for step in 1..3 {
        let RanksRecord { imbalance, costs, .. } = ranks_of(&slow, step);
        assert!(costs == [0.6, 1.8, 0.6] && imbalance < 0.3, "step {step}: {imbalance} at {costs:?}");
    }
    assert!(rebalances(&slow) > 0);
}

/// A tree that stays as it is, too, is dealt out anew where costs turn out others.
#[test]
fn groups_move_on_a_tree_that_stays() {
    let everywhere = Criterion::InsideBox { min: [-1e9; 3], max: [1e9; 3], level: 1 };
    for time_steps in [TimeSteps::Uniform, TimeSteps::Individual] {
        let parameters =
            RunParameters { max_level: 1, refine: vec![everywhere.clone()], ..refined(time_steps, Precision::Single) };
        let initial = cosmological(2);
        let [alone, slow] = [ALONE, paced(&[0.4, 1.6])].map(|team| run(From::Memory(&initial), team, &parameters, 8));
        assert_same(&alone, &slow, "ranks that are faster than it seemed");
        assert!(slow.records.iter().all(|record| !record.regridded && record.groups == [8, 64]));
        // by then they have measured otherwise, or, with so few groups on a GPU, nothing
        let moved = |record: &StepRecord| record.ranks.as_ref().map_or(0, |ranks| ranks.moved_groups);
        let moved: Vec<u64> = slow.records.iter().map(moved).collect();
        assert!(moved[4..].iter().sum::<u64>() > 0, "{moved:?}");
    }
}

/// Steps of two ranks that start with this load balance and so much memory each, as the first of them records them, until they have
/// taken so many or one has no room; in between they are told to refine less, and more again. The box is long, so that groups
/// of one rank have few neighbours of the other's.
fn steps_within(limits: [u64; 2], load_balancer: &LoadBalancer, steps: u64) -> Result<Vec<StepRecord>, SimError> {
    let inside = |size: f64, level: u8| Criterion::InsideBox { min: [-size; 3], max: [size; 3], level };
    let parameters = RunParameters {
        gravity: false,
        max_level: 3,
        refine: vec![inside(1e9, 2), inside(1.0, 3)],
        regrid_every: 1,
        ..cosmological_parameters(Precision::Single)
    };
    let initial = common::cosmological_on([8, 1, 1]);
    let rank = |communicator: Communicator| {
        let rank = communicator.rank();
        let device = common::device_of(rank, 1).limited_to(limits[rank]);
        let share = share(&initial, rank, 2);
        let mut simulation = Simulation::start_on(
            device,
            Ranks::of(communicator).with_load_balancer(load_balancer.clone()),
            &share,
            parameters.clone(),
        )?;
        let mut records = Vec::new();
        for step in 0..steps {
            let max_level = (step % 4 == 3).then_some(2);
            simulation.steer(Steering { max_level, ..Steering::default() }).expect("within the parameters");
            records.push(simulation.step()?);
        }
        Ok(records)
    };
    on_ranks(2, rank).swap_remove(0)
}

fn costs(record: &StepRecord) -> Vec<f64> {
    record.ranks.clone().expect("two ranks").costs
}

/// The least memory with which steps can be taken, of so much that is enough.
fn least(enough: u64, try_with: impl Fn(u64) -> Result<Vec<StepRecord>, SimError>) -> u64 {
    let (mut too_little, mut enough) = (0_u64, enough);
    for _ in 0..7 {
        let limit = too_little.midpoint(enough);
        *if try_with(limit).is_ok() { &mut enough } else { &mut too_little } = limit;
    }
    enough
}

/// A fast rank whose memory is enough for an equal part, and for no more, is given that.
#[test]
fn parts_are_equal_where_others_do_not_fit() {
    let uneven = LoadBalancer::of(&[0.4, 1.6]);
    let roomy = steps_within([u64::MAX; 2], &uneven, 1).expect("a step with much memory").swap_remove(0);
    assert_eq!(costs(&roomy), [0.4, 1.6]);
    let enough = least(2 * roomy.device_bytes, |limit| steps_within([limit; 2], &LoadBalancer::default(), 1));
    let record = steps_within([enough; 2], &uneven, 1).expect("a step with memory for equal parts").swap_remove(0);
    assert_eq!(costs(&record), [1.0; 2]);
    assert_eq!(record.state_hash, roomy.state_hash);
}

/// A rank that has little and no room for more keeps that, on a tree that stays and on one that changes.
#[test]
fn parts_stay_where_equal_ones_do_not_fit() {
    let uneven = LoadBalancer::of(&[0.1, 1.9]);
    let even = steps_within([u64::MAX; 2], &LoadBalancer::default(), 9).expect("steps with much memory");
    let enough = least(even[0].device_bytes, |limit| steps_within([u64::MAX, limit], &uneven, 1));
    let kept = steps_within([u64::MAX, enough], &uneven, 9).expect("steps with what memory there is");
    assert!(kept.iter().map(|record| &record.state_hash).eq(even.iter().map(|record| &record.state_hash)));
    assert!(kept.iter().any(|record| record.regridded) && kept.iter().any(|record| !record.regridded));
    let RanksRecord { imbalance, .. } = kept[8].ranks.as_ref().expect("two ranks");
    assert!(*imbalance > 0.2, "{imbalance} at {:?}", costs(&kept[8]));
}

/// A byte of a dataset is another than was written, at the end of what is read of it.
fn damage(path: &Path, dataset: &str) {
    let offset = {
        let file = hdf5::File::open(path).expect("a snapshot");
        let dataset = file.dataset(dataset).expect("a field");
        let end = dataset.offset().expect("an array in one piece") + dataset.storage_size();
        end as usize - 1000
    };
    let mut bytes = std::fs::read(path).expect("a snapshot");
    bytes[offset] ^= 1;
    std::fs::write(path, bytes).expect("a snapshot");
}

/// A run begins from what is verified, on all ranks or on none; fields that it does not start from are verified too.
#[test]
fn a_damaged_file_is_refused_by_all() {
    let parameters = refined(TimeSteps::Uniform, Precision::Single);
    let begun = run(From::Memory(&cosmological(2)), curve(2), &parameters, 2);
    let good = std::fs::read(begun.file("end.h5")).expect("a checkpoint");
    for dataset in ["GridData/MomZ", "GridData/Pote", "GridData/Pres"] {
        let path = begun.file("end.h5");
        std::fs::write(&path, &good).expect("a checkpoint");
        damage(&path, dataset);
        let ends = on_ranks(3, |communicator| {
            let ended = start(From::File(&path), Ranks::of(communicator), &parameters);
            ended.err().expect("a start from a damaged file")
        });
        assert!(matches!(&ends[0], SimError::Damaged { dataset: named, .. } if named == dataset), "{}", ends[0]);
        for end in &ends[1..] {
            assert!(matches!(end, SimError::OnRank { rank: 0, .. }) && end.to_string().contains(dataset), "{end}");
        }
    }
}

/// The sum of what three ranks have: each the term and its own number.
fn sum(communicator: &Communicator, term: u64) -> u64 {
    let mut word = [term + communicator.rank() as u64];
    communicator.sum(&mut word);
    word[0]
}

/// What the first rank asks of the others, they do with it: also after a start, or a file, that came to nothing.
#[test]
fn those_who_follow_write_and_start_with_the_first() {
    let parameters = refined(TimeSteps::Uniform, Precision::Single);
    let initial = From::Memory(&cosmological(2));
    let [begun, alone] = [2, 4].map(|steps| run(initial, ALONE, &parameters, steps));
    let [good, damaged] = [begun.file("end.h5"), begun.file("damaged.h5")];
    std::fs::copy(&good, &damaged).expect("a copy");
    damage(&damaged, "GridData/Dens");
    on_ranks(3, |communicator| {
        let rank = communicator.rank();
        let (crew, device) = (RankGroup::of(communicator), common::device_of(rank, 1));
        if rank > 0 {
            let add = |term: Value, communicator: &Communicator| {
                sum(communicator, term.as_u64().expect("a number"));
                None
            };
            return crew.follow(|| Ok(device.clone()), add);
        }
        crew.prepare(Ok(&device)).expect("devices alike");
        let start = |path: &Path| {
            let stored = StoredSnapshot::open(path)?;
            Simulation::start_on(device.clone(), crew.ranks(), StartFrom::File(&stored, &|_| ()), parameters.clone())
        };
        assert!(matches!(start(&damaged).err(), Some(SimError::Damaged { .. })));
        let mut simulation = start(&good).expect("a start");
        // another thread has them do something else between two steps
        std::thread::scope(|threads| {
            threads.spawn(|| {
                for term in 0..50u64 {
                    assert_eq!(crew.run_collective(&term, |communicator| sum(communicator, term)), 3 * (term + 1));
                }
            });
            (0..2).for_each(|_| _ = simulation.step().expect("a step"));
        });
        assert_eq!(crew.run_collective(&f64::NAN, Communicator::size), 1, "what cannot be told is not done together");
        let end = simulation.checkpoint().expect("a checkpoint");
        let nowhere = simulation.write(&end, &begun.file("missing/end.h5"));
        assert!(matches!(nowhere, Err(SimError::Io { .. })));
        let end = simulation.checkpoint().expect("a checkpoint");
        write(&simulation, &end, &begun.file("shared.h5"));
        drop(simulation);
        crew.shutdown();
    });
    let [one, other] =
        [alone.file("end.h5"), begun.file("shared.h5")].map(|path| Snapshot::read(&path).expect("a snapshot"));
    assert_same_state(&one, &other, "a crew");
}
