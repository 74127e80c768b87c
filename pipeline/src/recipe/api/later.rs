//! Options that are values of results: what is called with them is made once they are known.

use crate::campaign::deferred::{Known, Measured};
use crate::recipe::error::{Bound, Refusal};
use crate::recipe::options::from_json;
use rhai::{Array, Dynamic, Map};
use std::sync::Arc;

/// Something that is no stage and is made of values of results: a refinement criterion.
#[derive(Clone)]
pub(crate) struct Later {
    pub(super) needs: Vec<Measured>,
    make: Arc<MakeValue>,
}

/// Makes a value of those that it waited for.
type MakeValue = dyn Fn(&Known) -> Bound<Dynamic> + Send + Sync;

impl Later {
    /// What `make` makes of values of results.
    pub(super) fn value(
        needs: Vec<Measured>,
        make: impl Fn(&Known) -> Bound<Dynamic> + Send + Sync + 'static,
    ) -> Dynamic {
        Dynamic::from(Self { needs, make: Arc::new(make) })
    }

    /// What `make` makes of an argument: now if it is known, else later.
    pub(super) fn or_now(
        argument: Dynamic,
        make: impl Fn(Dynamic) -> Bound<Dynamic> + Send + Sync + 'static,
    ) -> Bound<Dynamic> {
        let needs = needs_of(&argument);
        if needs.is_empty() {
            return make(argument);
        }
        Ok(Self::value(needs, move |known| make(substituted(&argument, known)?)))
    }
}

/// The values of results in a value, and in the lists and maps in it.
pub(super) fn needs_of(value: &Dynamic) -> Vec<Measured> {
    let mut needs = Vec::new();
    collect(value, &mut needs);
    needs
}

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

/// A value with others in place of values of results, and of what is made of such.
pub(super) fn replaced(
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
        "{} is known only after its stage; call {function} in then({}, |result| …)",
        need.name(),
        need.node.stage().label(),
    )
}
