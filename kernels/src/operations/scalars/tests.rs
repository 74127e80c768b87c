//! Scalars against the gas that carries them, mirrored input, and a GPU.

use super::*;
use crate::device::device_table::DeviceTable;
use crate::hydro_sweep::{SweepParameters, SweepTargets, hydro_sweep};
use crate::layout::{DENSITY, FLUX_PLANES, GROUP, MOMENTUM, cell_coordinate};
use crate::level::ghosts::EarlierFluid;
use crate::level::level_topology::NONE;
use crate::level::troubled_cells::{TroubledCells, groups_to_redo};
use crate::point::eos::Eos;
use crate::reflux::{CoarseFineFace, RefluxGroup};
use crate::scheme::Scheme;
use crate::testing::{Mesh, Noise, conserved, with_gpu};

const GAMMA: f64 = 5.0 / 3.0;

/// Gas at Mach numbers around 1, with steep slopes.
fn rough_gas<T: Real>(mesh: &Mesh, noise: &mut Noise) -> Vec<T> {
    mesh.fill(|_| {
        let velocity = [0, 1, 2].map(|_| 1.5 * noise.next());
        conserved(10f64.powf(noise.next()), velocity, 1.0 + 0.5 * noise.next(), GAMMA)
    })
}

/// Scalars with these mass fractions of the gas.
fn scalars_of<T: Real>(fluid: &[T], fractions: &mut [&mut dyn FnMut() -> f64]) -> Vec<T> {
    let mut scalars = Vec::new();
    for group in fluid.chunks(GROUP_VALUES) {
        for fraction in &mut *fractions {
            scalars.extend(group[..GROUP_CELLS].iter().map(|&density| T::from_f64(fraction()) * density));
        }
    }
    scalars
}

/// Every plane of every group of a level.
fn all_planes(tables: &LevelTopology) -> DeviceTable<u32> {
    (0..(tables.len() * FLUX_PLANES) as u32).collect()
}

/// What a sweep of a level leaves: gas, its fluxes, scalars and theirs.
struct Swept<T> {
    fluid: Vec<T>,
    fluxes: Vec<T>,
    scalars: Vec<T>,
    scalar_fluxes: Vec<T>,
    redone: usize,
    floored: u32,
}

/// Sweeps a level, with a redo where it asks for one; `earlier`: fluid and scalars that the coarser level comes from.
fn swept<T: Real>(
    device: &Device,
    tables: &LevelTopology,
    (fluid, scalars): (&[T], &[T]),
    earlier: Option<(&[T], &[T])>,
    (scheme, axes, dt_over_dx): (Scheme, [usize; 3], f64),
) -> Swept<T> {
    let count = scalars.len() / (fluid.len() / GROUP_VALUES) / GROUP_CELLS;
    let slots = fluid.len() / GROUP_VALUES;
    let pool = |values: &[T]| Buffer::from_host(device, values.to_vec()).unwrap();
    let fill = |length: usize| pool(&vec![T::from_f64(-7.0); length]);
    let (earlier_fluid, earlier_scalars) = earlier.unwrap_or_default();
    let (earlier_fluid, earlier_scalars) = (pool(earlier_fluid), pool(earlier_scalars));
    let places: DeviceTable<u32> = (0..slots as u32).collect();
    let timed = EarlierFluid { fluid: &earlier_fluid, places: &places, weight: T::from_f64(0.25) };
    let flux_slots = all_planes(tables);
    let (before, scalars_before) = (pool(fluid), pool(scalars));
    let (mut after, mut fluxes) = (fill(fluid.len()), fill(flux_slots.len() * FLUX_PLANE_VALUES));
    let (mut scalars_after, mut scalar_fluxes) = (fill(scalars.len()), fill(flux_slots.len() * count * FACE_CELLS));
    let mut marks = TroubledCells::new(device, slots).unwrap();
    let parameters = SweepParameters { scheme, dt_over_dx: T::from_f64(dt_over_dx), axes, eos: Eos::new(GAMMA) };
    let mut sweep = |which: SweepTargets, marks: &mut TroubledCells| {
        let mut scalars = ScalarSweep {
            count,
            before: &scalars_before,
            earlier: &earlier_scalars,
            after: &mut scalars_after,
            fluxes: &mut scalar_fluxes,
        };
        let timed = earlier.map(|_| &timed);
        let (out, fluxes) = (&mut after, &mut fluxes);
        let scalars = Some(&mut scalars);
        hydro_sweep(device, tables, &flux_slots, &before, timed, out, fluxes, marks, scalars, which, &parameters)
            .reports
            .wait()
    };
    let mut reports = sweep(SweepTargets::All, &mut marks);
    let mut redone = 0;
    for _ in 0..8 {
        if reports.iter().all(|report| report.marked == 0) {
            break;
        }
        marks.accept();
        let groups = groups_to_redo(tables, &mut reports, []);
        redone += groups.len();
        for (&g, report) in groups.iter().zip(sweep(SweepTargets::Redo(&groups), &mut marks)) {
            reports[g as usize] = report;
        }
    }
    let [fluid, fluxes] = [after, fluxes].map(|buffer| buffer.to_host());
    let [scalars, scalar_fluxes] = [scalars_after, scalar_fluxes].map(|buffer| buffer.to_host());
    Swept { fluid, fluxes, scalars, scalar_fluxes, redone, floored: reports.iter().map(|report| report.floored).sum() }
}

/// Densities of a pool of fluid, slot by slot, or a field's flux planes.
fn densities<T: Real>(values: &[T], of_group: usize, cells: usize) -> Vec<T> {
    values.chunks(of_group).flat_map(|group| group[DENSITY * cells..][..cells].iter().copied()).collect()
}

/// A scalar that all the gas is has the density's bits after every operation, and half of one half of its values.
#[test]
fn a_fraction_of_one_is_the_density_to_the_last_bit() {
    let device = Device::cpu(2).unwrap();
    let mut noise = Noise::new(4);
    let [mut redone, mut compared] = [0; 2];
    for case in 0..6 {
        let mesh = Mesh::random(&mut noise, 3);
        let [fluid, before]: [Vec<f32>; 2] = [(); 2].map(|()| rough_gas(&mesh, &mut noise));
        let of = |fluid: &[f32]| scalars_of(fluid, &mut [&mut || 1.0, &mut || 0.5]);
        let (scalars, scalars_before) = (of(&fluid), of(&before));
        let check = |fluid: &[f32], scalars: &[f32], of_group: usize, cells: usize, what: &str| {
            let density = densities(fluid, of_group, cells);
            for (n, factor) in [1.0, 0.5].into_iter().enumerate() {
                let scalar = scalars.chunks(2 * cells).flat_map(|group| &group[n * cells..][..cells]);
                let different = scalar.zip(&density).filter(|(s, d)| **s != factor * **d && **d != -7.0).count();
                assert_eq!(different, 0, "{what}, case {case}, scalar {n}");
            }
        };
        for level in 0..mesh.levels.len() {
            let tables = mesh.tables(level);
            let scheme = if case < 4 { Scheme::RelaxingTvd } else { Scheme::Hll };
            let axes = [[0, 1, 2], [2, 1, 0], [1, 2, 0]][case % 3];
            let earlier = (case % 2 == 1).then_some((&before[..], &scalars_before[..]));
            let now = swept(&device, &tables, (&fluid, &scalars), earlier, (scheme, axes, 0.12));
            redone += now.redone;
            // of cells that end without mass nobody knows the fraction
            if now.floored == 0 {
                compared += 1;
                check(&now.fluid, &now.scalars, GROUP_VALUES, GROUP_CELLS, "sweep");
                check(&now.fluxes, &now.scalar_fluxes, FLUX_PLANE_VALUES, FACE_CELLS, "fluxes");
            }

            let pools = || [fluid.clone(), scalars.clone()].map(|pool| Buffer::from_host(&device, pool).unwrap());
            let [mut gas, mut two] = pools();
            crate::restrict::restrict(&device, &tables, &mut gas, &Eos::new(GAMMA));
            restrict_scalars(&device, &tables, 2, &mut two);
            check(gas.host(), two.host(), GROUP_VALUES, GROUP_CELLS, "restriction");
            if level > 0 {
                let [mut gas, mut two] = pools();
                let new: Vec<usize> = (0..tables.len()).step_by(2).collect();
                prolong_scalars(&device, &tables, &new, &gas, 2, &mut two);
                crate::prolong::prolong(&device, &tables, &new, &mut gas, &Eos::new(GAMMA));
                check(gas.host(), two.host(), GROUP_VALUES, GROUP_CELLS, "prolongation");
            }
            // any planes will do
            let [mut gas, mut two] = pools();
            let reflux = corner_of_a_group(&tables, now.fluxes.len() / FLUX_PLANE_VALUES);
            let fluxes = Buffer::from_host(&device, now.fluxes.clone()).unwrap();
            let scalar_fluxes = Buffer::from_host(&device, now.scalar_fluxes.clone()).unwrap();
            crate::reflux::reflux(&device, &reflux, &mut gas, &fluxes, 0.001, 0.5, &Eos::new(GAMMA)).wait();
            reflux_scalars(&device, &reflux, 2, &mut two, &scalar_fluxes, 0.001, 0.5);
            check(gas.host(), two.host(), GROUP_VALUES, GROUP_CELLS, "flux correction");
            assert!(gas.host() != fluid);
        }
    }
    assert!(redone > 0 && compared > 6, "{redone} groups are redone, {compared} levels compared");
}

/// Three faces that meet in a corner of a level's first group.
fn corner_of_a_group(tables: &LevelTopology, planes: usize) -> RefluxTables {
    let face = |axis: u8| CoarseFineFace {
        axis,
        high: axis == 1,
        octant: 5,
        coarse_plane: u32::from(axis) % planes as u32,
        fine_plane: (u32::from(axis) + 3) % planes as u32,
    };
    RefluxTables {
        faces: [0, 1, 2].map(face).into_iter().collect(),
        groups: [RefluxGroup { index: 0, slot: tables.slots[0], end: 3 }].into_iter().collect(),
    }
}

/// Fractions stay between 0 and 1, and what crosses the faces of groups is all that a periodic box can gain.
#[test]
fn fractions_stay_between_bounds_and_the_sum_stays() {
    let device = Device::cpu(2).unwrap();
    let mut noise = Noise::new(8);
    let mesh = Mesh::new([2, 2, 2], true);
    let mut fluid: Vec<f64> = rough_gas(&mesh, &mut noise);
    let mut scalars = scalars_of(&fluid, &mut [&mut || f64::from(noise.next() > 0.5), &mut || 0.02]);
    let sum = |scalars: &[f64]| scalars.chunks(2 * GROUP_CELLS).flat_map(|group| &group[..GROUP_CELLS]).sum::<f64>();
    let first = sum(&scalars);
    for step in 0..8 {
        let axes = [[0, 1, 2], [2, 1, 0]][step % 2];
        let after = swept(&device, &mesh.tables(0), (&fluid, &scalars), None, (Scheme::RelaxingTvd, axes, 0.1));
        (fluid, scalars) = (after.fluid, after.scalars);
        let density = densities(&fluid, GROUP_VALUES, GROUP_CELLS);
        let of =
            |n: usize| scalars.chunks(2 * GROUP_CELLS).flat_map(move |group| &group[n * GROUP_CELLS..][..GROUP_CELLS]);
        let fractions = |n: usize| of(n).zip(&density).map(|(scalar, density)| scalar / density);
        assert!(fractions(0).all(|x| (-1e-14..1.0 + 1e-14).contains(&x)), "step {step}");
        assert!(fractions(1).all(|x| (x / 0.02 - 1.0).abs() < 1e-13), "step {step}");
    }
    assert!((sum(&scalars) / first - 1.0).abs() < 1e-13);
    let spread = scalars[..GROUP_CELLS].iter().filter(|s| **s != 0.0).count();
    assert!(spread > GROUP_CELLS * 9 / 10, "gas has moved: {spread}");
}

/// A periodic box of one group, mirrored along an axis.
fn mirrored(pool: &[f32], fields: usize, axis: usize) -> Vec<f32> {
    let mut mirror = pool.to_vec();
    for (f, c) in (0..fields).flat_map(|f| (0..GROUP_CELLS).map(move |c| (f, c))) {
        let mut at = cell_coordinate(c);
        at[axis] = GROUP - 1 - at[axis];
        let value = pool[f * GROUP_CELLS + crate::layout::cell(at[0], at[1], at[2])];
        mirror[f * GROUP_CELLS + c] = if fields > 1 && f == MOMENTUM + axis { -value } else { value };
    }
    mirror
}

#[test]
fn mirrored_input_gives_mirrored_bits() {
    let device = Device::cpu(1).unwrap();
    let mut noise = Noise::new(6);
    let mesh = Mesh::new([1, 1, 1], true);
    let fluid: Vec<f32> = rough_gas(&mesh, &mut noise);
    let scalars = scalars_of(&fluid, &mut [&mut || 0.5 + 0.5 * noise.next()]);
    let run = |fluid: &[f32], scalars: &[f32]| {
        swept(&device, &mesh.tables(0), (fluid, scalars), None, (Scheme::RelaxingTvd, [0, 1, 2], 0.1)).scalars
    };
    let expected = run(&fluid, &scalars);
    for axis in 0..3 {
        assert_eq!(run(&mirrored(&fluid, 6, axis), &mirrored(&scalars, 1, axis)), mirrored(&expected, 1, axis));
    }
}

fn devices_agree<T: Real>(gpu: &Device) {
    let cpu = Device::cpu(2).unwrap();
    let mut noise = Noise::new(5);
    let mut redone = 0;
    for case in 0..4 {
        let mesh = Mesh::random(&mut noise, 3);
        let [fluid, before]: [Vec<T>; 2] = [(); 2].map(|()| rough_gas(&mesh, &mut noise));
        let mut of = |fluid: &[T]| scalars_of(fluid, &mut [&mut || 0.5 + 0.5 * noise.next(), &mut || 0.02]);
        let (scalars, scalars_before) = (of(&fluid), of(&before));
        let same = |found: &[T], expected: &[T], what: &str| {
            assert_eq!(found.len(), expected.len());
            let different = |(a, b): &(&T, &T)| a.bits() != b.bits();
            let count = found.iter().zip(expected).filter(different).count();
            assert_eq!(
                count,
                0,
                "{what}, case {case}, first {:?}",
                found.iter().zip(expected).position(|(a, b)| a.bits() != b.bits())
            );
        };
        for level in 0..mesh.levels.len() {
            let tables = mesh.tables(level);
            let scheme = if case < 3 { Scheme::RelaxingTvd } else { Scheme::Hll };
            let axes = [[0, 1, 2], [2, 1, 0], [1, 2, 0]][(case + level) % 3];
            let earlier = (case % 2 == 1).then_some((&before[..], &scalars_before[..]));
            let [expected, found] =
                [&cpu, gpu].map(|device| swept(device, &tables, (&fluid, &scalars), earlier, (scheme, axes, 0.12)));
            redone += found.redone;
            same(&found.fluid, &expected.fluid, "gas");
            same(&found.scalars, &expected.scalars, "scalars");
            same(&found.scalar_fluxes, &expected.scalar_fluxes, "fluxes");
            let reflux = corner_of_a_group(&tables, expected.fluxes.len() / FLUX_PLANE_VALUES);
            let [expected, found] = [&cpu, gpu].map(|device| {
                let pool = |values: &[T]| Buffer::from_host(device, values.to_vec()).unwrap();
                let (gas, fluxes) = (pool(&fluid), pool(&expected.scalar_fluxes));
                let mut two = pool(&scalars);
                restrict_scalars(device, &tables, 2, &mut two);
                if level > 0 {
                    let new: Vec<usize> = (0..tables.len()).step_by(2).collect();
                    prolong_scalars(device, &tables, &new, &gas, 2, &mut two);
                }
                reflux_scalars(device, &reflux, 2, &mut two, &fluxes, T::from_f64(0.01), T::from_f64(0.5));
                two.to_host()
            });
            same(&found, &expected, "restriction, prolongation and flux correction");
            assert_ne!(tables.slots[0], NONE);
        }
    }
    assert!(redone > 0, "the test needs a redo");
}

#[test]
fn a_gpu_gives_the_same_bits() {
    with_gpu(|gpu| {
        devices_agree::<f32>(gpu);
        devices_agree::<f64>(gpu);
    });
}
