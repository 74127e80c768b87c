//! The groups that differ after the first step that does: both runs replayed from a checkpoint before it.

use super::super::recorded::{RecordedRun, Replay, class_of};
use crate::cli::OneDevice;
use crate::error::PipelineError;
use comove_kernels::layout::GROUP;
use comove_sim::{Coordinates, Key, Role, Snapshot};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Groups of each level that are listed one by one.
const LISTED: usize = 4;

/// What differs between the states of two runs after a step.
#[derive(Serialize)]
pub(super) struct GroupDifferences {
    step: u64,
    from: String,
    levels: Vec<LevelDifferences>,
    /// The first ones of each level.
    first: Vec<GroupPlace>,
    unit: &'static str,
}

/// The same of one level.
#[derive(Default, Serialize)]
struct LevelDifferences {
    level: u8,
    groups: [usize; 2],
    /// Groups that both have, with other gas.
    differ: usize,
    only_a: usize,
    only_b: usize,
}

impl LevelDifferences {
    /// Groups that differ, or that only one run has.
    fn all(&self) -> usize {
        self.differ + self.only_a + self.only_b
    }
}

#[derive(Serialize)]
struct GroupPlace {
    level: u8,
    /// Its first cell on the level's lattice.
    cell: [u64; 3],
    /// Its centre, code length.
    center: [f64; 3],
    /// `None` if both runs have it, else the one that has.
    only: Option<char>,
}

/// Replays both runs to `step`, the first that differs, from the newest checkpoint before it that either has: up to there
/// they are the same.
pub(super) fn group_differences(
    runs: &[RecordedRun; 2],
    step: u64,
    device: &OneDevice,
) -> Result<GroupDifferences, String> {
    let (snapshot, from) = common_checkpoint(runs, step)?;
    if !snapshot.header.fields.has_gas() {
        return Err("groups are compared by their gas, and these runs have none; compare two checkpoints \
        (--fields)"
            .into());
    }
    let said = |error: PipelineError| error.to_string();
    let device = device.open(class_of(&snapshot.header)).map_err(said)?;
    let mut hashes = [BTreeMap::new(), BTreeMap::new()];
    for (run, hashes) in runs.iter().zip(&mut hashes) {
        let mut replay = Replay::start(run, &snapshot, &device).map_err(said)?;
        while replay.simulation.step_number() < step {
            replay.step().map_err(said)?;
        }
        let (found, recorded) = (replay.simulation.state_hash(), &run.records[&step].step.state_hash);
        if found != *recorded {
            return Err(format!(
                "{} repeats step {step} with another state than recorded (hash {found}), from {from}, written on {}, \
                 on {}",
                run.folder.display(),
                class_of(&snapshot.header),
                device.class()
            ));
        }
        *hashes = replay.simulation.group_hashes().into_iter().collect();
    }
    Ok(GroupDifferences::between(&hashes, step, from, &snapshot))
}

/// The newest checkpoint before a step in either run that can be read, and its file.
fn common_checkpoint(runs: &[RecordedRun; 2], step: u64) -> Result<(Snapshot, String), String> {
    let checkpoints = runs.iter().flat_map(|run| {
        let before = run.known.snapshots.iter().filter(move |s| s.role == Role::Checkpoint && s.step < step);
        before.map(move |s| (run, s))
    });
    // of such a step both have a record, and the records agree
    let mut shared: Vec<_> =
        checkpoints.filter(|(_, s)| runs.iter().all(|run| run.records.contains_key(&s.step))).collect();
    shared.sort_by_key(|(_, s)| std::cmp::Reverse(s.step));
    let mut refused = "neither run has an earlier checkpoint".to_owned();
    for (run, file) in shared {
        match run.snapshot(&file.file) {
            Ok(snapshot) => return Ok((snapshot, run.folder.join(&file.file).display().to_string())),
            Err(error) => refused = error.to_string(),
        }
    }
    Err(refused)
}

impl GroupDifferences {
    fn between(hashes: &[BTreeMap<Key, u64>; 2], step: u64, from: String, snapshot: &Snapshot) -> Self {
        let [a, b] = hashes;
        let mut levels: BTreeMap<u8, LevelDifferences> = BTreeMap::new();
        let mut first = Vec::new();
        for key in a.keys().chain(b.keys()).collect::<BTreeSet<_>>() {
            let level = levels.entry(key.level).or_insert(LevelDifferences { level: key.level, ..Default::default() });
            let (in_a, in_b) = (a.get(key), b.get(key));
            level.groups[0] += usize::from(in_a.is_some());
            level.groups[1] += usize::from(in_b.is_some());
            let only = match (in_a, in_b) {
                (Some(a), Some(b)) if a == b => continue,
                (Some(_), None) => Some('A'),
                (None, Some(_)) => Some('B'),
                _ => None,
            };
            *match only {
                Some('A') => &mut level.only_a,
                Some(_) => &mut level.only_b,
                None => &mut level.differ,
            } += 1;
            if level.all() <= LISTED {
                first.push(GroupPlace::of(key, only, snapshot));
            }
        }
        let unit = match snapshot.header.coordinates {
            Coordinates::Comoving => "Mpc/h",
            Coordinates::Plain => "code length",
        };
        Self { step, from, levels: levels.into_values().collect(), first, unit }
    }

    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!("gas of groups after step {}, replayed from {}:", self.step, self.from)];
        for level in &self.levels {
            let LevelDifferences { level, groups: [a, b], differ, only_a, only_b } = level;
            let groups = if a == b { format!("{a} groups") } else { format!("{a} → {b} groups") };
            lines.push(format!("  level {level}: {groups}, {differ} differ, {only_a} only in A, {only_b} only in B"));
        }
        if self.levels.iter().any(|level| level.all() > LISTED) {
            lines.push(format!("  the first {LISTED} of each level:"));
        }
        let comma = |numbers: &[f64; 3]| numbers.map(|x| format!("{x:.4}")).join(", ");
        for place in &self.first {
            let only = place.only.map(|run| format!(", only in {run}")).unwrap_or_default();
            let [x, y, z] = place.cell;
            let center = comma(&place.center);
            lines.push(format!(
                "  level {}, cells from ({x}, {y}, {z}), centre ({center}) {}{only}",
                place.level, self.unit
            ));
        }
        lines
    }
}

impl GroupPlace {
    fn of(key: &Key, only: Option<char>, snapshot: &Snapshot) -> Self {
        let width = snapshot.cell_width(usize::from(key.level));
        let cell = key.coordinate.map(|c| u64::from(c) * GROUP as u64);
        let center = cell.map(|c| (c as f64 + 0.5 * GROUP as f64) * width);
        Self { level: key.level, cell, center, only }
    }
}
