//! Friends-of-friends halos of dark-matter particles (Davis et al. 1985).
//!
//! 1. Particles closer than b times the mean interparticle spacing are friends; a group is all that are linked by friends
//!    (`groups.rs`), across periodic faces. Of particles of several masses the spacing is that of the lightest class if it filled
//!    the box, as in the region of a zoom simulation. Heavier ones are linked by the same length: they join groups in that
//!    region, and halos of heavier particles alone are not found.
//! 2. A group of at least `min_particles` is a halo. Its mass is that of its particles times Ω_m/(Ω_m − Ω_b): each stands for
//!    all matter of its share of the box.
//! 3. Its centre is its density maximum: uphill from where its particles are densest by number (`centre.rs`), so that no heavy
//!    particle attracts it, the densest cell of all matter (`uphill.rs`), so that both finders measure spheres about one
//!    centre. Its velocity is that of its centre of mass.
//! 4. Spherical overdensities of all matter, gas and particles whether linked or not, about that centre
//!    ([`crate::halos::overdensity`]).
//!
//! Halos are numbered by falling mass. Results do not depend on the order of particles, on threads or on ranks.

mod centre;
mod groups;
mod uphill;

use crate::error::AnalysisError;
use crate::halos::overdensity::{Overdensities, Probe, measure};
use crate::messages::{FIRST, gather_all};
use crate::part::{Part, alone};
use crate::particle_grid::mean_spacing;
use crate::table::{Column, Record, Table};
use bytemuck::{Pod, Zeroable};
use comove_sim::parallel::Communicator;
use comove_sim::{Cosmology, DarkMatterHeader, HostParticles, Snapshot};
use groups::Member;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::f64::consts::PI;

/// How particles are linked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FofOptions {
    /// b: the linking length of friends of friends in the mean spacing of particles, if all had the mass of the lightest.
    pub linking_length: f64,
    /// Particles that a friends-of-friends halo has at least.
    pub min_particles: usize,
}

/// Samples of gas along the radius of a sphere, as around density peaks.
const SAMPLES: usize = 16;

impl Default for FofOptions {
    fn default() -> Self {
        Self { linking_length: 0.2, min_particles: 32 }
    }
}

/// A friends-of-friends halo. In non-comoving coordinates lengths, masses and velocities are in code units.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FofHalo {
    /// Rank by mass, from 0.
    pub id: usize,
    /// Particles of the group.
    pub particles: usize,
    /// Their mass times Ω_m/(Ω_m − Ω_b), in Msun/h.
    pub mass_msun_h: f64,
    /// Centre, the density maximum of the particles, in comoving Mpc/h.
    pub position_mpc_h: [f64; 3],
    /// R200m in comoving Mpc/h; where there is none, the radius in which the mass has 200 times the mean density.
    pub radius_mpc_h: f64,
    /// Mean peculiar velocity of the particles in km/s.
    pub velocity_km_s: [f64; 3],
    /// Their velocity dispersion along one axis in km/s: √(⟨|v − ⟨v⟩|²⟩/3).
    pub dispersion_km_s: f64,
    /// Spherical overdensities about the centre.
    #[serde(flatten)]
    pub spheres: Overdensities,
    /// The largest larger halo whose radius holds this centre.
    pub parent: Option<usize>,
}

/// The friends-of-friends halos of a snapshot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FofCatalogue {
    /// Redshift.
    pub redshift: f64,
    /// Options of the stage.
    pub options: FofOptions,
    /// Lengths of the box in Mpc/h.
    pub box_mpc_h: [f64; 3],
    /// The background; none in non-comoving coordinates.
    pub cosmology: Option<Cosmology>,
    /// Mass that a particle of the lightest class stands for in Msun/h: its own times Ω_m/(Ω_m − Ω_b).
    pub particle_mass_msun_h: f64,
    /// The linking length in Mpc/h.
    pub linking_length_mpc_h: f64,
    /// Share of the particles' mass in halos.
    pub fraction_in_halos: f64,
    /// The halos, the largest first.
    pub halos: Vec<FofHalo>,
}

/// Finds the halos of a snapshot.
///
/// # Errors
/// [`AnalysisError::Option`] for an option out of its range, or a snapshot without dark matter.
pub fn find_fof_halos(snapshot: &Snapshot, options: &FofOptions) -> Result<FofCatalogue, AnalysisError> {
    alone(snapshot, |communicator, part| find_fof_halos_by(communicator, part, options))
}

/// The same of a snapshot in parts, on the first rank: collective.
///
/// # Errors
/// As [`find_fof_halos`].
pub fn find_fof_halos_by(
    communicator: &Communicator,
    part: &Part,
    options: &FofOptions,
) -> Result<Option<FofCatalogue>, AnalysisError> {
    options.check()?;
    let (stated, particles) = particles_of(part)?;
    let header = part.header();
    let units = header.units();
    let box_lengths = part.snapshot.box_lengths();
    let linking_length = options.linking_length * mean_spacing(stated.number_if_lightest(), box_lengths);
    if box_lengths.iter().any(|length| *length < groups::LEAST_LENGTHS * linking_length) {
        let reason =
            format!("must be smaller: a side of the box must hold at least {} linking lengths", groups::LEAST_LENGTHS);
        return Err(AnalysisError::option("linking_length", options.linking_length, reason));
    }
    // a hair more: round-off leaves no friend out
    let reach = linking_length * (1.0 + 1e-9);
    let near = |position: [f64; 3]| part.other_ranks_within(position, reach);
    let groups = groups::groups_by(communicator, particles, box_lengths, linking_length, options.min_particles, &near);
    let mean_dark_matter = stated.mass() / box_lengths.iter().product::<f64>();
    let mean_matter = match header.cosmology {
        Some(_) => 1.0,
        None => mean_dark_matter + crate::cells::mean_density_by(communicator, part),
    };
    // that a particle of class 0 stands for
    let particle_mass = particles.particle_mass * mean_matter / mean_dark_matter;
    let radius = |mass: u64| (mass as f64 * particle_mass / (200.0 * mean_matter * 4.0 / 3.0 * PI)).cbrt();
    let mut found: Vec<Found> =
        groups.par_iter().map(|group| Found::of(&group.members(particles), box_lengths)).collect();
    drop(groups);
    let places: Vec<_> = found.iter().map(|found| (found.centre, radius(found.mass))).collect();
    let centres = uphill::densest_cells(communicator, part, &places);
    found.iter_mut().zip(centres).for_each(|(found, centre)| found.centre = centre);
    let mut found = gather_all(communicator, &found).concat();
    found.sort_unstable_by_key(|found| (Reverse(found.mass), found.first_id));
    let velocity_unit = units.velocity_km_s(header.a);
    let halo = |found: &Found| FofHalo {
        id: 0,
        particles: found.particles as usize,
        mass_msun_h: found.mass as f64 * particle_mass * units.mass_msun_h(),
        position_mpc_h: found.centre,
        radius_mpc_h: radius(found.mass),
        velocity_km_s: found.velocity.map(|v| v * velocity_unit),
        dispersion_km_s: found.dispersion * velocity_unit,
        spheres: Overdensities::default(),
        parent: None,
    };
    let mut halos: Vec<FofHalo> = found.iter().map(halo).collect();
    // an R200m is found in a sphere half as wide again as one of the group's mass, unless much more lies around it
    let probes: Vec<Probe> =
        halos.iter().map(|halo| Probe { centre: halo.position_mpc_h, radius: 1.5 * halo.radius_mpc_h }).collect();
    let spheres = measure(communicator, part, &probes, SAMPLES);
    for (halo, spheres) in halos.iter_mut().zip(spheres) {
        halo.radius_mpc_h = spheres.mean_radius().unwrap_or(halo.radius_mpc_h);
        halo.spheres = spheres;
    }
    relate(&mut halos, box_lengths);
    let in_halos: u64 = found.iter().map(|found| found.mass).sum();
    let lightest = stated.mass_in_class_0() / stated.number_if_lightest();
    let leads = communicator.rank() == FIRST;
    Ok(leads.then(|| FofCatalogue {
        redshift: header.redshift(),
        options: options.clone(),
        box_mpc_h: box_lengths,
        cosmology: header.cosmology,
        particle_mass_msun_h: particle_mass * lightest as f64 * units.mass_msun_h(),
        linking_length_mpc_h: linking_length,
        fraction_in_halos: in_halos as f64 / stated.mass_in_class_0() as f64,
        halos,
    }))
}

/// The header of the dark matter, and the particles of this rank.
fn particles_of<'a>(part: &Part<'a>) -> Result<(DarkMatterHeader, &'a HostParticles), AnalysisError> {
    let Some(stated) = part.header().dark_matter else {
        let reason = "friends of friends need dark matter, and the snapshot has none; use finder: \"peaks\" for \
                      density peaks of the gas";
        return Err(AnalysisError::option("finder", "fof", reason));
    };
    Ok((stated, part.particles()?))
}

/// Summary of a group that its owner sends to all ranks, in code units.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Found {
    particles: u64,
    /// In units of class 0.
    mass: u64,
    first_id: u64,
    centre: [f64; 3],
    /// Mean velocity.
    velocity: [f64; 3],
    /// Velocity dispersion along one axis.
    dispersion: f64,
}

impl Found {
    /// Summarizes a group, sorted by identity; the centre is the density maximum of the particles.
    fn of(group: &[Member], box_lengths: [f64; 3]) -> Self {
        let (velocity, dispersion) = motion(group);
        let centre = centre::density_maximum(group, box_lengths);
        let mass = group.iter().map(|particle| u64::from(particle.mass())).sum();
        Self { particles: group.len() as u64, mass, first_id: group[0].id, centre, velocity, dispersion }
    }
}

/// The velocity of the centre of mass of particles, and their dispersion along one axis, in code units.
fn motion(group: &[Member]) -> ([f64; 3], f64) {
    let particles = || group.iter().map(|particle| (f64::from(particle.mass()), particle.velocity.map(f64::from)));
    let mass: f64 = particles().map(|(m, _)| m).sum();
    let mut mean = [0.0; 3];
    for (m, v) in particles() {
        (0..3).for_each(|a| mean[a] += m * v[a] / mass);
    }
    let square = |v: [f64; 3]| (0..3).map(|a| (v[a] - mean[a]).powi(2)).sum::<f64>();
    let squares: f64 = particles().map(|(m, v)| m * square(v)).sum();
    (mean, (squares / (3.0 * mass)).sqrt())
}

/// Numbers the halos, and names for each the largest larger one whose radius holds its centre.
fn relate(halos: &mut [FofHalo], box_lengths: [f64; 3]) {
    let spheres: Vec<_> = halos.iter().map(|halo| (halo.position_mpc_h, halo.radius_mpc_h)).collect();
    let parents = crate::halos::overdensity::hosts(&spheres, box_lengths);
    for (id, (halo, parent)) in halos.iter_mut().zip(parents).enumerate() {
        (halo.id, halo.parent) = (id, parent);
    }
}

impl FofOptions {
    /// What can be refused without a snapshot.
    ///
    /// # Errors
    /// [`AnalysisError::Option`] for an option out of its range.
    pub fn check(&self) -> Result<(), AnalysisError> {
        if !(0.05..=1.0).contains(&self.linking_length) {
            let reason = "must lie between 0.05 and 1 mean particle separations; 0.2 is usual";
            return Err(AnalysisError::option("linking_length", self.linking_length, reason));
        }
        if self.min_particles < 8 {
            let reason = "must be at least 8";
            return Err(AnalysisError::option("min_particles", self.min_particles, reason));
        }
        Ok(())
    }
}

impl Record for FofCatalogue {
    fn table(&self) -> Table {
        let columns: [Column<'_, FofHalo>; 11] = [
            ("id", |h| h.id.into()),
            ("x_mpc_h", |h| h.position_mpc_h[0].into()),
            ("y_mpc_h", |h| h.position_mpc_h[1].into()),
            ("z_mpc_h", |h| h.position_mpc_h[2].into()),
            ("particles", |h| h.particles.into()),
            ("mass_msun_h", |h| h.mass_msun_h.into()),
            ("radius_mpc_h", |h| h.radius_mpc_h.into()),
            ("vx_km_s", |h| h.velocity_km_s[0].into()),
            ("vy_km_s", |h| h.velocity_km_s[1].into()),
            ("vz_km_s", |h| h.velocity_km_s[2].into()),
            ("dispersion_km_s", |h| h.dispersion_km_s.into()),
        ];
        let mut table = Table::of(&self.halos, &columns);
        if self.cosmology.is_some() {
            Overdensities::add_columns(&mut table, self.halos.iter().map(|halo| &halo.spheres), true);
        }
        table.add_column("parent", self.halos.iter().map(|halo| halo.parent.into()));
        table
    }
}

#[cfg(test)]
mod tests;
