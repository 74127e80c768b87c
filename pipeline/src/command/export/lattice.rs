//! A snapshot as an initial condition on one mesh: gas on a grid, and a particle for each of its cells.

use crate::error::PipelineError;
use comove_analysis::covering_grid::{GRID_LIMIT_MIB, grid_within};
use comove_ic::uniform_mesh::{DarkMatter, Lattice, UniformMesh};
use comove_sim::kernels::point::particle::{is_followed, unmarked};
use comove_sim::{Cosmology, HostParticles, Snapshot};
use std::path::Path;

/// Mesh of a level, and whether refinement follows the particle of each cell, where it does not follow all. A particle's identity is
/// the number of its cell, x fastest, as `ic_gaussian` numbers particles.
///
/// # Errors
/// For particles that are not one for each cell; for massive neutrinos, which these files do not hold.
pub(super) fn mesh(
    source: &Path,
    snapshot: &Snapshot,
    level: usize,
) -> Result<(UniformMesh, Option<Vec<bool>>), PipelineError> {
    if let Some(cosmology) = snapshot.header.cosmology.filter(Cosmology::has_neutrinos) {
        let reason = format!("m_nu_ev = {}; --format grafic needs m_nu_ev: 0: use --format npy", cosmology.m_nu_ev);
        return Err(PipelineError::input(source, reason));
    }
    // no grid is that fine, which is told below
    let cells = snapshot.state.tree.cells(level.min(16));
    let mut mesh = UniformMesh::without_values(cells, 0..cells[2]);
    if snapshot.header.fields.has_gas() {
        let velocity = snapshot.header.units().velocity_km_s(snapshot.header.a);
        let grid = |name: &str| {
            let grid = grid_within(snapshot, name, level, GRID_LIMIT_MIB)?;
            Ok::<Vec<f64>, PipelineError>(grid.into_iter().collect())
        };
        mesh.density = grid("density")?;
        let pressure = grid("pressure")?;
        mesh.internal_energy = pressure.iter().map(|pressure| pressure / (snapshot.header.gamma - 1.0)).collect();
        for (momentum, axis) in mesh.momentum.iter_mut().zip(["x", "y", "z"]) {
            let speed = grid(&format!("velocity_{axis}"))?;
            *momentum = speed.iter().zip(&mesh.density).map(|(speed, density)| speed / velocity * density).collect();
        }
    }
    let mut followed = None;
    if let Some(particles) = &snapshot.state.particles {
        let place = |found| {
            let reason = format!(
                "{found}; --format grafic needs a particle for each of the {cells:?} cells of level {level}, numbered from 0: \
                 choose another --level, or --format gadget"
            );
            PipelineError::input(source, reason)
        };
        let of_cell = by_cell(particles, &mesh).map_err(place)?;
        if particles.header().not_followed > 0 {
            followed = Some(of_cell.iter().map(|&n| is_followed(particles.id[n])).collect());
        }
        mesh.dark_matter = Some(DarkMatter::Lattice(lattice(particles, &mesh, snapshot.box_lengths(), &of_cell)));
    }
    Ok((mesh, followed))
}

/// The particle of each cell.
///
/// # Errors
/// The number or identity that no lattice has.
fn by_cell(particles: &HostParticles, mesh: &UniformMesh) -> Result<Vec<usize>, String> {
    let count = mesh.cell_count();
    if particles.len() != count {
        return Err(format!("{} particles", particles.len()));
    }
    let mut of_cell = vec![usize::MAX; count];
    for (n, &id) in particles.id.iter().enumerate() {
        match of_cell.get_mut(unmarked(id) as usize) {
            Some(place) if *place == usize::MAX => *place = n,
            _ => return Err(format!("a particle has the identity {}", unmarked(id))),
        }
    }
    Ok(of_cell)
}

/// Particles in the order of their cells, with displacements from the cells' lower corners.
fn lattice(particles: &HostParticles, mesh: &UniformMesh, lengths: [f64; 3], of_cell: &[usize]) -> Lattice {
    let count = mesh.cell_count();
    let way = |cell: usize, axis: usize| {
        let at = mesh.cell(cell)[axis] as f64 * lengths[axis] / mesh.cells[axis] as f64;
        let way = particles.coordinate(of_cell[cell], axis, lengths[axis]) - at;
        // the shorter one around the box
        way - lengths[axis] * (way / lengths[axis]).round()
    };
    Lattice {
        displacement: [0, 1, 2].map(|axis| (0..count).map(|cell| way(cell, axis)).collect()),
        velocity: [0, 1, 2].map(|axis| of_cell.iter().map(|&n| f64::from(particles.velocity[axis][n])).collect()),
    }
}
