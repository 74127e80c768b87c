//! Shares of a root solve against the whole, and transforms of a GPU against those of the host.

use super::*;
use crate::layout::GROUP_CELLS;
use crate::testing::{Noise, with_gpu};

/// Noise in every slot, and where the root's groups are among them: shuffled, with one slot left over.
fn noisy_root<T: Real>(groups: [usize; 3], noise: &mut Noise) -> (Table<u32>, Vec<T>) {
    let count = groups.iter().product::<usize>();
    let mut slots: Vec<u32> = (0..=count as u32).collect();
    for n in (1..slots.len()).rev() {
        slots.swap(n, ((noise.next() + 1.0) / 2.0 * (n + 1) as f64) as usize);
    }
    slots.pop();
    (slots.into(), (0..(count + 1) * GROUP_CELLS).map(|_| T::of(noise.next())).collect())
}

/// Cuts values into parts of these lengths.
fn cut(values: &[f64], lengths: impl Iterator<Item = usize>) -> Vec<Vec<f64>> {
    let mut rest = values;
    let parts = lengths.map(|length| {
        let (part, after) = rest.split_at(length);
        rest = after;
        part.to_vec()
    });
    let parts = parts.collect();
    assert!(rest.is_empty(), "{} values are left", rest.len());
    parts
}

/// What was foreseen is what is there, but for what cuFFT works in, which it is left to say: up to eight complex numbers
/// for each value.
fn check_bytes(device: &Device, shape: &Shape, bytes: usize, foreseen: usize) {
    match device {
        Device::Cpu(_) => assert_eq!(bytes, foreseen, "{shape:?}"),
        #[cfg(feature = "cuda")]
        Device::Cuda(_) if cufft::version().is_some() => {
            let estimate = cufft::Plans::bytes_for(shape);
            let rest = foreseen - estimate;
            assert!((rest..=rest + 16 * estimate).contains(&bytes), "{shape:?}: {bytes}, {rest} without cuFFT");
            println!("{shape:?}: cuFFT works in {} bytes, {estimate} foreseen", bytes - rest);
        }
        // the host transforms, and the device has no part in it
        #[cfg(feature = "cuda")]
        Device::Cuda(_) => {}
    }
}

/// The potential of all groups in order, by so many ranks one after the other; the host carries their blocks.
fn shared_solve<T: Real>(
    device: &Device,
    groups: [usize; 3],
    isolated: bool,
    ranks: usize,
    slots: &[u32],
    source: &Buffer<T>,
) -> Vec<T> {
    let on_device = |values: Vec<f64>| Buffer::from_host(device, values).unwrap();
    let layer = groups[0] * groups[1];
    let mut shares: Vec<RootShare> =
        (0..ranks).map(|rank| RootShare::new(device, groups, isolated, rank, ranks).unwrap()).collect();

    // [from][to]
    let mut blocks: Vec<Vec<Vec<f64>>> = Vec::new();
    for (rank, share) in shares.iter_mut().enumerate() {
        let layers = RootShare::layers(groups, rank, ranks);
        let own: Table<u32> = slots[layers.start * layer..layers.end * layer].to_vec().into();
        let mut values = on_device(vec![f64::NAN; own.len() * GROUP_CELLS]);
        root_source(device, &own, &PoissonSource::Field(source), &mut values);
        let mut sent = on_device(vec![f64::NAN; share.sent_values()]);
        share.forward(device, &values, &mut sent);
        blocks.push(cut(&sent.to_host(), (0..ranks).map(|to| share.block_values(rank, to))));
        let foreseen = RootShare::bytes_for(device, groups, isolated, rank, ranks);
        check_bytes(device, share.transforms.shape(), share.bytes(), foreseen);
    }
    for (rank, share) in shares.iter_mut().enumerate() {
        let mut received = on_device(blocks.iter().flat_map(|sent| sent[rank].clone()).collect());
        assert_eq!(received.len(), share.received_values());
        share.solve_columns(device, &mut received, 0.37);
        let back = cut(&received.to_host(), (0..ranks).map(|from| share.block_values(from, rank)));
        for (sent, block) in blocks.iter_mut().zip(back) {
            sent[rank] = block;
        }
    }
    let back = shares.iter_mut().zip(&blocks).enumerate().flat_map(|(rank, (share, sent))| {
        let groups = RootShare::layers(groups, rank, ranks).len() * layer;
        let mut potential = Buffer::from_host(device, vec![T::nan(); groups * GROUP_CELLS]).unwrap();
        share.backward(device, &mut on_device(sent.concat()), &mut potential);
        potential.to_host()
    });
    back.collect()
}

/// The potential of all groups in order, by one rank, which leaves other slots alone and does the same again.
fn whole_solve<T: Real>(
    device: &Device,
    groups: [usize; 3],
    isolated: bool,
    slots: &Table<u32>,
    source: &Buffer<T>,
) -> Vec<T> {
    let plan = if isolated { RootPoisson::isolated } else { RootPoisson::new };
    let mut root = plan(device, groups).unwrap();
    let foreseen = RootPoisson::bytes_for(device, groups, isolated);
    check_bytes(device, root.transforms.shape(), root.bytes(), foreseen);
    let mut solve = || {
        let mut potential = Buffer::from_host(device, vec![T::nan(); source.len()]).unwrap();
        root.solve(device, slots, &PoissonSource::Field(source), 0.37, &mut potential);
        potential.to_host()
    };
    let potential = solve();
    for (slot, values) in potential.chunks_exact(GROUP_CELLS).enumerate() {
        assert!(values.iter().all(|v| v.is_nan() != slots.contains(&(slot as u32))), "slot {slot}");
    }
    let in_order = |potential: Vec<T>| -> Vec<T> {
        slots.iter().flat_map(|&slot| &potential[slot as usize * GROUP_CELLS..][..GROUP_CELLS]).copied().collect()
    };
    let potential = in_order(potential);
    assert!(in_order(solve()) == potential, "{groups:?}, isolated {isolated}: a second solve differs");
    potential
}

fn shares_have_the_bits_of_the_whole<T: Real>(
    device: &Device,
    noise: &mut Noise,
    meshes: &[[usize; 3]],
    ranks: &[usize],
) {
    for &groups in meshes {
        let (slots, source) = noisy_root::<T>(groups, noise);
        let source = Buffer::from_host(device, source).unwrap();
        for isolated in [false, true] {
            let whole = whole_solve(device, groups, isolated, &slots, &source);
            for &ranks in ranks {
                let shared = shared_solve(device, groups, isolated, ranks, &slots, &source);
                assert_eq!(shared.len(), whole.len());
                let differing = whole.iter().zip(&shared).filter(|(a, b)| a.bits() != b.bits()).count();
                assert!(differing == 0, "{groups:?}, isolated {isolated}, {ranks} ranks: {differing} values differ");
            }
        }
    }
}

#[test]
fn bits_do_not_depend_on_the_number_of_ranks() {
    let device = Device::cpu(2).unwrap();
    let (mut noise, ranks) = (Noise::new(27), [1, 2, 3, 4, 5]);
    shares_have_the_bits_of_the_whole::<f32>(&device, &mut noise, &[[2, 1, 3], [4, 4, 4]], &ranks);
    shares_have_the_bits_of_the_whole::<f64>(&device, &mut noise, &[[1, 3, 2], [2, 5, 4]], &ranks);
}

/// Meshes of which the work space holds all layers and bands of a rank, or some, or one.
#[test]
fn nor_do_those_of_a_gpu() {
    with_gpu(|gpu| {
        let (mut noise, ranks) = (Noise::new(28), [1, 2, 4]);
        shares_have_the_bits_of_the_whole::<f32>(gpu, &mut noise, &[[2, 1, 3], [4, 4, 4]], &ranks);
        shares_have_the_bits_of_the_whole::<f64>(gpu, &mut noise, &[[1, 3, 2], [2, 5, 4]], &ranks);
        // too slow on an emulated one
        if std::env::var_os("COMOVE_SLOW_TESTS").is_some() {
            shares_have_the_bits_of_the_whole::<f32>(gpu, &mut noise, &[[8, 8, 8], [16, 16, 16]], &ranks);
        }
    });
}

/// A mesh whose axes differ, periodic and isolated.
fn transforms_agree<T: Real>(gpu: &Device, noise: &mut Noise, tolerance: f64, name: &str) {
    let cpu = Device::cpu(2).unwrap();
    let groups = [3, 2, 1];
    let (slots, source) = noisy_root::<T>(groups, noise);
    for isolated in [false, true] {
        let solve = |device: &Device| {
            let source = Buffer::from_host(device, source.clone()).unwrap();
            whole_solve(device, groups, isolated, &slots, &source)
        };
        let (on_cpu, on_gpu) = (solve(&cpu), solve(gpu));
        let largest = on_cpu.iter().map(|v| v.wide().abs()).fold(0.0, f64::max);
        for (n, (a, b)) in on_cpu.iter().zip(&on_gpu).enumerate() {
            let (group, cell) = (n / GROUP_CELLS, n % GROUP_CELLS);
            let error = (a.wide() - b.wide()).abs();
            let what = format!("{name}, isolated {isolated}: cell {cell} of group {group}");
            assert!(error <= tolerance * largest, "{what}: CPU {a}, GPU {b}");
        }
    }
}

/// Both transform in double precision: a few roundings of it, and one of the potential's own.
#[test]
fn a_gpu_transforms_the_root_alike() {
    with_gpu(|gpu| {
        #[cfg(feature = "cuda")]
        println!("{}", cuda_fft_name());
        let mut noise = Noise::new(26);
        transforms_agree::<f32>(gpu, &mut noise, 1.2e-7, "single");
        transforms_agree::<f64>(gpu, &mut noise, 1e-13, "double");
    });
}
