//! A starting state from a formula: the paper's first way to begin (section 2.1).
//!
//! From level 0 up, the criteria decide with the run's own flags what is refined, and the formula fills every new group.
//! Then patches that have children take their means.

use crate::error::IcError;
use crate::problems::{Gas, Setup};
use comove_sim::Clock;
use comove_sim::State;
use comove_sim::kernels::layout::{GROUP, GROUP_CELLS, GROUP_VALUES, cell_coordinate};
use comove_sim::kernels::{Device, Eos, Real, restrict};
use comove_sim::refinement::{RefinementContext, wanted};
use comove_sim::step::leaf_sums;
use comove_sim::{HostState, Key, Octree, Precision, RunParameters, ScalarParameters};
use rayon::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Gas of a cell with its centre at a point (code length) and of some width, as [`crate::problems::Problem::initial`]
/// gives it, or why there is none.
pub type Formula<'a, E> = &'a (dyn Fn([f64; 3], f64) -> Result<Gas, E> + Sync);

/// The octree and gas from which a run of `setup` starts on `device`.
///
/// Refinement is settled in the precision of the run: the flags of the returned state, means included, ask for its own
/// tree, unless a mean falls on the other side of a threshold than the values that it stands for. Groups are filled in
/// parallel; of several that fail, the first in key order is named.
///
/// # Errors
/// What the formula says; [`IcError::Gas`] where it gives none that can be; [`IcError::Sim`] where the device has no room.
pub fn function_state<E: From<IcError> + Send>(
    formula: Formula<'_, E>,
    setup: &Setup,
    device: &Device,
    progress: &dyn Fn(&str, f64),
) -> Result<HostState, E> {
    match setup.parameters.precision {
        Precision::Single => refined::<f32, E>(formula, setup, device, progress),
        Precision::Double => refined::<f64, E>(formula, setup, device, progress),
    }
}

fn refined<T: Real, E: From<IcError> + Send>(
    formula: Formula<'_, E>,
    setup: &Setup,
    device: &Device,
    progress: &dyn Fn(&str, f64),
) -> Result<HostState, E> {
    let root = setup.root.map(|n| (n / GROUP) as u32);
    // neither potential nor scalars are needed here
    let scalars = ScalarParameters::default();
    let parameters = RunParameters { gravity: false, scalars, ..setup.parameters.clone() };
    let clock = Clock::new(if setup.cosmology.is_some() { setup.start } else { 1.0 }, 0.0, setup.cosmology);
    let passes = usize::from(parameters.max_level) + 1;
    progress("level 0", 0.0);
    let empty = HostState { fluid: Vec::new(), ..HostState::zeros(Octree::new(root, parameters.boundary.periodic())) };
    let mut state = grown(None, empty.tree, formula, setup)?;
    for pass in 1..=passes {
        let width = setup.box_length / setup.root[0] as f64;
        let mut on_device = State::<T>::from_host(device.clone(), &state, width, &parameters).map_err(IcError::from)?;
        for level in (0..on_device.level_count() - 1).rev() {
            let State { mesh, gas, .. } = &mut on_device;
            let fluid = &mut gas.as_mut().expect("gas by formulas").fluid.values;
            restrict::restrict(device, &mesh.tables[level], fluid, &parameters.eos());
        }
        state = on_device.to_host();
        let volume: f64 = setup.root.iter().map(|&n| n as f64 * width).product();
        let mean_density = leaf_sums(&on_device).sums.mass / volume;
        let tree = wanted(&on_device, &RefinementContext::of(&on_device, &parameters, &clock, mean_density), 0).tree;
        if tree == state.tree || pass == passes {
            break;
        }
        progress(&format!("levels 0–{}", tree.level_count() - 1), pass as f64 / passes as f64);
        state = grown(Some(&state), tree, formula, setup)?;
    }
    Ok(state)
}

/// The state on another tree: groups that were there keep their values, the formula fills the others.
fn grown<E: From<IcError> + Send>(
    old: Option<&HostState>,
    tree: Octree,
    formula: Formula<'_, E>,
    setup: &Setup,
) -> Result<HostState, E> {
    let mut state = HostState::zeros(tree);
    let eos = setup.parameters.eos();
    let keys: Vec<Key> = state.tree.keys().collect();
    // groups behind one that fails need no values
    let first_failure = AtomicUsize::new(usize::MAX);
    let filled: Vec<Result<(), E>> = state
        .fluid
        .par_chunks_mut(GROUP_VALUES)
        .zip(keys)
        .enumerate()
        .map(|(n, (values, key))| {
            if let Some((old, group)) = old.and_then(|old| Some((old, old.tree.index(key)?))) {
                values.copy_from_slice(&old.fluid[group * GROUP_VALUES..][..GROUP_VALUES]);
            } else if n < first_failure.load(Ordering::Relaxed) {
                let filled = fill(values, key, formula, setup, &eos);
                if filled.is_err() {
                    first_failure.fetch_min(n, Ordering::Relaxed);
                }
                return filled;
            }
            Ok(())
        })
        .collect();
    filled.into_iter().collect::<Result<(), E>>()?;
    Ok(state)
}

/// Fills a group, `[6, 16, 16, 16]`.
fn fill<E: From<IcError>>(
    values: &mut [f64],
    key: Key,
    formula: Formula<'_, E>,
    setup: &Setup,
    eos: &Eos<f64>,
) -> Result<(), E> {
    let width = setup.box_length / (setup.root[0] << key.level) as f64;
    for cell in 0..GROUP_CELLS {
        let at = cell_coordinate(cell);
        let position = [0, 1, 2].map(|axis| ((key.coordinate[axis] as usize * GROUP + at[axis]) as f64 + 0.5) * width);
        let gas = formula(position, width)?;
        gas.check().map_err(|(field, value)| IcError::Gas { field, value, position, width })?;
        for (field, value) in gas.conserved(eos).into_iter().enumerate() {
            values[field * GROUP_CELLS + cell] = value;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problems::{AcousticWave, Problem, l1_error};
    use crate::silent;
    use comove_sim::Criterion;
    use comove_sim::kernels::layout::DENSITY;
    use comove_sim::{Coordinates, Simulation, Snapshot, SnapshotHeader};

    fn setup(levels: u8, precision: Precision, thresholds: Vec<f64>) -> Setup {
        let wave = AcousticWave { root: 32, box_length: 1.0, ..AcousticWave::default() };
        let mut setup = wave.setup();
        let refine = vec![Criterion::DensityAbove { thresholds }];
        setup.parameters = RunParameters { max_level: levels, refine, precision, ..setup.parameters };
        setup
    }

    /// A smooth hill of density 1 to 11 about the middle of the box.
    fn hill(x: [f64; 3]) -> Gas {
        let square: f64 = x.iter().map(|x| (x - 0.5).powi(2)).sum();
        Gas { density: 1.0 + 10.0 * (-square / 0.01).exp(), velocity: [0.3, -0.2, 0.1], pressure: 0.6 }
    }

    /// Leaf cells of every level hold the formula's own values, patches with children the means of theirs, and a run
    /// refines nothing by interpolation when it starts from there.
    #[test]
    fn every_level_is_filled_by_the_formula() {
        let setup = setup(2, Precision::Double, vec![2.0, 6.0]);
        let device = Device::cpu(2).unwrap();
        let state = function_state::<IcError>(&|x, _| Ok(hill(x)), &setup, &device, &silent).unwrap();
        assert_eq!(state.tree.level_count(), 3);
        let mut finest = 0;
        for (group, key) in state.tree.keys().enumerate() {
            let width = 1.0 / f64::from(32u32 << key.level);
            let leaves = state.tree.leaves(key);
            for cell in 0..GROUP_CELLS {
                let at = cell_coordinate(cell);
                let octant = (0..3).map(|a| (at[a] / 8) << a).sum::<usize>();
                let density = state.fluid[group * GROUP_VALUES + DENSITY * GROUP_CELLS + cell];
                let x = [0, 1, 2].map(|a| (f64::from(key.coordinate[a]) * 16.0 + at[a] as f64 + 0.5) * width);
                if leaves >> octant & 1 == 1 {
                    assert_eq!(density, hill(x).density);
                    finest += usize::from(key.level == 2);
                    continue;
                }
                let child = state.tree.index(key.child(octant)).unwrap();
                let first = at.map(|c| c % 8 * 2);
                let field = state.field(child, DENSITY);
                let sum: f64 =
                    (0..8).map(|o| field[[first[2] + (o >> 2), first[1] + (o >> 1 & 1), first[0] + (o & 1)]]).sum();
                assert!((density / (0.125 * sum) - 1.0).abs() < 1e-14);
            }
        }
        assert!(finest > 0);
        let header = SnapshotHeader {
            box_length: 1.0,
            gamma: setup.parameters.gamma,
            precision: Precision::Double,
            ..SnapshotHeader::initial(Coordinates::Plain)
        };
        let snapshot = Snapshot { header, state: state.clone() };
        let mut run = Simulation::start(device, &snapshot, setup.parameters).unwrap();
        let begun = run.checkpoint().unwrap().state;
        assert!(begun.tree == state.tree && begun.fluid == state.fluid);
    }

    /// The same bits from one and three threads, and of several failures the first in key order.
    #[test]
    fn nothing_depends_on_threads() {
        let setup = setup(2, Precision::Single, vec![2.0, 6.0]);
        let device = Device::cpu(1).unwrap();
        let with = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let state = function_state::<IcError>(&|x, _| Ok(hill(x)), &setup, &device, &silent).unwrap();
                let bad = |x: [f64; 3], _: f64| Ok(Gas { density: 0.9 - x[2], ..hill(x) });
                let error = function_state::<IcError>(&bad, &setup, &device, &silent).unwrap_err().to_string();
                (state.tree, state.fluid, error)
            })
        };
        assert!(with(1) == with(3));
        let error = with(2).2;
        assert!(error.starts_with("density = -2.18"), "{error}");
        assert!(error.contains("at (0.015625, 0.015625, 0.921875), the centre of a cell 0.03125 wide"), "{error}");
    }

    /// Of a wave at amplitude A, refined in part: exact at cell centres at the start; a quarter of a period later the
    /// wave is elsewhere, by the mean of |cos x|, 2/π.
    #[test]
    fn errors_are_measured_on_leaf_cells() {
        let wave = AcousticWave {
            root: 32,
            box_length: 1.0,
            amplitude: 0.1,
            wave_numbers: [1, 0, 0],
            ..AcousticWave::default()
        };
        let mut setup = wave.setup();
        (setup.parameters.max_level, setup.parameters.flag_buffer) = (1, 0);
        setup.parameters.refine = vec![Criterion::DensityAbove { thresholds: vec![1.05] }];
        let formula = |x: [f64; 3], h: f64| Ok(wave.initial(x, h));
        let device = Device::cpu(1).unwrap();
        let state = function_state::<IcError>(&formula, &setup, &device, &silent).unwrap();
        assert!(state.tree.level_count() == 2 && state.tree.volume_fractions()[1] < 1.0);
        assert_eq!(l1_error(&wave, &state, 0.0), Some(0.0));
        let later = l1_error(&wave, &state, 0.25 / wave.sound_speed()).unwrap();
        assert!((later / (0.1 * std::f64::consts::FRAC_2_PI) - 1.0).abs() < 0.01, "{later}");
    }
}
