//! The report's part of a run that is not finished, from the records of its steps.

use super::run::Evolve;
use super::section::shares;
use super::steps;
use crate::error::PipelineError;
use crate::ledger::StageHistory;
use crate::moment::{Moment, list};
use crate::stage::Stage;
use crate::stage::section::Section;
use comove_analysis::Figure;
use comove_analysis::figure::lines::{Curve, Panel, line_figure};
use comove_analysis::table::readable;
use comove_kernels::layout::GROUP_CELLS;
use comove_sim::Role;
use comove_sim::records::{StepRecord, Timing};
use std::path::Path;

/// Points of a curve; a longer history is thinned.
const POINTS: usize = 500;

/// The section of an unfinished run in `folder`, and its figure; `None` before its first step.
///
/// # Errors
/// [`PipelineError::Io`] of the records.
pub(crate) fn so_far(
    run: &Evolve,
    folder: &Path,
    history: &StageHistory,
) -> Result<Option<(Section, Figure)>, PipelineError> {
    let records = steps::sound(folder)?.into_iter().map_while(|record| serde_json::from_value(record).ok());
    let records: Vec<StepRecord> = records.collect();
    let Some(last) = records.last() else { return Ok(None) };
    let mut section = Section::new(run.describe());
    let outputs: Vec<Moment> =
        history.snapshots.iter().filter(|s| s.role == Role::Output).map(|s| s.moment().rounded()).collect();
    section.text += &format!(
        ".\n\nUnfinished: step {} ended at {}. Outputs written: {}.",
        last.step,
        Moment::after(last).rounded(),
        list(&outputs)
    );
    let mut timing = Timing::default();
    records.iter().for_each(|record| timing.add(&record.timing));
    let (updates, seconds) = (records.iter().map(|r| r.cell_updates).sum::<u64>() as f64, timing.total());
    section.account(&format!("After step {}", last.step), &["quantity", "value"], totals(last, updates, seconds));
    section.account("Where the time went", &["part", "seconds", "percent"], shares(&timing));
    Ok(Some((section, figure(&records))))
}

fn totals(last: &StepRecord, updates: f64, seconds: f64) -> Vec<Vec<String>> {
    let cells = cells(last).iter().sum::<f64>();
    let run = [
        ("root steps", last.step.to_string()),
        ("cells", format!("{cells}")),
        ("cell updates", readable(updates)),
        ("cell updates per second", readable(updates / seconds.max(f64::MIN_POSITIVE))),
        ("memory per cell in bytes", format!("{:.1}", last.device_bytes as f64 / cells.max(1.0))),
    ];
    let gas = [
        ("relative drift of the gas's mass", readable(last.mass_drift)),
        ("residual of the gas's energy balance over its largest kinetic energy", readable(last.energy_residual)),
        ("cells redone with first-order fluxes", last.ledger.redone_cells.to_string()),
        ("retries of steps", last.ledger.retries.to_string()),
        ("cells floored", last.ledger.floored_cells.to_string()),
    ];
    let rows = run.into_iter().chain(gas.into_iter().filter(|_| last.gas.is_some()));
    rows.map(|(name, value)| vec![name.to_owned(), value]).collect()
}

/// Cells of each level after a step.
fn cells(record: &StepRecord) -> Vec<f64> {
    record.groups.iter().map(|groups| (groups * GROUP_CELLS) as f64).collect()
}

/// Cells of each level, and the range of densities, against redshift or time.
fn figure(records: &[StepRecord]) -> Figure {
    let every = records.len().div_ceil(POINTS);
    // the last one is always shown
    let shown: Vec<&StepRecord> = records.iter().rev().step_by(every).collect();
    let comoving = shown.iter().all(|record| record.z.is_some());
    let when = |record: &StepRecord| record.z.map_or(record.time, |z| 1.0 + z);
    let curve = |name: String, value: &dyn Fn(&StepRecord) -> Option<f64>| Curve {
        name,
        points: shown.iter().rev().filter_map(|record| Some([when(record), value(record)?])).collect(),
        ..Curve::default()
    };
    let panel = |y_label: &str, curves: Vec<Curve>| Panel {
        y_logarithmic: true,
        curves,
        ..Panel::over_time(comoving, y_label)
    };
    let levels = records.iter().map(|record| record.groups.len()).max().unwrap_or(0);
    let of_level = |level: usize| {
        curve(format!("level {level}"), &|record| cells(record).get(level).copied().filter(|cells| *cells > 0.0))
    };
    let densities = vec![
        curve("largest".into(), &|record| record.density_max),
        curve("smallest".into(), &|record| record.density_min),
    ];
    let unit = if comoving { "mean matter density" } else { "code units" };
    let panels = [panel("cells", (0..levels).map(of_level).collect()), panel(&format!("density [{unit}]"), densities)];
    line_figure("The run so far", &panels, 2)
}
