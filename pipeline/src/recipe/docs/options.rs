//! Options: where their structures are, what their types are called in a recipe, and tables of them.

use super::structures::{Item, Member, item};
use crate::recipe::api::handles::Naming;
use crate::recipe::api::{CampaignOptions, analyses, background, closures, criteria, formula, hooks};
use crate::stage::density_pdf::PdfOptions;
use crate::stage::evolve::options::Extent;
use crate::stage::force_test::SolverOptions;
use crate::stage::halos::ProfileChoice;
use crate::stage::ic::{GaussianOptions, LoadOptions};
use comove_analysis::figure::map::MapStyle;
use comove_analysis::halo_finder::HaloOptions;
use comove_analysis::halo_profile::ProfileOptions;
use comove_analysis::map::MapOptions;
use comove_analysis::power_spectrum::PowerOptions;
use comove_analysis::region::{HistogramOptions, RegionOptions};
use comove_ic::problems;
use comove_sim::RunParameters;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// A structure that options are decoded to.
struct Structure {
    name: &'static str,
    source: &'static str,
    /// One with nothing said but what must be, as JSON; `null` where a table of it stands inside another's.
    default: fn() -> Value,
}

/// What `T` is where a recipe says only `required`.
fn default_of<T: Serialize + DeserializeOwned>(required: Value) -> Value {
    let decoded: T = serde_json::from_value(required).expect("these are the required options");
    serde_json::to_value(decoded).expect("options are plain data")
}

const INSIDE: fn() -> Value = || Value::Null;
const DRAWN: &str = include_str!("../../stage/drawn.rs");
const EVOLVE: &str = include_str!("../../stage/evolve/options.rs");
const HOOKS: &str = include_str!("../api/hooks.rs");
const CRITERIA: &str = include_str!("../api/criteria.rs");
const INITIAL: &str = include_str!("../../stage/ic.rs");
const PROFILE: &str = include_str!("../../../../analysis/src/halo_profile.rs");
const PARAMETERS: &str = include_str!("../../../../sim/src/parameters.rs");
const BOUNDARY: &str = include_str!("../../../../sim/src/boundary.rs");
const MAP: &str = include_str!("../../../../analysis/src/map/mod.rs");
const FINDER: &str = include_str!("../../../../analysis/src/halo_finder/mod.rs");
const REGION: &str = include_str!("../../../../analysis/src/region.rs");
const POWER: &str = include_str!("../../../../analysis/src/power_spectrum.rs");

macro_rules! problem {
    ($name:literal, $option:literal, $file:literal) => {
        Structure {
            name: $name,
            source: include_str!(concat!("../../../../ic/src/problems/", $file, ".rs")),
            default: || problems::build($option, &json!({})).expect("a problem has defaults").options(),
        }
    };
}

const STRUCTURES: &[Structure] = &[
    Structure {
        name: "CampaignOptions",
        source: include_str!("../api/mod.rs"),
        default: || default_of::<CampaignOptions>(json!({})),
    },
    Structure {
        name: "Naming",
        source: include_str!("../api/handles.rs"),
        default: || default_of::<Naming>(json!({})),
    },
    Structure {
        name: "CosmologyOptions",
        source: include_str!("../api/background.rs"),
        default: || default_of::<background::CosmologyOptions>(background::required()),
    },
    Structure {
        name: "GaussianOptions",
        source: INITIAL,
        default: || default_of::<GaussianOptions>(json!({ "box_mpc_h": 1.0, "cells": 16, "z": 1.0, "seed": 1 })),
    },
    Structure {
        name: "LoadOptions",
        source: INITIAL,
        default: || {
            default_of::<LoadOptions>(json!({ "box_mpc_h": 1.0, "cells": 16, "z": 1.0, "format": "comove_ic" }))
        },
    },
    Structure {
        name: "FormulaOptions",
        source: include_str!("../api/formula.rs"),
        default: || default_of::<formula::FormulaOptions>(json!({ "root": 16 })),
    },
    Structure { name: "Extent", source: EVOLVE, default: || default_of::<Extent>(json!({})) },
    Structure { name: "Outputs", source: EVOLVE, default: INSIDE },
    Structure { name: "Checkpoints", source: EVOLVE, default: INSIDE },
    Structure { name: "HookOptions", source: HOOKS, default: || default_of::<hooks::HookOptions>(json!({})) },
    Structure { name: "ObserveOptions", source: HOOKS, default: INSIDE },
    Structure {
        name: "Steering",
        source: include_str!("../../../../sim/src/steering.rs"),
        default: || default_of::<comove_sim::Steering>(json!({})),
    },
    Structure { name: "RunParameters", source: PARAMETERS, default: || default_of::<RunParameters>(json!({})) },
    Structure { name: "FixedGas", source: BOUNDARY, default: INSIDE },
    Structure { name: "LohnerOptions", source: CRITERIA, default: || default_of::<criteria::LohnerOptions>(json!({})) },
    Structure { name: "BoxOptions", source: CRITERIA, default: INSIDE },
    Structure { name: "BallOptions", source: CRITERIA, default: INSIDE },
    Structure {
        name: "Common",
        source: include_str!("../api/analyses.rs"),
        default: || default_of::<analyses::Common>(json!({})),
    },
    Structure { name: "HaloOptions", source: FINDER, default: || default_of::<HaloOptions>(json!({})) },
    Structure {
        name: "ProfileChoice",
        source: include_str!("../../stage/halos.rs"),
        default: || default_of::<ProfileChoice>(json!({})),
    },
    Structure { name: "ProfileOptions", source: PROFILE, default: || default_of::<ProfileOptions>(json!({})) },
    Structure { name: "RegionOptions", source: REGION, default: || default_of::<RegionOptions>(json!({})) },
    Structure { name: "HistogramOptions", source: REGION, default: || default_of::<HistogramOptions>(json!({})) },
    Structure { name: "PowerOptions", source: POWER, default: || default_of::<PowerOptions>(json!({})) },
    Structure { name: "MapOptions", source: MAP, default: || default_of::<MapOptions>(json!({})) },
    Structure {
        name: "MapStyle",
        source: include_str!("../../../../analysis/src/figure/map.rs"),
        default: || default_of::<MapStyle>(json!({})),
    },
    Structure {
        name: "PdfOptions",
        source: include_str!("../../stage/density_pdf.rs"),
        default: || default_of::<PdfOptions>(json!({})),
    },
    Structure {
        name: "SolverOptions",
        source: include_str!("../../stage/force_test.rs"),
        default: || default_of::<SolverOptions>(json!({})),
    },
    Structure {
        name: "ClosureOptions",
        source: include_str!("../api/closures.rs"),
        default: || default_of::<closures::ClosureOptions>(json!({})),
    },
    Structure {
        name: "DrawnTable",
        source: DRAWN,
        default: || default_of::<crate::stage::drawn::DrawnTable>(json!({ "columns": [], "rows": [] })),
    },
    Structure {
        name: "Plot",
        source: DRAWN,
        default: || default_of::<crate::stage::drawn::Plot>(json!({ "curves": [] })),
    },
    Structure { name: "PlotCurve", source: DRAWN, default: INSIDE },
    Structure { name: "PlotMark", source: DRAWN, default: INSIDE },
    Structure { name: "Side", source: include_str!("../../../../ic/src/problems/riemann.rs"), default: INSIDE },
    Structure {
        name: "PointMasses",
        source: include_str!("../../../../ic/src/problems/point_masses.rs"),
        default: || default_of::<problems::PointMasses>(json!({})),
    },
    problem!("AcousticWave", "acoustic_wave", "acoustic_wave"),
    problem!("ConvergingFlow", "converging_flow", "converging_flow"),
    problem!("Jeans", "jeans", "jeans"),
    problem!("Pancake", "pancake", "pancake"),
    problem!("Sedov", "sedov", "sedov"),
    problem!("ShockTube", "shock_tube", "shock_tube"),
    problem!("SphericalCollapse", "spherical_collapse", "spherical_collapse"),
    problem!("UniformFlow", "uniform_flow", "uniform_flow"),
];

/// Enumerations that options name, and their sources.
const ENUMERATIONS: &[(&str, &str)] = &[
    ("PowerSource", include_str!("../../../../ic/src/linear_power/mod.rs")),
    ("Scheme", include_str!("../../../../kernels/src/scheme.rs")),
    ("Precision", PARAMETERS),
    ("Coordinates", PARAMETERS),
    ("TimeSteps", PARAMETERS),
    ("SweepOrder", PARAMETERS),
    ("GroupSolver", PARAMETERS),
    ("GravityBoundary", BOUNDARY),
    ("Reference", FINDER),
    ("Centre", FINDER),
    ("Bins", POWER),
    ("Axis", MAP),
    ("Logarithmic", DRAWN),
    ("PlotStyle", DRAWN),
];

/// What a recipe writes for types that are decoded in a way of their own.
const WRITTEN: &[(&str, &str)] = &[
    ("f64", "number"),
    ("Option<ClosureText>", "closure"),
    ("bool", "`true` or `false`"),
    ("String", "text"),
    ("PathBuf", "file"),
    ("Extents", "whole number, or a list `[x, y, z]` of them"),
    ("LoadFormat", "`\"comove_ic\"` or `#{ um_ic: #{ order: \"vzyx\", precision: \"single\" } }`"),
    ("Boundaries", "a boundary for all faces, or `#{ x: …, y: […, …] }` by axis"),
    ("Vec<Criterion>", "a criterion, or a list of criteria"),
    ("ScalarParameters", "list of names, or a map from names to mass fractions"),
    ("Vec<Vec<Value>>", "list of lists of numbers and texts"),
    ("Vec<[Option<f64>; 2]>", "list of `[x, y]`"),
    ("Option<Value>", "number, list of numbers, or `\"all\"`"),
];

/// One row of a table of options.
#[derive(Debug)]
pub(crate) struct Row {
    /// Its name; inside a map or a list of maps with what is around it: `outputs.at_z`, `curves[].points`.
    pub name: String,
    /// What a recipe writes.
    pub written: String,
    /// Its default as a recipe would write it: empty for none, `None` if the option must be there.
    pub default: Option<String>,
    /// What it is.
    pub text: String,
}

/// What a structure is, and its options as rows.
///
/// # Panics
/// If the structure is not listed here, or its source has a type that is not: a test sees to it.
pub(crate) fn table(name: &str) -> (String, Vec<Row>) {
    let structure = structure(name).unwrap_or_else(|| panic!("{name} is not among STRUCTURES"));
    let mut table = Vec::new();
    let text = rows(structure, "", &(structure.default)(), &mut table);
    (text, table)
}

fn structure(name: &str) -> Option<&'static Structure> {
    STRUCTURES.iter().find(|s| s.name == name)
}

fn read(source: &str, name: &str) -> Item {
    item(source, name).unwrap_or_else(|| panic!("the source of {name} does not hold it"))
}

fn rows(structure: &Structure, before: &str, default: &Value, table: &mut Vec<Row>) -> String {
    let found = read(structure.source, structure.name);
    for Member { name, kind, optional, text } in found.members {
        let value = &default[&name];
        let inside = inside(&kind);
        let shown = match inside {
            _ if !optional => None,
            // its own options say it
            Some(inner) if value.is_object() && all_optional(inner) => Some(String::new()),
            _ => Some(rhai(value)),
        };
        let whole = format!("{before}{name}");
        table.push(Row { name: whole.clone(), written: written(&kind), default: shown, text });
        if let Some(inner) = inside {
            let list = if kind.starts_with("Vec<") { "[]" } else { "" };
            rows(inner, &format!("{whole}{list}."), value, table);
        }
    }
    found.text
}

/// The structure that a field's type is, or is a list of.
fn inside(kind: &str) -> Option<&'static Structure> {
    let kind = kind.strip_prefix("Option<").or(kind.strip_prefix("Vec<")).map_or(kind, |k| k.trim_end_matches('>'));
    structure(kind)
}

fn all_optional(structure: &Structure) -> bool {
    read(structure.source, structure.name).members.iter().all(|member| member.optional)
}

/// What a recipe writes for a Rust type.
fn written(kind: &str) -> String {
    if let Some((_, words)) = WRITTEN.iter().find(|(known, _)| *known == kind) {
        return (*words).to_owned();
    }
    if ["u8", "u16", "u32", "NonZeroU32", "NonZeroU64", "u64", "usize", "i32", "i64"].contains(&kind) {
        return "whole number".into();
    }
    if let Some(inner) = kind.strip_prefix("Option<").and_then(|k| k.strip_suffix('>')) {
        return written(inner);
    }
    if structure(kind).is_some() {
        return "map".into();
    }
    if let Some(inner) = kind.strip_prefix("Vec<").and_then(|k| k.strip_suffix('>')) {
        return if structure(inner).is_some() { "list of maps".into() } else { format!("list of {}s", written(inner)) };
    }
    if let Some((inner, count)) = kind.strip_prefix('[').and_then(|k| k.strip_suffix(']')?.split_once("; ")) {
        return format!("list of {count} {}s", written(inner));
    }
    let name = kind.rsplit("::").next().unwrap_or(kind);
    let (_, source) =
        ENUMERATIONS.iter().find(|(known, _)| *known == name).unwrap_or_else(|| panic!("what is {kind}?"));
    let variant = |Member { name, kind, .. }: Member| match kind.as_str() {
        "" => format!("`\"{name}\"`"),
        kind => format!("`#{{ {name}: {} }}`", written(kind)),
    };
    read(source, name).members.into_iter().map(variant).collect::<Vec<_>>().join(", ")
}

/// JSON as a recipe writes it; nothing for nothing.
fn rhai(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) if text.is_empty() => String::new(),
        Value::Number(number) if number.as_f64() == Some(5.0 / 3.0) => "5.0/3.0".into(),
        Value::Array(list) => format!("[{}]", list.iter().map(rhai).collect::<Vec<_>>().join(", ")),
        Value::Object(map) => {
            let entries: Vec<String> = map.iter().map(|(name, value)| format!("{name}: {}", rhai(value))).collect();
            format!("#{{ {} }}", entries.join(", "))
        }
        Value::Number(number) => match number.as_f64() {
            Some(real) if number.is_f64() && real == real.trunc() && real.abs() < 1e15 => format!("{real}"),
            _ => number.to_string(),
        },
        other => other.to_string(),
    }
}
