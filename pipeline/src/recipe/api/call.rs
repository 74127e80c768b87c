//! The stage that a call of a function makes: at once, or once the values of results among its options are known.

use super::handles::{name_of, place_of};
use super::later::{needs_of, needs_of_any, replaced, substituted};
use crate::campaign::Node;
use crate::campaign::deferred::{Deferred, Known, Measured, Undecided};
use crate::recipe::error::{Bound, Refusal};
use crate::recipe::options::to_json;
use crate::stage::title_of;
use rhai::{Array, Dynamic, EvalAltResult, Map, NativeCallContext};
use std::sync::Arc;

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
