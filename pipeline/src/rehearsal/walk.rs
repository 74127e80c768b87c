//! The stages that have closures, one after the other, and before each what it reads.

use super::Surroundings;
use super::hooks::{self, at};
use super::universe::{Toy, Universe};
use crate::campaign::deferred::{Deferred, own_name};
use crate::campaign::{Campaign, Node, visit};
use crate::error::PipelineError;
use crate::ledger::{Artefact, SnapshotFile};
use crate::moment::Moment;
use crate::recipe::{Cause, Place, RecipeError};
use crate::stage::evolve::{Evolve, Origin};
use crate::stage::initial::SpeciesPresent;
use crate::stage::work::{REHEARSAL, Work};
use crate::stage::{Input, Stage, StageResult, saved};
use crate::terminal::progress::StageProgress;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// Bytes of the outputs of a run; further outputs share one snapshot.
const OUTPUT_BYTES: usize = 256 << 20;

/// Calls of `then` at one place: a search that ends where its data say so has no end on a toy.
const DECISIONS: usize = 2;

/// Kinds of stages that a toy makes no cheaper.
const EXPENSIVE: [&str; 1] = ["force_test"];

/// What a rehearsal has found.
#[derive(Default)]
pub(super) struct Found {
    /// Closures that gave a result, by line and column.
    pub closures: BTreeSet<(usize, usize)>,
    /// Errors that a run of the recipe would have.
    pub errors: Vec<RecipeError>,
    /// Closures that were not called or gave no result, and why.
    pub not_rehearsed: Vec<String>,
}

pub(super) struct Walk<'a> {
    around: &'a Surroundings,
    stages: Vec<Rehearsed>,
    /// Toy universes by what decides them.
    universes: BTreeMap<String, Arc<Universe>>,
    /// Calls of `then` by place.
    decisions: BTreeMap<(usize, usize), usize>,
    found: Found,
}

struct Rehearsed {
    /// As the recipe has it.
    original: Node,
    /// As decided, if it had to wait for a value.
    node: Node,
    outcome: Outcome,
    guess: Guess,
}

/// What the toy of a stage guesses of a file that the run will read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Guess {
    Nothing,
    /// Fields, box and cosmology.
    Fields,
    /// The species too.
    Species,
}

impl Guess {
    /// Of a file with these species.
    fn of_file(species: Option<SpeciesPresent>) -> Self {
        if species.is_some() { Self::Fields } else { Self::Species }
    }
}

#[derive(Clone)]
enum Outcome {
    Left,
    Done(StageResult),
    /// It has decided on further stages.
    Decided,
    Failed,
}

impl<'a> Walk<'a> {
    pub(super) fn new(campaign: &Campaign, around: &'a Surroundings) -> Self {
        let stages = campaign.stages.iter().cloned().map(Rehearsed::new).collect();
        let (universes, decisions) = (BTreeMap::new(), BTreeMap::new());
        Self { around, stages, universes, decisions, found: Found::default() }
    }

    /// Rehearses all stages with closures, those that are decided on among them.
    pub(super) fn through(mut self, line: &StageProgress) -> Result<Found, PipelineError> {
        let mut n = 0;
        while n < self.stages.len() {
            let node = &self.stages[n].original;
            if node.decision().is_some() || !node.stage().closures().is_empty() {
                line.doing(&format!("rehearsing {} on a toy universe", own_name(node.stage())));
                match self.perform(n, false) {
                    Ok(_) => {}
                    Err(PipelineError::Interrupted { .. }) => {
                        let left = self.closures_after(n);
                        let seconds = REHEARSAL.as_secs();
                        self.found
                            .not_rehearsed
                            .push(format!("{left} closures not called: a rehearsal is limited to {seconds} s"));
                        break;
                    }
                    Err(error) => return Err(error),
                }
            }
            n += 1;
        }
        Ok(self.found)
    }

    /// Closures of stage `n` and those after it that have given no result.
    fn closures_after(&self, n: usize) -> usize {
        let places = self.stages[n..].iter().flat_map(|stage| closures(&stage.node)).map(key);
        places.collect::<BTreeSet<_>>().difference(&self.found.closures).count()
    }

    /// Rehearses stage `n`, after what it reads; whether it has a result. A stage without closures is decided, and done if it
    /// `is_read`.
    fn perform(&mut self, n: usize, is_read: bool) -> Result<bool, PipelineError> {
        match self.stages[n].outcome {
            Outcome::Left => {}
            Outcome::Done(_) => return Ok(true),
            Outcome::Decided | Outcome::Failed => return Ok(false),
        }
        let stop = self.around.control.stop(Duration::ZERO);
        if let Some(by) = stop {
            return Err(PipelineError::Interrupted { folder: self.around.folder.clone(), by });
        }
        let original = self.stages[n].original.clone();
        // a run is a toy of its own
        let reads = if original.stage().as_run().is_some() { Vec::new() } else { self.positions(original.inputs()) };
        for &input in &reads {
            if !self.perform(input, true)? {
                self.stages[n].outcome = Outcome::Failed;
                let (name, input) = (called(&original), called(&self.stages[input].original));
                self.note(format!("{name}: it needs {input}"));
                return Ok(false);
            }
            self.stages[n].guess = self.stages[n].guess.max(self.stages[input].guess);
        }
        let outcome = self.decided(n, &reads).and_then(|is_stage| match is_stage {
            true if is_read || !self.stages[n].node.stage().closures().is_empty() => self.execute(n).map(Outcome::Done),
            true => Ok(Outcome::Left),
            false => Ok(Outcome::Decided),
        });
        let guess = self.stages[n].guess;
        self.stages[n].outcome = match outcome {
            Ok(outcome) => {
                let node = self.stages[n].node.clone();
                // a run counts its own
                if node.stage().as_run().is_none() {
                    self.found.closures.extend(closures(&node).into_iter().map(key));
                }
                outcome
            }
            Err(error) => {
                self.report(error, guess, &called(&original))?;
                Outcome::Failed
            }
        };
        Ok(matches!(self.stages[n].outcome, Outcome::Done(_)))
    }

    /// Decides stage `n`, if it had to wait for the results of `reads`; whether it is one stage, which can be done.
    fn decided(&mut self, n: usize, reads: &[usize]) -> Result<bool, PipelineError> {
        let original = self.stages[n].original.clone();
        let Some((undecided, deferred)) = original.decision() else { return Ok(true) };
        let program = &self.around.program;
        let results: Vec<&StageResult> = reads.iter().filter_map(|&input| self.stages[input].result()).collect();
        match deferred {
            Deferred::Stage { needs, make, .. } => {
                let node = undecided.stage((needs, &**make), original.inputs(), &results, program)?;
                self.stages[n].node = node;
                Ok(true)
            }
            Deferred::Then(closure, nodes_of) => {
                let calls = self.decisions.entry(key(undecided.place)).or_default();
                *calls += 1;
                if *calls > DECISIONS {
                    return Ok(false);
                }
                let wanted = undecided.further((closure, *nodes_of), &original.inputs()[0], results[0], program)?;
                let before = self.stages.len();
                let mut nodes: Vec<Node> = self.stages.iter().map(|stage| stage.original.clone()).collect();
                wanted.iter().for_each(|node| visit(node, &mut nodes));
                self.stages.extend(nodes.split_off(before).into_iter().map(Rehearsed::new));
                Ok(false)
            }
        }
    }

    /// Does stage `n` on the toy.
    fn execute(&mut self, n: usize) -> Result<StageResult, PipelineError> {
        let node = self.stages[n].node.clone();
        let stage = node.stage();
        let folder = self.around.folder.join(n.to_string());
        std::fs::create_dir_all(&folder).map_err(PipelineError::io(&folder))?;
        let empty = StageResult { folder: folder.clone(), artefacts: Vec::new(), snapshots: Vec::new() };
        if let Some(run) = stage.as_run() {
            let species = run.origin.species();
            let is_of_snapshot = matches!(run.origin, Origin::Saved { .. });
            self.stages[n].guess =
                if is_of_snapshot || species.is_none() { Guess::of_file(species) } else { Guess::Nothing };
            return self.run(n, run, empty);
        }
        if stage.kind() == saved::KIND {
            let species = stage.species();
            self.stages[n].guess = Guess::of_file(species);
            let universe = self.universe(&Toy::of_snapshot(species), &self.around.work(n, Vec::new(), &[]))?;
            return Ok(self.with_outputs(n, empty, &universe, &[Moment::of(&universe.output.header)]));
        }
        // the mesh is no part of the toy
        if stage.as_initial().is_some() {
            return Ok(empty);
        }
        if EXPENSIVE.contains(&stage.kind()) {
            return Err(PipelineError::Usage("it takes as long as in a run".into()));
        }
        // of a decided stage the node's own inputs are what it reads
        let reads = self.positions(node.inputs());
        let inputs = reads.iter().filter_map(|&input| self.stages[input].result());
        let inputs = inputs.map(|result| stage.reads(result)).collect::<Result<Vec<_>, _>>()?;
        let names: Vec<String> = node.inputs().iter().map(called).collect();
        let files = stage.execute(&mut self.around.work(n, inputs, &names))?;
        let artefact = |file| Artefact { file, digest: String::new() };
        Ok(StageResult { artefacts: files.into_iter().map(artefact).collect(), ..empty })
    }

    /// A run: the closures that it calls, and its outputs.
    fn run(&mut self, n: usize, run: &Evolve, empty: StageResult) -> Result<StageResult, PipelineError> {
        let work = self.around.work(n, Vec::new(), &[]);
        let universe = self.universe(&Toy::of(run), &work)?;
        let errors = hooks::call(run, &universe, &work);
        if errors.is_empty() {
            self.found.closures.extend(run.closures().into_iter().map(key));
        }
        let guess = self.stages[n].guess;
        for error in errors {
            self.report(error, guess, "a closure of evolve")?;
        }
        Ok(self.with_outputs(n, empty, &universe, &run.outputs))
    }

    fn universe(&mut self, toy: &Toy, work: &Work<'_>) -> Result<Arc<Universe>, PipelineError> {
        let identity = toy.identity();
        if let Some(universe) = self.universes.get(&identity) {
            return Ok(Arc::clone(universe));
        }
        let universe = Arc::new(toy.evolve(work)?);
        self.universes.insert(identity, Arc::clone(&universe));
        Ok(universe)
    }

    /// A result with outputs at these moments, which are in memory alone.
    fn with_outputs(&self, n: usize, empty: StageResult, universe: &Universe, moments: &[Moment]) -> StageResult {
        let mut snapshots = Vec::new();
        let mut last = None;
        for (k, moment) in moments.iter().enumerate() {
            let is_shared = k * universe.output.bytes() > OUTPUT_BYTES;
            let snapshot = match last.take() {
                Some(last) if is_shared => last,
                _ => Arc::new(at(universe.output.clone(), *moment)),
            };
            let digest = format!("rehearsal-{n}-{k}");
            self.around.snapshots.hold(&digest, &snapshot);
            let file = SnapshotFile::new(format!("output_{k}.h5"), &snapshot.header, *moment, true);
            snapshots.push(SnapshotFile { digest, ..file });
            last = Some(snapshot);
        }
        StageResult { snapshots, ..empty }
    }

    /// Takes in an error of the stage that is called `name`.
    fn report(&mut self, error: PipelineError, guess: Guess, name: &str) -> Result<(), PipelineError> {
        match error {
            PipelineError::Recipe(error) => {
                let is_of_the_recipe = match error.cause {
                    Cause::Text => true,
                    Cause::Members => guess < Guess::Species,
                    Cause::Fields => guess == Guess::Nothing,
                    Cause::Option | Cause::Data => false,
                };
                // one of a place is enough: others may only differ in a value
                let is_same = |other: &RecipeError| other.place == error.place;
                if !is_of_the_recipe {
                    let RecipeError { file, place: Place { line, column }, message, .. } = *error;
                    self.note(format!("{file}:{line}:{column}: {message}"));
                } else if !self.found.errors.iter().any(is_same) {
                    self.found.errors.push(*error);
                }
            }
            PipelineError::Interrupted { .. } => return Err(error),
            other => self.note(format!("{name}: {other}")),
        }
        Ok(())
    }

    fn note(&mut self, note: String) {
        if !self.found.not_rehearsed.contains(&note) {
            self.found.not_rehearsed.push(note);
        }
    }

    /// The positions of stages of the recipe.
    fn positions(&self, nodes: &[Node]) -> Vec<usize> {
        let position = |node: &Node| self.stages.iter().position(|stage| stage.original.is(node));
        nodes.iter().map(|node| position(node).expect("inputs come first")).collect()
    }
}

impl Rehearsed {
    fn new(node: Node) -> Self {
        Self { original: node.clone(), node, outcome: Outcome::Left, guess: Guess::Nothing }
    }

    fn result(&self) -> Option<&StageResult> {
        match &self.outcome {
            Outcome::Done(result) => Some(result),
            Outcome::Left | Outcome::Decided | Outcome::Failed => None,
        }
    }
}

impl Surroundings {
    fn work<'a>(&'a self, n: usize, inputs: Vec<Vec<Input>>, input_names: &'a [String]) -> Work<'a> {
        Work {
            campaign: &self.folder,
            folder: self.folder.join(n.to_string()),
            fingerprint: "rehearsal",
            inputs,
            input_names,
            files: &[],
            snapshots: &self.snapshots,
            device: &self.device,
            crew: &self.crew,
            ledger: &self.ledger,
            progress: &self.progress,
            control: &self.control,
            program: Some(&self.program),
            recipe: "",
            is_rehearsal: true,
            estimator: None,
        }
    }
}

/// A stage in a message.
fn called(node: &Node) -> String {
    let stage = node.stage();
    match own_name(stage) {
        name if name == stage.kind() => name,
        name => format!("{} \"{name}\"", stage.kind()),
    }
}

/// The closures of a stage, and the decision that it is.
fn closures(node: &Node) -> Vec<Place> {
    let decision = match node.decision() {
        Some((undecided, Deferred::Then(..))) => Some(undecided.place),
        _ => None,
    };
    node.stage().closures().into_iter().chain(decision).collect()
}

fn key(place: Place) -> (usize, usize) {
    (place.line, place.column)
}
