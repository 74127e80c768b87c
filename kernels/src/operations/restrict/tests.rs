//! Restriction against means computed cell by cell, mirrored input and other instruction sets.

use super::*;
use crate::device::isa::Isa;
use crate::layout::{ENERGY, ENTROPY, FIELDS, GROUP, GROUP_CELLS, MOMENTUM, cell};
use crate::level::level_topology::NONE;
use crate::testing::{Mesh, Noise, assert_same_fluid, motley_gas, with_gpu};

/// Two root groups with three refined patches.
fn mesh() -> Mesh {
    Mesh::new([2, 1, 1], true).with_level(vec![[1, 0, 1], [2, 1, 0], [3, 1, 1]])
}

/// Hot gas (the energy decides) whose values are small multiples of 1/64: every mean is exact.
fn exact_gas(mesh: &Mesh) -> Vec<f64> {
    let mut noise = Noise::new(5);
    let mut multiple = move || (8.0 * noise.next()).round() / 64.0;
    mesh.fill(|_| [2.0 + multiple(), multiple(), multiple(), multiple(), 16.0 + multiple(), 1.0])
}

#[test]
fn refined_patches_hold_exact_means_and_nothing_else_changes() {
    let mesh = mesh();
    let before = exact_gas(&mesh);
    let tables = mesh.tables(0);
    let device = Device::cpu(2).unwrap();
    let mut pool = Buffer::from_host(&device, before.clone()).unwrap();
    restrict(&device, &tables, &mut pool, &Eos::new(5.0 / 3.0));
    let after = pool.host();
    assert_eq!(after[2 * GROUP_VALUES..], before[2 * GROUP_VALUES..], "children are only read");
    for (g, f) in (0..2).flat_map(|g| (0..FIELDS).map(move |f| (g, f))) {
        let field = |pool: &[f64], slot: usize, c: usize| pool[slot * GROUP_VALUES + f * GROUP_CELLS + c];
        for c in 0..GROUP_CELLS {
            let [i, j, k] = [c % GROUP, c / GROUP % GROUP, c / GROUP / GROUP];
            let child = tables.children_of(g)[i / 8 + 2 * (j / 8) + 4 * (k / 8)];
            if child == NONE {
                assert_eq!(field(after, g, c), field(&before, g, c), "group {g} field {f} cell {c}");
            } else if f != ENTROPY {
                let fine = |o: usize| cell(2 * (i % 8) + (o & 1), 2 * (j % 8) + (o >> 1 & 1), 2 * (k % 8) + (o >> 2));
                let sum: f64 = (0..8).map(|o| field(&before, child as usize, fine(o))).sum();
                // eight fine cells have the volume of the coarse one, so this is conservation too
                assert_eq!(8.0 * field(after, g, c), sum, "group {g} field {f} cell {c}");
            }
        }
    }
}

/// Where nothing moves within a coarse cell.
#[test]
fn energy_and_entropy_scalar_are_both_means_whichever_decides() {
    let mesh = mesh();
    let eos = Eos::<f64>::new(5.0 / 3.0);
    let device = Device::cpu(1).unwrap();
    for speed in [0.5, 200.0] {
        let u = crate::testing::conserved(2.0, [speed, 0.0, 0.0], 1.0, 5.0 / 3.0);
        let mut pool = Buffer::from_host(&device, mesh.fill(|_| [u[0], u[1], u[2], u[3], 1.01 * u[4], u[5]])).unwrap();
        restrict(&device, &mesh.tables(0), &mut pool, &eos);
        let refined = cell(15, 0, 15); // octant 5 of the first group
        let value = |field: usize| pool.host()[field * GROUP_CELLS + refined];
        assert_eq!((value(ENERGY), value(ENTROPY)), (1.01 * u[4], u[5]));
    }
}

/// The pool of one root group with eight children, mirrored along an axis.
fn mirrored(pool: &[f32], axis: usize) -> Vec<f32> {
    let mut mirror = pool.to_vec();
    for slot in 0..9 {
        let from = if slot == 0 { 0 } else { ((slot - 1) ^ 1 << axis) + 1 };
        for (f, c) in (0..FIELDS).flat_map(|f| (0..GROUP_CELLS).map(move |c| (f, c))) {
            let mut at = [c % GROUP, c / GROUP % GROUP, c / GROUP / GROUP];
            at[axis] = GROUP - 1 - at[axis];
            let value = pool[from * GROUP_VALUES + f * GROUP_CELLS + cell(at[0], at[1], at[2])];
            mirror[slot * GROUP_VALUES + f * GROUP_CELLS + c] = if f == MOMENTUM + axis { -value } else { value };
        }
    }
    mirror
}

#[test]
fn mirrored_input_gives_mirrored_bits_on_every_instruction_set() {
    let octants = (0..8).map(|o| [o & 1, o >> 1 & 1, o >> 2]).collect();
    let mesh = Mesh::new([1, 1, 1], true).with_level(octants);
    let mut noise = Noise::new(11);
    let pool: Vec<f32> = mesh.fill(|_| std::array::from_fn(|f| noise.next() + [2.0, 0.0, 0.0, 0.0, 4.0, 1.0][f]));
    let tables = mesh.tables(0);
    let restricted = |isa: Isa, mut pool: Vec<f32>| {
        cpu::restrict(isa, &tables, &mut pool, &Eos::new(5.0 / 3.0));
        pool
    };
    let expected = restricted(Isa::best(), pool.clone());
    for isa in Isa::available() {
        assert_eq!(restricted(isa, pool.clone()), expected, "{}", isa.name());
        for axis in 0..3 {
            assert_eq!(restricted(isa, mirrored(&pool, axis)), mirrored(&expected, axis), "axis {axis}");
        }
    }
}

fn devices_agree<T: Real>(gpu: &Device) {
    let cpu = Device::cpu(2).unwrap();
    let mut noise = Noise::new(2);
    for (case, gamma) in [5.0 / 3.0, 1.4, 5.0 / 3.0].into_iter().enumerate() {
        let mesh = Mesh::random(&mut noise, 3);
        let fluid: Vec<T> = motley_gas(&mesh, &mut noise, true);
        for level in 0..mesh.levels.len() {
            let after = [&cpu, gpu].map(|device| {
                let mut pool = Buffer::from_host(device, fluid.clone()).unwrap();
                restrict(device, &mesh.tables(level), &mut pool, &Eos::new(gamma));
                pool.to_host()
            });
            assert_same_fluid(&after[1], &after[0], &format!("case {case}, level {level}"));
        }
    }
}

#[test]
fn a_gpu_restricts_to_the_same_bits() {
    with_gpu(|gpu| {
        devices_agree::<f32>(gpu);
        devices_agree::<f64>(gpu);
    });
}
