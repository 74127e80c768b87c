//! The gas of a run on its device.

pub(crate) mod conserved_fields;
pub mod fields;
mod scalars;

use crate::device_arrays::{ArrayBytes, Extent};
use crate::mesh::host_state::HostState;
use crate::parallel::exchange::Exchange;
use crate::parallel::links::LevelLinks;
use crate::parameters::ScalarParameters;
use comove_kernels::layout::FIELDS;
use comove_kernels::prolong::prolong;
use comove_kernels::reflux::{RefluxTables, reflux};
use comove_kernels::restrict::restrict;
use comove_kernels::scalars::{prolong_scalars, reflux_scalars, restrict_scalars};
use comove_kernels::timestep::{SignalSpeed, signal_speed};
use comove_kernels::totals::{GroupTotals, totals};
use comove_kernels::{Buffer, Deferred, Device, Eos, GroupReport, KernelError, LevelTopology, Real, TroubledCells};
use conserved_fields::ConservedFields;
use rayon::prelude::*;

/// The gas, on all levels.
#[derive(Debug)]
pub struct Gas<T> {
    /// Mass, momentum, energy and entropy densities.
    pub fluid: ConservedFields<T>,
    /// Densities ρ̃X of passive scalars, if there are any.
    pub scalars: Option<ConservedFields<T>>,
    /// Cells that the last sweep could not advance, and room for a redo.
    pub troubled: TroubledCells,
}

impl<T: Real> Gas<T> {
    /// The gas of a host state put on a device.
    ///
    /// # Errors
    /// [`KernelError::OutOfMemory`].
    ///
    /// # Panics
    /// If the state has other scalars than the parameters, or there is no fraction to begin with.
    pub(crate) fn from_host(
        device: &Device,
        host: &HostState,
        parameters: &ScalarParameters,
    ) -> Result<Self, KernelError> {
        let fluid = Buffer::from_host(device, host.fluid.par_iter().map(|&value| T::from_f64(value)).collect())?;
        let has_scalars = !parameters.is_empty();
        Ok(Self {
            fluid: ConservedFields::of(device, FIELDS, fluid)?,
            scalars: has_scalars.then(|| scalars::from_host(device, host, parameters)).transpose()?,
            troubled: TroubledCells::new(device, 0)?,
        })
    }

    /// Fluid and scalars.
    pub(crate) fn fields(&self) -> impl Iterator<Item = &ConservedFields<T>> {
        std::iter::once(&self.fluid).chain(&self.scalars)
    }

    /// Fluid and scalars, mutable.
    pub(crate) fn fields_mut(&mut self) -> impl Iterator<Item = &mut ConservedFields<T>> {
        std::iter::once(&mut self.fluid).chain(&mut self.scalars)
    }

    /// Bytes of the arrays, in the order in which they grow.
    pub(crate) fn footprint(&self) -> Vec<ArrayBytes> {
        let fields = self.fields().flat_map(ConservedFields::footprint);
        fields.chain([("troubled", self.troubled.bytes())]).collect()
    }

    /// Bytes of the arrays on a mesh, with this number of passive scalars.
    pub(crate) fn footprint_for(extent: &Extent, scalars: usize) -> Vec<ArrayBytes> {
        let fields = std::iter::once(FIELDS).chain((scalars > 0).then_some(scalars));
        let fields = fields.flat_map(|count| ConservedFields::<T>::footprint_for(extent, count));
        fields.chain([("troubled", TroubledCells::bytes_for(extent.slots))]).collect()
    }

    /// Grows the arrays to what a mesh needs.
    ///
    /// # Errors
    /// [`KernelError::OutOfMemory`].
    pub(crate) fn fit(&mut self, device: &Device, extent: &Extent) -> Result<(), KernelError> {
        self.fields_mut().try_for_each(|fields| fields.fit(device, extent))?;
        self.troubled.grow(device, extent.slots)
    }

    /// Corrects a level by the fluxes of the next finer one: see [`comove_kernels::reflux::reflux`].
    pub(crate) fn correct(
        &mut self,
        device: &Device,
        faces: &RefluxTables,
        subcycled: bool,
        dt_over_dx: T,
        eos: &Eos<T>,
    ) -> Deferred<(u32, GroupReport)> {
        let (values, fluxes, fine_share) = self.fluid.correction(subcycled);
        let reports = reflux(device, faces, values, fluxes, dt_over_dx, fine_share, eos);
        if let Some(scalars) = &mut self.scalars {
            let count = scalars.count;
            let (values, fluxes, fine_share) = scalars.correction(subcycled);
            reflux_scalars(device, faces, count, values, fluxes, dt_over_dx, fine_share);
        }
        reports
    }

    /// Means of the next finer level in the patches of a level that have children; patches that other ranks have refined
    /// come from them.
    pub(crate) fn restrict(
        &mut self,
        device: &Device,
        coarse: &LevelTopology,
        ranks: (&Exchange, Option<&LevelLinks>),
        eos: &Eos<T>,
    ) {
        let (exchange, links) = ranks;
        for parents in std::iter::once(coarse).chain(links.map(|links| &links.parents)) {
            restrict(device, parents, &mut self.fluid.values, eos);
            if let Some(scalars) = &mut self.scalars {
                restrict_scalars(device, parents, scalars.count, &mut scalars.values);
            }
        }
        if let Some(links) = links {
            self.fields_mut().for_each(|fields| fields.send_patches(exchange, links));
        }
    }

    /// New groups of a level, interpolated from the patches they refine.
    ///
    /// * `new`: their indices in `fine`
    pub(crate) fn prolong(&mut self, device: &Device, fine: &LevelTopology, new: &[usize], eos: &Eos<T>) {
        prolong(device, fine, new, &mut self.fluid.values, eos);
        if let Some(scalars) = &mut self.scalars {
            prolong_scalars(device, fine, new, &self.fluid.values, scalars.count, &mut scalars.values);
        }
    }

    /// The hash of each group of a level.
    pub(crate) fn hashes(&self, device: &Device, level: &LevelTopology) -> Vec<u64> {
        let mut hashes = vec![0; level.len()];
        for (n, fields) in self.fields().enumerate() {
            let others = fields.hashes(device, level);
            hashes.iter_mut().zip(others).for_each(|(hash, other)| *hash ^= other.rotate_left(29 * n as u32));
        }
        hashes
    }

    /// The sums over the leaf cells of each group of a level.
    pub(crate) fn totals(&self, device: &Device, level: &LevelTopology) -> Vec<GroupTotals> {
        let mut groups = vec![GroupTotals::default(); level.len()];
        totals(device, level, &self.fluid.values, &mut groups);
        groups
    }

    /// The fastest signal of each group of a level.
    pub(crate) fn signal_speeds(&self, device: &Device, level: &LevelTopology, eos: &Eos<T>) -> Deferred<SignalSpeed> {
        signal_speed(device, level, &self.fluid.values, eos)
    }
}
