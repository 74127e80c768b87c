//! Cost of a run: the sums over its way.

use super::mesh::Mesh;
use super::records::{RecordedRun, Records};
use super::reference::REFERENCE;
use super::speed::{DeviceKind, Speed, StepWork};
use super::state::State;
use super::theory::Universe;
use super::trajectory_model::{Record, Recorded};
use super::ways::Ways;
use super::{Cost, Planned};
use crate::ledger::StageHistory;
use crate::moment::Moment;
use crate::stage::evolve::{Evolve, Origin};
use crate::stage::{SavedState, ic};
use comove_kernels::Device;
use comove_kernels::layout::{GROUP, GROUP_CELLS};
use comove_sim::memory::{self, Species};
use comove_sim::{Cosmology, RunParameters, TimeSteps};
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

/// Exponent of a level's volume fraction that gives its mass fraction.
const CLUSTERING: f64 = 0.4;

/// Bytes of the record of a step.
const RECORD_BYTES: f64 = 1300.0;

/// Root, universe and matter of a run.
#[derive(Clone, Debug)]
pub(crate) struct Start {
    pub root: [usize; 3],
    pub universe: Option<Universe>,
    pub species: Species,
}

impl Start {
    /// Of a run that resumes or starts from `begun`, or from an initial condition; `None` of one from a snapshot that does
    /// not exist yet.
    pub(crate) fn of(run: &Evolve, begun: Option<&SavedState>) -> Option<Self> {
        let species = run.species(begun.map(|(header, _)| header));
        let particles = species.particles as f64;
        let cosmic = |cosmology: &Cosmology, lengths: [f64; 3], mesh_cells: f64| {
            let box_mpc_h = lengths.iter().product::<f64>().cbrt();
            let mesh_mpc_h = box_mpc_h / mesh_cells.cbrt();
            Universe { cosmology: *cosmology, box_mpc_h, mesh_mpc_h, gas: species.gas, particles }
        };
        let (root, universe) = match (&run.origin, begun) {
            (Origin::Initial(facts), _) => {
                let lengths = facts.cells.map(|n| facts.box_mpc_h * n as f64 / facts.cells[0] as f64);
                let mesh_cells = if particles > 0.0 { particles } else { ic::volume(facts.cells) };
                (facts.root, Some(cosmic(&facts.cosmology, lengths, mesh_cells)))
            }
            (Origin::Formula(formula), _) => (formula.setup.root, None),
            (Origin::Saved { .. }, begun) => {
                let (header, tree) = begun?;
                let root = tree.root_groups().map(|n| n as usize * GROUP);
                // where no particle tells of the initial mesh, it had the root's cells
                let mesh_cells = if particles > 0.0 { particles } else { ic::volume(root) };
                let universe =
                    header.cosmology.map(|cosmology| cosmic(&cosmology, header.box_lengths(tree), mesh_cells));
                (root, universe)
            }
        };
        Some(Self { root, universe, species })
    }

    pub(crate) fn mesh(&self, parameters: &RunParameters) -> Mesh {
        Mesh::new(ic::volume(self.root), self.universe.clone(), parameters.clone())
    }
}

/// Cost of a run.
pub(crate) struct RunCost {
    pub cost: Cost,
    /// All outputs, also those that exist: moments, and bytes of each.
    pub outputs: Vec<(Moment, f64)>,
    pub start: Start,
}

/// What a run takes from its present state to its end. `None` where neither records nor the model tell of it.
pub(crate) fn cost(
    run: &Evolve,
    planned: &Planned<'_>,
    records: &Records,
    device: &Device,
    speed: &mut Speed,
) -> Option<RunCost> {
    let input = planned.inputs.first().copied().flatten();
    let start = Start::of(run, planned.begun).or_else(|| input?.start.clone())?;
    let mesh = start.mesh(&run.parameters);
    let like = like(run, &mesh, planned.folder, records);
    let ways = Ways::new(&mesh, like.iter().map(|(_, way)| way).collect());
    let from = planned.from.and_then(|input| input.moment);
    let first = run.origin.start().or(from).or_else(|| Some(input?.result.snapshots.last()?.moment()))?;
    let nothing = StageHistory::default();
    let known = planned.known.unwrap_or(&nothing);
    // the first one from the checkpoint that was found to be whole
    let stretches = run.stretches(known).into_iter().enumerate().map(|(n, (checkpoint, to))| {
        let from = if n == 0 { from } else { checkpoint };
        [from.unwrap_or(first), to].map(|moment| mesh.place(moment.now()))
    });
    let stretches: Vec<[f64; 2]> = stretches.collect();
    let species = start.species;
    let (sums, main) = along(&ways, &stretches, species)?;
    let likest = like.first().map(|(other, way)| (other.records(), &way.mesh));
    let factor = speed.of_run(like.iter().map(|(other, _)| *other), records);
    let stepping = factor * sums.work.seconds(DeviceKind::of(device), species.gas);

    let bytes_of = |cells: f64| snapshot_bytes(cells, &mesh, species);
    let bytes_at = |moment: Moment| {
        let state = ways.at(mesh.place(moment.now()));
        bytes_of(state.map_or(sums.cells, |(_, state)| cells(&state, &mesh).iter().sum()))
    };
    let outputs: Vec<(Moment, f64)> = run.outputs.iter().map(|moment| (*moment, bytes_at(*moment))).collect();
    let missing: f64 = run.missing(known).into_iter().map(bytes_at).sum();
    let passed = |place: f64| stretches.iter().any(|[from, to]| (*from..*to).contains(&place));
    let lasting: f64 = run.checkpoints.moments().filter(|moment| passed(mesh.place(moment.now()))).map(bytes_at).sum();
    // one before the last step, and those that are due on the way
    let last = bytes_at(run.end);
    let minutes = stepping / (60.0 * run.checkpoints.every_minutes.max(1e-3));
    let due = minutes + run.checkpoints.every_steps.map_or(0.0, |every| sums.steps / f64::from(every.get()));
    let kept = (1.0 + due.floor()).min(run.checkpoints.keep as f64);
    let name = |(other, _): &(&RecordedRun, _)| other.folder.display().to_string();
    let cost = Cost {
        steps: Some(sums.steps),
        cells: Some(sums.cells),
        device_bytes: Some(device_bytes(&start, &mesh, &sums, device, likest)),
        disk_bytes: missing + lasting + kept * last + RECORD_BYTES * sums.steps,
        seconds: Some(stepping + speed.writing(missing + lasting + last + due.floor() * bytes_of(0.5 * sums.cells))),
        from: Some(like.get(main).map_or("a model of clustering".into(), name)),
        is_guess: main == like.len() && !stretches.is_empty(),
    };
    // numbers that no run has
    cost.is_finite().then_some(RunCost { cost, outputs, start })
}

/// Sums of a run over these stretches, and the number of the source that most of them come from; `None` where none tells of
/// it, or nothing limits its steps.
pub(super) fn along(ways: &Ways<'_>, stretches: &[[f64; 2]], species: Species) -> Option<(Sums, usize)> {
    let mut sums = Sums::default();
    let mut used = vec![0; ways.model() + 1];
    for [start, end] in stretches {
        let part = (end - start) / PARTS as f64;
        for n in 0..PARTS {
            let (way, state) = ways.at(start + (n as f64 + 0.5) * part)?;
            let length = state.step.min(ways.mesh().expansion());
            if !length.is_finite() {
                return None;
            }
            used[way] += 1;
            sums.add(&state, ways.mesh(), species, part / length);
        }
    }
    Some((sums, (0..used.len()).max_by_key(|n| used[*n])?))
}

/// Bytes of a snapshot of so many cells.
pub(super) fn snapshot_bytes(cells: f64, mesh: &Mesh, species: Species) -> f64 {
    let [gas, potential, particles] = SNAPSHOT_VALUES;
    let has = |there: bool, values: f64| if there { values } else { 0.0 };
    let values = has(species.gas, gas) + potential + has(species.particles > 0, particles) + SNAPSHOT_OCTREE;
    cells * values * mesh.parameters.precision.bytes() as f64 + species.particles as f64 * SNAPSHOT_BYTES_PER_PARTICLE
}

/// Runs that tell of this one, the likest first: its own records, then others'.
pub(super) fn like<'r>(
    run: &Evolve,
    mesh: &Mesh,
    own: Option<&Path>,
    records: &'r Records,
) -> Vec<(&'r RecordedRun, Recorded)> {
    let rank = |other: &RecordedRun| {
        let unlike = other.unlike(run, mesh)?;
        Some(if own == Some(other.folder.as_path()) { -1.0 } else { unlike })
    };
    let mut ranked: Vec<_> = records.runs.iter().filter_map(|other| Some((rank(other)?, other))).collect();
    ranked.sort_by(|x, y| x.0.total_cmp(&y.0));
    ranked.into_iter().take(MOST).filter_map(|(_, other)| Some((other, other.way()?))).collect()
}

/// Cells of each level in a state.
pub(super) fn cells(state: &State, mesh: &Mesh) -> Vec<f64> {
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

/// Sums of a run.
#[derive(Debug, Default)]
pub(super) struct Sums {
    steps: f64,
    pub(super) work: StepWork,
    /// Most cells at a time.
    cells: f64,
}

impl Sums {
    /// Adds so many steps in this state.
    pub(super) fn add(&mut self, state: &State, mesh: &Mesh, species: Species, steps: f64) {
        let cells = cells(state, mesh);
        let of = |level: usize| mesh.parameters.time_steps.per_root_step(level);
        // mass that is on a level or finer ones
        let mass = |level: usize| if level < cells.len() { state.fraction(level).powf(CLUSTERING) } else { 0.0 };
        let share: f64 = (0..cells.len()).map(|level| of(level) * (mass(level) - mass(level + 1))).sum();
        self.steps += steps;
        self.work.level_steps += steps * (0..cells.len()).map(of).sum::<f64>();
        self.work.root_updates += steps * cells[0];
        self.work.refined_updates += steps * (1..cells.len()).map(|level| of(level) * cells[level]).sum::<f64>();
        self.work.particle_updates += steps * share * species.particles as f64;
        self.cells = self.cells.max(cells.iter().sum());
    }
}

/// Most bytes on the device: the root's and the particles' are exact, those of a refined cell as in the records, else the
/// reference's in proportion to the root's.
fn device_bytes(start: &Start, mesh: &Mesh, sums: &Sums, device: &Device, like: Option<(&[Record], &Mesh)>) -> f64 {
    let of_root = memory::root_device_bytes(device, start.root, &mesh.parameters, start.species);
    let of_records = like.and_then(|(records, mesh)| {
        let fullest = records.iter().max_by_key(|record| record.device_bytes)?;
        let refined = (fullest.groups[1..].iter().sum::<usize>() * GROUP_CELLS) as f64;
        let axis = (mesh.root_cells.cbrt().round() as usize).next_multiple_of(GROUP);
        let universe = mesh.universe.as_ref();
        let gas = universe.is_none_or(|universe| universe.gas);
        let particles = universe.map_or(0, |universe| universe.particles as usize);
        let of_root = memory::root_device_bytes(device, [axis; 3], &mesh.parameters, Species { gas, particles });
        (refined > 0.0).then(|| (fullest.device_bytes as f64 - of_root) / refined)
    });
    let individual = usize::from(mesh.parameters.time_steps == TimeSteps::Individual);
    let of_cells = memory::root_device_bytes(
        device,
        start.root,
        &mesh.parameters,
        Species { particles: start.species.particles.min(1), ..start.species },
    );
    let usual = REFERENCE.refined_bytes[individual] * of_cells / mesh.root_cells;
    let a_refined_cell = of_records.filter(|bytes| *bytes > 0.0).unwrap_or(usual);
    of_root + (sums.cells - mesh.root_cells).max(0.0) * a_refined_cell
}
