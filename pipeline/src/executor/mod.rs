//! Runs a campaign: what is done is verified and not redone, the rest is done as soon as what it reads is there, so much
//! at once as devices and memory allow.
//!
//! | module | what it holds |
//! |---|---|
//! | [`slots`] | the devices, in shares for runs |
//! | `schedule` | which stage begins next, and what follows from one that has ended |
//! | `room` | memory of the host, held back for what is being done |
//! | `job` | one stage being done |
//!
//! One thread decides; each stage that is being done has a thread of its own. Results do not depend on which stages happen
//! to be done at the same time: a stage sees files that are complete, and nothing of its neighbours.

mod job;
mod room;
mod schedule;
pub(crate) mod slots;

use crate::campaign::Campaign;
use crate::campaign::select::Choice;
use crate::error::PipelineError;
use crate::ledger::{Event, Ledger};
use crate::processes::control::Control;
use crate::stage::StageResult;
use crate::storage::folder::CampaignFolder;
use crate::storage::snapshots::Snapshots;
use crate::terminal::progress::Progress;
use comove_sim::RankGroup;
use schedule::Schedule;
pub(crate) use slots::Slots;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc;
use std::time::Duration;

/// How often is looked whether something may begin that nothing that ended has made way for.
const LOOK: Duration = Duration::from_millis(100);

pub(crate) struct Executor<'a> {
    pub campaign: &'a Campaign,
    /// Its folder, which this process has locked.
    pub folder: &'a CampaignFolder,
    pub ledger: &'a Ledger,
    /// The processes that compute runs together.
    pub crew: &'a RankGroup,
    /// The part of what they take together that this one's node has.
    pub part_on_node: f64,
    /// The snapshots in memory, of stages that are done and for those to come.
    pub snapshots: Snapshots,
    /// Where to show how far it is.
    pub progress: &'a Progress,
    /// What is asked for from outside.
    pub control: &'a Control,
    pub recipe: &'a str,
    /// Which stages are to be done, and which of them again.
    pub choice: Choice,
    /// Whether runs that an earlier version of their stage has made are continued.
    pub accept_version: bool,
    /// Whether a stage that fails leaves those alone that do not need it.
    pub keep_going: bool,
}

impl Executor<'_> {
    /// Does every stage that is chosen and not done; returns the results of all that are.
    ///
    /// # Errors
    /// [`PipelineError::Interrupted`] if somebody asked to stop, [`PipelineError::OutOfTime`], and why stages failed, after it
    /// entered the ledger.
    pub(crate) fn run(&self, slots: Slots) -> Result<Vec<StageResult>, PipelineError> {
        let mut schedule = Schedule::new(self, slots);
        let (ended, news) = mpsc::channel();
        let mut panic = None;
        std::thread::scope(|threads| {
            loop {
                while let Some((number, job)) = schedule.next() {
                    let ended = ended.clone();
                    threads.spawn(move || {
                        let outcome = catch_unwind(AssertUnwindSafe(|| job.execute(self)));
                        // nobody listens any more only if the deciding thread has panicked
                        let _ = ended.send((number, outcome));
                    });
                }
                if schedule.is_over() {
                    break;
                }
                match news.recv_timeout(LOOK) {
                    Ok((number, Ok(outcome))) => schedule.ended(number, outcome),
                    Ok((number, Err(payload))) => {
                        schedule.panicked(number);
                        panic = Some(payload);
                    }
                    Err(_) => {}
                }
            }
        });
        if let Some(payload) = panic {
            resume_unwind(payload);
        }
        let (results, mut errors) = schedule.outcome();
        if let Some((n, by)) = errors.iter().enumerate().find_map(|(n, error)| Some((n, error.interrupted_by()?))) {
            errors[n] = self.control.ended(by.clone(), &self.ledger.history());
            self.ledger.append(Event::CampaignInterrupted { by })?;
        }
        match PipelineError::all(errors) {
            Some(error) => Err(error),
            None => {
                if self.choice.is_all() {
                    self.ledger.append(Event::CampaignFinished {})?;
                }
                Ok(results)
            }
        }
    }
}
