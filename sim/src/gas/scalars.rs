//! The passive scalars of a run on its device: what the gas does, they follow.

use crate::device_arrays::{ArrayBytes, Extent, device_arrays};
use crate::mesh::Mesh;
use crate::mesh::host_state::HostState;
use crate::parallel::exchange::Exchange;
use crate::parallel::link_lists::{CellLinks, SlotLinks};
use crate::parallel::links::LevelLinks;
use crate::parameters::ScalarParameters;
use comove_kernels::layout::{DENSITY, FACE_CELLS, GROUP_CELLS, GROUP_VALUES};
use comove_kernels::reflux::RefluxTables;
use comove_kernels::scalars::{ScalarSweep, prolong_scalars, reflux_scalars, restrict_scalars};
use comove_kernels::slots::{add_slots, clear_slots, copy_slots};
use comove_kernels::{Buffer, Device, DeviceTable, KernelError, LevelTopology, Real, state_hash};
use rayon::prelude::*;

device_arrays! {
    /// The scalars, on all levels.
    struct Pools<T> {
        /// Densities ρ̃X, `[slots, count, 16, 16, 16]`.
        scalars: Buffer<T> = |extent| extent.slots * extent.scalars * GROUP_CELLS,
        /// Where a sweep writes, then swapped with `scalars`. Same shape.
        next_scalars: Buffer<T> = |extent| extent.slots * extent.scalars * GROUP_CELLS,
        /// Fluxes of the last sweep, `[planes, count, 16, 16]`.
        scalar_fluxes: Buffer<T> = |extent| extent.flux_planes * extent.scalars * FACE_CELLS,
        /// Fluxes summed over the sweeps of the current steps; empty with uniform steps.
        scalar_flux_sums: Buffer<T> = |extent| extent.summed_planes * extent.scalars * FACE_CELLS,
        /// Levels that have finer ones before their current step, `[places, count, 16, 16, 16]`; empty with uniform steps.
        earlier_scalars: Buffer<T> = |extent| extent.earlier_groups * extent.scalars * GROUP_CELLS,
    }
}

/// The passive scalars of a run that has some.
#[derive(Debug)]
pub struct Scalars<T> {
    count: usize,
    pools: Pools<T>,
}

impl<T: Real> Scalars<T> {
    /// Those of a host state put on a device, or of uniform mass fractions where it has none yet; groups in the first
    /// slots.
    ///
    /// # Errors
    /// [`KernelError::OutOfMemory`].
    ///
    /// # Panics
    /// If the state has others than the parameters, or there is no fraction to begin with.
    pub(crate) fn from_host(
        device: &Device,
        host: &HostState,
        parameters: &ScalarParameters,
    ) -> Result<Self, KernelError> {
        let count = parameters.len();
        let begin: Vec<f64> = match host.scalars.len() {
            0 => parameters.initial().map(|fraction| fraction.expect("a fraction to begin with")).collect(),
            given => {
                assert_eq!(given, count, "scalars of the state and of the run");
                Vec::new()
            }
        };
        let mut values = vec![T::zero(); host.tree.group_count() * count * GROUP_CELLS];
        values.par_chunks_mut(count * GROUP_CELLS).enumerate().for_each(|(group, values)| {
            for (n, values) in values.chunks_mut(GROUP_CELLS).enumerate() {
                let density = &host.fluid[group * GROUP_VALUES + DENSITY * GROUP_CELLS..][..GROUP_CELLS];
                let stored = host.scalars.get(n).map(|scalar| &scalar[group * GROUP_CELLS..][..GROUP_CELLS]);
                for (c, value) in values.iter_mut().enumerate() {
                    *value = T::from_f64(stored.map_or_else(|| begin[n] * density[c], |stored| stored[c]));
                }
            }
        });
        let scalars = Buffer::from_host(device, values)?;
        Ok(Self { count, pools: Pools { scalars, ..Pools::empty(device)? } })
    }

    /// Values of a group.
    fn of_group(&self) -> usize {
        self.count * GROUP_CELLS
    }

    /// Values of a flux plane.
    fn of_plane(&self) -> usize {
        self.count * FACE_CELLS
    }

    /// The densities ρ̃X, `[slots, count, 16, 16, 16]`.
    pub fn pool(&self) -> &Buffer<T> {
        &self.pools.scalars
    }

    pub(crate) fn footprint(&self) -> Vec<ArrayBytes> {
        self.pools.footprint()
    }

    pub(crate) fn footprint_for(extent: &Extent) -> Vec<ArrayBytes> {
        Pools::<T>::footprint_for(extent)
    }

    /// Makes the pools as long as a mesh needs them.
    ///
    /// # Errors
    /// [`KernelError::OutOfMemory`].
    pub(crate) fn fit(&mut self, device: &Device, extent: &Extent) -> Result<(), KernelError> {
        self.pools.fit(device, extent)
    }

    /// What a sweep of the gas carries along.
    pub(crate) fn sweep(&mut self) -> ScalarSweep<'_, T> {
        let Pools { scalars, next_scalars, scalar_fluxes, earlier_scalars, .. } = &mut self.pools;
        ScalarSweep {
            count: self.count,
            before: scalars,
            earlier: earlier_scalars,
            after: next_scalars,
            fluxes: scalar_fluxes,
        }
    }

    /// Brings ghosts of a level up to date.
    pub(crate) fn refresh(&mut self, exchange: &Exchange, level: usize, cells: fn(&LevelLinks) -> &CellLinks) {
        exchange.refresh(level, cells, self.count, &mut self.pools.scalars);
    }

    /// As [`crate::Gas`] does with the fluid: keeps a level that begins a step.
    pub(crate) fn keep_start(&mut self, device: &Device, mesh: &Mesh, level: usize) {
        let (of_group, of_plane) = (self.of_group(), self.of_plane());
        let Pools { scalars, earlier_scalars, scalar_flux_sums, .. } = &mut self.pools;
        let [slots, places] = &mesh.earlier.levels[level];
        copy_slots(device, of_group, scalars, slots, earlier_scalars, places);
        clear_slots(device, of_plane, scalar_flux_sums, &mesh.flux.between[level]);
    }

    /// Adds the fluxes of a level's last sweep to their sums.
    pub(crate) fn sum_fluxes(&mut self, device: &Device, mesh: &Mesh, level: usize) {
        let of_plane = self.of_plane();
        let Pools { scalar_fluxes, scalar_flux_sums, .. } = &mut self.pools;
        add_slots(device, of_plane, scalar_fluxes, scalar_flux_sums, &mesh.flux.written[level]);
    }

    /// Sends the fluxes that flux correction takes to the ranks that own the coarse groups.
    pub(crate) fn send_fluxes(&mut self, exchange: &Exchange, links: &SlotLinks, subcycled: bool) {
        let of_plane = self.of_plane();
        let Pools { scalar_fluxes, scalar_flux_sums, .. } = &mut self.pools;
        let fluxes = if subcycled { scalar_flux_sums } else { scalar_fluxes };
        exchange.ghosts.exchange_slots(links, of_plane, fluxes);
    }

    /// Corrects a level by the fluxes of the next finer one.
    pub(crate) fn correct(&mut self, device: &Device, faces: &RefluxTables, subcycled: bool, dt_over_dx: T) {
        let Pools { scalars, scalar_fluxes, scalar_flux_sums, .. } = &mut self.pools;
        let (fluxes, fine_share) = match subcycled {
            true => (&*scalar_flux_sums, T::from_f64(0.5)),
            false => (&*scalar_fluxes, T::one()),
        };
        reflux_scalars(device, faces, self.count, scalars, fluxes, dt_over_dx, fine_share);
    }

    /// Means of the next finer level in the patches of a level that have children.
    pub(crate) fn restrict(&mut self, device: &Device, coarse: &LevelTopology) {
        restrict_scalars(device, coarse, self.count, &mut self.pools.scalars);
    }

    /// Sends the patches that ranks have refined to the owners of their groups.
    pub(crate) fn send_patches(&mut self, exchange: &Exchange, links: &LevelLinks) {
        exchange.ghosts.exchange_cells(&links.patches, self.count, &mut self.pools.scalars);
    }

    /// New groups of a level from the patches they refine.
    ///
    /// * `fluid`: the gas, of which the coarser level is read
    pub(crate) fn prolong(&mut self, device: &Device, fine: &LevelTopology, new: &[usize], fluid: &Buffer<T>) {
        prolong_scalars(device, fine, new, fluid, self.count, &mut self.pools.scalars);
    }

    /// Sends whole groups; those that come go to the other pool.
    pub(crate) fn send_groups(&mut self, exchange: &Exchange, links: &SlotLinks) {
        let of_group = self.of_group();
        exchange.ghosts.send_slots(links, of_group, &self.pools.scalars, &mut self.pools.next_scalars);
    }

    /// Makes what a sweep has written the present state.
    pub(crate) fn swap(&mut self) {
        std::mem::swap(&mut self.pools.scalars, &mut self.pools.next_scalars);
    }

    /// Copies slots to those of the pool that a sweep writes to.
    pub(crate) fn copy_to_next(&mut self, device: &Device, slots: &DeviceTable<u32>) {
        let of_group = self.of_group();
        copy_slots(device, of_group, &self.pools.scalars, slots, &mut self.pools.next_scalars, slots);
    }

    /// The other way round.
    pub(crate) fn copy_from_next(&mut self, device: &Device, slots: &DeviceTable<u32>) {
        let of_group = self.of_group();
        copy_slots(device, of_group, &self.pools.next_scalars, slots, &mut self.pools.scalars, slots);
    }

    /// A copy, in the room of another if that has the same length.
    pub(crate) fn save(&self, device: &Device, room: Option<Buffer<T>>) -> Result<Buffer<T>, KernelError> {
        let length = self.pools.scalars.len();
        let room = room.filter(|room| room.len() == length);
        let mut saved = room.map_or_else(|| Buffer::zeros(device, length), Ok)?;
        saved.copy_from(&self.pools.scalars);
        Ok(saved)
    }

    /// Goes back to a copy; a pool that has grown since keeps its length.
    pub(crate) fn restore(&mut self, saved: &Buffer<T>) {
        self.pools.scalars.copy_start_from(saved);
    }

    /// The hash of each group of a level.
    pub(crate) fn hashes(&self, device: &Device, level: &LevelTopology) -> Vec<u64> {
        let mut hashes = vec![0; level.len()];
        state_hash::state_hash(device, level, self.of_group(), &self.pools.scalars, &mut hashes);
        hashes
    }
}
