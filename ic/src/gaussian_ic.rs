//! An initial condition generated from perturbation theory.

use crate::error::IcError;
use crate::gaussian_field::noise_file::NoiseFile;
use crate::gaussian_field::{Flow, HigherOrders, LPT_ORDERS, LinearModes, WhiteNoise};
use crate::identities::Identities;
use crate::linear_power::species_transfer::{Species, SpeciesRatios, SpeciesTransfer};
use crate::linear_power::with_neutrinos::check_tables;
use crate::linear_power::{LinearPower, PowerSource};
use crate::particle_set::ParticleSet;
use crate::silent;
use crate::slab;
use crate::temperature::{gas_temperature_k, specific_internal_energy};
use crate::uniform_mesh::{DarkMatter, Lattice, NestedGas, UniformMesh};
use crate::zoom::Zoom;
use comove_sim::parallel::Communicator;
use comove_sim::parallel::collective_result;
use comove_sim::{Cosmology, HostParticles};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// A Gaussian realisation of the linear density field at z with its growing-mode velocity and gas temperature.
///
/// One fluid stands for all matter, or gas and dark matter have their shares Ω_b and Ω_m − Ω_b. They move as one, or differ
/// in first order by their [`SpeciesRatios`], with the mean of all matter as before. Beside massive neutrinos both are those of
/// [`LinearPower::of_box`]. Of dark matter there is a particle for each cell,
/// displaced from its corner in [`GaussianIc::lpt_order`] of Lagrangian perturbation theory: there clouds in cells respond to a
/// small displacement in proportion. The gas has the velocity of that order. The linear spectrum today is scaled back with the
/// growth factor of the run's own background, so that the run grows it to the σ8 asked for.
///
/// ```
/// use comove_ic::{GaussianIc, Identities, PowerSource, silent};
/// use comove_sim::Cosmology;
/// use comove_sim::parallel::Communicator;
///
/// let ic = GaussianIc {
///     cosmology: Cosmology::flat(0.6774, 0.3089, 0.0486, 0.816, 0.967),
///     box_mpc_h: 25.0,
///     cells: [16; 3],
///     z: 49.0,
///     seed: 42,
///     noise: None,
///     power: PowerSource::EisensteinHu,
///     fixed_amplitude: false,
///     inverted: false,
///     f_nl: 0.0,
///     lpt_order: 2,
///     gas: true,
///     dark_matter: false,
///     species_transfer: None,
///     zoom: None,
///     follow: Identities::default(),
///     temperature_k: None,
///     mean_molecular_weight: 1.22,
///     gamma: 5.0 / 3.0,
/// };
/// let mesh = ic.generate(&Communicator::alone(), &silent)?;
/// assert_eq!(mesh.density.len(), 16 * 16 * 16);
/// # Ok::<(), comove_ic::IcError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GaussianIc {
    /// The background, σ8 and n_s.
    pub cosmology: Cosmology,
    /// Length of the box along x in comoving Mpc/h; cells are cubic.
    pub box_mpc_h: f64,
    /// Cells of the mesh along x, y, z; each even.
    pub cells: [usize; 3],
    /// Redshift of the initial condition.
    pub z: f64,
    /// Chooses the realisation, independently of cells and threads; without effect beside `noise`.
    pub seed: u64,
    /// White noise of a file in place of the seed's, on a mesh of `cells`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise: Option<NoiseFile>,
    /// Shape of the linear spectrum.
    pub power: PowerSource,
    /// Give every mode exactly its mean amplitude and draw only the phase.
    #[serde(default)]
    pub fixed_amplitude: bool,
    /// Give every mode of the Gaussian field the opposite sign: the other one of a pair (Angulo & Pontzen 2016).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub inverted: bool,
    /// f_NL of primordial non-Gaussianity of the local type: the potential is Φ + f_NL (Φ² − ⟨Φ²⟩).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub f_nl: f64,
    /// Order of Lagrangian perturbation theory for particles, and for the gas's velocity beside them: 1, 2 or 3. Gas alone has
    /// linear velocities.
    #[serde(default = "default_order", skip_serializing_if = "is_default_order")]
    pub lpt_order: u8,
    /// Whether there is gas; dark matter alone has all of omega_m.
    #[serde(default = "yes", skip_serializing_if = "Clone::clone")]
    pub gas: bool,
    /// Whether there is dark matter.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dark_matter: bool,
    /// Transfer functions of gas and dark matter at z; by default both have that of all matter. Beside massive neutrinos they are
    /// needed, also of one species, and set its spectrum and velocities by scale.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub species_transfer: Option<SpeciesTransfer>,
    /// A region of finer particles, and of gas at their resolution; `cells` are then those of the coarsest lattice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zoom: Option<Zoom>,
    /// Particles that refinement follows: those that begin in cells of the lattice of `cells` with these numbers, x fastest, which are
    /// the identities of a run without zoom. By default all of the lightest.
    #[serde(default, skip_serializing_if = "Identities::is_empty")]
    pub follow: Identities,
    /// Gas temperature in K; by default that of [`gas_temperature_k`].
    pub temperature_k: Option<f64>,
    /// Mean molecular weight μ in hydrogen masses.
    pub mean_molecular_weight: f64,
    /// Ratio of specific heats.
    pub gamma: f64,
}

/// As unless stated otherwise.
fn yes() -> bool {
    true
}

fn is_zero(number: &f64) -> bool {
    *number == 0.0
}

/// Largest |f_NL|: Φ is some 10⁻⁵, and beyond this its square is no small correction.
const MOST_F_NL: f64 = 1e4;
/// With nested lattices, whose common modes differ by some 10⁻⁵ of this.
const MOST_F_NL_OF_ZOOMS: f64 = 1e3;

/// [`GaussianIc::lpt_order`] unless stated otherwise.
pub const DEFAULT_LPT_ORDER: u8 = 2;

fn default_order() -> u8 {
    DEFAULT_LPT_ORDER
}

fn is_default_order(order: &u8) -> bool {
    *order == DEFAULT_LPT_ORDER
}

impl GaussianIc {
    /// Checks the numbers, which no table is needed for.
    ///
    /// # Errors
    /// [`IcError::Parameter`] for numbers out of range.
    pub fn check(&self) -> Result<(), IcError> {
        check_gas(self.box_mpc_h, self.z, self.temperature_k, self.mean_molecular_weight, self.gamma)?;
        if self.cells.iter().any(|n| *n == 0 || n % 2 == 1) {
            let reason = "every axis needs an even number of cells".into();
            return Err(IcError::Parameter { name: "cells", value: format!("{:?}", self.cells), reason });
        }
        let refuse = |name, value: String, reason: &str| IcError::Parameter { name, value, reason: reason.into() };
        if !(self.gas || self.dark_matter) {
            return Err(refuse("gas", "false".into(), "without gas needs dark matter; set dark_matter: true"));
        }
        if self.gas && self.dark_matter {
            let omega_b = self.cosmology.omega_b;
            if !(omega_b > 0.0 && omega_b < self.cosmology.omega_cb()) {
                let below = self.cosmology.omega_cb_name();
                let reason =
                    format!("must lie above 0 and below {below} in runs with dark matter, as the share of the gas");
                return Err(refuse("omega_b", omega_b.to_string(), &reason));
            }
        }
        check_tables(&self.power, self.species_transfer.as_ref(), &self.cosmology)?;
        let is_needless = !(self.gas && self.dark_matter || self.cosmology.has_neutrinos());
        if let (Some(source), true) = (&self.species_transfer, is_needless) {
            return Err(refuse("species_transfer", source.file().display().to_string(), NEEDS_DARK_MATTER));
        }
        if !LPT_ORDERS.contains(&self.lpt_order) {
            return Err(refuse("lpt_order", self.lpt_order.to_string(), "must be 1, 2 or 3"));
        }
        if !(-MOST_F_NL..=MOST_F_NL).contains(&self.f_nl) {
            return Err(refuse("f_nl", self.f_nl.to_string(), "must be a number between -10000 and 10000"));
        }
        if self.cosmology.has_neutrinos() && self.f_nl != 0.0 {
            return Err(refuse("f_nl", self.f_nl.to_string(), NEEDS_NO_NEUTRINOS));
        }
        if let Some(zoom) = &self.zoom {
            if !self.dark_matter {
                return Err(refuse("zoom", format!("{:?}", zoom.center), NEEDS_PARTICLES));
            }
            if self.f_nl.abs() > MOST_F_NL_OF_ZOOMS {
                let reason =
                    "must be a number between -1000 and 1000 with zoom, whose lattices each square their own modes";
                return Err(refuse("f_nl", self.f_nl.to_string(), reason));
            }
            if let Some(noise) = &self.noise {
                return Err(refuse("noise", noise.path.display().to_string(), NEEDS_NO_ZOOM));
            }
            zoom.check(self.cells, self.box_mpc_h)?;
        }
        self.check_follow()
    }

    fn check_follow(&self) -> Result<(), IcError> {
        let Some(last) = self.follow.last() else { return Ok(()) };
        let refuse =
            |id: u64, reason: String| Err(IcError::Parameter { name: "follow", value: id.to_string(), reason });
        if !self.dark_matter {
            return refuse(last, "needs particles; set dark_matter: true, or remove follow".into());
        }
        let cells = self.cells;
        if u128::from(last) >= cells.iter().map(|&n| n as u128).product() {
            let text = "has this identity: give those of a run of as many cells without zoom";
            return refuse(last, format!("no particle of a lattice of {cells:?} {text}"));
        }
        if self.outside_zoom() == self.follow.len() {
            let reason = "no given place has particles of the finest lattice: enlarge extent of zoom, or give others";
            return refuse(last, reason.into());
        }
        Ok(())
    }

    /// How many of the places of [`GaussianIc::follow`] have no particle of the finest lattice.
    pub fn outside_zoom(&self) -> u64 {
        let Some(zoom) = &self.zoom else { return 0 };
        let region = zoom.places_of_finest(self.cells, self.box_mpc_h);
        let is_inside = |number: u64| region.iter().zip(cell_of(number, self.cells)).all(|(span, i)| span.holds(i));
        self.follow.iter().filter(|&number| !is_inside(number)).count() as u64
    }

    /// Generates the mesh: ρ̃ = 1 + δ, momentum ρ̃ṽ, internal energy of one temperature everywhere. Collective; of ranks
    /// that share the work each gets some planes.
    ///
    /// # Errors
    /// [`IcError::Sim`] and [`IcError::Parameter`] for numbers out of range; the errors of [`LinearPower::new`] and
    /// [`SpeciesRatios::new`]; [`IcError::TableRange`] and [`IcError::Content`] where a table does not cover the mesh; [`IcError::Cell`] where δ ≤ −1.
    pub fn generate(&self, communicator: &Communicator, progress: &dyn Fn(&str, f64)) -> Result<UniformMesh, IcError> {
        self.check()?;
        progress("linear power", 0.0);
        let power = collective_result(communicator, self.linear_power())?;
        let (from, to) = power.range();
        let finest = self.zoom.map_or(self.cells, |zoom| zoom.finest(self.cells));
        let (need_from, need_to) = LinearModes::range(finest, self.box_mpc_h);
        if need_from < from || need_to > to {
            return Err(IcError::TableRange { from, to, need_from, need_to });
        }
        let ratios = self.species_transfer.as_ref().map(|source| {
            let ratios = SpeciesRatios::new(source, &self.cosmology, self.z)?;
            let (from, to) = ratios.range();
            if need_from < from || need_to > to {
                let reason = format!(
                    "k from {from:.4e} to {to:.4e} h/Mpc, the mesh has modes from {need_from:.4e} to {need_to:.4e}: use a longer table, \
                     another box or other cells"
                );
                return Err(IcError::Content { path: source.file().into(), reason });
            }
            Ok(ratios)
        });
        let ratios = collective_result(communicator, ratios.transpose())?;
        let modes_of = |cells| self.modes(communicator, cells, &power);
        let mut mesh = match &self.zoom {
            Some(zoom) => self.nested(communicator, zoom, ratios.as_ref(), modes_of, progress)?,
            None => {
                progress("drawing modes", 0.1);
                self.uniform(communicator, ratios.as_ref(), modes_of(self.cells)?, progress)
            }
        };
        if !self.follow.is_empty() {
            let levels = self.zoom.map_or(0, |zoom| zoom.levels);
            let [nx, ny, _] = self.cells;
            mesh.follow(communicator, self.box_mpc_h, |number| {
                let [i, j, k] = cell_of(number, finest).map(|i| i >> levels);
                self.follow.contains(((k * ny + j) * nx + i) as u64)
            });
        }
        mesh.check(communicator)?;
        progress("initial condition", 1.0);
        Ok(mesh)
    }

    /// A mesh of gas, a particle for each cell, or both. Collective.
    fn uniform(
        &self,
        communicator: &Communicator,
        ratios: Option<&SpeciesRatios>,
        modes: LinearModes<'_>,
        progress: &dyn Fn(&str, f64),
    ) -> UniformMesh {
        let planes = slab::planes(self.cells, communicator.rank(), communicator.size());
        let mut mesh = UniformMesh::without_values(self.cells, planes);
        let flows = self.dark_matter.then(|| {
            progress(["first order", "second order", "third order"][usize::from(self.lpt_order) - 1], 0.4);
            self.flows(&modes, ratios)
        });
        if self.gas {
            self.add_gas(&mut mesh, &modes, ratios, flows.as_ref().map(Flows::of_gas), &|values| values, progress);
        }
        mesh.dark_matter = flows.as_ref().map(|flows| {
            progress("particles", 0.75);
            DarkMatter::Lattice(Lattice {
                displacement: [0, 1, 2].map(|axis| flows.displacement.velocity_at_corners(axis, 1.0)),
                velocity: [0, 1, 2].map(|axis| flows.velocity.velocity_at_corners(axis, self.rate())),
            })
        });
        progress("temperature", 0.9);
        drop((modes, flows));
        self.heat(&mut mesh);
        mesh
    }

    /// ṽ over the displacement of the growing mode: dδ/dt̃ = f dlna/dt̃ δ, dlna/dt̃ = a²E.
    fn rate(&self) -> f64 {
        let a = 1.0 / (1.0 + self.z);
        self.cosmology.hubble_flow(a) * self.cosmology.growth(a).1
    }

    /// A species beside the other; all matter where there is one.
    fn one_of(&self, species: Species) -> Species {
        if self.gas && self.dark_matter { species } else { Species::Both }
    }

    /// Displacement and velocities of all orders.
    fn flows<'c>(&self, modes: &LinearModes<'c>, ratios: Option<&SpeciesRatios>) -> Flows<'c> {
        let orders = HigherOrders::new(modes, &self.cosmology, 1.0 / (1.0 + self.z), self.lpt_order);
        // of first order, where a species has its own
        let contrast = ratios.map(|ratios| modes.scaled(|k| ratios.density(self.one_of(Species::DarkMatter), k)));
        let moving = |species| ratios.map(|ratios| modes.scaled(|k| ratios.velocity(self.one_of(species), k)));
        Flows {
            displacement: orders.displacement(contrast.as_ref().unwrap_or(modes)),
            velocity: orders.velocity(moving(Species::DarkMatter).as_ref().unwrap_or(modes)),
            gas_velocity: moving(Species::Gas).filter(|_| self.gas).map(|gas| orders.velocity(&gas)),
        }
    }

    /// Density and momentum of gas on a mesh of these modes, or on a part of it.
    ///
    /// * `flow`: velocity beside particles; gas alone has that of the modes
    /// * `kept`: values of the part, from those of all own planes
    fn add_gas(
        &self,
        mesh: &mut UniformMesh,
        modes: &LinearModes<'_>,
        ratios: Option<&SpeciesRatios>,
        flow: Option<&Flow<'_>>,
        kept: &dyn Fn(Vec<f64>) -> Vec<f64>,
        progress: &dyn Fn(&str, f64),
    ) {
        progress("density", 0.45);
        let species = self.one_of(Species::Gas);
        let contrast = ratios.map(|ratios| modes.scaled(|k| ratios.density(species, k)));
        let mut density = kept(contrast.as_ref().unwrap_or(modes).density_contrast());
        let share = if self.dark_matter { self.cosmology.baryon_fraction() } else { 1.0 };
        density.par_iter_mut().for_each(|d| *d = share * (1.0 + *d));
        let (rate, is_alone) = (self.rate(), flow.is_none());
        let moving = ratios.filter(|_| is_alone).map(|ratios| modes.scaled(|k| ratios.velocity(species, k)));
        let alone = moving.as_ref().unwrap_or(modes);
        mesh.momentum = std::array::from_fn(|axis| {
            progress(["velocity x", "velocity y", "velocity z"][axis], 0.5 + 0.08 * axis as f64);
            let velocity = flow.map_or_else(|| alone.velocity(axis, rate), |flow| flow.velocity(axis, rate));
            let mut momentum = kept(velocity);
            momentum.par_iter_mut().zip(&density).for_each(|(v, d)| *v *= d);
            momentum
        });
        mesh.density = density;
    }

    /// Internal energy of one temperature everywhere.
    fn heat(&self, mesh: &mut UniformMesh) {
        let c = &self.cosmology;
        let temperature_k = self.temperature_k.unwrap_or_else(|| gas_temperature_k(c, self.z));
        let a = 1.0 / (1.0 + self.z);
        let specific = specific_internal_energy(c, a, temperature_k, self.mean_molecular_weight, self.gamma);
        mesh.internal_energy = mesh.density.par_iter().map(|d| specific * d).collect();
    }

    /// The linear spectrum, which the growth factor scales back to `z` ([`LinearPower::of_box`]).
    ///
    /// # Errors
    /// Those of [`LinearPower::of_box`].
    pub fn linear_power(&self) -> Result<LinearPower, IcError> {
        LinearPower::of_box(&self.power, self.species_transfer.as_ref(), &self.cosmology, self.z)
    }

    /// Modes of the density contrast of all matter at z on a mesh of `cells`. Collective.
    fn modes<'c>(
        &self,
        communicator: &'c Communicator,
        cells: [usize; 3],
        power: &LinearPower,
    ) -> Result<LinearModes<'c>, IcError> {
        let a = 1.0 / (1.0 + self.z);
        let &Self { seed, fixed_amplitude, inverted, .. } = self;
        let noise = WhiteNoise { seed, fixed_amplitude, inverted };
        let growth = self.cosmology.growth_factor(a);
        let gaussian = match &self.noise {
            None => LinearModes::new(communicator, cells, self.box_mpc_h, &noise, power, growth),
            Some(file) => {
                let planes = slab::planes(cells, communicator.rank(), communicator.size());
                let numbers = file.read(communicator, cells, planes)?;
                LinearModes::of_noise(communicator, cells, self.box_mpc_h, &numbers, &noise, power, growth)
            }
        };
        Ok(match self.f_nl {
            0.0 => gaussian,
            f_nl => gaussian.non_gaussian(f_nl, power.density_per_potential(&self.cosmology, a)),
        })
    }

    /// Particles of nested lattices, and gas on meshes of their resolution: collective. The modes of a lattice are those of a mesh of
    /// its resolution, and include the modes of the coarser lattices.
    fn nested<'c>(
        &self,
        communicator: &Communicator,
        zoom: &Zoom,
        ratios: Option<&SpeciesRatios>,
        modes_of: impl Fn([usize; 3]) -> Result<LinearModes<'c>, IcError>,
        progress: &dyn Fn(&str, f64),
    ) -> Result<UniformMesh, IcError> {
        let rate = self.rate();
        let planes = slab::planes(self.cells, communicator.rank(), communicator.size());
        let mut mesh = UniformMesh::without_values(self.cells, planes);
        let regions = zoom.gas_regions(self.cells, self.box_mpc_h);
        let lengths = self.cells.map(|n| self.box_mpc_h * n as f64 / self.cells[0] as f64);
        let (mut set, mut counts) = (ParticleSet::default(), Vec::new());
        for (n, nest) in zoom.nests(self.cells, self.box_mpc_h).into_iter().enumerate() {
            let [nx, ny, _] = nest.cells;
            // each lattice takes eight times as long as the one before
            progress("particles", 0.9 * 0.125f64.powi(nest.class as i32 + 1));
            let planes = slab::planes(nest.cells, communicator.rank(), communicator.size());
            let first = planes.start;
            let at = |n: usize| [n % nx, n / nx % ny, first + n / (nx * ny)];
            let own: Vec<usize> = (0..nx * ny * planes.len()).into_par_iter().filter(|&n| nest.holds(at(n))).collect();
            counts.push(own.len() as u64);
            set.id.extend(own.iter().map(|&n| nest.id(at(n))));
            let modes = modes_of(nest.cells)?;
            let flows = self.flows(&modes, ratios);
            if self.gas {
                let flow = Some(flows.of_gas());
                match n.checked_sub(1) {
                    None => self.add_gas(&mut mesh, &modes, ratios, flow, &|values| values, &silent),
                    Some(n) => {
                        let mut part = NestedGas::without_values(regions[n], &planes);
                        let place = part.clone();
                        let kept = |values: Vec<f64>| place.cut(&values, &planes);
                        self.add_gas(&mut part.gas, &modes, ratios, flow, &kept, &silent);
                        mesh.nests.push(part);
                    }
                }
            }
            drop(modes);
            for axis in 0..3 {
                let (length, width) = (lengths[axis], lengths[axis] / nest.cells[axis] as f64);
                // the lattices have their centre of mass in common, and the coarsest one begins at the corner of the box
                let start = 0.5 * (width - lengths[axis] / self.cells[axis] as f64);
                let displacement = flows.displacement.velocity_before_centres(axis, 1.0, self.cells[0]);
                let position = |&n: &usize| {
                    let x = at(n)[axis] as f64 * width + start + displacement[n];
                    HostParticles::fraction(x.rem_euclid(length), length).expect("in the box")
                };
                set.position[axis].par_extend(own.par_iter().map(position));
                drop(displacement);
                let velocity = flows.velocity.velocity_before_centres(axis, rate, self.cells[0]);
                set.velocity[axis].par_extend(own.par_iter().map(|&n| velocity[n] as f32));
            }
        }
        mesh.dark_matter = Some(DarkMatter::Set(set.in_rows(communicator, &counts)));
        self.heat(&mut mesh);
        mesh.nests.iter_mut().for_each(|part| self.heat(&mut part.gas));
        Ok(mesh)
    }
}

/// The cell with this number on a mesh, x fastest.
fn cell_of(number: u64, [nx, ny, _]: [usize; 3]) -> [usize; 3] {
    let number = number as usize;
    [number % nx, number / nx % ny, number / (nx * ny)]
}

/// Motion in perturbation theory.
struct Flows<'c> {
    /// Of dark matter.
    displacement: Flow<'c>,
    /// Of dark matter, over [`GaussianIc::rate`].
    velocity: Flow<'c>,
    /// Velocity of gas over [`GaussianIc::rate`], where it differs from that of dark matter.
    gas_velocity: Option<Flow<'c>>,
}

impl<'c> Flows<'c> {
    fn of_gas(&self) -> &Flow<'c> {
        self.gas_velocity.as_ref().unwrap_or(&self.velocity)
    }
}

/// Refusal of [`GaussianIc::zoom`] without particles.
pub const NEEDS_PARTICLES: &str = "needs dark matter, whose particles have several masses; set dark_matter: true";

/// Refusal of [`GaussianIc::noise`] beside a zoom.
pub const NEEDS_NO_ZOOM: &str =
    "a zoom needs noise on finer meshes, which a file lacks; set seed instead, or remove zoom";

/// What is wrong with [`GaussianIc::species_transfer`] of one fluid.
pub const NEEDS_DARK_MATTER: &str =
    "needs gas and dark matter; one species alone has the transfer function of all matter, so remove species_transfer";

/// Refusal of [`GaussianIc::f_nl`] beside massive neutrinos.
const NEEDS_NO_NEUTRINOS: &str = "must be 0 with m_nu_ev: its potential has no growth by scale; set one of them to 0";

/// A remark on gas without dark matter in a cosmology that has dark matter, with what to set.
pub fn all_baryons(cosmology: &Cosmology, remedy: &str) -> Option<String> {
    let (name, omega_cb, omega_b) = (cosmology.omega_cb_name(), cosmology.omega_cb(), cosmology.omega_b);
    (omega_b < omega_cb).then(|| {
        format!(
            "the gas has all of {name} = {omega_cb}, of which omega_b = {omega_b} is baryons: {remedy} (a warning in this \
             version, an error in the next)"
        )
    })
}

/// Checks the numbers that every cosmological initial condition has.
pub(crate) fn check_gas(
    box_mpc_h: f64,
    z: f64,
    temperature_k: Option<f64>,
    mean_molecular_weight: f64,
    gamma: f64,
) -> Result<(), IcError> {
    let check = |name, value: f64, good: bool, reason: &str| {
        if good && value.is_finite() {
            Ok(())
        } else {
            Err(IcError::Parameter { name, value: value.to_string(), reason: reason.into() })
        }
    };
    check("box_mpc_h", box_mpc_h, box_mpc_h > 0.0, "the box must have a positive length in Mpc/h")?;
    check("z", z, z >= 0.0, "the initial redshift must not be negative")?;
    let temperature = temperature_k.unwrap_or(1.0);
    check("temperature_k", temperature, temperature > 0.0, "must be positive, in K")?;
    let weight = mean_molecular_weight;
    check("mean_molecular_weight", weight, weight > 0.4 && weight < 10.0, "must lie between 0.4 and 10")?;
    let reason = "must lie in (1, 3]; write 5.0/3.0, because 5/3 is the whole number 1";
    check("gamma", gamma, gamma > 1.0 && gamma <= 3.0, reason)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gaussian_field::noise_file;
    use crate::silent;
    use comove_sim::Precision;
    use comove_sim::kernels::point::particle::{class_of, is_followed, number_of, unmarked};

    fn ic() -> GaussianIc {
        GaussianIc {
            cosmology: Cosmology::flat(0.7, 0.3, 0.045, 0.9, 1.0),
            box_mpc_h: 25.0,
            cells: [32; 3],
            z: 49.0,
            seed: 11,
            noise: None,
            power: PowerSource::EisensteinHu,
            fixed_amplitude: false,
            inverted: false,
            f_nl: 0.0,
            lpt_order: 2,
            gas: true,
            dark_matter: false,
            species_transfer: None,
            zoom: None,
            follow: Identities::default(),
            temperature_k: None,
            mean_molecular_weight: 1.22,
            gamma: 5.0 / 3.0,
        }
    }

    /// Mass 1, no net momentum (δ* k δ is odd in k), amplitude falling with the growth factor, one temperature.
    #[test]
    fn means_and_growth() {
        let mesh = ic().generate(&Communicator::alone(), &silent).unwrap();
        let n = mesh.cell_count() as f64;
        let mean = |values: &[f64]| values.iter().sum::<f64>() / n;
        let variance = |mesh: &UniformMesh| mesh.density.iter().map(|d| (d - 1.0).powi(2)).sum::<f64>() / n;
        assert!((mean(&mesh.density) - 1.0).abs() < 1e-14);
        let scale = mesh.momentum[0].iter().map(|p| p.abs()).sum::<f64>() / n;
        for axis in 0..3 {
            assert!(mean(&mesh.momentum[axis]).abs() < 1e-14 * scale.max(1.0));
        }
        let later = GaussianIc { z: 24.0, ..ic() }.generate(&Communicator::alone(), &silent).unwrap();
        let growth = |a| ic().cosmology.growth(a).0;
        let expected = (growth(0.04) / growth(0.02)).powi(2);
        assert!((variance(&later) / variance(&mesh) / expected - 1.0).abs() < 1e-12);
        let specific: Vec<f64> = mesh.internal_energy.iter().zip(&mesh.density).map(|(e, d)| e / d).collect();
        assert!(specific.iter().all(|e| (e / specific[0] - 1.0).abs() < 1e-14));
    }

    /// The velocity against what it must do: δ a little earlier and later gives −∂δ/∂t̃ by difference in the run's own
    /// time variable, ∇·ṽ comes from the long waves along x, planes at a time.
    #[test]
    fn the_velocity_makes_the_density_grow() {
        let at = |a: f64| GaussianIc { z: 1.0 / a - 1.0, ..ic() }.generate(&Communicator::alone(), &silent).unwrap();
        let (a, step) = (0.02, 1e-3);
        let (earlier, now, later) = (at(a * (1.0 - step)), at(a), at(a * (1.0 + step)));
        let time = ic().cosmology.code_time(a * (1.0 - step), a * (1.0 + step));
        let k = std::f64::consts::TAU / ic().box_mpc_h;
        // cosine and sine amplitude of the wave n = (1, 0, 0)
        let wave = |values: &dyn Fn(usize) -> f64| {
            let mut sums = [0.0; 2];
            for index in 0..now.cell_count() {
                let phase = std::f64::consts::TAU * (now.cell(index)[0] as f64 + 0.5) / 32.0;
                sums[0] += values(index) * phase.cos();
                sums[1] += values(index) * phase.sin();
            }
            sums
        };
        let growth = wave(&|i| (later.density[i] - earlier.density[i]) / time);
        let [cosine, sine] = wave(&|i| now.momentum[0][i] / now.density[i]);
        let divergence = [k * sine, -k * cosine];
        for (rate, divergence) in growth.iter().zip(divergence) {
            // central difference: error of the order of step²
            assert!((rate + divergence).abs() < 1e-5 * growth[0].hypot(growth[1]), "{growth:?} {divergence}");
        }
    }

    /// A mode whose k is that of a row of CAMB's table: contrasts and velocities of gas and dark matter have the ratios of the
    /// row, their means are those without the option. Second order is common and, with so small a σ8, nothing.
    #[test]
    fn species_follow_their_transfer_functions() {
        let data = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("data");
        let table = std::fs::read_to_string(data.join("camb_transfer_z99.dat")).unwrap();
        let numbers = |line: &str| line.split_whitespace().map(|word| word.parse().unwrap()).collect::<Vec<f64>>();
        let rows: Vec<Vec<f64>> = table.lines().filter(|line| !line.starts_with('#')).map(numbers).collect();
        for k in [0.02, 0.1, 0.5] {
            let row = rows.iter().find(|row| row[0] > k).unwrap();
            let all = GaussianIc {
                cosmology: Cosmology { sigma8: 1e-4, ..ic().cosmology },
                box_mpc_h: std::f64::consts::TAU / row[0],
                cells: [16; 3],
                z: 99.0,
                dark_matter: true,
                ..ic()
            };
            let source = Some(SpeciesTransfer::Camb(data.join("camb_transfer_z99.dat")));
            let make = |ic: &GaussianIc| ic.generate(&Communicator::alone(), &silent).unwrap();
            let (each, all) = (make(&GaussianIc { species_transfer: source, ..all.clone() }), make(&all));
            // of n = (1, 0, 0): the modes of a field, but for a phase that is common to those at one place
            let mode = |mesh: &UniformMesh, values: &dyn Fn(usize) -> f64| {
                (0..mesh.cell_count()).fold([0.0; 2], |[re, im], index| {
                    let (sin, cos) = (std::f64::consts::TAU * mesh.cell(index)[0] as f64 / 16.0).sin_cos();
                    [re + values(index) * cos, im - values(index) * sin]
                })
            };
            let over = |[a, b]: [f64; 2], [c, d]: [f64; 2]| {
                let ratio = [a * c + b * d, b * c - a * d].map(|x| x / (c * c + d * d));
                assert!(ratio[1].abs() < 1e-5, "in phase: {ratio:?}");
                ratio[0]
            };
            let gas = |mesh: &UniformMesh| mode(mesh, &|i| mesh.density[i]);
            let wind = |mesh: &UniformMesh| mode(mesh, &|i| mesh.momentum[0][i] / mesh.density[i]);
            let dark = |mesh: &UniformMesh| mode(mesh, &|i| mesh.lattice().unwrap().displacement[0][i]);
            let stream = |mesh: &UniformMesh| mode(mesh, &|i| mesh.lattice().unwrap().velocity[0][i]);
            let [gas, wind, dark, stream] = [&gas as &dyn Fn(&UniformMesh) -> [f64; 2], &wind, &dark, &stream]
                .map(|field| over(field(&each), field(&all)));
            println!("k = {}: {gas:.5} {dark:.5}, {wind:.5} {stream:.5}", row[0]);
            assert!((gas / dark / (row[2] / row[1]) - 1.0).abs() < 1e-5, "k = {k}: {gas} {dark}");
            assert!((wind / stream / (row[11] / row[10]) - 1.0).abs() < 1e-5, "k = {k}: {wind} {stream}");
            assert!((0.15 * gas + 0.85 * dark - 1.0).abs() < 1e-5, "k = {k}: {gas} {dark}");
            assert!((0.15 * wind + 0.85 * stream - 1.0).abs() < 1e-5, "k = {k}: {wind} {stream}");
        }
    }

    #[test]
    fn nonlinear_fields_and_bad_numbers_are_refused() {
        let message = |ic: GaussianIc| ic.generate(&Communicator::alone(), &silent).unwrap_err().to_string();
        assert!(message(GaussianIc { z: 0.0, ..ic() }).contains("density ="));
        assert!(message(GaussianIc { cells: [32, 31, 32], ..ic() }).contains("[32, 31, 32]"));
        assert!(message(GaussianIc { gamma: 1.0, ..ic() }).contains("5.0/3.0"));
        assert!(message(GaussianIc { temperature_k: Some(-3.0), ..ic() }).contains("temperature_k = -3"));
        let table = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("data/camb_transfer_z99.dat");
        let species_transfer = Some(SpeciesTransfer::Camb(table));
        let of_one_fluid = message(GaussianIc { species_transfer: species_transfer.clone(), ..ic() });
        assert!(of_one_fluid.contains("needs gas and dark matter"), "{of_one_fluid}");
        let short = GaussianIc { species_transfer, dark_matter: true, box_mpc_h: 1.0, z: 99.0, ..ic() };
        assert!(message(short).contains("camb_transfer_z99.dat: k from"));
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("data/camb_matterpower_z0.dat");
        let power = PowerSource::CambPower(path);
        let error = message(GaussianIc { power: power.clone(), box_mpc_h: 0.1, ..ic() });
        assert!(error.contains("tabulated"), "{error}");
        assert!(GaussianIc { power, ..ic() }.generate(&Communicator::alone(), &silent).is_ok());
    }

    /// Noise of a seed that goes through a file makes the universe of the seed, to the accuracy of its numbers.
    #[test]
    fn noise_of_a_file_is_that_of_its_seed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("noise.bin");
        let alone = Communicator::alone();
        let of = |ic: &GaussianIc| ic.generate(&alone, &silent).unwrap();
        let seeded = GaussianIc { cells: [16, 8, 24], dark_matter: true, ..ic() };
        let noise = WhiteNoise { seed: seeded.seed, fixed_amplitude: false, inverted: false };
        let numbers = LinearModes::noise_in_cells(&alone, seeded.cells, &noise);
        let expected = of(&seeded);
        for (precision, accuracy) in [(Precision::Double, 1e-13), (Precision::Single, 1e-6)] {
            noise_file::write(&path, seeded.cells, &numbers, seeded.seed, precision).unwrap();
            let read =
                GaussianIc { seed: 0, noise: Some(NoiseFile { path: path.clone(), sign: None }), ..seeded.clone() };
            let found = of(&read);
            let fields = |mesh: &UniformMesh| {
                let lattice = mesh.lattice().unwrap();
                [mesh.density.clone(), lattice.displacement[0].clone(), lattice.velocity[2].clone()]
            };
            for (found, expected) in fields(&found).iter().zip(fields(&expected)) {
                let scale = expected.iter().fold(0.0, |most: f64, value| most.max(value.abs()));
                let off = found.iter().zip(&expected).fold(0.0, |most: f64, (a, b)| most.max((a - b).abs()));
                println!("{precision:?}: {:e}", off / scale);
                assert!(off < accuracy * scale && (off > 0.0 || precision == Precision::Double), "{off} of {scale}");
            }
        }
        let zoomed = GaussianIc { noise: Some(NoiseFile { path, sign: None }), ..zoomed(1) };
        assert!(zoomed.check().unwrap_err().to_string().contains("noise.bin: a zoom needs noise on finer meshes"));
        let fourth = GaussianIc { lpt_order: 4, ..ic() }.check().unwrap_err().to_string();
        assert_eq!(fourth, "lpt_order = 4: must be 1, 2 or 3");
    }

    /// Orders of perturbation theory differ by less and less, also in a zoom, whose coarse particles are those of the whole box;
    /// the gas moves as the dark matter does.
    #[test]
    fn orders_converge() {
        let alone = Communicator::alone();
        let of = |lpt_order: u8| {
            let ic = GaussianIc { cells: [16; 3], z: 19.0, dark_matter: true, lpt_order, ..ic() };
            ic.generate(&alone, &silent).unwrap()
        };
        let meshes = [1, 2, 3].map(of);
        let rms = |field: &dyn Fn(&UniformMesh, usize) -> f64| {
            let of = |n: usize| {
                let difference = |i| field(&meshes[n], i) - if n == 0 { 0.0 } else { field(&meshes[n - 1], i) };
                (0..4096).map(|i| difference(i).powi(2)).sum::<f64>().sqrt()
            };
            [of(0), of(1), of(2)]
        };
        let moved = rms(&|mesh, i| mesh.lattice().unwrap().displacement[1][i]);
        let dark = rms(&|mesh, i| mesh.lattice().unwrap().velocity[1][i]);
        let gas = rms(&|mesh, i| mesh.momentum[1][i] / mesh.density[i]);
        println!("{moved:?} {dark:?} {gas:?}");
        for [first, second, third] in [moved, dark, gas] {
            assert!(
                second < 0.3 * first && third < 0.3 * second && third > 1e-3 * second,
                "{moved:?} {dark:?} {gas:?}"
            );
        }
        // the same modes, sampled at corners and at centres
        assert!(dark.iter().zip(gas).all(|(dark, gas)| (dark / gas - 1.0).abs() < 1e-6), "{dark:?} {gas:?}");
        let ic = GaussianIc { lpt_order: 3, ..zoomed(1) };
        let mut whole = GaussianIc { zoom: None, ..ic.clone() }.generate(&alone, &silent).unwrap();
        let whole = whole.take_particles([25.0; 3], 1.0).unwrap();
        let Some(DarkMatter::Set(set)) = ic.generate(&alone, &silent).unwrap().dark_matter else { panic!("a set") };
        let n = (0..set.len()).find(|&n| class_of(set.id[n]) == 1).unwrap();
        let other = number_of(set.id[n]) as usize;
        assert!((0..3).all(|axis| set.position[axis][n] == whole.position[axis][other]));
    }

    fn zoomed(levels: u8) -> GaussianIc {
        let zoom = Zoom { center: [24.0, 5.0, 12.0], extent: [6.0, 4.0, 3.0], levels, padding: 2 };
        GaussianIc { cells: [16; 3], gas: false, dark_matter: true, zoom: Some(zoom), ..ic() }
    }

    /// Displacement of a particle from its place on its lattice, in the box of 25 Mpc/h.
    fn displacement(set: &ParticleSet, n: usize, levels: usize) -> [f64; 3] {
        let class = class_of(set.id[n]);
        let cells = 16 << (levels - class);
        let (number, width) = (number_of(set.id[n]) as usize, 25.0 / cells as f64);
        let at = [number % cells, number / cells % cells, number / (cells * cells)];
        std::array::from_fn(|axis| {
            let start = at[axis] as f64 * width + 0.5 * (width - 25.0 / 16.0);
            let d = f64::from(set.position[axis][n]) * 25.0 / 2f64.powi(32) - start;
            d - 25.0 * (d / 25.0).round()
        })
    }

    /// Coarse particles have the bits of the run without zoom, fine ones the same large-scale displacement: that of the eight
    /// particles in place of a coarse one is on average the coarse one's but for modes that it lacks.
    #[test]
    fn a_zoom_shows_the_same_universe() {
        let alone = Communicator::alone();
        let of = |ic: GaussianIc| ic.generate(&alone, &silent).unwrap();
        let levels = 2;
        let mut all = of(GaussianIc { zoom: None, ..zoomed(2) });
        let all = all.take_particles([25.0; 3], 1.0).unwrap();
        let Some(DarkMatter::Set(set)) = of(zoomed(2)).dark_matter else { panic!("particles off a lattice") };
        let counts = set.counts(&alone);
        assert!(counts[..=levels].iter().all(|count| *count > 100), "{counts:?}");
        assert_eq!(set.mass(&alone), 64 * 16 * 16 * 16);
        assert_eq!(set.total(&alone), zoomed(2).zoom.unwrap().particles([16; 3], 25.0));
        let coarse = |n: &usize| class_of(set.id[*n]) == levels;
        for n in (0..set.len()).filter(coarse) {
            let other = number_of(set.id[n]) as usize;
            assert!((0..3).all(|axis| set.position[axis][n] == all.position[axis][other]));
            assert!((0..3).all(|axis| set.velocity[axis][n] == all.velocity[axis][other]));
        }
        // of fine particles beside the coarse ones in whose place they are
        let coarse = |number: usize| {
            let at = [number % 16, number / 16 % 16, number / 256];
            let d = |axis: usize| {
                f64::from(all.position[axis][number]) * 25.0 / 2f64.powi(32) - at[axis] as f64 * 25.0 / 16.0
            };
            [0, 1, 2].map(|axis| d(axis) - 25.0 * (d(axis) / 25.0).round())
        };
        let (mut sum, mut coarse_sum, mut count) = ([0.0; 3], [0.0; 3], 0.0);
        for n in (0..set.len()).filter(|&n| class_of(set.id[n]) == 0) {
            let number = set.id[n] as usize;
            let parent = [number % 64, number / 64 % 64, number / 4096].map(|i| i / 4);
            let (fine, coarse) = (displacement(&set, n, levels), coarse((parent[2] * 16 + parent[1]) * 16 + parent[0]));
            (0..3).for_each(|axis| {
                (sum[axis], coarse_sum[axis]) = (sum[axis] + fine[axis], coarse_sum[axis] + coarse[axis])
            });
            count += 1.0;
        }
        let size = coarse_sum.iter().map(|sum| (sum / count).powi(2)).sum::<f64>().sqrt();
        let apart = (0..3).map(|axis| ((sum[axis] - coarse_sum[axis]) / count).powi(2)).sum::<f64>().sqrt();
        println!("mean displacement {size} Mpc/h, of the fine particles {apart} further");
        assert!(apart < 0.1 * size, "{apart} of {size}");
    }

    /// Ranks have the rows of one, in the same order.
    #[test]
    fn a_zoom_has_the_same_bits_on_ranks() {
        let of = |communicator: &Communicator| match zoomed(1).generate(communicator, &silent).unwrap().dark_matter {
            Some(DarkMatter::Set(set)) => set,
            _ => panic!("particles off a lattice"),
        };
        let alone = of(&Communicator::alone());
        let parts = comove_sim::parallel::on_ranks(3, |communicator| {
            let own = of(&communicator);
            assert_eq!(own.len(), ParticleSet::rows(alone.len() as u64, communicator.rank(), 3).len());
            own
        });
        let together = |column: &dyn Fn(&ParticleSet) -> Vec<u64>| parts.iter().flat_map(column).collect::<Vec<_>>();
        assert_eq!(together(&|set| set.id.clone()), alone.id);
        for axis in 0..3 {
            let bits = |set: &ParticleSet| set.position[axis].iter().map(|&x| x.into()).collect::<Vec<u64>>();
            assert_eq!(together(&bits), bits(&alone));
            let bits = |set: &ParticleSet| set.velocity[axis].iter().map(|v| v.to_bits().into()).collect::<Vec<u64>>();
            assert_eq!(together(&bits), bits(&alone));
        }
    }

    /// Of a lattice and of a zoom, the particles in the places of the given ones; the same on ranks, and positions of before.
    #[test]
    fn refinement_follows_particles_in_the_places_of_identities() {
        let [first, second] = [[14, 3, 7], [15, 3, 8]].map(|[i, j, k]: [u64; 3]| (k * 16 + j) * 16 + i);
        let alone = Communicator::alone();
        for (levels, ic) in [(0, GaussianIc { zoom: None, ..zoomed(1) }), (1, zoomed(1))] {
            let of = |ic: &GaussianIc, communicator: &Communicator| {
                ic.generate(communicator, &silent).unwrap().take_particles([25.0; 3], 1.0).unwrap()
            };
            let marking = GaussianIc { follow: [second, first].into_iter().collect(), ..ic.clone() };
            let (all, marked) = (of(&ic, &alone), of(&marking, &alone));
            assert_eq!((&all.position, &all.velocity), (&marked.position, &marked.velocity));
            assert!(all.id.iter().zip(&marked.id).all(|(&id, &marked)| id == unmarked(marked)));
            let cells = 16 << levels;
            let place = |id: u64| [id % cells, id / cells % cells, id / (cells * cells)].map(|i| i >> levels);
            let is_one = |id: u64| class_of(id) == 0 && [[14, 3, 7], [15, 3, 8]].contains(&place(number_of(id)));
            assert!(marked.id.iter().all(|&id| is_followed(id) == is_one(id)));
            assert_eq!(marked.id.iter().filter(|&&id| is_followed(id)).count(), 2 << (3 * levels));
            let parts = comove_sim::parallel::on_ranks(3, |communicator| of(&marking, &communicator).id);
            assert_eq!(parts.concat(), marked.id);
        }
        let follow = |last: u64| GaussianIc { follow: [first, last].into_iter().collect(), ..zoomed(1) };
        let said = follow(4096).check().unwrap_err().to_string();
        assert!(said.starts_with("follow = 4096: no particle of a lattice of [16, 16, 16]"), "{said}");
        // in a place without fine particles
        let elsewhere = GaussianIc { follow: [8 * 257].into_iter().collect(), ..zoomed(1) };
        let said = elsewhere.check().unwrap_err().to_string();
        assert!(said.starts_with("follow = 2056: no given place has particles of the finest lattice"), "{said}");
        let some = GaussianIc { follow: [first, 8 * 257].into_iter().collect(), ..zoomed(1) };
        assert!(some.check().is_ok() && some.outside_zoom() == 1);
    }

    #[test]
    fn a_zoom_of_gas_alone_is_refused() {
        let said = GaussianIc { gas: true, dark_matter: false, ..zoomed(1) }.check().unwrap_err().to_string();
        assert!(said.starts_with("zoom = ") && said.contains("dark_matter: true"), "{said}");
    }
}
