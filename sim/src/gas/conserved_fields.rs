//! Storage, ghost exchange, flux sums and past states of any number of conserved fields.

use crate::device_arrays::device_arrays;
use crate::mesh::Mesh;
use crate::parallel::exchange::Exchange;
use crate::parallel::link_lists::{CellLinks, SlotLinks};
use crate::parallel::links::LevelLinks;
use comove_kernels::ghosts::EarlierFluid;
use comove_kernels::layout::{FACE_CELLS, GROUP_CELLS};
use comove_kernels::slots::{add_slots, clear_slots, copy_slots};
use comove_kernels::{Buffer, Device, DeviceTable, KernelError, LevelTopology, Real, state_hash};

device_arrays! {
    /// `count` conserved fields on all levels: the six of the fluid, or passive scalars. Operations that depend on their
    /// meaning are elsewhere: flux correction, restriction and prolongation in [`crate::Gas`], sweeps in `step::level_sweep`.
    pub struct ConservedFields<T> of count {
        /// Comoving densities, `[slots, count, 16, 16, 16]`.
        pub values: Buffer<T> = |extent| extent.slots * extent.fields * GROUP_CELLS,
        /// Where a sweep writes, then swapped with `values`. Same shape.
        pub next: Buffer<T> = |extent| extent.slots * extent.fields * GROUP_CELLS,
        /// Fluxes of the last sweep, `[planes, count, 16, 16]`.
        pub fluxes: Buffer<T> = |extent| extent.flux_planes * extent.fields * FACE_CELLS,
        /// Fluxes summed over the sweeps of the current steps, `[planes, count, 16, 16]`; empty with uniform steps.
        pub flux_sums: Buffer<T> = |extent| extent.summed_planes * extent.fields * FACE_CELLS,
        /// Levels that have finer ones before their current step, `[places, count, 16, 16, 16]`; empty with uniform steps.
        pub(crate) earlier: Buffer<T> = |extent| extent.earlier_groups * extent.fields * GROUP_CELLS,
    }
}

impl<T: Real> ConservedFields<T> {
    /// Values on a device; the other arrays are empty.
    ///
    /// # Errors
    /// [`KernelError::OutOfMemory`].
    pub(super) fn of(device: &Device, count: usize, values: Buffer<T>) -> Result<Self, KernelError> {
        Ok(Self { values, ..Self::empty(device, count)? })
    }

    /// Values of a group.
    pub(crate) fn of_group(&self) -> usize {
        self.count * GROUP_CELLS
    }

    /// Values of a flux plane.
    fn of_plane(&self) -> usize {
        self.count * FACE_CELLS
    }

    /// Brings ghosts of a level up to date; nothing to do for a rank that is alone.
    pub(crate) fn refresh(&mut self, exchange: &Exchange, level: usize, cells: fn(&LevelLinks) -> &CellLinks) {
        exchange.refresh(level, cells, self.count, &mut self.values);
    }

    /// Sends the patches that ranks have refined to the owners of their groups.
    pub(super) fn send_patches(&mut self, exchange: &Exchange, links: &LevelLinks) {
        exchange.ghosts.exchange_cells(&links.patches, self.count, &mut self.values);
    }

    /// Sends whole groups; those that come go to `next`.
    pub(crate) fn send_groups(&mut self, exchange: &Exchange, links: &SlotLinks) {
        exchange.ghosts.send_slots(links, self.of_group(), &self.values, &mut self.next);
    }

    /// Keeps a level that begins a step, of the groups that finer ones interpolate from, and clears the sums of the fluxes
    /// between it and the next finer level.
    pub(crate) fn keep_start(&mut self, device: &Device, mesh: &Mesh, level: usize) {
        let (of_group, of_plane) = (self.of_group(), self.of_plane());
        let [slots, places] = &mesh.earlier.levels[level];
        copy_slots(device, of_group, &self.values, slots, &mut self.earlier, places);
        clear_slots(device, of_plane, &mut self.flux_sums, &mesh.flux.between[level]);
    }

    /// Adds the fluxes of a level's last sweep to their sums.
    pub(crate) fn sum_fluxes(&mut self, device: &Device, mesh: &Mesh, level: usize) {
        let of_plane = self.of_plane();
        add_slots(device, of_plane, &self.fluxes, &mut self.flux_sums, &mesh.flux.written[level]);
    }

    /// Sends the fluxes that flux correction takes (of the last sweep, or summed over a step) to the ranks that own the
    /// coarse groups.
    pub(crate) fn send_fluxes(&mut self, exchange: &Exchange, links: &SlotLinks, subcycled: bool) {
        let of_plane = self.of_plane();
        let fluxes = if subcycled { &mut self.flux_sums } else { &mut self.fluxes };
        exchange.ghosts.exchange_slots(links, of_plane, fluxes);
    }

    /// The values, to be corrected by fluxes of the next finer level (of the last sweep, or summed over a step), of which
    /// this share counts: see [`comove_kernels::reflux::reflux`].
    pub(super) fn correction(&mut self, subcycled: bool) -> (&mut Buffer<T>, &Buffer<T>, T) {
        match subcycled {
            true => (&mut self.values, &self.flux_sums, T::from_f64(0.5)),
            false => (&mut self.values, &self.fluxes, T::one()),
        }
    }

    /// Makes what a sweep has written the present state.
    pub(crate) fn swap(&mut self) {
        std::mem::swap(&mut self.values, &mut self.next);
    }

    /// Copies slots to those of `next`.
    pub(crate) fn copy_to_next(&mut self, device: &Device, slots: &DeviceTable<u32>) {
        copy_slots(device, self.of_group(), &self.values, slots, &mut self.next, slots);
    }

    /// Copies slots of `next` back.
    pub(crate) fn copy_from_next(&mut self, device: &Device, slots: &DeviceTable<u32>) {
        copy_slots(device, self.of_group(), &self.next, slots, &mut self.values, slots);
    }

    /// A copy of the values, in the room of another if that has the same length; too short a one goes before a longer comes.
    pub(crate) fn save(&self, device: &Device, room: Option<Buffer<T>>) -> Result<Buffer<T>, KernelError> {
        let room = room.filter(|room| room.len() == self.values.len());
        let mut saved = room.map_or_else(|| Buffer::zeros(device, self.values.len()), Ok)?;
        saved.copy_from(&self.values);
        Ok(saved)
    }

    /// Goes back to a copy; a pool that has grown since keeps its length.
    pub(crate) fn restore(&mut self, saved: &Buffer<T>) {
        self.values.copy_start_from(saved);
    }

    /// The hash of each group of a level.
    pub(crate) fn hashes(&self, device: &Device, level: &LevelTopology) -> Vec<u64> {
        let mut hashes = vec![0; level.len()];
        state_hash::state_hash(device, level, self.of_group(), &self.values, &mut hashes);
        hashes
    }
}

/// The fluid at a fraction of the current step of a level, whose end is in the pool.
///
/// * `fluid`: [`ConservedFields::earlier`] of it
pub(crate) fn earlier_fluid<'a, T: Real>(fluid: &'a Buffer<T>, mesh: &'a Mesh, fraction: f64) -> EarlierFluid<'a, T> {
    EarlierFluid { fluid, places: &mesh.earlier.places, weight: T::from_f64(fraction) }
}
