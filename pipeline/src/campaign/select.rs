//! Stages that the command line names.

use super::deferred::own_name;
use super::resolver::Path;
use super::{Campaign, CampaignResolver, has_equal_options};
use crate::error::PipelineError;
use crate::ledger::{DIGITS, History};
use crate::recipe::error::nearest;
use std::collections::BTreeSet;
use std::path::Path as FilePath;

/// Which stages of a campaign are to be done, by where they come from.
#[derive(Clone, Debug, Default)]
pub(crate) struct Choice {
    all: bool,
    /// Those that are to be done if they are not.
    wanted: BTreeSet<Path>,
    /// Those whose further stages are wanted too, whatever they will be.
    followed: BTreeSet<Path>,
    /// Those that are to be done again if they are.
    forced: BTreeSet<Path>,
}

impl Choice {
    /// All, each if it is not done.
    pub(crate) fn all() -> Self {
        Self { all: true, ..Self::default() }
    }

    /// Whether the stage that comes from there is to be done.
    pub(crate) fn wants(&self, path: &Path) -> bool {
        self.all || self.wanted.contains(path) || (1..path.len()).any(|n| self.followed.contains(&path[..n]))
    }

    /// Whether it is to be done again if it is done.
    pub(crate) fn forces(&self, path: &Path) -> bool {
        self.forced.contains(path)
    }

    /// Those that `only` names and what they need, or all if it names none; again those that `force` names.
    pub(crate) fn of(
        campaign: &Campaign,
        folder: &FilePath,
        history: &History,
        only: &[String],
        force: &[String],
    ) -> Result<Self, PipelineError> {
        let mut choice = Self { all: only.is_empty(), ..Self::default() };
        let walk = CampaignResolver::where_possible(campaign, folder, history);
        for name in only {
            for n in several(&walk, name)? {
                choice.wanted.insert(walk.path(n).clone());
                choice.followed.insert(walk.path(n).clone());
            }
        }
        // what is needed comes before what needs it
        for n in walk.positions().rev().filter(|_| !choice.all) {
            if choice.wants(walk.path(n)) {
                let needed = walk.needs(n).into_iter().map(|needed| walk.path(needed).clone());
                choice.wanted.extend(needed);
            }
        }
        for name in force {
            for n in several(&walk, name)? {
                if !choice.wants(walk.path(n)) {
                    let message = format!("--force {name}: no stage of --only needs this stage; add it to --only");
                    return Err(PipelineError::Usage(message));
                }
                // stages that are the same have one history: what is forgotten of one is forgotten of all
                for same in walk.positions().filter(|&other| is_same(&walk, n, other)) {
                    choice.wanted.insert(walk.path(same).clone());
                    choice.forced.insert(walk.path(same).clone());
                }
            }
        }
        Ok(choice)
    }

    /// Whether every stage is to be done.
    pub(crate) fn is_all(&self) -> bool {
        self.all
    }
}

/// Whether two stages have one fingerprint.
fn is_same(walk: &CampaignResolver<'_>, n: usize, other: usize) -> bool {
    let fingerprint = |n: usize| walk.resolved(n).map(|resolved| resolved.fingerprint.as_str());
    match (fingerprint(n), fingerprint(other)) {
        (Some(one), Some(other)) => one == other,
        _ => has_equal_options(walk.stage(n), walk.stage(other)) && walk.inputs(n) == walk.inputs(other),
    }
}

/// The positions of the stages that `text` names, which may be several texts with commas between them; a name of a stage may
/// hold commas itself.
fn several(walk: &CampaignResolver<'_>, text: &str) -> Result<Vec<usize>, PipelineError> {
    match find(walk, text) {
        Err(_) if text.contains(',') => {
            let parts = text.split(',').map(|part| find(walk, part.trim())).collect::<Result<Vec<_>, _>>()?;
            Ok(parts.concat())
        }
        found => found,
    }
}

/// What stage `n` goes by: its number in the plan, its folder, its name, its label (`measure-peak`, or `peak` alone) and its
/// kind.
pub(crate) fn names(walk: &CampaignResolver<'_>, n: usize) -> impl Iterator<Item = String> {
    let stage = walk.stage(n);
    let folder = walk.resolved(n).map(|resolved| resolved.folder.clone());
    let name = Some(walk.name(n).to_owned());
    [Some((n + 1).to_string()), folder, name, Some(own_name(stage)), Some(stage.label()), Some(stage.kind().to_owned())]
        .into_iter()
        .flatten()
}

/// Whether this is what the folder of stage `n` is called in another campaign: the words in its name may differ.
fn is_folder_elsewhere(walk: &CampaignResolver<'_>, n: usize, text: &str) -> bool {
    let (Some(resolved), Some((words, digits))) = (walk.resolved(n), text.rsplit_once('-')) else { return false };
    let has_label =
        words.strip_prefix(&walk.stage(n).label()).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'));
    has_label && digits.len() >= DIGITS && resolved.fingerprint.starts_with(digits)
}

/// The positions of the stages that `text` names, as [`names`] lists them, or as their folders are called in another campaign.
pub(crate) fn find(walk: &CampaignResolver<'_>, text: &str) -> Result<Vec<usize>, PipelineError> {
    let names = |n: usize| names(walk, n);
    let is_called = |n: &usize| names(*n).any(|name| name == text);
    for is_meant in [&is_called as &dyn Fn(&usize) -> bool, &|&n| is_folder_elsewhere(walk, n, text)] {
        let found: Vec<usize> = walk.positions().filter(is_meant).collect();
        if !found.is_empty() {
            return Ok(found);
        }
    }
    let known: Vec<String> = walk.positions().flat_map(names).collect();
    let meant = nearest(text, known.iter().map(String::as_str)).map(|name| format!(", did you mean \"{name}\"?"));
    let help = meant.unwrap_or_else(|| "; `comove plan` shows their numbers, kinds, folders and names".into());
    Err(PipelineError::Usage(format!("no stage \"{text}\"{help}")))
}
