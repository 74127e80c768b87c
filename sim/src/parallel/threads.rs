//! Ranks that are threads of this process, with a channel from each to each.

use bytemuck::Pod;
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// One of the ranks of [`Communicator::threads`](crate::parallel::Communicator::threads). Dropping it closes its channels, so that
/// whoever waits for this rank, or sends to it, panics instead of waiting for ever.
pub struct ThreadRank {
    rank: usize,
    to: Vec<Sender<Message>>,
    from: Vec<Mutex<Inbox>>,
    /// The rank that left first: what the others name, whichever of them they were waiting for.
    first_gone: Arc<OnceLock<usize>>,
}

struct Message {
    purpose: Purpose,
    bytes: Vec<u8>,
}

/// What a message belongs to.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Purpose {
    Collective(&'static str),
    Tag(u32),
}

struct Inbox {
    channel: Receiver<Message>,
    /// What came before somebody asked for it, in the order in which it was sent.
    early: VecDeque<Message>,
}

impl Drop for ThreadRank {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.first_gone.get_or_init(|| self.rank);
        }
    }
}

impl ThreadRank {
    pub(super) fn all(ranks: usize) -> Vec<Self> {
        let first_gone = Arc::new(OnceLock::new());
        let mut senders: Vec<Vec<_>> = (0..ranks).map(|_| Vec::new()).collect();
        let mut inboxes: Vec<Vec<_>> = (0..ranks).map(|_| Vec::new()).collect();
        for sender in &mut senders {
            for inbox in &mut inboxes {
                let (to, from) = channel();
                sender.push(to);
                inbox.push(Mutex::new(Inbox { channel: from, early: VecDeque::new() }));
            }
        }
        let parts = senders.into_iter().zip(inboxes).enumerate();
        parts.map(|(rank, (to, from))| Self { rank, to, from, first_gone: first_gone.clone() }).collect()
    }

    pub(super) fn rank(&self) -> usize {
        self.rank
    }

    pub(super) fn size(&self) -> usize {
        self.to.len()
    }

    pub(super) fn exchange(&self, to: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        self.all_to_all(Purpose::Collective("exchange"), to)
    }

    pub(super) fn gather_all(&self, own: &[u8]) -> Vec<Vec<u8>> {
        self.all_to_all(Purpose::Collective("gather_all"), vec![own.to_vec(); self.size()])
    }

    pub(super) fn gather(&self, root: usize, own: Vec<u8>) -> Option<Vec<Vec<u8>>> {
        let purpose = Purpose::Collective("gather");
        if self.rank != root {
            self.send(root, purpose, own);
            return None;
        }
        let mut own = Some(own);
        let from = |peer| own.take_if(|_| peer == root).unwrap_or_else(|| self.receive(peer, purpose));
        Some((0..self.size()).map(from).collect())
    }

    pub(super) fn broadcast(&self, root: usize, bytes: Vec<u8>) -> Vec<u8> {
        let purpose = Purpose::Collective("broadcast");
        if self.rank != root {
            return self.receive(root, purpose);
        }
        for peer in (0..self.size()).filter(|&peer| peer != root) {
            self.send(peer, purpose, bytes.clone());
        }
        bytes
    }

    pub(super) fn order(&self, bytes: &[u8]) {
        self.broadcast(0, bytes.to_vec());
    }

    pub(super) fn next_order(&self) -> Vec<u8> {
        self.broadcast(0, Vec::new())
    }

    pub(super) fn sum(&self, words: &mut [u64]) {
        self.reduce("sum", words, u64::wrapping_add);
    }

    pub(super) fn max(&self, word: i64) -> i64 {
        let mut largest = [word];
        self.reduce("max", &mut largest, i64::max);
        largest[0]
    }

    pub(super) fn communicate<R>(
        &self,
        tag: u32,
        sends: &[(usize, &[u8])],
        receives: &mut [(usize, &mut [u8])],
        meanwhile: impl FnOnce() -> R,
    ) -> R {
        for (peer, bytes) in sends {
            self.send(*peer, Purpose::Tag(tag), bytes.to_vec());
        }
        let result = meanwhile();
        for (peer, place) in receives {
            let bytes = self.receive(*peer, Purpose::Tag(tag));
            let (rank, sent, length) = (self.rank, bytes.len(), place.len());
            assert!(sent == length, "rank {peer} sent {sent} bytes with tag {tag} where rank {rank} expects {length}");
            place.copy_from_slice(&bytes);
        }
        result
    }

    fn reduce<T: Pod>(&self, operation: &'static str, words: &mut [T], combine: fn(T, T) -> T) {
        let own = bytemuck::cast_slice(words).to_vec();
        let all = self.all_to_all(Purpose::Collective(operation), vec![own; self.size()]);
        for (peer, bytes) in all.iter().enumerate().filter(|&(peer, _)| peer != self.rank) {
            let (rank, own, others) = (self.rank, words.len(), bytes.len() / size_of::<T>());
            assert!(own == others, "{operation} of {own} numbers at rank {rank}, of {others} at rank {peer}");
            let others = bytes.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned::<T>);
            words.iter_mut().zip(others).for_each(|(word, other)| *word = combine(*word, other));
        }
    }

    fn all_to_all(&self, purpose: Purpose, to: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        let mut own = None;
        for (peer, bytes) in to.into_iter().enumerate() {
            if peer == self.rank { own = Some(bytes) } else { self.send(peer, purpose, bytes) }
        }
        let from = |peer| own.take_if(|_| peer == self.rank).unwrap_or_else(|| self.receive(peer, purpose));
        (0..self.size()).map(from).collect()
    }

    fn send(&self, peer: usize, purpose: Purpose, bytes: Vec<u8>) {
        self.to[peer].send(Message { purpose, bytes }).unwrap_or_else(|_| self.gone(peer));
    }

    /// The next message of a peer for this purpose. Collective operations of a peer come in its order, so another one
    /// than that asked for will never be.
    fn receive(&self, peer: usize, purpose: Purpose) -> Vec<u8> {
        let mut inbox = self.from[peer].lock().unwrap_or_else(PoisonError::into_inner);
        let early = inbox.early.iter().position(|message| message.purpose == purpose);
        if let Some(message) = early.and_then(|at| inbox.early.remove(at)) {
            return message.bytes;
        }
        loop {
            let message = inbox.channel.recv().unwrap_or_else(|_| self.gone(peer));
            if message.purpose == purpose {
                return message.bytes;
            }
            if let (Purpose::Collective(asked), Purpose::Collective(sent)) = (purpose, message.purpose) {
                panic!("rank {} is at {asked} where rank {peer} is at {sent}", self.rank);
            }
            inbox.early.push_back(message);
        }
    }

    fn gone(&self, peer: usize) -> ! {
        let first = *self.first_gone.get_or_init(|| peer);
        panic!("rank {first} is gone: rank {} cannot go on without rank {peer}", self.rank)
    }
}

#[cfg(test)]
mod tests {
    use crate::parallel::{Communicator, checks};
    use std::panic::{AssertUnwindSafe, catch_unwind};

    /// What each rank's thread ended with: nothing, or the text of its panic.
    fn on_threads(ranks: usize, work: impl Fn(Communicator) + Sync) -> Vec<Option<String>> {
        let work = &work;
        std::thread::scope(|scope| {
            let threads: Vec<_> =
                Communicator::threads(ranks).into_iter().map(|rank| scope.spawn(move || work(rank))).collect();
            let text = |cause: Box<dyn std::any::Any + Send>| match cause.downcast::<String>() {
                Ok(text) => *text,
                Err(cause) => cause.downcast_ref::<&str>().expect("a text").to_string(),
            };
            threads.into_iter().map(|thread| thread.join().err().map(text)).collect()
        })
    }

    #[test]
    fn operations_give_what_they_promise_on_1_2_3_and_5_ranks() {
        checks::all(&Communicator::alone());
        for ranks in [1, 2, 3, 5] {
            let ends = on_threads(ranks, |ranks| checks::all(&ranks));
            assert!(ends.iter().all(Option::is_none), "{ranks} ranks: {ends:?}");
        }
    }

    #[test]
    fn a_communicator_may_move_between_threads_and_be_shared() {
        fn check<T: Send + Sync>(_: &T) {}
        check(&Communicator::alone());
    }

    #[test]
    fn others_panic_and_name_the_rank_that_has_panicked() {
        // a chain: only rank 1 waits for rank 2, only rank 0 for rank 1
        let ends = on_threads(3, |ranks| match ranks.rank() {
            2 => panic!("a bug"),
            rank => ranks.communicate(0, &[], &mut [(rank + 1, &mut [0; 8])], || ()),
        });
        assert_eq!(ends[2].as_deref(), Some("a bug"));
        assert_eq!(ends[1].as_deref(), Some("rank 2 is gone: rank 1 cannot go on without rank 2"));
        assert_eq!(ends[0].as_deref(), Some("rank 2 is gone: rank 0 cannot go on without rank 1"));
        for end in on_threads(5, |ranks| if ranks.rank() == 3 { ranks.abort(7) } else { ranks.sum(&mut [1]) }) {
            let text = end.expect("no rank may finish");
            assert!(text.starts_with("rank 3 is gone: ") || text == "rank 3 ends the run with exit code 7", "{text}");
        }
    }

    #[test]
    fn others_panic_and_name_the_rank_that_has_returned() {
        let ends = on_threads(3, |ranks| {
            if ranks.rank() != 1 {
                _ = ranks.gather_all(&[1])
            }
        });
        assert!(ends[1].is_none());
        for rank in [0, 2] {
            assert!(ends[rank].as_ref().is_some_and(|text| text.starts_with("rank 1 is gone: ")), "{ends:?}");
        }
    }

    #[test]
    fn what_a_rank_has_sent_is_there_when_it_has_returned() {
        let ends = on_threads(2, |ranks| match ranks.rank() {
            0 => ranks.communicate(4, &[(1, &[9])], &mut [], || ()),
            _ => {
                std::thread::sleep(std::time::Duration::from_millis(20));
                let mut nine = [0];
                ranks.communicate(4, &[], &mut [(0, &mut nine)], || ());
                assert_eq!(nine, [9]);
            }
        });
        assert!(ends.iter().all(Option::is_none), "{ends:?}");
    }

    #[test]
    fn ranks_that_disagree_are_told() {
        let ends = on_threads(2, |ranks| if ranks.rank() == 0 { ranks.sum(&mut [1]) } else { _ = ranks.any(true) });
        assert!(ends.contains(&Some("rank 0 is at sum where rank 1 is at max".into())), "{ends:?}");
        let ends = on_threads(2, |ranks| ranks.sum(&mut vec![1; 1 + ranks.rank()]));
        assert!(
            ends[0].as_ref().is_some_and(|text| text.contains("sum of 1 numbers at rank 0, of 2 at rank 1")),
            "{ends:?}"
        );
        let ends = on_threads(2, |ranks| {
            let other = 1 - ranks.rank();
            ranks.communicate(3, &[(other, &[0; 4])], &mut [(other, &mut vec![0; 4 + other])], || ());
        });
        assert_eq!(ends[0].as_deref(), Some("rank 1 sent 4 bytes with tag 3 where rank 0 expects 5"));
    }

    #[test]
    fn a_rank_sends_nothing_to_itself_nor_beyond_the_last() {
        for ranks in [Communicator::alone(), Communicator::threads(2).remove(0)] {
            for peer in [0, 2] {
                let refused = |sends, receives: &[(usize, usize)]| {
                    let attempt = || checks::communicate(&ranks, 0, sends, receives, || ());
                    catch_unwind(AssertUnwindSafe(attempt)).is_err()
                };
                assert!(refused(vec![(peer, vec![])], &[]));
                assert!(refused(vec![], &[(peer, 0)]));
            }
        }
    }
}
