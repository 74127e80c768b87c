//! What ranks say to each other, whatever carries it.

use crate::parallel::threads::ThreadRank;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The rank that decides, and has what is one rank's alone.
pub const FIRST: usize = 0;

/// The ranks of a run, as one of them sees them: itself alone, threads of this process, or the processes of MPI.
///
/// Every method but [`rank`](Self::rank), [`size`](Self::size) and [`abort`](Self::abort) is an operation of all ranks:
/// each calls the same ones in the same order, from one thread at a time, and none goes on before it has what it is
/// promised. Lengths are in bytes. With one rank nothing is sent.
///
/// A rank that cannot go on while others might must not just return: threads that wait for a rank that is gone panic and
/// name it, but processes of MPI would wait for ever, unless it [aborts](Self::abort) or panics.
pub struct Communicator {
    carrier: Carrier,
    traffic: Counters,
}

/// What carries messages.
enum Carrier {
    /// Nothing: the only rank.
    Alone,
    /// Channels between threads of this process.
    Thread(ThreadRank),
    /// MPI between processes.
    #[cfg(feature = "mpi")]
    Mpi(crate::parallel::mpi::World),
}

/// What a rank has sent, and how long it has communicated and waited for others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Traffic {
    /// Operations of all ranks.
    pub operations: u64,
    /// Messages sent to single ranks.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Seconds of the host in operations of all ranks, without what it did meanwhile.
    pub seconds: f64,
    /// Seconds of a GPU in exchanges with others, from the start of packing to the end of unpacking.
    #[serde(default)]
    pub exchanging: f64,
    /// Those of them in which it waited for another's message.
    #[serde(default)]
    pub waiting: f64,
}

/// The same while it is counted.
#[derive(Debug, Default)]
struct Counters {
    operations: AtomicU64,
    messages: AtomicU64,
    bytes: AtomicU64,
    nanoseconds: AtomicU64,
}

/// A call of the variant that carries messages.
macro_rules! among {
    ($communicator:expr, $ranks:ident => $call:expr) => {
        match &$communicator.carrier {
            Carrier::Alone => unreachable!("one rank sends nothing"),
            Carrier::Thread($ranks) => $call,
            #[cfg(feature = "mpi")]
            Carrier::Mpi($ranks) => $call,
        }
    };
}

impl Communicator {
    /// Tags of [`Self::communicate`] are smaller: MPI grants no more everywhere.
    pub const TAGS: u32 = 32_766;

    /// One rank.
    pub fn alone() -> Self {
        Self::by(Carrier::Alone)
    }

    fn by(carrier: Carrier) -> Self {
        Self { carrier, traffic: Counters::default() }
    }

    /// So many ranks, each to be moved to a thread of its own.
    pub fn threads(ranks: usize) -> Vec<Self> {
        ThreadRank::all(ranks).into_iter().map(|rank| Self::by(Carrier::Thread(rank))).collect()
    }

    /// The processes that `mpiexec` or `srun` has started; a process that they have not started is one rank. At most once
    /// in a process, and from its main thread, which is also to drop it: that ends MPI, and waits for the others to do so.
    ///
    /// # Errors
    /// [`SimError::Mpi`](crate::SimError::Mpi) if it was started before, lets no threads communicate, or is another MPI
    /// than that of `mpiexec`.
    #[cfg(feature = "mpi")]
    pub fn world() -> Result<Self, crate::SimError> {
        Ok(Self::by(Carrier::Mpi(crate::parallel::mpi::World::new()?)))
    }

    /// This rank's number, from 0.
    pub fn rank(&self) -> usize {
        match self.carrier {
            Carrier::Alone => 0,
            _ => among!(self, ranks => ranks.rank()),
        }
    }

    /// How many ranks there are.
    pub fn size(&self) -> usize {
        match self.carrier {
            Carrier::Alone => 1,
            _ => among!(self, ranks => ranks.size()),
        }
    }

    /// A message to each rank, this one included, for one from each, in the order of ranks. Lengths need not be known to
    /// the receivers.
    pub fn exchange(&self, to: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        assert_eq!(to.len(), self.size(), "exchange takes a message for each rank");
        if self.size() == 1 { to } else { self.counted(0, 0, || among!(self, ranks => ranks.exchange(to))) }
    }

    /// Every rank's bytes, in the order of ranks, for all.
    pub fn gather_all(&self, own: &[u8]) -> Vec<Vec<u8>> {
        if self.size() == 1 {
            vec![own.to_vec()]
        } else {
            self.counted(0, 0, || among!(self, ranks => ranks.gather_all(own)))
        }
    }

    /// The same of a value.
    pub fn gather_all_of<T: Serialize + DeserializeOwned>(&self, own: &T) -> Vec<T> {
        let all = self.gather_all(&serde_json::to_vec(own).expect("a value that can be written"));
        all.iter().map(|bytes| serde_json::from_slice(bytes).expect("what was just written")).collect()
    }

    /// Every rank's bytes, in the order of ranks, for `root`.
    pub fn gather(&self, root: usize, own: Vec<u8>) -> Option<Vec<Vec<u8>>> {
        self.check_is_rank(root);
        if self.size() == 1 {
            Some(vec![own])
        } else {
            self.counted(0, 0, || among!(self, ranks => ranks.gather(root, own)))
        }
    }

    /// The bytes of `root`, for all. What the others pass does not matter.
    pub fn broadcast(&self, root: usize, bytes: Vec<u8>) -> Vec<u8> {
        self.check_is_rank(root);
        if self.size() == 1 {
            bytes
        } else {
            self.counted(0, 0, || among!(self, ranks => ranks.broadcast(root, bytes)))
        }
    }

    /// Bytes of the first rank for all others, which wait for them in [`Self::next_order`].
    pub fn order(&self, bytes: &[u8]) {
        assert_eq!(self.rank(), 0, "the first rank gives orders");
        if self.size() > 1 {
            among!(self, ranks => ranks.order(bytes));
        }
    }

    /// What the first rank says next, however long that takes: the processor is left to others meanwhile.
    pub fn next_order(&self) -> Vec<u8> {
        assert_ne!(self.rank(), 0, "the first rank gives orders");
        among!(self, ranks => ranks.next_order())
    }

    /// The sum over ranks of each word, modulo 2⁶⁴.
    pub fn sum(&self, words: &mut [u64]) {
        if self.size() > 1 {
            self.counted(0, 0, || among!(self, ranks => ranks.sum(words)));
        }
    }

    /// The sum over ranks of each number, modulo 2¹²⁸: exact where it is in range, whatever the partial sums. Each number
    /// is summed as four words of 32 bits. They are the digits of its two's complement, which is the number modulo 2¹²⁸;
    /// the sum of a digit over at most 2³² ranks fits 64 bits; and carries are added once at the end, modulo 2¹²⁸ again.
    pub fn sum_wide(&self, numbers: &mut [i128]) {
        if self.size() == 1 {
            return;
        }
        const DIGITS: [u32; 4] = [0, 32, 64, 96];
        let digits = |number: &i128| DIGITS.map(|shift| u64::from((number >> shift) as u32));
        let mut words: Vec<u64> = numbers.iter().flat_map(digits).collect();
        self.sum(&mut words);
        for (number, words) in numbers.iter_mut().zip(words.chunks_exact(DIGITS.len())) {
            let shifted = DIGITS.iter().zip(words).map(|(shift, &word)| i128::from(word) << shift);
            *number = shifted.fold(0, i128::wrapping_add);
        }
    }

    /// The largest of all ranks' numbers. A NaN is larger than any, and −0 smaller than 0: the bits do not depend on who
    /// has which.
    pub fn max(&self, number: f64) -> f64 {
        number_at(self.max_word(place_of(number)))
    }

    /// Whether it is so on any rank.
    pub fn any(&self, so: bool) -> bool {
        self.max_word(i64::from(so)) != 0
    }

    /// Messages to some ranks, for messages of known lengths from some, with `meanwhile` done while they are on their
    /// way; its result.
    ///
    /// * `sends`: ranks and what they are sent
    /// * `receives`: ranks and where to put what they send, which has that length
    ///
    /// Messages of one tag (below [`Self::TAGS`]) from one rank to another are received in the order in which they were
    /// sent, so what one sends the other has to receive. `meanwhile` may do any operation: with `communicate` in it, under
    /// another tag, several are on their way at once. This rank sends nothing to itself.
    pub fn communicate<R>(
        &self,
        tag: u32,
        sends: &[(usize, &[u8])],
        receives: &mut [(usize, &mut [u8])],
        meanwhile: impl FnOnce() -> R,
    ) -> R {
        assert!(tag < Self::TAGS, "tag {tag}: tags are below {}", Self::TAGS);
        for peer in sends.iter().map(|(peer, _)| *peer).chain(receives.iter().map(|(peer, _)| *peer)) {
            self.check_is_rank(peer);
            assert_ne!(peer, self.rank(), "rank {peer} has nothing to send to itself");
        }
        if self.size() == 1 {
            return meanwhile();
        }
        let bytes = sends.iter().map(|(_, bytes)| bytes.len()).sum();
        let mut worked = Duration::ZERO;
        let meanwhile = || {
            let began = Instant::now();
            let result = meanwhile();
            worked = began.elapsed();
            result
        };
        let result = self.counted(
            sends.len(),
            bytes,
            || among!(self, ranks => ranks.communicate(tag, sends, receives, meanwhile)),
        );
        // what is done meanwhile is no communication
        self.traffic.nanoseconds.fetch_sub(worked.as_nanos() as u64, Ordering::Relaxed);
        result
    }

    /// Counts a message of so many bytes that devices send each other.
    pub fn count_message(&self, bytes: usize) {
        self.traffic.messages.fetch_add(1, Ordering::Relaxed);
        self.traffic.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// What this rank has sent since it was last asked, and how long its operations took.
    pub fn take_traffic(&self) -> Traffic {
        let take = |counter: &AtomicU64| counter.swap(0, Ordering::Relaxed);
        let Counters { operations, messages, bytes, nanoseconds } = &self.traffic;
        Traffic {
            operations: take(operations),
            messages: take(messages),
            bytes: take(bytes),
            seconds: take(nanoseconds) as f64 * 1e-9,
            ..Traffic::default()
        }
    }

    /// Does an operation that sends so many messages, and counts it.
    fn counted<R>(&self, messages: usize, bytes: usize, operation: impl FnOnce() -> R) -> R {
        let began = Instant::now();
        let result = operation();
        let add = |counter: &AtomicU64, n: u64| counter.fetch_add(n, Ordering::Relaxed);
        add(&self.traffic.operations, 1);
        add(&self.traffic.messages, messages as u64);
        add(&self.traffic.bytes, bytes as u64);
        add(&self.traffic.nanoseconds, began.elapsed().as_nanos() as u64);
        result
    }

    /// Ends all ranks at once, without the others' doing. Processes of MPI exit with this code; a thread, or a rank alone,
    /// panics, so that its caller ends the process.
    pub fn abort(&self, code: i32) -> ! {
        match &self.carrier {
            #[cfg(feature = "mpi")]
            Carrier::Mpi(world) => world.abort(code),
            _ => panic!("rank {} ends the run with exit code {code}", self.rank()),
        }
    }

    fn max_word(&self, word: i64) -> i64 {
        if self.size() == 1 { word } else { self.counted(0, 0, || among!(self, ranks => ranks.max(word))) }
    }

    fn check_is_rank(&self, rank: usize) {
        assert!(rank < self.size(), "there is no rank {rank} among {}", self.size());
    }
}

impl fmt::Debug for Communicator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {} of {}", self.rank(), self.size())
    }
}

/// A word that orders as the number does: of a negative one all bits but the sign's are turned.
fn place_of(number: f64) -> i64 {
    const NAN: i64 = 0x7ff8_0000_0000_0000;
    let bits = number.to_bits() as i64;
    if number.is_nan() { NAN } else { turned_if_negative(bits) }
}

/// The number of a word of [`place_of`].
fn number_at(place: i64) -> f64 {
    f64::from_bits(turned_if_negative(place) as u64)
}

fn turned_if_negative(bits: i64) -> i64 {
    if bits < 0 { bits ^ i64::MAX } else { bits }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_order_as_their_numbers() {
        let numbers = [f64::NEG_INFINITY, -1e300, -1.0, -5e-324, -0.0, 0.0, 5e-324, 1.0, 1e300, f64::INFINITY];
        assert!(numbers.is_sorted_by(|&a, &b| place_of(a) < place_of(b)));
        assert!(numbers.iter().all(|&x| number_at(place_of(x)).to_bits() == x.to_bits()));
        for nan in [f64::NAN, -f64::NAN] {
            assert!(place_of(nan) > place_of(f64::INFINITY) && number_at(place_of(nan)).is_nan());
        }
    }
}
