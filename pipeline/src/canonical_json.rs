//! JSON in one form, so that equal values have equal texts.

use serde_json::Value;

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
