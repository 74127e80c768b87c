//! The closures that `evolve` takes: a stop rule, observers, and what steers the run.

use super::handles::captured;
use super::snapshot_view::SNAPSHOT;
use crate::recipe::closure_members::uses;
use crate::recipe::error::{Bound, Refusal, plain};
use crate::recipe::interpreter::Session;
use crate::recipe::options::{decode_with, take};
use crate::recipe::reference::{Function, Type};
use crate::recipe::step_members::STEP_MEMBERS;
use crate::stage::closure::Closure;
use crate::stage::evolve::Hooks;
use crate::stage::evolve::options::EXTENT;
use rhai::{Dynamic, FnPtr, Map, NativeCallContext};
use serde::{Deserialize, Serialize};
use std::num::NonZeroU64;

/// A root step.
pub(crate) const STEP: Type = Type {
    name: "Step",
    text: "The argument of `stop_when`, `steer` and `on_step` is a map: the record of a root step as in `steps.jsonl`, \
           without what depends on the machine. `sums` and densities are of all matter; members of the gas \
           exist in runs with gas alone. `comove check` refuses a member that the run does not have. What `steer` returns \
           holds from the next step on; `()` lets the run go as its options say.",
    properties: &[],
    methods: &[Function::example("steer", "`|step| if step.density_max > 1e4 { #{ max_level: 3 } }`")
        .with_options(&["Steering"])],
    members: STEP_MEMBERS,
};

/// A closure among options: its text.
type ClosureText = String;

/// What a recipe says in `evolve(START, #{ … })` of what it wants to be asked after every root step.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct HookOptions {
    /// `|step| …`, `true` where the run is to end: with an output of that [step](#step). Outside the fingerprint: another rule
    /// is asked of the steps taken before, and the run goes on or back from there.
    stop_when: Option<ClosureText>,
    /// What is noted on the way, in `observed.jsonl`; the report shows its numbers. It changes nothing: outside the
    /// fingerprint, and what fails is a warning.
    observe: ObserveOptions,
    /// `|step| …`, a map of what holds from the next [step](#step) on. It decides results: its text and what it captures are
    /// part of the fingerprint.
    steer: Option<ClosureText>,
    /// Seconds that a call of these may take; decides no result.
    hook_time_limit_s: f64,
}

/// What a recipe says in `observe: #{ … }`.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ObserveOptions {
    /// Of which steps: of those whose number it divides.
    every_steps: NonZeroU64,
    /// `|step| …`, called after these [steps](#step).
    on_step: Option<ClosureText>,
    /// `|snapshot| …`, called for every output with its [Snapshot](#snapshot), before the run goes on.
    on_output: Option<ClosureText>,
}

pub(super) const HOOKS: [&str; 4] = ["stop_when", "observe", "steer", "hook_time_limit_s"];

const EVERY_STEP: NonZeroU64 = NonZeroU64::new(1).expect("one is not zero");

impl Default for HookOptions {
    fn default() -> Self {
        Self { stop_when: None, observe: ObserveOptions::default(), steer: None, hook_time_limit_s: 60.0 }
    }
}

impl Default for ObserveOptions {
    fn default() -> Self {
        Self { every_steps: EVERY_STEP, on_step: None, on_output: None }
    }
}

/// Takes the closures out of the options of `evolve`.
pub(super) fn hooks(session: &Session, context: &NativeCallContext<'_>, options: &mut Map) -> Bound<Hooks> {
    let mut options = take(options, &HOOKS);
    let stop_when = closure_in(&mut options, "stop_when")?;
    let steer = closure_in(&mut options, "steer")?;
    let (mut on_step, mut on_output) = (None, None);
    if let Some(mut observe) = options.get_mut("observe").and_then(|value| value.write_lock::<Map>()) {
        on_step = closure_in(&mut observe, "on_step")?;
        on_output = closure_in(&mut observe, "on_output")?;
    }
    let HookOptions { hook_time_limit_s: limit, observe, .. } = decode_with("evolve", options, &EXTENT)?;
    if limit.is_nan() || limit <= 0.0 {
        let message = format!("hook_time_limit_s = {limit}: must be positive");
        return Err(Refusal::error("evolve", message, Some("hook_time_limit_s")));
    }
    let hook = |option: &'static str, closure: Option<FnPtr>, argument: &'static Type| {
        let Some(closure) = closure else { return Bound::Ok(None) };
        let captured = captured("evolve", session, context, closure, 1)?;
        let uses = uses(context, option, &captured.closure, argument)?;
        Ok(Some(Closure { function: option, name: option.to_owned(), captured, time_limit_s: limit, uses }))
    };
    Ok(Hooks {
        stop_when: hook("stop_when", stop_when, &STEP)?,
        steer: hook("steer", steer, &STEP)?,
        every_steps: observe.every_steps.get(),
        on_step: hook("on_step", on_step, &STEP)?,
        on_output: hook("on_output", on_output, &SNAPSHOT)?,
    })
}

/// The closure that an option is, if it is there; a text takes its place.
fn closure_in(options: &mut Map, key: &'static str) -> Bound<Option<FnPtr>> {
    let Some(value) = options.get_mut(key).filter(|value| !value.is_unit()) else { return Ok(None) };
    let value = std::mem::replace(value, Dynamic::from(String::new()));
    let what = plain(value.type_name());
    let refuse = || Refusal::error("evolve", format!("{key}: {what} is not a closure; write {key}: |…| …"), Some(key));
    value.try_cast::<FnPtr>().ok_or_else(refuse).map(Some)
}
