//! Where the time of a GPU goes.

use std::ops::AddAssign;

/// What all launches of a kernel took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct KernelTime {
    /// Launches.
    pub launches: u64,
    /// Blocks of all launches.
    pub blocks: u64,
    /// Between the events before and after them.
    pub milliseconds: f64,
}

impl AddAssign for KernelTime {
    fn add_assign(&mut self, other: Self) {
        self.launches += other.launches;
        self.blocks += other.blocks;
        self.milliseconds += other.milliseconds;
    }
}
