//! The Rhai surface: from a recipe's text to a campaign.
//!
//! | module | what it holds |
//! |---|---|
//! | [`interpreter`] | Rhai without the bindings: the strict engine, limits, closures that are called later |
//! | [`engine`] | [`evaluate`]: a recipe to a campaign |
//! | [`script`] | scripts, which look at what a campaign has left |
//! | [`sandbox`] | what a script may take, and how it is stopped |
//! | [`parameters`] | `param` and `-p` |
//! | [`options`] | `#{…}` to Rust structures |
//! | [`source`] | the text: places, keys, closures |
//! | [`error`], [`explain`] | messages with a line and a caret; what was probably meant |
//! | [`closure_members`], [`step_members`] | members of a step or snapshot that a closure reads, before it is called |
//! | [`expression`] | closures over a cell's fields, compiled |
//! | [`api`] | the functions a recipe may call |
//! | [`reference`], [`docs`] | how they are described; the reference of them all, from the source |

pub(crate) mod api;
pub(crate) mod closure_members;
pub(crate) mod docs;
pub(crate) mod engine;
pub(crate) mod error;
pub(crate) mod explain;
pub(crate) mod expression;
pub(crate) mod interpreter;
pub(crate) mod options;
pub(crate) mod parameters;
pub(crate) mod reference;
pub(crate) mod sandbox;
pub(crate) mod script;
pub(crate) mod source;
pub(crate) mod step_members;

pub(crate) use engine::{Recipe, evaluate, parameters_of};
pub(crate) use error::{Cause, RecipeError};
pub(crate) use interpreter::Program;
pub(crate) use source::{Place, Source};
