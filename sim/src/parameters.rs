//! What a run is asked to do, already checked and without units of its own.

use crate::boundary::{Boundaries, GravityBoundary};
use crate::error::SimError;
use crate::gas::fields::FieldSet;
use crate::refinement::criterion::Criterion;
use crate::source::Source;
use crate::source::heating::Heating;
use crate::step::plan::StepPlan;
use comove_kernels::layout::PATCH;
use comove_kernels::{Eos, Real, Scheme};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Most often that a step may be retried.
pub(crate) const MAX_RETRIES: u32 = 8;

/// The precision of the state on the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// 32-bit.
    #[default]
    Single,
    /// 64-bit.
    Double,
}

impl Precision {
    /// Bytes of a number.
    pub fn bytes(self) -> usize {
        match self {
            Self::Single => size_of::<f32>(),
            Self::Double => size_of::<f64>(),
        }
    }
}

/// The coordinates of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Coordinates {
    /// Supercomoving variables (paper, eqs. 12–13); time is the scale factor.
    #[default]
    Comoving,
    /// Plain variables in code units; a stays 1.
    Plain,
}

/// Which Δt the levels take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TimeSteps {
    /// The same on all levels.
    #[default]
    Uniform,
    /// Half as long as the next coarser level's.
    Individual,
}

impl TimeSteps {
    /// Steps of a level in one of the root.
    pub fn per_root_step(self, level: usize) -> f64 {
        match self {
            Self::Uniform => 1.0,
            Self::Individual => f64::from(1u32 << level),
        }
    }
}

/// The order of the axes in a step's first sweep; the second takes the other way round. A flow that is rotated with
/// its order gives the same bits, rotated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SweepOrder {
    /// x, y, z.
    #[default]
    Xyz,
    /// x, z, y.
    Xzy,
    /// y, x, z.
    Yxz,
    /// y, z, x.
    Yzx,
    /// z, x, y.
    Zxy,
    /// z, y, x.
    Zyx,
}

impl SweepOrder {
    /// Axes 0, 1, 2 in this order.
    pub fn axes(self) -> [usize; 3] {
        match self {
            Self::Xyz => [0, 1, 2],
            Self::Xzy => [0, 2, 1],
            Self::Yxz => [1, 0, 2],
            Self::Yzx => [1, 2, 0],
            Self::Zxy => [2, 0, 1],
            Self::Zyx => [2, 1, 0],
        }
    }
}

/// The passive scalars of a run, by name, and the mass fractions that they start with where the starting state has none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScalarParameters(Vec<(String, Option<f64>)>);

impl ScalarParameters {
    /// Of these names, to be found in the starting state.
    pub fn of_start<S: Into<String>>(names: impl IntoIterator<Item = S>) -> Self {
        Self(names.into_iter().map(|name| (name.into(), None)).collect())
    }

    /// Of these names, uniform at the start.
    pub fn uniform<S: Into<String>>(fractions: impl IntoIterator<Item = (S, f64)>) -> Self {
        Self(fractions.into_iter().map(|(name, fraction)| (name.into(), Some(fraction))).collect())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Their names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    /// The mass fractions that they start with, as far as they are given.
    pub fn initial(&self) -> impl Iterator<Item = Option<f64>> {
        self.0.iter().map(|(_, fraction)| *fraction)
    }

    /// The fields of a run with these scalars.
    ///
    /// # Errors
    /// [`SimError::Parameter`] for names or fractions that cannot be.
    pub fn fields(&self) -> Result<FieldSet, SimError> {
        for (name, fraction) in &self.0 {
            let value = format!("{name}: {}", fraction.unwrap_or_default());
            let fits = fraction.is_none_or(|fraction| (0.0..=1.0).contains(&fraction));
            SimError::require("scalars", &value, fits, "must lie in [0, 1], as a mass fraction")?;
        }
        FieldSet::with_scalars(self.names())
    }
}

/// A list of names, or a map to fractions where some are given.
impl Serialize for ScalarParameters {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.initial().any(|fraction| fraction.is_some()) {
            true => serializer.collect_map(self.0.iter().map(|(name, fraction)| (name, fraction))),
            false => serializer.collect_seq(self.names()),
        }
    }
}

impl<'de> Deserialize<'de> for ScalarParameters {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = ScalarParameters;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("names, or a map from names to mass fractions")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut names: A) -> Result<Self::Value, A::Error> {
                let mut scalars = Vec::new();
                while let Some(name) = names.next_element()? {
                    scalars.push((name, None));
                }
                Ok(ScalarParameters(scalars))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut fractions: A) -> Result<Self::Value, A::Error> {
                let mut scalars = Vec::new();
                while let Some(scalar) = fractions.next_entry()? {
                    scalars.push(scalar);
                }
                Ok(ScalarParameters(scalars))
            }
        }
        deserializer.deserialize_any(Either)
    }
}

/// The numbers that decide a run's results. Part of its fingerprint; what only decides how long it runs or what it
/// writes (`z_end`, outputs, checkpoints) is not here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RunParameters {
    /// Precision of the state.
    pub precision: Precision,
    /// Comoving or non-comoving coordinates; in a recipe as `z_end` or `t_end` says.
    pub coordinates: Coordinates,
    /// Ratio of specific heats; 5/3 when comoving.
    pub gamma: f64,
    /// The boundary conditions at the faces of the box.
    pub boundary: Boundaries,
    /// Passive scalars that move with the gas: names of those that the start has, or a map from names to the mass fractions
    /// that they start with, each a number or a closure `|x, y, z|` of the cell's centre in code length.
    #[serde(skip_serializing_if = "ScalarParameters::is_empty")]
    pub scalars: ScalarParameters,
    /// Hydrodynamic scheme: parabolic or piecewise linear reconstruction with HLLC fluxes, the method paper's, or first order
    /// for tests.
    #[serde(default = "Scheme::unnamed", skip_serializing_if = "Scheme::is_unnamed")]
    pub scheme: Scheme,
    /// Compton cooling and a constant heating rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heating: Option<Heating>,
    /// Whether the gas attracts itself.
    pub gravity: bool,
    /// What the potential does far away. Isolated there is no mass outside the box and no mean subtracted: in
    /// non-comoving coordinates only, with no periodic face.
    pub gravity_boundary: GravityBoundary,
    /// 4πG in code units for non-comoving coordinates (comoving: 3/2 Ω_m a).
    pub four_pi_g: f64,
    /// Finest level allowed.
    pub max_level: u8,
    /// Refinement criteria: one that is met is enough.
    pub refine: Vec<Criterion>,
    /// Most cells that the octree may have, all levels together; where more are asked for, thresholds of the finest
    /// levels are raised ([`crate::refinement`]).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cells: Option<u64>,
    /// Cells around a flagged cell that are flagged with it (paper, section 2.1).
    pub flag_buffer: u32,
    /// Whether levels step together, or each takes two steps for one of the next coarser level. The latter pays where the
    /// gas (`courant`, `gravity_courant`) limits the step; where expansion does (`max_delta_a`), the finer levels would only
    /// take more steps.
    pub time_steps: TimeSteps,
    /// Most steps of a level between two decisions on what refines it; fewer where the gas could travel beyond `flag_buffer`.
    pub regrid_every: u32,
    /// Courant number of one sweep, of which a step has two, each over Δt/2; with individual steps of each level's own. 0.5
    /// where `scheme` is `"relaxing_tvd"` and none is named.
    pub courant: f64,
    /// Order of the axes in a step's first sweep.
    pub sweep_order: SweepOrder,
    /// Largest Δa/a of a step; with individual steps of the root's.
    pub max_delta_a: f64,
    /// Acceleration limit: Δt ≤ `gravity_courant` √(h/g); with individual steps as `courant`.
    pub gravity_courant: f64,
    /// Cycles of a Poisson solve of a refined level for a kick: each leaves a seventh of the error of the force, or less.
    /// Solves that give boundary values or mass sheets take half as many. By default 4 with dark matter, whose particles
    /// feel the error as a force on themselves, and 2 without.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub poisson_cycles: Option<u32>,
    /// How often the potential is solved again with the pseudo mass sheets at coarse–fine faces; 0: without sheets.
    pub sheet_passes: u32,
    /// Whether cold gas has its pressure from the entropy scalar; else from the energy alone, for comparison.
    pub dual_energy: bool,
    /// Gas is cold where its internal energy is less than this fraction of the cell's total energy, or than ⅛ρ|Δv|² with
    /// the difference of the velocities before and behind the cell.
    pub eta: f64,
    /// Whether a sweep is redone with first-order fluxes around cells that would need a floor.
    pub first_order_redo: bool,
    /// How often at most a root step is retried in twice as many parts, because cells had to be floored in it or
    /// signals outran an individual step.
    pub retries: u32,
    /// Fraction of the leaf cells that floors may repair in a sweep, on average over a root step; a run that needs more
    /// stops with exit code 7.
    pub floor_budget: f64,
    /// Density floor in code units.
    pub density_floor: f64,
    /// Pressure floor in code units.
    pub pressure_floor: f64,
}

/// Facts of a starting state that a run's parameters are checked against.
#[derive(Clone, Debug, PartialEq)]
pub struct StartFacts {
    /// Whether there is gas, or may be.
    pub gas: bool,
    /// Particles of dark matter; `None` where that is not known yet.
    pub particles: Option<u64>,
    /// Ratio of specific heats that the gas was made with.
    pub gamma: f64,
    /// Mean molecular weight of its temperatures; `None` where that is not known yet.
    pub mean_molecular_weight: Option<f64>,
    /// Box lengths along x, y, z, code length.
    pub box_lengths: [f64; 3],
    /// Root cells along x, y, z.
    pub root_cells: [usize; 3],
    /// Levels that have groups.
    pub levels: usize,
}

impl Default for RunParameters {
    fn default() -> Self {
        let scheme = Scheme::default();
        Self {
            precision: Precision::Single,
            coordinates: Coordinates::Comoving,
            gamma: 5.0 / 3.0,
            boundary: Boundaries::default(),
            scalars: ScalarParameters::default(),
            scheme,
            heating: None,
            gravity: true,
            gravity_boundary: GravityBoundary::Periodic,
            four_pi_g: 1.0,
            max_level: 0,
            refine: Vec::new(),
            max_cells: None,
            flag_buffer: 4,
            time_steps: TimeSteps::Uniform,
            regrid_every: 4,
            courant: scheme.courant(),
            sweep_order: SweepOrder::Xyz,
            max_delta_a: 0.01,
            gravity_courant: 0.5,
            poisson_cycles: None,
            sheet_passes: 1,
            dual_energy: true,
            eta: 1e-2,
            first_order_redo: true,
            retries: 2,
            floor_budget: 1e-3,
            density_floor: 1e-6,
            pressure_floor: 1e-20,
        }
    }
}

impl RunParameters {
    /// With this scheme and its Courant number.
    pub fn with_scheme(self, scheme: Scheme) -> Self {
        Self { scheme, courant: scheme.courant(), ..self }
    }

    /// The gas law, with floors.
    pub fn eos<T: Real>(&self) -> Eos<T> {
        Eos {
            gamma: T::from_f64(self.gamma),
            eta: T::from_f64(self.switch()),
            density_floor: T::from_f64(self.density_floor),
            pressure_floor: T::from_f64(self.pressure_floor),
            expansion_squared: T::zero(),
        }
    }

    /// The operations of a step.
    pub fn step_plan(&self) -> StepPlan {
        StepPlan::of(self.scheme)
    }

    /// The sources, in the order in which they act.
    pub(crate) fn sources(&self) -> impl Iterator<Item = Source> + use<> {
        self.heating.map(Source::Heating).into_iter()
    }

    /// The η that the kernels decide by ([`Eos::eta`]).
    pub fn switch(&self) -> f64 {
        if self.dual_energy { self.eta } else { Eos::<f64>::SCALAR_OFF }
    }

    /// Checks what can be checked without a starting state.
    ///
    /// # Errors
    /// [`SimError::Parameter`] naming the first number that no run can use, with what would do.
    pub fn check(&self) -> Result<(), SimError> {
        let check = SimError::require;
        let say = str::to_string;
        let gamma = self.gamma > 1.0 && self.gamma <= 3.0;
        check(
            "gamma",
            &self.gamma,
            gamma,
            say("must lie in (1, 3]; write 5.0/3.0, because 5/3 is the whole number 1"),
        )?;
        let comoving = self.coordinates == Coordinates::Comoving;
        let fits = !comoving || (self.gamma - 5.0 / 3.0).abs() < 1e-12;
        check("gamma", &self.gamma, fits, say("must be 5.0/3.0 in comoving coordinates"))?;
        self.boundary.check()?;
        self.scalars.fields()?;
        self.heating.map_or(Ok(()), |heating| heating.check(comoving))?;
        if self.gravity {
            self.gravity_boundary.check(&self.boundary)?;
            let reason = "needs non-comoving coordinates; set coordinates: \"plain\", or gravity_boundary: \
                          \"periodic\"";
            let fits = !comoving || self.gravity_boundary == GravityBoundary::Periodic;
            check("gravity_boundary", &"isolated", fits, say(reason))?;
        }
        let most = self.scheme.max_courant();
        let stable = self.courant > 0.0 && self.courant <= most;
        let reason = format!(
            "must lie in (0, {most}], where the scheme is stable; write 0.5, because 1/2 is the whole number 0"
        );
        check("courant", &self.courant, stable, reason)?;
        for (name, value) in
            [("max_delta_a", self.max_delta_a), ("gravity_courant", self.gravity_courant), ("eta", self.eta)]
        {
            check(name, &value, value > 0.0 && value <= 1.0, say("must lie in (0, 1]"))?;
        }
        let budget = (0.0..=1.0).contains(&self.floor_budget);
        check("floor_budget", &self.floor_budget, budget, say("must lie in [0, 1]"))?;
        let reason = format!("must be at most {MAX_RETRIES}: each retry halves the time step");
        check("retries", &self.retries, self.retries <= MAX_RETRIES, reason)?;
        for (name, value) in [("density_floor", self.density_floor), ("pressure_floor", self.pressure_floor)] {
            check(name, &value, value > 0.0 && value.is_finite(), say("must be positive"))?;
        }
        check("regrid_every", &self.regrid_every, self.regrid_every > 0, say("must be at least 1 step"))?;
        let buffer = self.flag_buffer as usize <= PATCH;
        check(
            "flag_buffer",
            &self.flag_buffer,
            buffer,
            format!("must be at most {PATCH}, the cells of a patch along an axis"),
        )?;
        let sweeps = self.step_plan().sweeps();
        let travel = f64::from(sweeps) * self.courant;
        let held = self.max_level == 0 || travel <= f64::from(self.flag_buffer);
        let reason = format!("must be at least {sweeps} · courant = {travel}, the cells that gas can travel in a step");
        check("flag_buffer", &self.flag_buffer, held, reason)?;
        self.refine.iter().try_for_each(|criterion| criterion.check(self.gravity))?;
        let deepest = 16;
        check("max_level", &self.max_level, self.max_level < deepest, format!("must be below {deepest}"))
    }

    /// Checks what depends on the starting state.
    ///
    /// # Errors
    /// As [`RunParameters::check`].
    pub fn check_start(&self, start: &StartFacts) -> Result<(), SimError> {
        let names: Vec<&str> = self.scalars.names().collect();
        let fits = start.gas || names.is_empty();
        SimError::require("scalars", &names.join(", "), fits, "need gas, and the run has none; remove scalars")?;
        if let Some(heating) = self.heating {
            SimError::require(
                "heating.rate",
                &heating.rate,
                start.gas,
                "needs gas, and the run has none; remove heating",
            )?;
            start.mean_molecular_weight.map_or(Ok(()), |weight| heating.check_weight(weight))?;
        }
        for criterion in &self.refine {
            criterion.check_species(start.gas, start.particles != Some(0))?;
            criterion.check_places(start.box_lengths, self.boundary.periodic())?;
        }
        let reason = format!("the initial state has gamma = {}; set gamma there", start.gamma);
        SimError::require("gamma", &self.gamma, (self.gamma - start.gamma).abs() <= 1e-12, reason)?;
        let root_cells = start.root_cells.into_iter().map(|n| n as u64).product::<u64>();
        let most = 64 * root_cells;
        let reason = format!("must be at most 64 per root cell, {most}; use a finer root");
        let particles = start.particles.unwrap_or(0);
        SimError::require("particles", &particles, particles <= most, reason)?;
        let max_cells = self.max_cells.unwrap_or(u64::MAX);
        let reason = format!("must be at least {root_cells}, the cells of the root level");
        SimError::require("max_cells", &max_cells, max_cells >= root_cells, reason)?;
        self.check_levels(start.root_cells, start.levels)
    }

    /// Checks `max_level` against a starting state.
    ///
    /// * `root_cells`: along x, y, z; `levels`: that have groups
    ///
    /// # Errors
    /// As [`RunParameters::check`].
    fn check_levels(&self, root_cells: [usize; 3], levels: usize) -> Result<(), SimError> {
        let check = |good, reason: String| SimError::require("max_level", &self.max_level, good, reason);
        let widest = root_cells.into_iter().max().unwrap_or(0) as u64;
        let addressed = widest << self.max_level <= 1 << 24;
        check(addressed, format!("makes more than 2^24 cells along an axis of {widest} root cells; reduce it"))?;
        let holds = levels <= usize::from(self.max_level) + 1;
        check(holds, format!("must be at least {}, the finest level of the initial state", levels.saturating_sub(1)))
    }
}
