//! The state copied to the host.

use super::State;
use crate::mesh::host_state::HostState;
use comove_kernels::layout::{GROUP_CELLS, GROUP_VALUES};
use comove_kernels::{Buffer, Real};
use rayon::prelude::*;
use std::ops::Range;

impl<T: Real> State<T> {
    /// Copies the state to the host.
    pub fn to_host(&self) -> HostState {
        let mut host = HostState::zeros(self.mesh.tree.clone());
        let slots: Vec<u32> = self.mesh.slots.iter().flatten().copied().collect();
        copy_groups(&self.gas.fluid, &slots, &mut host.fluid, GROUP_VALUES, 0..GROUP_VALUES);
        if let Some(scalars) = &self.scalars {
            let of_group = self.kind.scalars * GROUP_CELLS;
            host.scalars = vec![vec![0.0; slots.len() * GROUP_CELLS]; self.kind.scalars];
            for (n, scalar) in host.scalars.iter_mut().enumerate() {
                let range = n * GROUP_CELLS..(n + 1) * GROUP_CELLS;
                copy_groups(scalars.pool(), &slots, scalar, of_group, range);
            }
        }
        if let Some(gravity) = &self.gravity {
            host.potential = vec![0.0; slots.len() * GROUP_CELLS];
            copy_groups(&gravity.potential.current, &slots, &mut host.potential, GROUP_CELLS, 0..GROUP_CELLS);
        }
        host
    }
}

/// Copies a range of the values of slots, widened, to their groups' places in key order.
fn copy_groups<T: Real>(pool: &Buffer<T>, slots: &[u32], host: &mut [f64], values: usize, range: Range<usize>) {
    let mut places: Vec<Option<&mut [f64]>> = (0..pool.len() / values).map(|_| None).collect();
    for (group, &slot) in host.chunks_exact_mut(range.len()).zip(slots) {
        places[slot as usize] = Some(group);
    }
    pool.for_each_part(values, |first, part| {
        let part = part.par_chunks_exact(values);
        places[first / values..].par_iter_mut().zip(part).for_each(|(place, from)| {
            if let Some(to) = place {
                to.iter_mut().zip(&from[range.clone()]).for_each(|(to, value)| *to = value.as_f64());
            }
        });
    });
}
