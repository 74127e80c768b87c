//! JSON in one form, so that equal values have equal texts; and the values in it by their names.

use serde_json::Value;
use std::collections::BTreeMap;

/// JSON with sorted keys and no white space; numbers in their shortest exact form.
pub(crate) fn canonical(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort();
            let items: Vec<String> =
                keys.iter().map(|k| format!("{}:{}", Value::from(k.as_str()), canonical(&map[*k]))).collect();
            format!("{{{}}}", items.join(","))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(canonical).collect::<Vec<_>>().join(",")),
        other => other.to_string(),
    }
}

/// The values of a tree of maps, by their names joined with dots.
pub(crate) fn leaves(value: &Value) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    visit_leaves("", value, &|_| false, &mut |name, value| {
        if !(name.is_empty() && value.is_null()) {
            found.insert(name.to_owned(), value.clone());
        }
    });
    found
}

/// Calls `leaf` with every value of a tree of maps, and of those lists that `enters` says, and its name: the names and
/// numbers that lead to it, joined with dots.
pub(crate) fn visit_leaves(
    name: &str,
    value: &Value,
    enters: &dyn Fn(&[Value]) -> bool,
    leaf: &mut dyn FnMut(&str, &Value),
) {
    let below = |inner: &str| if name.is_empty() { inner.to_owned() } else { format!("{name}.{inner}") };
    match value {
        Value::Object(map) => map.iter().for_each(|(inner, value)| visit_leaves(&below(inner), value, enters, leaf)),
        Value::Array(list) if enters(list) => {
            let entries = list.iter().enumerate();
            entries.for_each(|(n, value)| visit_leaves(&below(&n.to_string()), value, enters, leaf));
        }
        single => leaf(name, single),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn canonical_json_is_sorted() {
        assert_eq!(
            canonical(&json!({"b": [1, 0.1], "a": {"d": null, "c": "x"}})),
            r#"{"a":{"c":"x","d":null},"b":[1,0.1]}"#
        );
    }
}
