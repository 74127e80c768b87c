//! Errors that a function of a recipe meets on its way.

use crate::error::PipelineError;
use crate::recipe::error::Refusal;
use rhai::EvalAltResult;

/// The error of a function that has met another one, whose exit code stays.
pub(super) fn failure(function: &str, error: &PipelineError) -> Box<EvalAltResult> {
    Refusal::caused_by(function, error, error.exit_code())
}
