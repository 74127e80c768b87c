//! The loop over steps: outputs as side branches, checkpoints, records, requests to stop.

use super::snapshots::{SnapshotWriter, checkpoint_name};
use super::steps::Steps;
use super::{Evolve, Work};
use crate::error::PipelineError;
use crate::moment::Moment;
use crate::progress::{StageProgress, step_line};
use comove_sim::Simulation;
use comove_sim::records::RunSummary;
use std::time::{Duration, Instant};

/// What surrounds the loop.
struct Voyage<'a, 'w> {
    run: &'a Evolve,
    work: &'a mut Work<'w>,
    writer: SnapshotWriter,
    steps: Steps,
    progress: StageProgress,
    /// Step of the newest checkpoint, written or read.
    checkpointed: Option<u64>,
    written_at: Instant,
}

/// Steps `simulation` until every output of `missing` (in order of time) is written.
///
/// # Errors
/// [`PipelineError::Sim`], [`PipelineError::Io`]; [`PipelineError::Interrupted`] after a checkpoint if somebody asked.
pub fn follow(
    simulation: &mut super::start::Started,
    run: &Evolve,
    work: &mut Work<'_>,
    missing: &[Moment],
) -> Result<RunSummary, PipelineError> {
    let steps = Steps::open(&work.folder, simulation.other_device_class.take())?;
    let folder = work.folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut voyage = Voyage {
        run,
        writer: SnapshotWriter::new(run.checkpoints.keep),
        steps,
        progress: work.progress.stage(&folder),
        checkpointed: simulation.checkpoint_step,
        written_at: Instant::now(),
        work,
    };
    let result = voyage.sail(&mut simulation.simulation, missing);
    // what was being written is finished even if a step failed
    let finished = voyage.writer.finish(voyage.work);
    result.and_then(|summary| finished.map(|()| summary))
}

impl Voyage<'_, '_> {
    fn sail(&mut self, simulation: &mut Simulation, missing: &[Moment]) -> Result<RunSummary, PipelineError> {
        let start = simulation.now();
        let mut targets = missing.iter().copied().peekable();
        loop {
            let next = simulation.next_stop();
            while let Some(moment) = targets.next_if(|moment| moment.now() <= next) {
                if moment == self.run.end {
                    self.checkpoint(simulation, false)?;
                }
                let output = simulation.output_at(moment.now())?;
                self.writer.output(self.work, output, moment)?;
            }
            if targets.peek().is_none() {
                self.steps.sync()?;
                return Ok(simulation.summary());
            }
            let before = simulation.now();
            let record = simulation.step().inspect_err(|_| self.name_last_checkpoint())?;
            self.steps.append(&record)?;
            tracing::debug!("{}", step_line(&record));
            self.progress.step(&record, self.run.end.fraction(start, simulation.now()));
            self.writer.collect(self.work)?;
            self.checkpoint_if_due(simulation, before)?;
            if let Some(by) = self.work.interrupt.requested() {
                self.checkpoint(simulation, false)?;
                self.writer.finish(self.work)?;
                return Err(PipelineError::Interrupted { folder: self.work.campaign.into(), by });
            }
        }
    }

    fn checkpoint_if_due(&mut self, simulation: &mut Simulation, before: f64) -> Result<(), PipelineError> {
        let policy = &self.run.checkpoints;
        let passed = |moment: Moment| moment.now() > before && moment.now() <= simulation.now();
        let lasting = policy.moments().any(passed);
        let interval = Duration::try_from_secs_f64(policy.every_minutes * 60.0).unwrap_or(Duration::MAX);
        if lasting || self.written_at.elapsed() >= interval { self.checkpoint(simulation, lasting) } else { Ok(()) }
    }

    fn checkpoint(&mut self, simulation: &mut Simulation, lasting: bool) -> Result<(), PipelineError> {
        self.written_at = Instant::now();
        if self.checkpointed == Some(simulation.step_number()) && !lasting {
            return Ok(());
        }
        self.checkpointed = Some(simulation.step_number());
        self.steps.sync()?;
        let snapshot = simulation.checkpoint()?;
        self.writer.checkpoint(self.work, snapshot, lasting)
    }

    /// A step that fails has spoilt the state: say what the run can be continued from.
    fn name_last_checkpoint(&self) {
        match self.checkpointed {
            Some(step) => tracing::error!("the last good checkpoint is {}", checkpoint_name(step)),
            None => tracing::error!("no checkpoint was written before"),
        }
    }
}
