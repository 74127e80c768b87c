//! `comove check`: evaluates a recipe.

use super::{given, print, read};
use crate::campaign::CampaignResolver;
use crate::error::PipelineError;
use crate::{cli, recipe};
use std::path::Path;

/// Prints the stages of a recipe that is right, and its warnings.
pub(super) fn check(arguments: cli::Recipe) -> Result<(), PipelineError> {
    let recipe = recipe::evaluate(read(&arguments.recipe)?, given(arguments.parameters)?)?;
    print(&format!("campaign \"{}\": {} stages", recipe.campaign.name, recipe.campaign.stages.len()))?;
    let resolver = CampaignResolver::new(&recipe.campaign, Path::new(""));
    for n in resolver.positions() {
        let stage = resolver.stage(n);
        print(&format!("{:>3}  {:<16} {}: {}", n + 1, stage.kind(), resolver.name(n), stage.describe()))?;
    }
    recipe.warnings.iter().for_each(|warning| print(&format!("warning: {warning}")));
    Ok(())
}
