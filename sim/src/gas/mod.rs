//! The gas of a run on its device.

pub mod fields;
pub(crate) mod scalars;

use crate::device_arrays::device_arrays;
use crate::mesh::Mesh;
use comove_kernels::ghosts::EarlierFluid;
use comove_kernels::layout::{FLUX_PLANE_VALUES, GROUP_VALUES};
use comove_kernels::reflux::{RefluxTables, reflux};
use comove_kernels::slots::{add_slots, clear_slots, copy_slots};
use comove_kernels::timestep::{SignalSpeed, signal_speed};
use comove_kernels::totals::{GroupTotals, totals};
use comove_kernels::{
    Buffer, Deferred, Device, DeviceTable, Eos, GroupReport, KernelError, LevelTopology, Real, TroubledCells,
    state_hash,
};
use rayon::prelude::*;

device_arrays! {
    /// The gas, on all levels.
    pub struct Gas<T> {
        /// Conserved, comoving, `[slots, 6, 16, 16, 16]`.
        pub fluid: Buffer<T> = |extent| extent.slots * GROUP_VALUES,
        /// Where a sweep writes, then swapped with `fluid`. Same shape.
        pub next: Buffer<T> = |extent| extent.slots * GROUP_VALUES,
        /// Cells that the last sweep could not advance, and room for a redo.
        pub troubled: TroubledCells = |extent| extent.slots,
        /// Fluxes of the last sweep, `[planes, 6, 16, 16]`.
        pub fluxes: Buffer<T> = |extent| extent.flux_planes * FLUX_PLANE_VALUES,
        /// Fluxes summed over the sweeps of the current steps, `[planes, 6, 16, 16]`; empty with uniform steps.
        pub flux_sums: Buffer<T> = |extent| extent.summed_planes * FLUX_PLANE_VALUES,
        /// Levels that have finer ones before their current step, `[places, 6, 16, 16, 16]`; empty with uniform steps.
        pub(crate) earlier: Buffer<T> = |extent| extent.earlier_groups * GROUP_VALUES,
    }
}

impl<T: Real> Gas<T> {
    /// Fluid in double precision put on a device, with nothing beside it yet.
    ///
    /// # Errors
    /// [`KernelError::OutOfMemory`].
    pub(crate) fn from_host(device: &Device, fluid: &[f64]) -> Result<Self, KernelError> {
        let fluid = Buffer::from_host(device, fluid.par_iter().map(|&value| T::from_f64(value)).collect())?;
        Ok(Self { fluid, ..Self::empty(device)? })
    }

    /// Keeps a level that begins a step, of the groups that finer ones interpolate from, and clears the sums of the fluxes
    /// between it and the next finer level.
    pub(crate) fn keep_start(&mut self, device: &Device, mesh: &Mesh, level: usize) {
        let [slots, places] = &mesh.earlier.levels[level];
        copy_slots(device, GROUP_VALUES, &self.fluid, slots, &mut self.earlier, places);
        clear_slots(device, FLUX_PLANE_VALUES, &mut self.flux_sums, &mesh.flux.between[level]);
    }

    /// Adds the fluxes of a level's last sweep to their sums.
    pub(crate) fn sum_fluxes(&mut self, device: &Device, mesh: &Mesh, level: usize) {
        add_slots(device, FLUX_PLANE_VALUES, &self.fluxes, &mut self.flux_sums, &mesh.flux.written[level]);
    }

    /// The fluxes that flux correction takes: of the last sweep, or summed over a step.
    pub(crate) fn correcting_fluxes(&mut self, subcycled: bool) -> &mut Buffer<T> {
        if subcycled { &mut self.flux_sums } else { &mut self.fluxes }
    }

    /// Corrects the fluid of a level by the fluxes of the next finer one, of which a share counts: see
    /// [`comove_kernels::reflux::reflux`].
    pub(crate) fn correct(
        &mut self,
        device: &Device,
        faces: &RefluxTables,
        subcycled: bool,
        dt_over_dx: T,
        eos: &Eos<T>,
    ) -> Deferred<(u32, GroupReport)> {
        let (fluxes, fine_share) = match subcycled {
            true => (&self.flux_sums, T::from_f64(0.5)),
            false => (&self.fluxes, T::one()),
        };
        reflux(device, faces, &mut self.fluid, fluxes, dt_over_dx, fine_share, eos)
    }

    /// Makes what a sweep has written the present state.
    pub(crate) fn swap(&mut self) {
        std::mem::swap(&mut self.fluid, &mut self.next);
    }

    /// Copies slots of `fluid` to those of `next`.
    pub(crate) fn copy_to_next(&mut self, device: &Device, slots: &DeviceTable<u32>) {
        copy_slots(device, GROUP_VALUES, &self.fluid, slots, &mut self.next, slots);
    }

    /// A copy of the fluid, in the room of another if that has the same length; too short a one goes before a longer comes.
    pub(crate) fn save(&self, device: &Device, room: Option<Buffer<T>>) -> Result<Buffer<T>, KernelError> {
        let room = room.filter(|room| room.len() == self.fluid.len());
        let mut saved = room.map_or_else(|| Buffer::zeros(device, self.fluid.len()), Ok)?;
        saved.copy_from(&self.fluid);
        Ok(saved)
    }

    /// Goes back to a copy; a pool that has grown since keeps its length.
    pub(crate) fn restore(&mut self, saved: &Buffer<T>) {
        self.fluid.copy_start_from(saved);
    }

    /// The hash of each group of a level.
    pub(crate) fn hashes(&self, device: &Device, level: &LevelTopology) -> Vec<u64> {
        let mut hashes = vec![0; level.len()];
        state_hash::state_hash(device, level, GROUP_VALUES, &self.fluid, &mut hashes);
        hashes
    }

    /// The sums over the leaf cells of each group of a level.
    pub(crate) fn totals(&self, device: &Device, level: &LevelTopology) -> Vec<GroupTotals> {
        let mut groups = vec![GroupTotals::default(); level.len()];
        totals(device, level, &self.fluid, &mut groups);
        groups
    }

    /// The fastest signal of each group of a level.
    pub(crate) fn signal_speeds(&self, device: &Device, level: &LevelTopology, eos: &Eos<T>) -> Deferred<SignalSpeed> {
        signal_speed(device, level, &self.fluid, eos)
    }
}

/// The fluid at a fraction of the current step of a level, whose end is in the pool.
///
/// * `fluid`: [`Gas::earlier`]
pub(crate) fn earlier_fluid<'a, T: Real>(fluid: &'a Buffer<T>, mesh: &'a Mesh, fraction: f64) -> EarlierFluid<'a, T> {
    EarlierFluid { fluid, places: &mesh.earlier.places, weight: T::from_f64(fraction) }
}
