//! Progress at the bottom of the terminal, above it what the log says: one line for all stages of a campaign, below it one for
//! each that is being done, and one for each large file that is being read.

use crate::moment::Moment;
use crate::terminal::streams;
use comove_sim::records::StepRecord;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The terminal's progress lines. Hidden where the standard error is not a terminal.
#[derive(Clone, Debug)]
pub(crate) struct Progress {
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

/// Bytes from which on reading a file has a line of its own.
const LARGE: u64 = 64 << 20;

/// The line of a stage that is on a way whose end is known.
const WAY: &str = "  {prefix} {bar:16} {percent:>3}%  {eta} left  {wide_msg}";
/// The line of a run, whose message begins with the time left.
const RUN: &str = "  {prefix} {bar:16} {percent:>3}%  {wide_msg}";
/// The line of a stage of which only is known what it does.
const WORK: &str = "  {prefix} {spinner} {elapsed}  {wide_msg}";
const FILE: &str = "  {prefix} {bar:16} {bytes}/{total_bytes}";

impl Default for Progress {
    /// Lines that are not shown.
    fn default() -> Self {
        Self { lines: MultiProgress::with_draw_target(ProgressDrawTarget::hidden()), line: None }
    }
}

impl Progress {
    /// Progress lines on the standard error.
    pub(crate) fn on_terminal() -> Self {
        Self { lines: MultiProgress::with_draw_target(streams::progress_target()), line: None }
    }

    /// The line of all stages of a campaign.
    pub(crate) fn total(&self, stages: usize) -> Total {
        Total { line: self.add(ProgressBar::new(stages as u64), "{pos} of {len} stages {bar:16} {elapsed}  {msg}") }
    }

    /// The progress of a job, which has a line of its own.
    pub(crate) fn job(&self, name: &str) -> Self {
        let line = self.add(ProgressBar::new(RESOLUTION as u64), WORK);
        line.0.set_prefix(name.to_owned());
        Self { lines: self.lines.clone(), line: Some(line) }
    }

    /// The way of a job's stage, or of a part of it, on the job's line.
    pub(crate) fn stage(&self) -> StageProgress {
        let line = self.line.clone().unwrap_or_else(|| self.add(ProgressBar::new(RESOLUTION as u64), WORK));
        line.0.reset();
        StageProgress { line }
    }

    /// Reading a file: a line, if it is large. What is done with it is said in a word: `checking`.
    pub(crate) fn file(&self, activity: &str, path: &Path) -> FileProgress {
        let bytes = path.metadata().map_or(0, |found| found.len());
        let line = (bytes >= LARGE).then(|| self.add(ProgressBar::new(bytes), FILE));
        if let Some(line) = &line {
            line.0.set_prefix(format!("{activity} {}", path.file_name().unwrap_or_default().to_string_lossy()));
        }
        FileProgress { line, bytes }
    }

    fn add(&self, bar: ProgressBar, template: &str) -> Arc<Line> {
        let bar = self.lines.add(bar);
        bar.set_style(style(template));
        bar.enable_steady_tick(Duration::from_millis(500));
        Arc::new(Line(bar))
    }

    /// Writes whole lines of messages above the progress lines.
    pub(crate) fn print(&self, text: &[u8]) {
        self.lines.suspend(|| streams::say(text));
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the template is well-formed").progress_chars("━╸─")
}

pub(crate) struct Total {
    line: Arc<Line>,
}

impl Total {
    /// One more is done.
    pub(crate) fn done(&self) {
        self.line.0.inc(1);
    }

    /// There are so many more.
    pub(crate) fn more(&self, count: u64) {
        self.line.0.inc_length(count);
    }

    /// So many are being done.
    pub(crate) fn running(&self, count: usize) {
        self.line.0.set_message(format!("{count} being done"));
    }
}

pub(crate) struct StageProgress {
    line: Arc<Line>,
}

impl StageProgress {
    /// Says what is being done, and the fraction done.
    pub(crate) fn at(&self, activity: &str, fraction: f64) {
        self.show(WAY, activity, fraction);
    }

    fn show(&self, template: &str, activity: &str, fraction: f64) {
        self.line.0.set_style(style(template));
        self.line.0.set_position((fraction.clamp(0.0, 1.0) * RESOLUTION) as u64);
        self.line.0.set_message(activity.to_owned());
    }

    /// Says what is being done, where nobody knows how far it is.
    pub(crate) fn doing(&self, activity: &str) {
        self.line.0.set_style(style(WORK));
        self.line.0.set_message(activity.to_owned());
    }

    /// Goes through `items`, each called what `name` says of it: which one is being looked at, and how many there are.
    pub(crate) fn through<'a, T: 'a>(
        self,
        items: impl IntoIterator<Item = &'a T, IntoIter: ExactSizeIterator>,
        name: impl Fn(&T) -> String,
    ) -> impl Iterator<Item = &'a T> {
        let items = items.into_iter();
        let count = items.len();
        items
            .enumerate()
            .inspect(move |(n, item)| match count {
                1 => self.doing(&name(item)),
                _ => self.at(&format!("{} ({} of {count})", name(item), n + 1), *n as f64 / count as f64),
            })
            .map(|(_, item)| item)
    }

    /// Shows where a run is, and the time left.
    pub(crate) fn step(&self, record: &StepRecord, fraction: f64, left: &str) {
        let finest = record.groups.iter().rposition(|n| *n > 0).unwrap_or(0);
        let levels = if finest == 0 { "level 0".into() } else { format!("levels 0–{finest}") };
        // what matters most comes first: a narrow terminal cuts the end off
        let now = Moment::after(record).brief();
        let left = if left.is_empty() { String::new() } else { format!("{left}  ") };
        self.show(RUN, &format!("{left}{now}  step {}  {levels}  {}", record.step, rate(record)), fraction);
    }
}

pub(crate) struct FileProgress {
    line: Option<Arc<Line>>,
    bytes: u64,
}

impl FileProgress {
    /// So many bytes are read.
    pub(crate) fn bytes(&self, bytes: u64) {
        self.line.iter().for_each(|line| line.0.set_position(bytes));
    }

    /// This fraction is read.
    pub(crate) fn fraction(&self, fraction: f64) {
        self.bytes((fraction * self.bytes as f64) as u64);
    }
}

pub(crate) fn rate(record: &StepRecord) -> String {
    format!("{:.2} M cell updates/s", record.cell_updates_per_second / 1e6)
}

/// A step in one line of the log: z or t, step, groups of each level, cell updates per second.
pub(crate) fn step_line(record: &StepRecord) -> String {
    let groups: Vec<String> = record.groups.iter().map(ToString::to_string).collect();
    format!("{}  step {}  groups {}  {}", Moment::after(record).brief(), record.step, groups.join("/"), rate(record))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_counted_and_runs_say_where_they_are() {
        let progress = Progress::default();
        let job = progress.job("Slice: density, seed 2");
        let bar = || job.line.as_ref().unwrap().0.clone();
        let items = [4.0, 2.0, 0.0];
        let mut looked_at = job.stage().through(&items, |z| format!("z = {z}"));
        assert_eq!((looked_at.next(), bar().message().as_str(), bar().position()), (Some(&4.0), "z = 4 (1 of 3)", 0));
        assert_eq!(looked_at.nth(1), Some(&0.0));
        assert_eq!((bar().message().as_str(), bar().position()), ("z = 0 (3 of 3)", 666_666));
        assert_eq!(looked_at.next(), None);
        // of one item nobody knows how far it is
        job.stage().through(&[1.0], |z| format!("z = {z}")).for_each(drop);
        assert_eq!((bar().message().as_str(), bar().position()), ("z = 1", 0));
        assert_eq!(bar().prefix(), "Slice: density, seed 2");
    }

    #[test]
    fn large_files_have_a_line() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, bytes| {
            let path = folder.path().join(name);
            std::fs::File::create(&path).unwrap().set_len(bytes).unwrap();
            path
        };
        let progress = Progress::default();
        assert!(progress.file("checking", &file("small.h5", LARGE - 1)).line.is_none());
        assert!(progress.file("checking", &folder.path().join("none.h5")).line.is_none());
        let large = progress.file("reading", &file("large.h5", LARGE));
        large.fraction(0.5);
        let bar = &large.line.as_ref().unwrap().0;
        assert_eq!((bar.prefix().as_str(), bar.position(), bar.length()), ("reading large.h5", LARGE / 2, Some(LARGE)));
    }
}
