use super::*;
use crate::operations::particles::{hash, sort};
use crate::testing::{Mesh, Noise, with_gpu};

fn columns(count: usize, noise: &mut Noise) -> [Vec<u32>; COLUMNS] {
    std::array::from_fn(|column| match column {
        6 => (0..count as u32).collect(),
        _ => (0..count).map(|_| (2f64.powi(31) * (noise.next() + 1.0)) as u32).collect(),
    })
}

/// A mesh of two levels, of which every third group is another rank's.
fn locator(mesh: &Mesh) -> GroupLocator {
    let all = mesh.locator();
    let own = |slot: usize| !slot.is_multiple_of(3);
    let mut next = 1;
    let mut numbers = vec![0; mesh.group_count()];
    let mut first = vec![1];
    for groups in all.first.windows(2) {
        for slot in (groups[0] as usize..groups[1] as usize).filter(|&slot| own(slot)) {
            numbers[slot] = next;
            next += 1;
        }
        next += 1;
        first.push(next);
    }
    GroupLocator { numbers: numbers.into(), first: first.into(), ..all }
}

/// What both devices find and list.
fn found(device: &Device) -> Vec<u64> {
    let mut noise = Noise::new(11);
    let finer = (0..32).map(|n| [n % 4, n / 4 % 4, n / 16]).collect();
    let mesh = Mesh::new([3, 2, 2], true).with_level(finer);
    let (locator, columns) = (locator(&mesh), columns(20_000, &mut noise));
    let mut particles = Particles::from_host(device, columns.clone()).unwrap();
    let all = foreign(device, &locator, &particles, 0..20_000, 0);
    let finest = foreign(device, &locator, &particles, 5_000..20_000, 1);
    let home = |n: usize| locator.home([0, 1, 2].map(|axis| columns[axis][n]));
    let expected = |range: Range<usize>, from: usize| {
        let leaves = |n: &usize| home(*n).1 >= from && home(*n).0 % 3 == 0;
        range.filter(leaves).map(|n| n as u32).collect::<Vec<u32>>()
    };
    assert!(all == expected(0..20_000, 0) && finest == expected(5_000..20_000, 1));
    assert!(all.len() > 5_000 && !finest.is_empty());

    let counts = count_in_groups(device, &locator, &particles);
    let own: usize = counts.iter().map(|&n| n as usize).sum();
    assert_eq!((counts.len(), own + all.len()), (locator.groups() - 1, 20_000));
    let mut expected = vec![0; counts.len()];
    let number = |n: usize| locator.numbers[home(n).0 as usize] as usize;
    (0..20_000).map(number).filter(|&number| number > 0).for_each(|number| expected[number - 1] += 1);
    assert_eq!(counts, expected);

    // those that leave are overwritten by the last ones
    let before = hash(device, &particles);
    let gone = take(device, &particles, &all);
    assert!(gone[6] == all && gone[2] == all.iter().map(|&n| columns[2][n as usize]).collect::<Vec<u32>>());
    let count = 20_000 - all.len();
    let holes: Vec<u32> = all.iter().copied().filter(|&n| (n as usize) < count).collect();
    let last: Vec<u32> = (count as u32..20_000).filter(|n| all.binary_search(n).is_err()).collect();
    let moved = take(device, &particles, &last);
    put(device, &mut particles, &holes, moved.each_ref().map(Vec::as_slice));
    particles.resize(device, count).unwrap();
    assert!(foreign(device, &locator, &particles, 0..count, 0).is_empty());
    let firsts = sort(device, &locator, &mut particles, 0, 0);
    assert_eq!((firsts[0], firsts[2], particles.len(), particles.capacity()), (0, count, count, 20_000));
    // and come back
    particles.resize(device, 20_000).unwrap();
    let places: Vec<u32> = (count as u32..20_000).collect();
    put(device, &mut particles, &places, gone.each_ref().map(Vec::as_slice));
    assert_eq!(hash(device, &particles), before);
    particles.resize(device, 30_000).unwrap();
    assert_eq!(particles.capacity(), 33_750);

    counts.into_iter().map(u64::from).collect()
}

#[test]
fn particles_and_weights_change_hands() {
    let cpu = found(&Device::cpu(2).unwrap());
    with_gpu(|gpu| assert!(found(gpu) == cpu));
}
