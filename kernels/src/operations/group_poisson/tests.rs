//! Group solves of a GPU against those of the host.

use super::*;
use crate::layout::{GROUP_CELLS, GROUP_VALUES};
use crate::operations::poisson_source::DensitySource;
use crate::testing::{Mesh, Noise, assert_same_bits, meshes, on_both, with_gpu};

/// Arrays of one mesh, on the host and on a GPU.
struct Case<T> {
    fluid: [Buffer<T>; 2],
    field: [Buffer<T>; 2],
    potential: [Buffer<T>; 2],
    ghosts: [Buffer<T>; 2],
    gradients: [Buffer<T>; 2],
}

const H: f64 = 0.07;

impl<T: Real> Case<T> {
    fn new(gpu: &Device, mesh: &Mesh, noise: &mut Noise) -> Self {
        let slots = mesh.group_count();
        let mut random = |offset: f64, values: usize| {
            let values: Vec<T> = (0..slots * values).map(|_| T::from_f64(offset + noise.next())).collect();
            on_both(gpu, &values)
        };
        Self {
            fluid: random(1.5, GROUP_VALUES),
            field: random(0.2, GROUP_CELLS),
            potential: random(-3.0, GROUP_CELLS),
            ghosts: random(-3.0, GHOST_CELLS),
            gradients: random(0.0, FACE_GRADIENTS),
        }
    }

    /// The three kinds of source on one of the devices.
    fn source(&self, n: usize, kind: usize) -> PoissonSource<'_, T> {
        let density = DensitySource::of_fluid(&self.fluid[n], 0.4, 1.4);
        match kind {
            0 => PoissonSource::Density(density),
            1 => PoissonSource::Field(&self.field[n]),
            _ => PoissonSource::DensityAndField(density, &self.field[n]),
        }
    }

    fn assert_same(&self, what: &str) {
        for (name, [cpu, gpu], values) in [
            ("ghosts", &self.ghosts, GHOST_CELLS),
            ("gradients", &self.gradients, FACE_GRADIENTS),
            ("potential", &self.potential, GROUP_CELLS),
        ] {
            assert_same_bits(&format!("{what}: {name}"), &cpu.to_host(), &gpu.to_host(), values);
        }
    }
}

/// Runs a solve on both devices: what it changes is taken out of the case meanwhile.
fn on_each<T: Real>(
    case: &mut Case<T>,
    devices: [&Device; 2],
    kind: usize,
    solve: impl Fn(&Device, &PoissonSource<T>, &mut Buffer<T>, &mut Buffer<T>, &mut Buffer<T>),
) {
    let taken = |buffers: &mut [Buffer<T>; 2]| std::mem::replace(buffers, [Buffer::Cpu(vec![]), Buffer::Cpu(vec![])]);
    let (mut potential, mut ghosts, mut gradients) =
        (taken(&mut case.potential), taken(&mut case.ghosts), taken(&mut case.gradients));
    for n in 0..2 {
        let source = case.source(n, kind);
        solve(devices[n], &source, &mut ghosts[n], &mut potential[n], &mut gradients[n]);
    }
    (case.potential, case.ghosts, case.gradients) = (potential, ghosts, gradients);
}

fn sine_agrees<T: Real>(gpu: &Device, mesh: &Mesh, noise: &mut Noise, name: &str) {
    let cpu = Device::cpu(2).unwrap();
    let mut case = Case::<T>::new(gpu, mesh, noise);
    let sine = SineTables::new();
    for level in 1..mesh.levels.len() {
        let tables = mesh.tables(level);
        for kind in 0..3 {
            on_each(&mut case, [&cpu, gpu], kind, |device, source, ghosts, potential, gradients| {
                let gradients = (kind > 0).then_some(gradients);
                group_poisson(device, &tables, &sine, source, ghosts, H, potential, gradients);
            });
            case.assert_same(&format!("{name} level {level}, source {kind}"));
        }
    }
}

#[test]
fn a_gpu_transforms_to_the_same_potential() {
    with_gpu(|gpu| {
        let mut noise = Noise::new(22);
        for (n, mesh) in meshes(&mut noise).iter().enumerate() {
            sine_agrees::<f32>(gpu, mesh, &mut noise, &format!("single, mesh {n}"));
            sine_agrees::<f64>(gpu, mesh, &mut noise, &format!("double, mesh {n}"));
        }
    });
}
