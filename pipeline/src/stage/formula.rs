//! `problem` and `ic_function`: a starting state given by a formula, which a run evaluates on its own octree.
//!
//! There is no stage of its own and no mesh: the formula is part of the run and of its fingerprint, by the problem's name
//! and options or by the closure's text and what it captures.

use super::closure::Captured;
use super::work::Work;
use crate::error::PipelineError;
use crate::moment::Moment;
use crate::recipe::error::plain;
use crate::recipe::{Cause, Place, Program, RecipeError};
use comove_ic::problems::{Gas, Problem, Setup};
use comove_ic::{function_state, scalar_state};
use comove_sim::fields::FieldSet;
use comove_sim::{RunParameters, Snapshot, SnapshotHeader};
use rhai::{Dynamic, Engine, Map};
use serde_json::{Value, json};
use std::sync::Arc;

/// A starting state given by a formula, and the run that it belongs to.
#[derive(Clone, Debug)]
pub(crate) struct Formula {
    pub source: FormulaSource,
    /// Box, root, start, and the standard run.
    pub setup: Setup,
    /// Mean molecular weight, for temperatures.
    pub mean_molecular_weight: f64,
    /// Passive scalars whose mass fraction is given by a closure `|x, y, z|` of the recipe.
    pub scalars: Vec<(String, Captured)>,
}

/// Where the gas comes from.
#[derive(Clone, Debug)]
pub(crate) enum FormulaSource {
    /// A problem that the program knows.
    Problem(Arc<dyn Problem>),
    /// A closure `|x, y, z| #{ density, velocity, pressure }` of the recipe.
    Closure(Captured),
}

impl Formula {
    pub(crate) fn start(&self) -> Moment {
        self.moment(self.setup.start)
    }

    /// Where the standard run ends; a closure has none.
    pub(crate) fn end(&self) -> Option<Moment> {
        self.problem().map(|_| self.moment(self.setup.end))
    }

    /// The moment of a scale factor or time.
    fn moment(&self, now: f64) -> Moment {
        match self.setup.cosmology {
            Some(_) => Moment::Redshift(1.0 / now - 1.0),
            None => Moment::Time(now),
        }
    }

    /// The problem, if it is one.
    pub(crate) fn problem(&self) -> Option<&Arc<dyn Problem>> {
        match &self.source {
            FormulaSource::Problem(problem) => Some(problem),
            FormulaSource::Closure(_) => None,
        }
    }

    /// Where its closures begin.
    pub(crate) fn closures(&self) -> Vec<Place> {
        let gas = match &self.source {
            FormulaSource::Closure(closure) => Some(closure.place),
            FormulaSource::Problem(_) => None,
        };
        gas.into_iter().chain(self.scalars.iter().map(|(_, closure)| closure.place)).collect()
    }

    /// One phrase for `plan`.
    pub(crate) fn describe(&self) -> String {
        match &self.source {
            FormulaSource::Problem(problem) => format!("problem {}", problem.name()),
            FormulaSource::Closure(_) => "gas from a closure".into(),
        }
    }

    /// What decides the starting state.
    pub(crate) fn parameters(&self) -> Value {
        let mut parameters = self.gas_parameters();
        if !self.scalars.is_empty() {
            let of = |(name, closure): &(String, Captured)| {
                (name.clone(), json!({ "closure": closure.text, "captured": closure.values }))
            };
            parameters["scalars"] = self.scalars.iter().map(of).collect::<serde_json::Map<_, _>>().into();
        }
        parameters
    }

    /// What decides its gas.
    fn gas_parameters(&self) -> Value {
        match &self.source {
            FormulaSource::Problem(problem) => json!({ "problem": problem.name(), "options": problem.options() }),
            FormulaSource::Closure(closure) => json!({
                "closure": closure.text,
                "captured": closure.values,
                "box": self.setup.box_length,
                "root": self.setup.root,
                "cosmology": self.setup.cosmology,
                "start": self.setup.start,
                "mean_molecular_weight": self.mean_molecular_weight,
            }),
        }
    }

    /// The state from which a run with these parameters starts.
    pub(crate) fn snapshot(&self, parameters: &RunParameters, work: &Work<'_>) -> Result<Snapshot, PipelineError> {
        let setup = Setup { parameters: parameters.clone(), ..self.setup.clone() };
        let line = work.progress.stage();
        let report = |activity: &str, fraction: f64| line.at(activity, fraction);
        let mut state = match &self.source {
            FormulaSource::Problem(problem) => {
                function_state(&|x, h| Ok::<_, PipelineError>(problem.initial(x, h)), &setup, work.device, &report)
            }
            FormulaSource::Closure(closure) => {
                let program = work.program.expect("a campaign from a recipe has its program");
                let engine = program.engine_for_cells();
                let gas = |x, h| {
                    work.in_time()?;
                    self.gas(closure, program, &engine, x, h)
                };
                function_state(&gas, &setup, work.device, &report)
            }
        }?;
        let header = SnapshotHeader {
            a: if setup.cosmology.is_some() { setup.start } else { 1.0 },
            time: if setup.cosmology.is_some() { 0.0 } else { setup.start },
            box_length: setup.box_length,
            cosmology: setup.cosmology,
            gamma: parameters.gamma,
            mean_molecular_weight: self.mean_molecular_weight,
            eta: parameters.eta,
            precision: parameters.precision,
            fields: FieldSet::with_scalars(self.scalars.iter().map(|(name, _)| name))?,
            ..SnapshotHeader::initial(parameters.coordinates)
        };
        if !self.scalars.is_empty() {
            let program = work.program.expect("a campaign from a recipe has its program");
            let (engine, width) = (program.engine_for_cells(), header.cell_width(&state.tree, 0));
            for (name, closure) in &self.scalars {
                line.at(name, 0.0);
                let fraction = |x: [f64; 3]| fraction(name, closure, program, &engine, x);
                let scalar = scalar_state::<PipelineError>(&state, width, &fraction)?;
                state.scalars.push(scalar);
            }
        }
        Ok(Snapshot { header, state })
    }

    /// What the closure says of the cell of width `h` at `x`.
    fn gas(
        &self,
        closure: &Captured,
        program: &Program,
        engine: &Engine,
        x: [f64; 3],
        h: f64,
    ) -> Result<Gas, PipelineError> {
        let cell = || format!("for the cell {h} wide at ({}, {}, {})", x[0], x[1], x[2]);
        let value: Dynamic = closure.closure.call(engine, &program.ast, (x[0], x[1], x[2])).map_err(|e| {
            let mut error = program.explain(&e, closure.place);
            error.message = format!("{} ({})", error.message, cell());
            error
        })?;
        let gas = self.read(value).map_err(|what| (Cause::Text, what)).and_then(|gas| match gas.check() {
            Ok(()) => Ok(gas),
            Err((field, value)) => Err((Cause::Data, format!("{field} = {value}: must be positive and finite"))),
        });
        Ok(gas.map_err(|(cause, what)| {
            let message = format!("ic_function: the closure returned {what}, {}", cell());
            RecipeError::at(program.source(), closure.place, message).because(cause)
        })?)
    }

    /// Gas from the closure's map, in code units.
    fn read(&self, value: Dynamic) -> Result<Gas, String> {
        let what = value.type_name();
        let map: Map = value.try_cast().ok_or_else(|| format!("{}, not a map #{{ density, … }}", plain(what)))?;
        let comoving = self.setup.cosmology.is_some();
        let units = comove_sim::Units::new(self.setup.cosmology);
        let (mut density, mut velocity, mut pressure) = (None, None, None);
        let mut temperature_k = None;
        for (name, value) in &map {
            match name.as_str() {
                "density" => density = Some(number(name, value)?),
                "velocity" => velocity = Some(vector(name, value)?),
                "velocity_km_s" if comoving => {
                    velocity = Some(vector(name, value)?.map(|v| v / units.velocity_km_s(self.setup.start)));
                }
                "pressure" => pressure = Some(number(name, value)?),
                "temperature_k" if comoving => temperature_k = Some(number(name, value)?),
                other => return Err(format!("a \"{other}\"; known are {}", known(comoving))),
            }
        }
        let density = density.ok_or("no density")?;
        let thermal = |t: f64| density * t / units.temperature_k(self.setup.start, self.mean_molecular_weight);
        let pressure = match (pressure, temperature_k) {
            (Some(pressure), None) => pressure,
            (None, Some(t)) => thermal(t),
            (None, None) => return Err("no pressure".into()),
            (Some(_), Some(_)) => return Err("both a pressure and a temperature_k".into()),
        };
        Ok(Gas { density, velocity: velocity.unwrap_or_default(), pressure })
    }
}

/// The mass fraction that a closure gives for the cell at `x`.
fn fraction(
    name: &str,
    closure: &Captured,
    program: &Program,
    engine: &Engine,
    x: [f64; 3],
) -> Result<f64, PipelineError> {
    let cell = || format!("for the cell at ({}, {}, {})", x[0], x[1], x[2]);
    let value: Dynamic = closure.closure.call(engine, &program.ast, (x[0], x[1], x[2])).map_err(|e| {
        let mut error = program.explain(&e, closure.place);
        error.message = format!("{} ({})", error.message, cell());
        error
    })?;
    let value = number(name, &value).map_err(|what| (Cause::Text, what));
    let value = value.and_then(|value| match (0.0..=1.0).contains(&value) {
        true => Ok(value),
        false => Err((Cause::Data, format!("{name} = {value}: must lie in [0, 1], as a mass fraction"))),
    });
    Ok(value.map_err(|(cause, what)| {
        let message = format!("evolve: the closure returned {what}, {}", cell());
        RecipeError::at(program.source(), closure.place, message).because(cause)
    })?)
}

fn known(comoving: bool) -> &'static str {
    if comoving {
        "density, velocity or velocity_km_s, pressure or temperature_k"
    } else {
        "density, velocity and pressure"
    }
}

fn number(name: &str, value: &Dynamic) -> Result<f64, String> {
    let found = value.as_float().or_else(|_| value.as_int().map(|i| i as f64));
    found.map_err(|found| format!("{} as {name}, not a number", plain(found)))
}

fn vector(name: &str, value: &Dynamic) -> Result<[f64; 3], String> {
    let list = value.read_lock::<rhai::Array>().ok_or_else(|| format!("a {name} that is not a list"))?;
    let numbers = list.iter().map(|v| number(name, v)).collect::<Result<Vec<f64>, _>>()?;
    numbers.try_into().map_err(|_| format!("a {name} of {} numbers, not three", list.len()))
}
