//! The state that a run begins with or continues from.

use super::super::section::SectionTable;
use super::run::{Evolve, Origin, checkpoints_before};
use crate::error::{CHANGED_FILE, PipelineError};
use crate::ledger::Event;
use crate::moment::Moment;
use crate::stage::result::Input;
use crate::stage::work::Work;
use crate::stage::{SavedState, ic};
use crate::terminal::progress::Progress;
use comove_analysis::table::readable;
use comove_ic::Audit;
use comove_sim::{Role, Simulation, StartFrom, StoredSnapshot};

/// What the restriction of an initial condition to the octree kept.
pub(crate) const AUDIT: &str = "audit.json";

/// A run that is about to step.
pub(crate) struct Started {
    pub simulation: Simulation,
    /// Header and octree of the state that it starts or resumes from.
    pub begun: SavedState,
    /// Step of the checkpoint that it continues.
    pub checkpoint_step: Option<u64>,
    /// The class of the device that wrote the checkpoint, if it is not the present one.
    pub other_device_class: Option<String>,
}

/// Continues from the newest valid checkpoint that lies before `first`, the next output to take, or starts anew.
pub(crate) fn start(run: &Evolve, work: &mut Work<'_>, first: Moment) -> Result<Started, PipelineError> {
    for candidate in checkpoints_before(&work.history(), first) {
        let input = Input::snapshot(&work.folder, candidate);
        let error = match open_verified(&input, work.progress) {
            Ok(snapshot) => {
                tracing::info!("continuing from {} ({})", candidate.file, Moment::of(&snapshot.header).rounded());
                match begin(run, work, &snapshot, &input, &candidate.file) {
                    Err(PipelineError::Sim(error)) if error.is_of_a_file() => PipelineError::Sim(error),
                    begun => return begun,
                }
            }
            Err(error) => error,
        };
        tracing::warn!("{error}; the checkpoint is not used");
        let (file, reason) = (candidate.file.clone(), error.to_string());
        work.record(Event::FileRefused { fingerprint: work.fingerprint.into(), file, reason })?;
    }
    let snapshot = match &run.origin {
        Origin::Initial(facts) => {
            let (snapshot, audit) = ic::place(&work.inputs[0][0], facts, &run.parameters, work)?;
            work.write_json(AUDIT, &audit)?;
            snapshot
        }
        Origin::Formula(formula) => formula.snapshot(&run.parameters, work)?,
        Origin::Saved { branch, .. } => {
            let input = work.inputs[0][0].clone();
            let mut snapshot = saved(&input, *branch, first, run.parameters.max_level, work.progress)?;
            if (*branch || run.hooks.steer.is_none()) && snapshot.header.unsteer() {
                tracing::warn!("{}: the run was steered; this one continues without steering", input.path.display());
            }
            return begin(run, work, &snapshot, &input, &input.path.display().to_string());
        }
    };
    let simulation = work.simulation(&snapshot, &run.parameters)?;
    let begun = (snapshot.header, snapshot.state.tree);
    Ok(Started { simulation, begun, checkpoint_step: None, other_device_class: None })
}

/// A snapshot from elsewhere, if it can be started from, without the levels above `max_level`.
fn saved(
    input: &Input,
    branch: bool,
    first: Moment,
    max_level: u8,
    progress: &Progress,
) -> Result<StoredSnapshot, PipelineError> {
    let mut snapshot = open_verified(input, progress)?;
    let now = Moment::of(&snapshot.header);
    if now.coordinates() != first.coordinates() {
        let coordinates = now.coordinates_name();
        let (is, not) = (now.symbol(), first.symbol());
        let reason = format!(
            "the snapshot is in {coordinates} coordinates; use {is}_end and at_{is} instead of {not}_end and at_{not}"
        );
        return Err(PipelineError::input(&input.path, reason));
    }
    if snapshot.header.role == Role::Output && !branch {
        return Err(PipelineError::input(
            &input.path,
            "a run does not continue from an output; use a checkpoint, or set branch: true to start another trajectory",
        ));
    }
    if now.now() > first.now() {
        let reason = format!("the snapshot is at {now}, after the first output of the recipe");
        return Err(PipelineError::input(&input.path, reason));
    }
    let finest = snapshot.tree().level_count() - 1;
    if finest > usize::from(max_level) {
        if !branch {
            let reason = format!(
                "the snapshot has level {finest}, and the run's max_level is {max_level}; raise max_level, or set \
                 branch: true to start another trajectory without the finer levels"
            );
            return Err(PipelineError::input(&input.path, reason));
        }
        let dropped = snapshot.drop_finer(max_level);
        tracing::info!("removed {dropped} groups above level {max_level}; the cells below them have their means");
    }
    Ok(snapshot)
}

/// Goes on from the snapshot in `input`, which is called `from`: its fields are read, each by the process that computes with
/// it.
fn begin(
    run: &Evolve,
    work: &mut Work<'_>,
    snapshot: &StoredSnapshot,
    input: &Input,
    from: &str,
) -> Result<Started, PipelineError> {
    let class = snapshot.header.provenance["device_class"].as_str().unwrap_or_default().to_owned();
    let other_device_class = (class != work.device.class()).then_some(class);
    if let Some(class) = &other_device_class {
        tracing::warn!(
            "{from} was written on {class}, and this device is {}; bits of the results may differ",
            work.device.class()
        );
    }
    let line = work.progress.file("reading", &input.path);
    let simulation = work.simulation(StartFrom::File(snapshot, &|read| line.fraction(read)), &run.parameters)?;
    drop(line);
    work.record(Event::RunContinued {
        fingerprint: work.fingerprint.into(),
        from: from.into(),
        other_device_class: other_device_class.clone(),
    })?;
    let begun = (snapshot.header.clone(), snapshot.tree().clone());
    Ok(Started { simulation, begun, checkpoint_step: Some(snapshot.header.step), other_device_class })
}

/// Opens a snapshot if the whole file is what the ledger says.
fn open_verified(input: &Input, progress: &Progress) -> Result<StoredSnapshot, PipelineError> {
    if !input.is_whole(progress)? {
        return Err(PipelineError::input(&input.path, CHANGED_FILE));
    }
    Ok(StoredSnapshot::open(&input.path)?)
}

/// The audit as tables of the report: what the restriction kept of mass, momentum and energy, and of each level.
pub(crate) fn audit_tables(audit: &Audit) -> Vec<SectionTable> {
    let (before, after) = (&audit.before, &audit.after);
    let row = |name: &str, x: f64, y: f64, scale: f64| {
        let change = if scale > 0.0 { readable((y - x) / scale) } else { "0".into() };
        vec![name.to_owned(), readable(x), readable(y), change]
    };
    let momentum = |axis: usize, name| row(name, before.momentum[axis], after.momentum[axis], audit.momentum_scale);
    let totals = vec![
        row("mass", before.mass, after.mass, before.mass),
        momentum(0, "momentum x"),
        momentum(1, "momentum y"),
        momentum(2, "momentum z"),
        row("internal energy", before.internal_energy, after.internal_energy, before.internal_energy),
        row("kinetic energy", before.kinetic_energy, after.kinetic_energy, before.kinetic_energy),
    ];
    let levels = audit
        .levels
        .iter()
        .map(|l| [u64::from(l.level), l.cells_kept, l.cells_removed, l.leaf_cells].map(|n| n.to_string()).to_vec());
    let table = |caption: String, columns: [&str; 4], rows| {
        let columns = columns.map(String::from).to_vec();
        SectionTable { caption, columns, rows }
    };
    let dropped = format!(
        "Restriction of the initial mesh to the octree: means over the box, in code units. Unresolved kinetic \
         energy: {}, removed and not converted to heat.",
        readable(audit.unresolved_kinetic_energy)
    );
    let kept = audit.has_gas().then(|| table(dropped, ["quantity", "mesh", "octree", "relative change"], totals));
    let columns = ["level", "cells kept", "cells removed", "leaf cells"];
    kept.into_iter().chain([table("Cells kept on each level".into(), columns, levels.collect())]).collect()
}
