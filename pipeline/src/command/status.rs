//! `comove status`: how far a campaign is.

use super::{print, plan, stored};
use crate::error::PipelineError;
use crate::folder::CampaignFolder;
use crate::ledger::{Event, history};
use crate::lock::Lock;
use std::path::Path;

/// Prints it.
pub(super) fn status(dir: &Path) -> Result<(), PipelineError> {
    let folder = CampaignFolder::open(dir)?;
    let (history, _) = history::read(&folder.ledger())?;
    let (recipe, _) = stored(&folder)?;
    let now = match (Lock::holder(folder.path()), &history.ending) {
        (Some(holder), _) => format!("running: {holder}"),
        (None, Some(Event::CampaignFinished {})) => "finished".into(),
        (None, Some(Event::CampaignInterrupted { by })) => format!("stopped by {by}; `comove resume` goes on"),
        (None, _) => "not running and not finished; `comove resume` goes on".into(),
    };
    print(&format!("campaign \"{}\" in {}: {now}", recipe.campaign.name, dir.display()));
    for line in plan::lines(&recipe, &history, Some(&folder))? {
        print(&line);
    }
    Ok(())
}
