//! `comove check`: evaluates a recipe, and on request rehearses it.

use super::{given, print, read};
use crate::campaign::CampaignResolver;
use crate::error::PipelineError;
use crate::rehearsal::rehearse;
use crate::terminal::progress::Progress;
use crate::{cli, recipe};
use std::path::Path;

/// Prints the stages of a recipe that is right, and its warnings.
pub(super) fn check(arguments: cli::Check) -> Result<(), PipelineError> {
    let cli::Check { recipe: cli::Recipe { recipe, parameters }, rehearse: is_rehearsed } = arguments;
    let recipe = recipe::evaluate(read(&recipe)?, given(parameters)?)?;
    print(&format!("campaign \"{}\": {} stages", recipe.campaign.name, recipe.campaign.stages.len()))?;
    let resolver = CampaignResolver::new(&recipe.campaign, Path::new(""));
    for n in resolver.positions() {
        let stage = resolver.stage(n);
        print(&format!("{:>3}  {:<16} {}: {}", n + 1, stage.kind(), resolver.name(n), stage.describe()))?;
    }
    recipe.warnings.iter().try_for_each(|warning| print(&format!("warning: {warning}")))?;
    if is_rehearsed {
        let rehearsal = rehearse(&recipe, &Progress::on_terminal())?;
        rehearsal.not_rehearsed.iter().try_for_each(|note| print(&format!("not rehearsed: {note}")))?;
        print(&rehearsal.to_string())?;
    }
    Ok(())
}
