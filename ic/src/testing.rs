//! What tests of this crate share.

use comove_sim::parallel::Communicator;

/// What each of so many ranks, threads of this process, comes to.
pub(crate) fn on_ranks<R: Send>(ranks: usize, work: impl Fn(Communicator) -> R + Sync) -> Vec<R> {
    let work = &work;
    std::thread::scope(|scope| {
        let start = |communicator| scope.spawn(move || work(communicator));
        let threads: Vec<_> = Communicator::threads(ranks).into_iter().map(start).collect();
        threads.into_iter().map(|thread| thread.join().expect("a rank")).collect()
    })
}
