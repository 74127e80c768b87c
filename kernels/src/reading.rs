//! What an operation tells the host, read when it is needed: a GPU goes on meanwhile.

use std::time::Instant;

/// Values that a device is working out or copying.
///
/// Of operations on a GPU the host gets only the promise; [`Reading::wait`] waits for the operation and for what was
/// launched before it. The processor's values are there at once. One that is dropped is never waited for.
#[must_use]
pub struct Reading<R>(State<R>);

enum State<R> {
    Known(Vec<R>),
    #[cfg(feature = "cuda")]
    Coming(Box<dyn FnOnce() -> Vec<R>>),
}

impl<R> Reading<R> {
    /// Of values that are there.
    pub fn of(values: Vec<R>) -> Self {
        Self(State::Known(values))
    }

    /// Of values that `fetch` waits for.
    #[cfg(feature = "cuda")]
    pub(crate) fn later(fetch: impl FnOnce() -> Vec<R> + 'static) -> Self {
        Self(State::Coming(Box::new(fetch)))
    }

    /// What `join` makes of these values and others.
    pub fn joined(self, other: Self, join: impl FnOnce(Vec<R>, Vec<R>) -> Vec<R> + 'static) -> Self
    where
        R: 'static,
    {
        match (self.0, other.0) {
            (State::Known(these), State::Known(those)) => Self::of(join(these, those)),
            #[cfg(feature = "cuda")]
            (these, those) => Self::later(move || join(Self(these).wait(), Self(those).wait())),
        }
    }

    /// The values, once they are there.
    pub fn wait(self) -> Vec<R> {
        match self.0 {
            State::Known(values) => values,
            #[cfg(feature = "cuda")]
            State::Coming(fetch) => fetch(),
        }
    }
}

impl<R> std::fmt::Debug for Reading<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            State::Known(values) => write!(f, "Reading of {} values", values.len()),
            #[cfg(feature = "cuda")]
            State::Coming(_) => write!(f, "Reading to come"),
        }
    }
}

/// A moment in a device's work: when everything that was asked of it before was done.
#[derive(Debug)]
pub struct Moment(MomentOf);

#[derive(Debug)]
enum MomentOf {
    Host(Instant),
    #[cfg(feature = "cuda")]
    Cuda(cust::event::Event),
}

impl Moment {
    /// On the processor, whose operations are done when they return.
    pub(crate) fn host() -> Self {
        Self(MomentOf::Host(Instant::now()))
    }

    /// Behind what has been launched so far.
    #[cfg(feature = "cuda")]
    pub(crate) fn of(event: cust::event::Event) -> Self {
        Self(MomentOf::Cuda(event))
    }

    /// Seconds from an earlier moment of the same device; waits for this one.
    ///
    /// # Panics
    /// If the moments are of different kinds of devices, or the device has failed.
    pub fn seconds_since(&self, earlier: &Self) -> f64 {
        match (&self.0, &earlier.0) {
            (MomentOf::Host(this), MomentOf::Host(earlier)) => this.duration_since(*earlier).as_secs_f64(),
            #[cfg(feature = "cuda")]
            (MomentOf::Cuda(this), MomentOf::Cuda(earlier)) => {
                this.synchronize().unwrap_or_else(|e| panic!("the GPU failed: {e:?}"));
                1e-3 * f64::from(this.elapsed_time_f32(earlier).expect("both moments have passed"))
            }
            #[cfg(feature = "cuda")]
            _ => panic!("moments of different devices"),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::with_gpu;

    /// A moment may be the first thing that a thread asks of a device.
    #[test]
    fn a_gpu_has_moments_for_any_thread() {
        with_gpu(|gpu| {
            let passed = || {
                let before = gpu.now();
                gpu.now().seconds_since(&before)
            };
            let new_thread = std::thread::scope(|scope| scope.spawn(passed).join().expect("a moment on a new thread"));
            let own_thread = gpu.install(passed);
            assert!([new_thread, own_thread].iter().all(|passed| (0.0..1.0).contains(passed)));
        });
    }
}
