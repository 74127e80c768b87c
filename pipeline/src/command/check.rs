//! `comove check`: evaluates a recipe.

use super::{given, print, read};
use crate::campaign::Walk;
use crate::cli;
use crate::error::PipelineError;
use crate::recipe;
use std::path::Path;

/// Prints the stages of a recipe that is right.
pub(super) fn check(arguments: cli::Recipe) -> Result<(), PipelineError> {
    let recipe = recipe::evaluate(read(&arguments.recipe)?, given(arguments.parameters)?)?;
    print(&format!("campaign \"{}\": {} stages", recipe.campaign.name, recipe.campaign.stages.len()));
    let walk = Walk::new(&recipe.campaign, Path::new(""));
    for n in walk.positions() {
        let stage = walk.stage(n);
        print(&format!("{:>3}  {:<16} {}: {}", n + 1, stage.kind(), walk.name(n), stage.describe()));
    }
    Ok(())
}
