//! What subcycled levels keep for finer ones to interpolate between, and for flux correction.

use super::State;
use crate::gas::Gas;
use crate::gravity::StepPhase;
use comove_kernels::Real;

impl<T: Real> State<T> {
    /// Whether levels take steps of their own.
    pub(crate) fn is_subcycled(&self) -> bool {
        self.kind.subcycled
    }

    /// Keeps a level as it is before its step, and clears the sums of the fluxes between it and the next finer one.
    pub fn keep_start(&mut self, level: usize) {
        if self.kind.subcycled {
            for fields in self.gas.iter_mut().flat_map(Gas::fields_mut) {
                fields.keep_start(&self.device, &self.mesh, level);
            }
            self.keep_potential(level, StepPhase::Start);
        }
    }

    /// Keeps the potential of a level; nothing to do without gravity.
    pub fn keep_potential(&mut self, level: usize, phase: StepPhase) {
        if let Some(gravity) = self.gravity.as_mut().filter(|_| self.kind.subcycled) {
            gravity.potential.keep(&self.device, &self.mesh, level, phase);
        }
    }

    /// Adds the fluxes of a level's last sweep to their sums.
    pub(crate) fn sum_fluxes(&mut self, level: usize) {
        if self.kind.subcycled {
            for fields in self.gas.iter_mut().flat_map(Gas::fields_mut) {
                fields.sum_fluxes(&self.device, &self.mesh, level);
            }
        }
    }

    /// Copies a level's gas, ghosts included, to its slots of `next`.
    pub(crate) fn copy_to_next(&mut self, level: usize) {
        let slots = self.exchange.slots(level, &self.mesh.tables[level]);
        for fields in self.gas.iter_mut().flat_map(Gas::fields_mut) {
            fields.copy_to_next(&self.device, slots);
        }
    }

    /// Sends the fluxes (of the last sweep, or summed over a step) through faces of the next finer level to the ranks that own
    /// the coarse groups.
    pub(crate) fn send_fluxes(&mut self, level: usize) {
        for fields in self.gas.iter_mut().flat_map(Gas::fields_mut) {
            fields.send_fluxes(&self.exchange, &self.mesh.flux.links[level], self.kind.subcycled);
        }
    }
}
