//! Problems: starting states given by a formula, with the run they belong to and, where there is one, their solution.
//!
//! One file each, and all of them in [`NAMES`]. A problem is a structure whose fields are the options of
//! `problem("name", #{ … })` in a recipe; its default is the set-up in which the problem is known. [`build`] makes it.

pub mod acoustic_wave;
mod blast_wave;
pub mod converging_flow;
pub mod ewald;
mod infall;
mod infalling_shell;
pub mod jeans;
pub mod pancake;
mod particle_mesh;
pub mod point_masses;
mod riemann;
mod secondary_infall;
pub mod sedov;
pub mod shock_tube;
pub mod spherical_collapse;
pub mod uniform_flow;

pub use acoustic_wave::AcousticWave;
pub use converging_flow::ConvergingFlow;
pub use jeans::Jeans;
pub use pancake::Pancake;
pub use point_masses::PointMasses;
pub use riemann::Side;
pub use sedov::Sedov;
pub use shock_tube::ShockTube;
pub use spherical_collapse::SphericalCollapse;
pub use uniform_flow::UniformFlow;

use crate::error::IcError;
use comove_sim::kernels::Eos;
use comove_sim::kernels::layout::{DENSITY, FIELDS, GROUP, PATCH, octant_origin};
use comove_sim::{Coordinates, Cosmology, HostState, Precision, RunParameters};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt::Debug;

/// Gas at a point, in code units: supercomoving in a cosmology, plain otherwise.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Gas {
    /// Mass density.
    pub density: f64,
    /// Velocity along x, y, z.
    pub velocity: [f64; 3],
    /// Pressure.
    pub pressure: f64,
}

impl Gas {
    /// Density, three momenta, total energy and entropy scalar.
    pub fn conserved(&self, eos: &Eos<f64>) -> [f64; FIELDS] {
        let Self { density, velocity: [x, y, z], pressure } = *self;
        let kinetic = 0.5 * density * (x * x + y * y + z * z);
        let energy = kinetic + pressure / (eos.gamma - 1.0);
        [density, density * x, density * y, density * z, energy, eos.entropy(density, pressure)]
    }

    /// Refuses what no gas can be.
    ///
    /// # Errors
    /// The name and value of what is not finite, or not positive where it must be.
    pub fn check(&self) -> Result<(), (&'static str, f64)> {
        let positive = |value: f64| value > 0.0 && value.is_finite();
        match self {
            Self { density, .. } if !positive(*density) => Err(("density", *density)),
            Self { pressure, .. } if !positive(*pressure) => Err(("pressure", *pressure)),
            Self { velocity, .. } => match velocity.iter().find(|v| !v.is_finite()) {
                Some(bad) => Err(("velocity", *bad)),
                None => Ok(()),
            },
        }
    }
}

/// What a run of a problem needs besides its gas.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// Box length along x, code length.
    pub box_length: f64,
    /// Root cells along x, y, z, each a multiple of 16; cells are cubes.
    pub root: [usize; 3],
    /// The background; `None` in non-comoving coordinates.
    pub cosmology: Option<Cosmology>,
    /// Where a run starts: scale factor, or time in non-comoving coordinates.
    pub start: f64,
    /// Where it ends.
    pub end: f64,
    /// The standard run: criteria, gravity, boundary, γ, precision, finest level.
    pub parameters: RunParameters,
}

/// How a solution is drawn and compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum View {
    /// Along an axis, through a point.
    Line {
        /// 0 x, 1 y, 2 z.
        axis: usize,
        /// A point of the line, code length.
        through: [f64; 3],
    },
    /// From the origin to the opposite corner of the box.
    Diagonal,
    /// In shells about a centre.
    Shells {
        /// The centre, code length.
        center: [f64; 3],
        /// Radius of the largest shell, code length.
        radius: f64,
    },
}

/// A starting state given by a formula, the run that it belongs to, and its solution.
pub trait Problem: Debug + Send + Sync {
    /// Its name, as in recipes.
    fn name(&self) -> &'static str;

    /// All its options, as a recipe could state them: what the fingerprint of a run holds.
    fn options(&self) -> Value;

    /// The run that it belongs to.
    fn setup(&self) -> Setup;

    /// Gas of a cell of width `h` with its centre at `x` (code length): the value there, or the mean over the cell where
    /// the difference matters.
    fn initial(&self, x: [f64; 3], h: f64) -> Gas;

    /// The solution at the point `x` (code length) at scale factor or time `t`; `None` where there is none in closed
    /// form.
    fn exact(&self, x: [f64; 3], t: f64) -> Option<Gas>;

    /// How solution and run are drawn and compared.
    fn view(&self) -> View;

    /// Refuses options that make no problem.
    ///
    /// # Errors
    /// The option and what is wrong with it.
    fn check(&self) -> Result<(), (&'static str, String)> {
        Ok(())
    }
}

type Builder = fn(&str, &Value) -> Result<Box<dyn Problem>, IcError>;

/// Every problem and how it is built, by name.
const PROBLEMS: [(&str, Builder); 8] = [
    ("acoustic_wave", decode::<AcousticWave>),
    ("converging_flow", decode::<ConvergingFlow>),
    ("jeans", decode::<Jeans>),
    ("pancake", decode::<Pancake>),
    ("sedov", decode::<Sedov>),
    ("shock_tube", decode::<ShockTube>),
    ("spherical_collapse", decode::<SphericalCollapse>),
    ("uniform_flow", decode::<UniformFlow>),
];

/// The names of all problems.
pub const NAMES: [&str; PROBLEMS.len()] = {
    let mut names = [""; PROBLEMS.len()];
    let mut n = 0;
    while n < names.len() {
        names[n] = PROBLEMS[n].0;
        n += 1;
    }
    names
};

/// The problem of that name, with these options (a JSON object) in place of its defaults.
///
/// # Errors
/// [`IcError::UnknownProblem`]; [`IcError::ProblemOption`] naming an option that the problem does not know or cannot use.
pub fn build(name: &str, options: &Value) -> Result<Box<dyn Problem>, IcError> {
    let found = PROBLEMS.iter().find(|(known, _)| *known == name);
    let (name, builder) =
        found.ok_or_else(|| IcError::UnknownProblem { name: name.into(), known: NAMES.join(", ") })?;
    let problem = builder(name, options)?;
    let refuse =
        |path: &str, message: String| IcError::ProblemOption { problem: (*name).into(), path: path.into(), message };
    problem.check().map_err(|(path, message)| refuse(path, message))?;
    let setup = problem.setup();
    if setup.root.iter().any(|&n| n == 0 || n % GROUP != 0) {
        return Err(refuse("root", format!("{:?}: every axis needs a multiple of {GROUP} cells", setup.root)));
    }
    let (length, start, end) = (setup.box_length, setup.start, setup.end);
    if !(length > 0.0 && length.is_finite()) {
        return Err(refuse("box_length", format!("{length} must be positive")));
    }
    if !(end > start && end.is_finite()) {
        return Err(refuse("end", format!("{end} must lie after the start at {start}")));
    }
    setup.parameters.check()?;
    Ok(problem)
}

fn decode<P: Problem + DeserializeOwned + 'static>(name: &str, options: &Value) -> Result<Box<dyn Problem>, IcError> {
    let problem: P = serde_path_to_error::deserialize(options).map_err(|error| IcError::ProblemOption {
        problem: name.into(),
        path: error.path().to_string(),
        message: error.inner().to_string(),
    })?;
    Ok(Box::new(problem))
}

/// Refuses an option unless `good`: what [`Problem::check`] returns.
fn require(option: &'static str, value: f64, good: bool, reason: &str) -> Result<(), (&'static str, String)> {
    if good { Ok(()) } else { Err((option, format!("{value} {reason}"))) }
}

/// Refuses the amplitude of a wave whose density or pressure, 1 + γA in its trough, is not positive.
fn require_wave(amplitude: f64, gamma: f64) -> Result<(), (&'static str, String)> {
    let most = 1.0 / gamma.max(1.0);
    let reason = format!("must lie between -{most} and {most}: density and pressure are positive there");
    require("amplitude", amplitude, amplitude.abs() < most, &reason)
}

/// A run of gas alone in non-comoving coordinates.
fn plain_gas(precision: Precision, gamma: f64) -> RunParameters {
    RunParameters { precision, coordinates: Coordinates::Plain, gamma, gravity: false, ..RunParameters::default() }
}

/// The options of a problem: [`Problem::options`] of every problem.
fn options_of(problem: &impl Serialize) -> Value {
    serde_json::to_value(problem).expect("numbers and names")
}

/// L1 error of the density at scale factor or time `t`: the box mean of |ρ − ρ_exact| over leaf cells, compared at their
/// centres; `None` where the problem has no solution in closed form.
pub fn l1_error(problem: &dyn Problem, state: &HostState, t: f64) -> Option<f64> {
    let box_length = problem.setup().box_length;
    let mut error = 0.0;
    for patch in state.tree.leaf_patches() {
        let cells = state.tree.cells(patch.level);
        let width = box_length / cells[0] as f64;
        let density = state.field(patch.group, DENSITY);
        let origin = octant_origin(patch.octant);
        let mut sum = 0.0;
        for local in 0..PATCH * PATCH * PATCH {
            let offset = [local % PATCH, local / PATCH % PATCH, local / (PATCH * PATCH)];
            let x = std::array::from_fn(|a| ((patch.first_cell[a] + offset[a]) as f64 + 0.5) * width);
            let [i, j, k] = std::array::from_fn(|a| origin[a] + offset[a]);
            sum += (density[[k, j, i]] - problem.exact(x, t)?.density).abs();
        }
        error += sum / cells.iter().product::<usize>() as f64;
    }
    Some(error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_problem_is_built_by_its_name() {
        for name in NAMES {
            let problem = build(name, &json!({})).unwrap();
            assert_eq!(problem.name(), name);
            assert_eq!(build(name, &problem.options()).unwrap().options(), problem.options());
            let setup = problem.setup();
            assert!(setup.end > setup.start && setup.box_length > 0.0, "{name}");
            let h = setup.box_length / setup.root[0] as f64;
            let x = [0.5 * h, 3.5 * h, 7.5 * h];
            let gas = problem.initial(x, h);
            assert!(gas.density > 0.0 && gas.pressure > 0.0, "{name}");
        }
    }

    #[test]
    fn options_that_give_no_gas_are_named() {
        for (name, options, option) in [
            ("uniform_flow", json!({ "density": 0 }), "density: 0 must be positive"),
            ("uniform_flow", json!({ "pressure": -1 }), "pressure: -1 must be positive"),
            ("uniform_flow", json!({ "end": 0 }), "end: 0 must lie after the start at 0"),
            (
                "acoustic_wave",
                json!({ "amplitude": 0.7 }),
                "amplitude: 0.7 must lie between -0.6 and 0.6: density and pressure are positive there",
            ),
            ("acoustic_wave", json!({ "box_length": -1 }), "box_length: -1 must be positive"),
            (
                "jeans",
                json!({ "amplitude": -2 }),
                "amplitude: -2 must lie between -0.6 and 0.6: density and pressure are positive there",
            ),
            ("converging_flow", json!({ "mach": 0 }), "mach: 0 must be positive"),
            ("converging_flow", json!({ "focus": [0.5, 1.5, 0.5] }), "focus: 1.5 must lie in the box, [0, 1]"),
            ("pancake", json!({ "temperature_k": 0 }), "temperature_k: 0 must be positive"),
        ] {
            let error = build(name, &options).unwrap_err().to_string();
            assert_eq!(error, format!("problem \"{name}\": {option}"));
        }
    }

    #[test]
    fn wrong_options_are_named() {
        let refusal = |name: &str, options: Value| build(name, &options).unwrap_err().to_string();
        assert!(refusal("sod", json!({})).starts_with("unknown problem \"sod\"; available: acoustic_wave, "));
        assert!(refusal("shock_tube", json!({ "rot": 64 })).contains("unknown field `rot`"));
        let expected = "problem \"shock_tube\": root: [20, 16, 16]: every axis needs a multiple of 16 cells";
        assert_eq!(refusal("shock_tube", json!({ "root": 20 })), expected);
        assert!(refusal("shock_tube", json!({ "interface": 1.5 })).contains("interface: 1.5 must lie between 0 and 1"));
    }
}
