//! The kick on a GPU against the one on the host.

use super::*;
use crate::device::device_table::DeviceTable;
use crate::testing::{Mesh, Noise, assert_same_bits, conserved, meshes, on_both, with_gpu};

const H: f64 = 0.3;
const DT: f64 = 0.05;

/// Gas of which some cells are cold, thin or no numbers.
fn gas<T: Real>(mesh: &Mesh, noise: &mut Noise) -> Vec<T> {
    mesh.fill(|_| {
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
    })
}

/// Whether two sums of the same terms in different orders agree; no term is larger than `term`.
fn same_sum(a: f64, b: f64, term: f64) -> bool {
    (a - b).abs() <= 1e-12 * term * GROUP_CELLS as f64 || a.is_nan() && b.is_nan()
}

fn kicks_agree<T: Real>(gpu: &Device, mesh: &Mesh, gamma: f64, noise: &mut Noise, name: &str) {
    let cpu = Device::cpu(2).unwrap();
    let slots = mesh.group_count();
    let mut random = || -> Vec<T> { (0..slots * GROUP_CELLS).map(|_| T::from_f64(noise.next())).collect() };
    let [potential, early, late] = [(); 3].map(|()| on_both(gpu, &random()));
    let places: DeviceTable<u32> = (0..slots as u32).collect();
    let mut fluid = on_both(gpu, &gas::<T>(mesh, noise));
    let eos = Eos { density_floor: T::from_f64(0.1), ..Eos::new(gamma) };
    for level in 0..mesh.levels.len() {
        let tables = mesh.tables(level);
        let mut kicks = [Vec::new(), Vec::new()];
        let mut peaks = [Vec::new(), Vec::new()];
        for (n, device) in [&cpu, gpu].into_iter().enumerate() {
            let timed = TimedPotential { from: &early[n], to: &late[n], places: &places, weight: T::from_f64(0.7) };
            let coarse = (level % 2 == 1).then_some(&timed);
            let (potential, fluid) = (&potential[n], &mut fluid[n]);
            kicks[n] = gravity_kick(device, &tables, potential, coarse, fluid, H, DT, &eos).wait();
            peaks[n] = max_acceleration(device, &tables, potential, coarse, H).wait();
        }
        let what = format!("{name} level {level}");
        assert_same_bits(&format!("{what}: gas"), &fluid[0].to_host(), &fluid[1].to_host(), GROUP_VALUES);
        for g in 0..tables.len() {
            let what = format!("{what}, group {g}");
            assert_eq!(peaks[0][g], peaks[1][g], "{what}: peak");
            assert!((0..2).all(|n| kicks[n][g].peak == peaks[n][g]), "{what}: the kick's peak");
            let [a, b] = [kicks[0][g].work, kicks[1][g].work];
            // momenta up to 125, accelerations up to 2/(2h)
            assert!(same_sum(a, b, 3.0 * 125.0 * DT / H), "{what}: work {a:e} on the CPU, {b:e} on the GPU");
            let [a, b] = [kicks[0][g].report, kicks[1][g].report];
            let sums =
                [(a.energy_added, b.energy_added), (a.floor_energy, b.floor_energy), (a.floor_mass, b.floor_mass)];
            for (a, b) in sums {
                assert!(same_sum(a, b, 1e6), "{what}: a sum is {a:e} on the CPU, {b:e} on the GPU");
            }
            let counts = |r: &GroupReport| {
                [r.floored, r.first_floored, r.cold, r.negative, r.invalid, r.first_invalid, r.marked, r.redone]
            };
            assert_eq!(counts(&a), counts(&b), "{what}: counts");
        }
    }
}

#[test]
fn a_gpu_kicks_alike() {
    with_gpu(|gpu| {
        let mut noise = Noise::new(25);
        for (n, mesh) in meshes(&mut noise).iter().enumerate() {
            let gamma = if n == 0 { 1.4 } else { 5.0 / 3.0 };
            kicks_agree::<f32>(gpu, mesh, gamma, &mut noise, &format!("single, mesh {n}"));
            kicks_agree::<f64>(gpu, mesh, gamma, &mut noise, &format!("double, mesh {n}"));
        }
    });
}
