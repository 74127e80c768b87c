//! `comove docs`: the reference of recipes, from the program itself.

use super::print;
use crate::cli;
use crate::error::PipelineError;
use crate::recipe::docs::render;

pub(super) fn docs(arguments: &cli::Docs) -> Result<(), PipelineError> {
    let cli::Subject::Recipes { definitions } = arguments.subject;
    print(if definitions { render::definitions() } else { render::markdown() }.trim_end())
}
