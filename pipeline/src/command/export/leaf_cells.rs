//! The leaf cells of a snapshot's gas in the place of particles.

use comove_analysis::cell_fields::Gas;
use comove_analysis::cells::{PATCH_CELLS, patch_cells};
use comove_ic::particle_rows::{ParticleType, Particles, Rows};
use comove_sim::Snapshot;
use comove_sim::kernels::layout::{DENSITY, MOMENTUM};
use comove_sim::mesh::LeafPatch;
use std::ops::Range;

/// A particle for each leaf cell, at its centre, with its mass, velocity and internal energy.
///
/// * `first_id`: identity of the first cell
pub(super) fn particles(snapshot: &Snapshot, first_id: u64) -> Particles<'_> {
    let patches: Vec<LeafPatch> = snapshot.state.tree.leaf_patches().collect();
    let (gas, gamma) = (Gas::new(snapshot), snapshot.header.gamma);
    Particles::new(ParticleType::Gas, patches.len() * PATCH_CELLS, None, move |range: Range<usize>| {
        let of_patches = range.start / PATCH_CELLS..range.end.div_ceil(PATCH_CELLS);
        let before = of_patches.start * PATCH_CELLS;
        let cells = patches[of_patches].iter().flat_map(|&patch| patch_cells(snapshot, patch));
        let mut rows = Rows::default();
        for (n, cell) in cells.enumerate().map(|(n, cell)| (before + n, cell)).filter(|(n, _)| range.contains(n)) {
            let density = cell.fluid[DENSITY];
            let velocity = [0, 1, 2].map(|axis| cell.fluid[MOMENTUM + axis] / density);
            let specific_energy = gas.pressure(&cell) / ((gamma - 1.0) * density);
            let at = (cell.position, cell.width);
            rows.push_cell(at, (density, velocity, specific_energy), first_id + n as u64);
        }
        rows
    })
}
