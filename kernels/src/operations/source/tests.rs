//! Sources on the host against a loop over the cells, and on a GPU against the host.

use super::*;
use crate::layout::{ENERGY, GROUP, GROUP_CELLS, PATCH};
use crate::point::dual_energy::Cell;
use crate::point::source::after;
use crate::testing::{Mesh, Noise, conserved};

/// Gas of which some cells are cold, thin or no numbers.
fn cell_of(noise: &mut Noise, broken: bool) -> [f64; 6] {
    let kind = noise.next();
    let speed = if kind > 0.5 { 50.0 } else { 1.0 };
    let velocity = [0; 3].map(|_| speed * noise.next());
    let mut u = conserved(1.5 + noise.next(), velocity, 1.2 + noise.next(), 5.0 / 3.0);
    if broken && kind < -0.99 {
        u[0] = -u[0];
    } else if broken && kind < -0.98 {
        u[4] = f64::NAN;
    }
    u
}

/// Every cell changes as its pointwise function says, on each instruction set; leaf cells alone count.
#[test]
fn all_cells_change_and_leaves_count() {
    let (eos, source) = (Eos::<f64>::new(5.0 / 3.0), Relaxation { loss: 0.3, gain: 0.2 });
    let mut noise = Noise::new(5);
    let mesh = Mesh::random(&mut noise, 3);
    let fluid: Vec<f64> = mesh.fill(|_| cell_of(&mut noise, false));
    let tables = mesh.tables(0);
    for isa in Isa::available() {
        let mut changed = fluid.clone();
        let reports = cpu::apply_source(isa, &tables, &mut changed, &source, &eos);
        let (mut leaves, mut others) = (0, 0);
        for (g, report) in reports.iter().enumerate() {
            let first = tables.slots[g] as usize * GROUP_VALUES;
            let (mut energy, mut largest, mut place) = (0.0, 0.0, 0);
            for c in 0..GROUP_CELLS {
                let of = |values: &[f64]| -> Cell<f64> { std::array::from_fn(|f| values[first + f * GROUP_CELLS + c]) };
                let (expected, change) = after(&of(&fluid), &source, &eos);
                assert_eq!(of(&changed), expected);
                let octant = (0..3).map(|axis| (c / GROUP.pow(axis) % GROUP / PATCH) << axis).sum::<usize>();
                if tables.leaves[g] >> octant & 1 == 0 {
                    others += 1;
                    continue;
                }
                leaves += 1;
                energy += expected[ENERGY] - of(&fluid)[ENERGY];
                if change > largest {
                    (largest, place) = (change, c as u32);
                }
            }
            assert!((report.energy - energy).abs() < 1e-9 * GROUP_CELLS as f64);
            assert_eq!((report.relative_change, report.cell), (largest, place));
        }
        assert!(leaves > 0 && others > 0);
    }
}

#[cfg(feature = "cuda")]
mod on_a_gpu {
    use super::*;
    use crate::testing::{assert_same_bits, meshes, on_both, with_gpu};

    fn sources_agree<T: Real>(gpu: &Device, gamma: f64, noise: &mut Noise) {
        let cpu = Device::cpu(2).unwrap();
        let eos = Eos { density_floor: T::from_f64(0.1), ..Eos::new(gamma) };
        let source = Relaxation { loss: T::from_f64(0.3), gain: T::from_f64(0.2) };
        for mesh in meshes(noise) {
            let values: Vec<T> = mesh.fill(|_| cell_of(noise, true));
            let mut fluid = on_both(gpu, &values);
            for level in 0..mesh.levels.len() {
                let tables = mesh.tables(level);
                let mut reports = [Vec::new(), Vec::new()];
                for (n, device) in [&cpu, gpu].into_iter().enumerate() {
                    reports[n] = apply_source(device, &tables, &mut fluid[n], &source, &eos).wait();
                }
                assert_same_bits("gas", &fluid[0].to_host(), &fluid[1].to_host(), GROUP_VALUES);
                for (a, b) in reports[0].iter().zip(&reports[1]) {
                    assert_eq!((a.relative_change, a.cell), (b.relative_change, b.cell));
                    let sums = |r: &SourceReport| {
                        [r.energy, r.report.energy_added, r.report.floor_energy, r.report.floor_mass]
                    };
                    for (a, b) in sums(a).into_iter().zip(sums(b)) {
                        // of terms up to 10⁴, in another order
                        assert!(
                            (a - b).abs() <= 1e-12 * 1e4 * GROUP_CELLS as f64 || a.is_nan() && b.is_nan(),
                            "{a} {b}"
                        );
                    }
                    let counts =
                        |r: &GroupReport| [r.floored, r.first_floored, r.cold, r.negative, r.invalid, r.first_invalid];
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
}
