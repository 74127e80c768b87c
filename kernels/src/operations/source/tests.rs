//! Sources on a GPU against those on the host.

use super::*;
use crate::testing::{Noise, assert_same_bits, conserved, meshes, on_both, with_gpu};

/// Gas of which some cells are cold, thin or no numbers.
fn cell_of(noise: &mut Noise) -> [f64; 6] {
    let kind = noise.next();
    let speed = if kind > 0.5 { 50.0 } else { 1.0 };
    let velocity = [0; 3].map(|_| speed * noise.next());
    let mut u = conserved(1.5 + noise.next(), velocity, 1.2 + noise.next(), 5.0 / 3.0);
    if kind < -0.99 {
        u[0] = -u[0];
    } else if kind < -0.98 {
        u[4] = f64::NAN;
    }
    u
}

fn sources_agree<T: Real>(gpu: &Device, gamma: f64, noise: &mut Noise) {
    let cpu = Device::cpu(2).unwrap();
    let eos = Eos { density_floor: T::from_f64(0.1), ..Eos::new(gamma) };
    let source = Relaxation { loss: T::from_f64(0.3), gain: T::from_f64(0.2) };
    for mesh in meshes(noise) {
        let values: Vec<T> = mesh.fill(|_| cell_of(noise));
        let mut fluid = on_both(gpu, &values);
        for level in 0..mesh.levels.len() {
            let tables = mesh.tables(level);
            let mut reports = [Vec::new(), Vec::new()];
            for (n, device) in [&cpu, gpu].into_iter().enumerate() {
                reports[n] = apply_source(device, &tables, &mut fluid[n], &source, &eos).wait();
            }
            assert_same_bits("gas", &fluid[0].to_host(), &fluid[1].to_host(), GROUP_VALUES);
            for (a, b) in reports[0].iter().zip(&reports[1]) {
                assert_eq!((a.part, a.cell), (b.part, b.cell));
                assert!((a.energy - b.energy).abs() <= 1e-8 * a.energy.abs() || a.energy.is_nan() && b.energy.is_nan());
                let counts = |r: &GroupReport| [r.floored, r.first_floored, r.invalid, r.first_invalid, r.negative];
                assert_eq!(counts(&a.report), counts(&b.report));
            }
        }
    }
}

#[test]
fn a_gpu_heats_alike() {
    with_gpu(|gpu| {
        let mut noise = Noise::new(61);
        sources_agree::<f32>(gpu, 5.0 / 3.0, &mut noise);
        sources_agree::<f64>(gpu, 1.4, &mut noise);
    });
}
