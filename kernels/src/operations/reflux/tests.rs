//! Flux correction of one face by hand, for each axis, side and octant.

use super::*;
use crate::layout::{ENTROPY, FACE_CELLS, FACES, FIELDS, GROUP, GROUP_CELLS, OCTANTS, PATCH, octant_origin};
use crate::level::level_topology::NONE;
use crate::testing::{Mesh, Noise, assert_same_fluid, motley_gas, with_gpu};

/// Hot gas in group 1 of two, values that a correction by multiples of 1/256 changes without rounding.
fn gas() -> Vec<f64> {
    let mut fluid = vec![0.0; 2 * GROUP_VALUES];
    for (f, value) in [4.0, 0.5, -0.25, 0.125, 64.0, 1.0].into_iter().enumerate() {
        for c in 0..GROUP_CELLS {
            fluid[GROUP_VALUES + f * GROUP_CELLS + c] = value + (c % 7) as f64 / 32.0;
        }
    }
    fluid
}

/// Flux through place (a, b) of a plane: small multiples of 1/16.
fn flux(plane: usize, field: usize, a: usize, b: usize) -> f64 {
    ((a * 5 + b * 3 + field * 7 + plane * 11) % 13) as f64 / 16.0
}

fn fluxes() -> Vec<f64> {
    let mut fluxes = vec![0.0; 3 * FLUX_PLANE_VALUES];
    for (n, value) in fluxes.iter_mut().enumerate() {
        let (plane, field) = (n / FLUX_PLANE_VALUES, n / FACE_CELLS % FIELDS);
        *value = flux(plane, field, n % GROUP, n / GROUP % GROUP);
    }
    fluxes
}

fn corrected(tables: &RefluxTables, fluid: Vec<f64>, fluxes: Vec<f64>) -> (Vec<f64>, GroupReport) {
    corrected_with(tables, fluid, fluxes, 1.0)
}

fn corrected_with(tables: &RefluxTables, fluid: Vec<f64>, fluxes: Vec<f64>, share: f64) -> (Vec<f64>, GroupReport) {
    let device = Device::cpu(1).unwrap();
    let mut fluid = Buffer::from_host(&device, fluid).unwrap();
    let fluxes = Buffer::from_host(&device, fluxes).unwrap();
    let reports = reflux(&device, tables, &mut fluid, &fluxes, 0.25, share, &Eos::new(5.0 / 3.0)).wait();
    let [(2, report)] = reports[..] else { panic!("the group is number 2 of its level: {reports:?}") };
    (fluid.to_host(), report)
}

/// Group number 2 of its level, in slot 1, with one face.
fn one_face(axis: u8, high: bool, octant: u8) -> RefluxTables {
    let face = CoarseFineFace { axis, high, octant, coarse_plane: 2, fine_plane: 1 };
    RefluxTables { faces: vec![face].into(), groups: vec![RefluxGroup { index: 2, slot: 1, end: 1 }].into() }
}

#[test]
fn one_face_receives_the_difference_of_the_fluxes() {
    for n in 0..6 * OCTANTS {
        let (axis, high, octant) = (n % 3, n / 3 % 2 == 1, n / 6);
        let (after, report) = corrected(&one_face(axis as u8, high, octant as u8), gas(), fluxes());
        assert_eq!(report, GroupReport::default(), "hot gas books nothing");
        let before = gas();
        assert_eq!(after[..GROUP_VALUES], before[..GROUP_VALUES], "another slot");
        let origin = octant_origin(octant);
        let layer = origin[axis] + if high { PATCH - 1 } else { 0 };
        let [u, v] = [[1, 2], [0, 2], [0, 1]][axis];
        for f in 0..FIELDS {
            let (mut gained, mut through) = (0.0, 0.0);
            for c in 0..GROUP_CELLS {
                let at = [c % GROUP, c / GROUP % GROUP, c / GROUP / GROUP];
                let in_patch = (0..3).all(|a| (origin[a]..origin[a] + PATCH).contains(&at[a]));
                let place = GROUP_VALUES + f * GROUP_CELLS + c;
                if !in_patch || at[axis] != layer {
                    assert_eq!(after[place], before[place], "axis {axis} octant {octant} field {f} cell {at:?}");
                } else if f != ENTROPY {
                    let fine = [2 * (at[u] - origin[u]), 2 * (at[v] - origin[v])];
                    let four: f64 = (0..4).map(|d| flux(1, f, fine[0] + (d & 1), fine[1] + (d >> 1))).sum();
                    let inward = if high { -1.0 } else { 1.0 };
                    let difference = inward * (four / 4.0 - flux(2, f, at[u], at[v]));
                    assert_eq!(after[place] - before[place], 0.25 * difference, "axis {axis} field {f} cell {at:?}");
                    gained += after[place] - before[place];
                    through += difference;
                }
            }
            // what the patch gains is what the finer region lost: Δt/h times the flux difference, no rounding
            assert_eq!(gained, 0.25 * through);
        }
    }
}

/// Two fine sweeps for one coarse one: their fluxes count half.
#[test]
fn half_of_doubled_fine_fluxes_is_the_same() {
    let mut doubled = fluxes();
    doubled[FLUX_PLANE_VALUES..2 * FLUX_PLANE_VALUES].iter_mut().for_each(|flux| *flux *= 2.0);
    let face = one_face(1, true, 5);
    assert_eq!(corrected_with(&face, gas(), doubled, 0.5), corrected(&face, gas(), fluxes()));
}

#[test]
fn two_faces_of_a_corner_cell_add_up() {
    let x = one_face(0, true, 3);
    let faces = vec![x.faces[0], CoarseFineFace { axis: 1, high: false, ..x.faces[0] }];
    let tables = RefluxTables { faces: faces.into(), groups: vec![RefluxGroup { end: 2, ..x.groups[0] }].into() };
    let (both, _) = corrected(&tables, gas(), fluxes());
    let (x, _) = corrected(&x, gas(), fluxes());
    let (y, _) = corrected(&one_face(1, false, 3), gas(), fluxes());
    let before = gas();
    for c in GROUP_VALUES..GROUP_VALUES + ENTROPY * GROUP_CELLS {
        assert_eq!(both[c] - before[c], (x[c] - before[c]) + (y[c] - before[c]));
    }
}

#[test]
fn a_drained_cell_is_raised_to_its_floor_and_booked() {
    let mut drained = fluxes();
    // density fluxes that agree, but for one place where the cell loses 5 of its 4 and a bit
    for plane in 1..3 {
        drained[plane * FLUX_PLANE_VALUES..][..FLUX_PLANE_VALUES].fill(0.0);
    }
    for n in [0, 1, GROUP, GROUP + 1] {
        drained[FLUX_PLANE_VALUES + n] = -20.0;
    }
    let (after, report) = corrected(&one_face(2, false, 0), gas(), drained);
    let floor = Eos::<f64>::new(5.0 / 3.0).density_floor;
    assert_eq!((report.floored, report.invalid), (1, 0));
    assert_eq!(after[GROUP_VALUES], floor);
    assert_eq!(report.floor_mass, floor + 1.0);
}

#[test]
fn a_cell_that_loses_its_entropy_keeps_its_adiabat() {
    let mut drained = vec![0.0; 3 * FLUX_PLANE_VALUES];
    // half of the density and more than all of the entropy leave the first cell
    for (f, loss) in [(0, 8.0), (ENTROPY, 5.0)] {
        for n in [0, 1, GROUP, GROUP + 1] {
            drained[FLUX_PLANE_VALUES + f * FACE_CELLS + n] = -loss;
        }
    }
    let mut fluid = gas();
    // cold: less energy than motion
    fluid[GROUP_VALUES + 4 * GROUP_CELLS] = 0.06;
    let (after, report) = corrected(&one_face(2, false, 0), fluid, drained);
    let [density, entropy] = [0, ENTROPY].map(|f| after[GROUP_VALUES + f * GROUP_CELLS]);
    assert_eq!((density, entropy), (2.0, 0.5), "4 and 1 before: P/ρ^γ = S/ρ stays");
    // the energy is the next sweep's business
    assert_eq!(after[GROUP_VALUES + 4 * GROUP_CELLS], 0.06);
    assert_eq!((report.floored, report.negative, report.energy_added), (0, 1, 0.0));
}

/// All faces between a level of a mesh and the next, nine planes for each slot.
fn tables_of(mesh: &Mesh, level: usize) -> RefluxTables {
    let tables = mesh.tables(level);
    let (mut faces, mut groups) = (Vec::new(), Vec::new());
    for g in 0..tables.len() {
        let before = faces.len();
        let leaves = (0..OCTANTS).filter(|&o| tables.children_of(g)[o] == NONE);
        for (octant, face) in leaves.flat_map(|o| (0..FACES).map(move |face| (o, face))) {
            let fine = tables.beyond_of(g, octant)[face];
            let (axis, high) = (face / 2, face % 2 == 1);
            if fine != NONE {
                let coarse_place = axis * 3 + (octant >> axis & 1) + usize::from(high);
                faces.push(CoarseFineFace {
                    axis: axis as u8,
                    high,
                    octant: octant as u8,
                    coarse_plane: tables.slots[g] * 9 + coarse_place as u32,
                    fine_plane: fine * 9 + 3 * axis as u32 + if high { 0 } else { 2 },
                });
            }
        }
        if faces.len() > before {
            groups.push(RefluxGroup { index: g as u32, slot: tables.slots[g], end: faces.len() as u32 });
        }
    }
    RefluxTables { faces: faces.into(), groups: groups.into() }
}

fn devices_agree<T: Real>(gpu: &Device) {
    let cpu = Device::cpu(2).unwrap();
    let mut noise = Noise::new(6);
    let mut floored = 0;
    for case in 0..5 {
        let mesh = Mesh::random(&mut noise, 3);
        let fluid: Vec<T> = motley_gas(&mesh, &mut noise, false);
        let planes = mesh.group_count() * 9;
        let fluxes: Vec<T> = (0..planes * FLUX_PLANE_VALUES).map(|_| T::from_f64(noise.next())).collect();
        for level in 0..mesh.levels.len() - 1 {
            let tables = tables_of(&mesh, level);
            let share = T::from_f64([1.0, 0.5][case % 2]);
            let [expected, found] = [&cpu, gpu].map(|device| {
                let mut pool = Buffer::from_host(device, fluid.clone()).unwrap();
                let fluxes = Buffer::from_host(device, fluxes.clone()).unwrap();
                let eos = Eos::new(5.0 / 3.0);
                let reports = reflux(device, &tables, &mut pool, &fluxes, T::from_f64(0.3), share, &eos).wait();
                (pool.to_host(), reports)
            });
            let what = format!("case {case}, level {level}");
            assert_same_fluid(&found.0, &expected.0, &what);
            assert_eq!(found.1.len(), expected.1.len(), "{what}");
            for ((g, found), (h, expected)) in found.1.iter().zip(&expected.1) {
                assert_eq!(g, h, "{what}: groups in order");
                let close = |found: f64, expected: f64| (found - expected).abs() <= 1e-12 * expected.abs().max(1e-300);
                // sums of terms of one sign each, but in another order
                let sums = [(found.floor_energy, expected.floor_energy), (found.floor_mass, expected.floor_mass)];
                // gains and losses of cold cells cancel to some thousandths of their sizes
                let added = (found.energy_added - expected.energy_added).abs();
                let same = sums.iter().all(|&(found, expected)| close(found, expected))
                    && added <= 1e-9 * expected.energy_added.abs().max(1e-3)
                    && GroupReport { energy_added: 0.0, floor_energy: 0.0, floor_mass: 0.0, ..*found }
                        == GroupReport { energy_added: 0.0, floor_energy: 0.0, floor_mass: 0.0, ..*expected };
                assert!(same, "{what}, group {g}: GPU {found:?}, CPU {expected:?}");
                floored += expected.floored;
            }
        }
    }
    assert!(floored > 0, "the test needs floors");
}

#[test]
fn a_gpu_corrects_to_the_same_bits() {
    with_gpu(|gpu| {
        devices_agree::<f32>(gpu);
        devices_agree::<f64>(gpu);
    });
}
