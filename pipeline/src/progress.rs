//! The progress bar: one line at the bottom of the terminal, above it what the log says.

use crate::moment::Moment;
use comove_sim::records::StepRecord;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::Write;
use std::time::Duration;

/// The terminal's progress line. Hidden where the standard error is not a terminal.
#[derive(Clone, Debug)]
pub struct Progress {
    lines: MultiProgress,
}

/// Parts into which the way of a stage is divided.
const RESOLUTION: f64 = 1e6;

impl Progress {
    /// A progress line on the standard error.
    pub fn on_terminal() -> Self {
        Self { lines: MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(5)) }
    }

    /// The line of a stage; it vanishes when dropped.
    pub fn stage(&self, name: &str) -> StageProgress {
        let bar = self.lines.add(ProgressBar::new(RESOLUTION as u64));
        let style = ProgressStyle::with_template("{prefix} {bar:16} {percent:>3}%  {eta} left  {wide_msg}")
            .expect("the template is well-formed")
            .progress_chars("━╸─");
        bar.set_style(style);
        bar.set_prefix(name.to_owned());
        bar.enable_steady_tick(Duration::from_millis(500));
        StageProgress { bar }
    }

    /// Writes text above the progress line.
    pub fn print(&self, text: &[u8]) -> std::io::Result<()> {
        self.lines.suspend(|| std::io::stderr().write_all(text))
    }
}

/// The progress of one stage.
#[derive(Debug)]
pub struct StageProgress {
    bar: ProgressBar,
}

impl StageProgress {
    /// Says what is being done, and the fraction done.
    pub fn at(&self, activity: &str, fraction: f64) {
        self.bar.set_position((fraction.clamp(0.0, 1.0) * RESOLUTION) as u64);
        self.bar.set_message(activity.to_owned());
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

impl Drop for StageProgress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
