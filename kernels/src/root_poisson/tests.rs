//! Root transforms of a GPU against those of the host.

use super::*;
use crate::testing::{Noise, assert_same_bits, on_both, with_gpu};

/// A mesh whose axes differ and whose slots are shuffled, periodic and isolated.
fn transforms_agree<T: Real>(gpu: &Device, noise: &mut Noise, tolerance: f64, name: &str) {
    let cpu = Device::cpu(2).unwrap();
    let groups = [3, 2, 1];
    let slots: Table<u32> = vec![4, 0, 6, 1, 3, 2].into();
    let mut random = || -> Vec<T> { (0..7 * GROUP_CELLS).map(|_| T::of(noise.next())).collect() };
    let (source, start) = (on_both(gpu, &random()), random());
    for isolated in [false, true] {
        let mut potential = on_both(gpu, &start);
        let mut again = on_both(gpu, &start);
        for (n, device) in [&cpu, gpu].into_iter().enumerate() {
            let plan = if isolated { RootPoisson::isolated } else { RootPoisson::new };
            let mut root = plan(device, groups).unwrap();
            let field = PoissonSource::Field(&source[n]);
            root.solve(device, &slots, &field, 0.37, &mut potential[n]);
            root.solve(device, &slots, &field, 0.37, &mut again[n]);
        }
        let what = format!("{name}, isolated: {isolated}");
        assert_same_bits(&format!("{what}, twice"), &potential[1].to_host(), &again[1].to_host(), GROUP_CELLS);
        let [on_cpu, on_gpu] = potential.map(|buffer| buffer.to_host());
        let largest = on_cpu.iter().map(|v| v.wide().abs()).fold(0.0, f64::max);
        for (n, (a, b)) in on_cpu.iter().zip(&on_gpu).enumerate() {
            let (slot, cell) = (n / GROUP_CELLS, n % GROUP_CELLS);
            let error = (a.wide() - b.wide()).abs();
            assert!(error <= tolerance * largest, "{what}: cell {cell} of slot {slot}: CPU {a}, GPU {b}");
        }
    }
}

/// Both transform in double precision: a few roundings of it, and one of the potential's own.
#[test]
fn a_gpu_transforms_the_root_alike() {
    with_gpu(|gpu| {
        println!("{}", cuda_fft_name());
        let mut noise = Noise::new(26);
        transforms_agree::<f32>(gpu, &mut noise, 1.2e-7, "single");
        transforms_agree::<f64>(gpu, &mut noise, 1e-13, "double");
    });
}
