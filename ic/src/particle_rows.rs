//! Particles of an initial condition or a snapshot as rows of a file: dark matter, and cells of gas in the place of particles.
//!
//! Rows are computed piece by piece while they are written. Values are in code units.

use crate::gaussian_field::at_centres;
use crate::uniform_mesh::{Lattice, UniformMesh};
use comove_sim::HostParticles;
use comove_sim::kernels::point::particle::{CLASSES, class_of, mass_of_class, number_of};
use comove_sim::parallel::Communicator;
use std::ops::Range;

/// Type of particles in files of Gadget and SWIFT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParticleType {
    /// Cells of gas.
    Gas = 0,
    /// Dark matter; of several masses the lightest.
    DarkMatter = 1,
    /// Dark matter of all larger masses.
    HeavierDarkMatter = 2,
}

/// Values of consecutive particles.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rows {
    /// Positions in comoving Mpc/h.
    pub position: Vec<[f64; 3]>,
    /// Velocities ṽ = a v_pec/(100 km/s).
    pub velocity: Vec<[f64; 3]>,
    /// Masses, mean matter density · (Mpc/h)³.
    pub mass: Vec<f64>,
    /// Identities of files, which have no mass classes: they differ among all particles.
    pub id: Vec<u64>,
    /// Gas: densities in the mean matter density. Empty for dark matter, like the following.
    pub density: Vec<f64>,
    /// Gas: internal energies per mass, (100 km/s)²/a².
    pub specific_energy: Vec<f64>,
    /// Gas: widths of the cells in comoving Mpc/h.
    pub width: Vec<f64>,
}

impl Rows {
    /// Appends a cell of gas.
    ///
    /// * `specific_energy`: internal energy per mass
    pub fn push_cell(
        &mut self,
        (position, width): ([f64; 3], f64),
        (density, velocity, specific_energy): (f64, [f64; 3], f64),
        id: u64,
    ) {
        self.position.push(position);
        self.velocity.push(velocity);
        self.mass.push(density * width.powi(3));
        self.id.push(id);
        self.density.push(density);
        self.specific_energy.push(specific_energy);
        self.width.push(width);
    }
}

/// Particles of one type.
pub struct Particles<'a> {
    /// Their type.
    pub kind: ParticleType,
    /// Their number.
    pub count: usize,
    /// Mass of each, where all are equal.
    pub mass: Option<f64>,
    rows: Box<dyn Fn(Range<usize>) -> Rows + 'a>,
}

impl<'a> Particles<'a> {
    /// Particles whose rows a function computes.
    pub fn new(kind: ParticleType, count: usize, mass: Option<f64>, rows: impl Fn(Range<usize>) -> Rows + 'a) -> Self {
        Self { kind, count, mass, rows: Box::new(rows) }
    }

    /// Values of these rows.
    pub fn rows(&self, rows: Range<usize>) -> Rows {
        (self.rows)(rows)
    }

    /// Dark matter: the lightest particles, then all others if there are some.
    ///
    /// * `lengths`: of the box along x, y, z, Mpc/h
    pub fn of_dark_matter(particles: &'a HostParticles, lengths: [f64; 3]) -> Vec<Self> {
        let mut counts = [0usize; CLASSES];
        particles.id.iter().for_each(|&id| counts[class_of(id)] += 1);
        let present: Vec<usize> = (0..CLASSES).filter(|&class| counts[class] > 0).collect();
        let numbering = Numbering::of(particles);
        let mass = |class: usize| particles.particle_mass * f64::from(mass_of_class(class));
        let Some((&lightest, heavier)) = present.split_first() else { return Vec::new() };
        if heavier.is_empty() {
            let rows = move |rows: Range<usize>| of_particles(particles, lengths, numbering, rows);
            return vec![Self::new(ParticleType::DarkMatter, particles.len(), Some(mass(lightest)), rows)];
        }
        let of = |kind, count, mass, is_one: fn(usize, usize) -> bool| {
            let chosen = (0..particles.len()).filter(|&n| is_one(class_of(particles.id[n]), lightest));
            let chosen: Vec<usize> = chosen.collect();
            Self::new(kind, count, mass, move |rows| {
                of_particles(particles, lengths, numbering, chosen[rows].iter().copied())
            })
        };
        let light = of(ParticleType::DarkMatter, counts[lightest], Some(mass(lightest)), |class, of| class == of);
        let mass = if let [class] = heavier { Some(mass(*class)) } else { None };
        let count = particles.len() - counts[lightest];
        vec![light, of(ParticleType::HeavierDarkMatter, count, mass, |class, of| class != of)]
    }

    /// Gas as particles of equal mass that start at the centres of the cells and are displaced as the dark matter is, for codes
    /// whose gas is particles. Masses that differ at the centres instead would set it apart from the dark matter by the
    /// displacement, which such codes take for a force: their gas then lacks a fifth of the power on large scales at z = 5.
    ///
    /// * `lattice`: dark matter from the same spectrum, held entirely by this rank like `mesh`
    /// * `first_id`: identity of the first particle
    pub fn of_gas_beside(mesh: &'a UniformMesh, lattice: &Lattice, box_mpc_h: f64, first_id: u64) -> Self {
        let (cells, width) = (mesh.cells, box_mpc_h / mesh.cells[0] as f64);
        let alone = Communicator::alone();
        let moved = lattice.displacement.each_ref().map(|values| at_centres(&alone, cells, values));
        let velocity = lattice.velocity.each_ref().map(|values| at_centres(&alone, cells, values));
        let mean = mesh.density.iter().sum::<f64>() / mesh.density.len().max(1) as f64;
        Self::new(ParticleType::Gas, mesh.density.len(), Some(mean * width.powi(3)), move |range| {
            let mut rows = Rows::default();
            for n in range {
                let start = mesh.cell(n);
                let at = [0, 1, 2].map(|axis| {
                    // displacements are from lower corners
                    let x = start[axis] as f64 * width + moved[axis][n] + 0.5 * width;
                    x.rem_euclid(cells[axis] as f64 * width)
                });
                let there = mesh.index([0, 1, 2].map(|axis| ((at[axis] / width) as usize).min(cells[axis] - 1)));
                let specific_energy = mesh.internal_energy[there] / mesh.density[there];
                let velocity = [0, 1, 2].map(|axis| velocity[axis][n]);
                rows.push_cell((at, width), (mean, velocity, specific_energy), first_id + n as u64);
            }
            rows
        })
    }

    /// The cells of a mesh of gas, held entirely by this rank.
    ///
    /// * `first_id`: identity of the first cell
    pub fn of_mesh(mesh: &'a UniformMesh, box_mpc_h: f64, first_id: u64) -> Self {
        let width = box_mpc_h / mesh.cells[0] as f64;
        Self::new(ParticleType::Gas, mesh.density.len(), None, move |range| {
            let mut rows = Rows::default();
            for n in range {
                let (density, position) = (mesh.density[n], mesh.cell(n).map(|i| (i as f64 + 0.5) * width));
                let velocity = [0, 1, 2].map(|axis| mesh.momentum[axis][n] / density);
                let gas = (density, velocity, mesh.internal_energy[n] / density);
                rows.push_cell((position, width), gas, first_id + n as u64);
            }
            rows
        })
    }
}

/// Identities of particles in files, which differ among all of them: lattices of a zoom are numbered from 0 each, so the
/// numbers of a heavier class follow those of the lighter ones.
#[derive(Clone, Copy, Debug)]
struct Numbering {
    /// One more than the largest number of any class.
    of_class: u64,
    /// One more than the largest identity.
    next: u64,
}

impl Numbering {
    /// Of these particles.
    fn of(particles: &HostParticles) -> Self {
        // one more than the largest number of each class
        let mut after = [0; CLASSES];
        for &id in &particles.id {
            let after = &mut after[class_of(id)];
            *after = (number_of(id) + 1).max(*after);
        }
        let of_class = after.into_iter().max().unwrap_or(0);
        let present = (0..CLASSES).filter(|&class| after[class] > 0);
        Self { of_class, next: present.map(|class| after[class] + class as u64 * of_class).max().unwrap_or(0) }
    }

    fn identity(self, id: u64) -> u64 {
        number_of(id) + class_of(id) as u64 * self.of_class
    }
}

/// The first identity above those of all particles.
pub fn next_id(particles: Option<&HostParticles>) -> u64 {
    particles.map_or(0, |particles| Numbering::of(particles).next)
}

fn of_particles(
    particles: &HostParticles,
    lengths: [f64; 3],
    numbering: Numbering,
    chosen: impl Iterator<Item = usize>,
) -> Rows {
    let mut rows = Rows::default();
    for n in chosen {
        rows.position.push([0, 1, 2].map(|axis| particles.coordinate(n, axis, lengths[axis])));
        rows.velocity.push([0, 1, 2].map(|axis| f64::from(particles.velocity[axis][n])));
        rows.mass.push(particles.mass(n));
        rows.id.push(numbering.identity(particles.id[n]));
    }
    rows
}
