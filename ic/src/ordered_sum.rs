//! Sums of real numbers with bits that depend neither on the number of threads nor on that of ranks: of blocks with fixed
//! borders, then of blocks of these.

use comove_sim::parallel::Communicator;
use comove_sim::parallel::FIRST;
use rayon::prelude::*;

/// Terms of a block.
pub(crate) const BLOCK: usize = 1024;

/// Σ f(i) over `count` indices.
pub(crate) fn ordered_sum(count: usize, f: impl Fn(usize) -> f64 + Sync) -> f64 {
    united(block_sums(count, f))
}

/// The same over the indices of all ranks, each of which has `count` that follow those of the rank before: whole blocks,
/// but for the last ones. Collective.
pub(crate) fn ordered_sum_of_ranks(communicator: &Communicator, count: usize, f: impl Fn(usize) -> f64 + Sync) -> f64 {
    let own = block_sums(count, f);
    let of_ranks = communicator.gather(FIRST, bytemuck::cast_slice(&own).to_vec());
    let sum = of_ranks.map(|sums| united(sums.iter().flat_map(|sums| bytemuck::pod_collect_to_vec(sums)).collect()));
    of_first(communicator, sum.as_slice())[0]
}

/// Numbers of the first rank for all: collective.
pub(crate) fn of_first(communicator: &Communicator, numbers: &[f64]) -> Vec<f64> {
    bytemuck::pod_collect_to_vec(&communicator.broadcast(FIRST, bytemuck::cast_slice(numbers).to_vec()))
}

fn block_sums(count: usize, f: impl Fn(usize) -> f64 + Sync) -> Vec<f64> {
    let block = |b: usize| (b * BLOCK..count.min((b + 1) * BLOCK)).map(&f).sum();
    (0..count.div_ceil(BLOCK)).into_par_iter().map(block).collect()
}

fn united(mut sums: Vec<f64>) -> f64 {
    while sums.len() > 1 {
        sums = sums.chunks(BLOCK).map(|part| part.iter().sum()).collect();
    }
    sums.first().copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use comove_sim::parallel::on_ranks;

    #[test]
    fn ordered_sums_are_complete() {
        let n = 1024 * 1024 + 7;
        assert_eq!(ordered_sum(n, |i| i as f64), (n as f64 - 1.0) * n as f64 / 2.0);
        assert_eq!(ordered_sum(0, |_| 1.0), 0.0);
    }

    #[test]
    fn ranks_leave_the_bits_alone() {
        let n = 9 * BLOCK + 100;
        let term = |i: usize| (i as f64 * 0.37).sin() / (i + 1) as f64;
        let alone = ordered_sum(n, term);
        for ranks in [1, 2, 3, 5, 17] {
            let sums = on_ranks(ranks, |communicator| {
                let own = crate::slab::part(n, BLOCK, communicator.rank(), ranks);
                ordered_sum_of_ranks(&communicator, own.len(), |i| term(own.start + i))
            });
            assert!(sums.iter().all(|sum| sum.to_bits() == alone.to_bits()), "{ranks} ranks");
        }
        assert!((0..n).map(term).sum::<f64>().to_bits() != alone.to_bits(), "the test needs a sum that order decides");
    }
}
