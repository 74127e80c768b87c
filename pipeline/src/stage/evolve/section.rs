//! A run's part of the report: how far, how well the sums were kept, where the time went.

use super::run::Evolve;
use super::start::{self, audit_tables};
use super::steps::{self, Tally};
use crate::error::PipelineError;
use crate::stage::Stage;
use crate::stage::section::Section;
use crate::stage::work::Work;
use crate::storage::files;
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
    if let Some(summary) = summary.map(RunSummary::upgraded) {
        // without the records of its steps the run's totals stand, but not what it took
        let tally = Some(steps::tally(&work.folder)?).filter(|tally| tally.cell_updates > 0);
        section.account(
            &format!("Totals after step {}", summary.steps),
            &["quantity", "value"],
            totals(&summary, tally.as_ref(), run.parameters.coordinates),
        );
        if let Some(tally) = tally {
            tracing::info!("{}", gist(&summary, &tally));
            let shares = shares(&tally.timing);
            let parts: Vec<String> = shares.iter().map(|row| format!("{} {}%", row[0], row[2])).collect();
            tracing::debug!("where the time went: {}", parts.join(", "));
            section.account("Where the time went", &["part", "seconds", "percent"], shares);
        }
    }
    if let Some(audit) = read(&work.path(start::AUDIT))? {
        section.accounting.extend(audit_tables(&audit));
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
    let gas = match summary.gas.is_some() {
        true => format!(
            "; mass drift {:.1e}; first-order fluxes in {:.1e} and floors in {:.1e} of the cell updates, {} steps \
             retried",
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
    let energy = summary.gas.map_or(0.0, |gas| gas.sums.kinetic).max(f64::MIN_POSITIVE);
    let of_kinetic = |e: f64| format!("{} ({} of the gas's kinetic energy)", readable(e), readable(e / energy));
    let velocities = mean_velocities(summary, coordinates);
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
    ];
    let sources: Vec<(String, String)> =
        ledger.sources.iter().map(|(name, energy)| (format!("energy from {name}"), of_kinetic(*energy))).collect();
    let sources = sources.iter().map(|(name, energy)| (name.as_str(), energy.clone()));
    let velocities = velocities.iter().map(|(name, speed)| (name.as_str(), readable(*speed)));
    let gas = [
        ("relative drift of the gas's mass", readable(summary.mass_drift)),
        ("residual of the gas's energy balance over its largest kinetic energy", readable(summary.energy_residual)),
        ("work of gravity on the gas", of_kinetic(ledger.gravity_work)),
        ("energy from the entropy scalar", of_kinetic(ledger.entropy_energy)),
        ("energy from floors", of_kinetic(ledger.floor_energy)),
        ("energy from regrids", of_kinetic(ledger.regrid_energy)),
        ("cells redone with first-order fluxes", of_updates(ledger.redone_cells, Tally::redone_fraction)),
        ("retries of steps", ledger.retries.to_string()),
        ("cells floored", of_updates(ledger.floored_cells, Tally::floored_fraction)),
    ];
    // without gas its rows would be zeros
    let gas = gas.into_iter().filter(|_| summary.gas.is_some());
    let device = [("device", summary.device.clone())];
    let raised = tally
        .filter(|tally| tally.raised > 0)
        .map(|tally| ("steps in which max_cells raised the finest thresholds", tally.raised.to_string()));
    let rows = run.into_iter().chain(velocities).chain(gas).chain(sources).chain(device).chain(raised);
    rows.map(|(name, value)| vec![name.to_owned(), value]).collect()
}

/// Names with their units, and mean velocities: of all matter, and of the gas where there is dark matter too. The box as a
/// whole should stay at rest: its velocity measures the conservation of momentum.
fn mean_velocities(summary: &RunSummary, coordinates: Coordinates) -> Vec<(String, f64)> {
    let (factor, unit) = match coordinates {
        Coordinates::Comoving => (VELOCITY_KM_S / summary.a, "km/s"),
        Coordinates::Plain => (1.0, "code units"),
    };
    let of = |what: &str, now: Sums, before: Sums| {
        let gained = (0..3).map(|a| (now.momentum[a] - before.momentum[a]).powi(2)).sum::<f64>().sqrt() / now.mass;
        (format!("{what}, {unit}"), factor * gained)
    };
    let of_all = match summary.initial {
        Some(initial) => of("change of the mean velocity of all matter", summary.sums, initial),
        None => of("mean velocity of all matter", summary.sums, Sums::default()),
    };
    let gas = summary.gas.filter(|_| summary.dark_matter.is_some());
    let of_gas = gas.map(|gas| of("change of the mean velocity of the gas", gas.sums, gas.initial));
    // the oldest summaries do not have dark matter's mass
    [Some(of_all), of_gas].into_iter().flatten().filter(|(_, speed)| speed.is_finite()).collect()
}

/// Seconds and percent of each part of a step.
pub(super) fn shares(timing: &Timing) -> Vec<Vec<String>> {
    let total = timing.total().max(f64::MIN_POSITIVE);
    timing
        .parts()
        .map(|(name, s)| vec![name.to_owned(), format!("{s:.2}"), format!("{:.1}", 100.0 * s / total)])
        .to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use comove_sim::records::{GasSums, SUMMARY_VERSION};
    use serde_json::json;

    /// Mean velocities are those of all matter, and beside dark matter also of the gas, which alone its rows are about.
    #[test]
    fn totals_are_of_all_matter_and_of_the_gas() {
        let sums = |mass: f64, x: f64| Sums { mass, momentum: [x, 0.0, 0.0], kinetic: 4.0 * mass, energy: 5.0 * mass };
        let rows = |gas: bool, dark_matter: bool| {
            let of_gas = gas.then(|| GasSums { initial: sums(1.0, 1.0), sums: sums(1.0, 4.0) });
            let (initial, now) = match (gas, dark_matter) {
                (true, true) => (sums(8.0, 3.0), sums(8.0, 5.0)),
                (true, false) => (sums(1.0, 1.0), sums(1.0, 4.0)),
                _ => (sums(7.0, 2.0), sums(7.0, 1.0)),
            };
            let mut summary: RunSummary = serde_json::from_value(json!({
                "version": SUMMARY_VERSION, "steps": 3, "a": 0.5, "initial": initial, "sums": now,
                "ledger": { "gravity_work": 2.0 }, "mass_drift": 0.0, "energy_residual": 0.0, "cells": 4096,
                "bytes_per_cell": 100.0, "timing": {}, "cell_updates": 4096, "device": "cpu"
            }))
            .unwrap();
            (summary.gas, summary.dark_matter) = (of_gas, dark_matter.then(|| sums(7.0, 1.0)));
            totals(&summary.upgraded(), None, Coordinates::Plain)
        };
        let of = |rows: &[Vec<String>], name: &str| rows.iter().find(|row| row[0] == name).map(|row| row[1].clone());
        let (all, gas) = (
            "change of the mean velocity of all matter, code units",
            "change of the mean velocity of the gas, code \
              units",
        );
        for (rows, expected) in [
            (rows(true, true), [Some(0.25), Some(3.0), Some(2.0)]),
            (rows(true, false), [Some(3.0), None, Some(2.0)]),
            (rows(false, true), [Some(1.0 / 7.0), None, None]),
        ] {
            assert_eq!([of(&rows, all), of(&rows, gas)], [expected[0], expected[1]].map(|speed| speed.map(readable)));
            let work = expected[2]
                .map(|work| format!("{} ({} of the gas's kinetic energy)", readable(work), readable(work / 4.0)));
            assert_eq!(of(&rows, "work of gravity on the gas"), work);
        }
    }
}
