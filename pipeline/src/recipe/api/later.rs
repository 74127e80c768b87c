//! Options that are values of results: what is called with them is made once they are known.

use super::handles::{name_of, place_of};
use crate::campaign::Node;
use crate::campaign::deferred::{Deferred, Known, Measured, Undecided};
use crate::recipe::error::{Bound, Refusal};
use crate::recipe::options::{from_json, to_json};
use crate::stage::title_of;
use rhai::{Array, Dynamic, EvalAltResult, Map, NativeCallContext};
use std::sync::Arc;

/// Something that is no stage and is made of values of results: a refinement criterion.
#[derive(Clone)]
pub(crate) struct Later {
    needs: Vec<Measured>,
    make: Arc<MakeValue>,
}

/// Makes a value of those that it waited for.
type MakeValue = dyn Fn(&Known) -> Bound<Dynamic> + Send + Sync;

impl Later {
    /// What `make` makes of an argument: now if it is known, else later.
    pub(super) fn or_now(
        argument: Dynamic,
        make: impl Fn(Dynamic) -> Bound<Dynamic> + Send + Sync + 'static,
    ) -> Bound<Dynamic> {
        let needs = needs_of(&argument);
        if needs.is_empty() {
            return make(argument);
        }
        Ok(Dynamic::from(Self { needs, make: Arc::new(move |known| make(substituted(&argument, known)?)) }))
    }
}

/// The values of results in a value, and in the lists and maps in it.
pub(super) fn needs_of(value: &Dynamic) -> Vec<Measured> {
    let mut needs = Vec::new();
    collect(value, &mut needs);
    needs
}

/// The values of results among options.
pub(super) fn needs_of_any(options: &Map) -> Vec<Measured> {
    options.values().flat_map(needs_of).collect()
}

fn collect(value: &Dynamic, needs: &mut Vec<Measured>) {
    if let Some(measured) = value.read_lock::<Measured>() {
        needs.push(measured.clone());
    } else if let Some(later) = value.read_lock::<Later>() {
        needs.extend(later.needs.iter().cloned());
    } else if let Some(list) = value.read_lock::<Array>() {
        list.iter().for_each(|value| collect(value, needs));
    } else if let Some(map) = value.read_lock::<Map>() {
        map.values().for_each(|value| collect(value, needs));
    }
}

/// A value with what is known by now in place of what was to be known.
pub(super) fn substituted(value: &Dynamic, known: &Known) -> Bound<Dynamic> {
    replaced(value, &|measured| from_json(known.of(measured)), &|later| (later.make)(known))
}

fn replaced(
    value: &Dynamic,
    measured: &dyn Fn(&Measured) -> Dynamic,
    later: &dyn Fn(&Later) -> Bound<Dynamic>,
) -> Bound<Dynamic> {
    if let Some(value) = value.read_lock::<Measured>() {
        return Ok(measured(&value));
    }
    if let Some(value) = value.read_lock::<Later>() {
        return later(&value);
    }
    if let Some(list) = value.read_lock::<Array>() {
        return Ok(list.iter().map(|value| replaced(value, measured, later)).collect::<Bound<Array>>()?.into());
    }
    if let Some(map) = value.read_lock::<Map>() {
        let entry = |(key, value): (&rhai::Identifier, &Dynamic)| Ok((key.clone(), replaced(value, measured, later)?));
        return Ok(map.iter().map(entry).collect::<Bound<Map>>()?.into());
    }
    Ok(value.clone())
}

/// A stage that a call makes, or will make.
pub(super) struct Call {
    pub(super) function: &'static str,
    /// What its folder is called.
    pub(super) label: String,
    /// What it makes, in a few words, as far as that is known before its options are.
    pub(super) title: String,
    /// What the recipe calls it, if it does.
    pub(super) name: Option<String>,
    /// What it reads.
    pub(super) inputs: Vec<Node>,
    /// Its other options.
    pub(super) options: Map,
    /// Values that it waits for besides those among its options.
    pub(super) needs: Vec<Measured>,
}

impl Call {
    /// Of a function whose stage is called as the function is, unless the options name it.
    pub(super) fn new(function: &'static str, inputs: Vec<Node>, mut options: Map) -> Bound<Self> {
        let name = name_of(function, &mut options)?;
        let (label, title) = (function.into(), title_of(function));
        Ok(Self { function, label, title, name, inputs, options, needs: Vec::new() })
    }

    /// The stage that `make` makes of the options, and of further values: now if they are known, else later.
    pub(super) fn stage(
        self,
        context: &NativeCallContext<'_>,
        make: impl Fn(Map, &Known) -> Bound<Node> + Send + Sync + 'static,
    ) -> Bound<Node> {
        let Self { function, label, title, name, inputs, options, mut needs } = self;
        if needs.is_empty() {
            if needs_of_any(&options).is_empty() {
                return Ok(make(options, &Known::default())?.named(name));
            }
            // a name that is wrong is wrong whatever the values will be
            let wrong = trials(&options).into_iter().filter_map(|options| make(options, &Known::default()).err());
            if let Some(error) = wrong.into_iter().find(|error| is_misspelt(error)) {
                return Err(error);
            }
        }
        needs.extend(needs_of_any(&options));
        let options = Dynamic::from(options);
        let names: Vec<String> = needs.iter().map(Measured::name).collect();
        let named = replaced(&options, &|measured| Dynamic::from(measured.name()), &|later| {
            Ok(later.needs.iter().map(|need| Dynamic::from(need.name())).collect::<Array>().into())
        })?;
        let undecided = Undecided {
            function,
            label,
            title,
            describes: format!("with {}", names.join(" and ")),
            // closures and the like are no data; what it is follows once it is decided
            parameters: to_json(&named).unwrap_or_default(),
            place: place_of(context),
        };
        let own = inputs.len();
        let mut all = inputs;
        for need in &needs {
            if all[own..].iter().all(|other| !other.is(&need.node)) {
                all.push(need.node.clone());
            }
        }
        let made = name.clone();
        let make = move |known: &Known| Ok(make(substituted(&options, known)?.cast(), known)?.named(made.clone()));
        Ok(Node::deferred(undecided, all, Deferred::Stage { own, needs, make: Arc::new(make) }).named(name))
    }
}

/// What functions say that cannot wait.
pub(super) fn refuse(function: &str, options: &Map) -> Bound<()> {
    for (key, value) in options {
        if let Some(need) = needs_of(value).first() {
            let message = format!("{key}: {}", known_later(function, need));
            return Err(Refusal::error(function, message, Some(key)));
        }
    }
    Ok(())
}

/// What to do where `function` needs a value before it is known.
pub(super) fn known_later(function: &str, need: &Measured) -> String {
    format!(
        "{} is known once its stage is done, and the recipe needs it before: call {function} in then({}, |result| …)",
        need.name(),
        need.node.stage().label(),
    )
}

/// Whether a call is refused for an option that there is not: that is so whatever the other options will be.
fn is_misspelt(error: &EvalAltResult) -> bool {
    let EvalAltResult::ErrorRuntime(value, _) = error else { return false };
    value.read_lock::<Refusal>().is_some_and(|refusal| refusal.message.contains(": unknown option "))
}

/// The options without those that are not known yet, and with nothing in their places.
fn trials(options: &Map) -> [Map; 2] {
    let without = options.iter().filter(|(_, value)| needs_of(value).is_empty());
    let without = without.map(|(key, value)| (key.clone(), value.clone())).collect();
    let empty = replaced(&Dynamic::from(options.clone()), &|_| Dynamic::UNIT, &|_| Ok(Dynamic::UNIT));
    [without, empty.map(Dynamic::cast).unwrap_or_default()]
}
