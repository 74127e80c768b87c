//! What a run is asked to do, already checked and without units of its own.

use serde::{Deserialize, Serialize};

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

/// A refinement criterion: a patch of level ℓ is refined where one of its cells meets it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Criterion {
    /// Density above `thresholds[ℓ]` (in the mean density when comoving); levels beyond the list are not refined.
    DensityAbove {
        /// One threshold per level that may be refined.
        thresholds: Vec<f64>,
    },
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
