//! What a state keeps of its levels for finer ones to interpolate between ([`crate::gas::level_history`]).

use super::State;
use crate::gas::level_history::StepPhase;
use comove_kernels::Real;
use comove_kernels::layout::GROUP_VALUES;
use comove_kernels::slots::copy_slots;

impl<T: Real> State<T> {
    /// Keeps a level as it is before its step, and clears the sums of the fluxes between it and the next finer one.
    pub fn keep_start(&mut self, level: usize) {
        let Some(history) = &mut self.history else { return };
        history.keep_fluid(&self.device, level, &self.fluid);
        history.clear_fluxes(&self.device, &self.flux.between[level]);
        self.keep_potential(level, StepPhase::Start);
    }

    /// Keeps the potential of a level; nothing to do without gravity.
    pub fn keep_potential(&mut self, level: usize, moment: StepPhase) {
        if let Some(history) = self.history.as_mut().filter(|_| !self.potential.is_empty()) {
            history.keep_potential(&self.device, level, moment, &self.potential);
        }
    }

    /// Adds the fluxes of a level's last sweep to their sums.
    pub fn sum_fluxes(&mut self, level: usize) {
        let Some(history) = &mut self.history else { return };
        history.add_fluxes(&self.device, &self.flux.written[level], &self.fluxes);
    }

    /// Copies a level's fluid, ghosts included, to its slots of `next`.
    pub fn copy_to_next(&mut self, level: usize) {
        let slots = self.share.links.get(level).map_or(&self.tables[level].slots, |links| &links.slots);
        copy_slots(&self.device, GROUP_VALUES, &self.fluid, slots, &mut self.next, slots);
    }
}
