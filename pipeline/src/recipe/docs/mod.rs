//! The reference of what a recipe may say, from its source: `comove docs recipes`.
//!
//! Functions and types are described beside their registration in [`super::api`]; options are the fields of the structures
//! that they are decoded to, with their doc comments and defaults.
//!
//! | module | what it holds |
//! |---|---|
//! | [`structures`] | a reader of those structures' sources |
//! | [`options`] | where they are, what their types are called in a recipe, and tables of options |
//! | [`records`] | the members of records that stages write, with their units |
//! | [`render`] | the reference as Markdown, and as definitions for editors |

pub(crate) mod options;
pub(crate) mod records;
pub(crate) mod render;
pub(crate) mod structures;

pub(crate) use super::reference::{Callers, Function, Member, Needs, Part, Type};

use super::api::{
    self, analyses, background, campaign_view, closures, criteria, drawing, field_view, formula, hooks, initial,
    run_view, runs, snapshot_view,
};

/// The reference.
pub const PARTS: &[Part] = &[
    part("Parameters", Callers::All, api::PARAMETERS, &[]),
    part("The recipe", Callers::Recipes, api::FUNCTIONS, &[]),
    part("Cosmology", Callers::All, background::FUNCTIONS, &[background::COSMOLOGY]),
    part("Initial conditions", Callers::Recipes, initial::FUNCTIONS, &[]),
    part("Starts from a formula", Callers::Recipes, formula::FUNCTIONS, &[]),
    part("Runs", Callers::Recipes, runs::FUNCTIONS, &[hooks::STEP]),
    part("Refinement criteria", Callers::Recipes, criteria::FUNCTIONS, &[]),
    part("Analyses", Callers::Recipes, analyses::FUNCTIONS, &[]),
    part(
        "Closures",
        Callers::Recipes,
        closures::FUNCTIONS,
        &[snapshot_view::SNAPSHOT, field_view::FIELD, run_view::RUN_OUTPUTS, closures::RESULT],
    ),
    part("Scripts", Callers::Scripts, drawing::FUNCTIONS, &[campaign_view::CAMPAIGN, run_view::CAMPAIGN_RUN]),
];

const fn part(heading: &'static str, callers: Callers, functions: &'static [Function], types: &'static [Type]) -> Part {
    Part { heading, callers, functions, types }
}

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
