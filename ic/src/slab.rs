//! Which planes of a mesh each rank has.

use crate::ordered_sum::BLOCK;
use std::ops::Range;

/// A rank's part of `n` things in a row that are dealt out `unit` at a time: nobody has more than one unit more than
/// another, and with more ranks than units the last have none.
pub(crate) fn part(n: usize, unit: usize, rank: usize, ranks: usize) -> Range<usize> {
    let units = n.div_ceil(unit);
    let begin = |rank: usize| (units / ranks * rank + rank.min(units % ranks)) * unit;
    begin(rank).min(n)..begin(rank + 1).min(n)
}

/// The planes along z of a mesh of `cells` that a rank makes or loads: as few at a time as sums over the mesh allow
/// ([`BLOCK`]).
pub(crate) fn planes(cells: [usize; 3], rank: usize, ranks: usize) -> Range<usize> {
    let common = (cells[0] * cells[1]).trailing_zeros().min(BLOCK.trailing_zeros());
    part(cells[2], BLOCK >> common, rank, ranks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_follow_each_other_and_are_even() {
        for (n, unit) in [(10, 1), (10, 4), (48, 16), (7, 100)] {
            for ranks in 1..12 {
                let parts: Vec<_> = (0..ranks).map(|rank| part(n, unit, rank, ranks)).collect();
                assert!(parts[0].start == 0 && parts[ranks - 1].end == n);
                assert!(parts.windows(2).all(|two| two[0].end == two[1].start && two[0].len() >= two[1].len()));
                assert!(parts.iter().all(|part| part.start.is_multiple_of(unit) || part.start == n), "{n} by {unit}");
                assert!(parts[0].len() <= parts[ranks - 1].len().next_multiple_of(unit) + unit);
            }
        }
    }

    /// Where planes hold no whole number of blocks, so many go together that they do.
    #[test]
    fn blocks_of_sums_do_not_cross_slabs() {
        for (cells, ranks) in [([16, 16, 48], 5), ([32, 16, 48], 3), ([64; 3], 7), ([4, 6, 2], 2), ([48, 80, 32], 4)] {
            for rank in 0..ranks {
                let Range { start, end } = planes(cells, rank, ranks);
                let whole = |plane: usize| plane == cells[2] || (plane * cells[0] * cells[1]).is_multiple_of(BLOCK);
                assert!(whole(start) && whole(end), "{cells:?} on {ranks}");
            }
        }
        assert_eq!(planes([16, 16, 48], 1, 5), 12..24);
        assert_eq!(planes([32; 3], 1, 5), 7..14);
    }
}
