//! Ranks that are processes of MPI.

use crate::error::SimError;
use mpi::collective::SystemOperation;
use mpi::datatype::PartitionMut;
use mpi::environment::Universe;
use mpi::point_to_point::Status;
use mpi::request::{LocalScope, Request, Scope};
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, CommunicatorCollectives, Destination, Equivalence, Root, Source};
use mpi::{Rank, Threading};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// MPI counts in 32 bits with sign: longer messages are sent in pieces of so many bytes.
const PIECE: usize = 1 << 24;
/// Words that are summed by one call.
const WORDS: usize = PIECE / size_of::<u64>();
/// The tag of messages that belong to an operation of all ranks; those of `communicate` are larger by one than asked for.
const COLLECTIVE: i32 = 0;
/// The tag of orders: larger than those of all messages.
const ORDER: i32 = crate::parallel::Communicator::TAGS as i32 + 1;
/// How long the next order is waited for busily, and how long at most nobody looks for it then.
const BUSY: Duration = Duration::from_millis(2);
const LONGEST_NAP: Duration = Duration::from_millis(5);
/// Polls of a request before the thread yields its core.
const SPINS_BEFORE_YIELD: u32 = 200;
/// What a program exits with that panics.
const PANICKED: i32 = 101;

/// All processes that `mpiexec` has started, as one of them sees them. MPI ends when it is dropped, which waits for the
/// others to drop theirs; where that happens in a panic, all processes are ended at once.
pub struct World {
    universe: Universe,
    rank: usize,
    size: usize,
}

impl Drop for World {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.abort(PANICKED);
        }
    }
}

impl World {
    pub(super) fn new() -> Result<Self, SimError> {
        let Some((universe, threading)) = mpi::initialize_with_threading(Threading::Multiple) else {
            return Err(SimError::Mpi("this process has started it before".into()));
        };
        let world = universe.world();
        let (rank, size) = (world.rank() as usize, world.size() as usize);
        if threading < Threading::Serialized {
            return Err(SimError::Mpi(
                "this MPI supports only calls from the main thread, and MPI_THREAD_SERIALIZED \
                                      is needed; use another MPI"
                    .into(),
            ));
        }
        // what mpiexec of Open MPI, or of MPICH and its kin, tells the processes that it starts
        let told = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE"].into_iter().filter_map(|name| std::env::var(name).ok());
        let told: Vec<usize> = told.filter_map(|size| size.parse().ok()).collect();
        if let (Some(started), false) = (told.first(), told.contains(&size)) {
            return Err(SimError::Mpi(format!(
                "mpiexec has started {started} processes, this one sees {size}: the program was built with another MPI \
                 than mpiexec's (after a change of MPI: cargo clean --release -p mpi-sys -p mpi)"
            )));
        }
        Ok(Self { universe, rank, size })
    }

    pub(super) fn rank(&self) -> usize {
        self.rank
    }

    pub(super) fn size(&self) -> usize {
        self.size
    }

    pub(super) fn abort(&self, code: i32) -> ! {
        self.world().abort(code)
    }

    pub(super) fn exchange(&self, mut to: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        let lengths: Vec<u64> = to.iter().map(|bytes| bytes.len() as u64).collect();
        let mut expected = vec![0u64; self.size];
        complete(|scope| self.world().immediate_all_to_all_into(scope, &lengths[..], &mut expected[..]));
        let own = std::mem::take(&mut to[self.rank]);
        let sends = to.into_iter().enumerate().filter(|(_, bytes)| !bytes.is_empty()).collect();
        let mut all = self.receive_all(sends, &expected);
        all[self.rank] = own;
        all
    }

    pub(super) fn gather_all(&self, own: &[u8]) -> Vec<Vec<u8>> {
        let world = self.world();
        let mut lengths = vec![0u64; self.size];
        let length = own.len() as u64;
        complete(|scope| world.immediate_all_gather_into(scope, &length, &mut lengths[..]));
        let mut all: Vec<Vec<u8>> = lengths.iter().map(|&length| Vec::with_capacity(length as usize)).collect();
        // as many bytes of each rank at a time as together make a piece
        let share = (PIECE / self.size).max(1);
        let longest = lengths.iter().max().map_or(0, |&length| length as usize);
        let part = |begin: usize, length: usize| begin.min(length)..(begin + share).min(length);
        for begin in (0..longest).step_by(share) {
            let counts: Vec<i32> = lengths.iter().map(|&length| part(begin, length as usize).len() as i32).collect();
            let before = |sum: &mut i32, &count: &i32| Some(std::mem::replace(sum, *sum + count));
            let offsets: Vec<i32> = counts.iter().scan(0, before).collect();
            let mut bytes = vec![0u8; counts.iter().sum::<i32>() as usize];
            let mut parts = PartitionMut::new(&mut bytes[..], &counts[..], &offsets[..]);
            let own = &own[part(begin, own.len())];
            complete(|scope| world.immediate_all_gather_varcount_into(scope, own, &mut parts));
            for (all, (&offset, &count)) in all.iter_mut().zip(offsets.iter().zip(&counts)) {
                all.extend_from_slice(&bytes[offset as usize..][..count as usize]);
            }
        }
        all
    }

    pub(super) fn gather(&self, root: usize, own: Vec<u8>) -> Option<Vec<Vec<u8>>> {
        let world = self.world();
        let process = world.process_at_rank(root as Rank);
        let length = own.len() as u64;
        if self.rank != root {
            complete(|scope| process.immediate_gather_into(scope, &length));
            self.receive_all(vec![(root, own)], &[]);
            return None;
        }
        let mut lengths = vec![0u64; self.size];
        complete(|scope| process.immediate_gather_into_root(scope, &length, &mut lengths[..]));
        let mut all = self.receive_all(Vec::new(), &lengths);
        all[root] = own;
        Some(all)
    }

    pub(super) fn broadcast(&self, root: usize, mut bytes: Vec<u8>) -> Vec<u8> {
        let world = self.world();
        let root = world.process_at_rank(root as Rank);
        let mut length = bytes.len() as u64;
        complete(|scope| root.immediate_broadcast_into(scope, &mut length));
        bytes.resize(length as usize, 0);
        bytes.chunks_mut(PIECE).for_each(|piece| complete(|scope| root.immediate_broadcast_into(scope, piece)));
        bytes
    }

    pub(super) fn order(&self, bytes: &[u8]) {
        for peer in 1..self.size {
            self.world().process_at_rank(peer as Rank).send_with_tag(bytes, ORDER);
        }
    }

    /// MPI waits busily; this does so for a while, as orders of a run follow each other, and then looks now and then.
    pub(super) fn next_order(&self) -> Vec<u8> {
        let world = self.world();
        let first = world.process_at_rank(0);
        let began = Instant::now();
        while first.immediate_probe_with_tag(ORDER).is_none() {
            match began.elapsed() {
                waited if waited < BUSY => std::thread::yield_now(),
                waited => std::thread::sleep((waited / 16).min(LONGEST_NAP)),
            }
        }
        first.receive_vec_with_tag(ORDER).0
    }

    pub(super) fn sum(&self, words: &mut [u64]) {
        let own = words.to_vec();
        for (own, words) in own.chunks(WORDS).zip(words.chunks_mut(WORDS)) {
            complete(|scope| self.world().immediate_all_reduce_into(scope, own, words, SystemOperation::sum()));
        }
    }

    /// With a sign: MPICH 4.0 compares words without one as if they had.
    pub(super) fn max(&self, word: i64) -> i64 {
        let mut largest = word;
        complete(|scope| self.world().immediate_all_reduce_into(scope, &word, &mut largest, SystemOperation::max()));
        largest
    }

    pub(super) fn communicate<R>(
        &self,
        tag: u32,
        sends: &[(usize, &[u8])],
        receives: &mut [(usize, &mut [u8])],
        meanwhile: impl FnOnce() -> R,
    ) -> R {
        self.communicate_as(tag as i32 + 1, sends, receives, meanwhile)
    }

    /// Sends within an operation of all ranks, for as many bytes of each other rank as `lengths` says.
    fn receive_all(&self, sends: Vec<(usize, Vec<u8>)>, lengths: &[u64]) -> Vec<Vec<u8>> {
        let length = |(peer, &length): (usize, &u64)| if peer == self.rank { 0 } else { length as usize };
        let mut all: Vec<Vec<u8>> = lengths.iter().enumerate().map(length).map(|length| vec![0; length]).collect();
        let sends: Vec<(usize, &[u8])> = sends.iter().map(|(peer, bytes)| (*peer, bytes.as_slice())).collect();
        let receives = all.iter_mut().enumerate().filter(|(_, bytes)| !bytes.is_empty());
        let mut receives: Vec<(usize, &mut [u8])> =
            receives.map(|(peer, bytes)| (peer, bytes.as_mut_slice())).collect();
        self.communicate_as(COLLECTIVE, &sends, &mut receives, || ());
        all
    }

    /// All messages are posted, receives first, before `meanwhile` is done. This call does not end before MPI is done with
    /// the buffers: a panic meanwhile ends all processes.
    fn communicate_as<R>(
        &self,
        tag: i32,
        sends: &[(usize, &[u8])],
        receives: &mut [(usize, &mut [u8])],
        meanwhile: impl FnOnce() -> R,
    ) -> R {
        let world = self.world();
        mpi::request::scope(|scope| {
            let mut receiving = Vec::new();
            for (peer, bytes) in receives {
                let process = world.process_at_rank(*peer as Rank);
                for piece in bytes.chunks_mut(PIECE) {
                    let length = piece.len();
                    receiving.push((length, process.immediate_receive_into_with_tag(scope, piece, tag)));
                }
            }
            let mut sending = Vec::new();
            for (peer, bytes) in sends {
                let process = world.process_at_rank(*peer as Rank);
                let pieces = bytes.chunks(PIECE);
                sending.extend(pieces.map(|piece| process.immediate_send_with_tag(scope, piece, tag)));
            }
            let result = catch_unwind(AssertUnwindSafe(meanwhile)).unwrap_or_else(|_| self.abort(PANICKED));
            let ends: Vec<(usize, Status)> =
                receiving.into_iter().map(|(length, request)| (length, wait(request))).collect();
            sending.into_iter().for_each(|request| _ = wait(request));
            for (length, status) in ends {
                let (rank, peer, sent) = (self.rank, status.source_rank(), status.count(u8::equivalent_datatype()));
                assert!(sent as usize == length, "rank {peer} sent {sent} bytes where rank {rank} expects {length}");
            }
            result
        })
    }

    fn world(&self) -> SimpleCommunicator {
        self.universe.world()
    }
}

/// Starts a collective operation and waits for its completion.
fn complete<'a, D: ?Sized + 'a>(begin: impl for<'s> FnOnce(&'s LocalScope<'a>) -> Request<'a, D, &'s LocalScope<'a>>) {
    mpi::request::scope(|scope| _ = wait(begin(scope)));
}

/// Polls a request until it is complete; after the first polls yields the core to ranks that share it, which MPI does not.
fn wait<'a, D: ?Sized + 'a>(mut request: Request<'a, D, impl Scope<'a>>) -> Status {
    let mut spins = SPINS_BEFORE_YIELD;
    loop {
        match request.test() {
            Ok(status) => return status,
            Err(pending) => request = pending,
        }
        match spins {
            0 => std::thread::yield_now(),
            _ => spins -= 1,
        }
    }
}
