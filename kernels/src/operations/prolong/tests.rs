//! Prolongation of linear, smooth and rough data, inside the box and at its edges.

use super::*;
use crate::layout::{ENERGY, ENTROPY, FIELDS, GROUP, GROUP_CELLS, cell};
use crate::level::face_boundary::FaceBoundary;
use crate::testing::{Mesh, Noise, assert_same_fluid, motley_gas, with_gpu};

/// Fills the level's groups `new` anew; all others keep what they hold.
fn prolonged<T: Real>(mesh: &Mesh, new: &[usize], fluid: Vec<T>) -> Vec<T> {
    let device = Device::cpu(2).unwrap();
    let mut pool = Buffer::from_host(&device, fluid).unwrap();
    prolong(&device, &mesh.tables(1), new, &mut pool, &Eos::new(5.0 / 3.0));
    pool.to_host()
}

#[test]
fn linear_data_is_exact_across_group_borders_and_old_groups_stay() {
    // all octants of the middle group, so that every side reads a neighbour of the parent
    let fine: Vec<[i32; 3]> = (0..8).map(|o| [2 + (o & 1), 2 + (o >> 1 & 1), 2 + (o >> 2)]).collect();
    let mesh = Mesh::new([3, 3, 3], false).with_level(fine);
    // hot gas; every number is a small multiple of 1/8: no rounding
    let linear = |x: [f64; 3]| {
        let slope = |f: f64| (1.0 + f) * x[0] - 2.0 * x[1] + 0.5 * x[2];
        [256.0 + slope(0.0), slope(1.0), slope(2.0), slope(3.0), 65536.0 + slope(4.0), 1.0]
    };
    let expected = mesh.fill::<f64>(linear);
    let first = mesh.levels[0].len() * GROUP_VALUES;
    let mut emptied = expected.clone();
    emptied[first..].fill(-1.0);
    let new: Vec<usize> = (0..7).collect();
    let after = prolonged(&mesh, &new, emptied);
    assert_eq!(after[..first], expected[..first], "the coarse level is only read");
    assert!(after[first + 7 * GROUP_VALUES..].iter().all(|&v| v == -1.0), "the eighth group is not new");
    for (g, f) in (0..7).flat_map(|g| (0..ENERGY).map(move |f| (g, f))) {
        let range = first + g * GROUP_VALUES + f * GROUP_CELLS..first + g * GROUP_VALUES + (f + 1) * GROUP_CELLS;
        assert_eq!(after[range.clone()], expected[range], "group {g} field {f}");
    }
}

/// The coarse cell of the fine cell `c` of the group at `coordinate`: slot (in a root of `side`³ groups) and offset.
fn coarse_cell(side: usize, coordinate: [i32; 3], c: usize) -> (usize, usize) {
    let local = [c % GROUP, c / GROUP % GROUP, c / GROUP / GROUP];
    let at: [usize; 3] = std::array::from_fn(|a| coordinate[a] as usize * 8 + local[a] / 2);
    let slot = (at[2] / GROUP * side + at[1] / GROUP) * side + at[0] / GROUP;
    (slot, cell(at[0] % GROUP, at[1] % GROUP, at[2] % GROUP))
}

#[test]
fn the_mean_of_eight_new_cells_is_the_coarse_cell_at_all_borders() {
    for periodic in [true, false] {
        let fine = vec![[0, 0, 0], [3, 3, 3], [1, 2, 0], [3, 0, 2]];
        let mesh = Mesh::new([2, 2, 2], periodic).with_level(fine.clone());
        let wave = |x: [f64; 3], f: usize| (0.9 * x[0] + f as f64).sin() + (0.4 * x[1] * x[2]).cos();
        let fluid = mesh.fill::<f64>(|x| std::array::from_fn(|f| [9.0, 0.0, 0.0, 0.0, 99.0, 9.0][f] + wave(x, f)));
        let after = prolonged(&mesh, &[0, 1, 2, 3], fluid);
        for (g, &group) in fine.iter().enumerate() {
            for f in 0..ENTROPY {
                let mut means = std::collections::HashMap::new();
                for c in 0..GROUP_CELLS {
                    let value = after[(8 + g) * GROUP_VALUES + f * GROUP_CELLS + c];
                    *means.entry(coarse_cell(2, group, c)).or_insert(0.0) += value / 8.0;
                }
                for ((slot, c), mean) in means {
                    let coarse = after[slot * GROUP_VALUES + f * GROUP_CELLS + c];
                    // roundings of eight values
                    let round_off = 8.0 * f64::EPSILON * coarse.abs().max(1.0);
                    assert!((mean - coarse).abs() < round_off, "{periodic} {group:?} field {f}: {mean} {coarse}");
                }
            }
        }
    }
}

#[test]
fn outflow_edges_have_no_slope_across_them() {
    let mesh = Mesh::new([1, 1, 1], false).with_level(vec![[0, 1, 0]]);
    let fluid = mesh.fill::<f64>(|x| [64.0 + x[0] + x[1] + x[2], 0.0, 0.0, 0.0, 4096.0, 1.0]);
    let after = prolonged(&mesh, &[0], fluid);
    let density = |i, j, k| after[GROUP_VALUES + cell(i, j, k)];
    // −x, +y and −z edges: the outermost two fine cells are equal; one further in they are half a coarse cell apart
    assert_eq!(density(1, 5, 5), density(0, 5, 5));
    assert_eq!(density(5, 15, 5), density(5, 14, 5));
    assert_eq!(density(5, 5, 1), density(5, 5, 0));
    assert_eq!(density(3, 5, 5) - density(2, 5, 5), 0.5);
    // the other ends lie inside the box
    assert_eq!(density(15, 5, 5) - density(14, 5, 5), 0.5);
}

#[test]
fn positive_stays_positive() {
    let fine: Vec<[i32; 3]> = (0..64).map(|n| [n % 4, n / 4 % 4, n / 16]).collect();
    let mesh = Mesh::new([2, 2, 2], true).with_level(fine);
    let mut noise = Noise::new(3);
    // ten decades of contrast from cell to cell
    let fluid = mesh.fill::<f32>(|_| {
        let density = 10f64.powf(5.0 * noise.next());
        [density, 0.0, 0.0, 0.0, density, density]
    });
    let after = prolonged(&mesh, &(0..64).collect::<Vec<_>>(), fluid);
    for group in after[8 * GROUP_VALUES..].chunks_exact(GROUP_VALUES) {
        for f in [0, 4, ENTROPY] {
            // three limited slopes leave a sixteenth of the coarse value, which is 10⁻⁵ or more
            assert!(group[f * GROUP_CELLS..][..GROUP_CELLS].iter().all(|&v| v > 0.0), "field {f}");
        }
        let least = group[..GROUP_CELLS].iter().fold(f32::INFINITY, |a, &b| a.min(b));
        assert!(least > 0.06e-5, "{least}");
    }
    assert_eq!(after.len() % FIELDS, 0);
}

fn devices_agree<T: Real>(gpu: &Device) {
    let cpu = Device::cpu(2).unwrap();
    let mut noise = Noise::new(4);
    for case in 0..5 {
        let mut mesh = Mesh::random(&mut noise, 3);
        if case >= 2 {
            // walls on all sides, each kind on each axis in turn
            let kinds = [FaceBoundary::Reflecting, FaceBoundary::Outflow, FaceBoundary::Fixed([1.5; FIELDS])];
            mesh = mesh.with_faces([false; 3], std::array::from_fn(|face| kinds[(case + face) % 3]));
        }
        let fluid: Vec<T> = motley_gas(&mesh, &mut noise, false);
        for level in 1..mesh.levels.len() {
            // in an order of their own
            let new: Vec<usize> = (0..mesh.levels[level].len()).rev().filter(|g| g % 3 != case % 3).collect();
            let after = [&cpu, gpu].map(|device| {
                let mut pool = Buffer::from_host(device, fluid.clone()).unwrap();
                prolong(device, &mesh.tables(level), &new, &mut pool, &Eos::new(5.0 / 3.0));
                pool.to_host()
            });
            let walls = (mesh.periodic, mesh.faces);
            assert_same_fluid(&after[1], &after[0], &format!("case {case}, level {level}, {walls:?}"));
        }
    }
}

#[test]
fn a_gpu_prolongs_to_the_same_bits() {
    with_gpu(|gpu| {
        devices_agree::<f32>(gpu);
        devices_agree::<f64>(gpu);
    });
}
