//! Deposits of the particles that refinement follows on a complete level, for criteria that count them.

use super::layers::Layers;
use comove_sim::kernels::layout::{GROUP, GROUP_CELLS, cell};
use comove_sim::kernels::point::particle::{Cloud, is_followed};
use comove_sim::parallel::Communicator;
use comove_sim::refinement::RefinementContext;
use comove_sim::{Criterion, HostParticles, Key};

/// Positions of followed particles whose clouds may reach the layers of groups that a rank flags.
pub(super) struct Followed {
    positions: Vec<[u32; 3]>,
    /// Bits of a weight along one axis.
    bits: u32,
}

impl Followed {
    /// Sends positions to the ranks that deposit them; `None` where all particles are followed or no criterion counts them.
    /// Collective.
    pub(super) fn gather(
        communicator: &Communicator,
        layers: Layers,
        particles: Option<&HostParticles>,
        context: &RefinementContext<'_, f64>,
    ) -> Option<Self> {
        let unit = context.dark_matter.and_then(|header| header.unit_of_followed())?;
        let particles = particles.filter(|_| context.parameters.refine.iter().any(Criterion::counts_particles))?;
        let mut messages = vec![Vec::<u8>::new(); communicator.size()];
        for n in (0..particles.id.len()).filter(|&n| is_followed(particles.id[n])) {
            let position = [0, 1, 2].map(|axis| particles.position[axis][n]);
            for rank in layers.ranks_near(position[2]) {
                messages[rank].extend_from_slice(bytemuck::bytes_of(&position));
            }
        }
        let received = communicator.exchange(messages);
        let positions = received.iter().flat_map(|bytes| bytemuck::pod_collect_to_vec::<u8, [u32; 3]>(bytes)).collect();
        Some(Self { positions, bits: unit.bits() })
    }

    /// Weights in the cells of groups of a complete level, `[keys, 16, 16, 16]`.
    ///
    /// * `groups`: of the level along x, y, z
    pub(super) fn deposit(&self, keys: &[Key], groups: [u32; 3]) -> Vec<u64> {
        const ABSENT: usize = usize::MAX;
        let place = |[x, y, z]: [u32; 3]| ((z * groups[1] + y) * groups[0] + x) as usize;
        let mut slots = vec![ABSENT; groups.iter().map(|&n| n as usize).product()];
        keys.iter().enumerate().for_each(|(slot, key)| slots[place(key.coordinate)] = slot);
        let cells = groups.map(|n| n * GROUP as u32);
        let mut weights = vec![0; keys.len() * GROUP_CELLS];
        for position in &self.positions {
            let clouds: [Cloud; 3] =
                std::array::from_fn(|axis| Cloud::with_bits(position[axis], cells[axis], self.bits));
            for corner in 0..8 {
                let upper = |axis: usize| (corner >> axis) & 1;
                let at = [0, 1, 2].map(|axis| {
                    let Cloud { cell, lower, .. } = clouds[axis];
                    (cell + cells[axis] + upper(axis)).wrapping_add_signed(lower) % cells[axis]
                });
                let slot = slots[place(at.map(|c| c / GROUP as u32))];
                if slot != ABSENT {
                    let [i, j, k] = at.map(|c| c as usize % GROUP);
                    let weight = |axis: usize| u64::from(clouds[axis].weights[upper(axis) as usize]);
                    weights[slot * GROUP_CELLS + cell(i, j, k)] += weight(0) * weight(1) * weight(2);
                }
            }
        }
        weights
    }
}
