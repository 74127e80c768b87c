//! Work space of parallel loops: one per thread, made once per operation.

use std::sync::Mutex;

/// One value for each thread of the pool that the operation runs in.
pub(crate) struct PerThread<S>(Vec<Mutex<S>>);

impl<S> PerThread<S> {
    /// Makes one for each thread of the current pool.
    pub(crate) fn new(make: impl Fn() -> S) -> Self {
        Self((0..rayon::current_num_threads()).map(|_| Mutex::new(make())).collect())
    }

    /// Lends this thread's. Not to be nested: the loop inside must not start parallel work.
    pub(crate) fn with<R>(&self, work: impl FnOnce(&mut S) -> R) -> R {
        let thread = rayon::current_thread_index().unwrap_or(0);
        let mut scratch = self.0[thread].lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        work(&mut scratch)
    }
}
