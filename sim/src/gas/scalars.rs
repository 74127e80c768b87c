//! The passive scalars that a run begins with.

use crate::gas::conserved_fields::ConservedFields;
use crate::mesh::host_state::HostState;
use crate::parameters::ScalarParameters;
use comove_kernels::layout::{DENSITY, GROUP_CELLS, GROUP_VALUES};
use comove_kernels::{Buffer, Device, KernelError, Real};
use rayon::prelude::*;

/// Scalars of a host state put on a device, or of uniform mass fractions where it has none yet; groups in the first slots.
///
/// # Errors
/// [`KernelError::OutOfMemory`].
///
/// # Panics
/// If the state has others than the parameters, or there is no fraction to begin with.
pub(super) fn from_host<T: Real>(
    device: &Device,
    host: &HostState,
    parameters: &ScalarParameters,
) -> Result<ConservedFields<T>, KernelError> {
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
    ConservedFields::of(device, count, Buffer::from_host(device, values)?)
}
