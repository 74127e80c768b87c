//! Shares of a root solve against the whole, and transforms of a GPU against those of the host.

use super::*;
use crate::layout::GROUP_CELLS;
use crate::testing::{Noise, with_gpu};

/// Noise in every slot, and where the root's groups are among them: shuffled, with one slot left over.
fn noisy_root<T: Real>(groups: [usize; 3], noise: &mut Noise) -> (DeviceTable<u32>, Vec<T>) {
    let count = groups.iter().product::<usize>();
    let mut slots: Vec<u32> = (0..=count as u32).collect();
    for n in (1..slots.len()).rev() {
        slots.swap(n, ((noise.next() + 1.0) / 2.0 * (n + 1) as f64) as usize);
    }
    slots.pop();
    (slots.into(), (0..(count + 1) * GROUP_CELLS).map(|_| T::from_f64(noise.next())).collect())
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

/// What was foreseen is what is there, but for the work space, which a rank that is alone may do without, and for what
/// cuFFT works in, which it is left to say: up to eight complex numbers for each value.
fn check_bytes(device: &Device, transforms: &Transforms, bytes: usize, foreseen: usize) {
    let shape = transforms.shape();
    match device {
        Device::Cpu(_) => assert_eq!(bytes, foreseen, "{shape:?}"),
        #[cfg(feature = "cuda")]
        Device::Cuda(_) if crate::device::cuda::cufft::version().is_some() => {
            let estimate = plans::Plans::bytes_for(shape);
            let work = if shape.is_alone() { shape.values_at_once() * size_of::<f64>() } else { 0 };
            let rest = foreseen - estimate;
            assert!((rest - work..=rest + 16 * estimate).contains(&bytes), "{shape:?}: {bytes}, {rest} without cuFFT");
            println!("{transforms:?}: {bytes} bytes, {foreseen} foreseen");
        }
        // the host transforms, and the device has no part in it
        #[cfg(feature = "cuda")]
        Device::Cuda(_) => {}
    }
}

/// The potential of all groups in order, by so many ranks one after the other; the host carries their blocks.
fn shared_solve<T: Real>(device: &Device, whole: Shape, ranks: usize, slots: &[u32], source: &Buffer<T>) -> Vec<T> {
    let on_device = |values: Vec<f64>| Buffer::from_host(device, values).unwrap();
    let groups = whole.groups;
    let layer = groups[0] * groups[1];
    let shapes = (0..ranks).map(|rank| Shape { rank, ranks, ..whole });
    let mut shares: Vec<RootShare> = shapes.map(|shape| RootShare::of(device, shape).unwrap()).collect();

    // [from][to]
    let mut blocks: Vec<Vec<Vec<f64>>> = Vec::new();
    for (rank, share) in shares.iter_mut().enumerate() {
        let layers = RootShare::layers(groups, rank, ranks);
        let own: DeviceTable<u32> = slots[layers.start * layer..layers.end * layer].to_vec().into();
        let mut values = on_device(vec![f64::NAN; own.len() * GROUP_CELLS]);
        root_source(device, &own, &PoissonSource::Field(source), &mut values);
        let mut sent = on_device(vec![f64::NAN; share.sent_values()]);
        share.forward(device, &values, &mut sent);
        blocks.push(cut(&sent.to_host(), (0..ranks).map(|to| share.block_values(rank, to))));
        let foreseen = RootShare::bytes_of(device, Shape { rank, ranks, ..whole });
        check_bytes(device, &share.transforms, share.bytes(), foreseen);
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
fn whole_solve<T: Real>(device: &Device, shape: Shape, slots: &DeviceTable<u32>, source: &Buffer<T>) -> Vec<T> {
    let mut root = RootPoisson::of(device, shape).unwrap();
    check_bytes(device, &root.transforms, root.bytes(), RootPoisson::bytes_of(device, shape));
    let mut solve = || {
        let mut potential = Buffer::from_host(device, vec![T::nan(); source.len()]).unwrap();
        root.solve(device, slots, &PoissonSource::Field(source), 0.37, &mut potential);
        potential.to_host()
    };
    let potential = solve();
    for (slot, values) in potential.chunks_exact(GROUP_CELLS).enumerate() {
        let is_root = slots.contains(&(slot as u32));
        assert!(values.iter().all(|v| v.is_nan() != is_root), "slot {slot}");
    }
    let in_order = |potential: Vec<T>| -> Vec<T> {
        slots.iter().flat_map(|&slot| &potential[slot as usize * GROUP_CELLS..][..GROUP_CELLS]).copied().collect()
    };
    let potential = in_order(potential);
    assert!(in_order(solve()) == potential, "{shape:?}: a second solve differs");
    potential
}

/// Periodic and isolated meshes.
const BOTH: &[bool] = &[false, true];

/// The same bits by so many ranks, and with as little in hand as one layer or band.
fn shares_have_the_bits_of_the_whole<T: Real>(
    device: &Device,
    noise: &mut Noise,
    meshes: &[([usize; 3], &[bool])],
    ranks: &[usize],
    in_hand: &[usize],
) {
    for (groups, isolated) in meshes.iter().flat_map(|&(groups, kinds)| kinds.iter().map(move |&kind| (groups, kind))) {
        let (slots, source) = noisy_root::<T>(groups, noise);
        let source = Buffer::from_host(device, source).unwrap();
        let shape = Shape { in_hand: 1, ..Shape::whole(groups, isolated) };
        let whole = whole_solve(device, shape, &slots, &source);
        let same = |values: Vec<T>, what: &str| {
            assert_eq!(values.len(), whole.len());
            let differing = whole.iter().zip(&values).filter(|(a, b)| a.bits() != b.bits()).count();
            assert!(differing == 0, "{groups:?}, isolated {isolated}, {what}: {differing} values differ");
        };
        for &in_hand in in_hand {
            let shape = Shape { in_hand, ..shape };
            same(whole_solve(device, shape, &slots, &source), &format!("{in_hand} bytes in hand"));
            for &ranks in ranks {
                let shared = shared_solve(device, shape, ranks, &slots, &source);
                same(shared, &format!("{ranks} ranks, {in_hand} bytes in hand"));
            }
        }
    }
}

#[test]
fn bits_do_not_depend_on_the_number_of_ranks() {
    let device = Device::cpu(2).unwrap();
    let (mut noise, ranks) = (Noise::new(27), [1, 2, 3, 4, 5]);
    let [single, double] = [[[2, 1, 3], [4, 4, 4]], [[1, 3, 2], [2, 5, 4]]].map(|all| all.map(|groups| (groups, BOTH)));
    shares_have_the_bits_of_the_whole::<f32>(&device, &mut noise, &single, &ranks, &[1]);
    shares_have_the_bits_of_the_whole::<f64>(&device, &mut noise, &double, &ranks, &[1]);
}

/// Parts of all layers and bands of a rank, or some, or one; with a rest, or none.
#[test]
fn nor_do_those_of_a_gpu() {
    with_gpu(|gpu| {
        let (mut noise, ranks, in_hand) = (Noise::new(28), [1, 2, 4], [1 << 20]);
        let single = [[2, 1, 3], [4, 4, 4]].map(|groups| (groups, BOTH));
        let double = [([1, 3, 2], BOTH), ([2, 5, 5], &[false][..])];
        shares_have_the_bits_of_the_whole::<f32>(gpu, &mut noise, &single, &ranks, &in_hand);
        shares_have_the_bits_of_the_whole::<f64>(gpu, &mut noise, &double, &ranks, &in_hand);
    });
}

/// Meshes of many sizes, in parts as they are used and in smaller ones: too slow on an emulated GPU.
#[test]
fn nor_do_those_of_large_meshes() {
    if std::env::var_os("COMOVE_SLOW_TESTS").is_none() {
        return println!("skipped: COMOVE_SLOW_TESTS is not set");
    }
    with_gpu(|gpu| {
        let mut noise = Noise::new(29);
        let usual = Shape::whole([1; 3], false).in_hand;
        let meshes = [[3, 3, 3], [5, 5, 5], [3, 4, 11], [2, 2, 16], [8, 5, 3], [6, 6, 6], [8, 8, 8]];
        let meshes = meshes.map(|groups| (groups, BOTH));
        let (ranks, in_hand) = ([1, 2, 3, 4, 8], [usual, usual / 8]);
        shares_have_the_bits_of_the_whole::<f32>(gpu, &mut noise, &meshes, &ranks, &in_hand);
        shares_have_the_bits_of_the_whole::<f64>(gpu, &mut noise, &[([7, 3, 8], BOTH)], &ranks, &in_hand);
        // a table of an isolated one would take long
        let large = [[16, 16, 16], [12, 16, 20], [32, 32, 32]].map(|groups| (groups, &[false][..]));
        shares_have_the_bits_of_the_whole::<f32>(gpu, &mut noise, &large, &[2, 4], &[usual]);
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
            whole_solve(device, Shape::whole(groups, isolated), &slots, &source)
        };
        let (on_cpu, on_gpu) = (solve(&cpu), solve(gpu));
        let largest = on_cpu.iter().map(|v| v.as_f64().abs()).fold(0.0, f64::max);
        for (n, (a, b)) in on_cpu.iter().zip(&on_gpu).enumerate() {
            let (group, cell) = (n / GROUP_CELLS, n % GROUP_CELLS);
            let error = (a.as_f64() - b.as_f64()).abs();
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
        println!("{}", crate::device::cuda::cufft::class());
        let mut noise = Noise::new(26);
        transforms_agree::<f32>(gpu, &mut noise, 1.2e-7, "single");
        transforms_agree::<f64>(gpu, &mut noise, 1e-13, "double");
    });
}
