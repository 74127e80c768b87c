//! The loop over steps: outputs as side branches, checkpoints, records, requests to stop.

use super::pace::Pace;
use super::snapshots::{SnapshotWriter, checkpoint_name};
use super::steps::Steps;
use super::{Evolve, Work};
use crate::control::Attention;
use crate::error::{Left, PipelineError};
use crate::moment::Moment;
use crate::progress::{StageProgress, step_line};
use comove_sim::records::{Raised, RunSummary, StepRecord};
use comove_sim::{SimError, Simulation};
use std::time::{Duration, Instant};

/// What surrounds the loop.
struct Voyage<'a, 'w> {
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
    raised: Option<Raised>,
}

/// Steps `simulation` until every output of `missing` (in order of time) is written.
///
/// # Errors
/// [`PipelineError::Sim`], [`PipelineError::Io`]; after a checkpoint [`PipelineError::Interrupted`] if somebody asked,
/// [`PipelineError::NoRoom`] where the next step does not fit the memory.
pub fn follow(
    simulation: &mut super::start::Started,
    run: &Evolve,
    work: &mut Work<'_>,
    missing: &[Moment],
) -> Result<RunSummary, PipelineError> {
    let steps = Steps::open(&work.folder, simulation.other_device_class.take())?;
    let mut voyage = Voyage {
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
        work,
    };
    let result = match voyage.sail(&mut simulation.simulation, missing) {
        Err(PipelineError::Sim(error)) if error.lacks_room() => Err(voyage.strand(&mut simulation.simulation, error)),
        result => result,
    };
    // what was being written is finished even if a step failed
    let finished = voyage.writer.finish(voyage.work);
    result.and_then(|summary| finished.map(|()| summary))
}

impl Voyage<'_, '_> {
    fn sail(&mut self, simulation: &mut Simulation, missing: &[Moment]) -> Result<RunSummary, PipelineError> {
        let start = simulation.now();
        let mut targets = missing;
        loop {
            let due;
            (due, targets) = targets.split_at(outputs_before(simulation.next_stop(), targets));
            for moment in due {
                self.output(simulation, *moment)?;
            }
            if targets.is_empty() {
                self.steps.sync()?;
                return Ok(simulation.summary());
            }
            let (before, began) = (simulation.now(), Instant::now());
            let record = simulation.step().inspect_err(|error| self.name_last_checkpoint(error))?;
            self.pace.stepped(began.elapsed());
            self.steps.append(&record)?;
            self.work.ledger.stepped(self.work.fingerprint, &record);
            self.say_what_is_raised(&record);
            tracing::debug!("{}", step_line(&record));
            self.progress.step(&record, self.run.end.fraction(start, simulation.now()));
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

    /// Writes the output that the recipe asks for at `moment`; at the end of the run a checkpoint before it.
    fn output(&mut self, simulation: &mut Simulation, moment: Moment) -> Result<(), PipelineError> {
        if moment == self.run.end {
            self.checkpoint(simulation, false)?;
        }
        // one snapshot in memory at a time
        self.finish_writing()?;
        let output = simulation.output_at(moment.now())?;
        self.writing = Some((Instant::now(), output.state.tree.group_count()));
        self.writer.output(self.work, output, moment)
    }

    /// Warns where `max_cells` begins or ceases to decide on a level.
    fn say_what_is_raised(&mut self, record: &StepRecord) {
        let level = |raised: Option<Raised>| raised.map(|raised| raised.level);
        if level(record.raised) != level(self.raised) {
            let place = Moment::after(record).brief();
            match record.raised {
                Some(raised) => tracing::warn!("{place}: {raised}, to stay within max_cells"),
                None => tracing::info!("{place}: what is asked for is within max_cells again"),
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
        let due = lasting || unknown || self.written_at.elapsed() >= interval;
        if due { self.checkpoint(simulation, lasting) } else { Ok(()) }
    }

    fn checkpoint(&mut self, simulation: &mut Simulation, lasting: bool) -> Result<(), PipelineError> {
        self.written_at = Instant::now();
        if self.checkpointed == Some(simulation.step_number()) && !lasting {
            return Ok(());
        }
        self.steps.sync()?;
        self.finish_writing()?;
        let began = Instant::now();
        let snapshot = simulation.checkpoint()?;
        self.writing = Some((began, snapshot.state.tree.group_count()));
        self.checkpointed = Some(simulation.step_number());
        self.writer.checkpoint(self.work, snapshot, lasting)
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
    fn strand(&mut self, simulation: &mut Simulation, source: SimError) -> PipelineError {
        match self.save(simulation) {
            Ok(()) => {
                let file = checkpoint_name(simulation.step_number());
                PipelineError::NoRoom { source, left: Left::Checkpoint { file, folder: self.work.campaign.into() } }
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
        if error.lacks_room() {
            return;
        }
        match self.checkpointed {
            Some(step) => tracing::error!("the last good checkpoint is {}", checkpoint_name(step)),
            None => tracing::error!("no checkpoint was written before"),
        }
    }
}

/// How many of these moments, in order of time, a run passes on its way to `stop`.
fn outputs_before(stop: f64, moments: &[Moment]) -> usize {
    moments.iter().take_while(|moment| moment.now() <= stop).count()
}
