//! How ranks share a root mesh.
//!
//! While lines along x and y are transformed, a rank holds whole planes, in *layers* of 16: those of its groups. While
//! lines along z are, it holds rows of wave numbers along y of all planes, in *bands* of 16. Between the two move
//! *slabs*: the rows of one band in one plane, `[16, modes]`.
//!
//! The block that one rank sends another is `[bands of the receiver, planes of the sender, 16, modes]`. So all that a
//! rank sends is `[bands, planes of its own, 16, modes]`, whatever the number of ranks.

use crate::layout::GROUP;
use std::ops::Range;

/// Bytes of a mesh that a GPU has in hand at once, unless one layer or band is larger: they stay in its cache, and in the
/// same place where a rank has no more of a mesh than that. Four layers of a root of 256³ cells.
const IN_HAND: usize = 36 << 20;

/// Lengths of the mesh and of its transforms, and the rank in hand.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) groups: [usize; 3],
    pub(super) isolated: bool,
    pub(super) rank: usize,
    pub(super) ranks: usize,
    /// [`IN_HAND`]; tests have less.
    #[cfg_attr(not(feature = "cuda"), allow(dead_code, reason = "only a GPU transforms several parts at once"))]
    pub(super) in_hand: usize,
}

#[cfg_attr(not(feature = "cuda"), allow(dead_code, reason = "only a GPU transforms several parts at once"))]
impl Shape {
    /// # Panics
    /// If there is no such rank.
    pub(super) fn new(groups: [usize; 3], isolated: bool, rank: usize, ranks: usize) -> Self {
        assert!(rank < ranks, "rank {rank} of {ranks}");
        Self { groups, isolated, rank, ranks, in_hand: IN_HAND }
    }

    /// For one rank that has all of it.
    pub(super) fn whole(groups: [usize; 3], isolated: bool) -> Self {
        Self::new(groups, isolated, 0, 1)
    }

    /// Whether one rank has all of it.
    pub(super) fn is_alone(&self) -> bool {
        self.ranks == 1
    }

    /// Cells along x, y, z.
    pub(super) fn cells(&self) -> [usize; 3] {
        self.groups.map(|n| n * GROUP)
    }

    /// Lengths of the transforms: the cells, or if isolated twice as many, the second half zero.
    pub(super) fn lengths(&self) -> [usize; 3] {
        self.cells().map(|n| if self.isolated { 2 * n } else { n })
    }

    /// Modes along x: the others follow by symmetry.
    pub(super) fn modes(&self) -> usize {
        self.lengths()[0] / 2 + 1
    }

    /// Modes of a slab.
    pub(super) fn slab(&self) -> usize {
        GROUP * self.modes()
    }

    /// The layers of a rank.
    pub(super) fn layers(&self, rank: usize) -> Range<usize> {
        part(self.groups[2], rank, self.ranks)
    }

    /// Groups in the layers of the rank in hand.
    pub(super) fn own_groups(&self) -> usize {
        self.layers(self.rank).len() * self.groups[0] * self.groups[1]
    }

    /// Planes in the layers of a rank: none of the padding, which is made where lines along z are transformed.
    pub(super) fn planes(&self, rank: usize) -> Range<usize> {
        let layers = self.layers(rank);
        layers.start * GROUP..layers.end * GROUP
    }

    /// Bands of all ranks.
    pub(super) fn all_bands(&self) -> usize {
        self.lengths()[1] / GROUP
    }

    /// The bands of a rank.
    pub(super) fn bands(&self, rank: usize) -> Range<usize> {
        part(self.all_bands(), rank, self.ranks)
    }

    /// Wave numbers along y of the rank in hand.
    pub(super) fn wave_numbers(&self) -> Range<usize> {
        let bands = self.bands(self.rank);
        bands.start * GROUP..bands.end * GROUP
    }

    /// Values of a layer, `[16, y, 2 · modes]`.
    pub(super) fn layer_values(&self) -> usize {
        2 * GROUP * self.lengths()[1] * self.modes()
    }

    /// Values of a band's lines along z, `[z, 16, modes, 2]`.
    pub(super) fn band_values(&self) -> usize {
        2 * self.lengths()[2] * self.slab()
    }

    /// Layers of the rank in hand that are transformed at once, if their plans allow it.
    pub(super) fn layers_at_once(&self) -> usize {
        self.at_once(self.layers(self.rank).len(), self.layer_values())
    }

    /// Its bands likewise.
    pub(super) fn bands_at_once(&self) -> usize {
        self.at_once(self.bands(self.rank).len(), self.band_values())
    }

    /// As few parts of n things as can be, as equal as they can be.
    fn at_once(&self, n: usize, values: usize) -> usize {
        let most = (self.in_hand / (values * size_of::<f64>())).max(1);
        n.div_ceil(n.div_ceil(most).max(1))
    }

    /// Values of so much of a mesh.
    pub(super) fn values_at_once(&self) -> usize {
        (self.layers_at_once() * self.layer_values()).max(self.bands_at_once() * self.band_values())
    }

    /// Values of the block that rank `from` sends rank `to`.
    pub(super) fn block_values(&self, from: usize, to: usize) -> usize {
        2 * self.bands(to).len() * self.planes(from).len() * self.slab()
    }

    /// Values of all blocks that the rank in hand sends.
    pub(super) fn sent_values(&self) -> usize {
        2 * self.all_bands() * self.planes(self.rank).len() * self.slab()
    }

    /// Values of all blocks that the rank in hand receives.
    pub(super) fn received_values(&self) -> usize {
        2 * self.bands(self.rank).len() * self.cells()[2] * self.slab()
    }

    /// Band and plane of each slab of the blocks that are sent, the planes counted from the rank's first.
    pub(super) fn sent_slabs(&self) -> impl Iterator<Item = [usize; 2]> {
        let planes = self.planes(self.rank).len();
        (0..self.all_bands()).flat_map(move |band| (0..planes).map(move |plane| [band, plane]))
    }

    /// Band and plane of each slab of the blocks that are received, the bands counted from the rank's first.
    pub(super) fn received_slabs(&self) -> impl Iterator<Item = [usize; 2]> {
        let (shape, bands) = (*self, self.bands(self.rank).len());
        (0..self.ranks)
            .flat_map(move |from| (0..bands).flat_map(move |band| shape.planes(from).map(move |plane| [band, plane])))
    }
}

/// The part of a rank when `n` things are spread evenly: the first ranks have one more, or the only ones.
fn part(n: usize, rank: usize, ranks: usize) -> Range<usize> {
    assert!(rank < ranks, "rank {rank} of {ranks}");
    let start = |rank: usize| rank * (n / ranks) + rank.min(n % ranks);
    start(rank)..start(rank + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_follow_each_other() {
        for (n, ranks, expected) in [(8, 3, vec![3, 3, 2]), (2, 4, vec![1, 1, 0, 0]), (4, 4, vec![1; 4])] {
            let parts: Vec<_> = (0..ranks).map(|rank| part(n, rank, ranks)).collect();
            assert_eq!(parts.iter().map(Range::len).collect::<Vec<_>>(), expected);
            assert!(parts.iter().cloned().flatten().eq(0..n), "{parts:?}");
        }
    }

    #[test]
    fn parts_in_hand_are_about_equal() {
        let shape = Shape { in_hand: 6 * 16 * 48 * 50 * 8, ..Shape::whole([3, 3, 11], false) };
        assert_eq!(shape.layer_values(), 16 * 48 * 50);
        assert_eq!((shape.layers_at_once(), shape.bands_at_once()), (6, 1));
        assert_eq!(Shape { in_hand: 5 * 16 * 48 * 50 * 8, ..shape }.layers_at_once(), 4);
        assert_eq!(Shape { in_hand: 1, ..shape }.layers_at_once(), 1);
        assert_eq!(Shape { rank: 11, ranks: 12, ..shape }.layers_at_once(), 0);
    }

    /// What all ranks send is the mesh of modes, and as much as they receive; a rank's slabs are each its own.
    #[test]
    fn blocks_are_the_mesh() {
        for (isolated, ranks) in [(false, 1), (true, 3), (false, 5)] {
            let shape = |rank| Shape::new([2, 3, 4], isolated, rank, ranks);
            let [lx, ly, _] = shape(0).lengths();
            let all = 2 * (lx / 2 + 1) * ly * 64;
            assert_eq!((0..ranks).map(|rank| shape(rank).sent_values()).sum::<usize>(), all);
            for rank in 0..ranks {
                let own = shape(rank);
                assert_eq!((0..ranks).map(|to| own.block_values(rank, to)).sum::<usize>(), own.sent_values());
                assert_eq!((0..ranks).map(|from| own.block_values(from, rank)).sum::<usize>(), own.received_values());
                let mut slabs: Vec<_> = own.received_slabs().collect();
                slabs.sort_unstable();
                let bands = own.bands(rank).len();
                assert!(slabs.into_iter().eq((0..bands).flat_map(|band| (0..64).map(move |plane| [band, plane]))));
                assert_eq!(2 * own.sent_slabs().count() * own.slab(), own.sent_values());
            }
        }
    }
}
