//! Points in a device's work, to measure time between.

use std::time::Instant;

/// The end of all work that a device had been given so far.
#[derive(Debug)]
pub struct DeviceEvent(Kind);

#[derive(Debug)]
enum Kind {
    Host(Instant),
    #[cfg(feature = "cuda")]
    Cuda(cust::event::Event),
}

impl DeviceEvent {
    /// On the processor, whose operations are complete when they return.
    pub(crate) fn host() -> Self {
        Self(Kind::Host(Instant::now()))
    }

    /// Behind what has been launched so far.
    #[cfg(feature = "cuda")]
    pub(crate) fn of(event: cust::event::Event) -> Self {
        Self(Kind::Cuda(event))
    }

    /// Seconds from an earlier event of the same device; waits for this one.
    ///
    /// # Panics
    /// If the events are of different kinds of devices, or the device has failed.
    pub fn seconds_since(&self, earlier: &Self) -> f64 {
        match (&self.0, &earlier.0) {
            (Kind::Host(this), Kind::Host(earlier)) => this.duration_since(*earlier).as_secs_f64(),
            #[cfg(feature = "cuda")]
            (Kind::Cuda(this), Kind::Cuda(earlier)) => {
                this.synchronize().unwrap_or_else(|e| panic!("the GPU failed: {e:?}"));
                1e-3 * f64::from(this.elapsed_time_f32(earlier).expect("both events have passed"))
            }
            #[cfg(feature = "cuda")]
            _ => panic!("events of different devices"),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::with_gpu;

    /// An event may be the first thing that a thread asks of a device.
    #[test]
    fn a_gpu_records_events_for_any_thread() {
        with_gpu(|gpu| {
            let passed = || {
                let before = gpu.now();
                gpu.now().seconds_since(&before)
            };
            let new_thread = std::thread::scope(|scope| scope.spawn(passed).join().expect("an event on a new thread"));
            let own_thread = gpu.install(passed);
            assert!([new_thread, own_thread].iter().all(|passed| (0.0..1.0).contains(passed)));
        });
    }
}
