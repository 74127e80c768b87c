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

pub mod options;
pub mod render;
pub mod structures;

use super::api::{
    analyses, background, closures, criteria, field_view, formula, hooks, initial, run_view, runs, snapshot_view,
};

/// A function of a recipe, or a method of one of its types.
#[derive(Debug)]
pub struct Function {
    /// Its name.
    pub name: &'static str,
    /// The ways to call it: `name(argument: Type) -> Type`, the types as definitions for editors name them.
    pub signatures: &'static [&'static str],
    /// How it is written, for messages; a method has none.
    pub usage: &'static str,
    /// What it does, as Markdown.
    pub text: &'static str,
    /// The structures that its options are decoded to.
    pub options: &'static [&'static str],
}

/// A type of a recipe that has properties or methods.
#[derive(Debug)]
pub struct Type {
    /// Its name in signatures.
    pub name: &'static str,
    /// What it is, as Markdown.
    pub text: &'static str,
    /// Names, types and meanings of its properties.
    pub properties: &'static [(&'static str, &'static str, &'static str)],
    /// Its methods.
    pub methods: &'static [Function],
}

/// A part of the reference.
#[derive(Debug)]
pub struct Part {
    /// Its heading.
    pub heading: &'static str,
    /// Functions.
    pub functions: &'static [Function],
    /// Types.
    pub types: &'static [Type],
}

/// The reference.
pub const PARTS: &[Part] = &[
    Part { heading: "The recipe", functions: super::api::FUNCTIONS, types: &[] },
    Part { heading: "Cosmology", functions: background::FUNCTIONS, types: &[background::COSMOLOGY] },
    Part { heading: "Initial conditions", functions: initial::FUNCTIONS, types: &[] },
    Part { heading: "Starts from a formula", functions: formula::FUNCTIONS, types: &[] },
    Part { heading: "Runs", functions: runs::FUNCTIONS, types: &[hooks::STEP] },
    Part { heading: "Refinement criteria", functions: criteria::FUNCTIONS, types: &[] },
    Part { heading: "Analyses", functions: analyses::FUNCTIONS, types: &[] },
    Part {
        heading: "Closures",
        functions: closures::FUNCTIONS,
        types: &[snapshot_view::SNAPSHOT, field_view::FIELD, run_view::RUN_OUTPUTS, closures::RESULT],
    },
];

/// Every function that is no method.
pub fn functions() -> impl Iterator<Item = &'static Function> {
    PARTS.iter().flat_map(|part| part.functions)
}

/// Every type.
pub fn types() -> impl Iterator<Item = &'static Type> {
    PARTS.iter().flat_map(|part| part.types)
}

/// Every method of a type.
pub fn methods() -> impl Iterator<Item = &'static Function> {
    types().flat_map(|kind| kind.methods)
}
