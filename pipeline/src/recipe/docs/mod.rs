//! The reference of what a recipe may say, from its source: `comove docs recipes`.
//!
//! Functions and types are described beside their registration in [`super::api`]; options are the fields of the structures
//! that they are decoded to, with their doc comments and defaults.
//!
//! | module | what it holds |
//! |---|---|
//! | [`structures`] | a reader of those structures' sources |
//! | [`options`] | where they are, what their types are called in a recipe, and tables of options |
//! | [`render`] | the reference as Markdown, and as definitions for editors |

pub(crate) mod options;
pub(crate) mod render;
pub(crate) mod structures;

pub(crate) use super::reference::{Callers, Function, Part, Type};

use super::api::{
    self, analyses, background, campaign_view, closures, criteria, drawing, field_view, formula, hooks, initial,
    run_view, runs, snapshot_view,
};

/// The reference.
pub const PARTS: &[Part] = &[
    Part { heading: "Parameters", callers: Callers::All, functions: api::PARAMETERS, types: &[] },
    Part { heading: "The recipe", callers: Callers::Recipes, functions: api::FUNCTIONS, types: &[] },
    Part {
        heading: "Cosmology",
        callers: Callers::All,
        functions: background::FUNCTIONS,
        types: &[background::COSMOLOGY],
    },
    Part { heading: "Initial conditions", callers: Callers::Recipes, functions: initial::FUNCTIONS, types: &[] },
    Part { heading: "Starts from a formula", callers: Callers::Recipes, functions: formula::FUNCTIONS, types: &[] },
    Part { heading: "Runs", callers: Callers::Recipes, functions: runs::FUNCTIONS, types: &[hooks::STEP] },
    Part { heading: "Refinement criteria", callers: Callers::Recipes, functions: criteria::FUNCTIONS, types: &[] },
    Part { heading: "Analyses", callers: Callers::Recipes, functions: analyses::FUNCTIONS, types: &[] },
    Part {
        heading: "Closures",
        callers: Callers::Recipes,
        functions: closures::FUNCTIONS,
        types: &[snapshot_view::SNAPSHOT, field_view::FIELD, run_view::RUN_OUTPUTS, closures::RESULT],
    },
    Part {
        heading: "Scripts",
        callers: Callers::Scripts,
        functions: drawing::FUNCTIONS,
        types: &[campaign_view::CAMPAIGN, run_view::CAMPAIGN_RUN],
    },
];

/// Every function that recipes, or scripts, may call and that is no method.
pub(crate) fn functions(callers: Callers) -> impl Iterator<Item = &'static Function> {
    PARTS.iter().filter(move |part| callers.are_among(part.callers)).flat_map(|part| part.functions)
}

pub(crate) fn types() -> impl Iterator<Item = &'static Type> {
    PARTS.iter().flat_map(|part| part.types)
}

/// Every method of a type.
pub(crate) fn methods() -> impl Iterator<Item = &'static Function> {
    types().flat_map(|kind| kind.methods)
}
