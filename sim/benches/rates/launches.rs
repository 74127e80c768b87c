//! Rates by the number of groups in a launch: what the method paper shows for its kernels.

use crate::meshes::{extents, hydro, refined, state};
use crate::{Bench, Work};
use comove_sim::Octree;
use comove_sim::gravity::{Purpose, Solve};
use comove_sim::kernels::Real;
use comove_sim::mesh::PERIODIC;

/// Numbers of groups: one, some for each multiprocessor, one for each, many.
const GROUPS: [usize; 8] = [1, 8, 64, 128, 132, 512, 4096, 8000];

pub(crate) fn all(bench: &mut Bench) {
    let groups: &[usize] = if bench.smoke { &GROUPS[..2] } else { &GROUPS };
    groups.iter().for_each(|&groups| of(bench, groups));
}

pub(crate) fn of(bench: &mut Bench, groups: usize) {
    in_precision::<f32>(bench, groups);
    in_precision::<f64>(bench, groups);
}

fn in_precision<T: Real>(bench: &mut Bench, groups: usize) {
    let mut uniform = state::<T>(&bench.device, &Octree::new(extents(groups), PERIODIC), false, false);
    hydro(bench, "uniform", &mut uniform, 0..1, None, 0.05);
    drop(uniform);
    let mut level = state::<T>(&bench.device, &refined(groups), true, true);
    let operation = "Poisson solve of a level";
    let work = Work { part: "launches", operation, mesh: "uniform", precision: T::NAME, unit: "group", items: groups };
    // from the coarser level between two times, then cycles: what every kick takes
    bench.measure(work, || {
        level.solve_gravity_on((Solve::Level(1), Purpose::Kick), Some(0.25), 1.0, 1.0).expect("room is there by now")
    });
}
