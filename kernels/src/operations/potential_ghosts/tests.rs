//! Ghost values of a GPU against those of the host.

use super::*;
use crate::Device;
use crate::device::device_table::DeviceTable;
use crate::layout::GROUP_CELLS;
use crate::level::level_topology::NONE;
use crate::testing::{Mesh, Noise, assert_same_bits, meshes, on_both, with_gpu};

fn random<T: Real>(noise: &mut Noise, values: usize) -> Vec<T> {
    (0..values).map(|_| T::from_f64(noise.next())).collect()
}

/// Every origin on every level, the coarser level at one time and between two.
fn ghosts_agree<T: Real>(gpu: &Device, mesh: &Mesh, noise: &mut Noise, name: &str) {
    let cpu = Device::cpu(2).unwrap();
    let slots = mesh.group_count();
    let potential = on_both(gpu, &random::<T>(noise, slots * GROUP_CELLS));
    let early = on_both(gpu, &random::<T>(noise, slots * GROUP_CELLS));
    let late = on_both(gpu, &random::<T>(noise, slots * GROUP_CELLS));
    for level in 0..mesh.levels.len() {
        let tables = mesh.tables(level);
        // only the coarser level is kept, from the last place on
        let coarser = if level > 0 { mesh.tables(level - 1).slots.to_vec() } else { vec![] };
        let place = |slot| if coarser.contains(&slot) { slots as u32 - 1 - slot } else { NONE };
        let places: DeviceTable<u32> = (0..slots as u32).map(place).collect();
        for origin in [GhostOrigin::Coarse, GhostOrigin::Sibling] {
            for between in [false, true] {
                let mut held = on_both(gpu, &random::<T>(noise, tables.len() * GHOST_CELLS));
                for (n, device) in [&cpu, gpu].into_iter().enumerate() {
                    let weight = T::from_f64(0.3);
                    let timed = TimedPotential { from: &early[n], to: &late[n], places: &places, weight };
                    potential_ghosts(device, &tables, origin, &potential[n], between.then_some(&timed), &mut held[n]);
                }
                let what = format!("{name} level {level} {origin:?}, between times: {between}");
                assert_same_bits(&what, &held[0].to_host(), &held[1].to_host(), GHOST_CELLS);
            }
        }
    }
}

#[test]
fn a_gpu_gathers_the_same_ghosts() {
    with_gpu(|gpu| {
        let mut noise = Noise::new(21);
        for (n, mesh) in meshes(&mut noise).iter().enumerate() {
            ghosts_agree::<f32>(gpu, mesh, &mut noise, &format!("single, mesh {n}"));
            ghosts_agree::<f64>(gpu, mesh, &mut noise, &format!("double, mesh {n}"));
        }
    });
}
