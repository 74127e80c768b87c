//! Closures of the recipe that a run asks after its steps: its stop rule, its observers, and what steers it.
//!
//! All see a step as its record says it, without what depends on the machine or the process. So a stop rule may be asked
//! again of the records of steps that were taken before it was there, and says the same.

use crate::error::PipelineError;
use crate::moment::Moment;
use crate::recipe::Cause;
use crate::recipe::options::{from_json, one};
use crate::recipe::reference::Needs;
use crate::recipe::step_members::STEP_MEMBERS;
use crate::stage::closure::Closure;
use crate::stage::work::Work;
use comove_sim::{SimError, Simulation, Steering};
use rhai::Dynamic;
use serde_json::{Value, json};

#[derive(Clone, Debug, Default)]
pub(crate) struct Hooks {
    /// Whether the run is to end after a step.
    pub stop_when: Option<Closure>,
    /// What a step decides for the next ones.
    pub steer: Option<Closure>,
    /// A look at every so many steps; never 0.
    pub every_steps: u64,
    /// What is to be noted of a step.
    pub on_step: Option<Closure>,
    /// What is to be noted of an output.
    pub on_output: Option<Closure>,
}

/// Parts of a record that closures do not see: they differ between machines or processes.
pub(crate) const HIDDEN: [&str; 7] = [
    "version",
    "timing",
    "cell_updates_per_second",
    "device_bytes",
    "ranks",
    "state_hash",
    "continued_from_device_class",
];

/// Parts that a record leaves out where there is nothing to say.
const EMPTY: [&str; 2] = ["raised", "steering"];

impl Hooks {
    /// All of them.
    pub(crate) fn closures(&self) -> impl Iterator<Item = &Closure> {
        [&self.stop_when, &self.steer, &self.on_step, &self.on_output].into_iter().flatten()
    }

    /// Whether anything is asked of steps.
    pub(crate) fn see_steps(&self) -> bool {
        [&self.stop_when, &self.steer, &self.on_step].into_iter().any(Option::is_some)
    }

    /// What is told of them outside the fingerprint.
    pub(crate) fn extent(&self) -> Value {
        let told = |hook: &Option<Closure>| hook.as_ref().map(Closure::parameters);
        let (stop_when, on_step, on_output) = (told(&self.stop_when), told(&self.on_step), told(&self.on_output));
        json!({ "stop_when": stop_when, "every_steps": self.every_steps, "on_step": on_step, "on_output": on_output })
    }

    /// What there is of them, for `plan`.
    pub(crate) fn describe(&self) -> String {
        let told = [
            (self.stop_when.is_some(), ", or until its stop rule is met"),
            (self.steer.is_some(), ", steered"),
            (self.on_step.is_some() || self.on_output.is_some(), ", observed"),
        ];
        told.into_iter().filter(|(there, _)| *there).map(|(_, text)| text).collect()
    }

    /// Whether the stop rule is met by a step, as its record says it.
    pub(crate) fn stops(&self, record: &Value, work: &Work<'_>) -> Result<bool, PipelineError> {
        let Some(rule) = &self.stop_when else { return Ok(false) };
        match rule.ask(step(record), work)? {
            Value::Bool(met) => Ok(met),
            other => {
                Err(rule.refused(Cause::Text, format!("the closure returned {other}, expected true or false"), work))
            }
        }
    }

    /// Steers a run after a step.
    pub(crate) fn steer(
        &self,
        simulation: &mut Simulation,
        record: &Value,
        work: &Work<'_>,
    ) -> Result<(), PipelineError> {
        self.steering(record, work, |steering| simulation.steer(steering))
    }

    /// Has `apply` steer a run as the closure says after a step.
    pub(crate) fn steering(
        &self,
        record: &Value,
        work: &Work<'_>,
        apply: impl FnOnce(Steering) -> Result<(), SimError>,
    ) -> Result<(), PipelineError> {
        let Some(hook) = &self.steer else { return Ok(()) };
        let value = hook.ask(step(record), work)?;
        let decoded = if value.is_null() { Ok(Steering::default()) } else { one(&value, "result") };
        let steering = decoded.map_err(|message| hook.refused(Cause::Text, message, work))?;
        apply(steering).map_err(|error| {
            // a level is mostly written out, a time step computed
            let is_of_the_text = matches!(error, SimError::Parameter { name: "max_level", .. });
            let cause = if is_of_the_text { Cause::Text } else { Cause::Data };
            hook.refused(cause, error.to_string(), work)
        })
    }
}

/// A step as closures see it.
pub(crate) fn step(record: &Value) -> Dynamic {
    let mut seen = of_present_species(record.clone());
    if let Some(fields) = seen.as_object_mut() {
        HIDDEN.iter().for_each(|name| _ = fields.remove(*name));
        EMPTY.iter().for_each(|name| _ = fields.entry(*name).or_insert(Value::Null));
    }
    from_json(&seen)
}

/// The record of a step without members of the gas where there is none: they would be zeros.
pub(crate) fn of_present_species(mut record: Value) -> Value {
    if let Some(fields) = record.as_object_mut().filter(|fields| !fields.contains_key("gas")) {
        let of_gas = STEP_MEMBERS.iter().filter(|member| member.needs == Needs::Gas);
        of_gas.for_each(|member| _ = fields.remove(member.name));
    }
    record
}

/// The output of the state that a stop rule has found at a step.
pub(crate) fn stop_file(step: u64) -> String {
    format!("output_step_{step:06}.h5")
}

/// Where a run stops: after this step, which ends at this moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct StopPoint {
    pub step: u64,
    /// Its end.
    pub moment: Moment,
}

impl std::fmt::Display for StopPoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "after step {} at {}", self.step, self.moment.rounded())
    }
}
