//! What a message is made of: boxes of cells, or rows of an array. Checked once, when a list is made.

use crate::device::device_table::DeviceTable;
use crate::layout::{GROUP, PATCH, octant_origin};

/// A box of cells of a group, and where a message holds them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Piece {
    /// Slot of the group.
    pub slot: u32,
    /// First cell along x, y and z.
    pub first: [u8; 3],
    /// Cells along x, y and z.
    pub cells: [u8; 3],
    /// Cells of the message that precede the piece, of all pieces together. A cell of `fields` fields is so many values.
    pub at: u32,
}

impl Piece {
    /// All cells of the group in a slot.
    pub fn whole(slot: u32, at: u32) -> Self {
        Self { slot, first: [0; 3], cells: [GROUP as u8; 3], at }
    }

    /// The cells of one of its patches.
    pub fn patch(slot: u32, octant: usize, at: u32) -> Self {
        Self { slot, first: octant_origin(octant).map(|first| first as u8), cells: [PATCH as u8; 3], at }
    }

    /// Cells in the box.
    pub fn cell_count(&self) -> usize {
        self.cells.iter().map(|&cells| usize::from(cells)).product()
    }

    /// Where the next piece of the message may begin, in cells.
    pub fn end(&self) -> usize {
        self.at as usize + self.cell_count()
    }

    /// Whether it shares cells with another one of its slot.
    fn overlaps(&self, other: &Self) -> bool {
        let reaches = |a: usize, b: &Self, c: &Self| b.first[a] < c.first[a] + c.cells[a];
        (0..3).all(|a| reaches(a, self, other) && reaches(a, other, self))
    }
}

/// Pieces of one side of a message.
#[derive(Clone, Debug, Default)]
pub struct Pieces {
    pub(super) list: DeviceTable<Piece>,
    /// Slots that a pool has to have.
    pub(super) slots: usize,
    /// Cells that a message has to have.
    pub(super) cells: usize,
}

impl Pieces {
    /// Those to pack, in the order of the message. A slot may occur in several.
    ///
    /// # Panics
    /// If a piece is not part of a group, or begins before the one before it ends.
    pub fn to_pack(pieces: Vec<Piece>) -> Self {
        let mut end = 0;
        for (n, piece) in pieces.iter().enumerate() {
            assert!(piece.at as usize >= end, "piece {n} of a message begins at {}, before cell {end}", piece.at);
            end = piece.end();
        }
        Self::checked(pieces)
    }

    /// Those to unpack, in any order, but those of a slot together.
    ///
    /// # Panics
    /// If a piece is not part of a group, if the pieces of a slot overlap, or if there are others between them.
    pub fn to_unpack(pieces: Vec<Piece>) -> Self {
        let slots = pieces.iter().map(|piece| piece.slot as usize + 1).max().unwrap_or(0);
        let mut named = vec![false; slots];
        for of_slot in by_slot(&pieces) {
            let slot = of_slot[0].slot;
            assert!(!std::mem::replace(&mut named[slot as usize], true), "the pieces of slot {slot} are not together");
            let apart = |(n, piece): (usize, &Piece)| of_slot[..n].iter().all(|other| !piece.overlaps(other));
            assert!(of_slot.iter().enumerate().all(apart), "pieces of slot {slot} overlap");
        }
        Self::checked(pieces)
    }

    /// Pieces to add, in any order; they may overlap.
    ///
    /// # Panics
    /// If a piece is not part of a group.
    pub fn to_add(pieces: Vec<Piece>) -> Self {
        Self::checked(pieces)
    }

    fn checked(pieces: Vec<Piece>) -> Self {
        for (n, piece) in pieces.iter().enumerate() {
            let inside = |axis| usize::from(piece.first[axis]) + usize::from(piece.cells[axis]) <= GROUP;
            assert!((0..3).all(inside), "piece {n} is not part of a group: {piece:?}");
        }
        let most = |of: fn(&Piece) -> usize| pieces.iter().map(of).max().unwrap_or(0);
        Self { slots: most(|piece| piece.slot as usize + 1), cells: most(Piece::end), list: pieces.into() }
    }
}

/// Runs of pieces of one slot.
pub(super) fn by_slot(pieces: &[Piece]) -> impl Iterator<Item = &[Piece]> {
    pieces.chunk_by(|a, b| a.slot == b.slot)
}

/// Rows of an array (slots of a pool, for one) of one side of a message, in the order of the message.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    pub(super) list: DeviceTable<u32>,
    /// Rows that an array has to have.
    pub(super) rows: usize,
}

impl Rows {
    /// Those to pack; one may occur several times.
    pub fn to_pack(rows: Vec<u32>) -> Self {
        Self { rows: rows.iter().max().map_or(0, |&last| last as usize + 1), list: rows.into() }
    }

    /// Those to unpack.
    ///
    /// # Panics
    /// If one is named twice.
    pub fn to_unpack(rows: Vec<u32>) -> Self {
        let rows = Self::to_pack(rows);
        let mut named = vec![false; rows.rows];
        for &row in &rows.list {
            assert!(!std::mem::replace(&mut named[row as usize], true), "row {row} is filled twice");
        }
        rows
    }

    /// The rows.
    pub fn list(&self) -> &DeviceTable<u32> {
        &self.list
    }
}
