//! Options: where their structures are, what their types are called in a recipe, and tables of them.

use super::structures::{Item, Member, item};
use crate::recipe::api::finder::FinderChoice;
use crate::recipe::api::handles::Naming;
use crate::recipe::api::{CampaignOptions, analyses, background, closures, criteria, formula, hooks};
use crate::stage::density_pdf::PdfOptions;
use crate::stage::evolve::options::Extent;
use crate::stage::force_test::SolverOptions;
use crate::stage::halos::ProfileChoice;
use crate::stage::ic::{GaussianOptions, LoadOptions};
use crate::stage::mass_function::PredictionOptions;
use comove_analysis::figure::map::MapStyle;
use comove_analysis::halos::fof::FofOptions;
use comove_analysis::halos::mass_function::MassFunctionOptions;
use comove_analysis::halos::peaks::HaloOptions;
use comove_analysis::halos::profile::ProfileOptions;
use comove_analysis::lagrangian::LagrangianOptions;
use comove_analysis::map::MapOptions;
use comove_analysis::particles::ParticleOptions;
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

impl Structure {
    const fn new(name: &'static str, source: &'static str, default: fn() -> Value) -> Self {
        Self { name, source, default }
    }
}

/// What `T` is where a recipe says nothing.
fn default_of<T: Serialize + DeserializeOwned>() -> Value {
    with::<T>(json!({}))
}

/// What `T` is where a recipe says only `required`.
fn with<T: Serialize + DeserializeOwned>(required: Value) -> Value {
    let decoded: T = serde_json::from_value(required).expect("these are the required options");
    serde_json::to_value(decoded).expect("options are plain data")
}

const INSIDE: fn() -> Value = || Value::Null;
const LINES: &str = include_str!("../../../../analysis/src/figure/lines.rs");
const FIGURE: &str = include_str!("../../../../analysis/src/figure/mod.rs");
const DRAWN: &str = include_str!("../../stage/drawn.rs");
const EVOLVE: &str = include_str!("../../stage/evolve/options.rs");
const HOOKS: &str = include_str!("../api/hooks.rs");
const CRITERIA: &str = include_str!("../api/criteria.rs");
const INITIAL: &str = include_str!("../../stage/ic.rs");
const PROFILE: &str = include_str!("../../../../analysis/src/halos/profile.rs");
const PARAMETERS: &str = include_str!("../../../../sim/src/parameters.rs");
const HEATING: &str = include_str!("../../../../sim/src/source/heating.rs");
const BOUNDARY: &str = include_str!("../../../../sim/src/boundary.rs");
const MAP: &str = include_str!("../../../../analysis/src/map/mod.rs");
const FINDER: &str = include_str!("../../../../analysis/src/halos/peaks/mod.rs");
const WAYS: &str = include_str!("../api/finder.rs");
const FRIENDS: &str = include_str!("../../../../analysis/src/halos/fof/mod.rs");
const DEFINITIONS: &str = include_str!("../../../../analysis/src/halos/overdensity/mod.rs");
const PARTICLES: &str = include_str!("../../../../analysis/src/particles.rs");
const LAGRANGIAN: &str = include_str!("../../../../analysis/src/lagrangian.rs");
const REGION: &str = include_str!("../../../../analysis/src/region.rs");
const POWER: &str = include_str!("../../../../analysis/src/power_spectrum.rs");

macro_rules! problem {
    ($name:literal, $option:literal) => {
        Structure::new($name, include_str!(concat!("../../../../ic/src/problems/", $option, ".rs")), || {
            problems::build($option, &json!({})).expect("a problem has defaults").options()
        })
    };
}

const STRUCTURES: &[Structure] = &[
    Structure::new("CampaignOptions", include_str!("../api/mod.rs"), default_of::<CampaignOptions>),
    Structure::new("Naming", include_str!("../api/handles.rs"), default_of::<Naming>),
    Structure::new("CosmologyOptions", include_str!("../api/background.rs"), || {
        with::<background::CosmologyOptions>(background::required())
    }),
    Structure::new("GaussianOptions", INITIAL, || {
        with::<GaussianOptions>(json!({ "box_mpc_h": 1.0, "cells": 16, "z": 1.0 }))
    }),
    Structure::new("Zoom", include_str!("../../../../ic/src/zoom.rs"), INSIDE),
    Structure::new("LoadOptions", INITIAL, || with::<LoadOptions>(json!({ "box_mpc_h": 1.0, "z": 1.0 }))),
    Structure::new("FormulaOptions", include_str!("../api/formula.rs"), || {
        with::<formula::FormulaOptions>(json!({ "root": 16 }))
    }),
    Structure::new("Extent", EVOLVE, default_of::<Extent>),
    Structure::new("Outputs", EVOLVE, INSIDE),
    Structure::new("Checkpoints", EVOLVE, INSIDE),
    Structure::new("HookOptions", HOOKS, default_of::<hooks::HookOptions>),
    Structure::new("ObserveOptions", HOOKS, INSIDE),
    Structure::new("Steering", include_str!("../../../../sim/src/steering.rs"), default_of::<comove_sim::Steering>),
    Structure::new("RunParameters", PARAMETERS, default_of::<RunParameters>),
    Structure::new("Heating", HEATING, INSIDE),
    Structure::new("FixedGas", BOUNDARY, INSIDE),
    Structure::new("LohnerOptions", CRITERIA, default_of::<criteria::LohnerOptions>),
    Structure::new("BoxOptions", CRITERIA, INSIDE),
    Structure::new("BallOptions", CRITERIA, INSIDE),
    Structure::new("Common", include_str!("../api/analyses.rs"), default_of::<analyses::Common>),
    Structure::new("HaloOptions", FINDER, default_of::<HaloOptions>),
    Structure::new("FinderChoice", WAYS, default_of::<FinderChoice>),
    Structure::new("FofOptions", FRIENDS, default_of::<FofOptions>),
    Structure::new("ProfileChoice", include_str!("../../stage/halos.rs"), default_of::<ProfileChoice>),
    Structure::new(
        "MassFunctionOptions",
        include_str!("../../../../analysis/src/halos/mass_function/mod.rs"),
        default_of::<MassFunctionOptions>,
    ),
    Structure::new("PredictionOptions", include_str!("../../stage/mass_function.rs"), default_of::<PredictionOptions>),
    Structure::new("ProfileOptions", PROFILE, default_of::<ProfileOptions>),
    Structure::new("RegionOptions", REGION, default_of::<RegionOptions>),
    Structure::new("ParticleOptions", PARTICLES, default_of::<ParticleOptions>),
    Structure::new("LagrangianOptions", LAGRANGIAN, default_of::<LagrangianOptions>),
    Structure::new("HistogramOptions", REGION, default_of::<HistogramOptions>),
    Structure::new("PowerOptions", POWER, default_of::<PowerOptions>),
    Structure::new("MapOptions", MAP, default_of::<MapOptions>),
    Structure::new("MapStyle", include_str!("../../../../analysis/src/figure/map.rs"), default_of::<MapStyle>),
    Structure::new("PdfOptions", include_str!("../../stage/density_pdf.rs"), default_of::<PdfOptions>),
    Structure::new("SolverOptions", include_str!("../../stage/force_test.rs"), default_of::<SolverOptions>),
    Structure::new("ClosureOptions", include_str!("../api/closures.rs"), default_of::<closures::ClosureOptions>),
    Structure::new("DrawnTable", DRAWN, || {
        with::<crate::stage::drawn::DrawnTable>(json!({ "columns": [], "rows": [] }))
    }),
    Structure::new("Plot", DRAWN, || with::<crate::stage::drawn::Plot>(json!({ "curves": [] }))),
    Structure::new("PlotCurve", DRAWN, INSIDE),
    Structure::new("Mark", LINES, INSIDE),
    Structure::new("Side", include_str!("../../../../ic/src/problems/riemann.rs"), INSIDE),
    Structure::new(
        "PointMasses",
        include_str!("../../../../ic/src/problems/point_masses.rs"),
        default_of::<problems::PointMasses>,
    ),
    problem!("AcousticWave", "acoustic_wave"),
    problem!("ConvergingFlow", "converging_flow"),
    problem!("Jeans", "jeans"),
    problem!("Pancake", "pancake"),
    problem!("Sedov", "sedov"),
    problem!("ShockTube", "shock_tube"),
    problem!("SphericalCollapse", "spherical_collapse"),
    problem!("UniformFlow", "uniform_flow"),
];

/// Enumerations that options name, and their sources.
const ENUMERATIONS: &[(&str, &str)] = &[
    ("PowerSource", include_str!("../../../../ic/src/linear_power/mod.rs")),
    ("NoiseSign", include_str!("../../../../ic/src/gaussian_field/noise_file.rs")),
    ("LengthUnit", include_str!("../../../../ic/src/format/request.rs")),
    ("SpeciesTransfer", include_str!("../../../../ic/src/linear_power/species_transfer.rs")),
    ("Scheme", include_str!("../../../../kernels/src/scheme.rs")),
    ("Precision", PARAMETERS),
    ("Coordinates", PARAMETERS),
    ("TimeSteps", PARAMETERS),
    ("SweepOrder", PARAMETERS),
    ("GravityBoundary", BOUNDARY),
    ("Reference", FINDER),
    ("Centre", FINDER),
    ("FinderName", WAYS),
    ("MassDefinition", DEFINITIONS),
    ("Bins", POWER),
    ("Species", POWER),
    ("Axis", MAP),
    ("Logarithmic", DRAWN),
    ("Style", LINES),
    ("LegendPlace", LINES),
    ("Dash", FIGURE),
    ("FigureSize", FIGURE),
];

/// What a recipe writes for types that are decoded in a way of their own.
const WRITTEN: &[(&str, &str)] = &[
    ("f64", "number"),
    ("Option<ClosureText>", "closure"),
    ("bool", "`true` or `false`"),
    ("String", "text"),
    ("PathBuf", "file"),
    ("Extents", "whole number, or a list `[x, y, z]` of them"),
    (
        "LoadFormat",
        "`\"comove_ic\"`, `\"gadget\"`, `\"swift\"`, `\"grafic\"`, `\"monofonic\"`, `\"music\"`, `\"enzo\"` or `#{ um_ic: #{ order: \"vzyx\", precision: \"single\" } }`",
    ),
    ("Boundaries", "a boundary for all faces, or `#{ x: …, y: […, …] }` by axis"),
    ("Vec<Criterion>", "a criterion, or a list of criteria"),
    ("ScalarParameters", "list of names, or a map from names to mass fractions"),
    ("Vec<Vec<Value>>", "list of lists of numbers and texts"),
    ("Vec<[Option<f64>; 2]>", "list of `[x, y]`"),
    ("Vec<[f64; 2]>", "list of `[low, high]`"),
    ("Option<Value>", "number, list of numbers, or `\"all\"`"),
];

/// One row of a table of options.
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
pub(crate) fn table(name: &str) -> (String, Vec<Row>) {
    let structure = structure(name).unwrap_or_else(|| panic!("{name} is not among STRUCTURES"));
    let mut table = Vec::new();
    let text = rows(structure, "", &(structure.default)(), &mut table);
    (text, table)
}

/// The source of a structure of options.
pub(super) fn source(name: &str) -> Option<&'static str> {
    structure(name).map(|structure| structure.source)
}

fn structure(name: &str) -> Option<&'static Structure> {
    STRUCTURES.iter().find(|s| s.name == name)
}

fn read(source: &str, name: &str) -> Item {
    item(source, name).unwrap_or_else(|| panic!("the source of {name} does not hold it"))
}

fn rows(structure: &Structure, before: &str, default: &Value, table: &mut Vec<Row>) -> String {
    let found = read(structure.source, structure.name);
    for Member { name, kind, optional, text, .. } in found.members {
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
