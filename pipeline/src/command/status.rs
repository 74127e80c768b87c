//! `comove status`: how far a campaign is, once or as long as somebody works on it.

use super::{done, plan, print, stored, unfinished};
use crate::campaign::{CampaignResolver, StageStatus};
use crate::cost::records::Records;
use crate::cost::remaining::Remaining;
use crate::cost::speed::DeviceKind;
use crate::error::PipelineError;
use crate::ledger::{Event, History, history};
use crate::moment::Moment;
use crate::recipe::Recipe;
use crate::stage::Input;
use crate::stage::evolve::{Evolve, steps};
use crate::storage::folder::CampaignFolder;
use crate::storage::lock::Lock;
use crate::terminal::progress::{Progress, rate};
use crate::terminal::streams::printed;
use comove_sim::Snapshot;
use std::io::{ErrorKind, IsTerminal, Write, stdout};
use std::path::Path;
use std::time::Duration;

/// How often `--watch` looks.
const LOOK: Duration = Duration::from_secs(2);

const CLEAR: &str = "\x1b[H\x1b[2J";

pub(super) fn status(dir: &Path) -> Result<(), PipelineError> {
    let folder = CampaignFolder::open(dir)?;
    // in this order what the last process has written last is seen
    let holder = Lock::holder(folder.path());
    let (history, _) = history::read(&folder.ledger())?;
    let (recipe, _) = stored(&folder)?;
    let unfinished = unfinished::list(&unfinished::of(&recipe, dir, &history, false));
    if holder.is_some() {
        let mut resolver = CampaignResolver::new(&recipe.campaign, folder.path()).shown(&Progress::on_terminal());
        print(&at_work(&mut resolver, &recipe, dir, holder, &history))?;
        return unfinished.into_iter().try_for_each(|line| print(&line));
    }
    let lines = plan::lines(&recipe, &history, folder.path(), None)?;
    let to_do = lines.iter().filter(|line| !line.done).count();
    let failed = lines.iter().filter(|line| line.failed).count();
    let now = state(holder, &history, lines.len(), to_do, failed);
    print(&format!("campaign \"{}\" in {}: {now}", recipe.campaign.name, dir.display()))?;
    lines.iter().try_for_each(|line| print(&line.text()))?;
    unfinished.into_iter().try_for_each(|line| print(&line))
}

/// The stages of a campaign that is computed now, with the progress of its runs.
fn at_work(
    resolver: &mut CampaignResolver<'_>,
    recipe: &Recipe,
    dir: &Path,
    holder: Option<String>,
    history: &History,
) -> String {
    let hindrances = resolver.look_at_all(history);
    let lines: Vec<String> = resolver.positions().map(|n| line(resolver, n, &hindrances[n], history)).collect();
    let (stages, to_do) = (lines.len(), resolver.positions().filter(|&n| !resolver.is_done(n)).count());
    let failed = resolver.positions().filter(|&n| resolver.has_failed(n, history)).count();
    let now = state(holder, history, stages, to_do, failed);
    let (name, done) = (&recipe.campaign.name, stages - to_do);
    format!("campaign \"{name}\" in {}: {now}; {done} of {stages} stages\n{}", dir.display(), lines.join("\n"))
}

/// The state of a campaign of so many stages, of which so many are to do, and so many of these have failed.
fn state(holder: Option<String>, history: &History, stages: usize, to_do: usize, failed: usize) -> String {
    match (holder, &history.ending) {
        (Some(holder), _) => format!("running: {holder}"),
        (None, _) if to_do == 0 => "finished".into(),
        (None, Some(Event::CampaignFinished {})) => format!(
            "finished, but {to_do} of {stages} stages are to do again with this program or these input files; \
             `comove resume` computes them"
        ),
        (None, _) if failed > 0 => format!(
            "{failed} of {stages} stages failed; correct the cause and continue with `comove resume`, or with \
             `comove run` and a corrected recipe"
        ),
        (None, Some(Event::CampaignInterrupted { by })) => format!("stopped by {by}; `comove resume` continues"),
        (None, _) => "not running and not finished; `comove resume` continues".into(),
    }
}

/// Prints it every two seconds, until nobody works on the campaign. What is read from outside is read once.
pub(super) fn watch(dir: &Path) -> Result<(), PipelineError> {
    let folder = CampaignFolder::open(dir)?;
    let (recipe, _) = stored(&folder)?;
    let mut resolver = CampaignResolver::new(&recipe.campaign, folder.path()).shown(&Progress::on_terminal());
    let mut clear = "";
    loop {
        // as above
        let holder = Lock::holder(folder.path());
        let (history, _) = history::read(&folder.ledger())?;
        // what was done may have been refused meanwhile, or asked for again
        let done = resolver.positions().filter(|&n| resolver.status(n) == StageStatus::Done).collect::<Vec<_>>();
        done.into_iter().for_each(|n| resolver.set_aside(n));
        let is_over = holder.is_none();
        let text = format!("{clear}{}\n", at_work(&mut resolver, &recipe, dir, holder, &history));
        match writeln!(stdout(), "{text}") {
            // the reader has seen enough
            Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(()),
            outcome => printed(outcome)?,
        }
        if is_over {
            return Ok(());
        }
        clear = if stdout().is_terminal() { CLEAR } else { "" };
        std::thread::sleep(LOOK);
    }
}

/// A stage in a line: its number and name, and what it is at.
fn line(resolver: &CampaignResolver<'_>, n: usize, hindrance: &Option<PipelineError>, history: &History) -> String {
    let known = resolver.known(n, history);
    let state = match (hindrance, resolver.status(n)) {
        (Some(error), _) => error.to_string(),
        (None, StageStatus::Given) => "given".into(),
        (None, StageStatus::Done) => done(resolver.stage(n), known),
        (None, StageStatus::Decided) => plan::decided(resolver, n),
        (None, StageStatus::Waiting) if resolver.is_undecided(n) => {
            format!("decided after {}", plan::missing(resolver, n))
        }
        (None, StageStatus::Waiting) => "waits".into(),
        (None, StageStatus::ToDo) => {
            let resolved = resolver.resolved(n).expect("it is to do");
            let is_at_work = history.at_work.contains(&resolved.fingerprint);
            let folder = resolver.folder().join(&resolved.folder);
            let run = resolver.stage(n).as_run();
            let way = run.and_then(|run| progress_of(run, &folder, &resolved.inputs, history, is_at_work));
            let failure = known.and_then(|known| known.failure.as_ref());
            match (way, is_at_work, failure) {
                (Some(way), true, _) => way,
                (None, true, _) => "being done".into(),
                (_, false, Some(failure)) => format!("failed: {}", failure.lines().next().unwrap_or_default()),
                (Some(way), false, None) => format!("begun: {way}"),
                (None, false, None) => "to do".into(),
            }
        }
    };
    format!("{:>3}  {}: {state}", n + 1, resolver.name(n))
}

/// Progress of a run: step, redshift or time, speed, and while it steps the time left.
fn progress_of(
    run: &Evolve,
    folder: &Path,
    inputs: &[Vec<Input>],
    history: &History,
    is_at_work: bool,
) -> Option<String> {
    let records = steps::last(folder);
    let last = records.last()?;
    let here = format!("step {}, {}, {}", last.step, Moment::after(last).brief(), rate(last));
    let left = || {
        let campaign = Records::around(folder.parent()?, history, None).ok()?;
        let begun = inputs.first().and_then(|input| input.first()).filter(|input| input.moment.is_some());
        let begun = begun.and_then(|snapshot| Snapshot::read_tree(&snapshot.path).ok());
        let kind = DeviceKind::of_campaign(history);
        let remaining = Remaining::new(run, begun.as_ref(), &run.outputs, kind, (folder, &campaign))?;
        remaining.estimate()?.text(run.hooks.stop_when.is_some())
    };
    match is_at_work.then(left).flatten() {
        Some(left) => Some(format!("{here}, {left}")),
        None => Some(here),
    }
}
