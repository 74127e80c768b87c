//! The groups whose earlier states finer ones interpolate from where levels are subcycled.

use crate::mesh::nesting::AROUND;
use comove_kernels::level_topology::NONE;
use comove_kernels::{DeviceTable, LevelTopology};
use rayon::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};

/// Groups whose parents one thread looks at.
const GROUPS_AT_ONCE: usize = 512;

/// Where arrays of earlier states hold which group: in *places*, counted level by level in key order. A regrid of the levels
/// finer than one that has finished its step leaves the places of coarser levels alone.
#[derive(Clone, Debug, Default)]
pub struct EarlierGroups {
    /// Place of the group in each slot, [`NONE`] where no finer group is near.
    pub places: DeviceTable<u32>,
    /// Per level: the slots of the groups that have a place, and these places.
    pub levels: Vec<[DeviceTable<u32>; 2]>,
}

impl EarlierGroups {
    /// Of the groups in these slots of pools with `capacity` slots.
    ///
    /// * `read`: by level, what [`read_slots`] gives
    pub fn new(read: &[DeviceTable<u32>], capacity: usize) -> Self {
        let mut places = vec![NONE; capacity];
        let mut groups = 0;
        let of_level = |slots: &DeviceTable<u32>| {
            let first = groups;
            groups += slots.len() as u32;
            for (place, &slot) in (first..).zip(slots) {
                places[slot as usize] = place;
            }
            [slots.clone(), (first..groups).collect()]
        };
        let levels = read.iter().map(of_level).collect();
        Self { places: places.into(), levels }
    }

    /// Bytes of the tables on the device.
    pub fn bytes(&self) -> usize {
        self.places.bytes() + self.levels.iter().flatten().map(DeviceTable::bytes).sum::<usize>()
    }

    /// The same of those for `groups` groups in pools of `capacity` slots.
    pub fn bytes_for(groups: usize, capacity: usize) -> usize {
        (capacity + 2 * groups) * size_of::<u32>()
    }
}

/// By level: the slots of the groups that finer ones interpolate from.
///
/// * `slots`: of each level, ghosts included
pub fn read_slots(tables: &[LevelTopology], slots: &[DeviceTable<u32>]) -> Vec<DeviceTable<u32>> {
    let end = slots.iter().flatten().max().map_or(0, |&last| last as usize + 1);
    let read: Vec<AtomicBool> = (0..end).map(|_| AtomicBool::new(false)).collect();
    for finer in tables {
        (0..finer.len()).into_par_iter().with_min_len(GROUPS_AT_ONCE).for_each(|g| {
            let around = AROUND[usize::from(finer.octants[g])];
            let parents = finer.parent_row(g).iter().enumerate();
            for (_, &slot) in parents.filter(|(entry, slot)| around >> entry & 1 == 1 && **slot != NONE) {
                read[slot as usize].store(true, Ordering::Relaxed);
            }
        });
    }
    let of_level = |level: &DeviceTable<u32>| {
        level.iter().copied().filter(|&slot| read[slot as usize].load(Ordering::Relaxed)).collect()
    };
    slots.par_iter().map(of_level).collect()
}
