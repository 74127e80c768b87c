//! A run's part of the report: how far, how well the sums were kept, where the time went.

use super::run::Evolve;
use super::start::{self, audit_tables};
use super::steps::{self, Tally};
use crate::error::PipelineError;
use crate::files;
use crate::stage::Stage;
use crate::stage::section::Section;
use crate::stage::work::Work;
use comove_analysis::table::readable;
use comove_sim::records::{RunSummary, Sums, Timing};
use comove_sim::{Coordinates, VELOCITY_KM_S};
use serde::de::DeserializeOwned;
use std::path::Path;

/// The file with the [`RunSummary`].
pub(crate) const SUMMARY: &str = "summary.json";

/// The section of `run` in `work`, from the files that it has left.
pub(crate) fn section(work: &Work<'_>, run: &Evolve) -> Result<Section, PipelineError> {
    let mut section = Section::new(run.describe());
    if let Some(stop) = run.stop(&work.history()) {
        section.text += &format!(". Its stop rule ended it {stop}.");
    }
    let summary: Option<RunSummary> = read(&work.path(SUMMARY))?;
    if let Some(summary) = summary {
        // without the records of its steps the run's totals stand, but not what it took
        let tally = Some(steps::tally(&work.folder)?).filter(|tally| tally.cell_updates > 0);
        section.table(
            &format!("Totals after step {}", summary.steps),
            &["quantity", "value"],
            totals(&summary, tally.as_ref(), run.parameters.coordinates),
        );
        if let Some(tally) = tally {
            tracing::info!("{}", gist(&summary, &tally));
            let shares = shares(&tally.timing);
            let parts: Vec<String> = shares.iter().map(|row| format!("{} {}%", row[0], row[2])).collect();
            tracing::debug!("where the time went: {}", parts.join(", "));
            section.table("Where the time went", &["part", "seconds", "percent"], shares);
        }
    }
    if let Some(audit) = read(&work.path(start::AUDIT))? {
        section.tables.extend(audit_tables(&audit));
    }
    Ok(section)
}

/// Writes the totals, unless those of a later moment are there: a run that went back for an output was further before.
pub(crate) fn write_summary(work: &Work<'_>, summary: &RunSummary) -> Result<(), PipelineError> {
    let there: Option<RunSummary> = read(&work.path(SUMMARY)).unwrap_or_default();
    if there.is_none_or(|there| there.steps <= summary.steps) {
        work.write_json(SUMMARY, summary)?;
    }
    Ok(())
}

/// A file of the run, if it is there.
fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, PipelineError> {
    let damaged = |e| PipelineError::input(path, format!("damaged ({e}); delete the stage's folder"));
    files::read_if_there(path)?.map(|text| serde_json::from_slice(&text).map_err(damaged)).transpose()
}

/// The run in one line, for the log.
fn gist(summary: &RunSummary, tally: &Tally) -> String {
    let seconds = tally.timing.total().max(f64::MIN_POSITIVE);
    let gas = match summary.sums.mass > 0.0 {
        true => format!(
            "; mass drift {:.1e}; first-order fluxes in {:.1e} and floors in {:.1e} of the cell updates, {} steps taken again",
            summary.mass_drift,
            tally.redone_fraction(),
            tally.floored_fraction(),
            tally.retries,
        ),
        false => String::new(),
    };
    format!(
        "{} steps, {:.1} million cell updates in {:.1} s ({:.2} million a second), {:.0} bytes a cell{gas}",
        summary.steps,
        tally.cell_updates as f64 / 1e6,
        seconds,
        tally.cell_updates as f64 / seconds / 1e6,
        summary.bytes_per_cell,
    )
}

fn totals(summary: &RunSummary, tally: Option<&Tally>, coordinates: Coordinates) -> Vec<Vec<String>> {
    let ledger = &summary.ledger;
    let energy = summary.sums.kinetic.max(f64::MIN_POSITIVE);
    let of_kinetic = |e: f64| format!("{} ({} of the gas's kinetic energy)", readable(e), readable(e / energy));
    // the box as a whole should stay at rest: its mean velocity measures the conservation of momentum
    let speed = |sums: &Sums, before: [f64; 3]| {
        (0..3).map(|a| (sums.momentum[a] - before[a]).powi(2)).sum::<f64>().sqrt() / sums.mass
    };
    let (gained, what) = match &summary.dark_matter {
        None => (speed(&summary.sums, summary.initial.momentum), "mean velocity that the box has gained"),
        Some(dark_matter) => (speed(&(summary.sums + *dark_matter), [0.0; 3]), "mean velocity of all matter"),
    };
    let (drift, velocity_unit) = match coordinates {
        Coordinates::Comoving => (gained * VELOCITY_KM_S / summary.a, "km/s"),
        Coordinates::Plain => (gained, "code units"),
    };
    let drift_name = format!("{what}, {velocity_unit}");
    // the ledger counts from the start of the first run, the records from the start of this one
    let of_updates = |cells: u64, here: fn(&Tally) -> f64| match tally {
        Some(tally) => format!("{cells} ({} of the cell updates)", readable(here(tally))),
        None => cells.to_string(),
    };
    let updates = tally.map(|tally| tally.cell_updates as f64);
    let per_second = tally.map(|tally| tally.cell_updates as f64 / tally.timing.total().max(f64::MIN_POSITIVE));
    let shown = |value: Option<f64>| value.map_or("–".into(), readable);
    let run = [
        ("root steps", summary.steps.to_string()),
        ("cells", summary.cells.to_string()),
        ("cell updates", shown(updates)),
        ("cell updates per second", shown(per_second)),
        ("memory per cell in bytes", format!("{:.1}", summary.bytes_per_cell)),
        (drift_name.as_str(), readable(drift)),
    ];
    let gas = [
        ("relative drift of the gas's mass", readable(summary.mass_drift)),
        ("residual of the gas's energy ledger, of its largest kinetic energy", readable(summary.energy_residual)),
        ("work of gravity on the gas", of_kinetic(ledger.gravity_work)),
        ("energy from the entropy scalar", of_kinetic(ledger.entropy_energy)),
        ("energy from floors", of_kinetic(ledger.floor_energy)),
        ("energy from regrids", of_kinetic(ledger.regrid_energy)),
        ("cells redone with first-order fluxes", of_updates(ledger.redone_cells, Tally::redone_fraction)),
        ("times a step was taken again", ledger.retries.to_string()),
        ("cells floored", of_updates(ledger.floored_cells, Tally::floored_fraction)),
    ];
    // without gas its rows would be zeros
    let gas = gas.into_iter().filter(|_| summary.sums.mass > 0.0);
    // older summaries do not have dark matter's
    let run = run.into_iter().filter(|(name, _)| *name != drift_name || drift.is_finite());
    let device = [("device", summary.device.clone())];
    let raised = tally
        .filter(|tally| tally.raised > 0)
        .map(|tally| ("steps in which max_cells raised the finest thresholds", tally.raised.to_string()));
    run.chain(gas).chain(device).chain(raised).map(|(name, value)| vec![name.to_owned(), value]).collect()
}

/// Seconds and percent of each part of a step.
fn shares(timing: &Timing) -> Vec<Vec<String>> {
    let total = timing.total().max(f64::MIN_POSITIVE);
    timing
        .parts()
        .map(|(name, s)| vec![name.to_owned(), format!("{s:.2}"), format!("{:.1}", 100.0 * s / total)])
        .to_vec()
}
