//! A tree that a state may move to, with what follows from it: made on the host, without touching the state.

use crate::dark_matter;
use crate::mesh::earlier_groups::read_slots;
use crate::mesh::flux_planes::FluxTables;
use crate::mesh::neighbours::{rebuilt_tables, root_slots};
use crate::mesh::sites::Sites;
use crate::mesh::{Mesh, Octree};
use crate::parallel::share::Share;
use comove_kernels::layout::FACES;
use comove_kernels::{DeviceTable, FaceBoundary, GroupLocator};
use rayon::prelude::*;
use std::sync::OnceLock;

/// A mesh, and what its rank knows of the others.
pub(crate) struct Layout {
    /// Without the groups that finer ones interpolate from in time.
    pub(crate) mesh: Mesh,
    pub(crate) share: Share,
    read: OnceLock<Vec<DeviceTable<u32>>>,
    located: OnceLock<GroupLocator>,
}

impl Layout {
    /// Derives the tables.
    pub(crate) fn new(tree: Octree, slots: Vec<Vec<u32>>, share: Share, faces: [FaceBoundary; FACES]) -> Self {
        Self::after(None, 0, tree, slots, share, faces)
    }

    /// The same after another mesh: on levels coarser than `first` nothing has changed since, and on that no own group came
    /// or went.
    pub(crate) fn after(
        before: Option<(&Mesh, &Share)>,
        first: usize,
        tree: Octree,
        slots: Vec<Vec<u32>>,
        mut share: Share,
        faces: [FaceBoundary; FACES],
    ) -> Self {
        let groups = share.level_groups(&tree, &slots);
        let sites = |level: usize| if level < first { Sites::default() } else { groups[level].sites() };
        let sites: Vec<Sites> = (0..groups.len()).into_par_iter().map(sites).collect();
        let groups_before = before.map_or_else(Vec::new, |(mesh, share)| share.level_groups(&mesh.tree, &mesh.slots));
        let tables_before = before.map_or(&[][..], |(mesh, _)| &mesh.tables);
        let tables = rebuilt_tables(&tree, (&groups_before, tables_before), &groups, &sites, first, faces);
        let root_slots = if share.is_alone() {
            root_slots(&tree, &slots)
        } else {
            share.link(&tree, &tables, &sites, first);
            if let Some(deposits) = &mut share.deposits {
                deposits.link(&tree, &slots, &share.ghosts);
            }
            DeviceTable::default()
        };
        let none = FluxTables::default();
        let flux = before.map_or(&none, |(mesh, _)| &mesh.flux).rebuilt(first, &tree, &share.known, &sites, &tables);
        let mesh = Mesh { slots, tables, flux, root_slots, ..Mesh::of_tree(tree, faces) };
        Self { mesh, share, read: OnceLock::new(), located: OnceLock::new() }
    }

    /// The groups in key order in the first slots.
    pub(crate) fn in_order(tree: Octree, faces: [FaceBoundary; FACES]) -> Self {
        let level = |level: usize| {
            let first = tree.first_of_level(level) as u32;
            (first..first + tree.level(level).len() as u32).collect()
        };
        let slots = (0..tree.level_count()).map(level).collect();
        let share = Share::alone(&tree);
        Self::new(tree, slots, share, faces)
    }

    /// Slots that are taken.
    pub(crate) fn slot_count(&self) -> usize {
        self.mesh.tree.group_count() + self.share.ghost_count()
    }

    /// What particles look up, in pools of `capacity` slots.
    pub(crate) fn locator(&self, capacity: usize) -> GroupLocator {
        match self.share.is_alone() {
            true => self.mesh.locator(capacity),
            false => self.located.get_or_init(|| dark_matter::locator(&self.mesh, &self.share)).clone(),
        }
    }

    /// Bytes of it.
    pub(crate) fn locator_bytes(&self, capacity: usize) -> usize {
        match self.share.is_alone() {
            true => GroupLocator::bytes_for(capacity),
            false => self.locator(capacity).bytes(),
        }
    }

    /// By level: the slots of the groups that finer ones interpolate from, found at the first call.
    pub(crate) fn read_slots(&self) -> &[DeviceTable<u32>] {
        self.read.get_or_init(|| read_slots(&self.mesh.tables, &self.share.slots_of_levels(&self.mesh.tables)))
    }
}
