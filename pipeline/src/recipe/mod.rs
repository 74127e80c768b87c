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
//! | [`expression`] | closures over a cell's fields, compiled |
//! | [`api`] | the functions a recipe may call |
//! | [`reference`], [`docs`] | how they are described; the reference of them all, from the source |

pub mod api;
pub mod docs;
pub mod engine;
pub mod error;
pub mod explain;
pub mod expression;
pub mod interpreter;
pub mod options;
pub mod parameters;
pub mod reference;
pub mod sandbox;
pub mod script;
pub mod source;

pub use engine::{Recipe, evaluate, parameters_of};
pub use error::{RecipeError, Refusal};
pub use interpreter::{Program, Session};
pub use parameters::{Parameter, Parameters};
pub use source::{Place, Source};
