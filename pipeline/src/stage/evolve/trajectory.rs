//! The loop over steps: outputs as side branches, checkpoints, records, requests to stop.

use super::hooks::stop_file;
use super::observed::Observed;
use super::pace::Pace;
use super::run::{Evolve, Segment};
use super::snapshots::{SnapshotWriter, checkpoint_name, output_name};
use super::steps::Steps;
use crate::error::{Left, PipelineError};
use crate::moment::Moment;
use crate::processes::control::Attention;
use crate::stage::work::Work;
use crate::terminal::progress::{StageProgress, step_line};
use comove_sim::records::{CellBudgetAdjustment, RunSummary, StepRecord};
use comove_sim::{SimError, Simulation, Snapshot};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What surrounds the loop.
struct RunLoop<'a, 'w> {
    run: &'a Evolve,
    work: &'a mut Work<'w>,
    writer: SnapshotWriter,
    steps: Steps,
    progress: StageProgress,
    attention: Attention,
    /// Step of the newest checkpoint, written or read.
    checkpointed: Option<u64>,
    written_at: Instant,
    pace: Pace,
    /// When the snapshot that is being written was begun, and its groups.
    writing: Option<(Instant, usize)>,
    /// What `max_cells` did to the tree, as was said last.
    raised: Option<CellBudgetAdjustment>,
    observed: Option<Observed>,
    /// The last step that the stop rule was asked of.
    asked: u64,
}

/// Steps `simulation` until every output of `leg` is written, or the stop rule is met; that was asked of the steps up to
/// `asked` before.
///
/// # Errors
/// [`PipelineError::Sim`], [`PipelineError::Io`], [`PipelineError::Recipe`] of a stop rule or of what steers; after a
/// checkpoint [`PipelineError::Interrupted`] if somebody asked, [`PipelineError::OutOfMemory`] where the next step does not fit
/// the memory.
pub(super) fn follow(
    simulation: &mut super::start::Started,
    run: &Evolve,
    work: &mut Work<'_>,
    leg: &Segment,
    asked: u64,
) -> Result<RunSummary, PipelineError> {
    let steps = Steps::open(&work.folder, simulation.other_device_class.take())?;
    let observed = Observed::open(&run.hooks, work)?;
    let end = if leg.stop.is_none() { &leg.outputs } else { &run.outputs };
    work.estimator.iter_mut().for_each(|estimator| estimator.begin(&simulation.begun, end));
    let mut run_loop = RunLoop {
        run,
        writer: SnapshotWriter::new(run.checkpoints.keep),
        steps,
        progress: work.progress.stage(),
        attention: work.control.attend(),
        checkpointed: simulation.checkpoint_step,
        written_at: Instant::now(),
        pace: Pace::default(),
        writing: None,
        raised: None,
        observed,
        asked,
        work,
    };
    let result = match run_loop.run(&mut simulation.simulation, leg) {
        Err(PipelineError::Sim(error)) if error.is_out_of_memory() => {
            Err(run_loop.stop_out_of_memory(&mut simulation.simulation, error))
        }
        result => result,
    };
    // what was being written is finished even if a step failed
    let finished = run_loop.writer.finish(run_loop.work);
    result.and_then(|summary| finished.map(|()| summary))
}

impl RunLoop<'_, '_> {
    fn run(&mut self, simulation: &mut Simulation, leg: &Segment) -> Result<RunSummary, PipelineError> {
        let start = simulation.now();
        let mut targets = leg.outputs.as_slice();
        loop {
            let due;
            (due, targets) = targets.split_at(outputs_before(simulation.next_stop(), targets));
            for moment in due {
                self.output(simulation, *moment)?;
            }
            if leg.stop.is_some_and(|stop| stop.step == simulation.step_number()) {
                return self.stop(simulation);
            }
            if targets.is_empty() && leg.stop.is_none() {
                self.sync()?;
                return Ok(simulation.summary());
            }
            let (before, began) = (simulation.now(), Instant::now());
            let record = simulation.step().inspect_err(|error| self.name_last_checkpoint(error))?;
            self.pace.stepped(began.elapsed());
            self.steps.append(&record)?;
            let left = self.work.estimator.as_mut().and_then(|estimator| {
                estimator.step(&record);
                estimator.left()
            });
            self.work.ledger.stepped(self.work.fingerprint, &record, left);
            self.say_what_is_raised(&record);
            tracing::debug!("{}", step_line(&record));
            let left = left.and_then(|left| left.text(self.run.hooks.stop_when.is_some())).unwrap_or_default();
            self.progress.step(&record, self.run.end.fraction(start, simulation.now()), &left);
            if self.asks(simulation, &record)? {
                self.run.rule_met(&record, self.work)?;
                return self.stop(simulation);
            }
            self.writer.collect(self.work)?;
            self.note_writing();
            self.checkpoint_if_due(simulation, before)?;
            self.obey(simulation, targets, record.groups.iter().sum())?;
        }
    }

    /// Does what is asked for from outside. `targets`: the outputs to come; the state has so many groups.
    fn obey(&mut self, simulation: &mut Simulation, targets: &[Moment], groups: usize) -> Result<(), PipelineError> {
        let control = self.work.control;
        if self.attention.dump() {
            self.save(simulation)?;
            self.attention.dumped()?;
        }
        if control.pause() {
            self.save(simulation)?;
            control.wait();
            self.written_at = Instant::now();
        }
        // an output is a step on a copy, and a snapshot as the checkpoint afterwards and what is being written now
        let outputs = outputs_before(simulation.next_stop(), targets);
        let snapshots = outputs + 1 + usize::from(self.writing.is_some());
        let next = self.pace.of(outputs + 1, snapshots, groups);
        let Some(by) = control.stop(next) else { return Ok(()) };
        self.save(simulation)?;
        Err(PipelineError::Interrupted { folder: self.work.campaign.into(), by })
    }

    /// Asks the closures of the recipe after a step: what steers the next ones, what is noted, and whether this was the last.
    fn asks(&mut self, simulation: &mut Simulation, record: &StepRecord) -> Result<bool, PipelineError> {
        let hooks = &self.run.hooks;
        if !hooks.see_steps() {
            return Ok(false);
        }
        let seen = serde_json::to_value(record).expect("a record is plain data");
        // a checkpoint of this step would go on unsteered
        hooks.steer(simulation, &seen, self.work).inspect_err(|_| self.say_last_checkpoint())?;
        if let Some(observed) = &mut self.observed {
            observed.step(hooks, record, &seen, self.work)?;
        }
        if record.step <= self.asked {
            return Ok(false);
        }
        match hooks.stops(&seen, self.work) {
            Ok(met) => Ok(met && simulation.now() < self.run.end.now()),
            Err(error) => {
                // the rule is asked of the records when the run goes on
                self.save(simulation)?;
                self.say_last_checkpoint();
                Err(error)
            }
        }
    }

    /// Ends the run after a step that its stop rule is met by: with a checkpoint, and an output of the state as it is.
    fn stop(&mut self, simulation: &mut Simulation) -> Result<RunSummary, PipelineError> {
        self.checkpoint(simulation, false)?;
        let name = stop_file(simulation.step_number());
        self.write_output(simulation, simulation.now(), None, name)?;
        self.sync()?;
        Ok(simulation.summary())
    }

    /// Writes the output that the recipe asks for at `moment`; at the end of the run a checkpoint before it.
    fn output(&mut self, simulation: &mut Simulation, moment: Moment) -> Result<(), PipelineError> {
        if moment == self.run.end {
            self.checkpoint(simulation, false)?;
        }
        self.write_output(simulation, moment.now(), Some(moment), output_name(moment))
    }

    /// Writes the state at `now`, which the recipe calls `moment` if it asks for it.
    fn write_output(
        &mut self,
        simulation: &mut Simulation,
        now: f64,
        moment: Option<Moment>,
        name: String,
    ) -> Result<(), PipelineError> {
        // one snapshot in memory at a time
        self.finish_writing()?;
        let mut output = simulation.output_at(now)?;
        let moment = moment.unwrap_or_else(|| Moment::of(&output.header));
        let (hooks, path) = (&self.run.hooks, self.work.path(&name));
        if let Some(observed) = self.observed.as_mut().filter(|_| self.work.is_alone()) {
            let shared = Arc::new(output);
            observed.output(hooks, &shared, moment, self.work)?;
            output = Arc::unwrap_or_clone(shared);
        }
        self.writing = Some((Instant::now(), simulation.groups().iter().sum()));
        self.writer.output(self.work, simulation, output, moment, name)?;
        if let Some(observed) = self.observed.as_mut().filter(|_| !self.work.is_alone() && hooks.on_output.is_some()) {
            // the file alone has all of it
            self.writer.complete()?;
            observed.output(hooks, &Arc::new(Snapshot::read(&path)?), moment, self.work)?;
        }
        Ok(())
    }

    /// Brings the records and what was noted to disk.
    fn sync(&self) -> Result<(), PipelineError> {
        self.steps.sync()?;
        self.observed.as_ref().map_or(Ok(()), Observed::sync)
    }

    /// Warns where `max_cells` begins or ceases to decide on a level.
    fn say_what_is_raised(&mut self, record: &StepRecord) {
        let level = |raised: Option<CellBudgetAdjustment>| raised.map(|raised| raised.level);
        if level(record.raised) != level(self.raised) {
            let place = Moment::after(record).brief();
            match record.raised {
                Some(raised) => tracing::warn!("{place}: {raised}, to stay within max_cells"),
                None => tracing::info!("{place}: the thresholds of the recipe are used again, within max_cells"),
            }
        }
        self.raised = record.raised;
    }

    fn checkpoint_if_due(&mut self, simulation: &mut Simulation, before: f64) -> Result<(), PipelineError> {
        let policy = &self.run.checkpoints;
        let passed = |moment: Moment| moment.now() > before && moment.now() <= simulation.now();
        let lasting = policy.moments().any(passed);
        let interval = Duration::try_from_secs_f64(policy.every_minutes * 60.0).unwrap_or(Duration::MAX);
        // what writing takes has to be known before time is short
        let unknown = self.work.control.has_walltime() && !self.pace.has_written() && self.writing.is_none();
        let at_step = policy.at_step(simulation.step_number());
        let due = lasting || at_step || unknown || self.written_at.elapsed() >= interval;
        if due { self.checkpoint(simulation, lasting) } else { Ok(()) }
    }

    fn checkpoint(&mut self, simulation: &mut Simulation, lasting: bool) -> Result<(), PipelineError> {
        self.written_at = Instant::now();
        if self.checkpointed == Some(simulation.step_number()) && !lasting {
            return Ok(());
        }
        self.sync()?;
        self.finish_writing()?;
        let began = Instant::now();
        let snapshot = simulation.checkpoint()?;
        self.writing = Some((began, simulation.groups().iter().sum()));
        self.checkpointed = Some(simulation.step_number());
        self.writer.checkpoint(self.work, simulation, snapshot, lasting)
    }

    /// A checkpoint of the last step, on disk when this returns.
    fn save(&mut self, simulation: &mut Simulation) -> Result<(), PipelineError> {
        self.checkpoint(simulation, false)?;
        self.finish_writing()
    }

    fn finish_writing(&mut self) -> Result<(), PipelineError> {
        self.writer.finish(self.work)?;
        self.note_writing();
        Ok(())
    }

    /// Takes down how long the last snapshot took, if it is on disk by now.
    fn note_writing(&mut self) {
        if let Some((began, groups)) = self.writing.take_if(|_| !self.writer.is_writing()) {
            self.pace.wrote(began.elapsed(), groups);
        }
    }

    /// There is no room for the next step: leaves a checkpoint of the last one.
    fn stop_out_of_memory(&mut self, simulation: &mut Simulation, source: SimError) -> PipelineError {
        match self.save(simulation) {
            Ok(()) => {
                let file = checkpoint_name(simulation.step_number());
                PipelineError::OutOfMemory {
                    source,
                    left: Left::Checkpoint { file, folder: self.work.campaign.into() },
                }
            }
            Err(error) => {
                tracing::error!("{source}; {error}");
                error
            }
        }
    }

    /// A step that fails has spoilt the state, unless it was not begun for lack of room: say what the run can be continued
    /// from.
    fn name_last_checkpoint(&self, error: &SimError) {
        if !error.is_out_of_memory() {
            self.say_last_checkpoint();
        }
    }

    fn say_last_checkpoint(&self) {
        match self.checkpointed {
            Some(step) => tracing::error!("last checkpoint: {}", checkpoint_name(step)),
            None => tracing::error!("no checkpoint was written"),
        }
    }
}

/// How many of these moments, in order of time, a run passes on its way to `stop`.
fn outputs_before(stop: f64, moments: &[Moment]) -> usize {
    moments.iter().take_while(|moment| moment.now() <= stop).count()
}
