//! Rates of the kernels on a GPU: `cargo bench -p comove-kernels --features cuda --bench gpu`, or the program that this
//! builds carried to a machine with one.
//!
//! Each line is the median of several repetitions, launches and what the host waits for included. Cells are of a periodic
//! level of groups; *interpolated*: one refined patch in every group and none beside another, so that all ghost cells come
//! from the coarser level.

#[cfg(not(feature = "cuda"))]
fn main() {
    println!("built without CUDA: add --features cuda");
}

#[cfg(feature = "cuda")]
fn main() {
    match comove_kernels::Device::cuda(0, 4) {
        Ok(gpu) => measure::all(&gpu),
        Err(reason) => println!("{reason}"),
    }
}

#[cfg(feature = "cuda")]
mod measure {
    use comove_kernels::hydro_sweep::{SweepParameters, hydro_sweep};
    use comove_kernels::layout::{CENTRE, DIRECTIONS, FIELDS, FLUX_PLANES, GROUP, GROUP_CELLS, GROUP_VALUES};
    use comove_kernels::tables::NONE;
    use comove_kernels::timestep::{SignalSpeed, signal_speed};
    use comove_kernels::{Buffer, Device, Eos, GroupReport, LevelTables, Marks, Real, Table};
    use std::time::Instant;

    pub(crate) fn all(gpu: &Device) {
        println!("{}", gpu.name());
        println!("{:<44} {:>9} {:>12} {:>12}", "", "groups", "ms", "cells/s");
        for n in [1, 2, 4, 8, 20] {
            hydro::<f32>(gpu, n, false);
        }
        for n in [4, 16] {
            hydro::<f32>(gpu, n, true);
        }
        for n in [4, 12] {
            hydro::<f64>(gpu, n, false);
        }
    }

    /// The median time of `work` in seconds, the GPU waited for.
    fn median(gpu: &Device, mut work: impl FnMut()) -> f64 {
        let Device::Cuda(cuda) = gpu else { unreachable!("a GPU") };
        let mut times: Vec<f64> = (0..12)
            .map(|_| {
                cuda.synchronize();
                let started = Instant::now();
                work();
                cuda.synchronize();
                started.elapsed().as_secs_f64()
            })
            .skip(2)
            .collect();
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    }

    fn line(what: &str, groups: usize, seconds: f64) {
        let rate = (groups * GROUP_CELLS) as f64 / seconds;
        println!("{what:<44} {groups:>9} {:>12.4} {rate:>12.3e}", 1e3 * seconds);
    }

    /// A periodic level of n³ groups in row-major slots.
    fn level(n: usize) -> LevelTables {
        let slot = |x: usize, y: usize, z: usize| ((z % n * n + y % n) * n + x % n) as u32;
        let groups = n * n * n;
        let mut neighbours = Vec::new();
        for g in 0..groups {
            let (x, y, z) = (g % n, g / n % n, g / n / n);
            for d in 0..DIRECTIONS {
                neighbours.push(slot(x + n + d % 3 - 1, y + n + d / 3 % 3 - 1, z + n + d / 9 - 1));
            }
        }
        LevelTables {
            slots: (0..groups as u32).collect(),
            neighbours: neighbours.into(),
            parents: vec![NONE; groups * DIRECTIONS].into(),
            octants: vec![0; groups].into(),
            outside: vec![0; groups].into(),
            leaves: vec![0xff; groups].into(),
            ..LevelTables::default()
        }
    }

    /// One refined patch in every group of a level, none beside another.
    fn lone_children(coarse: &LevelTables) -> LevelTables {
        let n = coarse.len();
        let slots: Vec<u32> = (n as u32..2 * n as u32).collect();
        let mut neighbours = vec![NONE; n * DIRECTIONS];
        for g in 0..n {
            neighbours[g * DIRECTIONS + CENTRE] = slots[g];
        }
        let parents = coarse.neighbours.clone();
        LevelTables { slots: slots.into(), neighbours: neighbours.into(), parents, ..coarse.clone() }
    }

    /// A smooth flow of Mach 0.1 to 1 in every group.
    fn flow<T: Real>(groups: usize) -> Vec<T> {
        let mut fluid = vec![T::zero(); groups * GROUP_VALUES];
        for group in fluid.chunks_exact_mut(GROUP_VALUES) {
            for e in 0..GROUP_CELLS {
                let phase = |stride: usize| (e / stride % GROUP) as f64 * std::f64::consts::TAU / GROUP as f64;
                let (x, y, z) = (phase(1), phase(GROUP), phase(GROUP * GROUP));
                let density = 1.0 + 0.3 * x.sin() * y.cos();
                let v = [0.5 * z.sin(), 0.3 * x.cos(), 0.1 + 0.4 * y.sin()];
                let pressure = 0.6 * density.powf(5.0 / 3.0);
                let kinetic = 0.5 * density * v.iter().map(|v| v * v).sum::<f64>();
                let energy = pressure * 1.5 + kinetic;
                let u = [density, density * v[0], density * v[1], density * v[2], energy, 0.6 * density];
                for f in 0..FIELDS {
                    group[f * GROUP_CELLS + e] = T::of(u[f]);
                }
            }
        }
        fluid
    }

    fn hydro<T: Real>(gpu: &Device, n: usize, interpolated: bool) {
        let coarse = level(n);
        let tables = if interpolated { lone_children(&coarse) } else { coarse };
        let slots = if interpolated { 2 } else { 1 } * n * n * n;
        let eos = Eos::new(5.0 / 3.0);
        let mut a = Buffer::from_host(gpu, flow::<T>(slots)).unwrap();
        let mut b = Buffer::from_host(gpu, flow::<T>(slots)).unwrap();
        let mut fluxes = Buffer::zeros(gpu, 0).unwrap();
        let flux_slots: Table<u32> = vec![NONE; tables.len() * FLUX_PLANES].into();
        let mut marks = Marks::new(gpu, slots).unwrap();
        let mut reports = vec![GroupReport::default(); tables.len()];
        let mut sweep = |from: &Buffer<T>, to: &mut Buffer<T>, axes: [usize; 3]| {
            let parameters = SweepParameters { dt_over_dx: T::of(0.05), axes, eos };
            let (fluxes, reports) = (&mut fluxes, &mut reports);
            hydro_sweep(gpu, &tables, &flux_slots, from, None, to, fluxes, &mut marks, None, &parameters, reports);
        };
        let what = if interpolated { "ghost cells interpolated" } else { "uniform" };
        let forward = median(gpu, || sweep(&a, &mut b, [0, 1, 2]));
        line(&format!("sweep x y z, {} precision, {what}", T::NAME), tables.len(), forward);
        let backward = median(gpu, || sweep(&b, &mut a, [2, 1, 0]));
        line(&format!("sweep z y x, {} precision, {what}", T::NAME), tables.len(), backward);
        line(&format!("hydro of a step, {} precision, {what}", T::NAME), tables.len(), forward + backward);
        let mut speeds = vec![SignalSpeed::default(); tables.len()];
        if !interpolated && n == 20 {
            let seconds = median(gpu, || signal_speed(gpu, &tables, &a, &eos, &mut speeds));
            line(&format!("signal speed, {} precision", T::NAME), tables.len(), seconds);
        }
    }
}
