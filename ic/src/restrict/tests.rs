//! Restriction against the mesh it came from.

use super::*;
use crate::silent;
use comove_sim::Criterion;
use comove_sim::criterion::Quantity;
use comove_sim::kernels::layout::{DENSITY, ENERGY, ENTROPY, MOMENTUM};
use comove_sim::{Boundaries, Boundary};
use std::collections::BTreeSet;

/// A mesh of cold flow: density blobs over a smooth background, velocities at Mach 50 with small-scale disorder.
fn mesh(cells: [usize; 3]) -> UniformMesh {
    let n: usize = cells.iter().product();
    let mut mesh = UniformMesh {
        cells,
        planes: 0..cells[2],
        density: vec![0.0; n],
        momentum: [vec![0.0; n], vec![0.0; n], vec![0.0; n]],
        internal_energy: vec![0.0; n],
        nests: Vec::new(),
        dark_matter: None,
    };
    let mut seed = 1u64;
    let mut disorder = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 11) as f64 / (1u64 << 53) as f64 - 0.5
    };
    for index in 0..n {
        let x: [f64; 3] = std::array::from_fn(|a| (mesh.cell(index)[a] as f64 + 0.5) / cells[a] as f64);
        let blob = |centre: [f64; 3], width: f64, height: f64| {
            let r2: f64 = (0..3).map(|a| (x[a] - centre[a]).powi(2)).sum();
            height * (-r2 / (width * width)).exp()
        };
        let density = 0.5 + 0.1 * disorder() + blob([0.2, 0.3, 0.6], 0.05, 30.0) + blob([0.8, 0.8, 0.1], 0.1, 3.0);
        mesh.density[index] = density;
        for axis in 0..3 {
            mesh.momentum[axis][index] = density * (3.0 * (6.3 * x[(axis + 1) % 3]).sin() + 2.0 * disorder());
        }
        mesh.internal_energy[index] = density * 2e-3 * (1.0 + disorder());
    }
    mesh
}

fn parameters(max_level: u8, thresholds: &[f64]) -> RunParameters {
    let refine = vec![Criterion::DensityAbove { thresholds: thresholds.to_vec() }];
    RunParameters { max_level, refine, ..RunParameters::default() }
}

fn closed(parameters: RunParameters) -> RunParameters {
    RunParameters { boundary: Boundaries::all(Boundary::Outflow), ..parameters }
}

/// In a plain box of length 1, without progress.
fn place(mesh: UniformMesh, level: u8, parameters: &RunParameters) -> Result<(HostState, Audit), IcError> {
    restrict(&Communicator::alone(), mesh, level, 1.0, &Clock::new(1.0, 0.0, None), parameters, &silent)
}

/// Every cell of every kept group holds the block mean of the mesh, computed here directly over all its cells.
fn assert_block_means(state: &HostState, mesh: &UniformMesh, level: u8) {
    for (group, key) in state.tree.keys().enumerate() {
        let width = 1usize << (level - key.level);
        // two cells of each group are enough to see a wrong place, level or mean
        for local in [[0, 0, 0], [13, 2, 7]] {
            let first: [usize; 3] = std::array::from_fn(|a| (key.coordinate[a] as usize * GROUP + local[a]) * width);
            let mean = |values: &[f64]| {
                let mut sum = 0.0;
                for k in 0..width {
                    for j in 0..width {
                        for i in 0..width {
                            sum += values[mesh.index([first[0] + i, first[1] + j, first[2] + k])];
                        }
                    }
                }
                sum / width.pow(3) as f64
            };
            let at = |field: usize| state.field(group, field)[[local[2], local[1], local[0]]];
            let density = mean(&mesh.density);
            let momentum: [f64; 3] = std::array::from_fn(|axis| mean(&mesh.momentum[axis]));
            let internal = mean(&mesh.internal_energy);
            let kinetic = 0.5 * momentum.iter().map(|p| p * p).sum::<f64>() / density;
            let close = |found: f64, expected: f64| (found - expected).abs() <= 1e-14 * expected.abs().max(1e-2);
            assert!(close(at(DENSITY), density), "{key:?}");
            assert!((0..3).all(|axis| close(at(MOMENTUM + axis), momentum[axis])), "{key:?}");
            assert!(close(at(ENERGY), internal + kinetic), "{key:?}");
            let entropy = 2.0 / 3.0 * internal / density.powf(2.0 / 3.0);
            assert!((at(ENTROPY) / entropy - 1.0).abs() < 1e-13, "{key:?}");
        }
    }
}

#[test]
fn a_mesh_comes_back_from_every_level() {
    let mesh = mesh([128, 64, 64]);
    for level in 0..3u8 {
        let keep_all = parameters(level, &[0.0, 0.0]);
        let (state, audit) = place(mesh.clone(), level, &keep_all).unwrap();
        assert_eq!(state.tree.level_count(), usize::from(level) + 1);
        assert_eq!(state.tree.cells(usize::from(level)), mesh.cells);
        assert!(audit.levels.iter().all(|l| l.cells_removed == 0));
        // on the mesh's own level every number is the mesh's
        let first = state.tree.first_of_level(usize::from(level));
        for (n, key) in state.tree.level(usize::from(level)).iter().enumerate() {
            for local in [[0, 0, 0], [15, 3, 9]] {
                let index = mesh.index(std::array::from_fn(|a| key.coordinate[a] as usize * GROUP + local[a]));
                let at = |field: usize| state.field(first + n, field)[[local[2], local[1], local[0]]];
                assert_eq!(at(DENSITY), mesh.density[index]);
                assert_eq!(at(MOMENTUM + 2), mesh.momentum[2][index]);
            }
        }
        assert_block_means(&state, &mesh, level);
        assert!(audit.worst_change() < 1e-13, "{audit:?}");
        assert!(audit.unresolved_kinetic_energy.abs() < 1e-13 * audit.before.kinetic_energy);
    }
}

/// At level 2, where levels 1 and 2 each keep some patches and remove some. Internal energies at Mach 50 come from the
/// entropy scalar, whose power function is good to a few units in the last place: 1e-13 in all.
#[test]
fn the_audit_balances_where_patches_are_removed() {
    let mesh = mesh([128; 3]);
    let some = parameters(2, &[1.5, 6.0]);
    let (state, audit) = place(mesh.clone(), 2, &some).unwrap();
    println!("{audit:#?}");
    for level in 1..3 {
        let account = audit.levels[level];
        assert!(account.cells_kept > 0 && account.cells_removed > 0, "{account:?}");
        assert_eq!(account.cells_kept + account.cells_removed, 32u64.pow(3) << (3 * level));
    }
    assert!(audit.levels.iter().all(|l| l.leaf_cells > 0));
    assert_block_means(&state, &mesh, 2);
    assert!(audit.worst_change() < 1e-13, "{}", audit.worst_change());
    assert!(audit.unresolved_kinetic_energy > 0.01 * audit.before.kinetic_energy);
    // what a criterion asks for is there
    for (index, density) in coarsen(&mesh).density.iter().enumerate() {
        if *density > 6.0 {
            let cell = coarsen_cell(index, 64);
            assert!(state.tree.find(Key::new(2, cell.map(|c| (c / 8) as u32))).is_some());
        }
    }
    // and patches that touch differ by one level at most
    for key in state.tree.level(2) {
        for offset in [[-1, 0, 0], [1, 1, 0], [1, -1, 1], [0, 0, 1]] {
            let neighbour = state.tree.neighbour(*key, offset).unwrap();
            assert!(state.tree.find(neighbour.parent().unwrap()).is_some());
        }
    }
}

/// The planes of a mesh that a rank is to have.
fn slab(mesh: &UniformMesh, planes: Range<usize>) -> UniformMesh {
    let plane = mesh.cells[0] * mesh.cells[1];
    let part = |values: &Vec<f64>| values[planes.start * plane..planes.end * plane].to_vec();
    UniformMesh {
        cells: mesh.cells,
        planes: planes.clone(),
        density: part(&mesh.density),
        momentum: [0, 1, 2].map(|axis| part(&mesh.momentum[axis])),
        internal_energy: part(&mesh.internal_energy),
        nests: Vec::new(),
        dark_matter: None,
    }
}

/// Slabs against the whole mesh: the same groups with the same gas, each on one rank, and the same audit on all. Criteria
/// that read neighbours and buffers that reach into other slabs, uneven extents, more ranks than layers, also one layer.
#[test]
fn ranks_leave_the_bits_alone() {
    let refine = vec![
        Criterion::DensityAbove { thresholds: vec![1.5, 6.0] },
        Criterion::GradientAbove { of: Quantity::Density, thresholds: vec![0.6, 0.7] },
    ];
    let criteria = RunParameters { max_level: 2, refine, ..RunParameters::default() };
    for (cells, level) in [([128, 64, 192], 2), ([64, 64, 64], 2), ([32, 16, 48], 0), ([96, 32, 64], 1)] {
        let mesh = mesh(cells);
        for parameters in [criteria.clone(), closed(criteria.clone())] {
            let (whole, audit) = place(mesh.clone(), level, &parameters).unwrap();
            let some = |l: &LevelAudit| l.cells_kept > 0 && l.cells_removed > 0;
            assert!(level < 2 || some(&audit.levels[2]), "{audit:?}");
            for ranks in [2, 3, 5] {
                let shares = comove_sim::parallel::on_ranks(ranks, |communicator| {
                    let own = planes(cells, level, communicator.rank(), ranks).unwrap();
                    let clock = Clock::new(1.0, 0.0, None);
                    restrict(&communicator, slab(&mesh, own), level, 1.0, &clock, &parameters, &silent).unwrap()
                });
                let mut groups = 0;
                for (state, of_rank) in &shares {
                    assert_eq!(*of_rank, audit, "{cells:?} on {ranks}");
                    for (n, key) in state.tree.keys().enumerate() {
                        let place = whole.tree.index(key).expect("a group of the whole");
                        let values =
                            |state: &HostState, n: usize| state.fluid[n * GROUP_VALUES..][..GROUP_VALUES].to_vec();
                        assert!(values(state, n) == values(&whole, place), "{key:?}, {cells:?} on {ranks}");
                    }
                    groups += state.tree.group_count();
                }
                assert_eq!(groups, whole.tree.group_count());
            }
        }
    }
}

/// A bad cell is named by all ranks as by one.
#[test]
fn all_ranks_refuse_a_bad_mesh() {
    let mut mesh = mesh([16, 16, 32]);
    mesh.density[5000] = f64::NAN;
    let alone = place(mesh.clone(), 0, &parameters(0, &[])).unwrap_err().to_string();
    let errors = comove_sim::parallel::on_ranks(3, |communicator| {
        let own = planes(mesh.cells, 0, communicator.rank(), 3).unwrap();
        let (clock, parameters) = (Clock::new(1.0, 0.0, None), parameters(0, &[]));
        let result = restrict(&communicator, slab(&mesh, own), 0, 1.0, &clock, &parameters, &silent);
        result.unwrap_err().to_string()
    });
    assert!(errors.iter().all(|error| *error == alone), "{errors:?}");
}

/// Fine patches whose own criterion keeps them stand on coarser ones that no criterion asks for.
#[test]
fn fine_data_is_never_lost_for_want_of_a_coarse_flag() {
    let mesh = mesh([128; 3]);
    let (state, audit) = place(mesh.clone(), 2, &closed(parameters(2, &[1e9, 10.0]))).unwrap();
    assert!(state.tree.level_count() == 3 && audit.levels[1].cells_removed > 0);
    let peak = (0..mesh.cell_count()).max_by(|a, b| mesh.density[*a].total_cmp(&mesh.density[*b])).unwrap();
    assert!(state.tree.find(Key::new(2, mesh.cell(peak).map(|c| (c / GROUP) as u32))).is_some());
    // a run that may not refine so far keeps the averages alone
    let (coarse, audit) = place(mesh, 2, &closed(parameters(1, &[1.5, 10.0]))).unwrap();
    assert_eq!(coarse.tree.level_count(), 2);
    assert_eq!(audit.levels[2].cells_kept, 0);
    assert!(audit.worst_change() < 1e-13);
}

fn coarsen_cell(index: usize, n: usize) -> [usize; 3] {
    [index % n, index / n % n, index / (n * n)]
}

/// Streams that cross inside a cell: their kinetic energy is dropped; averaging the total energy instead would have
/// heated the gas by it, here a thousandfold.
#[test]
fn unresolved_motion_does_not_become_heat() {
    let mut mesh = mesh([32; 3]);
    for index in 0..mesh.cell_count() {
        let [i, j, k] = mesh.cell(index);
        mesh.density[index] = 1.0;
        mesh.internal_energy[index] = 1e-3;
        let sign = if (i + j + k) % 2 == 0 { 1.0 } else { -1.0 };
        mesh.momentum.iter_mut().for_each(|axis| axis[index] = sign);
    }
    let (state, audit) = place(mesh, 1, &parameters(0, &[])).unwrap();
    assert!(state.field(0, ENERGY).iter().all(|e| *e == 1e-3));
    assert_eq!(audit.unresolved_kinetic_energy, 1.5);
    assert_eq!(audit.after.kinetic_energy, 0.0);
    assert!(audit.worst_change() < 1e-14);
}

/// Without a buffer: a group is kept where its patch has a cell that a gradient flags, across the box's faces too, or
/// that lies in a region; nothing else is.
#[test]
fn criteria_that_read_neighbours_or_places_keep_their_patches() {
    let mesh = mesh([64; 3]);
    let coarse = coarsen(&mesh);
    let center = [0.31, 1.9, 1.02];
    let refine = vec![
        Criterion::GradientAbove { of: Quantity::Density, thresholds: vec![0.9] },
        Criterion::InsideBall { center, radius: 0.05, level: 1 },
    ];
    let parameters = RunParameters { max_level: 1, flag_buffer: 0, refine, ..RunParameters::default() };
    let clock = Clock::new(1.0, 0.0, None);
    let (state, _) = restrict(&Communicator::alone(), mesh, 1, 2.0, &clock, &parameters, &silent).unwrap();
    let mut expected = BTreeSet::new();
    for index in 0..coarse.cell_count() {
        let at = coarse.cell(index);
        let density = |axis: usize, step: usize| {
            let mut beside = at;
            beside[axis] = (at[axis] + 32 + step - 1) % 32;
            coarse.density[coarse.index(beside)]
        };
        let steep = (0..3).any(|a| (density(a, 2) - density(a, 0)).abs() / 2.0 >= 0.9 * coarse.density[index]);
        let nearest = |a: usize| center[a] - center[a].clamp(at[a] as f64 / 16.0, (at[a] + 1) as f64 / 16.0);
        let inside = (0..3).map(|a| nearest(a) * nearest(a)).sum::<f64>() <= 0.05 * 0.05;
        if steep || inside {
            expected.insert(Key::new(1, at.map(|x| (x / 8) as u32)));
        }
    }
    assert!(expected.len() > 2 && expected.len() < 32, "the test needs both: {}", expected.len());
    assert_eq!(state.tree.level(1).iter().copied().collect::<BTreeSet<_>>(), expected);
}

#[test]
fn extents_and_levels_that_do_not_fit_are_refused() {
    let message = |cells, level| {
        let result = place(mesh(cells), level, &parameters(0, &[]));
        result.unwrap_err().to_string()
    };
    assert!(message([16, 16, 24], 0).contains("[16, 16, 24]"));
    assert!(message([32, 32, 48], 1).contains("16·2^1 = 32"));
    assert!(message([32, 32, 32], 40).contains("level = 40"));
    let mut broken = mesh([16; 3]);
    broken.density[100] = -1.0;
    let result = place(broken, 0, &parameters(0, &[]));
    assert!(matches!(result, Err(IcError::Cell { cell: [4, 6, 0], .. })));
}
