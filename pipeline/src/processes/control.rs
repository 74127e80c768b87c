//! What is asked of a running campaign from outside: signals, files in its folder, a wall-clock limit.
//!
//! | request | what happens |
//! |---|---|
//! | a signal of [`STOPS`], a file `stop` | the step in progress ends, a checkpoint is written, and the process leaves with the exit code "resumable" |
//! | a file `dump` | a checkpoint after the step in progress; the file goes once those of all runs are on disk |
//! | a file `pause` | the same, and the campaign waits until the file is gone |
//! | the wall-clock limit, or the end of the Slurm job | as a signal, as soon as the next step and a checkpoint might not end in time |
//!
//! Where the limit, or a scheduler's warning of it, comes before anything was saved, another process with as much time would
//! get no further: the exit code is then another one.
//!
//! Steps and stages end before a request is looked at. What goes on all the same, as an initial condition or an analysis
//! does, is left in the middle: all files are complete or absent, and that stage is done again.

use crate::error::PipelineError;
use crate::ledger::{Event, History, Ledger};
use crate::processes::machine;
use crate::stage::evolve::steps;
use crate::storage::files::remove_if_there;
use rustix::process::Signal;
use signal_hook::consts::{SIGALRM, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGXCPU, SIGXFSZ};
use signal_hook::{flag, low_level};
use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Signals that end a campaign after the step in progress, with a checkpoint, and their names. Others that end a process
/// (SIGKILL, SIGABRT, SIGSEGV and their like) end it at once.
pub(crate) const STOPS: &[(i32, &str)] = &[
    (SIGINT, "SIGINT"),
    (SIGTERM, "SIGTERM"),
    (SIGQUIT, "SIGQUIT"),
    (SIGHUP, "SIGHUP"),
    (SIGUSR1, "SIGUSR1"),
    (SIGUSR2, "SIGUSR2"),
    (SIGALRM, "SIGALRM"),
    (SIGXCPU, "SIGXCPU"),
    #[cfg(target_os = "linux")]
    (Signal::POWER.as_raw(), "SIGPWR"),
];

/// Those of which a second one ends the process at once.
const URGENT: [i32; 3] = [SIGINT, SIGTERM, SIGQUIT];

/// Those by which a scheduler warns of a time limit.
const WARNINGS: [&str; 3] = ["SIGUSR1", "SIGUSR2", "SIGXCPU"];

/// Has a write beyond the limit of a file's size (`ulimit -f`) fail, with an error that names the file. SIGXFSZ would else end
/// the process.
pub fn catch_file_size_signal() {
    // where it cannot be caught, the limit ends the process as before
    let _ = flag::register(SIGXFSZ, Arc::default());
}

/// What the process takes to leave: the report, the ledger.
const LEAVING: Duration = Duration::from_secs(5);

/// How long what does not look at requests may go on after one.
const GRACE: Duration = Duration::from_secs(5);

/// How long before the end of the wall-clock limit a process leaves that has not managed to stop before.
const LAST_MOMENT: Duration = Duration::from_secs(1);

/// How often is looked whether a pause is over, and whether what is asked for happens.
const LOOK: Duration = Duration::from_millis(200);

/// What `--walltime` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeLimit {
    /// From the start of the process.
    Within(Duration),
    /// However long it takes, in a Slurm job too.
    None,
}

/// The time that a process may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Walltime {
    end: Instant,
    /// What there was of it at first.
    length: Duration,
    source: Source,
}

#[derive(Clone, Copy, Debug)]
enum Source {
    Option(Duration),
    SlurmJob,
}

impl Walltime {
    /// The variable in which Slurm tells a job when it ends, in seconds since 1970.
    pub(crate) const JOB_END: &str = "SLURM_JOB_END_TIME";

    /// The limit of a process that began at `began`: what `--walltime` says, or else the end of the Slurm job that it is
    /// part of, as [`Walltime::JOB_END`] gives it.
    pub(crate) fn of(option: Option<TimeLimit>, began: Instant, job_end: Option<&str>) -> Result<Option<Self>, String> {
        match (option, job_end) {
            (Some(TimeLimit::None), _) | (None, None) => Ok(None),
            (Some(TimeLimit::Within(limit)), _) => {
                Ok(Some(Self { end: began + limit, length: limit, source: Source::Option(limit) }))
            }
            (None, Some(text)) => {
                let wrong = |what: &str| format!("{} = {text:?} {what}; the limit is ignored", Self::JOB_END);
                let seconds: u64 = text.trim().parse().map_err(|_| wrong("is not a time in seconds since 1970"))?;
                let end = UNIX_EPOCH + Duration::from_secs(seconds.min(u64::from(u32::MAX)));
                let left = end.duration_since(SystemTime::now()).map_err(|_| wrong("has passed"))?;
                Ok(Some(Self { end: Instant::now() + left, length: left, source: Source::SlurmJob }))
            }
        }
    }

    fn left(&self) -> Duration {
        self.end.saturating_duration_since(Instant::now())
    }

    /// The limit as the first line of a campaign says it.
    pub(crate) fn announced(&self) -> String {
        match self.source {
            Source::Option(limit) => format!("within {}", in_words(limit)),
            Source::SlurmJob => {
                format!("within {}, the end of the Slurm job ({})", in_words(self.left()), Self::JOB_END)
            }
        }
    }
}

impl fmt::Display for Walltime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.source {
            Source::Option(limit) => write!(f, "the wall time of {}", in_words(limit)),
            Source::SlurmJob => write!(f, "the end of the Slurm job ({})", Self::JOB_END),
        }
    }
}

/// Tells what is asked of this process.
#[derive(Clone, Debug)]
pub(crate) struct Control {
    folder: PathBuf,
    signal: Arc<AtomicUsize>,
    walltime: Option<Walltime>,
    shared: Arc<Mutex<Shared>>,
}

/// What the runs in progress know of each other.
#[derive(Debug, Default)]
struct Shared {
    /// The runs that look at requests themselves, by the order in which they came.
    attentive: BTreeSet<u64>,
    /// How many have come.
    count: u64,
    /// Where a checkpoint is asked for: the runs that have not written it yet.
    dump: Option<BTreeSet<u64>>,
    /// Why everything is to end, if not because somebody asked from outside.
    closed: Option<String>,
}

/// While it lives, a run looks at requests itself and saves what it has.
pub(crate) struct Attention {
    control: Control,
    run: u64,
}

impl Attention {
    /// Whether a checkpoint is asked for that this run has not written.
    pub(crate) fn dump(&self) -> bool {
        let mut shared = self.control.shared();
        if shared.dump.is_none() && self.control.is_there("dump") {
            shared.dump = Some(shared.attentive.clone());
        }
        shared.dump.as_ref().is_some_and(|left| left.contains(&self.run))
    }

    /// The checkpoint that was asked for is on disk; the last run that says so removes the request.
    pub(crate) fn dumped(&self) -> Result<(), PipelineError> {
        let mut shared = self.control.shared();
        let Some(left) = &mut shared.dump else { return Ok(()) };
        left.remove(&self.run);
        if left.is_empty() {
            shared.dump = None;
            self.control.answer("dump")?;
        }
        Ok(())
    }
}

impl Drop for Attention {
    fn drop(&mut self) {
        // a run that has ended has left what it was asked for; a request that cannot be removed is met by the next run
        self.control.shared().attentive.remove(&self.run);
        let _ = self.dumped();
    }
}

impl Control {
    fn new(folder: &Path, walltime: Option<Walltime>) -> Self {
        Self { folder: folder.into(), signal: Arc::default(), walltime, shared: Arc::default() }
    }

    /// Asks to stop after `limit` and hears nobody: for a rehearsal.
    pub(crate) fn within(folder: &Path, limit: Duration) -> Self {
        let end = Instant::now() + limit + LEAVING;
        Self::new(folder, Some(Walltime { end, length: limit, source: Source::Option(limit) }))
    }

    /// Listens to signals and watches the files in `folder`; a `stop` or `dump` left from before is removed.
    pub(crate) fn listen(folder: &Path, walltime: Option<Walltime>) -> Result<Self, PipelineError> {
        let control = Self::new(folder, walltime);
        for request in ["stop", "dump"] {
            control.answer(request)?;
        }
        let seen = Arc::new(AtomicBool::new(false));
        for signal in URGENT {
            // in this order the first signal only raises the flags, and the second one ends the process
            flag::register_conditional_shutdown(signal, 128 + signal, seen.clone())
                .and_then(|_| flag::register(signal, seen.clone()))
                .map_err(PipelineError::io(folder))?;
        }
        let heeded = STOPS.iter().filter(|(signal, _)| *signal != SIGHUP || !machine::survives_its_terminal());
        // a scheduler's warning may come twice, and before a SIGTERM
        for &(signal, _) in heeded {
            flag::register_usize(signal, control.signal.clone(), signal as usize).map_err(PipelineError::io(folder))?;
        }
        Ok(control)
    }

    /// Has the process leave, whatever it is doing then, where a request finds no attention or the time is over. `last`:
    /// what it does before that, if it ends in time; `abort`: ends the other processes with an exit code.
    pub(crate) fn enforce(
        &self,
        ledger: &Arc<Ledger>,
        last: impl FnOnce() + Send + 'static,
        abort: impl Fn(u8) + Send + 'static,
    ) -> Result<(), PipelineError> {
        let (control, ledger) = (self.clone(), Arc::clone(ledger));
        let thread = std::thread::Builder::new().name("control".into());
        thread
            .spawn(move || control.leave_when_overdue(&ledger, last, &abort))
            .map_err(PipelineError::io(&self.folder))?;
        Ok(())
    }

    /// A run looks at requests from now on.
    pub(crate) fn attend(&self) -> Attention {
        let mut shared = self.shared();
        shared.count += 1;
        let run = shared.count;
        shared.attentive.insert(run);
        Attention { control: self.clone(), run }
    }

    /// Runs are to end with a checkpoint, for a reason of the program's own.
    pub(crate) fn close(&self, because: String) {
        self.shared().closed.get_or_insert(because);
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        // no holder of the lock leaves it half changed
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn leave_when_overdue(&self, ledger: &Ledger, last: impl FnOnce() + Send + 'static, abort: &dyn Fn(u8)) {
        let mut unheard_since = None;
        let by = loop {
            std::thread::sleep(LOOK);
            let Some(by) = self.request(Duration::ZERO) else { continue };
            let heard = !self.shared().attentive.is_empty();
            if heard {
                unheard_since = None;
            }
            let unheard = !heard && unheard_since.get_or_insert_with(Instant::now).elapsed() > GRACE;
            if unheard || self.walltime.is_some_and(|walltime| walltime.left() < LAST_MOMENT) {
                break by;
            }
        };
        tracing::warn!("the work in progress is stopped at once; files that were saved before remain");
        let ending = self.ended(by.clone(), &ledger.history());
        if let Err(error) = ledger.append(Event::CampaignInterrupted { by }) {
            tracing::error!("{error}");
        }
        let (ended, end) = mpsc::channel();
        std::thread::spawn(move || {
            last();
            let _ = ended.send(()); // nobody waits any more if it took too long
        });
        let _ = end.recv_timeout(self.walltime.map_or(LEAVING, |walltime| LEAVING.min(walltime.left().mul_f64(0.8))));
        tracing::error!("{ending}");
        abort(ending.exit_code());
        low_level::exit(i32::from(ending.exit_code()));
    }

    /// How a process ends that `by` has stopped: resumable, unless its time was over before it had saved anything.
    pub(crate) fn ended(&self, by: String, history: &History) -> PipelineError {
        let folder = self.folder.clone();
        let limit = self.walltime.and_then(|limit| match by.as_str() {
            // a scheduler's warning, and not somebody's wish at any time
            warning if WARNINGS.contains(&warning) => {
                (limit.left() < limit.length / 2).then(|| format!("{by} ahead of {limit}"))
            }
            _ => Some(limit.to_string()).filter(|limit| by == *limit),
        });
        let Some(by) = limit.filter(|_| !history.has_saved && !self.pause()) else {
            return PipelineError::Interrupted { folder, by };
        };
        let at_work = history.at_work.iter().filter_map(|fingerprint| history.stage(fingerprint));
        let told = at_work.map(|stage| match steps::last(&folder.join(&stage.folder)).last() {
            Some(step) => format!("the last step of {} took {:.1} s", stage.folder, step.timing.total()),
            None => format!("{} was in progress", stage.folder),
        });
        let told: Vec<String> = told.collect();
        let at = if told.is_empty() { "nothing had begun".into() } else { told.join(", ") };
        PipelineError::OutOfTime { folder, by, at }
    }

    /// Who asks to stop, if anyone does. `next`: what the next thing takes that cannot be stopped, with what it takes to
    /// save the state after it.
    pub(crate) fn stop(&self, next: Duration) -> Option<String> {
        self.request(next).or_else(|| self.shared().closed.clone())
    }

    /// Who asks from outside, or whether time is short.
    fn request(&self, next: Duration) -> Option<String> {
        let signal = self.signal.load(Ordering::Relaxed) as i32;
        if let Some((_, name)) = STOPS.iter().find(|(stop, _)| *stop == signal) {
            return Some((*name).into());
        }
        if self.is_there("stop") {
            return Some(format!("the file {}", self.file("stop").display()));
        }
        let over = self.walltime.filter(|walltime| walltime.left() < next + LEAVING);
        over.map(|walltime| walltime.to_string())
    }

    /// Whether the process has a wall-clock limit.
    pub(crate) fn has_walltime(&self) -> bool {
        self.walltime.is_some()
    }

    pub(crate) fn pause(&self) -> bool {
        self.is_there("pause")
    }

    /// Waits until the pause has ended, or until somebody asks to stop.
    pub(crate) fn wait(&self) {
        if !self.pause() {
            return;
        }
        tracing::info!("paused until {} is removed", self.file("pause").display());
        while self.pause() && self.stop(Duration::ZERO).is_none() {
            std::thread::sleep(LOOK);
        }
        tracing::info!("the pause has ended");
    }

    fn file(&self, request: &str) -> PathBuf {
        self.folder.join(request)
    }

    fn is_there(&self, request: &str) -> bool {
        self.file(request).exists()
    }

    fn answer(&self, request: &str) -> Result<(), PipelineError> {
        remove_if_there(&self.file(request))
    }
}

/// A limit as it is given on the command line: `11h50m`, or `none`.
pub(crate) fn parse_walltime(text: &str) -> Result<TimeLimit, String> {
    if text == "none" {
        return Ok(TimeLimit::None);
    }
    let wrong = || "expected a time such as 11h50m, 1d, 30m or 90s, or none".to_owned();
    let (mut rest, mut seconds, mut largest) = (text, 0, u64::MAX);
    while let Some(digits) = rest.find(|c: char| !c.is_ascii_digit()) {
        let unit = match rest.as_bytes()[digits] {
            b'd' => 86400,
            b'h' => 3600,
            b'm' => 60,
            b's' => 1,
            _ => return Err(wrong()),
        };
        let number: u64 = rest[..digits].parse().map_err(|_| wrong())?;
        let part = number.checked_mul(unit).filter(|_| unit < largest);
        seconds = part.and_then(|part| part.checked_add(seconds)).ok_or_else(wrong)?;
        (rest, largest) = (&rest[digits + 1..], unit);
    }
    if rest.is_empty() && (1..=MAX_WALLTIME_S).contains(&seconds) {
        Ok(TimeLimit::Within(Duration::from_secs(seconds)))
    } else {
        Err(wrong())
    }
}

/// Ten years: what a clock can surely count from now.
const MAX_WALLTIME_S: u64 = 10 * 366 * 86400;

/// As [`parse_walltime`] takes it.
fn in_words(time: Duration) -> String {
    let seconds = time.as_secs();
    let parts = [(seconds / 86400, 'd'), (seconds / 3600 % 24, 'h'), (seconds / 60 % 60, 'm'), (seconds % 60, 's')];
    parts.iter().filter(|(number, _)| *number > 0).map(|(number, unit)| format!("{number}{unit}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::RESUMABLE;

    #[test]
    fn times_are_read_and_written() {
        for (text, seconds) in [("11h50m", 42600), ("90s", 90), ("1d2h3m4s", 93784), ("36h", 129_600)] {
            assert_eq!(parse_walltime(text), Ok(TimeLimit::Within(Duration::from_secs(seconds))), "{text}");
        }
        assert_eq!(parse_walltime("none"), Ok(TimeLimit::None));
        assert_eq!(in_words(Duration::from_secs(93784)), "1d2h3m4s");
        for text in ["", "3600", "11:50:00", "0s", "5m1h", "1h1h", "h", "-1h", "1.5h", "99999999999999999999s", "1é"] {
            assert!(parse_walltime(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_next_thing_has_to_end_in_time() {
        let folder = tempfile::tempdir().unwrap();
        let hour = TimeLimit::Within(Duration::from_secs(3600));
        let walltime = Walltime::of(Some(hour), Instant::now(), None).unwrap();
        let control = Control::new(folder.path(), walltime);
        assert_eq!(control.stop(Duration::from_secs(3500)), None);
        assert_eq!(control.stop(Duration::from_secs(3599)).as_deref(), Some("the wall time of 1h"));
        std::fs::write(folder.path().join("stop"), "").unwrap();
        assert!(control.stop(Duration::ZERO).unwrap().ends_with("/stop"));
        control.signal.store(SIGUSR1 as usize, Ordering::Relaxed);
        assert_eq!(control.stop(Duration::ZERO).as_deref(), Some("SIGUSR1"));
    }

    /// The end of the job counts where the command line says nothing; an end that has passed is of another job.
    #[test]
    fn a_slurm_job_ends_a_run_that_has_no_limit_of_its_own() {
        let hour = TimeLimit::Within(Duration::from_secs(3600));
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let limit = |option, end: &str| Walltime::of(option, Instant::now(), Some(end));
        let ends = |option, end: &str| limit(option, end).unwrap().map(|walltime| walltime.to_string());
        let job = (now + 90).to_string();
        assert_eq!(ends(None, &job).as_deref(), Some("the end of the Slurm job (SLURM_JOB_END_TIME)"));
        let left = limit(None, &job).unwrap().unwrap().left().as_secs_f64();
        assert!((85.0..=90.0).contains(&left), "{left}");
        assert_eq!(ends(Some(hour), &job).as_deref(), Some("the wall time of 1h"));
        assert_eq!(ends(Some(TimeLimit::None), &job), None);
        // a job without a limit
        assert!(limit(None, "18446744073709551615").unwrap().is_some());
        for (end, what) in [((now - 90).to_string(), "has passed"), ("soon".into(), "is not a time")] {
            let error = limit(None, &end).unwrap_err();
            assert!(error.contains(what) && error.contains(&end), "{error}");
        }
    }

    /// Where nothing was saved, only those that set the time decide what it means.
    #[test]
    fn a_limit_that_is_too_short_is_not_resumable() {
        let folder = tempfile::tempdir().unwrap();
        let ending = |by: &str, passed: u64, saved: bool| {
            let began = Instant::now() - Duration::from_secs(passed);
            let walltime = Walltime::of(Some(TimeLimit::Within(Duration::from_secs(60))), began, None).unwrap();
            let mut history = History::default();
            if saved {
                history.add(&Event::StageFinished { fingerprint: String::new(), artefacts: Vec::new() }, 0.0);
            }
            Control::new(folder.path(), walltime).ended(by.into(), &history)
        };
        let limit = "the wall time of 1m";
        let short = ending(limit, 58, false);
        assert_eq!(short.exit_code(), 9);
        assert!(short.to_string().contains("stopped by the wall time of 1m before anything was saved (nothing had"));
        let warned = ending("SIGUSR1", 40, false);
        assert!(warned.exit_code() == 9 && warned.to_string().contains("SIGUSR1 ahead of the wall time"), "{warned}");
        assert_eq!(ending("SIGXCPU", 40, false).exit_code(), 9);
        for (by, passed, saved) in [(limit, 58, true), ("SIGUSR1", 5, false), ("SIGTERM", 58, false)] {
            assert_eq!(ending(by, passed, saved).exit_code(), RESUMABLE, "{by}");
        }
        std::fs::write(folder.path().join("pause"), "").unwrap();
        assert_eq!(ending(limit, 58, false).exit_code(), RESUMABLE, "it waited");
    }

    /// One of two runs must not answer for the other; a run that ends has nothing left to write.
    #[test]
    fn a_dump_is_asked_of_every_run() {
        let folder = tempfile::tempdir().unwrap();
        let (control, request) = (Control::new(folder.path(), None), folder.path().join("dump"));
        let [first, second] = [control.attend(), control.attend()];
        for second_ends in [false, true] {
            assert!(!first.dump());
            std::fs::write(&request, "").unwrap();
            assert!(first.dump());
            first.dumped().unwrap();
            assert!(request.exists() && !first.dump() && second.dump());
            if !second_ends {
                second.dumped().unwrap();
                assert!(!request.exists() && !second.dump());
            }
        }
        drop(second);
        assert!(!request.exists());
    }

    /// A failure ends runs, but is no request from outside, which would end the process.
    #[test]
    fn the_program_itself_may_end_runs() {
        let folder = tempfile::tempdir().unwrap();
        let control = Control::new(folder.path(), None);
        control.clone().close("a failure".into());
        assert_eq!(control.stop(Duration::ZERO).as_deref(), Some("a failure"));
        assert_eq!(control.request(Duration::ZERO), None);
    }
}
