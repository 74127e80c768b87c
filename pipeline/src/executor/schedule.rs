//! Which stage begins next, and what follows from one that has ended.

use super::Executor;
use super::job::{Job, forget, verify};
use super::room::Room;
use super::slots::{Place, Slots};
use crate::campaign::resolver::Path;
use crate::campaign::{CampaignResolver, Node, Resolved, StageStatus};
use crate::error::PipelineError;
use crate::ledger::{Artefact, Event};
use crate::stage::evolve::Evolve;
use crate::stage::{Memory, StageResult};
use crate::terminal::progress::Total;
use comove_kernels::{Device, memory};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// How long a stage that failed waits for its next attempt: what hindered it may have passed.
const PATIENCE: Duration = Duration::from_secs(2);

/// Memory that an analysis takes for a byte of the file that it reads: the fields in double precision and what it makes of
/// them. Only decides what is done at the same time.
const BYTES_PER_BYTE_READ: f64 = 3.0;

/// The stages that are left, those being done, and what they have taken.
pub(super) struct Schedule<'a> {
    executor: &'a Executor<'a>,
    resolver: CampaignResolver<'a>,
    slots: Slots,
    stages: Vec<ScheduledStage>,
    /// What was begun in this process, by fingerprint: the same is not forgotten or verified again.
    begun: BTreeSet<String>,
    running: BTreeMap<usize, Running>,
    room: Room,
    errors: Vec<PipelineError>,
    /// Nothing begins any more.
    closed: bool,
    total: Total,
}

/// How far a stage is.
#[derive(Clone, Copy, Debug)]
struct ScheduledStage {
    state: State,
    /// Whether it is to be done again though it may be done.
    forced: bool,
    /// Whether its files were compared with the ledger.
    verified: bool,
    failures: u32,
    /// When it may begin again after it has failed.
    from: Option<Instant>,
    /// Whether it needs all of a device.
    alone: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It has not begun, or will be begun again.
    Left,
    Running,
    Done,
    /// Nobody asked for it.
    Unwanted,
    /// It has failed for good, or something that it needs has.
    Failed,
}

impl ScheduledStage {
    fn new(executor: &Executor<'_>, path: &Path) -> Self {
        Self {
            state: if executor.choice.wants(path) { State::Left } else { State::Unwanted },
            forced: executor.choice.forces(path),
            verified: false,
            failures: 0,
            from: None,
            alone: false,
        }
    }
}

struct Running {
    /// The stages that are done by it, the same by their fingerprint.
    stages: Vec<usize>,
    fingerprint: String,
    title: String,
    /// What it has of a device, if it is a run.
    place: Option<Place>,
    /// Bytes of the host that it may take.
    memory: f64,
    /// Whether nothing may be done beside it.
    alone: bool,
    /// Whether another stage ran at the same time.
    beside: bool,
}

impl<'a> Schedule<'a> {
    pub(super) fn new(executor: &'a Executor<'a>, slots: Slots) -> Self {
        let resolver = CampaignResolver::new(executor.campaign, executor.folder.path()).shown(executor.progress);
        let resolver = resolver.accepting_older(executor.accept_version);
        let stages: Vec<ScheduledStage> =
            resolver.positions().map(|n| ScheduledStage::new(executor, resolver.path(n))).collect();
        let total = executor.progress.total(stages.iter().filter(|stage| stage.state == State::Left).count());
        let (begun, running, errors) = (BTreeSet::new(), BTreeMap::new(), Vec::new());
        Self { executor, resolver, slots, stages, begun, running, room: Room::default(), errors, closed: false, total }
    }

    /// Whether nothing is being done, nor will be.
    pub(super) fn is_over(&self) -> bool {
        self.running.is_empty() && (self.closed || self.stages.iter().all(|stage| stage.state != State::Left))
    }

    /// The next stage to be done now, entered into the ledger as begun; its number tells who has ended.
    pub(super) fn next(&mut self) -> Option<(usize, Job)> {
        if self.is_closed()
            || !(self.allows(true) || self.allows(false))
            || self.running.values().any(|running| running.alone)
        {
            return None;
        }
        let mut at = 0..;
        while let Some(n) = at.next().filter(|n| *n < self.stages.len() && !self.closed) {
            let ScheduledStage { state, from, alone, .. } = self.stages[n];
            if state != State::Left || from.is_some_and(|from| from > Instant::now()) || !self.is_to_do(n) {
                continue;
            }
            match self.begin(n, alone) {
                Ok(Some(job)) => return Some((n, job)),
                Ok(None) => {}
                Err(error) => {
                    let resolved = self.resolver.resolved(n).expect("it is to do");
                    let (fingerprint, title) = (resolved.fingerprint.clone(), self.title(n, resolved));
                    self.attempted(&[n], fingerprint, &title, error);
                }
            }
        }
        None
    }

    /// Whether nothing may begin now, for good or during a pause.
    fn is_closed(&mut self) -> bool {
        let control = self.executor.control;
        if !self.closed && control.pause() && self.running.is_empty() && self.is_something_left() {
            control.wait();
        }
        if !self.closed
            && let Some(by) = control.stop(Duration::ZERO)
            && self.is_something_left()
        {
            self.interrupted(by);
        }
        self.closed || control.pause()
    }

    /// Whether there is anything to stop; what turns out to be done already is noted.
    fn is_something_left(&mut self) -> bool {
        let is_left = |stage: &ScheduledStage| stage.state == State::Left;
        !self.running.is_empty()
            || self
                .resolver
                .positions()
                .any(|n| is_left(&self.stages[n]) && (self.is_to_do(n) || is_left(&self.stages[n])))
    }

    /// Whether everything that stage `n` reads is there and something of it is left to do; what is done already is noted.
    fn is_to_do(&mut self, n: usize) -> bool {
        if !self.is_ready(n) {
            return false;
        }
        match self.look(n) {
            Ok(StageStatus::ToDo) => true,
            Ok(StageStatus::Waiting) => false,
            Ok(StageStatus::Decided) => {
                let further = self.resolver.further(n).map_or(0, <[usize]>::len);
                tracing::info!("{}: {further} further stages", self.resolver.name(n));
                self.done(n);
                false
            }
            Ok(standing) => {
                if let (StageStatus::Done, Some(resolved)) = (standing, self.resolver.resolved(n)) {
                    tracing::info!("{}: done before", self.title(n, resolved));
                }
                self.done(n);
                false
            }
            Err(error) => {
                self.failed(&[n], error);
                false
            }
        }
    }

    /// Takes in the stages that were decided on.
    fn grow(&mut self) {
        let new = self.stages.len()..self.resolver.positions().end;
        if new.is_empty() {
            return;
        }
        for n in new.clone() {
            self.stages.push(ScheduledStage::new(self.executor, self.resolver.path(n)));
            self.total.more(u64::from(self.stages[n].state == State::Left));
        }
        for n in new.filter(|&n| self.stages[n].state == State::Left).collect::<Vec<_>>() {
            self.want_inputs(n);
        }
        self.hinder();
    }

    /// What stage `n` needs is to be done too, though nobody may have asked for it before.
    fn want_inputs(&mut self, n: usize) {
        for input in self.resolver.inputs(n).to_vec() {
            if self.stages[input].state == State::Unwanted {
                self.stages[input].state = State::Left;
                self.total.more(1);
                self.want_inputs(input);
            }
        }
    }

    /// What needs something that has failed is not done.
    fn hinder(&mut self) {
        // inputs come first, so one pass finds everything
        for n in 0..self.stages.len() {
            let needed = self.resolver.inputs(n).iter().find(|&&input| self.stages[input].state == State::Failed);
            if let Some(needed) = needed.filter(|_| self.stages[n].state == State::Left) {
                let [stage, needed] = [n, *needed].map(|n| self.resolver.name(n));
                tracing::warn!("{stage} is skipped, because it needs {needed}");
                self.stages[n].state = State::Failed;
            }
        }
    }

    /// Whether everything that stage `n` reads is there.
    fn is_ready(&self, n: usize) -> bool {
        self.resolver.inputs(n).iter().all(|&input| self.resolver.result(input).is_some())
    }

    /// Where stage `n` stands, its files compared with the ledger.
    fn look(&mut self, n: usize) -> Result<StageStatus, PipelineError> {
        let ledger = self.executor.ledger;
        let standing = self.resolver.look(n, &ledger.history())?;
        self.grow();
        let Some(resolved) = self.resolver.resolved(n) else {
            self.note_trials(n)?;
            return Ok(standing);
        };
        if self.begun.contains(&resolved.fingerprint) {
            return Ok(standing);
        }
        let now = self.resolver.stage(n).results_version();
        if resolved.version != now && self.stages[n].forced {
            // done again, it is of this version
            forget(resolved, self.executor)?;
            self.resolver.resolve_again(n);
            return self.look(n);
        }
        if resolved.version != now {
            self.accept(n)?;
        }
        let resolved = self.resolver.resolved(n).expect("it was there");
        if self.stages[n].forced {
            // what it has done is forgotten when it begins
            self.resolver.set_aside(n);
            return Ok(StageStatus::ToDo);
        }
        if std::mem::replace(&mut self.stages[n].verified, true) {
            return Ok(standing);
        }
        verify(self.resolver.stage(n), resolved, self.executor)?;
        self.resolver.set_aside(n);
        self.resolver.look(n, &ledger.history())
    }

    /// Enters into the ledger that the snapshots of stage `n`, which were given, have been validated in a child process.
    fn note_trials(&self, n: usize) -> Result<(), PipelineError> {
        let ledger = self.executor.ledger;
        let Some(given) = self.resolver.result(n) else { return Ok(()) };
        for snapshot in given.snapshots.iter().filter(|snapshot| !ledger.history().vouches_for(&snapshot.digest)) {
            let file = given.folder.join(&snapshot.file).display().to_string();
            let digest = snapshot.digest.clone();
            ledger.append(Event::InputTried { file: Artefact { file, digest } })?;
        }
        Ok(())
    }

    /// Enters into the ledger, once, that what an earlier version of stage `n` has made is continued.
    fn accept(&self, n: usize) -> Result<(), PipelineError> {
        let (ledger, stage) = (self.executor.ledger, self.resolver.stage(n));
        let resolved = self.resolver.resolved(n).expect("it was looked at");
        let (made_by, continued_by) = (resolved.version, stage.results_version());
        let known =
            ledger.history().stage(&resolved.fingerprint).is_some_and(|h| h.continued_by.contains(&continued_by));
        if known {
            return Ok(());
        }
        tracing::warn!(
            "{}: begun with results version {made_by} of {}, continued with version {continued_by}; CHANGELOG lists \
             the differences",
            self.title(n, resolved),
            stage.kind(),
        );
        ledger.append(Event::VersionAccepted { fingerprint: resolved.fingerprint.clone(), made_by, continued_by })
    }

    /// Begins stage `n`, together with all that are the same and ready, if there is room for it.
    fn begin(&mut self, n: usize, alone: bool) -> Result<Option<Job>, PipelineError> {
        let resolved = self.resolver.resolved(n).expect("it is to do").clone();
        if self.running.values().any(|running| running.fingerprint == resolved.fingerprint) {
            return Ok(None);
        }
        let stage = self.resolver.stage(n);
        let is_run = stage.as_run().is_some();
        if !self.allows(is_run) || (alone && !self.running.is_empty()) {
            return Ok(None);
        }
        let place = if is_run { self.slots.take(stage, alone) } else { None };
        if is_run && place.is_none() {
            return Ok(None);
        }
        let (least, memory) = self.host_memory(n, &resolved);
        match self.room.take(least, memory, memory::available, || self.executor.snapshots.clear()) {
            Ok(true) => {}
            refused => {
                place.into_iter().for_each(|place| self.slots.give_back(place));
                return refused.map(|_| None);
            }
        }
        let stages = self.same(n);
        let node = self.joined(&stages);
        let device = place.as_ref().map_or_else(|| self.slots.any().clone(), Place::device);
        let (fingerprint, title) = (resolved.fingerprint.clone(), self.title(n, &resolved));
        let forgets = self.begun.insert(fingerprint.clone()) && self.stages[n].forced;
        let input_names = self.resolver.reads(n).iter().map(|&input| self.resolver.name(input).into()).collect();
        let job = Job { node, name: self.resolver.name(n).into(), input_names, resolved, device };
        let forgotten = if forgets { forget(&job.resolved, self.executor) } else { Ok(()) };
        if let Err(error) = forgotten.and_then(|()| job.begin(self.executor)) {
            self.give_back(place, memory);
            return Err(error);
        }
        stages.iter().for_each(|&n| self.stages[n].state = State::Running);
        let beside = !self.running.is_empty();
        self.running.values_mut().for_each(|running| running.beside = true);
        self.running.insert(n, Running { stages, fingerprint, title, place, memory, alone, beside });
        self.total.running(self.running.len());
        Ok(Some(job))
    }

    /// Bytes of this node that stage `n` needs, and that it may take.
    fn host_memory(&self, n: usize, resolved: &Resolved) -> (f64, f64) {
        let stage = self.resolver.stage(n);
        let Memory { host, device } = stage.memory(self.slots.any(), None);
        // a run sees for itself what it takes of a GPU
        let all = host + if matches!(self.slots.any(), Device::Cpu(_)) { device } else { 0.0 };
        let least = all * if stage.is_shared() { self.executor.part_on_node } else { 1.0 };
        if stage.as_run().is_some() {
            return (least, least);
        }
        let files = resolved.inputs.iter().flatten().filter_map(|input| input.path.metadata().ok());
        let read = files.map(|file| file.len() as f64 * BYTES_PER_BYTE_READ).fold(0.0, f64::max);
        (least, least.max(read))
    }

    /// Whether one more stage may be done, a run or another one.
    fn allows(&self, is_run: bool) -> bool {
        let runs = self.running.values().filter(|running| running.place.is_some()).count();
        self.slots.allow(is_run, runs, self.running.len() - runs)
    }

    /// The stages that are left to do and the same as `n`; runs whose outputs are all there are not held up by others.
    fn same(&mut self, n: usize) -> Vec<usize> {
        let fingerprint = self.resolver.resolved(n).expect("it is to do").fingerprint.clone();
        let (positions, has_outputs) = (self.resolver.positions(), self.has_its_outputs(n));
        let mut is_same = |other: usize| {
            self.stages[other].state == State::Left
                && self.is_ready(other)
                && matches!(self.look(other), Ok(StageStatus::ToDo))
                && self.resolver.resolved(other).is_some_and(|resolved| resolved.fingerprint == fingerprint)
                && self.has_its_outputs(other) == has_outputs
                && self.is_joined_with(n, other)
        };
        positions.filter(|&other| is_same(other)).collect()
    }

    /// Whether two stages that are the same can be done together: runs, if they are asked the same after every step.
    fn is_joined_with(&self, n: usize, other: usize) -> bool {
        match (self.resolver.stage(n).as_run(), self.resolver.stage(other).as_run()) {
            (Some(one), Some(other)) => one.hooks.extent() == other.hooks.extent(),
            _ => true,
        }
    }

    /// Whether stage `n` is a run that has written all its outputs.
    fn has_its_outputs(&self, n: usize) -> bool {
        let history = self.executor.ledger.history();
        self.resolver
            .stage(n)
            .as_run()
            .zip(self.resolver.known(n, &history))
            .is_some_and(|(run, history)| run.has_all(history))
    }

    /// How stage `n` is named in the log: for a reader, and by its folder.
    fn title(&self, n: usize, resolved: &Resolved) -> String {
        format!("{} ({})", self.resolver.name(n), resolved.folder)
    }

    /// What does all of these, which are the same: of runs one that ends where the last of them does, with the outputs of all.
    fn joined(&self, stages: &[usize]) -> Node {
        let runs: Vec<&Evolve> = stages.iter().filter_map(|&n| self.resolver.stage(n).as_run()).collect();
        if runs.len() > 1 {
            Node::new(Evolve::joined(&runs), Vec::new())
        } else {
            self.resolver.node(stages[0]).clone()
        }
    }

    /// Takes in how a job has ended.
    pub(super) fn ended(&mut self, number: usize, outcome: Result<(), PipelineError>) {
        let Running { stages, fingerprint, title, place, memory, beside, .. } =
            self.running.remove(&number).expect("it was begun");
        self.total.running(self.running.len());
        let whole = place.as_ref().is_none_or(|place| place.whole);
        self.give_back(place, memory);
        match outcome {
            Ok(()) => {
                for &n in &stages {
                    match self.resolver.look(n, &self.executor.ledger.history()) {
                        Ok(StageStatus::Done) => self.done(n),
                        Ok(standing) => unreachable!("{title} has ended and is {standing:?}"),
                        Err(error) => self.failed(&[n], error),
                    }
                }
            }
            Err(PipelineError::Interrupted { by, .. }) => {
                self.again(&stages);
                // those that end because of a failure were not asked from outside
                if !self.closed {
                    self.interrupted(by);
                }
            }
            Err(PipelineError::OutOfMemory { source, .. }) if !whole || beside => {
                tracing::warn!("{title}: {source}; retrying once the device is free");
                self.again(&stages);
                stages.iter().for_each(|&n| self.stages[n].alone = true);
            }
            Err(error) => {
                let (there, lacking): (Vec<_>, Vec<_>) = stages.iter().partition(|&&n| self.has_its_outputs(n));
                if lacking.is_empty() {
                    return self.attempted(&stages, fingerprint, &title, error);
                }
                self.again(&there);
                self.attempted(&lacking, fingerprint, &title, error);
            }
        }
    }

    /// Takes in that a job has panicked.
    pub(super) fn panicked(&mut self, number: usize) {
        let running = self.running.remove(&number).expect("it was begun");
        running.stages.iter().for_each(|&n| self.stages[n].state = State::Failed);
        self.close(format!("a bug in {}", running.title));
    }

    fn give_back(&mut self, place: Option<Place>, memory: f64) {
        place.into_iter().for_each(|place| self.slots.give_back(place));
        self.room.give_back(memory);
    }

    /// What has been reached, and everything that went wrong.
    pub(super) fn outcome(self) -> (Vec<StageResult>, Vec<PipelineError>) {
        (self.resolver.results().cloned().collect(), self.errors)
    }

    /// A stage has failed after it had a folder: another attempt, if that may help and the recipe allows for one.
    fn attempted(&mut self, stages: &[usize], fingerprint: String, title: &str, error: PipelineError) {
        let attempts = self.executor.campaign.attempts;
        let failures = self.stages[stages[0]].failures + 1;
        let (reason, code) = (error.to_string(), Some(error.exit_code()));
        let recorded = self.executor.ledger.append(Event::StageFailed { fingerprint, reason, code });
        if failures < attempts && error.may_pass() && recorded.is_ok() && !self.closed {
            tracing::warn!("{title}: {error}; retrying, attempt {} of {attempts}", failures + 1);
            self.again(stages);
            for &n in stages {
                (self.stages[n].failures, self.stages[n].from) = (failures, Some(Instant::now() + PATIENCE));
            }
            return;
        }
        self.failed(stages, PipelineError::Stage { stage: title.into(), source: Box::new(error) });
        if let Err(error) = recorded {
            self.errors.push(error);
            self.close(format!("the failure of {title}"));
        }
    }

    /// Stages have failed for good, and with them what needs them.
    fn failed(&mut self, stages: &[usize], error: PipelineError) {
        let because = format!("a failure ({error})");
        if self.executor.keep_going {
            tracing::error!("{error}");
        }
        self.errors.push(error);
        stages.iter().for_each(|&n| self.stages[n].state = State::Failed);
        if !self.executor.keep_going {
            return self.close(because);
        }
        self.hinder();
    }

    /// Somebody has asked to stop.
    fn interrupted(&mut self, by: String) {
        self.closed = true;
        let folder = self.executor.folder.path().into();
        self.errors.push(PipelineError::Interrupted { folder, by });
    }

    /// Nothing begins any more, and runs end with a checkpoint.
    fn close(&mut self, because: String) {
        self.closed = true;
        self.executor.control.close(because);
    }

    fn done(&mut self, n: usize) {
        self.stages[n].state = State::Done;
        self.total.done();
    }

    /// These stages may begin again.
    fn again(&mut self, stages: &[usize]) {
        stages.iter().for_each(|&n| self.stages[n].state = State::Left);
    }
}
