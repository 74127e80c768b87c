//! Passive scalars through whole runs: what is uniform stays so, nothing is lost, and bits are those of any device, number
//! of threads and ranks, and of a continued run.

use crate::common::{cosmological, cosmological_parameters, device, device_of};
use comove_kernels::layout::{DENSITY, GROUP_CELLS, GROUP_VALUES};
use comove_sim::fields::FieldSet;
use comove_sim::mesh::LeafPatch;
use comove_sim::parallel::{Ranks, on_ranks};
use comove_sim::{
    HostState, Precision, RunParameters, ScalarParameters, SimError, Simulation, Snapshot, StoredSnapshot, TimeSteps,
};

/// Three scalars: all the gas, a fiftieth of it, and what is stored in the start, unevenly.
fn start() -> Snapshot {
    let mut snapshot = cosmological(2);
    let state = &mut snapshot.state;
    let fraction = |n: usize| ((n * 2_654_435_761) % 1009) as f64 / 1009.0;
    let density = |n: usize| state.fluid[n / GROUP_CELLS * GROUP_VALUES + DENSITY * GROUP_CELLS + n % GROUP_CELLS];
    let dye = (0..state.tree.group_count() * GROUP_CELLS).map(|n| fraction(n) * density(n)).collect();
    state.scalars = vec![dye];
    snapshot.header.fields = FieldSet::with_scalars(["stain"]).unwrap();
    snapshot
}

fn parameters(time_steps: TimeSteps) -> RunParameters {
    let scalars: ScalarParameters =
        serde_json::from_value(serde_json::json!({ "all": 1.0, "metals": 0.02, "stain": null })).unwrap();
    RunParameters { time_steps, regrid_every: 2, scalars, ..cosmological_parameters(Precision::Single) }
}

fn values<'a>(state: &'a HostState, scalar: usize, patch: &LeafPatch) -> impl Iterator<Item = [f64; 2]> + use<'a> {
    let (group, octant) = (patch.group, patch.octant);
    let cells = (0..GROUP_CELLS).filter(move |c| (0..3).all(|a| (c >> (4 * a + 3) & 1) == (octant >> a & 1)));
    cells.map(move |c| {
        [state.fluid[group * GROUP_VALUES + DENSITY * GROUP_CELLS + c], state.scalars[scalar][group * GROUP_CELLS + c]]
    })
}

/// Mass of each scalar in the leaves, in cells of the root.
fn masses(state: &HostState) -> Vec<f64> {
    let mass = |n: usize| {
        let of_patch =
            |patch: LeafPatch| values(state, n, &patch).map(|[_, s]| s).sum::<f64>() / 8f64.powi(patch.level as i32);
        state.tree.leaf_patches().map(of_patch).sum()
    };
    (0..state.scalars.len()).map(mass).collect()
}

fn stepped(simulation: &mut Simulation, steps: u64) -> Vec<String> {
    (0..steps).map(|_| simulation.step().unwrap().state_hash).collect()
}

/// All the gas is all the gas to the last bit, a uniform fraction is uniform to round-off, an uneven one has no new
/// extrema, and the mass of each stays, on a refined mesh that changes, with levels at the same steps and at their own.
#[test]
fn scalars_follow_the_gas() {
    for time_steps in [TimeSteps::Uniform, TimeSteps::Individual] {
        let mut run = Simulation::start(device(2), &start(), parameters(time_steps)).unwrap();
        let before = masses(&run.checkpoint().unwrap().state);
        let groups = run.groups();
        stepped(&mut run, 12);
        assert_ne!(run.groups(), groups, "the mesh changes");
        let end = run.checkpoint().unwrap();
        assert_eq!(end.header.fields.scalars(), ["all", "metals", "stain"]);
        let mut worst = 0f64;
        for patch in end.state.tree.leaf_patches() {
            assert!(values(&end.state, 0, &patch).all(|[density, gas]| gas == density), "{time_steps:?}");
            worst = values(&end.state, 1, &patch).map(|[d, s]| (s / d / 0.02 - 1.0).abs()).fold(worst, f64::max);
            assert!(values(&end.state, 2, &patch).all(|[d, s]| (-1e-6..1.0 + 1e-6).contains(&(s / d))));
        }
        assert!(worst < 2e-6, "{time_steps:?}: a fraction of 0.02 is off by {worst:e}");
        for (before, after) in before.iter().zip(masses(&end.state)) {
            assert!((after / before - 1.0).abs() < 2e-7, "{time_steps:?}: {before} becomes {after}");
        }
    }
}

/// The gas does not feel what it carries; and threads, ranks and a stop in the middle change no bit of either.
#[test]
fn bits_do_not_depend_on_who_computes() {
    let (start, parameters) = (start(), parameters(TimeSteps::Individual));
    let mut alone = Simulation::start(device(1), &start, parameters.clone()).unwrap();
    let mut hashes = stepped(&mut alone, 3);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("checkpoint.h5");
    alone.checkpoint().unwrap().write(&path).unwrap();
    hashes.extend(stepped(&mut alone, 3));
    let end = alone.checkpoint().unwrap().state;

    let mut threads = Simulation::start(device(2), &start, parameters.clone()).unwrap();
    assert_eq!(stepped(&mut threads, 6), hashes, "two threads");

    let stored = StoredSnapshot::open(&path).unwrap();
    let mut continued = Simulation::start(device(2), &stored.read(&|_| ()).unwrap(), parameters.clone()).unwrap();
    assert_eq!(stepped(&mut continued, 3), hashes[3..], "continued");
    assert_eq!(continued.checkpoint().unwrap().state.scalars, end.scalars);

    let file = folder.path().join("ranks.h5");
    let of_ranks = on_ranks(2, |communicator| {
        let rank = communicator.rank();
        let mut ranks = Ranks::of(communicator);
        ranks.scattered = Some(5);
        let none = comove_sim::Octree::share(start.state.tree.root_groups(), start.state.tree.periodic(), Vec::new());
        let empty = Snapshot { header: start.header.clone(), state: HostState::zeros_of(none, &start.header.fields) };
        let from = if rank == 0 { &start } else { &empty };
        let mut run = Simulation::start_on(device_of(rank, 1), ranks, from, parameters.clone()).unwrap();
        let hashes = stepped(&mut run, 6);
        let snapshot = run.checkpoint().unwrap();
        run.write(&snapshot, &file).unwrap().map(|file| file.complete().unwrap());
        hashes
    });
    assert!(of_ranks.iter().all(|found| *found == hashes), "two ranks");
    let of_ranks = Snapshot::read(&file).unwrap().state;
    assert!(of_ranks.tree == end.tree && of_ranks.fluid == end.fluid && of_ranks.scalars == end.scalars);

    let mut without = start.clone();
    (without.state.scalars, without.header.fields) = (Vec::new(), FieldSet::default());
    let plain = RunParameters { scalars: ScalarParameters::default(), ..parameters };
    let mut without = Simulation::start(device(2), &without, plain).unwrap();
    stepped(&mut without, 6);
    assert!(without.checkpoint().unwrap().state.fluid == end.fluid, "the gas");
}

#[test]
fn scalars_that_cannot_start_are_refused() {
    let start_with = |scalars: serde_json::Value| {
        let scalars = serde_json::from_value(scalars).unwrap();
        let parameters = RunParameters { scalars, ..parameters(TimeSteps::Uniform) };
        match Simulation::start(device(1), &start(), parameters) {
            Err(error @ SimError::Parameter { name: "scalars", .. }) => error.to_string(),
            _ => panic!("it starts"),
        }
    };
    for (scalars, says) in [
        (serde_json::json!([]), "scalars: [\"stain\"]"),
        (serde_json::json!(["stain", "metals"]), "scalars: #{ metals: 0.02 }"),
        (serde_json::json!({ "stain": null, "metals": 1.5 }), "[0, 1]"),
        (serde_json::json!(["stain", "Pote"]), "begins with a letter"),
    ] {
        let error = start_with(scalars);
        assert!(error.contains(says), "{error}");
    }
}
