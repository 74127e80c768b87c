//! Coarse grids of a GPU against those of the host.

use super::*;
use crate::testing::{Mesh, Noise, assert_same_bits, meshes, on_both, with_gpu};

/// Every operation on every grid of every level.
fn grids_agree<T: Real>(gpu: &Device, mesh: &Mesh, noise: &mut Noise, name: &str) {
    let cpu = Device::cpu(2).unwrap();
    let devices = [&cpu, gpu];
    let slots = mesh.group_count();
    let mut random = |values: usize| -> Vec<T> { (0..values).map(|_| T::from_f64(noise.next())).collect() };
    let potential = on_both(gpu, &random(slots * GROUP_CELLS));
    let ghosts = on_both(gpu, &random(slots * GHOST_CELLS));
    // by grid and device
    let mut grids = GRID_WIDTHS.map(|width| {
        let [[a, b], [c, d], [e, f]] = std::array::from_fn(|_| on_both(gpu, &random(slots * width.pow(3))));
        [[a, c, e], [b, d, f]]
    });
    fn grid<T>(grids: &mut [[[Buffer<T>; 3]; 2]; 4], n: usize, device: usize) -> CoarseGrid<'_, T> {
        CoarseGrid { width: GRID_WIDTHS[n], arrays: &mut grids[n][device] }
    }
    fn pair<T>(grids: &mut [[[Buffer<T>; 3]; 2]; 4], n: usize, device: usize) -> [CoarseGrid<'_, T>; 2] {
        let [fine, coarse] = grids.get_disjoint_mut([n, n + 1]).expect("two grids");
        [(n, fine), (n + 1, coarse)].map(|(n, grid)| CoarseGrid { width: GRID_WIDTHS[n], arrays: &mut grid[device] })
    }
    for level in 0..mesh.levels.len() {
        let tables = mesh.tables(level);
        for (n, device) in devices.into_iter().enumerate() {
            face_residual(device, &tables, &ghosts[n], &potential[n], 0.6, grid(&mut grids, 0, n));
            (0..4).for_each(|which| smooth(device, &tables, 1.7, grid(&mut grids, which, n)));
            for which in 0..3 {
                let [fine, coarse] = pair(&mut grids, which, n);
                restrict_residual(device, &tables, 0.6, fine, coarse);
                let [fine, coarse] = pair(&mut grids, which, n);
                prolong_error(device, &tables, coarse, fine);
            }
        }
        for (which, [on_cpu, on_gpu]) in grids.iter().enumerate() {
            for (array, (cpu, gpu)) in on_cpu.iter().zip(on_gpu).enumerate() {
                let what = format!("{name} level {level}, grid {which}, array {array}");
                assert_same_bits(&what, &cpu.to_host(), &gpu.to_host(), GRID_WIDTHS[which].pow(3));
            }
        }
    }
}

#[test]
fn a_gpu_has_the_same_coarse_grids() {
    with_gpu(|gpu| {
        let mut noise = Noise::new(25);
        for (n, mesh) in meshes(&mut noise).iter().enumerate() {
            grids_agree::<f32>(gpu, mesh, &mut noise, &format!("single, mesh {n}"));
            grids_agree::<f64>(gpu, mesh, &mut noise, &format!("double, mesh {n}"));
        }
    });
}

/// Whole cycles, of levels whose small grids one block solves and of one that takes several.
fn cycles_agree<T: Real>(gpu: &Device, mesh: &Mesh, noise: &mut Noise, name: &str) {
    let devices = [&Device::cpu(2).unwrap(), gpu];
    let slots = mesh.group_count();
    let mut random = |values: usize| -> Vec<T> { (0..values).map(|_| T::from_f64(noise.next())).collect() };
    let potential = on_both(gpu, &random(slots * GROUP_CELLS));
    let ghosts = on_both(gpu, &random(slots * GHOST_CELLS));
    for level in 0..mesh.levels.len() {
        let tables = mesh.tables(level);
        let errors = [0, 1].map(|n| {
            let mut grids = GRID_WIDTHS
                .map(|width| [(); 3].map(|()| Buffer::<T>::zeros(devices[n], slots * width.pow(3)).unwrap()));
            for _ in 0..2 {
                find_error(devices[n], &tables, &ghosts[n], &potential[n], grids.each_mut(), None);
            }
            grids.map(|grid| grid[CoarseGrid::<T>::ERROR].to_host())
        });
        for (which, width) in GRID_WIDTHS.into_iter().enumerate() {
            let what = format!("{name} level {level} of {} groups, grid {which}", tables.len());
            assert_same_bits(&what, &errors[0][which], &errors[1][which], width.pow(3));
        }
    }
}

#[test]
fn a_gpu_finds_the_same_errors() {
    with_gpu(|gpu| {
        let mut noise = Noise::new(26);
        let all: Vec<[i32; 3]> = (0..200).map(|n| [n % 10, n / 10 % 10, n / 100]).collect();
        for mesh in [Mesh::random(&mut noise, 3), Mesh::new([5, 5, 3], true).with_level(all)] {
            cycles_agree::<f32>(gpu, &mesh, &mut noise, "single,");
            cycles_agree::<f64>(gpu, &mesh, &mut noise, "double,");
        }
    });
}
