//! Mass sheets of a GPU against those of the host.

use super::*;
use crate::testing::{Mesh, Noise, assert_same_bits, meshes, on_both, with_gpu};

/// The sheets of all levels, from fine to coarse.
fn sheets_agree<T: Real>(gpu: &Device, mesh: &Mesh, noise: &mut Noise, name: &str) {
    let cpu = Device::cpu(2).unwrap();
    let slots = mesh.group_count();
    let mut random = |values: usize| -> Vec<T> { (0..slots * values).map(|_| T::from_f64(noise.next())).collect() };
    let (potential, gradients) = (on_both(gpu, &random(GROUP_CELLS)), on_both(gpu, &random(FACE_GRADIENTS)));
    let mut sheet = on_both(gpu, &random(GROUP_CELLS));
    for level in (0..mesh.levels.len()).rev() {
        let tables = mesh.tables(level);
        for (n, device) in [&cpu, gpu].into_iter().enumerate() {
            mass_sheet(device, &tables, 0.3, &potential[n], &gradients[n], &mut sheet[n]);
        }
        let what = format!("{name}: sheet of level {level}");
        assert_same_bits(&what, &sheet[0].to_host(), &sheet[1].to_host(), GROUP_CELLS);
    }
}

#[test]
fn a_gpu_makes_the_same_sheets() {
    with_gpu(|gpu| {
        let mut noise = Noise::new(24);
        for (n, mesh) in meshes(&mut noise).iter().enumerate() {
            sheets_agree::<f32>(gpu, mesh, &mut noise, &format!("single, mesh {n}"));
            sheets_agree::<f64>(gpu, mesh, &mut noise, &format!("double, mesh {n}"));
        }
    });
}
