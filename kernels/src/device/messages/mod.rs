//! Messages between ranks, as their devices see them: packed from arrays, and unpacked.
//!
//! An exchange with some peers has three parts: [`MessageBuffers::pack`]; [`MessageBuffers::carry`], for what the host has to carry;
//! [`MessageBuffers::unpack`]. All ranks do the same exchanges in the same order.
//!
//! | ranks | how a message gets from one to the other |
//! |---|---|
//! | on processors | packed to host memory, carried by the host, unpacked |
//! | on GPUs of one machine, each a process's own, that reach each other | the kernel that packs writes to the memory of the receiver and then sets a flag there, for which the kernel that unpacks waits: the hosts have no part in it |
//! | on other GPUs, and where `COMOVE_NO_PEER_ACCESS` is set | packed to page-locked host memory, carried by the hosts, unpacked from there |
//!
//! **Flags and halves.** A receiver has two places for the messages of a rank that reaches it, used in turn, so that one
//! may come while the one before it is unpacked. Message s goes to half s mod 2 and raises the flag to s. It may be written
//! once message s − 2 is unpacked there. The sender knows that it is: every exchange of two ranks goes both ways, if only
//! by flags; the sender has waited for the receiver's message s − 1, which that packed after it had unpacked s − 2.

mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
mod pieces;
#[cfg(test)]
pub(crate) mod tests;

pub use pieces::{Piece, Pieces, Rows};

use crate::device::Device;
use crate::device::buffer::Buffer;
use crate::device::error::KernelError;
use crate::device::overflow::Overflow;
use crate::layout::GROUP_CELLS;
use crate::real::Real;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// A rank that takes part in an exchange, and which units of the messages are for it and from it. Both sides name each
/// other, also where one of them has nothing to send. Units are cells of pieces, or rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Which.
    pub rank: usize,
    /// Of what is packed.
    pub send: Range<usize>,
    /// Of what is unpacked.
    pub receive: Range<usize>,
}

/// Bytes of the longest messages to a rank and from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageSizes {
    /// To it.
    pub send: usize,
    /// From it.
    pub receive: usize,
}

impl MessageSizes {
    /// What is enough for both.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self { send: self.send.max(other.send), receive: self.receive.max(other.receive) }
    }
}

/// Where the GPU of a rank is, and where in its memory others may write to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerInfo {
    /// The machine as it was last booted, and the process.
    machine: String,
    process: u32,
    /// Its address on the machine's bus.
    bus: String,
    /// Where the memory starts in the process, and the handle that other processes open; none if there is none yet.
    memory: Option<(u64, Vec<u8>)>,
    /// For ranks that may write there: which, where its two halves start, and bytes of each.
    parts: Vec<(usize, u64, u64)>,
}

/// Seconds that a GPU has spent in exchanges: from the start of packing to the end of unpacking.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ExchangeTimes {
    /// In all of it.
    pub exchanging: f64,
    /// Waiting for others' messages, once its own were packed.
    pub waiting: f64,
}

/// What an exchange sends: cells or rows of an array, on one side of it.
#[derive(Clone, Copy, Debug)]
pub enum Units<'a> {
    /// Cells in pieces of groups, of a pool `[slots, fields, 16, 16, 16]`. A message has of each piece
    /// `[fields, k, j, i]`, i fastest, from value `at * fields` on.
    Cells {
        /// Of a cell.
        fields: usize,
        /// In the groups.
        pieces: &'a Pieces,
    },
    /// Rows of an array `[rows, values]`.
    Rows {
        /// Of a row.
        values: usize,
        /// Which.
        rows: &'a Rows,
    },
}

impl Units<'_> {
    /// Values of a unit.
    pub fn values(&self) -> usize {
        match self {
            Self::Cells { fields, .. } => *fields,
            Self::Rows { values, .. } => *values,
        }
    }

    /// # Panics
    /// If an array of so many values lacks something, or a message of so many units does.
    fn check(&self, array: usize, message: usize) {
        let (stride, slots, units) = match self {
            Self::Cells { fields, pieces } => (fields * GROUP_CELLS, pieces.slots, pieces.cells),
            Self::Rows { values, rows } => (*values, rows.rows, rows.list.len()),
        };
        assert!(slots * stride <= array, "slot {slots} is beyond an array of {array} values, {stride} a slot");
        assert!(units <= message, "unit {units} is beyond a message of {message}");
    }
}

/// The messages of a rank.
#[derive(Debug)]
pub enum MessageBuffers {
    /// On a processor.
    Cpu(cpu::HostBuffers),
    /// On a GPU.
    #[cfg(feature = "cuda")]
    Cuda(Box<cuda::PeerBuffers>),
}

impl MessageBuffers {
    /// Of one rank among so many on this device, without room for messages.
    ///
    /// # Errors
    /// [`KernelError::OutOfMemory`].
    pub fn new(device: &Device, rank: usize, ranks: usize) -> Result<Self, KernelError> {
        assert!(rank < ranks, "rank {rank} of {ranks}");
        match device {
            Device::Cpu(_) => Ok(Self::Cpu(cpu::HostBuffers::default())),
            #[cfg(feature = "cuda")]
            Device::Cuda(device) => Ok(Self::Cuda(Box::new(cuda::PeerBuffers::new(device, rank, ranks)?))),
        }
    }

    /// Packs units of an array for peers.
    ///
    /// # Panics
    /// If the array or the messages are too short, or there is no room for one ([`MessageBuffers::make_room`]).
    pub fn pack<T: Real>(&mut self, device: &Device, peers: &[Peer], units: Units, array: &Buffer<T>) {
        units.check(array.len(), ends(peers)[0]);
        match (self, device) {
            (Self::Cpu(buffers), Device::Cpu(cpu)) => buffers.pack(cpu, peers, units, array.host()),
            #[cfg(feature = "cuda")]
            (Self::Cuda(buffers), _) => buffers.pack::<T, T>(peers, units, array),
            #[cfg(feature = "cuda")]
            _ => panic!("made for another device"),
        }
    }

    /// [`MessageBuffers::pack`] of the weights of cells, a pool `[slots, 16, 16, 16]`; they are as long as values in double
    /// precision.
    ///
    /// # Panics
    /// As [`MessageBuffers::pack`].
    pub fn pack_weights(&mut self, device: &Device, peers: &[Peer], pieces: &Pieces, pool: &Buffer<u64>) {
        let units = Units::Cells { fields: 1, pieces };
        units.check(pool.len(), ends(peers)[0]);
        match (self, device) {
            (Self::Cpu(buffers), Device::Cpu(cpu)) => buffers.pack(cpu, peers, units, pool.host()),
            #[cfg(feature = "cuda")]
            (Self::Cuda(buffers), _) => buffers.pack::<f64, u64>(peers, units, pool),
            #[cfg(feature = "cuda")]
            _ => panic!("made for another device"),
        }
    }

    /// Adds weights that peers have packed to cells, of which several may have some for one.
    ///
    /// * `overflow`: set where the sum of a cell exceeds 64 bits
    ///
    /// # Panics
    /// As [`MessageBuffers::unpack`].
    pub fn add_weights(
        &mut self,
        device: &Device,
        peers: &[Peer],
        pieces: &Pieces,
        (pool, overflow): (&mut Buffer<u64>, &mut Overflow),
    ) {
        Units::Cells { fields: 1, pieces }.check(pool.len(), ends(peers)[1]);
        match (self, device) {
            (Self::Cpu(buffers), Device::Cpu(_)) => {
                buffers.add_weights(pieces, pool.host_mut(), &mut overflow.cell.host_mut()[0]);
            }
            #[cfg(feature = "cuda")]
            (Self::Cuda(buffers), _) => buffers.add_weights(peers, pieces, pool, overflow),
            #[cfg(feature = "cuda")]
            _ => panic!("made for another device"),
        }
    }

    /// Has `carry` carry what was packed for ranks that the device does not reach. It is given ranks and what they are sent,
    /// ranks and where to put what they send, and what is left to do while messages are on their way; not called where there
    /// is nothing to carry.
    ///
    /// * `meanwhile`: asks the device for work on what no message is about; done once
    pub fn carry<T: Real>(
        &mut self,
        peers: &[Peer],
        units: Units,
        mut meanwhile: impl FnMut(),
        carry: impl FnOnce(&[(usize, &[u8])], &mut [(usize, &mut [u8])], &mut dyn FnMut()),
    ) {
        let unit = units.values() * T::BYTES;
        match self {
            Self::Cpu(buffers) => buffers.carry(peers, unit, |sends, receives| carry(sends, receives, &mut meanwhile)),
            #[cfg(feature = "cuda")]
            Self::Cuda(buffers) => {
                buffers.carry(peers, unit, meanwhile, |sends, receives| carry(sends, receives, &mut || ()));
            }
        }
    }

    /// Unpacks units that peers have packed: of the same shapes, in the same order. What belongs to no unit stays as it is.
    ///
    /// # Panics
    /// If the array or the messages are too short.
    pub fn unpack<T: Real>(&mut self, device: &Device, peers: &[Peer], units: Units, array: &mut Buffer<T>) {
        units.check(array.len(), ends(peers)[1]);
        match (self, device) {
            (Self::Cpu(buffers), Device::Cpu(cpu)) => buffers.unpack(cpu, units, array.host_mut()),
            #[cfg(feature = "cuda")]
            (Self::Cuda(buffers), _) => buffers.unpack(peers, units, array),
            #[cfg(feature = "cuda")]
            _ => panic!("made for another device"),
        }
    }

    /// Whether what is sent to a rank needs no host.
    pub fn reaches(&self, rank: usize) -> bool {
        match self {
            Self::Cpu(_) => _ = rank,
            #[cfg(feature = "cuda")]
            Self::Cuda(buffers) => return buffers.reaches(rank),
        }
        false
    }

    /// Times since the last call.
    pub fn take_times(&mut self) -> ExchangeTimes {
        match self {
            Self::Cpu(_) => ExchangeTimes::default(),
            #[cfg(feature = "cuda")]
            Self::Cuda(buffers) => buffers.take_times(),
        }
    }

    /// Bytes of the device's memory that messages have.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Cpu(buffers) => buffers.bytes(),
            #[cfg(feature = "cuda")]
            Self::Cuda(buffers) => buffers.bytes(),
        }
    }

    /// Bytes that they will have with room for these messages.
    ///
    /// * `needs`: by rank
    pub fn bytes_for(&self, needs: &[MessageSizes]) -> usize {
        match self {
            Self::Cpu(_) => cpu::HostBuffers::bytes_for(needs),
            #[cfg(feature = "cuda")]
            Self::Cuda(buffers) => buffers.bytes_for(needs),
        }
    }

    /// Whether there is no room for such messages.
    pub fn lacks(&self, needs: &[MessageSizes]) -> bool {
        match self {
            Self::Cpu(buffers) => buffers.lacks(needs),
            #[cfg(feature = "cuda")]
            Self::Cuda(buffers) => buffers.lacks(needs),
        }
    }

    /// Registers the devices of the other ranks. Once, before there is room for messages.
    ///
    /// * `peer_infos`: of all ranks
    pub fn register_peers(&mut self, peer_infos: &[Option<PeerInfo>]) {
        match self {
            Self::Cpu(_) => _ = peer_infos,
            #[cfg(feature = "cuda")]
            Self::Cuda(buffers) => buffers.register_peers(peer_infos),
        }
    }

    /// Completes messages under way and closes the others' memory. No rank may write to this rank's once all have done
    /// so. Also the first of four parts of making room, each done by all ranks before any goes on with the next.
    pub fn close(&mut self) {
        match self {
            Self::Cpu(_) => {}
            #[cfg(feature = "cuda")]
            Self::Cuda(buffers) => buffers.close(),
        }
    }

    /// The second part: makes room for messages of these lengths.
    ///
    /// * `needs`: by rank
    ///
    /// # Errors
    /// [`KernelError::OutOfMemory`]. Then there is no room.
    pub fn make_room(&mut self, needs: &[MessageSizes]) -> Result<(), KernelError> {
        match self {
            Self::Cpu(buffers) => buffers.make_room(needs),
            #[cfg(feature = "cuda")]
            Self::Cuda(buffers) => buffers.make_room(needs),
        }
    }

    /// This rank's device and memory for the others; none on a processor. It changes with the room.
    pub fn peer_info(&self) -> Option<PeerInfo> {
        match self {
            Self::Cpu(_) => None,
            #[cfg(feature = "cuda")]
            Self::Cuda(buffers) => Some(buffers.peer_info()),
        }
    }

    /// The third part: opens the others' memory; the ranks that it reaches.
    ///
    /// * `peer_infos`: of all ranks, with the new room
    pub fn open(&mut self, peer_infos: &[Option<PeerInfo>]) -> Vec<usize> {
        match self {
            Self::Cpu(_) => _ = peer_infos,
            #[cfg(feature = "cuda")]
            Self::Cuda(buffers) => return buffers.open(peer_infos),
        }
        Vec::new()
    }

    /// The last part: uses the host for all ranks but those that reach this one and are reached by it.
    ///
    /// * `reached`: by each rank, which ones
    ///
    /// # Errors
    /// [`KernelError::OutOfMemory`].
    pub fn finalize(&mut self, needs: &[MessageSizes], reached: &[Vec<usize>]) -> Result<(), KernelError> {
        match self {
            Self::Cpu(_) => _ = (needs, reached),
            #[cfg(feature = "cuda")]
            Self::Cuda(buffers) => buffers.finalize(needs, reached)?,
        }
        Ok(())
    }
}

/// Units behind the last one that is sent and the last that is received.
fn ends(peers: &[Peer]) -> [usize; 2] {
    peers.last().map_or([0; 2], |last| [last.send.end, last.receive.end])
}
