//! Pieces on a GPU: one block a field of a piece, as pieces differ in size.

use super::Piece;
use crate::buffer::Buffer;
use crate::cuda::{CudaDevice, launch};
use crate::real::Real;
use crate::table::Table;

/// Threads of a block.
const THREADS: u32 = 256;

// as in pieces.cu
const _: () = assert!(size_of::<Piece>() == 16);

pub(super) fn pack<T: Real>(
    device: &CudaDevice,
    fields: usize,
    pool: &Buffer<T>,
    pieces: &Table<Piece>,
    message: &Buffer<T>,
) {
    // SAFETY: the parameters are the kernel's; the pieces lie in the pool and apart in the message, checked by the
    // caller.
    unsafe {
        launch!(device, T, "pack_pieces", pieces.len() * fields, THREADS, 0;
            fields as i32, pool.pointer(), pieces.on(device), message.pointer());
    }
}

pub(super) fn unpack<T: Real>(
    device: &CudaDevice,
    fields: usize,
    message: &Buffer<T>,
    pieces: &Table<Piece>,
    pool: &Buffer<T>,
) {
    // SAFETY: the parameters are the kernel's; the pieces lie in the message and apart in the pool, checked by the
    // caller.
    unsafe {
        launch!(device, T, "unpack_pieces", pieces.len() * fields, THREADS, 0;
            fields as i32, message.pointer(), pieces.on(device), pool.pointer());
    }
}
