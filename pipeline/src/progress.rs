//! Progress bars at the bottom of the terminal, above them what the log says: one line for all stages of a campaign, below
//! it one for each that is being done.

use crate::moment::Moment;
use comove_sim::records::StepRecord;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

/// The terminal's progress lines. Hidden where the standard error is not a terminal.
#[derive(Clone, Debug)]
pub struct Progress {
    lines: MultiProgress,
    /// The line of the job that it belongs to.
    line: Option<Arc<Line>>,
}

/// A line; it vanishes when dropped.
#[derive(Debug)]
struct Line(ProgressBar);

impl Drop for Line {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// Parts into which the way of a stage is divided.
const RESOLUTION: f64 = 1e6;

impl Progress {
    /// Progress lines on the standard error.
    pub fn on_terminal() -> Self {
        Self { lines: MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(5)), line: None }
    }

    /// The line of all stages of a campaign.
    pub fn total(&self, stages: usize) -> Total {
        Total { line: self.add(ProgressBar::new(stages as u64), "{pos} of {len} stages {bar:16} {elapsed}  {msg}") }
    }

    /// The progress of a job, which has a line of its own.
    pub fn job(&self, name: &str) -> Self {
        let line = self.add(ProgressBar::new(RESOLUTION as u64), "  {prefix} {spinner} {elapsed}");
        line.0.set_prefix(name.to_owned());
        Self { lines: self.lines.clone(), line: Some(line) }
    }

    /// The way of a stage: on its job's line, if there is one.
    pub fn stage(&self, name: &str) -> StageProgress {
        const WAY: &str = "  {prefix} {bar:16} {percent:>3}%  {eta} left  {wide_msg}";
        let line = self.line.clone().unwrap_or_else(|| {
            let line = self.add(ProgressBar::new(RESOLUTION as u64), WAY);
            line.0.set_prefix(name.to_owned());
            line
        });
        line.0.set_style(style(WAY));
        line.0.reset();
        StageProgress { line }
    }

    fn add(&self, bar: ProgressBar, template: &str) -> Arc<Line> {
        let bar = self.lines.add(bar);
        bar.set_style(style(template));
        bar.enable_steady_tick(Duration::from_millis(500));
        Arc::new(Line(bar))
    }

    /// Writes text above the progress lines.
    pub fn print(&self, text: &[u8]) -> std::io::Result<()> {
        self.lines.suspend(|| std::io::stderr().write_all(text))
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the template is well-formed").progress_chars("━╸─")
}

/// The progress of all stages.
#[derive(Debug)]
pub struct Total {
    line: Arc<Line>,
}

impl Total {
    /// One more is done.
    pub fn done(&self) {
        self.line.0.inc(1);
    }

    /// There are so many more.
    pub fn more(&self, count: u64) {
        self.line.0.inc_length(count);
    }

    /// So many are being done.
    pub fn running(&self, count: usize) {
        self.line.0.set_message(format!("{count} being done"));
    }
}

/// The progress of one stage.
#[derive(Debug)]
pub struct StageProgress {
    line: Arc<Line>,
}

impl StageProgress {
    /// Says what is being done, and the fraction done.
    pub fn at(&self, activity: &str, fraction: f64) {
        self.line.0.set_position((fraction.clamp(0.0, 1.0) * RESOLUTION) as u64);
        self.line.0.set_message(activity.to_owned());
    }

    /// Says where a run is.
    pub fn step(&self, record: &StepRecord, fraction: f64) {
        let speed = record.cell_updates_per_second / 1e6;
        let finest = record.groups.iter().rposition(|n| *n > 0).unwrap_or(0);
        let levels = if finest == 0 { "level 0".into() } else { format!("levels 0–{finest}") };
        // what matters most comes first: a narrow terminal cuts the end off
        let now = Moment::after(record).brief();
        self.at(&format!("{now}  step {}  {levels}  {speed:.2} M cell updates/s", record.step), fraction);
    }
}

/// A step in one line of the log: z or t, step, groups of each level, cell updates per second.
pub fn step_line(record: &StepRecord) -> String {
    let groups: Vec<String> = record.groups.iter().map(ToString::to_string).collect();
    format!(
        "{}  step {}  groups {}  {:.2} M cell updates/s",
        Moment::after(record).brief(),
        record.step,
        groups.join("/"),
        record.cell_updates_per_second / 1e6
    )
}
