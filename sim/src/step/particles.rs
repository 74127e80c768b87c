//! What a step has particles do, and the time that takes. Nothing without dark matter.

use crate::error::SimError;
use crate::records::DevicePart;
use crate::state::State;
use crate::step::diagnostics::StepDiagnostics;
use comove_kernels::Real;
use std::ops::Range;

/// Begins a root step.
pub(super) fn begin<T: Real>(state: &mut State<T>, dt: f64) {
    state.dark_matter.iter_mut().for_each(|dark_matter| dark_matter.begin(dt));
}

/// Moves the particles of some levels over a part of the root step.
pub(super) fn drift<T: Real>(state: &mut State<T>, levels: Range<usize>, part: f64, diagnostics: &mut StepDiagnostics) {
    if let Some(dark_matter) = &mut state.dark_matter {
        let started = state.device.now();
        dark_matter.drift(&state.device, levels, part);
        diagnostics.record_time(DevicePart::Particles, started, state.device.now());
    }
}

/// Sends particles of level `from` and finer ones, which are at one time, to the ranks, levels and groups that they are in.
///
/// # Errors
/// As [`State::sort_particles`].
pub(super) fn sort<T: Real>(
    state: &mut State<T>,
    from: usize,
    diagnostics: &mut StepDiagnostics,
) -> Result<(), SimError> {
    if state.dark_matter.is_some() {
        let started = state.device.now();
        state.sort_particles(from)?;
        diagnostics.record_time(DevicePart::Particles, started, state.device.now());
    }
    Ok(())
}
