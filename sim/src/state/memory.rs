//! What a state's arrays take on its device: known before it moves to another tree.
//!
//! | | |
//! |---|---|
//! | `Layout` | a tree, the slots of its groups, and the tables that follow: made on the host, without touching the state |
//! | [`Footprint`] | the bytes of every array, as they are or as a layout wants them |
//! | [`Shortage`] | the numbers where that does not fit |
//!
//! The prediction is exact: the lengths of all arrays follow from the layout, and [`crate::state::State`] makes them in
//! one place. Beside them the device keeps room for what operations take for themselves
//! ([`comove_kernels::Device::working_bytes`]), and the host for the snapshot that a run must be able to write when it has
//! to stop.

use crate::boundary::GravityBoundary;
use crate::error::shortage::Bound;
use crate::gas::level_history::{LevelHistory, read_slots};
use crate::gravity::Gravity;
use crate::io::blocks;
use crate::mesh::Octree;
use crate::mesh::flux_planes::FluxTables;
use crate::mesh::neighbours::{rebuilt_tables, root_slots};
use crate::mesh::sites::{LevelGroups, Sites};
use crate::parallel::root::SharedRoot;
use crate::parallel::share::Share;
use crate::parameters::{Precision, RunParameters, TimeSteps};
use comove_kernels::layout::{FACES, FLUX_PLANE_VALUES, GROUP, GROUP_CELLS, GROUP_VALUES};
use comove_kernels::memory::available;
use comove_kernels::{Device, DeviceTable, FaceBoundary, LevelTopology, Real, RootPoisson, TroubledCells};
use rayon::prelude::*;
use std::sync::OnceLock;

/// Blocks of a file's field that there are at once: one that is written, one that has come, one that is made or sent.
const BLOCKS: usize = 3;

/// A tree with the pool slots of its groups, and what follows from both.
pub(crate) struct Layout {
    /// The groups.
    pub(crate) tree: Octree,
    /// Pool slot of each group, level by level in key order.
    pub(crate) slots: Vec<Vec<u32>>,
    /// Neighbour tables of each level.
    pub(crate) tables: Vec<LevelTopology>,
    /// Flux planes and coarse–fine faces.
    pub(crate) flux: FluxTables,
    /// Slot of each root group; empty where ranks share the root.
    pub(crate) root_slots: DeviceTable<u32>,
    /// What a rank knows of the others.
    pub(crate) share: Share,
    read: OnceLock<Vec<DeviceTable<u32>>>,
}

/// What a layout follows.
pub(crate) struct Before<'a> {
    /// The groups of each level.
    pub(crate) groups: Vec<LevelGroups<'a>>,
    /// Their tables.
    pub(crate) tables: &'a [LevelTopology],
    /// Their flux planes.
    pub(crate) flux: &'a FluxTables,
}

impl Layout {
    /// Derives the tables.
    pub(crate) fn new(tree: Octree, slots: Vec<Vec<u32>>, share: Share, faces: [FaceBoundary; FACES]) -> Self {
        let before = Before { groups: Vec::new(), tables: &[], flux: &FluxTables::default() };
        Self::after(before, 0, tree, slots, share, faces)
    }

    /// The same after another layout: on levels coarser than `first` nothing has changed since, and on that no own group
    /// came or went.
    pub(crate) fn after(
        before: Before,
        first: usize,
        tree: Octree,
        slots: Vec<Vec<u32>>,
        mut share: Share,
        faces: [FaceBoundary; FACES],
    ) -> Self {
        let groups = share.level_groups(&tree, &slots);
        let sites = |level: usize| if level < first { Sites::default() } else { groups[level].sites() };
        let sites: Vec<Sites> = (0..groups.len()).into_par_iter().map(sites).collect();
        let tables = rebuilt_tables(&tree, (&before.groups, before.tables), &groups, &sites, first, faces);
        let root_slots = if share.is_alone() {
            root_slots(&tree, &slots)
        } else {
            share.link(&tree, &sites, first);
            DeviceTable::default()
        };
        let flux = before.flux.rebuilt(first, &tree, &share.known, &sites, &tables);
        Self { tree, slots, tables, flux, root_slots, share, read: OnceLock::new() }
    }

    /// Slots that are taken.
    pub(crate) fn slot_count(&self) -> usize {
        self.tree.group_count() + self.share.ghost_count()
    }

    /// By level: the slots of the groups that finer ones interpolate from, found when they are first asked for.
    pub(crate) fn read_slots(&self) -> &[DeviceTable<u32>] {
        self.read.get_or_init(|| read_slots(&self.tables, &self.share.slots_of_levels(&self.tables)))
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

    /// Groups of each level.
    pub(crate) fn groups(&self) -> Vec<usize> {
        self.tables.iter().map(LevelTopology::len).collect()
    }
}

/// Which arrays a state has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    pub(crate) gravity: bool,
    pub(crate) mass_sheet: bool,
    pub(crate) individual: bool,
}

impl Kind {
    pub(crate) fn of(parameters: &RunParameters) -> Self {
        Self {
            gravity: parameters.gravity,
            mass_sheet: parameters.mass_sheet,
            individual: parameters.time_steps == TimeSteps::Individual,
        }
    }
}

/// Bytes of a state's arrays on its device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// The fluid.
    pub fluid: usize,
    /// Where sweeps write.
    pub next: usize,
    /// Marks of cells to redo.
    pub marks: usize,
    /// Work space of the Poisson solver: boundary values, gradients, correction, sheet.
    pub work: [usize; 4],
    /// Fluxes of the last sweep.
    pub fluxes: usize,
    /// Past states, with individual time steps.
    pub past: usize,
    /// Sums of fluxes, with individual time steps.
    pub register: usize,
    /// The potential.
    pub potential: usize,
    /// The fluid at the start of the root step.
    pub saved: usize,
    /// The root's transforms.
    pub root: usize,
    /// Messages to other ranks and from them.
    pub messages: usize,
    /// Which slot lies where.
    pub tables: usize,
}

impl Footprint {
    /// What a layout wants, with pools of `capacity` slots and so many bytes for the root's transforms.
    pub(crate) fn of<T: Real>(layout: &Layout, capacity: usize, kind: Kind, root: usize) -> Self {
        let Kind { gravity, mass_sheet, individual } = kind;
        let fluid = capacity * GROUP_VALUES * T::BYTES;
        let fluxes = layout.flux.planes * FLUX_PLANE_VALUES * T::BYTES;
        let if_so = |is_so: bool, bytes: usize| if is_so { bytes } else { 0 };
        let [past, places] = match individual {
            true => LevelHistory::<T>::bytes_for(layout.read_slots(), capacity, gravity),
            false => [0; 2],
        };
        let tables = layout.tables.iter().map(LevelTopology::bytes).sum::<usize>();
        Self {
            fluid,
            next: fluid,
            marks: TroubledCells::bytes_for(capacity),
            work: if gravity { Gravity::<T>::work_bytes_for(&layout.groups(), capacity, mass_sheet) } else { [0; 4] },
            fluxes,
            past,
            register: if_so(individual, fluxes),
            potential: if_so(gravity, capacity * GROUP_CELLS * T::BYTES),
            saved: fluid,
            root: if_so(gravity, root),
            messages: 0,
            tables: tables + layout.flux.bytes() + layout.root_slots.bytes() + places,
        }
    }

    /// The arrays that grow, in the order in which they do.
    fn growing(&self) -> [usize; 11] {
        let Self { fluid, next, marks, work: [a, b, c, d], fluxes, past, register, potential, .. } = *self;
        [fluid, next, marks, a, b, c, d, fluxes, past, register, potential]
    }

    /// All of them together.
    pub fn total(&self) -> usize {
        self.growing().iter().sum::<usize>() + self.saved + self.root + self.messages + self.tables
    }

    /// The same with arrays that are longer already: they do not shrink. Tables are made anew.
    #[must_use]
    pub(crate) fn grown_from(self, now: &Self) -> Self {
        let mut work = self.work;
        work.iter_mut().zip(now.work).for_each(|(then, now)| *then = now.max(*then));
        Self {
            fluid: self.fluid.max(now.fluid),
            next: self.next.max(now.next),
            marks: self.marks.max(now.marks),
            work,
            fluxes: self.fluxes.max(now.fluxes),
            past: self.past.max(now.past),
            register: self.register.max(now.register),
            potential: self.potential.max(now.potential),
            saved: self.saved.max(now.saved),
            root: self.root.max(now.root),
            messages: self.messages.max(now.messages),
            tables: self.tables,
        }
    }

    /// The most that is taken on the way from `now` to `self`: an array that grows is copied, so for a moment both its
    /// old and its new self are there. The saved fluid is made anew when it is next needed, room for messages after the old
    /// one is given back.
    pub(crate) fn peak_from(&self, now: &Self) -> usize {
        let mut taken = now.total() - now.root - now.messages + self.root + self.messages;
        let mut peak = taken;
        for (then, now) in self.growing().into_iter().zip(now.growing()).filter(|(then, now)| then > now) {
            peak = peak.max(taken + then);
            taken += then - now;
        }
        peak.max(self.total())
    }
}

/// Bytes that a run takes on a device while it is on this tree: what [`crate::Simulation::start`] asks for.
pub fn device_bytes(device: &Device, tree: &Octree, parameters: &RunParameters) -> usize {
    let root = root_bytes(device, tree.root_groups().map(|n| n as usize), parameters, (0, 1));
    footprint(tree, parameters, root).total() + device.working_bytes(tree.group_count())
}

/// The same for a root of so many cells along x, y, z alone, however many they are.
pub fn root_device_bytes(device: &Device, cells: [usize; 3], parameters: &RunParameters) -> f64 {
    // every group of the root takes the same, and transforms of meshes larger than this as much a cell
    const LARGE: usize = 4096;
    let volume = |cells: [usize; 3]| cells.into_iter().map(|n| n as f64).product::<f64>();
    let part = cells.map(|n| n.min(LARGE));
    let transforms =
        root_bytes(device, part.map(|n| n / GROUP), parameters, (0, 1)) as f64 * volume(cells) / volume(part);
    let group = footprint(&Octree::new([1; 3], parameters.boundary.periodic()), parameters, 0).total();
    let [some, more] = [1, 2].map(|groups| device.working_bytes(groups) as f64);
    let groups = volume(cells) / GROUP_CELLS as f64;
    transforms + some + (groups - 1.0) * (more - some) + groups * group as f64
}

/// The arrays of a state that starts on this tree.
fn footprint(tree: &Octree, parameters: &RunParameters, root: usize) -> Footprint {
    let layout = Layout::in_order(tree.clone(), parameters.boundary.for_kernels(parameters.gamma));
    let (capacity, kind) = (tree.group_count(), Kind::of(parameters));
    match parameters.precision {
        Precision::Single => Footprint::of::<f32>(&layout, capacity, kind, root),
        Precision::Double => Footprint::of::<f64>(&layout, capacity, kind, root),
    }
}

/// Bytes for the transforms of a root of so many groups, on one of the ranks that share it.
pub(crate) fn root_bytes(
    device: &Device,
    groups: [usize; 3],
    parameters: &RunParameters,
    (rank, ranks): (usize, usize),
) -> usize {
    let isolated = parameters.gravity_boundary == GravityBoundary::Isolated;
    match ranks {
        _ if !parameters.gravity => 0,
        1 => RootPoisson::bytes_for(device, groups, isolated),
        _ => match parameters.precision {
            Precision::Single => SharedRoot::<f32>::bytes_for(device, groups, isolated, (rank, ranks)),
            Precision::Double => SharedRoot::<f64>::bytes_for(device, groups, isolated, (rank, ranks)),
        },
    }
}

/// Bytes that a snapshot of so many groups takes on the host while it is made and written: fields and potential in double
/// precision, and beside them what comes from a GPU, and blocks of a field of the file.
///
/// * `value`: bytes of a value on the device.
pub fn snapshot_bytes(device: &Device, groups: usize, value: usize) -> usize {
    let values = GROUP_VALUES + GROUP_CELLS;
    let from_device = if on_host(device) { 0 } else { values * value };
    let blocks = BLOCKS * groups.min(blocks::GROUPS) * GROUP_CELLS * value;
    groups.saturating_mul(values * size_of::<f64>() + from_device).saturating_add(blocks)
}

/// Whether the device's memory is the host's.
fn on_host(device: &Device) -> bool {
    matches!(device, Device::Cpu(_))
}

/// The memories that a run draws on, as they are now.
pub(crate) struct Memories {
    /// Bytes that the device was limited to.
    limit: Option<u64>,
    /// Bytes that are free on the device.
    device: Option<u64>,
    /// Bytes that are free on the host.
    host: Option<u64>,
    /// Whether these two are one.
    shared: bool,
}

impl Memories {
    pub(crate) fn of(device: &Device) -> Self {
        Self {
            limit: device.memory_limit(),
            device: device.free_bytes(),
            host: available().map(|bytes| bytes as u64),
            shared: on_host(device),
        }
    }

    /// What stands in the way of taking `peak` bytes of the device in all, where `taken` are taken, and leaving room for
    /// a snapshot on the host: bytes needed, bytes available.
    pub(crate) fn lack(&self, taken: usize, peak: usize, snapshot: usize) -> Option<(Bound, u64, u64)> {
        let [taken, peak, snapshot] = [taken, peak, snapshot].map(|bytes| bytes as u64);
        let on_device = peak + if self.shared { snapshot } else { 0 };
        let bounds = [
            (Bound::Limit, peak, self.limit),
            (Bound::Device, on_device, self.device.map(|free| taken + free)),
            (Bound::Host, snapshot, self.host.filter(|_| !self.shared)),
        ];
        bounds
            .into_iter()
            .find_map(|(bound, needed, has)| has.filter(|&has| needed > has).map(|has| (bound, needed, has)))
    }
}
