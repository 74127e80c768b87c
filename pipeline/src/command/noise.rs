//! `comove noise`: the white noise of a seed as a file.

use super::print;
use crate::cli::Noise;
use crate::cost::bytes;
use crate::error::PipelineError;
use comove_ic::gaussian_field::{LinearModes, WhiteNoise, noise_file};
use comove_kernels::memory;
use comove_sim::Precision;
use comove_sim::parallel::Communicator;
use std::num::NonZeroUsize;

/// Bytes for each cell: the numbers and their modes.
const BYTES: f64 = 25.0;

pub(super) fn noise(asked: &Noise) -> Result<(), PipelineError> {
    let given: Vec<usize> = asked.cells.iter().copied().map(NonZeroUsize::get).collect();
    let cells = match given[..] {
        [n] => [n; 3],
        [x, y, z] => [x, y, z],
        _ => return Err(usage(&given, "expected one number, or three along x, y, z")),
    };
    let precision = if asked.single { Precision::Single } else { Precision::Double };
    noise_file::record_length(cells, precision).map_err(PipelineError::Ic)?;
    let (needed, free) = (BYTES * cells.iter().map(|&n| n as f64).product::<f64>(), memory::available());
    if let Some(free) = free.filter(|&free| needed > free) {
        let reason = format!("needs {} of memory, and {} are available", bytes(needed), bytes(free));
        return Err(usage(&given, &reason));
    }
    let noise = WhiteNoise { seed: asked.seed, fixed_amplitude: asked.fixed_amplitude, inverted: asked.inverted };
    let numbers = LinearModes::noise_in_cells(&Communicator::alone(), cells, &noise);
    noise_file::write(&asked.file, cells, &numbers, asked.seed, precision).map_err(PipelineError::Ic)?;
    print(&format!("{}: white noise of {cells:?} cells, seed {}", asked.file.display(), asked.seed))
}

fn usage(cells: &[usize], reason: &str) -> PipelineError {
    PipelineError::Usage(format!("--cells {cells:?}: {reason}"))
}
