//! `comove check`: evaluates a recipe.

use super::{print, given, read};
use crate::cli;
use crate::error::PipelineError;
use crate::recipe;

/// Prints the stages of a recipe that is right.
pub(super) fn check(arguments: cli::Recipe) -> Result<(), PipelineError> {
    let recipe = recipe::evaluate(read(&arguments.recipe)?, given(arguments.parameters)?)?;
    print(&format!("campaign \"{}\": {} stages", recipe.campaign.name, recipe.campaign.stages.len()));
    for (n, node) in recipe.campaign.stages.iter().enumerate() {
        print(&format!("{:>3}  {:<16} {}", n + 1, node.stage().kind(), node.stage().describe()));
    }
    Ok(())
}
