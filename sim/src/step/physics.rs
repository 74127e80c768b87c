//! What a step needs to know besides the state.

use crate::parameters::RunParameters;
use comove_kernels::Eos;

/// What a step needs to know besides the state.
pub struct Physics<T> {
    /// The gas.
    pub eos: Eos<T>,
    /// The recipe's numbers.
    pub parameters: RunParameters,
}
