//! The one way from a `#{…}` of a recipe to a Rust structure, and from a refused option to a message.

use super::error::{Cause, Refusal, hint, plain};
use rhai::{Dynamic, EvalAltResult, Map};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Decodes the options of `function`. Whole numbers are accepted where reals are wanted.
pub(crate) fn decode<T: DeserializeOwned>(function: &str, options: Map) -> Result<T, Box<EvalAltResult>> {
    decode_with(function, options, &[])
}

/// Removes the options of these names from a map and returns them: for a function whose options fill two structures.
pub(crate) fn take(options: &mut Map, names: &[&str]) -> Map {
    names.iter().filter_map(|name| options.remove_entry(*name)).collect()
}

/// As [`decode`], where `others` are further options of the function, named in messages but decoded elsewhere.
pub(crate) fn decode_with<T: DeserializeOwned>(
    function: &str,
    options: Map,
    others: &[&str],
) -> Result<T, Box<EvalAltResult>> {
    let value = to_json(&Dynamic::from(options)).map_err(|(key, what)| {
        let message = format!("{key}: {what} cannot be an option's value");
        Refusal::error(function, message, key.split('.').next_back())
    })?;
    serde_path_to_error::deserialize(&value).map_err(|error| {
        let path = error.path().to_string();
        let message = error.inner().to_string();
        refusal(function, &path, &message, others)
    })
}

/// Decodes what a result has under `key`: nothing, one, or a list of several.
pub(crate) fn one_or_several<T: DeserializeOwned>(value: Option<&Value>, key: &str) -> Result<Vec<T>, String> {
    match value {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(several)) => {
            several.iter().enumerate().map(|(n, value)| one(value, &format!("{key}[{n}]"))).collect()
        }
        Some(value) => Ok(vec![one(value, key)?]),
    }
}

/// Decodes what stands at `place` in a result.
pub(crate) fn one<T: DeserializeOwned>(value: &Value, place: &str) -> Result<T, String> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        let path = if path == "." { place.to_owned() } else { join(place, &path) };
        let (message, _) = explain(&path, &error.inner().to_string(), &[]);
        if message.starts_with(place) { message } else { format!("{place}: {message}") }
    })
}

/// What a function says of an option that serde refuses, `path` and `message` being serde's.
pub(crate) fn refusal(function: &str, path: &str, message: &str, others: &[&str]) -> Box<EvalAltResult> {
    // nothing may stand where other data have a value
    let cause = if message.contains("invalid type: null") { Cause::Data } else { Cause::Text };
    let (message, key) = explain(path, message, others);
    Refusal::because(cause, function, message, key.as_deref())
}

/// Lists and maps within each other that a value may have.
const DEPTH: usize = 32;

/// A Rhai value as JSON.
///
/// # Errors
/// The path to a value that JSON cannot hold, and its type.
pub(crate) fn to_json(value: &Dynamic) -> Result<Value, (String, String)> {
    json_within(value, DEPTH)
}

fn json_within(value: &Dynamic, depth: usize) -> Result<Value, (String, String)> {
    let value = value.flatten_clone();
    if value.is_unit() {
        Ok(Value::Null)
    } else if let Ok(b) = value.as_bool() {
        Ok(b.into())
    } else if let Ok(i) = value.as_int() {
        Ok(i.into())
    } else if let Ok(f) = value.as_float() {
        serde_json::Number::from_f64(f).map(Value::Number).ok_or_else(|| (String::new(), f.to_string()))
    } else if value.is_string() || value.is_char() {
        Ok(value.to_string().into())
    } else if depth == 0 {
        Err((String::new(), format!("a value nested more than {DEPTH} levels deep")))
    } else if let Some(array) = value.read_lock::<rhai::Array>() {
        let item = |(n, v)| json_within(v, depth - 1).map_err(|(path, what)| (join(&format!("[{n}]"), &path), what));
        array.iter().enumerate().map(item).collect::<Result<Vec<_>, _>>().map(Value::Array)
    } else if let Some(map) = value.read_lock::<Map>() {
        let item = |(key, v): (&rhai::Identifier, &Dynamic)| {
            json_within(v, depth - 1).map(|v| (key.to_string(), v)).map_err(|(path, what)| (join(key, &path), what))
        };
        map.iter().map(item).collect::<Result<serde_json::Map<_, _>, _>>().map(Value::Object)
    } else {
        Err((String::new(), plain(value.type_name())))
    }
}

/// JSON as a Rhai value.
pub(crate) fn from_json(value: &Value) -> Dynamic {
    match value {
        Value::Null => Dynamic::UNIT,
        Value::Bool(b) => (*b).into(),
        Value::Number(n) => n.as_i64().map_or_else(|| n.as_f64().unwrap_or(f64::NAN).into(), Dynamic::from),
        Value::String(s) => s.clone().into(),
        Value::Array(items) => items.iter().map(from_json).collect::<rhai::Array>().into(),
        Value::Object(map) => map.iter().map(|(k, v)| (k.into(), from_json(v))).collect::<Map>().into(),
    }
}

fn join(head: &str, tail: &str) -> String {
    match (head, tail) {
        (_, "") => head.into(),
        _ if tail.starts_with('[') => format!("{head}{tail}"),
        _ => format!("{head}.{tail}"),
    }
}

/// Options of earlier versions, and those that replace them.
const REPLACED: [(&str, &str); 4] = [
    ("sibling_steps", "poisson_cycles"),
    ("mass_sheet", "sheet_passes"),
    ("group_solver", "poisson_cycles"),
    ("sor_tolerance", "poisson_cycles"),
];

/// Serde's message in the words of a recipe, and the option that the caret should point at.
fn explain(path: &str, message: &str, others: &[&str]) -> (String, Option<String>) {
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let last = path.split('.').next_back().map(|key| key.split('[').next().unwrap_or(key).to_owned());
    if message.starts_with("unknown field") {
        let name = quoted[0];
        // an option inside a nested map has no others
        let others = if path == name { others } else { &[] };
        let known: Vec<&str> = quoted[1..].iter().chain(others).copied().collect();
        let replaced = REPLACED.iter().find(|(old, new)| *old == name && known.contains(new));
        let hint = match replaced {
            Some((_, new)) => format!("which \"{new}\" replaces"),
            None => hint(name, &known, "known are"),
        };
        return (format!("unknown option \"{name}\", {hint}"), Some(name.into()));
    }
    if message.starts_with("missing field") {
        return (format!("the option \"{}\" is missing", join_path(path, quoted[0])), None);
    }
    if message.starts_with("unknown variant") {
        let (name, known) = (quoted[0], &quoted[1..]);
        let known: Vec<String> = known.iter().map(|k| format!("\"{k}\"")).collect();
        return (format!("{path}: \"{name}\" is not one of {}", known.join(", ")), last);
    }
    let words = in_words(message.split(" at line ").next().unwrap_or_default());
    if path == "." { (words, None) } else { (format!("{path}: {words}"), last) }
}

/// Serde's "invalid type: integer `3`, expected a string" as "the whole number 3, expected a text".
fn in_words(message: &str) -> String {
    if message.starts_with("data did not match any variant") {
        return "the value has none of the possible forms".into();
    }
    let (found, expected) = match message.split_once(", expected ") {
        Some((found, expected)) => (found, Some(expected)),
        None => (message, None),
    };
    let length = found.strip_prefix("invalid length ").map(|length| format!("{length} entries"));
    let found = found.trim_start_matches("invalid type: ").trim_start_matches("invalid value: ");
    let of_serde = [
        ("floating point", "the real number"),
        ("integer", "the whole number"),
        ("string", "the text"),
        ("boolean", "the truth value"),
        ("character", "the text"),
        ("null", "no value"),
        ("sequence", "a list"),
        ("map", "a map"),
    ];
    let renamed = of_serde.iter().find_map(|(serde, recipe)| Some(format!("{recipe}{}", found.strip_prefix(serde)?)));
    let found = length.or(renamed).unwrap_or_else(|| found.to_owned()).replace('`', "");
    match expected {
        Some(expected) => format!("{found}, expected {}", kind_in_words(expected)),
        None => found,
    }
}

/// A type that serde expects.
fn kind_in_words(expected: &str) -> String {
    let length = expected.strip_prefix("an array of length ").or_else(|| expected.strip_prefix("a tuple of size "));
    match expected {
        "f32" | "f64" => "a number".into(),
        "a boolean" => "true or false".into(),
        "a string" => "a text".into(),
        "string or map" => "a text or a map #{…}".into(),
        "a sequence" => "a list".into(),
        "a map" => "a map #{…}".into(),
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number from 0 on".into(),
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number".into(),
        _ if expected.starts_with("struct ") => "a map #{…}".into(),
        _ => length.map_or_else(|| expected.replace('`', ""), |length| format!("a list of {length}")),
    }
}

fn join_path(path: &str, key: &str) -> String {
    if path == "." { key.into() } else { format!("{path}.{key}") }
}
