//! Shares of a root solve against the whole, and transforms of a GPU against those of the host.

use super::*;
use crate::layout::GROUP_CELLS;
use crate::testing::Noise;
#[cfg(feature = "cuda")]
use crate::testing::{assert_same_bits, on_both, with_gpu};

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
        assert_eq!(share.bytes(), RootShare::bytes_for(device, groups, isolated, rank, ranks));
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

/// The potential of all groups in order, by one rank.
fn whole_solve<T: Real>(
    device: &Device,
    groups: [usize; 3],
    isolated: bool,
    slots: &Table<u32>,
    source: &Buffer<T>,
) -> Vec<T> {
    let mut potential = Buffer::zeros(device, source.len()).unwrap();
    let plan = if isolated { RootPoisson::isolated } else { RootPoisson::new };
    let mut root = plan(device, groups).unwrap();
    assert_eq!(root.bytes(), RootPoisson::bytes_for(device, groups, isolated));
    root.solve(device, slots, &PoissonSource::Field(source), 0.37, &mut potential);
    let potential = potential.to_host();
    slots.iter().flat_map(|&slot| &potential[slot as usize * GROUP_CELLS..][..GROUP_CELLS]).copied().collect()
}

fn shares_have_the_bits_of_the_whole<T: Real>(device: &Device, noise: &mut Noise, meshes: &[[usize; 3]]) {
    for &groups in meshes {
        let (slots, source) = noisy_root::<T>(groups, noise);
        let source = Buffer::from_host(device, source).unwrap();
        for isolated in [false, true] {
            let whole = whole_solve(device, groups, isolated, &slots, &source);
            for ranks in 1..=5 {
                let shared = shared_solve(device, groups, isolated, ranks, &slots, &source);
                let differing = whole.iter().zip(&shared).filter(|(a, b)| a.bits() != b.bits()).count();
                assert_eq!(shared.len(), whole.len());
                assert!(differing == 0, "{groups:?}, isolated {isolated}, {ranks} ranks: {differing} values differ");
            }
        }
    }
}

#[test]
fn bits_do_not_depend_on_the_number_of_ranks() {
    let device = Device::cpu(2).unwrap();
    let mut noise = Noise::new(27);
    shares_have_the_bits_of_the_whole::<f32>(&device, &mut noise, &[[2, 1, 3], [4, 4, 4]]);
    shares_have_the_bits_of_the_whole::<f64>(&device, &mut noise, &[[1, 3, 2], [2, 5, 4]]);
}
