//! What a run takes: its way, step by step.

use super::mesh::{Mesh, State};
use super::records::{RecordedRun, Records};
use super::reference::REFERENCE;
use super::speed::{Speed, step_seconds};
use super::trajectory_model::{Record, Recorded, Ways};
use super::{Cost, Planned};
use crate::ledger::StageHistory;
use crate::moment::Moment;
use crate::stage::evolve::{Evolve, Origin};
use crate::stage::ic;
use comove_kernels::Device;
use comove_kernels::layout::{GROUP, GROUP_CELLS};
use comove_sim::memory::{self, Species};
use comove_sim::{Octree, TimeSteps};
use std::path::Path;

/// Parts of a stretch of the way for which steps are counted.
const PARTS: usize = 400;

/// Runs like it whose records are read.
const MOST: usize = 4;

/// Values of a snapshot for each of its cells: of the gas, the potential, and the density of particles; and a little for the
/// octree.
const SNAPSHOT_VALUES: [f64; 3] = [7.0, 1.0, 1.0];
const SNAPSHOT_OCTREE: f64 = 0.21;

/// Bytes of a snapshot for each particle.
const SNAPSHOT_BYTES_PER_PARTICLE: f64 = 52.0;

/// Bytes of the record of a step.
const RECORD_BYTES: f64 = 1300.0;

/// What a run takes from here on, and its outputs, those included that are there: moments, and bytes of each. `None` where
/// neither records nor the reference tell of it.
pub(crate) fn cost(
    run: &Evolve,
    planned: &Planned<'_>,
    records: &Records,
    device: &Device,
    speed: &mut Speed,
) -> Option<(Cost, Vec<(Moment, f64)>)> {
    let (root, mesh) = mesh_of(run, planned.tree)?;
    let like = like(run, &mesh, planned.folder, records);
    let ways = Ways { mesh: &mesh, recorded: like.iter().map(|(_, way)| way).collect() };
    let start = run.origin.start().or(planned.from.and_then(|input| input.moment))?;
    let nothing = StageHistory::default();
    let known = planned.known.unwrap_or(&nothing);
    // the first one from the checkpoint that was found to be whole
    let stretches = run.stretches(known).into_iter().enumerate().map(|(n, (from, to))| {
        let from = if n == 0 { planned.from.and_then(|input| input.moment) } else { from };
        [from.unwrap_or(start), to].map(|moment| mesh.place(moment.now()))
    });
    let stretches: Vec<[f64; 2]> = stretches.collect();
    let (sums, main) = along(&ways, &stretches)?;
    let likest = like.first().map(|(other, way)| (other.records(), &way.mesh));
    let factor = speed.of_run(like.iter().map(|(other, _)| *other), records);
    let stepping = factor * step_seconds(device, sums.level_steps, sums.root_updates, sums.refined_updates);

    let bytes_of = |cells: f64| snapshot_bytes(cells, &mesh, run.species());
    let bytes_at = |moment: Moment| {
        let state = ways.at(mesh.place(moment.now()));
        bytes_of(state.map_or(sums.cells, |(_, state)| cells(&state, &mesh).iter().sum()))
    };
    let snapshots: Vec<(Moment, f64)> = run.outputs.iter().map(|moment| (*moment, bytes_at(*moment))).collect();
    let outputs: f64 = run.missing(known).into_iter().map(bytes_at).sum();
    let passed = |place: f64| stretches.iter().any(|[from, to]| (*from..*to).contains(&place));
    let lasting: f64 = run.checkpoints.moments().filter(|moment| passed(mesh.place(moment.now()))).map(bytes_at).sum();
    // one before the last step, and those that are due on the way
    let last = bytes_at(run.end);
    let minutes = stepping / (60.0 * run.checkpoints.every_minutes.max(1e-3));
    let due = minutes + run.checkpoints.every_steps.map_or(0.0, |every| sums.steps / f64::from(every.get()));
    let kept = (1.0 + due.floor()).min(run.checkpoints.keep as f64);
    let cost = Cost {
        steps: Some(sums.steps),
        cells: Some(sums.cells),
        device_bytes: Some(device_bytes((root, run.species()), &mesh, &sums, device, likest)),
        disk_bytes: outputs + lasting + kept * last + RECORD_BYTES * sums.steps,
        seconds: Some(stepping + speed.writing(outputs + lasting + last + due.floor() * bytes_of(0.5 * sums.cells))),
        from: Some(
            like.get(main).map_or("the program's reference".into(), |(other, _)| other.folder.display().to_string()),
        ),
        is_guess: main == like.len() && !stretches.is_empty(),
    };
    Some((cost, snapshots))
}

/// What a run adds up to on these stretches, and the number of the way that says most of it; `None` where none does, or
/// nothing limits its steps.
fn along(ways: &Ways<'_>, stretches: &[[f64; 2]]) -> Option<(Sums, usize)> {
    let mut sums = Sums::default();
    let mut used = vec![0; ways.recorded.len() + 1];
    for [start, end] in stretches {
        let part = (end - start) / PARTS as f64;
        for n in 0..PARTS {
            let (way, state) = ways.at(start + (n as f64 + 0.5) * part)?;
            let length = state.gas.min(ways.mesh.expansion());
            if !length.is_finite() {
                return None;
            }
            used[way] += 1;
            sums.take(&state, ways.mesh, part / length);
        }
    }
    Some((sums, (0..used.len()).max_by_key(|n| used[*n])?))
}

/// Bytes of a snapshot of so many cells.
fn snapshot_bytes(cells: f64, mesh: &Mesh, species: Species) -> f64 {
    let [gas, potential, particles] = SNAPSHOT_VALUES;
    let has = |there: bool, values: f64| if there { values } else { 0.0 };
    let values = has(species.gas, gas) + potential + has(species.particles > 0, particles) + SNAPSHOT_OCTREE;
    cells * values * mesh.parameters.precision.bytes() as f64 + species.particles as f64 * SNAPSHOT_BYTES_PER_PARTICLE
}

/// Cells of a run's root, and what its way depends on; `None` of one from a snapshot that is not there yet.
fn mesh_of(run: &Evolve, tree: Option<&Octree>) -> Option<([usize; 3], Mesh)> {
    let (root, width) = match &run.origin {
        Origin::Initial(facts) => (facts.root, Some(facts.box_mpc_h / facts.root[0] as f64)),
        Origin::Formula(formula) => (formula.setup.root, None),
        Origin::Saved { .. } => (tree?.root_groups().map(|n| n as usize * GROUP), None),
    };
    let parameters = run.parameters.clone();
    Some((root, Mesh { root_cells: ic::volume(root), width, is_cosmic: width.is_some(), parameters }))
}

/// Runs that tell of this one, the likest first: its own records, then others'.
fn like<'r>(run: &Evolve, mesh: &Mesh, own: Option<&Path>, records: &'r Records) -> Vec<(&'r RecordedRun, Recorded)> {
    let rank = |other: &RecordedRun| {
        let unlike = other.unlike(run, mesh)?;
        Some(if own == Some(other.folder.as_path()) { -1.0 } else { unlike })
    };
    let mut ranked: Vec<_> = records.runs.iter().filter_map(|other| Some((rank(other)?, other))).collect();
    ranked.sort_by(|x, y| x.0.total_cmp(&y.0));
    ranked.into_iter().take(MOST).filter_map(|(_, other)| Some((other, other.way()?))).collect()
}

/// Cells of each level in a state.
fn cells(state: &State, mesh: &Mesh) -> Vec<f64> {
    let of_level = |(level, fraction): (usize, &f64)| fraction * mesh.root_cells * 8f64.powi(level as i32);
    // less than half a group is none
    let cells = state.fractions.iter().enumerate().map(of_level).take_while(|cells| *cells > 0.5 * GROUP_CELLS as f64);
    let cells: Vec<f64> = cells.collect();
    let total: f64 = cells.iter().sum();
    match mesh.parameters.max_cells {
        Some(most) if total > most as f64 => cells.iter().map(|cells| cells * most as f64 / total).collect(),
        _ => cells,
    }
}

/// What a run adds up to.
#[derive(Debug, Default)]
struct Sums {
    steps: f64,
    level_steps: f64,
    root_updates: f64,
    refined_updates: f64,
    cells: f64,
}

impl Sums {
    /// So many steps in this state.
    fn take(&mut self, state: &State, mesh: &Mesh, steps: f64) {
        let cells = cells(state, mesh);
        let of = |level: usize| mesh.parameters.time_steps.per_root_step(level);
        self.steps += steps;
        self.level_steps += steps * (0..cells.len()).map(of).sum::<f64>();
        self.root_updates += steps * cells[0];
        self.refined_updates += steps * (1..cells.len()).map(|level| of(level) * cells[level]).sum::<f64>();
        self.cells = self.cells.max(cells.iter().sum());
    }
}

/// Most bytes on the device, as those of the records were if there are any: refined cells take more than the root's.
fn device_bytes(
    (root, species): ([usize; 3], Species),
    mesh: &Mesh,
    sums: &Sums,
    device: &Device,
    like: Option<(&[Record], &Mesh)>,
) -> f64 {
    let of_root = memory::root_device_bytes(device, root, &mesh.parameters, species);
    let of_records = like.and_then(|(records, mesh)| {
        let fullest = records.iter().max_by_key(|record| record.device_bytes)?;
        let refined = (fullest.groups[1..].iter().sum::<usize>() * GROUP_CELLS) as f64;
        let axis = (mesh.root_cells.cbrt().round() as usize).next_multiple_of(GROUP);
        let of_root = memory::root_device_bytes(device, [axis; 3], &mesh.parameters, species);
        (refined > 0.0).then(|| (fullest.device_bytes as f64 - of_root) / refined)
    });
    let individual = usize::from(mesh.parameters.time_steps == TimeSteps::Individual);
    let usual = REFERENCE.refined_bytes[individual] * of_root / mesh.root_cells;
    let a_refined_cell = of_records.filter(|bytes| *bytes > 0.0).unwrap_or(usual);
    of_root + (sums.cells - mesh.root_cells).max(0.0) * a_refined_cell
}
