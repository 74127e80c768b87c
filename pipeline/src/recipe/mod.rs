//! The Rhai surface: from a recipe's text to a campaign.
//!
//! | module | what it holds |
//! |---|---|
//! | [`engine`] | the strict engine and [`evaluate`] |
//! | [`script`] | scripts, which look at what a campaign has left |
//! | [`sandbox`] | what a script may take, and how it is stopped |
//! | [`parameters`] | `param` and `-p` |
//! | [`options`] | `#{…}` to Rust structures |
//! | [`source`] | the text: places, keys, closures |
//! | [`error`] | messages with a line and a caret |
//! | [`expression`] | closures over a cell's fields, compiled |
//! | [`api`] | the functions a recipe may call |
//! | [`docs`] | the reference of them all, from the source |

pub mod api;
pub mod docs;
pub mod engine;
pub mod error;
pub mod expression;
pub mod options;
pub mod parameters;
pub mod sandbox;
pub mod script;
pub mod source;

pub use engine::{Program, Recipe, Session, evaluate, parameters_of};
pub use error::{RecipeError, Refusal};
pub use parameters::{Parameter, Parameters};
pub use source::{Place, Source};
