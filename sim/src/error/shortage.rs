//! The numbers of a tree that does not fit the memory.

use comove_kernels::layout::GROUP_CELLS;
use comove_kernels::memory::GIB;

/// What a run may take of a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// What the device was limited to.
    Limit,
    /// What is free on the device.
    Device,
    /// What is free on the host.
    Host,
}

/// A tree that does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shortage {
    /// Groups of each level that there are.
    pub groups: Vec<usize>,
    /// Groups of each level that are wanted.
    pub wanted: Vec<usize>,
    /// Bytes that it needs.
    pub needed: u64,
    /// Bytes that the run may have: what it has, and what it may take besides.
    pub available: u64,
    /// What says so.
    pub bound: Bound,
}

impl std::fmt::Display for Shortage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let gib = |bytes: u64| bytes as f64 / GIB;
        let grows = |level: &usize| self.wanted[*level] > self.groups.get(*level).copied().unwrap_or(0);
        let level = (0..self.wanted.len()).rev().find(grows).unwrap_or(0);
        let cells: Vec<String> = self.wanted.iter().map(|groups| (groups * GROUP_CELLS).to_string()).collect();
        let place = match self.bound {
            Bound::Limit => "the limit of this run",
            Bound::Device => "free on the device",
            Bound::Host => "free on the host",
        };
        write!(
            f,
            "not enough memory to refine level {level}: {} cells on levels 0–{} need {:.3} GiB; {:.3} GiB are \
             {place}",
            cells.join(" + "),
            self.wanted.len() - 1,
            gib(self.needed),
            gib(self.available),
        )
    }
}

impl Shortage {
    /// Cells that are wanted.
    pub fn cells(&self) -> u64 {
        (self.wanted.iter().sum::<usize>() * GROUP_CELLS) as u64
    }

    /// About as many cells as there is room for.
    pub fn cells_that_fit(&self) -> u64 {
        (self.cells() as f64 * self.available as f64 / self.needed as f64) as u64
    }
}
