//! What operations of a communicator must give, checked by each rank: a thread of the unit tests or, in
//! `examples/mpi_check.rs`, a process of MPI.

use super::Communicator;

/// Longer than the pieces in which MPI sends.
const LONG: usize = (1 << 25) + 3;

pub(crate) fn all(ranks: &Communicator) {
    exchanges(ranks);
    gathers(ranks);
    broadcasts(ranks);
    reductions(ranks);
    messages_of_several_tags(ranks);
    messages_in_order(ranks);
    message_of(ranks, LONG);
    if ranks.size() > 1 {
        gather_all_of(ranks, LONG);
    }
}

/// A message of this length from the first rank to the last, by each operation that may send it.
pub(crate) fn message_of(ranks: &Communicator, length: usize) {
    let (rank, last) = (ranks.rank(), ranks.size() - 1);
    let sent = || text(0, last, length);
    let check = |bytes: &[u8]| assert!(bytes == sent(), "{length} bytes from rank 0 to rank {rank} came as others");
    let to = (0..ranks.size()).map(|to| if rank == 0 && to == last { sent() } else { Vec::new() }).collect();
    for (from, bytes) in ranks.exchange(to).into_iter().enumerate() {
        if from == 0 && rank == last { check(&bytes) } else { assert!(bytes.is_empty()) }
    }
    check(&ranks.broadcast(0, if rank == 0 { sent() } else { Vec::new() }));
    let gathered = ranks.gather(last, if rank == 0 { sent() } else { Vec::new() });
    if let Some(gathered) = gathered {
        check(&gathered[0]);
        assert!(gathered[1..].iter().all(Vec::is_empty));
    }
    if last > 0 {
        let sends = if rank == 0 { vec![(last, sent())] } else { Vec::new() };
        let receives: &[_] = if rank == last { &[(0, length)] } else { &[] };
        communicate(ranks, 0, sends, receives, || ()).0.iter().for_each(|bytes| check(bytes));
    }
}

/// Bytes of this length from the last rank and few from the others.
fn gather_all_of(ranks: &Communicator, length: usize) {
    let last = ranks.size() - 1;
    let length_of = |rank| if rank == last { length } else { rank };
    let all = ranks.gather_all(&text(ranks.rank(), 0, length_of(ranks.rank())));
    assert!(all.iter().enumerate().all(|(from, bytes)| *bytes == text(from, 0, length_of(from))));
}

fn exchanges(ranks: &Communicator) {
    let rank = ranks.rank();
    for round in 0..20 {
        let length = |from: usize, to: usize| (from * 37 + to * 11 + round * 5) % 7 * round;
        let to = (0..ranks.size()).map(|to| text(rank, to, length(rank, to))).collect();
        for (from, bytes) in ranks.exchange(to).into_iter().enumerate() {
            assert_eq!(bytes, text(from, rank, length(from, rank)), "exchange {round}, from {from} to {rank}");
        }
    }
    assert!(ranks.exchange(vec![Vec::new(); ranks.size()]).iter().all(Vec::is_empty));
}

fn gathers(ranks: &Communicator) {
    let rank = ranks.rank();
    for scale in [0, 1, 1000] {
        let expected: Vec<Vec<u8>> = (0..ranks.size()).map(|from| text(from, scale, from * scale)).collect();
        let own = || text(rank, scale, rank * scale);
        assert_eq!(ranks.gather_all(&own()), expected);
        for root in 0..ranks.size() {
            assert_eq!(ranks.gather(root, own()), (rank == root).then(|| expected.clone()), "gather at {root}");
        }
    }
}

fn broadcasts(ranks: &Communicator) {
    for root in 0..ranks.size() {
        for length in [0, 1, 5000] {
            let own = if ranks.rank() == root { text(root, 1, length) } else { Vec::new() };
            assert_eq!(ranks.broadcast(root, own), text(root, 1, length), "broadcast from {root}");
        }
    }
}

fn reductions(ranks: &Communicator) {
    let (rank, size) = (ranks.rank(), ranks.size());

    let words = |rank: usize| (0..1000).map(move |i| random(rank, i)); // their sums leave 64 bits
    let mut sums: Vec<u64> = words(rank).collect();
    ranks.sum(&mut sums);
    let expected = |i| (0..size).fold(0u64, |sum, rank| sum.wrapping_add(random(rank, i)));
    assert!(sums.iter().copied().eq((0..1000).map(expected)));
    ranks.sum(&mut []);

    let edges = [i128::MIN, i128::MAX, -1, 1, 0, u64::MAX.into(), -i128::from(u64::MAX), 1 << 96, -(1 << 32)];
    let wide = |rank: usize, i: u64| match edges.get(i as usize) {
        Some(&edge) => edge.wrapping_mul(1 + rank as i128 % 2),
        None => i128::from(random(rank, i)) << 64 | i128::from(random(rank, i + 1)),
    };
    let mut sums: Vec<i128> = (0..1000).map(|i| wide(rank, i)).collect();
    ranks.sum_wide(&mut sums);
    let expected = |i| (0..size).fold(0i128, |sum, rank| sum.wrapping_add(wide(rank, i)));
    assert!(sums.iter().copied().eq((0..1000).map(expected)));

    for largest in 0..size {
        let of = |high: f64, low: f64| ranks.max(if rank == largest { high } else { low });
        let pairs = [(2.5, 1.0), (-1.0, -2.0), (1e-300, -1e300), (f64::INFINITY, f64::MAX), (0.0, -0.0)];
        for (high, low) in pairs.into_iter().chain([(-0.0, -1.0), (-1.0, f64::NEG_INFINITY)]) {
            assert_eq!(of(high, low).to_bits(), high.to_bits(), "the largest of {high} and {low}");
        }
        assert!(of(f64::NAN, f64::INFINITY).is_nan() && of(-f64::NAN, 0.0).is_nan());
        assert!(ranks.any(rank == largest));
        assert_eq!(ranks.any(rank != largest), size > 1);
    }
    assert!(!ranks.any(false) && ranks.any(true));
}

/// Each rank with its neighbours of a ring, under several tags at once, and a reduction while they are on their way.
fn messages_of_several_tags(ranks: &Communicator) {
    for _ in 0..10 {
        assert_eq!(messages_of(ranks, &[2, 0, 67]), ranks.size() as u64, "the result of what is done meanwhile");
    }
}

/// The messages of these tags, received from the last tag to the first; the number of ranks.
fn messages_of(ranks: &Communicator, tags: &[u32]) -> u64 {
    let Some((&tag, others)) = tags.split_first() else {
        let mut sum = [1];
        ranks.sum(&mut sum);
        return sum[0];
    };
    let (rank, size) = (ranks.rank(), ranks.size());
    let peers = if size == 1 { vec![] } else { vec![(rank + 1) % size, (rank + size - 1) % size] };
    let message = |from, to| text(from + tag as usize, to, (from + 2 * to) * 1000 * tag as usize); // empty ones of tag 0
    let sends = peers.iter().map(|&to| (to, message(rank, to))).collect();
    let expected: Vec<_> = peers.iter().rev().map(|&from| message(from, rank)).collect();
    let receives: Vec<_> = peers.iter().rev().zip(&expected).map(|(&from, bytes)| (from, bytes.len())).collect();
    let (received, sum) = communicate(ranks, tag, sends, &receives, || messages_of(ranks, others));
    assert!(received == expected, "tag {tag} at rank {rank}");
    sum
}

/// Messages of one tag, from each rank to each other, many of them.
fn messages_in_order(ranks: &Communicator) {
    let (rank, tag) = (ranks.rank(), Communicator::TAGS - 1);
    let others = || (0..ranks.size()).filter(|&peer| peer != rank);
    let sends = (0..50).flat_map(|n| others().map(move |to| (to, text(rank, n, 100 * n)))).collect();
    let receives: Vec<_> = others().flat_map(|from| (0..50).map(move |n| (from, 100 * n))).collect();
    let (received, ()) = communicate(ranks, tag, sends, &receives, || ());
    let expected = others().flat_map(|from| (0..50).map(move |n| text(from, n, 100 * n)));
    assert!(received.into_iter().eq(expected), "messages of one tag at rank {rank}");
}

/// [`Communicator::communicate`] with messages that it makes room for itself.
pub(super) fn communicate<R>(
    ranks: &Communicator,
    tag: u32,
    sends: Vec<(usize, Vec<u8>)>,
    receives: &[(usize, usize)],
    meanwhile: impl FnOnce() -> R,
) -> (Vec<Vec<u8>>, R) {
    let mut received: Vec<Vec<u8>> = receives.iter().map(|&(_, length)| vec![0; length]).collect();
    let sends: Vec<(usize, &[u8])> = sends.iter().map(|(peer, bytes)| (*peer, bytes.as_slice())).collect();
    let places = receives.iter().zip(&mut received).map(|((peer, _), bytes)| (*peer, bytes.as_mut_slice()));
    let result = ranks.communicate(tag, &sends, &mut places.collect::<Vec<_>>(), meanwhile);
    (received, result)
}

/// Bytes that tell who sent them to whom, and where in the message they are.
fn text(from: usize, to: usize, length: usize) -> Vec<u8> {
    (0..length).map(|at| (at ^ at >> 8 ^ at >> 16 ^ at >> 24) as u8 ^ (from * 29 + to * 7) as u8).collect()
}

/// A word without pattern (splitmix).
fn random(rank: usize, i: u64) -> u64 {
    let mut word = (i * 64 + rank as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}
