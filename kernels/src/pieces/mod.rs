//! Pieces of groups packed to messages for other ranks, and unpacked from theirs.

mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
#[cfg(test)]
mod tests;

use crate::buffer::Buffer;
use crate::device::Device;
use crate::layout::{GROUP, GROUP_CELLS, PATCH, octant_origin};
use crate::real::Real;
use crate::table::Table;

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
        let meet = |a: usize, b: &Self, c: &Self| b.first[a] < c.first[a] + c.cells[a];
        (0..3).all(|a| meet(a, self, other) && meet(a, other, self))
    }
}

/// Packs pieces of groups to a message: of each piece `[fields, k, j, i]`, i fastest, from value `at * fields` on.
///
/// * `pool`: `[slots, fields, 16, 16, 16]`
/// * `pieces`: in the order of the message. A slot may occur in several.
/// * `message`: values that belong to no piece stay as they are.
///
/// # Panics
/// If a piece is not part of a group of the pool or does not fit the message, or if one begins before the one before it
/// ends.
pub fn pack<T: Real>(device: &Device, fields: usize, pool: &Buffer<T>, pieces: &Table<Piece>, message: &mut Buffer<T>) {
    assert_fit(fields, pool, pieces, message);
    let mut end = 0;
    for (n, piece) in pieces.iter().enumerate() {
        assert!(piece.at as usize >= end, "piece {n} of a message begins at {}, before cell {end}", piece.at);
        end = piece.end();
    }
    match device {
        Device::Cpu(cpu) => cpu.install(|| cpu::pack(fields, pool.host(), pieces, message.host_mut())),
        #[cfg(feature = "cuda")]
        Device::Cuda(device) => cuda::pack(device, fields, pool, pieces, message),
    }
}

/// Unpacks a message that [`pack`] has made: the inverse, with the slots of the groups here.
///
/// * `message`: of each piece `[fields, k, j, i]`, i fastest, from value `at * fields` on
/// * `pieces`: in any order, but those of a slot together; they do not overlap.
/// * `pool`: `[slots, fields, 16, 16, 16]`; cells that belong to no piece stay as they are.
///
/// # Panics
/// If a piece is not part of a group of the pool or does not fit the message, if the pieces of a slot overlap, or if there
/// are others between them.
pub fn unpack<T: Real>(
    device: &Device,
    fields: usize,
    message: &Buffer<T>,
    pieces: &Table<Piece>,
    pool: &mut Buffer<T>,
) {
    assert_fit(fields, pool, pieces, message);
    let mut named = vec![false; pool.len() / (fields * GROUP_CELLS)];
    for of_slot in by_slot(pieces) {
        let slot = of_slot[0].slot;
        assert!(!std::mem::replace(&mut named[slot as usize], true), "the pieces of slot {slot} are not together");
        let apart = |(n, piece): (usize, &Piece)| of_slot[..n].iter().all(|other| !piece.overlaps(other));
        assert!(of_slot.iter().enumerate().all(apart), "pieces of slot {slot} overlap");
    }
    match device {
        Device::Cpu(cpu) => cpu.install(|| cpu::unpack(fields, message.host(), pieces, pool.host_mut())),
        #[cfg(feature = "cuda")]
        Device::Cuda(device) => cuda::unpack(device, fields, message, pieces, pool),
    }
}

/// Runs of pieces of one slot.
fn by_slot(pieces: &[Piece]) -> impl Iterator<Item = &[Piece]> {
    pieces.chunk_by(|a, b| a.slot == b.slot)
}

/// # Panics
/// If a piece is not part of a group of the pool or does not fit the message.
fn assert_fit<T: Real>(fields: usize, pool: &Buffer<T>, pieces: &[Piece], message: &Buffer<T>) {
    assert!(fields > 0 && pool.len().is_multiple_of(fields * GROUP_CELLS), "a pool holds whole groups");
    let (slots, room) = (pool.len() / (fields * GROUP_CELLS), message.len() / fields);
    for (n, piece) in pieces.iter().enumerate() {
        assert!((piece.slot as usize) < slots, "piece {n}: slot {} of a pool of {slots}", piece.slot);
        let inside = |axis| usize::from(piece.first[axis]) + usize::from(piece.cells[axis]) <= GROUP;
        assert!((0..3).all(inside), "piece {n} is not part of a group: {piece:?}");
        assert!(piece.end() <= room, "piece {n} ends at cell {} of a message of {room}", piece.end());
    }
}
