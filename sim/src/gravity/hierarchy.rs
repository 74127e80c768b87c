//! The octree as the Poisson solve sees it, and the ranks that share it.

use crate::parallel::ghost_exchange::GhostExchange;
use crate::parallel::link_lists::CellLinks;
use crate::parallel::links::LevelLinks;
use comove_kernels::{Buffer, DeviceTable, LevelTopology, Real};

/// The octree as the solve sees it.
#[derive(Clone, Copy, Debug)]
pub struct Hierarchy<'a> {
    /// One table a level.
    pub tables: &'a [LevelTopology],
    /// Slot of each root group, `[groups z, y, x]`.
    pub root_slots: &'a DeviceTable<u32>,
    /// Cell width of the root level in code length.
    pub h: f64,
    /// The ranks that share the octree.
    pub ranks: Sharing<'a>,
}

/// Ranks that solve together, and what they send each other about each level; no links where a rank is alone.
#[derive(Clone, Copy, Debug)]
pub struct Sharing<'a> {
    /// Between them.
    pub ghost_exchange: &'a GhostExchange,
    /// By level.
    pub links: &'a [LevelLinks],
}

impl Sharing<'_> {
    /// Brings the ghosts of a level up to date that have to do with a field, `[slots, 16, 16, 16]`.
    pub(crate) fn refresh<T: Real>(&self, level: usize, which: fn(&LevelLinks) -> &CellLinks, field: &mut Buffer<T>) {
        self.refresh_while(level, which, field, |_| ());
    }

    /// The same, with `meanwhile` done while messages are on their way.
    pub(crate) fn refresh_while<T: Real>(
        &self,
        level: usize,
        which: fn(&LevelLinks) -> &CellLinks,
        field: &mut Buffer<T>,
        mut meanwhile: impl FnMut(&mut Buffer<T>),
    ) {
        match self.links.get(level) {
            Some(links) => self.ghost_exchange.exchange_cells_while(which(links), 1, field, meanwhile),
            None => meanwhile(field),
        }
    }
}

impl Hierarchy<'_> {
    /// Cell width of a level.
    pub(crate) fn width(&self, level: usize) -> f64 {
        self.h / (1u64 << level) as f64
    }
}
