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
use std::ops::Range;

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
    chunks().try_for_each(|chunk| masses.append(&chunk.map(|n| particles.mass(n)).collect::<Vec<f64>>()))?;
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
        position[axis] = fractions(source, name, 0, &source.array::<f64>(name, &[count])?, lengths[axis])?;
    }
    let mut velocity: [Vec<f32>; 3] = Default::default();
    for (axis, name) in VELOCITIES.into_iter().enumerate() {
        velocity[axis] = source.array(name, &[count])?;
    }
    let id = source.array(IDENTITIES, &[count])?;
    let particles = HostParticles { particle_mass: stated.particle_mass, position, velocity, id };
    particles.check().map_err(|error| source.not(error.to_string()))?;
    check_classes(source, &particles, stated)?;
    Ok(particles)
}

/// Checks that particles, or a part of them, are of mass classes that the header has, and no more of them marked.
fn check_classes(source: &Source, particles: &HostParticles, stated: DarkMatterHeader) -> Result<(), SimError> {
    let found = particles.header();
    let of_classes = (1..).zip(found.heavier.into_iter().zip(stated.heavier));
    let of_classes = of_classes.map(|(class, counts)| (format!("of mass class {class}"), counts));
    let marked = ("that refinement does not follow".to_owned(), (found.not_followed, stated.not_followed));
    let too_many = of_classes.chain([marked]).find(|(_, (found, stated))| found > stated);
    too_many.map_or(Ok(()), |(which, (found, stated))| {
        Err(source.not(format!("{IDENTITIES} has {found} particles {which}; its header has {stated}")))
    })
}

/// Reads the particles of some patches without verifying digests.
///
/// * `patches`: of the file
/// * `rows`: ranges of patches in file order, rising
///
/// # Errors
/// As [`super::Snapshot::read`].
pub(super) fn read_of_patches(
    source: &Source,
    stated: DarkMatterHeader,
    lengths: [f64; 3],
    patches: usize,
    rows: &[Range<usize>],
) -> Result<HostParticles, SimError> {
    let count = stated.particles as usize;
    let ranges = ranges_of_patches(source, patches, rows)?;
    if ranges.iter().any(|range| range.end > count) {
        return Err(source.damaged(PARTICLE_COUNTS));
    }
    let some = |range: &Range<usize>| {
        let end = range.end;
        range.clone().step_by(AT_A_TIME).map(move |first| first..end.min(first + AT_A_TIME))
    };
    let chunks: Vec<Range<usize>> = ranges.iter().flat_map(some).collect();
    let mut particles = HostParticles { particle_mass: stated.particle_mass, ..HostParticles::default() };
    for (axis, name) in POSITIONS.into_iter().enumerate() {
        let column = source.rows::<f64>(name, &[count])?;
        for chunk in &chunks {
            let values = column.at(chunk.clone())?;
            particles.position[axis].extend(fractions(source, name, chunk.start, &values, lengths[axis])?);
        }
    }
    for (axis, name) in VELOCITIES.into_iter().enumerate() {
        let column = source.rows::<f32>(name, &[count])?;
        chunks.iter().try_for_each(|chunk| column.at(chunk.clone()).map(|v| particles.velocity[axis].extend(v)))?;
    }
    let ids = source.rows::<u64>(IDENTITIES, &[count])?;
    chunks.iter().try_for_each(|chunk| ids.at(chunk.clone()).map(|id| particles.id.extend(id)))?;
    particles.check_part().map_err(|error| source.not(error.to_string()))?;
    check_classes(source, &particles, stated)?;
    Ok(particles)
}

/// Rows of the particle columns for ranges of patches.
fn ranges_of_patches(source: &Source, patches: usize, rows: &[Range<usize>]) -> Result<Vec<Range<usize>>, SimError> {
    let counts = source.rows::<i32>(PARTICLE_COUNTS, &[patches])?;
    let (mut row, mut particles) = (0, 0);
    let mut before = |patch: usize| -> Result<usize, SimError> {
        while row < patch {
            let end = patch.min(row + AT_A_TIME);
            for count in counts.at(row..end)? {
                particles += usize::try_from(count).map_err(|_| source.damaged(PARTICLE_COUNTS))?;
            }
            row = end;
        }
        Ok(particles)
    };
    rows.iter().map(|rows| Ok(before(rows.start)?..before(rows.end)?)).collect()
}

/// Positions as fractions of the box.
///
/// * `first`: row of the first value
fn fractions(source: &Source, name: &str, first: usize, values: &[f64], length: f64) -> Result<Vec<u32>, SimError> {
    let fraction = |(n, &x): (usize, &f64)| {
        let outside = || source.not(format!("{name} has particle {} at {x}: outside the box of {length}", first + n));
        HostParticles::fraction(x, length).ok_or_else(outside)
    };
    values.par_iter().enumerate().map(fraction).collect()
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
