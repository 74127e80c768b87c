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
        let mut host = HostState::without_fields(self.mesh.tree.clone());
        let slots: Vec<u32> = self.mesh.slots.iter().flatten().copied().collect();
        if let Some(gas) = &self.gas {
            host.fluid = vec![0.0; slots.len() * GROUP_VALUES];
            copy_groups(&gas.fluid.values, T::as_f64, &slots, &mut host.fluid, GROUP_VALUES, 0..GROUP_VALUES);
        }
        if let Some(scalars) = self.gas.as_ref().and_then(|gas| gas.scalars.as_ref()) {
            host.scalars = vec![vec![0.0; slots.len() * GROUP_CELLS]; scalars.count];
            for (n, scalar) in host.scalars.iter_mut().enumerate() {
                let range = n * GROUP_CELLS..(n + 1) * GROUP_CELLS;
                copy_groups(&scalars.values, T::as_f64, &slots, scalar, scalars.of_group(), range);
            }
        }
        if let Some(gravity) = &self.gravity {
            host.potential = vec![0.0; slots.len() * GROUP_CELLS];
            let pool = &gravity.potential.current;
            copy_groups(pool, T::as_f64, &slots, &mut host.potential, GROUP_CELLS, 0..GROUP_CELLS);
        }
        if let Some(dark_matter) = &self.dark_matter {
            let cells = slots.len() * GROUP_CELLS;
            host.dark_matter = vec![0.0; cells];
            let weights = dark_matter.weights();
            copy_groups(weights, |weight| weight as f64, &slots, &mut host.dark_matter, GROUP_CELLS, 0..GROUP_CELLS);
            let mut groups = host.dark_matter.chunks_exact_mut(GROUP_CELLS);
            for level in 0..self.level_count() {
                let unit = dark_matter.header().density_of_weight(self.cell_width(level));
                let of_level = groups.by_ref().take(self.mesh.tree.level(level).len());
                // as a file has it, so that analyses of both agree
                of_level.flatten().for_each(|value| *value = T::from_f64(*value * unit).as_f64());
            }
            host.particles = Some(dark_matter.to_host().in_file_order(&host.tree));
        }
        host
    }
}

/// Copies a range of the values of slots, widened, to their groups' places in key order.
fn copy_groups<V: Copy + Default + Send + Sync>(
    pool: &Buffer<V>,
    widen: impl Fn(V) -> f64 + Sync,
    slots: &[u32],
    host: &mut [f64],
    values: usize,
    range: Range<usize>,
) {
    let mut places: Vec<Option<&mut [f64]>> = (0..pool.len() / values).map(|_| None).collect();
    for (group, &slot) in host.chunks_exact_mut(range.len()).zip(slots) {
        places[slot as usize] = Some(group);
    }
    pool.for_each_part(values, |first, part| {
        let part = part.par_chunks_exact(values);
        places[first / values..].par_iter_mut().zip(part).for_each(|(place, from)| {
            if let Some(to) = place {
                to.iter_mut().zip(&from[range.clone()]).for_each(|(to, value)| *to = widen(*value));
            }
        });
    });
}
