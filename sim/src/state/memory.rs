//! What a state's arrays take on its device: known before it moves to another tree.
//!
//! The prediction is exact: the lengths of all arrays follow from the mesh (`device_arrays`). Beside them the device
//! keeps room for what operations take for themselves ([`comove_kernels::Device::working_bytes`]), and the host for the
//! snapshot that a run must be able to write when it has to stop.

use crate::dark_matter::{DarkMatter, SavedParticles};
use crate::device_arrays::{ArrayBytes, Extent};
use crate::error::SimError;
use crate::error::shortage::{Bound, Shortage};
use crate::gas::Gas;
use crate::gravity::{Gravity, root_bytes};
use crate::io::blocks;
use crate::mesh::Octree;
use crate::mesh::earlier_groups::EarlierGroups;
use crate::parallel::links::coarsest_slots;
use crate::parameters::{Precision, RunParameters, TimeSteps};
use crate::state::layout::Layout;
use comove_kernels::layout::{GROUP, GROUP_CELLS, GROUP_VALUES};
use comove_kernels::memory::available;
use comove_kernels::particles::{COLUMNS, Particles};
use comove_kernels::{Device, Real};

/// Blocks of a file's field that there are at once: one that is written, one that has come, one that is made or sent.
const BLOCKS: usize = 3;

/// Which arrays a state has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    /// Whether there is gas.
    pub(crate) gas: bool,
    /// How many passive scalars.
    pub(crate) scalars: usize,
    /// Whether there is dark matter.
    dark_matter: bool,
    /// Particles that this rank has room for.
    pub(crate) particles: usize,
    pub(crate) gravity: bool,
    has_sheets: bool,
    pub(crate) subcycled: bool,
}

impl Kind {
    /// * `species`: on this rank
    pub(crate) fn of(parameters: &RunParameters, species: Species) -> Self {
        let Species { gas, particles } = species;
        Self {
            gas,
            scalars: parameters.scalars.len(),
            dark_matter: particles > 0,
            particles,
            gravity: parameters.gravity,
            has_sheets: parameters.sheet_passes > 0,
            subcycled: parameters.time_steps == TimeSteps::Individual,
        }
    }

    /// With dark matter and room for so many particles.
    pub(crate) fn with_particles(self, particles: usize) -> Self {
        Self { dark_matter: true, particles, ..self }
    }

    /// With room for so many particles, if there is dark matter.
    pub(crate) fn with_room_for(self, particles: usize) -> Self {
        if self.dark_matter { Self { particles, ..self } } else { self }
    }

    /// Values of a group that a step advances, gas and passive scalars.
    pub(crate) fn values(self) -> usize {
        if self.gas { GROUP_VALUES + self.scalars * GROUP_CELLS } else { 0 }
    }

    /// The lengths of the arrays for a layout in pools of `capacity` slots.
    pub(crate) fn extent(self, layout: &Layout, capacity: usize) -> Extent {
        let planes = layout.mesh.flux.planes;
        let groups = || layout.read_slots().iter().map(|slots| slots.len()).sum();
        Extent {
            flux_planes: planes,
            summed_planes: if self.subcycled { planes } else { 0 },
            earlier_groups: if self.subcycled { groups() } else { 0 },
            matter_slots: if self.dark_matter { capacity } else { 0 },
            ..Extent::of_levels(&layout.mesh.groups(), [capacity, coarsest_slots(&layout.share.links)], self.has_sheets)
        }
    }
}

/// What a run evolves, as far as it decides how much memory it takes.
#[derive(Clone, Copy, Debug)]
pub struct Species {
    /// Whether there is gas.
    pub gas: bool,
    /// Particles of dark matter.
    pub particles: usize,
}

/// Bytes of a state's arrays on its device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// The arrays that are copied where they grow, in the order in which they do.
    pub(crate) arrays: Vec<ArrayBytes>,
    /// The fluid and the particles at the start of the root step.
    pub(crate) saved: usize,
    /// The particles, with room to sort them.
    pub(crate) particles: usize,
    /// The root's transforms.
    pub(crate) root: usize,
    /// Messages to other ranks and from them.
    pub(crate) messages: usize,
    /// The tables of the mesh.
    pub(crate) tables: usize,
}

impl Footprint {
    /// What a layout wants, with pools of `capacity` slots and so many bytes for the root's transforms.
    pub(crate) fn of<T: Real>(layout: &Layout, capacity: usize, kind: Kind, root: usize) -> Self {
        let extent = kind.extent(layout, capacity);
        let mut arrays = if kind.gas { Gas::<T>::footprint_for(&extent, kind.scalars) } else { Vec::new() };
        if kind.dark_matter {
            arrays.extend(DarkMatter::<T>::footprint_for(&extent));
        }
        if kind.gravity {
            arrays.extend(Gravity::<T>::footprint_for(&extent));
        }
        let earlier = if kind.subcycled { EarlierGroups::bytes_for(extent.earlier_groups, capacity) } else { 0 };
        Self {
            arrays,
            saved: capacity * kind.values() * T::BYTES + SavedParticles::bytes_for(kind.particles),
            particles: Particles::bytes_for(kind.particles),
            root: if kind.gravity { root } else { 0 },
            messages: 0,
            tables: layout.mesh.table_bytes()
                + layout.share.table_bytes()
                + earlier
                + if kind.dark_matter { layout.locator_bytes(capacity) } else { 0 },
        }
    }

    /// All of them together.
    pub fn total(&self) -> usize {
        let arrays = self.arrays.iter().map(|(_, bytes)| bytes).sum::<usize>();
        arrays + self.saved + self.particles + self.root + self.messages + self.tables
    }

    /// The same with arrays that are longer already: they do not shrink. Tables are rebuilt.
    #[must_use]
    pub(crate) fn grown_from(mut self, now: &Self) -> Self {
        self.arrays.iter_mut().zip(&now.arrays).for_each(|(then, now)| then.1 = then.1.max(now.1));
        self.saved = self.saved.max(now.saved);
        self.root = self.root.max(now.root);
        self.messages = self.messages.max(now.messages);
        self
    }

    /// The most that is taken on the way from `now` to `self`: an array that grows is copied, so for a moment its old and its
    /// new self exist. The saved fluid is allocated again when it is next needed, room for messages after the old one is given
    /// back.
    pub(crate) fn peak_from(&self, now: &Self) -> usize {
        let mut taken = now.total() - now.root - now.messages + self.root + self.messages;
        let mut peak = taken;
        for ((_, then), (_, now)) in self.arrays.iter().zip(&now.arrays).filter(|(then, now)| then.1 > now.1) {
            peak = peak.max(taken + then);
            taken += then - now;
        }
        // particles grow column by column
        peak += if self.particles > now.particles { now.particles.div_ceil(COLUMNS) } else { 0 };
        peak.max(self.total())
    }
}

/// Bytes that a run takes on a device while it is on this tree: what [`crate::Simulation::start`] needs.
pub fn device_bytes(device: &Device, tree: &Octree, parameters: &RunParameters, species: Species) -> usize {
    let root = root_bytes(device, tree.root_groups().map(|n| n as usize), parameters, (0, 1));
    footprint(tree, parameters, species, root).total() + device.working_bytes(tree.group_count())
}

/// The same for a root of so many cells along x, y, z alone, however many they are.
pub fn root_device_bytes(device: &Device, cells: [usize; 3], parameters: &RunParameters, species: Species) -> f64 {
    // every group of the root takes the same, and transforms of meshes larger than this as much a cell
    const LARGE: usize = 4096;
    let volume = |cells: [usize; 3]| cells.into_iter().map(|n| n as f64).product::<f64>();
    let part = cells.map(|n| n.min(LARGE));
    let transforms =
        root_bytes(device, part.map(|n| n / GROUP), parameters, (0, 1)) as f64 * volume(cells) / volume(part);
    let of_group = footprint(&Octree::new([1; 3], parameters.boundary.periodic()), parameters, species, 0);
    let particles = Particles::bytes_for(species.particles) + SavedParticles::bytes_for(species.particles);
    let group = of_group.total() - particles;
    let [some, more] = [1, 2].map(|groups| device.working_bytes(groups) as f64);
    let groups = volume(cells) / GROUP_CELLS as f64;
    transforms + some + (groups - 1.0) * (more - some) + groups * group as f64 + particles as f64
}

/// The arrays of a state that starts on this tree.
fn footprint(tree: &Octree, parameters: &RunParameters, species: Species, root: usize) -> Footprint {
    let layout = Layout::in_order(tree.clone(), parameters.boundary.for_kernels(parameters.gamma));
    let (capacity, kind) = (tree.group_count(), Kind::of(parameters, species));
    match parameters.precision {
        Precision::Single => Footprint::of::<f32>(&layout, capacity, kind, root),
        Precision::Double => Footprint::of::<f64>(&layout, capacity, kind, root),
    }
}

/// Bytes that a snapshot of so many groups takes on the host while it is made and written: fields and potential in double
/// precision, and beside them what comes from a GPU, and blocks of a field of the file.
///
/// * `scalars`: how many
/// * `species`: of the first of several ranks all ranks' particles and its own
/// * `value`: bytes of a value on the device.
pub fn snapshot_bytes(device: &Device, groups: usize, scalars: usize, species: Species, value: usize) -> usize {
    let Species { gas, particles } = species;
    let dark_matter = usize::from(particles > 0);
    let values = if gas { GROUP_VALUES } else { 0 } + (1 + scalars + dark_matter) * GROUP_CELLS;
    let weights = dark_matter * GROUP_CELLS * (size_of::<u64>() - value);
    let from_device = if on_host(device) { 0 } else { values * value + weights };
    let blocks = BLOCKS * groups.min(blocks::GROUPS) * GROUP_CELLS * value;
    // as they come, in order, and as the file has them
    let particles = 3 * SavedParticles::bytes_for(particles);
    groups.saturating_mul(values * size_of::<f64>() + from_device).saturating_add(blocks + particles)
}

/// Whether the device's memory is the host's.
fn on_host(device: &Device) -> bool {
    matches!(device, Device::Cpu(_))
}

/// The memories that a run draws on, as they are now.
struct Memories {
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
    fn of(device: &Device) -> Self {
        Self {
            limit: device.memory_limit(),
            device: device.free_bytes(),
            host: available().map(|bytes| bytes as u64),
            shared: on_host(device),
        }
    }

    /// What stands in the way of taking `peak` bytes of the device in all, where `taken` are taken, and leaving room for
    /// a snapshot on the host: bytes needed, bytes available.
    fn lack(&self, taken: usize, peak: usize, snapshot: usize) -> Option<(Bound, u64, u64)> {
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

/// Refuses a layout that does not fit where so many bytes are taken and at most `peak` of the device will be, or that leaves
/// no room for a snapshot on the host.
///
/// * `groups`: of each level now
///
/// # Errors
/// [`SimError::OutOfMemory`].
pub(crate) fn check_room(
    device: &Device,
    [taken, peak, snapshot]: [usize; 3],
    groups: Vec<usize>,
    layout: &Layout,
) -> Result<(), SimError> {
    let Some((bound, needed, available)) = Memories::of(device).lack(taken, peak, snapshot) else { return Ok(()) };
    let wanted = layout.mesh.groups();
    Err(SimError::OutOfMemory(Box::new(Shortage { groups, wanted, needed, available, bound })))
}
