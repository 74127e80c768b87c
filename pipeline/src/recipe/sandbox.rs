//! What a script may take: time, memory and lines of text, and how it is stopped.
//!
//! A script runs on a thread of its own, and the thread that started it watches. What is over its limit stops at its next
//! operation: a function of this program that is at work then (`halos`, a large `field`) ends first. The limit of time is
//! of what its thread computes, so that neighbours do not count; ten times that may pass on the clock.

use crate::processes::machine;
use crate::terminal::streams;
use comove_kernels::memory::{self, GIB};
use rustix::time::{ClockId, clock_gettime};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Lists in lists and closures in closures go as deep as their sizes allow, and are copied and freed by recursion.
const STACK: usize = 1 << 30;

/// How often the watching thread looks.
const LOOK: Duration = Duration::from_millis(50);

/// What may pass on the clock for a second that a script may compute: it may wait for busy processors, and for the threads
/// on which functions of this program work.
const CLOCK: f64 = 10.0;

/// Lines that a script may print.
const LINES: usize = 1000;
/// Characters of a line.
const LINE: usize = 1000;

#[derive(Clone, Copy)]
pub(crate) struct Limits<'a> {
    /// Seconds that it may compute.
    pub seconds: f64,
    /// The option of a recipe that says so.
    pub option: &'a str,
    /// Bytes by which the process may grow while it runs.
    pub memory: f64,
    /// While so many bytes are free nonetheless, it may be that something else grows: another stage.
    pub spare: f64,
    /// Who asks to stop, if anyone does.
    pub stop: &'a (dyn Fn() -> Option<String> + Sync),
}

impl Limits<'_> {
    /// Of a recipe's evaluation.
    pub(crate) fn recipe() -> Self {
        Self {
            seconds: 20.0,
            option: "",
            memory: half_of_what_is_free().min(2.0 * GIB),
            spare: f64::INFINITY,
            stop: &|| None,
        }
    }

    /// Of a script: somebody waits for it, and ends it if it takes too long.
    pub(crate) fn script() -> Self {
        Self { seconds: f64::INFINITY, memory: half_of_what_is_free(), ..Self::recipe() }
    }
}

/// Half of the bytes that are free for this process; without limit where the system does not say.
pub(crate) fn half_of_what_is_free() -> f64 {
    memory::available().map_or(f64::INFINITY, |free| 0.5 * free)
}

/// Why a script was stopped.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Excess {
    /// It computed for longer than so many seconds.
    Time(f64),
    /// So many seconds have passed.
    Clock(f64),
    /// It took more than so many bytes.
    Memory(f64),
    /// Somebody asked for it.
    Stop(String),
}

impl std::fmt::Display for Excess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Time(seconds) => {
                write!(f, "the computation exceeds its limit of {seconds} s; check it for an endless loop")
            }
            Self::Clock(seconds) => {
                write!(
                    f,
                    "the computation is not done after {seconds} s, {CLOCK} times its limit; check whether \
                           other programs use the machine"
                )
            }
            Self::Memory(bytes) => write!(f, "the computation exceeds its limit of {:.1} GiB of memory", bytes / GIB),
            Self::Stop(by) => write!(f, "stopped by {by}"),
        }
    }
}

/// What one script has taken so far: an engine asks it at every operation whether to go on.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    excess: OnceLock<Excess>,
    printed: AtomicUsize,
    /// What was printed before there was a log.
    unlogged: Mutex<Vec<String>>,
    /// Whether the watching thread wants to know the time that the script has computed.
    asked: AtomicBool,
    /// That time, in nanoseconds.
    computed: AtomicU64,
}

impl Budget {
    /// Why the script must end, if it must.
    pub(crate) fn excess(&self) -> Option<&Excess> {
        self.excess.get()
    }

    /// Drops everything that the script prints.
    pub(crate) fn mute(&self) {
        self.printed.store(LINES + 1, Ordering::Relaxed);
    }

    /// What a script prints goes to the log, or to the terminal while there is none, up to a number of lines and no line
    /// without end.
    pub(crate) fn print(&self, text: &str) {
        let line = match self.printed.fetch_add(1, Ordering::Relaxed) {
            n if n < LINES => text.chars().take(LINE).collect(),
            LINES => format!("the recipe has printed {LINES} lines; further lines are left out"),
            _ => return,
        };
        if tracing::enabled!(tracing::Level::INFO) {
            tracing::info!("{line}");
        } else {
            streams::message(&line);
            self.unlogged.lock().unwrap_or_else(PoisonError::into_inner).push(line);
        }
    }

    /// What was printed before there was a log, for the log.
    pub(crate) fn unlogged(&self) -> Vec<String> {
        std::mem::take(&mut self.unlogged.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Why the script must end, if it must: asked on its own thread, at every operation.
    pub(crate) fn step(&self) -> Option<&Excess> {
        if self.asked.load(Ordering::Relaxed) {
            self.asked.store(false, Ordering::Relaxed);
            let time = clock_gettime(ClockId::ThreadCPUTime);
            self.computed.store(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64, Ordering::Relaxed);
        }
        self.excess()
    }

    /// Seconds that the script has computed, as far as it has said.
    fn computed(&self) -> f64 {
        self.asked.store(true, Ordering::Relaxed);
        1e-9 * self.computed.load(Ordering::Relaxed) as f64
    }
}

/// Runs a script within its limits; `script` gets the budget for its engine.
pub(crate) fn within<T: Send>(limits: Limits<'_>, script: impl FnOnce(&Arc<Budget>) -> T + Send) -> Result<T, String> {
    let budget = Arc::new(Budget::default());
    thread::scope(|scope| {
        let (running, ended) = mpsc::channel::<()>();
        let stage = tracing::Span::current();
        let work = || {
            let (_running, _stage) = (running, stage.entered());
            script(&budget)
        };
        let builder = thread::Builder::new().name("script".into()).stack_size(STACK);
        let worker = builder.spawn_scoped(scope, work).map_err(|e| format!("no thread for the script: {e}"))?;
        watch(limits, &budget, || ended.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout));
        worker.join().map_err(|panic| std::panic::resume_unwind(panic))
    })
}

/// Looks at a script until it has ended, or has to.
fn watch(limits: Limits<'_>, budget: &Budget, runs: impl Fn() -> bool) {
    let (began, before) = (Instant::now(), resident());
    while runs() {
        let grown = resident().zip(before).map_or(0.0, |(now, before)| now - before);
        let excess = if budget.computed() > limits.seconds {
            Some(Excess::Time(limits.seconds))
        } else if began.elapsed().as_secs_f64() > CLOCK * limits.seconds {
            Some(Excess::Clock(CLOCK * limits.seconds))
        } else if grown > limits.memory && memory::available().is_none_or(|free| free < limits.spare) {
            Some(Excess::Memory(limits.memory))
        } else {
            (limits.stop)().map(Excess::Stop)
        };
        if let Some(excess) = excess {
            // the first reason stays
            let _ = budget.excess.set(excess);
        }
    }
}

/// Bytes of memory that this process has in use; `None` where the system does not say.
fn resident() -> Option<f64> {
    let resident = machine::process_status("VmRSS")?;
    resident.strip_suffix("kB")?.trim().parse().ok().map(|kib: f64| 1024.0 * kib)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Repeats `work` until the budget says why to end.
    fn until_stopped(limits: Limits<'_>, mut work: impl FnMut() + Send) -> Excess {
        let script = |budget: &Arc<Budget>| loop {
            work();
            if let Some(excess) = budget.step() {
                return excess.clone();
            }
            thread::sleep(Duration::from_millis(1));
        };
        within(limits, script).unwrap()
    }

    #[test]
    fn time_memory_and_requests_end_a_script() {
        let limits = Limits { seconds: 60.0, option: "", memory: 16.0 * GIB, spare: f64::INFINITY, stop: &|| None };
        let compute = || {
            let began = Instant::now();
            while began.elapsed() < Duration::from_millis(20) {}
        };
        assert_eq!(until_stopped(Limits { seconds: 0.2, ..limits }, compute), Excess::Time(0.2));
        // what others compute meanwhile is not its own
        let began = Instant::now();
        let wait = || thread::sleep(Duration::from_millis(20));
        assert_eq!(until_stopped(Limits { seconds: 0.2, ..limits }, wait), Excess::Clock(2.0));
        assert!(began.elapsed() >= Duration::from_secs(2));
        let mut held = Vec::new();
        let grow = || held.push(vec![1u8; 1 << 20]);
        let memory = f64::from(100 << 20);
        assert_eq!(until_stopped(Limits { memory, ..limits }, grow), Excess::Memory(memory));
        // what another stage takes meanwhile stops nobody while there is enough
        let beside = Limits { seconds: 0.5, memory, spare: memory, ..limits };
        held.clear();
        let grow_and_compute = || if held.len() < 200 { held.push(vec![1u8; 1 << 20]) } else { compute() };
        assert_eq!(until_stopped(beside, grow_and_compute), Excess::Time(0.5));
        let asked = || Some("SIGTERM".to_owned());
        assert_eq!(until_stopped(Limits { stop: &asked, ..limits }, || ()), Excess::Stop("SIGTERM".into()));
        assert_eq!(within(limits, |budget| budget.excess().cloned()), Ok(None));
    }
}
