//! `comove report`: the HTML page, from what the stages have left.

use super::print;
use super::stored;
use crate::error::PipelineError;
use crate::folder::CampaignFolder;
use crate::ledger::history;
use crate::recipe::Recipe;
use std::path::{Path, PathBuf};

/// Writes the report of the campaign in a folder.
pub(super) fn report(dir: &Path) -> Result<(), PipelineError> {
    let folder = CampaignFolder::open(dir)?;
    let (recipe, _) = stored(&folder)?;
    print(&format!("{}", write(&recipe, &folder, &history::read(&folder.ledger())?.0)?.display()));
    Ok(())
}

pub(super) fn write(recipe: &Recipe, folder: &CampaignFolder, history: &crate::ledger::History) -> Result<PathBuf, PipelineError> {
    Ok(folder.report())
}
