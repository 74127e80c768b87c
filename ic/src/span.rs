//! Cells along a periodic axis.

use std::ops::Range;

/// Successive cells along an axis of a mesh that fills the box, also through its face.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Span {
    /// The first cell.
    pub first: usize,
    /// Number of cells.
    pub count: usize,
    /// Cells of the whole axis.
    pub of: usize,
}

impl Span {
    /// All cells of an axis.
    pub(crate) fn whole(of: usize) -> Self {
        Self { first: 0, count: of, of }
    }

    /// From a cell to another one, which may lie beyond the faces; at most the whole axis.
    pub(crate) fn new(first: i64, last: i64, of: usize) -> Self {
        let count = (last - first + 1) as usize;
        if count >= of {
            return Self::whole(of);
        }
        Self { first: first.rem_euclid(of as i64) as usize, count, of }
    }

    /// Number of cells in all regions together.
    pub(crate) fn cells_of(regions: &[[Self; 3]]) -> u64 {
        regions.iter().map(|region| region.iter().map(|span| span.count as u64).product::<u64>()).sum()
    }

    fn last(self) -> i64 {
        (self.first + self.count) as i64 - 1
    }

    /// Adds `by` cells on either side.
    pub(crate) fn padded(self, by: usize) -> Self {
        Self::new(self.first as i64 - by as i64, self.last() + by as i64, self.of)
    }

    /// Cells of the next coarser lattice that share volume with the span.
    pub(crate) fn parents(self) -> Self {
        Self::new(self.first as i64 / 2, self.last() / 2, self.of / 2)
    }

    /// Cells of the next finer lattice inside the span.
    pub(crate) fn children(self) -> Self {
        Self { first: 2 * self.first, count: 2 * self.count, of: 2 * self.of }
    }

    /// Blocks of `unit` cells that share cells with the span.
    pub(crate) fn in_blocks(self, unit: usize) -> Self {
        let (first, last) = (self.first / unit * unit, self.last() as usize / unit * unit + unit - 1);
        Self::new(first as i64, last as i64, self.of)
    }

    /// True if the span contains `cell`.
    pub(crate) fn holds(self, cell: usize) -> bool {
        self.of > 0 && (cell + self.of - self.first) % self.of < self.count
    }

    /// True if the span contains all cells of `other`.
    pub(crate) fn covers(self, other: Self) -> bool {
        self.count == self.of || (other.first + self.of - self.first) % self.of + other.count <= self.count
    }

    /// Number of cells of the span before a cell of the axis.
    fn before(self, cell: usize) -> usize {
        let wrapped = (self.first + self.count).saturating_sub(self.of);
        cell.min(wrapped) + cell.saturating_sub(self.first).min(self.count - wrapped)
    }

    /// Position of a cell in the span, whose cells are counted in ascending order.
    pub(crate) fn position(self, cell: usize) -> Option<usize> {
        self.holds(cell).then(|| self.before(cell))
    }

    /// Positions in the span of the cells of a range of the axis.
    pub(crate) fn positions(self, cells: &Range<usize>) -> Range<usize> {
        self.before(cells.start)..self.before(cells.end)
    }

    /// Cell at a position of the span.
    pub fn cell(self, position: usize) -> usize {
        let wrapped = (self.first + self.count).saturating_sub(self.of);
        if position < wrapped { position } else { self.first + position - wrapped }
    }

    /// Distance in cells from the first cell to the one at a position, around the axis.
    pub(crate) fn steps_to(self, position: usize) -> usize {
        (self.cell(position) + self.of - self.first) % self.of
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_ascend_also_through_the_face() {
        for (first, count, of) in [(3, 4, 16), (12, 7, 16), (0, 16, 16), (9, 7, 16)] {
            let span = Span { first, count, of };
            let cells: Vec<usize> = (0..of).filter(|&cell| span.holds(cell)).collect();
            assert_eq!((0..count).map(|position| span.cell(position)).collect::<Vec<_>>(), cells);
            for (position, &cell) in cells.iter().enumerate() {
                assert_eq!((span.position(cell), (first + span.steps_to(position)) % of), (Some(position), cell));
            }
            for (start, end) in [(0, of), (4, 11), (2, 3), (13, 16)] {
                let expected = cells.iter().filter(|cell| (start..end).contains(*cell)).count();
                let found = span.positions(&(start..end));
                assert_eq!(found.len(), expected);
                assert!(found.clone().all(|position| (start..end).contains(&span.cell(position))));
            }
        }
        let blocks = |first, count| Span { first, count, of: 32 }.in_blocks(8);
        assert_eq!(blocks(3, 6), Span { first: 0, count: 16, of: 32 });
        assert_eq!(blocks(30, 4), Span { first: 24, count: 16, of: 32 });
        assert_eq!(blocks(5, 27), Span { first: 0, count: 32, of: 32 });
    }
}
