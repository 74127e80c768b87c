//! `comove status`: how far a campaign is.

use super::{plan, print, stored};
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
    let lines = plan::lines(&recipe, &history, folder.path())?;
    let to_do = lines.iter().filter(|line| !line.done).count();
    let now = match (Lock::holder(folder.path()), &history.ending) {
        (Some(holder), _) => format!("running: {holder}"),
        (None, _) if to_do == 0 => "finished".into(),
        (None, Some(Event::CampaignFinished {})) => format!(
            "finished once, but {to_do} of {} stages are to do with this program and these input files; `comove resume` \
             does them",
            lines.len()
        ),
        (None, Some(Event::CampaignInterrupted { by })) => format!("stopped by {by}; `comove resume` goes on"),
        (None, _) => "not running and not finished; `comove resume` goes on".into(),
    };
    print(&format!("campaign \"{}\" in {}: {now}", recipe.campaign.name, dir.display()));
    lines.iter().for_each(|line| print(&line.text));
    Ok(())
}
