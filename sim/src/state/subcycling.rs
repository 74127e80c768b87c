//! What subcycled levels keep for finer ones to interpolate between, and for flux correction.

use super::State;
use crate::gravity::StepPhase;
use comove_kernels::Real;
use comove_kernels::layout::FLUX_PLANE_VALUES;

impl<T: Real> State<T> {
    /// Whether levels take steps of their own.
    pub(crate) fn is_subcycled(&self) -> bool {
        self.kind.subcycled
    }

    /// Keeps a level as it is before its step, and clears the sums of the fluxes between it and the next finer one.
    pub fn keep_start(&mut self, level: usize) {
        if self.kind.subcycled {
            if let Some(gas) = &mut self.gas {
                gas.keep_start(&self.device, &self.mesh, level);
            }
            if let Some(scalars) = &mut self.scalars {
                scalars.keep_start(&self.device, &self.mesh, level);
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
            if let Some(gas) = &mut self.gas {
                gas.sum_fluxes(&self.device, &self.mesh, level);
            }
            if let Some(scalars) = &mut self.scalars {
                scalars.sum_fluxes(&self.device, &self.mesh, level);
            }
        }
    }

    /// Copies a level's fluid, ghosts included, to its slots of `next`.
    pub(crate) fn copy_to_next(&mut self, level: usize) {
        let slots = self.exchange.slots(level, &self.mesh.tables[level]);
        if let Some(gas) = &mut self.gas {
            gas.copy_to_next(&self.device, slots);
        }
        if let Some(scalars) = &mut self.scalars {
            scalars.copy_to_next(&self.device, slots);
        }
    }

    /// Sends the fluxes (of the last sweep, or summed over a step) through faces of the next finer level to the ranks that own
    /// the coarse groups.
    pub(crate) fn send_fluxes(&mut self, level: usize) {
        let Some(gas) = &mut self.gas else { return };
        let fluxes = gas.correcting_fluxes(self.kind.subcycled);
        let links = &self.mesh.flux.links[level];
        self.exchange.ghosts.exchange_slots(links, FLUX_PLANE_VALUES, fluxes);
        if let Some(scalars) = &mut self.scalars {
            scalars.send_fluxes(&self.exchange, links, self.kind.subcycled);
        }
    }
}
