//! One hydro sweep of a level: the three directions in turn, ghost cells included.
//!
//! | file | what it holds |
//! |---|---|
//! | `mod.rs` | the operation: shapes, dispatch |
//! | `cpu.rs` | a group on the processor: gather, three directions, synchronisation |
//! | `sheet/` | the one-dimensional schemes on many pencils at once |
//! | `cuda.rs`, `sweep.cuh` | a tile of a group on a GPU; each `sweep_*.cu` makes the kernels of one scheme |
//! | `pencil.cuh` | the scheme along one pencil |

mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
#[cfg(test)]
mod redo_tests;
mod sheet;
#[cfg(test)]
mod tests;

use crate::device::Device;
use crate::device::buffer::Buffer;
use crate::device::deferred::Deferred;
use crate::device::device_table::DeviceTable;
use crate::layout::{FLUX_PLANE_VALUES, FLUX_PLANES, GROUP_VALUES};
use crate::level::ghosts::EarlierFluid;
use crate::level::level_topology::{LevelTopology, NONE};
use crate::level::report::GroupReport;
use crate::level::troubled_cells::TroubledCells;
use crate::operations::scalars::ScalarSweep;
use crate::point::eos::Eos;
use crate::real::Real;
use crate::scheme::Scheme;

/// The scalars of a sweep.
#[derive(Clone, Copy, Debug)]
pub struct SweepParameters<T> {
    /// The scheme.
    pub scheme: Scheme,
    /// Δt̃/h of the level.
    pub dt_over_dx: T,
    /// The axes in the order in which they are swept: 0, 1, 2 or 2, 1, 0 in a step's two sweeps, or any other.
    pub axes: [usize; 3],
    /// The gas.
    pub eos: Eos<T>,
}

/// Which groups of a level are swept: rising places in its list.
#[derive(Clone, Copy, Debug)]
pub enum SweepTargets<'a> {
    /// All of them.
    All,
    /// These.
    Subset(&'a DeviceTable<u32>),
    /// These, again: the faces of the cells that [`TroubledCells::accept`] has made known take the first-order flux
    /// ([`crate::level::troubled_cells`] says which faces exactly). The result conserves if these are the groups that
    /// [`crate::level::troubled_cells::groups_to_redo`] lists.
    Redo(&'a [u32]),
}

impl<'a> SweepTargets<'a> {
    /// The list, if it is not all of them.
    fn list(self) -> Option<&'a [u32]> {
        match self {
            Self::All => None,
            Self::Subset(groups) => Some(groups),
            Self::Redo(groups) => Some(groups),
        }
    }
}

/// What a sweep tells.
#[derive(Debug)]
pub struct SweepOutput {
    /// One number: the leaf cells that it has marked and that were not marked before. There before the reports.
    pub marked: Deferred<u32>,
    /// One for each group swept, in order. Synchronisation is booked as `energy_added` where the entropy scalar decided, as
    /// `floor_energy` and `floor_mass` in cells that were raised to a floor.
    pub reports: Deferred<GroupReport>,
}

impl SweepOutput {
    /// Of a sweep in two parts, of these groups and of the others of the level: reports in the order of its groups.
    #[must_use]
    pub fn joined(self, others: Self, these: &DeviceTable<u32>) -> Self {
        let these: Vec<u32> = these.to_vec();
        let in_order = move |reports: Vec<GroupReport>, others: Vec<GroupReport>| {
            let mut others = others.into_iter();
            let mut all = Vec::with_capacity(reports.len() + others.len());
            for (&g, report) in these.iter().zip(reports) {
                all.extend(others.by_ref().take(g as usize - all.len()));
                all.push(report);
            }
            all.extend(others);
            all
        };
        Self {
            marked: self.marked.join(others.marked, |a, b| vec![a[0] + b[0]]),
            reports: self.reports.join(others.reports, in_order),
        }
    }
}

/// Advances groups of a level by one sweep of a scheme, directions split and each fed with what the one before gave, in
/// the group and in its ghost cells; then makes energy and entropy scalar of every
/// cell agree, as the cells beside it along the three axes decide ([`mod@crate::point::dual_energy`]).
///
/// * `flux_slots`: which plane of `fluxes` takes the flux through each of a group's nine planes, or [`NONE`];
///   `[groups, 9]`, entry `axis * 3 + plane`
/// * `fluid`: the state before, all levels; conserved, comoving, `[slot, 6, 16, 16, 16]`. Ghost cells come from here:
///   from this level, interpolated from the coarser one, and beyond the domain as `tables.faces` says
/// * `earlier`: given where the coarser level is ahead of this one: ghost cells are then interpolated in time too
/// * `out`: the same shape; the slots of the groups are overwritten, no others
/// * `fluxes`: fluxes per unit area and code time of the directional pass, `[plane, 6, 16, 16]`
///   ([`crate::layout::FLUX_PLANE_VALUES`]); the planes that `flux_slots` names are overwritten
/// * `marks`: room for the pool's slots. The slots of the groups take the cells that had to be floored or are
///   not finite
/// * `scalars`: passive scalars that move with the gas, by the mass fluxes that the sweep ends with, those of a redo
///   included. The gas has the same bits without them
/// * `which`: groups to sweep. Those of a level may be swept one part after another
///
/// The bits depend on neither threads nor instruction set, and mirrored input gives mirrored bits.
///
/// # Panics
/// If shapes disagree, two entries of `flux_slots` name one plane, or the level is not properly nested.
pub fn hydro_sweep<T: Real>(
    device: &Device,
    tables: &LevelTopology,
    flux_slots: &DeviceTable<u32>,
    fluid: &Buffer<T>,
    earlier: Option<&EarlierFluid<T>>,
    out: &mut Buffer<T>,
    fluxes: &mut Buffer<T>,
    marks: &mut TroubledCells,
    scalars: Option<&mut ScalarSweep<'_, T>>,
    which: SweepTargets,
    parameters: &SweepParameters<T>,
) -> SweepOutput {
    assert_eq!(fluid.len(), out.len(), "state before and after differ in length");
    assert_eq!(fluid.len() % GROUP_VALUES, 0, "the pool is not a whole number of groups");
    assert_eq!(fluxes.len() % FLUX_PLANE_VALUES, 0, "not a whole number of flux planes");
    assert_eq!(flux_slots.len(), tables.len() * FLUX_PLANES, "flux slots for another number of groups");
    assert!(marks.slots() >= fluid.len() / GROUP_VALUES, "marks for fewer slots");
    tables.check_list(which.list());
    if let Some(scalars) = &scalars {
        scalars.check(fluid, fluxes);
    }
    match device {
        Device::Cpu(cpu) => {
            let reports = cpu.install(|| {
                assert_planes_distinct(flux_slots, fluxes.len() / FLUX_PLANE_VALUES);
                cpu::hydro_sweep(
                    crate::device::isa::Isa::best(),
                    tables,
                    flux_slots,
                    fluid.host(),
                    earlier,
                    out.host_mut(),
                    fluxes.host_mut(),
                    marks.host(),
                    scalars,
                    which,
                    parameters,
                )
            });
            let marked = reports.iter().map(|report| report.marked).sum();
            SweepOutput { marked: Deferred::ready(vec![marked]), reports: Deferred::ready(reports) }
        }
        #[cfg(feature = "cuda")]
        Device::Cuda(device) => {
            let marks = marks.pointers();
            cuda::hydro_sweep(
                device, tables, flux_slots, fluid, earlier, out, fluxes, marks, scalars, which, parameters,
            )
        }
    }
}

/// The parallel loop writes flux planes without locks, which is sound only if no two groups share one.
fn assert_planes_distinct(flux_slots: &[u32], planes: usize) {
    let mut taken = vec![false; planes];
    for &plane in flux_slots.iter().filter(|&&plane| plane != NONE) {
        assert!(!std::mem::replace(&mut taken[plane as usize], true), "flux plane {plane} is named twice");
    }
}
