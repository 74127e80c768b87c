//! Messages between processors: one array for what is sent and one for what comes, used again and again.

use super::pieces::by_slot;
use super::{MessageSizes, Peer, Piece, Pieces, Units, ends};
use crate::device::buffer::SlotWriter;
use crate::device::cpu::CpuDevice;
use crate::device::error::KernelError;
use crate::device::overflow::add_weights;
use crate::layout::{GROUP_CELLS, cell};
use crate::real::Real;
use bytemuck::Pod;
use rayon::prelude::*;
use std::ops::Range;

/// Bytes of a word; messages begin with one.
const WORD: usize = size_of::<u64>();

/// What is sent and what comes.
#[derive(Debug, Default)]
pub struct HostBuffers {
    sent: Vec<u64>,
    received: Vec<u64>,
}

impl HostBuffers {
    pub(super) fn pack<N: Pod + Send + Sync>(&mut self, cpu: &CpuDevice, peers: &[Peer], units: Units, array: &[N]) {
        let message = values(&mut self.sent, ends(peers)[0] * units.values());
        cpu.install(|| match units {
            Units::Cells { fields, pieces } => pack_pieces(fields, array, &pieces.list, message),
            Units::Rows { values, rows } => {
                let row = |row: u32| &array[row as usize * values..][..values];
                message.par_chunks_exact_mut(values).zip(&*rows.list).for_each(|(to, &n)| to.copy_from_slice(row(n)));
            }
        });
    }

    /// Calls `carry` with the parts of peers.
    pub(super) fn carry(
        &mut self,
        peers: &[Peer],
        unit: usize,
        carry: impl FnOnce(&[(usize, &[u8])], &mut [(usize, &mut [u8])]),
    ) {
        let received = values::<u8>(&mut self.received, ends(peers)[1] * unit);
        let sent: &[u8] = bytemuck::cast_slice(&self.sent);
        let of_peer = |peer: &Peer| (peer.rank, &sent[peer.send.start * unit..peer.send.end * unit]);
        let sends: Vec<(usize, &[u8])> = peers.iter().filter(|peer| !peer.send.is_empty()).map(of_peer).collect();
        let mut receives = Vec::new();
        let mut rest = received;
        for peer in peers.iter().filter(|peer| !peer.receive.is_empty()) {
            let (part, behind) = std::mem::take(&mut rest).split_at_mut(peer.receive.len() * unit);
            rest = behind;
            receives.push((peer.rank, part));
        }
        carry(&sends, &mut receives);
    }

    pub(super) fn unpack<T: Real>(&mut self, cpu: &CpuDevice, units: Units, array: &mut [T]) {
        let message: &[T] = bytemuck::cast_slice(&self.received);
        cpu.install(|| match units {
            Units::Cells { fields, pieces } => unpack_pieces(fields, message, &pieces.list, array),
            Units::Rows { values, rows } => {
                let array = SlotWriter::new(array, values);
                rows.list.par_iter().zip(message.par_chunks_exact(values)).for_each(|(&row, from)| {
                    // SAFETY: no row is named twice, as was checked when the list was made.
                    unsafe { array.slot(row) }.copy_from_slice(from);
                });
            }
        });
    }

    pub(super) fn add_weights(&self, pieces: &Pieces, pool: &mut [u64], overflow: &mut u64) {
        for piece in &pieces.list {
            let (start, part) = (piece.slot as usize * GROUP_CELLS, &self.received[piece.at as usize..]);
            for_rows(1, piece, |row, from| {
                let cells = start + row.start..start + row.end;
                if let Some(n) = add_weights(&mut pool[cells.clone()], &part[from]) {
                    *overflow = (*overflow).max((cells.start + n + 1) as u64);
                }
            });
        }
    }

    pub(super) fn lacks(&self, needs: &[MessageSizes]) -> bool {
        let [sent, received] = words(needs);
        sent > self.sent.len() || received > self.received.len()
    }

    pub(super) fn bytes(&self) -> usize {
        (self.sent.len() + self.received.len()) * WORD
    }

    pub(super) fn bytes_for(needs: &[MessageSizes]) -> usize {
        words(needs).iter().sum::<usize>() * WORD
    }

    pub(super) fn make_room(&mut self, needs: &[MessageSizes]) -> Result<(), KernelError> {
        for (message, words) in [&mut self.sent, &mut self.received].into_iter().zip(words(needs)) {
            let more = words.saturating_sub(message.len());
            let lacks = |_| KernelError::OutOfMemory { device: "the processor".into(), bytes: more * WORD };
            message.try_reserve_exact(more).map_err(lacks)?;
            message.resize(message.len() + more, 0);
        }
        Ok(())
    }
}

/// Words of the messages to all ranks and from them.
fn words(needs: &[MessageSizes]) -> [usize; 2] {
    let sum = |of: fn(&MessageSizes) -> usize| needs.iter().map(of).sum::<usize>().div_ceil(WORD);
    [sum(|need| need.send), sum(|need| need.receive)]
}

/// The first values of a message.
fn values<N: Pod>(message: &mut [u64], count: usize) -> &mut [N] {
    let all: &mut [N] = bytemuck::cast_slice_mut(message);
    let room = all.len();
    all.get_mut(..count).unwrap_or_else(|| panic!("{count} values in a message with room for {room}"))
}

/// Parallel over pieces, row by row.
fn pack_pieces<N: Pod + Send + Sync>(fields: usize, pool: &[N], pieces: &[Piece], message: &mut [N]) {
    let mut parts = Vec::with_capacity(pieces.len());
    let (mut rest, mut taken) = (message, 0);
    for piece in pieces {
        let (part, behind) = rest[fields * piece.at as usize - taken..].split_at_mut(fields * piece.cell_count());
        parts.push((piece, part));
        (rest, taken) = (behind, fields * piece.end());
    }
    parts.into_par_iter().for_each(|(piece, part)| {
        let group = &pool[piece.slot as usize * fields * GROUP_CELLS..][..fields * GROUP_CELLS];
        for_rows(fields, piece, |row, to| copy(&group[row], &mut part[to]));
    });
}

/// Parallel over slots, row by row.
fn unpack_pieces<T: Real>(fields: usize, message: &[T], pieces: &[Piece], pool: &mut [T]) {
    let pool = SlotWriter::new(pool, fields * GROUP_CELLS);
    by_slot(pieces).collect::<Vec<_>>().into_par_iter().for_each(|pieces| {
        // SAFETY: all pieces of a slot are in one run, as was checked when the list was made.
        let group = unsafe { pool.slot(pieces[0].slot) };
        for piece in pieces {
            let part = &message[fields * piece.at as usize..][..fields * piece.cell_count()];
            for_rows(fields, piece, |row, from| copy(&part[from], &mut group[row]));
        }
    });
}

/// Calls `each` with where the rows of a piece lie in its group, `[fields, 16, 16, 16]`, and in its part of the message.
#[inline]
fn for_rows(fields: usize, piece: &Piece, mut each: impl FnMut(Range<usize>, Range<usize>)) {
    let [x, y, z] = piece.first.map(usize::from);
    let [nx, ny, nz] = piece.cells.map(usize::from);
    let mut at = 0;
    for field in 0..fields {
        for k in z..z + nz {
            for j in y..y + ny {
                let first = field * GROUP_CELLS + cell(x, j, k);
                each(first..first + nx, at..at + nx);
                at += nx;
            }
        }
    }
}

/// Copies a row; without a call those that there are most of: layers one and three cells deep, patches, whole groups.
#[inline]
fn copy<N: Pod>(from: &[N], to: &mut [N]) {
    match from.len() {
        1 => copy_cells::<N, 1>(from, to),
        3 => copy_cells::<N, 3>(from, to),
        8 => copy_cells::<N, 8>(from, to),
        16 => copy_cells::<N, 16>(from, to),
        _ => to.copy_from_slice(from),
    }
}

#[inline]
fn copy_cells<N: Pod, const CELLS: usize>(from: &[N], to: &mut [N]) {
    let from: &[N; CELLS] = from.try_into().expect("a row of so many cells");
    *<&mut [N; CELLS]>::try_from(to).expect("as many") = *from;
}
