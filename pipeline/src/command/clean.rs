//! `comove clean`: what lies in a campaign folder that its recipe does not refer to.

use super::{print, stored, unfinished};
use crate::campaign::deferred::THEN;
use crate::campaign::{Campaign, CampaignResolver, StageStatus};
use crate::error::PipelineError;
use crate::ledger::{Event, History, Identity, Ledger, StageHistory};
use crate::recipe::error::nearest;
use crate::stage::Stage;
use crate::storage::files::remove_if_there;
use crate::storage::folder::CampaignFolder;
use crate::storage::lock::Lock;
use comove_sim::{Role, complete_file};
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

/// Lists it, or what `named` names of it, and deletes it if `yes`. Unfinished runs, and what they read, are deleted only where
/// they are named.
pub(super) fn clean(dir: &Path, named: &[String], yes: bool) -> Result<(), PipelineError> {
    let folder = CampaignFolder::open(dir)?;
    // nobody may be at work even for a list: what is being written looks like what is left
    let _lock = Lock::take(folder.path())?;
    let (recipe, manifest) = stored(&folder)?;
    let ledger = Ledger::open(&folder.ledger())?;
    let mut found = stale_items(&recipe.campaign, folder.path(), &ledger.history())?;
    found.sort_by(|x, y| x.path.cmp(&y.path));
    let name = |item: &Item| item.path.strip_prefix(folder.path()).unwrap_or(&item.path).display().to_string();
    let (found, kept): (Vec<_>, Vec<_>) = match named {
        [] => found.into_iter().partition(|item| item.kept.is_none()),
        named => {
            let known: Vec<String> = found.iter().map(name).collect();
            let named: Vec<&str> = named.iter().map(|name| name.trim_end_matches('/')).collect();
            if let Some(wrong) = named.iter().find(|named| !known.iter().any(|known| known == *named)) {
                let meant = nearest(wrong, known.iter().map(String::as_str));
                let hint =
                    meant.map_or("it is in use or does not exist".into(), |near| format!("did you mean {near}?"));
                let message =
                    format!("{wrong}: {hint}; `comove clean {}` lists the files that can be deleted", dir.display());
                return Err(PipelineError::Usage(message));
            }
            (found.into_iter().filter(|item| named.contains(&name(item).as_str())).collect(), Vec::new())
        }
    };
    if !found.is_empty() {
        // results of other values of its parameters are among what is left over
        let given: String = manifest.parameters.iter().map(|(name, value)| format!(" -p {name}={value}")).collect();
        let how = if given.is_empty() { " with its defaults".into() } else { given };
        print(&format!("files that {} does not use, as last run:{how}", manifest.recipe.display()))?;
    }
    let (nothing, total) = (found.is_empty(), found.iter().map(|item| item.bytes).sum());
    for item in found {
        print(&format!("{:>12}  {}: {}", size(item.bytes), name(&item), item.reason))?;
        if yes {
            item.delete(&ledger)?;
        }
    }
    print(&match (nothing, yes) {
        (true, _) => "no files to delete".to_owned(),
        (false, true) => format!("{:>12}  deleted", size(total)),
        (false, false) => {
            let words = named.iter().map(|name| format!(" {name}")).collect::<String>();
            format!("{:>12}  in all; `comove clean {}{words} --yes` deletes it", size(total), dir.display())
        }
    })?;
    for item in &kept {
        let (bytes, name, why) = (size(item.bytes), name(item), item.kept.as_deref().unwrap_or_default());
        print(&format!("{bytes:>12}  {name}: kept, {why}; `comove clean {} {name} --yes` deletes it", dir.display()))?;
    }
    Ok(())
}

/// Something that may be deleted.
struct Item {
    path: PathBuf,
    bytes: u64,
    reason: String,
    /// What the ledger has to know beforehand: a file that is still there is harmless, one that it promises and that is gone
    /// is not.
    event: Option<Event>,
    /// Why it is deleted only where it is named.
    kept: Option<String>,
}

impl Item {
    fn new(path: PathBuf, reason: impl Into<String>, event: Option<Event>) -> Result<Self, PipelineError> {
        let bytes = bytes_of(&path).map_err(PipelineError::io(&path))?;
        Ok(Self { path, bytes, reason: reason.into(), event, kept: None })
    }

    fn delete(self, ledger: &Ledger) -> Result<(), PipelineError> {
        if let Some(event) = self.event {
            ledger.append(event)?;
        }
        if !self.path.is_dir() {
            return remove_if_there(&self.path);
        }
        match std::fs::remove_dir_all(&self.path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(PipelineError::io(&self.path)(error)),
            _ => Ok(()),
        }
    }
}

/// Everything in the campaign folder `dir` that belongs to no stage of the campaign. What a stage may still turn out to be,
/// and what stages read as a file from elsewhere, stays.
fn stale_items(campaign: &Campaign, dir: &Path, history: &History) -> Result<Vec<Item>, PipelineError> {
    let (resolver, _) = CampaignResolver::through(campaign, dir, history)?;
    let is_like = |n: usize, stage: &StageHistory| match &stage.identity {
        Some(identity) => resolver.stage(n).label() == identity.label,
        None => resolver.stage(n).kind() == stage.kind,
    };
    let is_waiting = |stage: &StageHistory| {
        let may_be = |n: usize| resolver.stage(n).kind() == THEN || is_like(n, stage);
        resolver.positions().any(|n| resolver.status(n) == StageStatus::Waiting && may_be(n))
    };
    let read: Vec<PathBuf> = resolver
        .positions()
        .flat_map(|n| resolver.stage(n).files())
        .filter_map(|file| file.canonicalize().ok())
        .collect();
    let is_read = |path: &Path| path.canonicalize().is_ok_and(|path| read.iter().any(|file| file.starts_with(&path)));
    // by fingerprint, since several stages may be one
    let mut live: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for n in resolver.positions() {
        if let Some(resolved) = resolver.resolved(n) {
            live.entry(&resolved.fingerprint).or_default().push(n);
        }
    }
    let kept = kept(dir, history);
    let mut found = Vec::new();
    for (fingerprint, stage) in history.stages().filter(|(_, stage)| is_name(&stage.folder)) {
        let path = dir.join(&stage.folder);
        if let Some(stages) = live.get(fingerprint) {
            let mut asked = stages.iter().flat_map(|&n| resolver.stage(n).snapshots(stage)).map(|s| s.file);
            let asked: BTreeSet<String> = asked.by_ref().collect();
            for snapshot in stage.snapshots.iter().filter(|s| s.role == Role::Output && !asked.contains(&s.file)) {
                let event = Event::SnapshotRemoved { fingerprint: fingerprint.into(), file: snapshot.file.clone() };
                let path = path.join(&snapshot.file);
                if is_name(&snapshot.file) && path.exists() && !is_read(&path) {
                    found.push(Item::new(path, "output that the recipe does not list", Some(event))?);
                }
            }
            let known: BTreeSet<&str> = stage.snapshots.iter().map(|s| s.file.as_str()).collect();
            found.extend(leftovers(&path, |name| is_snapshot(name) && !known.contains(name), is_read)?);
        } else if !is_waiting(stage) && !is_read(&path) {
            let reason = match &stage.identity {
                Some(identity) => {
                    match resolver.positions().find(|&n| is_like(n, stage) && is_outdated(resolver.stage(n), identity))
                    {
                        Some(n) => {
                            let (made, now) = (identity.results_version, resolver.stage(n).results_version());
                            format!(
                                "results of version {made}, which this program computes again as version {now} ({})",
                                identity.describes
                            )
                        }
                        None => format!("not a stage of the recipe ({})", identity.describes),
                    }
                }
                None => "not a stage of the recipe".into(),
            };
            let event = Event::StageRemoved { fingerprint: fingerprint.into() };
            if path.exists() {
                let kept = kept.get(stage.folder.as_str()).cloned();
                found.push(Item { kept, ..Item::new(path, reason, Some(event))? });
            }
        }
    }
    let removed = history.removed.iter().filter(|folder| is_name(folder)).map(|folder| dir.join(folder));
    for folder in removed.filter(|folder| folder.exists()) {
        found.push(Item::new(folder, "its deletion was interrupted", None)?);
    }
    found.extend(leftovers(dir, |_| false, is_read)?);
    Ok(found)
}

/// Unfinished runs and the stages that they read, by folder: why each is kept.
fn kept<'h>(dir: &Path, history: &'h History) -> BTreeMap<&'h str, String> {
    let mut kept = BTreeMap::new();
    for (_, run, progress) in unfinished::in_progress(dir, history) {
        let read = run.identity.iter().flat_map(|identity| unfinished::made_by(identity, history));
        for stage in read {
            kept.entry(stage.folder.as_str()).or_insert_with(|| format!("read by the unfinished {}", run.folder));
        }
        kept.insert(run.folder.as_str(), format!("unfinished {progress}"));
    }
    kept
}

/// Whether this is the stage as an earlier program made it.
fn is_outdated(stage: &dyn Stage, made: &Identity) -> bool {
    made.results_version < stage.results_version() && made.parameters == stage.parameters()
}

/// Files of a folder that were never finished, and those that `unknown` picks out.
fn leftovers(
    folder: &Path,
    unknown: impl Fn(&str) -> bool,
    is_read: impl Fn(&Path) -> bool,
) -> Result<Vec<Item>, PipelineError> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries.collect::<Result<Vec<_>, _>>().map_err(PipelineError::io(folder))?,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(PipelineError::io(folder)(error)),
    };
    let mut items = Vec::new();
    for entry in entries {
        let name = entry.file_name().to_string_lossy().into_owned();
        let reason = match () {
            () if complete_file::is_leftover(&name) => "an incomplete file",
            () if unknown(&name) && !is_read(&entry.path()) => "a snapshot that is not in the ledger",
            () => continue,
        };
        items.push(Item::new(entry.path(), reason, None)?);
    }
    items.sort_by(|x, y| x.path.cmp(&y.path));
    Ok(items)
}

/// Whether this names something in a folder, and nothing outside of it, whatever a ledger says.
fn is_name(text: &str) -> bool {
    let mut parts = Path::new(text).components();
    matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None))
}

/// Whether a file is called as a run calls its snapshots.
fn is_snapshot(name: &str) -> bool {
    name.ends_with(".h5") && (name.starts_with("checkpoint_") || name.starts_with("output_"))
}

/// The bytes of a file, or of all files in a folder.
fn bytes_of(path: &Path) -> std::io::Result<u64> {
    let metadata = path.symlink_metadata()?;
    if !metadata.is_dir() {
        return Ok(metadata.len());
    }
    std::fs::read_dir(path)?.map(|entry| bytes_of(&entry?.path())).sum()
}

fn size(bytes: u64) -> String {
    match bytes as f64 {
        bytes if bytes < 1e6 => format!("{:.1} kB", bytes / 1e3),
        bytes if bytes < 1e9 => format!("{:.1} MB", bytes / 1e6),
        bytes => format!("{:.1} GB", bytes / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_outside_is_named() {
        let names = ["evolve-350e4f", "output_z2.h5", "", "..", ".", "../other", "/tmp", "a/b"];
        assert_eq!(names.map(is_name), [true, true, false, false, false, false, false, false]);
    }
}
