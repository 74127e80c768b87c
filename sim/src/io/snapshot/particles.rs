//! Dark matter in the file: columns in the order of the leaf patches, in each by identity.

use super::SnapshotHeader;
use super::column::Column;
use super::contents::{IDENTITIES, MASSES, PARTICLE_COUNTS, POSITIONS, VELOCITIES};
use super::gamer;
use super::source::Source;
use crate::dark_matter::{DarkMatterHeader, HostParticles};
use crate::error::SimError;
use crate::mesh::Octree;
use comove_kernels::layout::OCTANTS;
use rayon::prelude::*;

/// Particles that are written or verified at a time.
const AT_A_TIME: usize = 1 << 20;

/// Writes the particles of a tree, which are in the order of the file.
pub(super) fn write(
    file: &hdf5::File,
    particles: &HostParticles,
    header: &SnapshotHeader,
    tree: &Octree,
) -> hdf5::Result<()> {
    file.create_group_builder().obj_track_times(false).create("Particle")?;
    let count = particles.len();
    let lengths = header.box_lengths(tree);
    let chunks = || (0..count).step_by(AT_A_TIME).map(|first| first..count.min(first + AT_A_TIME));
    for (axis, name) in POSITIONS.into_iter().enumerate() {
        let mut column = Column::create::<f64>(file, name, &[count])?;
        for chunk in chunks() {
            let values = chunk.into_par_iter().map(|n| particles.coordinate(n, axis, lengths[axis]));
            column.append(&values.collect::<Vec<f64>>())?;
        }
        column.label()?;
    }
    for (axis, name) in VELOCITIES.into_iter().enumerate() {
        let mut column = Column::create::<f32>(file, name, &[count])?;
        chunks().try_for_each(|chunk| column.append(&particles.velocity[axis][chunk]))?;
        column.label()?;
    }
    let mut ids = Column::create::<u64>(file, IDENTITIES, &[count])?;
    chunks().try_for_each(|chunk| ids.append(&particles.id[chunk]))?;
    ids.label()?;
    let mut masses = Column::create::<f64>(file, MASSES, &[count])?;
    chunks().try_for_each(|chunk| masses.append(&vec![particles.particle_mass; chunk.len()]))?;
    masses.label()?;
    let mut counts = Column::create::<i32>(file, PARTICLE_COUNTS, &[tree.group_count() * OCTANTS])?;
    counts.append(&gamer::particle_counts(particles, tree))?;
    counts.label().map(drop)
}

/// Reads them.
///
/// # Errors
/// As [`super::Snapshot::read`].
pub(super) fn read(source: &Source, stated: DarkMatterHeader, lengths: [f64; 3]) -> Result<HostParticles, SimError> {
    let count = stated.particles as usize;
    let mut position: [Vec<u32>; 3] = Default::default();
    for (axis, name) in POSITIONS.into_iter().enumerate() {
        let column = source.array::<f64>(name, &[count])?;
        let fraction = |(n, &x): (usize, &f64)| {
            let outside =
                || source.not(format!("{name} has particle {n} at {x}: outside the box of {}", lengths[axis]));
            HostParticles::fraction(x, lengths[axis]).ok_or_else(outside)
        };
        position[axis] = column.par_iter().enumerate().map(fraction).collect::<Result<_, _>>()?;
    }
    let mut velocity: [Vec<f32>; 3] = Default::default();
    for (axis, name) in VELOCITIES.into_iter().enumerate() {
        velocity[axis] = source.array(name, &[count])?;
    }
    let id = source.array(IDENTITIES, &[count])?;
    let particles = HostParticles { particle_mass: stated.particle_mass, position, velocity, id };
    particles.check().map_err(|error| source.not(error.to_string()))?;
    Ok(particles)
}

/// Verifies them and keeps nothing.
///
/// * `patches`: of the file
pub(super) fn verify(source: &Source, stated: DarkMatterHeader, patches: usize) -> Result<(), SimError> {
    let count = stated.particles as usize;
    POSITIONS.into_iter().try_for_each(|name| source.rows::<f64>(name, &[count])?.verify(AT_A_TIME))?;
    VELOCITIES.into_iter().try_for_each(|name| source.rows::<f32>(name, &[count])?.verify(AT_A_TIME))?;
    source.rows::<u64>(IDENTITIES, &[count])?.verify(AT_A_TIME)?;
    source.rows::<f64>(MASSES, &[count])?.verify(AT_A_TIME)?;
    source.rows::<i32>(PARTICLE_COUNTS, &[patches])?.verify(AT_A_TIME)
}
