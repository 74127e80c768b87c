//! `problem` and `ic_function`: starting states that a run evaluates itself.

use super::handles::{Initial, captured};
use super::later::{needs_of_any, substituted};
use crate::campaign::deferred::Known;
use crate::recipe::error::{Bound, Refusal, hint};
use crate::recipe::interpreter::Session;
use crate::recipe::options::{decode_with, refusal, to_json};
use crate::recipe::reference::Function;
use crate::stage::extents::Extents;
use crate::stage::formula::{Formula, FormulaSource};
use comove_ic::IcError;
use comove_ic::problems::{self, Setup};
use comove_sim::kernels::layout::GROUP;
use comove_sim::{Coordinates, Cosmology, RunParameters, SimError};
use rhai::{Dynamic, Engine, EvalAltResult, FnPtr, ImmutableString, Map, NativeCallContext};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

pub(crate) const FUNCTIONS: &[Function] = &[
    Function::new(
        &["problem(name: String) -> InitialCondition", "problem(name: String, options: Map) -> InitialCondition"],
        "A problem that the program knows, with the run that belongs to it and mostly a solution.",
    )
    .used_as("problem(\"name\") or problem(\"name\", #{ … })"),
    Function::new(
        &["ic_function(options: Map, gas: Fn) -> InitialCondition"],
        "Gas from a closure of the position of a cell's centre, in code length (Mpc/h with a cosmology). It \
         returns a map with `density`, `pressure` and `velocity` (at rest if left out), in code units; with a \
         cosmology the density is in the mean density, and `velocity_km_s` (proper, peculiar) and \
         `temperature_k` may stand for the other two. With `cosmology`, an option too, the box is `box_mpc_h` \
         and the start `z`; without one they are `box` and `t`.",
    )
    .used_as("ic_function(#{ box, root, … }, |x, y, z| #{ density, velocity, pressure })")
    .with_options(&["FormulaOptions"]),
];

/// What a recipe says in `ic_function(#{ … }, |x, y, z| …)` besides the cosmology.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FormulaOptions {
    /// Box length along x, code length: in non-comoving coordinates.
    #[serde(rename = "box")]
    box_length: Option<f64>,
    /// Box length along x in Mpc/h: with a cosmology.
    box_mpc_h: Option<f64>,
    /// Root cells along each axis.
    root: Extents,
    /// Redshift of the start: with a cosmology.
    z: Option<f64>,
    /// Time of the start: in non-comoving coordinates; by default 0.
    t: Option<f64>,
    /// Ratio of specific heats; by default 5/3.
    gamma: Option<f64>,
    /// Mean molecular weight; by default 1.22.
    mean_molecular_weight: Option<f64>,
}

/// μ of neutral primordial gas.
const NEUTRAL: f64 = 1.22;

pub(crate) fn register(engine: &mut Engine, session: &Arc<Session>) {
    let of_name = |name: ImmutableString, options| later_or_now(options, move |options| problem(&name, options));
    register_with_options!(engine, "problem", of_name, name: ImmutableString);
    let shared = session.clone();
    let function = move |context: NativeCallContext, options: Map, closure: FnPtr| -> Bound<Initial> {
        let gas = captured("ic_function", &shared, &context, closure, 3)?;
        later_or_now(options, move |options| {
            let (setup, mean_molecular_weight) = setup(options)?;
            let source = FormulaSource::Closure(gas.clone());
            Ok(Initial::Formula(Arc::new(Formula { source, setup, mean_molecular_weight, scalars: Vec::new() })))
        })
    };
    engine.register_fn("ic_function", function);
}

/// The formula that `make` makes of the options, now or once they are known.
fn later_or_now(options: Map, make: impl Fn(Map) -> Bound<Initial> + Send + Sync + 'static) -> Bound<Initial> {
    let needs = needs_of_any(&options);
    if needs.is_empty() {
        return make(options);
    }
    let options = Dynamic::from(options);
    let make = move |known: &Known| make(substituted(&options, known)?.cast());
    Ok(Initial::Later { node: None, needs, make: Arc::new(make) })
}

fn problem(name: &str, options: Map) -> Bound<Initial> {
    let value = to_json(&Dynamic::from(options)).map_err(|(key, what)| {
        let message = format!("{key}: {what} cannot be an option's value");
        Refusal::error("problem", message, key.split('.').next_back())
    })?;
    let problem = problems::build(name, &value).map_err(refuse)?;
    let setup = problem.setup();
    let source = FormulaSource::Problem(problem.into());
    Ok(Initial::Formula(Arc::new(Formula { source, setup, mean_molecular_weight: NEUTRAL, scalars: Vec::new() })))
}

fn refuse(error: IcError) -> Box<EvalAltResult> {
    match error {
        IcError::ProblemOption { path, message, .. } => refusal("problem", &path, &message, &[]),
        IcError::UnknownProblem { name, .. } => {
            let hint = hint(&name, &problems::NAMES, "there are");
            Refusal::error("problem", format!("unknown problem \"{name}\", {hint}"), None)
        }
        IcError::Sim(SimError::Parameter { name, value, reason }) => {
            Refusal::error("problem", format!("{name} = {value}: {reason}"), Some(name))
        }
        other => Refusal::error("problem", other, None),
    }
}

/// Box, root, start and standard run of a closure, and its mean molecular weight.
fn setup(mut options: Map) -> Bound<(Setup, f64)> {
    let refuse = |key: &str, message: String| Refusal::error("ic_function", message, Some(key));
    let cosmology = match options.remove("cosmology") {
        None => None,
        Some(value) => Some(
            value
                .try_cast::<Cosmology>()
                .ok_or_else(|| refuse("cosmology", "cosmology: expected the value of cosmology(#{ … })".into()))?,
        ),
    };
    let o: FormulaOptions = decode_with("ic_function", options, &["cosmology"])?;
    let (length, start, others) = match cosmology {
        Some(_) => (("box_mpc_h", o.box_mpc_h), ("z", o.z), [("box", o.box_length), ("t", o.t)]),
        None => (("box", o.box_length), ("t", o.t.or(Some(0.0))), [("box_mpc_h", o.box_mpc_h), ("z", o.z)]),
    };
    let (is, other) = if cosmology.is_some() { ("with", "non-comoving") } else { ("without", "comoving") };
    if let Some((key, _)) = others.iter().find(|(_, value)| value.is_some()) {
        let what =
            format!("{key} is an option of {other} coordinates; {is} a cosmology use {} and {}", length.0, start.0);
        return Err(refuse(key, what));
    }
    let missing = |(key, value): (&str, Option<f64>)| {
        value.ok_or_else(|| Refusal::error("ic_function", format!("the option \"{key}\" is missing"), None))
    };
    let (box_length, start) = (missing(length)?, missing(start)?);
    if !(box_length > 0.0 && box_length.is_finite()) {
        return Err(refuse(length.0, format!("{} = {box_length}: must be positive", length.0)));
    }
    if cosmology.is_some() && !(start > 0.0 && start.is_finite()) {
        return Err(refuse("z", format!("z = {start}: must be positive")));
    }
    let Extents(root) = o.root;
    if root.iter().any(|n| *n == 0 || n % GROUP != 0) {
        return Err(refuse("root", format!("root = {root:?}: every axis needs a multiple of {GROUP} cells")));
    }
    let comoving = cosmology.is_some();
    let parameters = RunParameters {
        coordinates: if comoving { Coordinates::Comoving } else { Coordinates::Plain },
        gamma: o.gamma.unwrap_or(5.0 / 3.0),
        gravity: comoving,
        ..RunParameters::default()
    };
    if let Err(SimError::Parameter { name, value, reason }) = parameters.check() {
        return Err(refuse(name, format!("{name} = {value}: {reason}")));
    }
    let start = if comoving { 1.0 / (1.0 + start) } else { start };
    let mean_molecular_weight = o.mean_molecular_weight.unwrap_or(NEUTRAL);
    if !(mean_molecular_weight > 0.4 && mean_molecular_weight < 10.0) {
        let message = format!("mean_molecular_weight = {mean_molecular_weight}: must lie between 0.4 and 10");
        return Err(refuse("mean_molecular_weight", message));
    }
    let setup = Setup { box_length, root, cosmology, start, end: f64::INFINITY, parameters };
    Ok((setup, mean_molecular_weight))
}
