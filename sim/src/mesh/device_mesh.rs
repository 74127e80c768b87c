//! The octree of a run in the slots of its pools.

use crate::mesh::earlier_groups::EarlierGroups;
use crate::mesh::flux_planes::FluxTables;
use crate::mesh::{Key, Octree};
use comove_kernels::layout::{FACES, GROUP, OCTANTS, cell_coordinate, direction};
use comove_kernels::level_topology::NONE;
use comove_kernels::{DeviceTable, FaceBoundary, GroupLocator, LevelTopology, buffer_sides};
use rayon::prelude::*;

/// Groups whose buffers one thread finds.
const GROUPS_AT_ONCE: usize = 512;

/// The sides of a level's groups that are in its buffer ([`buffer_sides`]).
pub(crate) fn buffers_of(tables: &LevelTopology) -> Vec<u32> {
    let sides_of = |g: usize| buffer_sides(|[x, y, z]| tables.row(g)[direction(x, y, z)] == NONE);
    (0..tables.len()).into_par_iter().with_min_len(GROUPS_AT_ONCE).map(sides_of).collect()
}

/// An octree, the slots of its groups, and the tables that follow from both. Groups sit in slots of the pools; a group keeps
/// its slot as long as it exists.
#[derive(Clone, Debug)]
pub struct Mesh {
    /// The groups; where ranks share a tree, those that this one owns.
    pub tree: Octree,
    /// Pool slot of each group, level by level in key order.
    pub slots: Vec<Vec<u32>>,
    /// Neighbour tables of each level.
    pub tables: Vec<LevelTopology>,
    /// Flux planes and coarse–fine faces.
    pub flux: FluxTables,
    /// Slot of each root group; empty where ranks share the root.
    pub root_slots: DeviceTable<u32>,
    /// The boundary conditions at the faces of the box.
    pub faces: [FaceBoundary; FACES],
    /// The groups that finer ones interpolate from in time; empty with uniform steps.
    pub earlier: EarlierGroups,
}

impl Mesh {
    /// Without slots and tables yet.
    pub(crate) fn of_tree(tree: Octree, faces: [FaceBoundary; FACES]) -> Self {
        Self {
            tree,
            slots: Vec::new(),
            tables: Vec::new(),
            flux: FluxTables::default(),
            root_slots: DeviceTable::default(),
            faces,
            earlier: EarlierGroups::default(),
        }
    }

    /// Groups of each level.
    pub fn groups(&self) -> Vec<usize> {
        self.tables.iter().map(LevelTopology::len).collect()
    }

    /// Bytes of the tables on the device, without those of `earlier`.
    pub(crate) fn table_bytes(&self) -> usize {
        self.tables.iter().map(LevelTopology::bytes).sum::<usize>() + self.flux.bytes() + self.root_slots.bytes()
    }

    /// The cell on its level's lattice of an offset in a group.
    pub fn locate(&self, level: usize, group: usize, cell: usize) -> [usize; 3] {
        let key = self.tree.level(level)[group];
        let at = cell_coordinate(cell);
        std::array::from_fn(|axis| key.coordinate[axis] as usize * GROUP + at[axis])
    }

    /// What particles of a rank that is alone look up, in pools of `capacity` slots.
    pub(crate) fn locator(&self, capacity: usize) -> GroupLocator {
        let mut children = vec![NONE; capacity * OCTANTS];
        let (mut numbers, mut buffers) = (vec![NONE; capacity], vec![0; capacity]);
        let mut first = vec![0];
        for tables in &self.tables {
            let before = first[first.len() - 1];
            for (g, (&slot, sides)) in tables.slots.iter().zip(buffers_of(tables)).enumerate() {
                children[slot as usize * OCTANTS..][..OCTANTS].copy_from_slice(tables.children_of(g));
                numbers[slot as usize] = before + g as u32;
                buffers[slot as usize] = sides;
            }
            first.push(before + tables.len() as u32);
        }
        GroupLocator {
            root: self.tree.root_groups(),
            slots: capacity as u32,
            root_slots: self.root_slots.clone(),
            children: children.into(),
            numbers: numbers.into(),
            buffers: buffers.into(),
            first: first.into(),
        }
    }

    /// The slot of an own group.
    pub fn slot_of(&self, key: Key) -> Option<u32> {
        self.tree.find(key).map(|group| self.slots[usize::from(key.level)][group])
    }

    /// Keeps the copies on a GPU of tables that have not changed since `old`.
    pub(crate) fn keep(&mut self, old: Self) {
        self.tables.iter_mut().zip(old.tables).for_each(|(new, old)| new.keep(old));
        self.root_slots.keep(old.root_slots);
        self.flux.keep(old.flux);
    }
}
