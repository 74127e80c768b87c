//! What a run is asked to do, already checked and without units of its own.

use crate::criterion::Criterion;
use crate::error::SimError;
use comove_kernels::layout::PATCH;
use serde::{Deserialize, Serialize};

/// Largest CFL number at which relaxing TVD was found stable (docs/notes-kernels.md, *Accuracy*).
pub const MAX_COURANT: f64 = 0.8;

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

/// What lies beyond the box, the same on all six faces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Boundary {
    /// The other side of the box.
    #[default]
    Periodic,
    /// Copies of the outermost cell.
    Outflow,
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

/// How refined levels solve the Poisson equation in a group with given boundary values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GroupSolver {
    /// Exactly, by sine transforms along the three axes; sibling steps over-relax every other group in turn.
    #[default]
    Sine,
    /// As the paper has it (section 2.3): red-black successive overrelaxation, sibling steps of all groups at once.
    Sor,
}

/// The numbers that decide a run's results. Part of its fingerprint; what only decides how long it runs or what it
/// writes (`z_end`, outputs, checkpoints) is not here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RunParameters {
    /// Precision of the state.
    pub precision: Precision,
    /// Comoving or plain coordinates.
    pub coordinates: Coordinates,
    /// Ratio of specific heats; 5/3 when comoving.
    pub gamma: f64,
    /// Whether the gas attracts itself.
    pub gravity: bool,
    /// 4πG in code units for plain coordinates (comoving: 3/2 Ω_m a).
    pub four_pi_g: f64,
    /// Finest level allowed.
    pub max_level: u8,
    /// Refinement criteria: one that is met is enough.
    pub refine: Vec<Criterion>,
    /// Cells around a flagged cell that are flagged with it (paper, section 2.1).
    pub flag_buffer: u32,
    /// Steps between two regrids.
    pub regrid_every: u32,
    /// CFL number of one sweep.
    pub courant: f64,
    /// Largest Δa/a of a step.
    pub max_delta_a: f64,
    /// Acceleration limit: 2Δt ≤ `gravity_courant` √(h/g).
    pub gravity_courant: f64,
    /// Poisson solver of the refined levels.
    pub group_solver: GroupSolver,
    /// Relative residual at which SOR stops.
    pub sor_tolerance: f64,
    /// Sibling relaxation steps after φ, after ζ and at the end.
    pub sibling_steps: [u32; 3],
    /// Whether the pseudo mass sheet corrects the potential.
    pub mass_sheet: bool,
    /// Switch between energy and entropy scalar.
    pub eta: f64,
    /// Density floor in code units.
    pub density_floor: f64,
    /// Pressure floor in code units.
    pub pressure_floor: f64,
}

impl Default for RunParameters {
    fn default() -> Self {
        Self {
            precision: Precision::Single,
            coordinates: Coordinates::Comoving,
            gamma: 5.0 / 3.0,
            gravity: true,
            four_pi_g: 1.0,
            max_level: 0,
            refine: Vec::new(),
            flag_buffer: 4,
            regrid_every: 4,
            courant: 0.5,
            max_delta_a: 0.01,
            gravity_courant: 0.5,
            group_solver: GroupSolver::Sine,
            sor_tolerance: 1e-6,
            sibling_steps: [4, 2, 2],
            mass_sheet: true,
            eta: 1e-2,
            density_floor: 1e-6,
            pressure_floor: 1e-20,
        }
    }
}

impl RunParameters {
    /// Checks what can be checked without a starting state.
    ///
    /// # Errors
    /// [`SimError::Parameter`] naming the first number that no run can use, with what would do.
    pub fn check(&self) -> Result<(), SimError> {
        let check = SimError::require;
        let say = str::to_string;
        let gamma = self.gamma > 1.0 && self.gamma <= 3.0;
        check("gamma", &self.gamma, gamma, say("must lie in (1, 3] (5/3 is the whole number 1; write 5.0/3.0)"))?;
        let comoving = self.coordinates == Coordinates::Comoving;
        let fits = !comoving || (self.gamma - 5.0 / 3.0).abs() < 1e-12;
        check("gamma", &self.gamma, fits, say("comoving coordinates keep the Euler equations' form for 5.0/3.0 only"))?;
        let stable = self.courant > 0.0 && self.courant <= MAX_COURANT;
        let reason = format!("must lie in (0, {MAX_COURANT}]: relaxing TVD amplifies sound waves beyond (1/2 is 0)");
        check("courant", &self.courant, stable, reason)?;
        for (name, value) in [
            ("max_delta_a", self.max_delta_a),
            ("gravity_courant", self.gravity_courant),
            ("eta", self.eta),
            ("sor_tolerance", self.sor_tolerance),
        ] {
            check(name, &value, value > 0.0 && value <= 1.0, say("must lie in (0, 1]"))?;
        }
        for (name, value) in [("density_floor", self.density_floor), ("pressure_floor", self.pressure_floor)] {
            check(name, &value, value > 0.0 && value.is_finite(), say("must be positive"))?;
        }
        check("regrid_every", &self.regrid_every, self.regrid_every > 0, say("must be at least 1 step"))?;
        let buffer = self.flag_buffer as usize <= PATCH;
        check("flag_buffer", &self.flag_buffer, buffer, format!("must be at most a patch: {PATCH} cells"))?;
        let travel = f64::from(self.regrid_every) * 2.0 * self.courant;
        let held = self.max_level == 0 || travel <= f64::from(self.flag_buffer);
        let reason = format!(
            "between two regrids a feature can travel regrid_every · 2 · courant = {travel} cells and leave its \
             refinement; raise flag_buffer or lower regrid_every"
        );
        check("flag_buffer", &self.flag_buffer, held, reason)?;
        self.refine.iter().try_for_each(|criterion| criterion.check(self.gravity))?;
        let deepest = 16;
        check("max_level", &self.max_level, self.max_level < deepest, format!("must be below {deepest}"))
    }
}
