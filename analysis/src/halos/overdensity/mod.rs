//! Spherical overdensities of all matter about given centres: M and R of the usual definitions, the gas in them, the velocity
//! dispersion of their dark matter, and an NFW concentration.
//!
//! R is the smallest radius beyond the innermost one at which the mean density within has fallen to Δ times the reference
//! density; M = Δ ρ_ref 4π/3 R³. The innermost radius holds eight particles of any mass; without dark matter it is the width of the
//! centre's cell. Particles count one by one, gas by samples of its cells as in [`crate::halos::peaks`].

use crate::cells::{LeafCell, leaf_width_at};
use crate::halos::nfw;
use crate::messages::{exchange, gather_all};
use crate::part::Part;
use crate::particle_grid::{ParticleGrid, mean_spacing, position_of};
use crate::sphere::{Sphere, norm};
use crate::spheres::{Look, SPHERES, look_at, visit_samples};
use crate::table::Table;
use bytemuck::{Pod, Zeroable};
use comove_sim::kernels::layout::DENSITY;
use comove_sim::kernels::point::particle::mass_of;
use comove_sim::parallel::Communicator;
use comove_sim::{Cosmology, DarkMatterHeader, HostParticles};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::f64::consts::PI;

/// What the mass of a halo is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum MassDefinition {
    /// Of friends of friends.
    #[serde(rename = "fof")]
    Fof,
    /// Within 200 times the mean matter density.
    #[serde(rename = "200m")]
    M200m,
    /// Within 200 times the critical density.
    #[serde(rename = "200c")]
    M200c,
    /// Within 500 times the critical density.
    #[serde(rename = "500c")]
    M500c,
    /// Within the virial density of Bryan & Norman 1998.
    #[serde(rename = "vir")]
    Virial,
}

/// The definitions by a density.
pub const SPHERICAL: [MassDefinition; 4] =
    [MassDefinition::M200m, MassDefinition::M200c, MassDefinition::M500c, MassDefinition::Virial];

impl MassDefinition {
    /// Its name in recipes and columns.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fof => "fof",
            Self::M200m => "200m",
            Self::M200c => "200c",
            Self::M500c => "500c",
            Self::Virial => "vir",
        }
    }

    /// Mean density within, in the mean matter density at a; none for friends of friends.
    pub fn density(self, cosmology: &Cosmology, a: f64) -> Option<f64> {
        let critical = cosmology.critical_over_mean(a);
        match self {
            Self::Fof => None,
            Self::M200m => Some(200.0),
            Self::M200c => Some(200.0 * critical),
            Self::M500c => Some(500.0 * critical),
            Self::Virial => Some(virial_overdensity(cosmology, a) * critical),
        }
    }
}

/// Δ_vir in the critical density (Bryan & Norman 1998, ApJ 495, 80, eq. 6), x = Ω_m(a) − 1: 18π² + 82 x − 39 x² of a flat
/// universe, 18π² + 60 x − 32 x² of one without dark energy.
pub fn virial_overdensity(cosmology: &Cosmology, a: f64) -> f64 {
    let x = 1.0 / cosmology.critical_over_mean(a) - 1.0;
    let [linear, square] = if cosmology.omega_lambda == 0.0 { [60.0, 32.0] } else { [82.0, 39.0] };
    18.0 * PI * PI + linear * x - square * x * x
}

/// A sphere of one definition.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Overdensity {
    /// Mass of all matter in Msun/h.
    pub mass_msun_h: f64,
    /// Radius in comoving Mpc/h.
    pub radius_mpc_h: f64,
    /// The gas's share of the mass.
    pub gas_fraction: f64,
    /// Velocity dispersion of the dark matter along one axis in km/s: √(⟨|v − ⟨v⟩|²⟩/3); none without dark matter.
    #[serde(default)]
    pub dispersion_km_s: Option<f64>,
    /// The share of particles heavier than the lightest ones in the mass of the dark matter; none where all have one mass.
    #[serde(default)]
    pub heavy_fraction: Option<f64>,
}

/// The spheres about a centre. Nothing in non-comoving coordinates.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Overdensities {
    /// By definition; none where the density is not reached, or the sphere would be wider than the box.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub overdensities: BTreeMap<MassDefinition, Option<Overdensity>>,
    /// R200c over the scale radius of the NFW profile that fits the dark matter within best; none with fewer
    /// than 100 particles there, or where cells are too wide.
    #[serde(default)]
    pub concentration_200c: Option<f64>,
    /// Distance from the centre to the nearest particle heavier than the lightest ones in comoving Mpc/h; none where all have one
    /// mass, and beyond half the box.
    #[serde(default)]
    pub heavy_distance_mpc_h: Option<f64>,
}

impl Overdensities {
    /// The sphere of a definition.
    pub fn of(&self, definition: MassDefinition) -> Option<Overdensity> {
        self.overdensities.get(&definition).copied().flatten()
    }

    /// R200m.
    pub(crate) fn mean_radius(&self) -> Option<f64> {
        self.of(MassDefinition::M200m).map(|sphere| sphere.radius_mpc_h)
    }

    /// Appends columns to a table of halos in comoving coordinates.
    pub(crate) fn add_columns<'a>(
        table: &mut Table,
        halos: impl Iterator<Item = &'a Self> + Clone,
        has_dark_matter: bool,
    ) {
        let has_several_masses = halos.clone().any(Self::knows_heavier);
        let mut add = |name: String, value: &dyn Fn(&Self) -> Option<f64>| {
            table.add_column(&name, halos.clone().map(|halo| value(halo).into()));
        };
        for definition in SPHERICAL {
            let name = definition.name();
            add(format!("mass_{name}_msun_h"), &|halo| halo.of(definition).map(|sphere| sphere.mass_msun_h));
            add(format!("radius_{name}_mpc_h"), &|halo| halo.of(definition).map(|sphere| sphere.radius_mpc_h));
            if has_dark_matter {
                add(format!("gas_fraction_{name}"), &|halo| halo.of(definition).map(|sphere| sphere.gas_fraction));
                add(format!("dispersion_{name}_km_s"), &|halo| halo.of(definition)?.dispersion_km_s);
            }
            if has_several_masses {
                add(format!("heavy_fraction_{name}"), &|halo| halo.of(definition)?.heavy_fraction);
            }
        }
        if has_dark_matter {
            add("concentration_200c".into(), &|halo| halo.concentration_200c);
        }
        if has_several_masses {
            add("heavy_distance_mpc_h".into(), &|halo| halo.heavy_distance_mpc_h);
        }
    }

    /// True if a share or the distance of heavier particles is known, which is so where particles have several masses.
    fn knows_heavier(&self) -> bool {
        let mut spheres = self.overdensities.values().flatten();
        self.heavy_distance_mpc_h.is_some() || spheres.any(|sphere| sphere.heavy_fraction.is_some())
    }
}

/// A centre, and how far its spheres are expected to reach, in code length.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Probe {
    pub(crate) centre: [f64; 3],
    pub(crate) radius: f64,
}

/// Particles that the innermost sphere holds.
const INNERMOST: usize = 8;
/// Shells in which gas is summed: thinner than its samples, so that these decide what is resolved.
const SHELLS: usize = 512;
/// The fit begins at this many widths of the centre's cell: forces are softened over two.
const SOFTENED: f64 = 2.0;

/// The spheres about centres, on all ranks: collective.
pub(crate) fn measure(
    communicator: &Communicator,
    part: &Part,
    probes: &[Probe],
    samples: usize,
) -> Vec<Overdensities> {
    let header = part.header();
    let Some(cosmology) = header.cosmology else { return vec![Overdensities::default(); probes.len()] };
    let densities = SPHERICAL.map(|definition| definition.density(&cosmology, header.a).expect("by a density"));
    let units = header.units();
    let (mass_unit, velocity_unit) = (units.mass_msun_h(), units.velocity_km_s(header.a));
    let particles = part.snapshot.state.particles.as_ref().zip(header.dark_matter);
    let lengths = part.snapshot.box_lengths();
    let grid = particles.map(|(own, stated)| (own, ParticleGrid::for_spheres(own, lengths, stated.particles)));
    let lightest = header.dark_matter.and_then(lightest_of_several);
    // of several ranks each has the particles of as many spheres as it looks at together
    let at_once = if communicator.size() == 1 { probes.len() } else { SPHERES * communicator.size() };
    let largest = lengths.into_iter().fold(f64::INFINITY, f64::min) / 2.0;
    let widths: Vec<f64> = probes.iter().map(|probe| leaf_width_at(part, probe.centre)).collect();
    let mut reaches: Vec<f64> =
        probes.iter().zip(&widths).map(|(probe, width)| probe.radius.max(*width).min(largest)).collect();
    let mut found = vec![Overdensities::default(); probes.len()];
    let mut growing: Vec<usize> = (0..probes.len()).collect();
    while !growing.is_empty() {
        let mut unfinished = Vec::new();
        for some in growing.chunks(at_once) {
            let spheres: Vec<Sphere> =
                some.iter().map(|&n| Sphere { centre: probes[n].centre, radius: reaches[n] }).collect();
            let widths: Vec<f64> = some.iter().map(|&n| widths[n]).collect();
            let ends: Vec<bool> = some.iter().map(|&n| reaches[n] >= largest).collect();
            let particles = grid.as_ref().map(|(own, grid)| Particles::new(communicator, (own, grid), &spheres));
            let look =
                Matter { particles, spheres: &spheres, widths: &widths, ends: &ends, densities, samples, lightest };
            let results = look_at(communicator, part, &spheres, &look);
            for (&n, numbers) in some.iter().zip(results) {
                match numbers.split_last() {
                    None => unfinished.push(n),
                    Some((concentration, spheres)) => {
                        found[n] = described(spheres, *concentration, &densities, [mass_unit, velocity_unit]);
                    }
                }
            }
        }
        unfinished.iter().for_each(|&n| reaches[n] = (1.5 * reaches[n]).min(largest));
        growing = unfinished;
    }
    if let (Some(lightest), Some((own, _))) = (lightest, particles) {
        let distances = nearest_heavier(communicator, own, lengths, lightest, probes, largest);
        found.iter_mut().zip(distances).for_each(|(found, distance)| found.heavy_distance_mpc_h = distance);
    }
    found
}

/// Mass of the lightest particles in units of class 0, if there are heavier ones.
fn lightest_of_several(stated: DarkMatterHeader) -> Option<u32> {
    let lightest = stated.mass_in_class_0() / stated.number_if_lightest().max(1);
    (lightest * stated.particles < stated.mass_in_class_0()).then_some(lightest as u32)
}

/// Distances of centres from the nearest particle that is heavier, up to a largest one: collective.
fn nearest_heavier(
    communicator: &Communicator,
    particles: &HostParticles,
    lengths: [f64; 3],
    lightest: u32,
    probes: &[Probe],
    largest: f64,
) -> Vec<Option<f64>> {
    let heavier: Vec<usize> = (0..particles.len()).filter(|&n| mass_of(particles.id[n]) > lightest).collect();
    let mut all = [heavier.len() as u64];
    communicator.sum(&mut all);
    let spacing = mean_spacing(all[0].max(1), lengths);
    let cells = lengths.map(|length| (length / spacing).ceil() as u32);
    let grid = ParticleGrid::new(heavier.len(), |n| position_of(particles, heavier[n]), lengths, cells);
    let mut reaches: Vec<f64> = probes.iter().map(|probe| probe.radius.max(spacing).min(largest)).collect();
    let mut found = vec![None; probes.len()];
    let mut waiting: Vec<usize> = (0..probes.len()).collect();
    while !waiting.is_empty() {
        let nearest = |&n: &usize| {
            let mut nearest = f64::INFINITY;
            grid.visit_sphere(probes[n].centre, reaches[n], |_, r| nearest = nearest.min(r));
            nearest
        };
        let own: Vec<f64> = waiting.par_iter().map(nearest).collect();
        let of_ranks = gather_all(communicator, &own);
        let mut further = Vec::new();
        for (place, &n) in waiting.iter().enumerate() {
            let nearest = of_ranks.iter().map(|of_rank| of_rank[place]).fold(f64::INFINITY, f64::min);
            found[n] = Some(nearest).filter(|nearest| nearest.is_finite());
            if found[n].is_none() && reaches[n] < largest {
                reaches[n] = (2.0 * reaches[n]).min(largest);
                further.push(n);
            }
        }
        waiting = further;
    }
    found
}

/// What [`Matter`] found of a sphere.
fn described(
    numbers: &[f64],
    concentration: f64,
    densities: &[f64; SPHERICAL.len()],
    [mass_unit, velocity_unit]: [f64; 2],
) -> Overdensities {
    let known = |value: f64| Some(value).filter(|value| value.is_finite());
    let sphere = |(n, numbers): (usize, &[f64])| {
        let radius_mpc_h = known(numbers[0])?;
        Some(Overdensity {
            mass_msun_h: densities[n] * volume(radius_mpc_h) * mass_unit,
            radius_mpc_h,
            gas_fraction: numbers[1],
            dispersion_km_s: known(numbers[2] * velocity_unit),
            heavy_fraction: known(numbers[3]),
        })
    };
    let spheres = numbers.chunks_exact(Crossing::NUMBERS).enumerate().map(sphere);
    Overdensities {
        overdensities: SPHERICAL.into_iter().zip(spheres).collect(),
        concentration_200c: known(concentration),
        heavy_distance_mpc_h: None,
    }
}

fn volume(radius: f64) -> f64 {
    4.0 / 3.0 * PI * radius.powi(3)
}

/// A particle of a sphere.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Near {
    /// Distance from the centre in code length.
    r: f64,
    id: u64,
    /// Velocity in code units.
    velocity: [f64; 3],
}

impl Near {
    /// In units of class 0.
    fn mass(&self) -> f64 {
        f64::from(mass_of(self.id))
    }
}

/// The particles of spheres.
struct Particles<'a> {
    particles: &'a HostParticles,
    grid: &'a ParticleGrid,
    /// Of several ranks: their number, and the particles of every `ranks`-th sphere, which this rank looks at.
    sent: Option<(usize, Vec<Vec<Near>>)>,
}

impl<'a> Particles<'a> {
    /// Collects the particles of each sphere on the rank that looks at it: collective.
    fn new(
        communicator: &Communicator,
        (particles, grid): (&'a HostParticles, &'a ParticleGrid),
        spheres: &[Sphere],
    ) -> Self {
        let (rank, ranks) = (communicator.rank(), communicator.size());
        if ranks == 1 {
            return Self { particles, grid, sent: None };
        }
        let mut lists: Vec<Vec<Near>> = spheres.par_iter().map(|sphere| near(particles, grid, sphere)).collect();
        let of_rank = |rank: usize| (rank..spheres.len()).step_by(ranks);
        let counts = (0..ranks).map(|other| of_rank(other).map(|n| lists[n].len() as u64).collect()).collect();
        let to = (0..ranks).map(|other| of_rank(other).flat_map(|n| std::mem::take(&mut lists[n])).collect()).collect();
        let (counts, came) = (exchange(communicator, counts), exchange(communicator, to));
        let mut own = vec![Vec::new(); of_rank(rank).len()];
        for (counts, came) in counts.iter().zip(&came) {
            let mut came: &[Near] = came;
            for (own, &count) in own.iter_mut().zip(counts) {
                let (of_sphere, rest) = came.split_at(count as usize);
                own.extend_from_slice(of_sphere);
                came = rest;
            }
        }
        Self { particles, grid, sent: Some((ranks, own)) }
    }

    /// Mass of a particle of class 0 in code units.
    fn mass_of_class_0(&self) -> f64 {
        self.particles.particle_mass
    }

    /// The particles of sphere `n`, sorted by distance, then by identity.
    fn of(&self, n: usize, sphere: &Sphere) -> Vec<Near> {
        let mut found = match &self.sent {
            Some((ranks, lists)) => lists[n / ranks].clone(),
            None => near(self.particles, self.grid, sphere),
        };
        found.sort_unstable_by(|x, y| x.r.total_cmp(&y.r).then(x.id.cmp(&y.id)));
        found
    }
}

/// The particles of a grid in a sphere, unsorted.
fn near(particles: &HostParticles, grid: &ParticleGrid, sphere: &Sphere) -> Vec<Near> {
    let mut found = Vec::new();
    grid.visit_sphere(sphere.centre, sphere.radius, |particle, r| {
        let number = grid.number(particle);
        let velocity = particles.velocity.each_ref().map(|column| f64::from(column[number]));
        found.push(Near { r, id: particles.id[number], velocity });
    });
    found
}

/// Where the mean density of all matter about a centre falls below given ones.
struct Matter<'a> {
    particles: Option<Particles<'a>>,
    spheres: &'a [Sphere],
    /// Of the centres' cells.
    widths: &'a [f64],
    /// Whether a sphere may grow no further.
    ends: &'a [bool],
    densities: [f64; SPHERICAL.len()],
    samples: usize,
    /// Mass of the lightest particles in units of class 0, if there are heavier ones.
    lightest: Option<u32>,
}

/// A sphere whose mean density has fallen to a given one: radius, share of gas, dispersion, share of heavier particles.
#[derive(Clone, Copy)]
struct Crossing([f64; Self::NUMBERS]);

impl Crossing {
    const NUMBERS: usize = 4;
}

impl Look for Matter<'_> {
    /// Mass and volume of samples of gas, in shells evenly in the radius.
    type Sums = Vec<[f64; 2]>;
    const FIELDS: usize = DENSITY + 1;

    fn start(&self, _: usize) -> Self::Sums {
        vec![[0.0; 2]; SHELLS]
    }

    fn add(&self, n: usize, inside: &mut Self::Sums, cell: &LeafCell, offset: [f64; 3]) {
        let radius = self.spheres[n].radius;
        visit_samples(cell, offset, radius, self.samples, |r, volume| {
            let [mass, sum] = &mut inside[((r / radius * SHELLS as f64) as usize).min(SHELLS - 1)];
            *mass += cell.fluid[DENSITY] * volume;
            *sum += volume;
        });
    }

    /// Nothing if the sphere is to grow; else the crossings and the concentration, NaN for what is not there.
    fn finish(&self, n: usize, gas: Self::Sums) -> Vec<f64> {
        // a shell is within its outer edge
        let edge = |shell: usize| self.spheres[n].radius * (shell + 1) as f64 / SHELLS as f64;
        let gas = gas.into_iter().enumerate().filter(|(_, [_, volume])| *volume > 0.0);
        let gas: Vec<(f64, f64, f64)> = gas.map(|(shell, [mass, volume])| (edge(shell), mass, volume)).collect();
        let particles = self.particles.as_ref().map_or(Vec::new(), |particles| particles.of(n, &self.spheres[n]));
        let particle_mass = self.particles.as_ref().map_or(0.0, Particles::mass_of_class_0);
        let mut crossings = [Crossing([f64::NAN; Crossing::NUMBERS]); SPHERICAL.len()];
        let mut waiting: Vec<usize> = (0..SPHERICAL.len()).collect();
        let mut within = Within::default();
        let mut previous: Option<(f64, f64)> = None;
        let (mut next_gas, mut next_particles) = (gas.iter().peekable(), particles.iter().peekable());
        while !waiting.is_empty() {
            let r = match (next_gas.peek(), next_particles.peek()) {
                (Some(gas), particle) if particle.is_none_or(|particle| gas.0 <= particle.r) => {
                    let &(r, mass, volume) = next_gas.next().expect("it was seen");
                    within.add_gas(mass, volume);
                    r
                }
                (_, Some(_)) => {
                    let particle = next_particles.next().expect("it was seen");
                    within.add_particle(particle, self.lightest);
                    particle.r
                }
                _ => break,
            };
            let inner = match self.particles {
                Some(_) => within.particles < INNERMOST,
                None => r < self.widths[n],
            };
            if inner || r == 0.0 {
                continue;
            }
            let mean = within.mean_density(r, particle_mass);
            waiting.retain(|&definition| {
                let density = self.densities[definition];
                if mean >= density {
                    return true;
                }
                // what is nowhere denser has no such sphere
                if let Some((r0, mean0)) = previous.filter(|(_, mean0)| *mean0 > density) {
                    let radius = r0 + (mean0 - density) / (mean0 - mean) * (r - r0);
                    crossings[definition] = within.crossing(radius, particle_mass);
                }
                false
            });
            previous = Some((r, mean));
        }
        if !waiting.is_empty() && !self.ends[n] {
            return Vec::new();
        }
        let concentration = self.concentration(n, crossings, &particles).unwrap_or(f64::NAN);
        crossings.iter().flat_map(|crossing| crossing.0).chain([concentration]).collect()
    }
}

impl Matter<'_> {
    /// c200c of the particles.
    fn concentration(&self, n: usize, crossings: [Crossing; SPHERICAL.len()], particles: &[Near]) -> Option<f64> {
        let of_definition = SPHERICAL.iter().position(|definition| *definition == MassDefinition::M200c)?;
        let Crossing([radius, ..]) = crossings[of_definition];
        let particles = particles.iter().map(|particle| (particle.r, particle.mass()));
        radius.is_finite().then(|| nfw::concentration(particles, SOFTENED * self.widths[n], radius)).flatten()
    }
}

/// What lies within a radius.
#[derive(Default)]
struct Within {
    gas_mass: f64,
    /// Of the samples of gas.
    gas_volume: f64,
    particles: usize,
    /// Of the particles, in units of class 0.
    mass: f64,
    /// Of those heavier than the lightest, likewise; none where all have one mass.
    heavy: Option<f64>,
    /// Σmv and Σmv² of the particles.
    momentum: [f64; 3],
    square: f64,
}

impl Within {
    fn add_gas(&mut self, mass: f64, volume: f64) {
        self.gas_mass += mass;
        self.gas_volume += volume;
    }

    fn add_particle(&mut self, particle: &Near, lightest: Option<u32>) {
        let mass = particle.mass();
        self.particles += 1;
        self.mass += mass;
        if let Some(lightest) = lightest {
            *self.heavy.get_or_insert_default() += if mass > f64::from(lightest) { mass } else { 0.0 };
        }
        for (v, sum) in particle.velocity.into_iter().zip(&mut self.momentum) {
            *sum += mass * v;
            self.square += mass * (v * v);
        }
    }

    /// Mean density of gas: mass and volume are of the same samples, so errors from cells that the sphere cuts mostly cancel.
    fn gas_density(&self) -> f64 {
        if self.gas_volume > 0.0 { self.gas_mass / self.gas_volume } else { 0.0 }
    }

    fn particle_density(&self, r: f64, particle_mass: f64) -> f64 {
        self.mass * particle_mass / volume(r)
    }

    fn mean_density(&self, r: f64, particle_mass: f64) -> f64 {
        self.gas_density() + self.particle_density(r, particle_mass)
    }

    fn crossing(&self, radius: f64, particle_mass: f64) -> Crossing {
        let gas = self.gas_density();
        let squares = self.square - norm(self.momentum).powi(2) / self.mass;
        Crossing([
            radius,
            gas / (gas + self.particle_density(radius, particle_mass)),
            if self.particles > 0 { (squares.max(0.0) / (3.0 * self.mass)).sqrt() } else { f64::NAN },
            self.heavy.map_or(f64::NAN, |heavy| heavy / self.mass),
        ])
    }
}

/// For each sphere the first one before it that holds its centre; across the periodic box.
pub(crate) fn hosts(spheres: &[([f64; 3], f64)], box_lengths: [f64; 3]) -> Vec<Option<usize>> {
    let widest = spheres.iter().map(|sphere| sphere.1).fold(0.0, f64::max);
    let cells = box_lengths.map(|length| ((length / widest) as usize).clamp(1, 128));
    let cell = |x: [f64; 3]| -> [usize; 3] {
        std::array::from_fn(|a| ((x[a] / box_lengths[a] * cells[a] as f64) as usize).min(cells[a] - 1))
    };
    let index = |[x, y, z]: [usize; 3]| (z * cells[1] + y) * cells[0] + x;
    let mut in_cells = vec![Vec::new(); cells.iter().product()];
    spheres.iter().enumerate().for_each(|(n, sphere)| in_cells[index(cell(sphere.0))].push(n));
    let holds = |n: usize, x: [f64; 3]| {
        let (centre, radius) = spheres[n];
        let offset = |a: usize| {
            let d = x[a] - centre[a];
            d - box_lengths[a] * (d / box_lengths[a]).round()
        };
        norm([offset(0), offset(1), offset(2)]) < radius
    };
    let host = |(n, sphere): (usize, &([f64; 3], f64))| {
        let of = cell(sphere.0);
        let beside = (0..27).map(|step| {
            let step = [step % 3, step / 3 % 3, step / 9];
            index(std::array::from_fn(|a| (of[a] + cells[a] + step[a] - 1) % cells[a]))
        });
        let earlier = beside.flat_map(|cell| in_cells[cell].iter().copied()).filter(|&other| other < n);
        earlier.filter(|&other| holds(other, sphere.0)).min()
    };
    spheres.par_iter().enumerate().map(host).collect()
}

#[cfg(test)]
mod tests;
