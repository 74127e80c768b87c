//! Numbers of a level's groups by their positions along its Morton curve.

use crate::mesh::Key;
use comove_kernels::level_topology::NONE;
use rustc_hash::FxHashMap;

/// Positions of a block: 4³ groups.
const BLOCK: usize = 64;

/// Numbers by position ([`Key::morton`]), [`NONE`] where there is none. Groups are mostly beside others, so one look-up serves
/// many.
#[derive(Clone, Debug, Default)]
pub(crate) struct MortonMap {
    blocks: FxHashMap<u64, [u32; BLOCK]>,
}

impl MortonMap {
    /// The number at a position, to be set.
    pub(crate) fn entry(&mut self, position: u64) -> &mut u32 {
        let block = self.blocks.entry(position / BLOCK as u64).or_insert([NONE; BLOCK]);
        &mut block[position as usize % BLOCK]
    }

    /// The number at a position.
    pub(crate) fn at(&self, position: u64) -> u32 {
        self.blocks.get(&(position / BLOCK as u64)).map_or(NONE, |block| block[position as usize % BLOCK])
    }

    /// The number of a group.
    pub(crate) fn find(&self, key: Key) -> u32 {
        self.at(key.morton())
    }

    /// All positions with a number, in any order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, u32)> {
        let of_block = |(&block, numbers): (&u64, &[u32; BLOCK])| {
            let numbers = (block * BLOCK as u64..).zip(*numbers);
            numbers.filter(|(_, number)| *number != NONE)
        };
        self.blocks.iter().flat_map(of_block)
    }
}
