//! Points in a device's work, to measure time between.

use std::time::Instant;

/// A moment in a device's work: when everything that was asked of it before was done.
#[derive(Debug)]
pub struct DeviceEvent(MomentOf);

#[derive(Debug)]
enum MomentOf {
    Host(Instant),
    #[cfg(feature = "cuda")]
    Cuda(cust::event::Event),
}

impl DeviceEvent {
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
