//! Faces of a GPU against those of the host.

use super::*;
use crate::layout::GROUP_VALUES;
use crate::level::level_topology::Parity;
use crate::operations::poisson_source::DensitySource;
use crate::testing::{Mesh, Noise, assert_same_bits, meshes, on_both, with_gpu};

/// A start from every origin with every kind of source, and a relaxation step after it.
fn faces_agree<T: Real>(gpu: &Device, mesh: &Mesh, noise: &mut Noise, name: &str) {
    let cpu = Device::cpu(2).unwrap();
    let devices = [&cpu, gpu];
    let slots = mesh.group_count();
    let mut random = |offset: f64, values: usize| {
        let values: Vec<T> = (0..slots * values).map(|_| T::from_f64(offset + noise.next())).collect();
        on_both(gpu, &values)
    };
    let (fluid, field, error) = (random(1.5, GROUP_VALUES), random(0.2, GROUP_CELLS), random(0.0, PATCH.pow(3)));
    let (mut potential, mut ghosts, mut own) =
        (random(-3.0, GROUP_CELLS), random(-3.0, GHOST_CELLS), random(0.0, GHOST_CELLS));
    let sine = SineTables::new();
    for level in 1..mesh.levels.len() {
        let tables = mesh.tables(level);
        for (origin, kind) in [(GhostOrigin::Coarse, 0), (GhostOrigin::Sibling, 1), (GhostOrigin::Coarse, 2)] {
            for n in 0..2 {
                let density = DensitySource::of_fluid(&fluid[n], 0.4, 1.4);
                let source = match kind {
                    0 => PoissonSource::Density(density),
                    1 => PoissonSource::Field(&field[n]),
                    _ => PoissonSource::DensityAndField(density, &field[n]),
                };
                let (device, ghosts, own, potential) = (devices[n], &mut ghosts[n], &mut own[n], &mut potential[n]);
                start_faces(device, &tables, origin, None, &sine, &source, 0.07, ghosts, own, potential);
                for parity in [Parity::Even, Parity::Odd] {
                    let neighbours_corrected = parity == Parity::Odd;
                    let relaxation = Relaxation { factor: 1.1, error: &error[n], neighbours_corrected };
                    relax_faces(device, &tables, tables.half(parity), &relaxation, &sine, own, ghosts, potential);
                }
            }
            for (what, [cpu, gpu], values) in
                [("ghosts", &ghosts, GHOST_CELLS), ("own", &own, GHOST_CELLS), ("faces", &potential, GROUP_CELLS)]
            {
                let what = format!("{name} level {level} {origin:?}, source {kind}: {what}");
                assert_same_bits(&what, &cpu.to_host(), &gpu.to_host(), values);
            }
        }
    }
}

#[test]
fn a_gpu_has_the_same_faces() {
    with_gpu(|gpu| {
        let mut noise = Noise::new(27);
        for (n, mesh) in meshes(&mut noise).iter().enumerate() {
            faces_agree::<f32>(gpu, mesh, &mut noise, &format!("single, mesh {n}"));
            faces_agree::<f64>(gpu, mesh, &mut noise, &format!("double, mesh {n}"));
        }
    });
}
