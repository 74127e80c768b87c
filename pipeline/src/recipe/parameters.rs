//! A recipe's own parameters: declared by `param("name", default, "help")`, set by `-p name=value`.

use super::error::{nearest, plain};
use rhai::Dynamic;
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
pub(crate) struct Parameter {
    pub name: String,
    /// Its default as a recipe would write it.
    pub default: String,
    /// The type that a value must have, in words.
    pub kind: &'static str,
    /// What it is for.
    pub help: String,
    /// Its value: the default, or what the command line says.
    pub value: Dynamic,
}

/// What the command line sets, and what the recipe has declared so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parameters {
    pub given: BTreeMap<String, String>,
    /// In the order of declaration.
    pub declared: Vec<Parameter>,
}

impl Parameters {
    /// Declares a parameter and returns its value: the default, or what the command line says.
    pub(crate) fn declare(&mut self, name: &str, default: &Dynamic, help: &str) -> Result<Dynamic, String> {
        if self.declared.iter().any(|p| p.name == name) {
            return Err(format!("parameter \"{name}\" is declared twice; remove one param call"));
        }
        let kind = match default.type_name() {
            "i64" => "a whole number",
            "f64" => "a real number",
            "bool" => "true or false",
            "string" => "a text",
            other => {
                return Err(format!(
                    "the default of \"{name}\" is {}; it must be a number, true, false or a text",
                    plain(other)
                ));
            }
        };
        let shown = if default.is_string() { format!("\"{default}\"") } else { default.to_string() };
        let value = default.clone();
        self.declared.push(Parameter { name: name.into(), default: shown.clone(), kind, help: help.into(), value });
        let Some(text) = self.given.get(name) else { return Ok(default.clone()) };
        let parsed: Option<Dynamic> = match kind {
            "a whole number" => text.parse::<i64>().ok().map(Into::into),
            "a real number" => text.parse::<f64>().ok().filter(|x| x.is_finite()).map(Into::into),
            "true or false" => text.parse::<bool>().ok().map(Into::into),
            _ => Some(text.clone().into()),
        };
        let value = parsed.ok_or_else(|| {
            let remedy = match kind == "a whole number" && text.parse::<f64>().is_ok_and(f64::is_finite) {
                true => format!("; for real numbers write the default {shown}.0 in the recipe"),
                false => String::new(),
            };
            format!("-p {name}={text}: {name} is {kind} ({shown} by default){remedy}")
        })?;
        self.declared.last_mut().expect("just declared").value = value.clone();
        Ok(value)
    }

    /// Checks that everything given was declared.
    pub(crate) fn check(&self) -> Result<(), String> {
        let names: Vec<&str> = self.declared.iter().map(|p| p.name.as_str()).collect();
        let Some(unknown) = self.given.keys().find(|name| !names.contains(&name.as_str())) else { return Ok(()) };
        let hint = match nearest(unknown, names.iter().copied()) {
            Some(near) => format!("did you mean \"{near}\"? "),
            None => String::new(),
        };
        let list = if names.is_empty() { "none".into() } else { names.join(", ") };
        Err(format!("-p {unknown}: unknown parameter; {hint}the recipe declares: {list}"))
    }

    /// The list for `comove run RECIPE --help`.
    pub(crate) fn help(&self) -> String {
        if self.declared.is_empty() {
            return "This recipe declares no parameters.\n".into();
        }
        let width = self.declared.iter().map(|p| p.name.len() + p.default.len() + 1).max().unwrap_or(0);
        let line =
            |p: &Parameter| format!("  -p {:width$}  {} ({})\n", format!("{}={}", p.name, p.default), p.help, p.kind);
        format!(
            "Parameters of this recipe, with their defaults:\n{}",
            self.declared.iter().map(line).collect::<String>()
        )
    }
}
