//! Pieces on the host: parallel over pieces or slots, row by row.

use super::{Piece, by_slot};
use crate::buffer::SlotWriter;
use crate::layout::{GROUP_CELLS, cell};
use crate::real::Real;
use rayon::prelude::*;
use std::ops::Range;

pub(super) fn pack<T: Real>(fields: usize, pool: &[T], pieces: &[Piece], message: &mut [T]) {
    let mut parts = Vec::with_capacity(pieces.len());
    let (mut rest, mut taken) = (message, 0);
    for piece in pieces {
        let (part, behind) = rest[fields * piece.at as usize - taken..].split_at_mut(fields * piece.cell_count());
        parts.push((piece, part));
        (rest, taken) = (behind, fields * piece.end());
    }
    parts.into_par_iter().for_each(|(piece, part)| {
        let group = &pool[piece.slot as usize * fields * GROUP_CELLS..][..fields * GROUP_CELLS];
        for (row, to) in rows(fields, piece).zip(part.chunks_exact_mut(row_cells(piece))) {
            to.copy_from_slice(&group[row]);
        }
    });
}

pub(super) fn unpack<T: Real>(fields: usize, message: &[T], pieces: &[Piece], pool: &mut [T]) {
    let pool = SlotWriter::new(pool, fields * GROUP_CELLS);
    by_slot(pieces).collect::<Vec<_>>().into_par_iter().for_each(|pieces| {
        // SAFETY: all pieces of a slot are in one run, as the caller has checked.
        let group = unsafe { pool.slot(pieces[0].slot) };
        for piece in pieces {
            let part = &message[fields * piece.at as usize..][..fields * piece.cell_count()];
            for (row, from) in rows(fields, piece).zip(part.chunks_exact(row_cells(piece))) {
                group[row].copy_from_slice(from);
            }
        }
    });
}

/// Cells of a row; of a piece without cells, which has no rows to copy, one.
fn row_cells(piece: &Piece) -> usize {
    usize::from(piece.cells[0]).max(1)
}

/// Where the rows of a piece lie in its group, `[fields, 16, 16, 16]`, in the order of the message.
fn rows(fields: usize, piece: &Piece) -> impl Iterator<Item = Range<usize>> {
    let [x, y, z] = piece.first.map(usize::from);
    let [nx, ny, nz] = piece.cells.map(usize::from);
    (0..fields * nz * ny).map(move |row| {
        let (j, k, field) = (row % ny, row / ny % nz, row / (ny * nz));
        let first = field * GROUP_CELLS + cell(x, y + j, z + k);
        first..first + nx
    })
}
