//! A run as a recipe asks for it, and what a history lacks of it.

use super::hooks::{Hooks, StopPoint, stop_file};
use super::options::Checkpoints;
use crate::ledger::{SnapshotFile, StageHistory};
use crate::moment::Moment;
use crate::stage::formula::Formula;
use crate::stage::initial::{InitialFacts, SpeciesPresent};
use comove_sim::memory::Species;
use comove_sim::{Criterion, Role, RunParameters, SnapshotHeader, StartFacts};
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Clone, Debug)]
pub(crate) struct Evolve {
    pub origin: Origin,
    /// The numbers that decide its results.
    pub parameters: RunParameters,
    pub end: Moment,
    /// When outputs are taken, the end among them, in the order of time.
    pub outputs: Vec<Moment>,
    pub checkpoints: Checkpoints,
    /// What is asked of the recipe after its steps.
    pub hooks: Hooks,
}

/// A way that a run steps without going back.
pub(super) struct Segment {
    /// The outputs on it, in the order of time.
    pub(super) outputs: Vec<Moment>,
    /// Where it ends, if not at the last of these.
    pub(super) stop: Option<StopPoint>,
}

impl Segment {
    /// The first output on it.
    pub(super) fn first(&self) -> Moment {
        self.outputs.first().copied().or(self.stop.map(|stop| stop.moment)).expect("a segment leads somewhere")
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Origin {
    /// A mesh, its only input, which the run puts on its own octree.
    Initial(InitialFacts),
    /// A formula, which the run evaluates on its own octree.
    Formula(Arc<Formula>),
    /// A checkpoint, which is continued, or an output, from which another trajectory starts if `branch` says so.
    Saved {
        /// Whether the run may leave the snapshot's own trajectory.
        branch: bool,
        /// The snapshot's species, if the file was there when the recipe was evaluated.
        species: Option<SpeciesPresent>,
    },
}

impl Origin {
    /// Where a run starts, if that is known before it runs.
    pub(crate) fn start(&self) -> Option<Moment> {
        match self {
            Self::Initial(facts) => Some(Moment::Redshift(facts.z)),
            Self::Formula(formula) => Some(formula.start()),
            Self::Saved { .. } => None,
        }
    }

    /// The species of the starting state, if they are known before the run starts.
    pub(crate) fn species(&self) -> Option<SpeciesPresent> {
        match self {
            Self::Initial(facts) => {
                let species = SpeciesPresent { gas: facts.gas, dark_matter: facts.particles > 0 };
                facts.species_known.then_some(species)
            }
            Self::Formula(_) => Some(SpeciesPresent::GAS),
            Self::Saved { species, .. } => *species,
        }
    }

    /// The starting state, if it is known before the run starts. The levels of a mesh follow from the run's criteria.
    pub(crate) fn facts(&self) -> Option<StartFacts> {
        let lengths = |length: f64, root: [usize; 3]| root.map(|n| length * n as f64 / root[0] as f64);
        match self {
            Self::Initial(facts) => Some(StartFacts {
                gas: facts.gas,
                particles: facts.species_known.then_some(facts.particles),
                gamma: facts.gamma,
                mean_molecular_weight: Some(facts.mean_molecular_weight),
                box_lengths: lengths(facts.box_mpc_h, facts.root),
                root_cells: facts.root,
                levels: 1,
            }),
            Self::Formula(formula) => Some(StartFacts {
                gas: true,
                particles: Some(0),
                gamma: formula.setup.parameters.gamma,
                mean_molecular_weight: None,
                box_lengths: lengths(formula.setup.box_length, formula.setup.root),
                root_cells: formula.setup.root,
                levels: 1,
            }),
            Self::Saved { .. } => None,
        }
    }
}

impl Evolve {
    /// The expressions of its criteria: their places in [`crate::stage::Stage::parameters`], as JSON pointers, and their
    /// texts.
    pub(crate) fn expressions(&self) -> BTreeMap<String, String> {
        let mut found = BTreeMap::new();
        for (n, criterion) in self.parameters.refine.iter().enumerate() {
            criterion.for_each(&format!("/run/refine/{n}"), &mut |place, one| {
                if let Criterion::Where { source, .. } = one {
                    found.insert(format!("{place}/where/program"), source.clone());
                }
            });
        }
        found
    }

    /// Gas and particles of the run: those in `header`, the snapshot from which it resumes or starts, else those of its
    /// initial condition.
    pub(crate) fn species(&self, header: Option<&SnapshotHeader>) -> Species {
        match (header, &self.origin) {
            (Some(header), _) => Species {
                gas: header.fields.has_gas(),
                particles: header.dark_matter.as_ref().map_or(0, |dark_matter| dark_matter.particles as usize),
            },
            (None, Origin::Initial(facts)) => Species { gas: facts.gas, particles: facts.particles as usize },
            (None, Origin::Formula(_) | Origin::Saved { .. }) => Species { gas: true, particles: 0 },
        }
    }

    /// Whether it may have dark matter, as far as that is known before it starts.
    pub(super) fn may_have_dark_matter(&self) -> bool {
        self.origin.species().is_none_or(|species| species.dark_matter)
    }

    /// The outputs that a history lacks, in the order of time, up to where the stop rule has ended the run.
    pub(crate) fn missing(&self, history: &StageHistory) -> Vec<Moment> {
        let there = self.asked_snapshots(history);
        let wanted = self.outputs.iter().copied().filter(|moment| self.reaches(*moment, history));
        wanted.filter(|moment| there.iter().all(|s| s.moment() != *moment)).collect()
    }

    /// The outputs in a history that the recipe asks for.
    pub(super) fn asked_snapshots(&self, history: &StageHistory) -> Vec<SnapshotFile> {
        let outputs = history.snapshots.iter().filter(|s| s.role == Role::Output);
        let last = self.stop(history).map(|stop| stop_file(stop.step));
        let asked = |s: &&SnapshotFile| {
            last.as_ref() == Some(&s.file) || (self.outputs.contains(&s.moment()) && self.reaches(s.moment(), history))
        };
        outputs.filter(asked).cloned().collect()
    }

    /// Whether a history has all outputs, and what the stop rule asks for.
    pub(crate) fn has_all(&self, history: &StageHistory) -> bool {
        self.missing(history).is_empty() && self.is_ruled(history)
    }

    /// Whether a moment does not lie beyond where the stop rule has ended the run.
    pub(super) fn reaches(&self, moment: Moment, history: &StageHistory) -> bool {
        self.stop(history).is_none_or(|stop| moment.now() <= stop.moment.now())
    }

    /// Why a run with these files has nothing to continue: checkpoints lie after what it lacks, and outputs, which may lie
    /// before, are no part of its way.
    pub(crate) fn why_anew(&self, history: &StageHistory) -> Option<String> {
        let first = *self.missing(history).first()?;
        let before = history.snapshots.iter().rfind(|s| s.role == Role::Output && s.moment().now() < first.now());
        let output = before.map(|s| {
            format!(
                ", and no run continues from an output, as {}; keep checkpoints with checkpoints: #{{ at_z: […] \
                     }}",
                s.file
            )
        });
        Some(format!("no checkpoint before {}{}", first.rounded(), output.unwrap_or_default()))
    }

    /// The run that does what all of these do, which differ in where they end and what they write.
    pub(crate) fn joined(runs: &[&Self]) -> Self {
        let last = runs.iter().max_by(|x, y| x.end.now().total_cmp(&y.end.now())).expect("at least one");
        let mut outputs: Vec<Moment> = runs.iter().flat_map(|run| run.outputs.iter().copied()).collect();
        outputs.sort_by(|x, y| x.now().total_cmp(&y.now()));
        outputs.dedup();
        let checkpoints = Checkpoints::joined(runs.iter().map(|run| &run.checkpoints));
        Self { outputs, checkpoints, ..(*last).clone() }
    }

    /// The stretches of the run's way that are left: each from a checkpoint, else from its start, to its last output or to
    /// where the stop rule has ended the run.
    pub(crate) fn stretches(&self, history: &StageHistory) -> Vec<(Option<Moment>, Moment)> {
        let stretch = |segment: Segment| {
            let from = checkpoints_before(history, segment.first()).next().map(SnapshotFile::moment);
            let stop = segment.stop.map(|stop| stop.moment);
            (from, stop.or(segment.outputs.last().copied()).expect("a segment leads somewhere"))
        };
        self.segments(history).into_iter().map(stretch).collect()
    }

    /// What is left to do, segment by segment: each goes to the last output before a checkpoint, from which the next goes on.
    pub(super) fn segments(&self, history: &StageHistory) -> Vec<Segment> {
        let between = |x: f64, y: f64| checkpoints(history).any(|c| x < c.moment().now() && c.moment().now() <= y);
        let missing = self.missing(history);
        let legs = missing.chunk_by(|x, y| !between(x.now(), y.now()));
        let mut legs: Vec<Segment> = legs.map(|outputs| Segment { outputs: outputs.to_vec(), stop: None }).collect();
        if let Some(stop) = self.stop(history).filter(|_| !self.is_ruled(history)) {
            match legs.last_mut() {
                Some(last) if !between(last.first().now(), stop.moment.now()) => last.stop = Some(stop),
                _ => legs.push(Segment { outputs: Vec::new(), stop: Some(stop) }),
            }
        }
        legs
    }
}

/// The checkpoints of a history, newest first.
pub(super) fn checkpoints(history: &StageHistory) -> impl Iterator<Item = &SnapshotFile> {
    history.snapshots.iter().rev().filter(|s| s.role == Role::Checkpoint)
}

/// The checkpoints of a history from which a run comes to the output at `moment`, newest first.
pub(super) fn checkpoints_before(history: &StageHistory, moment: Moment) -> impl Iterator<Item = &SnapshotFile> {
    checkpoints(history).filter(move |s| s.moment().now() <= moment.now())
}
