//! A run in one precision: what [`crate::Simulation`] does, generic over the type of the state.

use crate::clock::{Clock, Interval};
use crate::error::{Fault, SimError};
use crate::io::snapshot::{Role, Snapshot, SnapshotHeader, StartFrom};
use crate::mesh::Key;
use crate::mesh::tree::{leaf_cells, volume_fractions};
use crate::parallel::collective_result::collective_result;
use crate::parallel::{Communicator, Ranks};
use crate::parameters::{RunParameters, TimeSteps};
use crate::records::{CellBudgetAdjustment, Ledger, RECORD_VERSION, RunSummary, StepLimit, StepRecord, Sums, Timing};
use crate::refinement::{self, RefinementContext};
use crate::run::scatter::scatter;
use crate::state::State;
use crate::state::diagnosis::diagnose;
use crate::steering::Steering;
use crate::step::diagnostics::{Acceleration, LeafSums, StepDiagnostics, leaf_sums};
use crate::step::individual_step::individual_step;
use crate::step::physics::Physics;
use crate::step::retry::{Attempt, RetryPolicy};
use crate::step::time_step::{self, Choice};
use crate::step::uniform_step::step;
use comove_kernels::layout::GROUP_CELLS;
use comove_kernels::{Device, Real};
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// Least Δt that a comoving run may be steered to, in what expansion allows: a then still grows by more than its round-off.
const SHORTEST_STEP: f64 = 1e-9;

/// What a bitwise restart needs besides clock, tree and fields.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Restart {
    initial: Sums,
    ledger: Ledger,
    peak_kinetic: f64,
    acceleration: Option<Acceleration>,
    /// One a level.
    steps_since_regrid: Vec<u32>,
    #[serde(default)]
    patience: RetryPolicy,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    raised: Option<CellBudgetAdjustment>,
    #[serde(default, skip_serializing_if = "Steering::is_none")]
    steering: Steering,
    /// Of what an older program has been steered by, Δt was that of a sweep: half a step's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    steering_version: Option<u32>,
}

/// A root step that has been taken.
struct Advance {
    diagnostics: StepDiagnostics,
    /// Δt of the root step's parts.
    dt: f64,
    /// How often it was taken again.
    retries: u32,
    patience: RetryPolicy,
}

/// A run on a device.
pub(crate) struct Run<T> {
    state: State<T>,
    /// With the parameters that hold for the next step.
    physics: Physics<T>,
    /// The parameters of a run that nothing steers.
    asked: RunParameters,
    clock: Clock,
    step: u64,
    restart: Restart,
    sums: LeafSums,
    /// Δt of the next step once chosen, and the seconds that took.
    chosen: Option<Choice>,
    choosing: f64,
    header: SnapshotHeader,
    timing: Timing,
    cell_updates: u64,
}

impl<T: Real> Run<T> {
    /// See [`crate::Simulation::start`].
    pub(crate) fn start(
        device: Device,
        ranks: Ranks,
        from: StartFrom<'_>,
        physics: Physics<T>,
    ) -> Result<Self, SimError> {
        let header = from.header().clone();
        let (width, parameters) = (header.cell_width(from.tree(), 0), &physics.parameters);
        let mut state = match (ranks.communicator.size(), &from) {
            (1, StartFrom::Memory(snapshot)) => State::from_host(device, &snapshot.state, width, parameters)?,
            (1, StartFrom::File(stored, report)) => {
                State::from_host(device, &stored.read(report)?.state, width, parameters)?
            }
            _ => {
                let faces = parameters.boundary.for_kernels(parameters.gamma);
                let (own, layout) = scatter(&ranks.communicator, &from, ranks.scattered, faces)?;
                let mut state = State::on_layout(device, ranks.communicator, &own, layout, width, parameters)?;
                state.exchange.share.load_balancer = ranks.load_balancer;
                state
            }
        };
        let continues = header.role != Role::Initial;
        let restart = if continues { read_restart(&header)? } else { Restart::default() };
        for (now, &then) in state.regrid.steps_since.iter_mut().zip(&restart.steps_since_regrid) {
            *now = then;
        }
        state.regrid.raised = restart.raised;
        let mut run = Self {
            clock: Clock::new(header.a, header.time, header.cosmology),
            step: header.step,
            restart,
            sums: leaf_sums(&state),
            chosen: None,
            choosing: 0.0,
            header,
            timing: Timing::default(),
            cell_updates: 0,
            state,
            asked: physics.parameters.clone(),
            physics,
        };
        if continues {
            run.steer(run.restart.steering)?;
        } else {
            run.begin()?;
        }
        Ok(run)
    }

    /// From an initial condition: refine as the criteria ask, find the first acceleration, open the ledger.
    fn begin(&mut self) -> Result<(), SimError> {
        for _ in 0..self.physics.parameters.max_level {
            let surroundings =
                RefinementContext::of(&self.state, &self.physics.parameters, &self.clock, self.mean_density());
            let wanted = refinement::wanted(&self.state, &surroundings, 0);
            self.state.regrid.raised = wanted.raised;
            if !self.state.exchange.communicator.any(wanted.tree != self.state.mesh.tree) {
                break;
            }
            self.state.adopt_tree(wanted.tree, 0, &self.physics.eos)?;
        }
        self.sums = leaf_sums(&self.state);
        self.restart.initial = self.sums.sums;
        self.restart.peak_kinetic = self.sums.sums.kinetic;
        if self.physics.parameters.gravity {
            let mut diagnostics = StepDiagnostics::new(self.physics.parameters.time_steps);
            self.solve_gravity_now()?;
            for level in 0..self.state.level_count() {
                let Some(gravity) = &self.state.gravity else { break };
                let h = self.state.cell_width(level);
                let peaks = gravity.potential.peaks(&self.state.device, &self.state.mesh.tables[level], h);
                for (group, &peak) in peaks.iter().enumerate() {
                    diagnostics.see_acceleration(&self.state, level, group, peak);
                }
            }
            diagnostics.reduce(&self.state.exchange.communicator);
            self.restart.acceleration = diagnostics.acceleration;
        }
        Ok(())
    }

    pub(crate) fn communicator(&self) -> &Communicator {
        &self.state.exchange.communicator
    }

    /// Lets go of the other ranks: collective, and the last thing that is done with them.
    pub(crate) fn leave(&self) {
        if !self.state.exchange.share.is_alone() {
            self.state.exchange.ghosts.close();
        }
    }

    pub(crate) fn now(&self) -> f64 {
        self.clock.now()
    }

    pub(crate) fn step_number(&self) -> u64 {
        self.step
    }

    pub(crate) fn groups(&self) -> Vec<usize> {
        self.state.groups().to_vec()
    }

    fn cells(&self) -> u64 {
        (self.state.groups().iter().sum::<usize>() * GROUP_CELLS) as u64
    }

    /// The next unclipped step.
    fn choose(&mut self) -> Choice {
        if self.chosen.is_none() {
            let started = Instant::now();
            let free = time_step::choose(&self.state, &self.physics, &self.clock, self.restart.acceleration);
            let steered = self.restart.steering.dt_max.filter(|dt_max| *dt_max < free.dt);
            self.chosen = Some(match steered {
                Some(dt) => Choice { dt, limit: StepLimit::Steered, ..free },
                None => free,
            });
            self.choosing = started.elapsed().as_secs_f64();
        }
        self.chosen.clone().expect("just chosen")
    }

    /// See [`crate::Simulation::steer`].
    pub(crate) fn steer(&mut self, steering: Steering) -> Result<(), SimError> {
        self.physics.parameters = steering.on(&self.asked)?;
        if let Some(dt_max) = steering.dt_max {
            let expansion = self.clock.expansion_limit(self.asked.max_delta_a);
            let advances = match expansion.is_finite() {
                true => dt_max > SHORTEST_STEP * expansion,
                false => self.clock.interval(dt_max).end.time > self.clock.time,
            };
            SimError::require("dt_max", &dt_max, advances, "a step so short would not advance the time")?;
        }
        self.restart.steering = steering;
        self.restart.steering_version = (!steering.is_none()).then_some(RECORD_VERSION);
        self.chosen = None;
        Ok(())
    }

    /// See [`crate::Simulation::steering`].
    pub(crate) fn steering(&self) -> Steering {
        self.restart.steering
    }

    /// See [`crate::Simulation::next`].
    pub(crate) fn next(&mut self) -> f64 {
        let dt = self.choose().dt;
        self.clock.interval(dt).end.now()
    }

    /// See [`crate::Simulation::step`].
    pub(crate) fn step(&mut self) -> Result<StepRecord, SimError> {
        // on one of the device's threads, so that no operation has to wake it
        let device = self.state.device.clone();
        device.install(|| self.step_or_go_back())
    }

    fn step_or_go_back(&mut self) -> Result<StepRecord, SimError> {
        let started = Instant::now();
        let choice = self.choose();
        // without refinement there is always room for the step
        let may_go_back = self.physics.parameters.retries > 0 || self.physics.parameters.max_level > 0;
        let mut saving = 0.0;
        if may_go_back {
            let saved = self.state.save().map_err(SimError::from);
            collective_result(&self.state.exchange.communicator, saved)?;
            saving = started.elapsed().as_secs_f64();
        }
        let before = (self.clock, self.step, self.restart.clone(), self.sums, self.chosen.clone());
        let record = self.take_step(choice, started, saving);
        // a tree that does not fit may be asked for in the middle of the step: no place to go on from
        if may_go_back && record.as_ref().is_err_and(SimError::is_out_of_memory) {
            self.state.restore()?;
            (self.clock, self.step, self.restart, self.sums, self.chosen) = before;
        }
        record
    }

    /// Takes the chosen step, the state being saved.
    fn take_step(&mut self, choice: Choice, started: Instant, saving: f64) -> Result<StepRecord, SimError> {
        let interval = self.clock.interval(choice.dt);
        let Advance { mut diagnostics, dt, retries, patience } = self.advance(&interval)?;
        let ladder = diagnostics.ladder(self.leaf_cells(), retries);
        let cold_fraction = diagnostics.cold_cells() as f64 / self.leaf_cells();
        self.restart.patience = patience;
        self.restart.ledger.retries += u64::from(retries);
        diagnostics.timing.save = saving;
        diagnostics.timing.time_step = std::mem::take(&mut self.choosing);
        self.clock = interval.end;
        self.step += 1;
        self.chosen = None;
        self.restart.acceleration = diagnostics.acceleration.or(self.restart.acceleration);
        self.regrid_if_due(&mut diagnostics)?;
        let recording = Instant::now();
        diagnostics.close(&mut self.restart.ledger);
        self.restart.peak_kinetic = self.restart.peak_kinetic.max(self.sums.sums.kinetic);
        let state_hash = format!("{:016x}", self.state_hash());
        diagnostics.timing.records += recording.elapsed().as_secs_f64();
        self.timing.add(&diagnostics.timing);
        self.cell_updates += diagnostics.cell_updates;
        let mut device_bytes = [self.state.device_bytes() as u64];
        self.state.exchange.communicator.sum(&mut device_bytes);
        let State { exchange, mesh, .. } = &mut self.state;
        let ranks = exchange.record(&mesh.tree, &diagnostics.level_steps, &diagnostics.sweep_times());
        Ok(StepRecord {
            version: RECORD_VERSION,
            step: self.step,
            a: self.clock.a,
            z: self.clock.redshift(),
            time: self.clock.time,
            dt,
            limit: choice.limit,
            gas_dt: Some(choice.gas_dt).filter(|dt| dt.is_finite()),
            groups: self.groups(),
            volume_fractions: volume_fractions(self.state.mesh.tree.root_groups(), self.state.groups()),
            cell_updates: diagnostics.cell_updates,
            cell_updates_per_second: diagnostics.cell_updates as f64 / started.elapsed().as_secs_f64(),
            sums: self.sums.sums,
            ledger: self.restart.ledger,
            energy_residual: self.energy_residual(),
            mass_drift: self.mass_drift(),
            cold_fraction,
            ladder,
            density_min: self.sums.density[0],
            density_max: self.sums.density[1],
            regridded: diagnostics.regridded,
            raised: self.state.regrid.raised,
            steering: self.restart.steering,
            level_steps: diagnostics.level_steps,
            timing: diagnostics.timing,
            device_bytes: device_bytes[0],
            ranks,
            state_hash,
        })
    }

    fn leaf_cells(&self) -> f64 {
        leaf_cells(self.state.groups()).iter().sum::<u64>() as f64
    }

    /// Advances the state, which is saved unless the recipe allows no retries, over an interval and sums its leaves. A
    /// step that turns out badly is taken again in two parts, then four (see [`crate::step::retry`]).
    fn advance(&mut self, interval: &Interval) -> Result<Advance, SimError> {
        let mean_density = self.mean_density();
        let most = self.physics.parameters.retries as usize;
        let mut attempts = Vec::new();
        let mut timing = Timing::default();
        let mut diagnostics = loop {
            let parts = 1 << attempts.len();
            if parts > 1 {
                self.state.restore()?;
            }
            let diagnostics = self.attempt(interval, parts, mean_density)?;
            timing.add(&diagnostics.timing);
            let floored = diagnostics.floored_cells() as f64 / diagnostics.swept_cells() as f64;
            let stable = diagnostics.courant_number() <= self.physics.parameters.scheme.max_courant();
            attempts.push(Attempt { acceptable: self.fault(&diagnostics).is_none(), stable, floored });
            if attempts.len() > most || !self.restart.patience.should_retry(&attempts) {
                break diagnostics;
            }
        };
        self.refuse_unphysical(&diagnostics, attempts.len())?;
        diagnostics.timing = timing;
        let recording = Instant::now();
        self.sums = leaf_sums(&self.state);
        diagnostics.timing.records += recording.elapsed().as_secs_f64();
        let retries = attempts.len() as u32 - 1;
        let dt = interval.dt / f64::from(1u32 << retries);
        Ok(Advance { diagnostics, dt, retries, patience: self.restart.patience.after(&attempts) })
    }

    /// Takes a root step in so many equal parts, which end together exactly where the interval ends.
    fn attempt(&mut self, interval: &Interval, parts: u32, mean_density: f64) -> Result<StepDiagnostics, SimError> {
        let time_steps = self.physics.parameters.time_steps;
        let mut diagnostics = StepDiagnostics::new(time_steps);
        let mut clock = self.clock;
        for part in 1..=parts {
            let mut piece = if parts == 1 { *interval } else { clock.interval(interval.dt / f64::from(parts)) };
            if part == parts {
                piece.end = interval.end;
            }
            let Self { state, physics, .. } = self;
            match time_steps {
                TimeSteps::Uniform => step(state, physics, &clock, &piece, mean_density, &mut diagnostics)?,
                TimeSteps::Individual => {
                    individual_step(state, physics, &clock, piece.dt, mean_density, &mut diagnostics)?
                }
            }
            clock = piece.end;
        }
        diagnostics.collect(&self.state);
        diagnostics.reduce(&self.state.exchange.communicator);
        Ok(diagnostics)
    }

    /// What forbids to accept a step.
    fn fault(&self, diagnostics: &StepDiagnostics) -> Option<Fault> {
        let allowed = (self.physics.parameters.floor_budget * diagnostics.swept_cells() as f64) as u64;
        match (diagnostics.invalid_cells(), diagnostics.floored_cells()) {
            (0, cells) if cells <= allowed => None,
            (0, cells) => Some(Fault::Floored { cells, allowed }),
            (cells, _) => Some(Fault::Invalid { cells }),
        }
    }

    /// # Errors
    /// [`SimError::Unphysical`] if the last of so many attempts at a step cannot be accepted.
    fn refuse_unphysical(&self, diagnostics: &StepDiagnostics, attempts: usize) -> Result<(), SimError> {
        let Some(fault) = self.fault(diagnostics) else { return Ok(()) };
        let redone = diagnostics.ladder(self.leaf_cells(), 0).redone_cells;
        let tried = match attempts {
            1 => format!("first-order fluxes around {redone} cells"),
            _ => {
                format!("first-order fluxes around {redone} cells and the step taken in {} parts", 1 << (attempts - 1))
            }
        };
        let cell = diagnose(&self.state, &self.physics.eos, diagnostics.first_bad().expect("a fault has a first cell"));
        Err(SimError::Unphysical { step: self.step + 1, fault, tried, cell: Box::new(cell) })
    }

    fn mean_density(&self) -> f64 {
        let [x, y, z] = self.state.mesh.tree.cells(0).map(|n| n as f64 * self.state.root_cell_width);
        self.sums.sums.mass / (x * y * z)
    }

    /// The potential of the state as it is now, for files and the first acceleration; a step solves its own.
    fn solve_gravity_now(&mut self) -> Result<(), SimError> {
        let four_pi_g = self.clock.four_pi_g(self.clock.a, self.physics.parameters.four_pi_g);
        let mean_density = self.mean_density();
        self.state.solve_gravity(four_pi_g, mean_density)
    }

    /// Regrids if it is time.
    fn regrid_if_due(&mut self, diagnostics: &mut StepDiagnostics) -> Result<(), SimError> {
        let mean_density = self.mean_density();
        let Self { state, physics, clock, sums, .. } = self;
        if let Some(level) = refinement::due(state, &physics.parameters, 0) {
            let known = (level == 0).then_some(*sums);
            if let Some(after) = refinement::regrid(state, physics, (clock, mean_density), level, known, diagnostics)? {
                *sums = if level == 0 { after } else { leaf_sums(state) };
            }
        }
        Ok(())
    }

    fn energy_residual(&self) -> f64 {
        let ledger = &self.restart.ledger;
        let booked = ledger.gravity_work + ledger.entropy_energy + ledger.floor_energy + ledger.regrid_energy;
        (self.sums.sums.energy - self.restart.initial.energy - booked)
            / self.restart.peak_kinetic.max(f64::MIN_POSITIVE)
    }

    fn mass_drift(&self) -> f64 {
        (self.sums.sums.mass - self.restart.initial.mass - self.restart.ledger.floor_mass) / self.restart.initial.mass
    }

    /// The hashes of the own groups.
    fn group_hashes(&self) -> Vec<(Key, u64)> {
        let mut groups = Vec::with_capacity(self.state.mesh.tree.group_count());
        for level in 0..self.state.level_count() {
            let hashes = self.state.gas.hashes(&self.state.device, &self.state.mesh.tables[level]);
            groups.extend(self.state.mesh.tree.level(level).iter().copied().zip(hashes));
        }
        groups
    }

    /// See [`crate::Simulation::group_hashes`].
    pub(crate) fn all_group_hashes(&self) -> Vec<(Key, u64)> {
        let own = self.group_hashes();
        if self.state.exchange.communicator.size() == 1 {
            return own;
        }
        let all = self.state.exchange.communicator.gather_all(&serde_json::to_vec(&own).expect("numbers"));
        let of_rank =
            |bytes: &Vec<u8>| serde_json::from_slice::<Vec<(Key, u64)>>(bytes).expect("what was just written");
        let mut groups: Vec<(Key, u64)> = all.iter().flat_map(of_rank).collect();
        groups.sort_unstable();
        groups
    }

    /// Group hashes mixed with their keys and added, in any order.
    pub(crate) fn state_hash(&self) -> u64 {
        let mut total = [self.group_hashes().into_iter().fold(0, |total: u64, (key, hash)| {
            let key = key.morton() << 5 | u64::from(key.level);
            total.wrapping_add((hash ^ key.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_mul(hash | 1))
        })];
        self.state.exchange.communicator.sum(&mut total);
        total[0]
    }

    /// See [`crate::Simulation::checkpoint`].
    pub(crate) fn checkpoint(&mut self) -> Result<Snapshot, SimError> {
        self.snapshot(Role::Checkpoint)
    }

    /// See [`crate::Simulation::output_at`].
    pub(crate) fn output_at(&mut self, target: f64) -> Result<Snapshot, SimError> {
        if target == self.now() {
            return self.snapshot(Role::Output);
        }
        let next = self.next();
        if !(target > self.now() && target <= next) {
            return Err(SimError::Parameter {
                name: "output time",
                value: target.to_string(),
                reason: format!("must lie in the next step, between {} and {next}", self.now()),
            });
        }
        let saved = self.state.save().map_err(SimError::from);
        collective_result(&self.state.exchange.communicator, saved)?;
        let (clock, sums) = (self.clock, self.sums);
        let interval = self.clock.interval_to(target);
        let branch = self.advance(&interval).and_then(|_| {
            self.clock = interval.end;
            self.snapshot(Role::Output)
        });
        self.state.restore()?;
        (self.clock, self.sums) = (clock, sums);
        branch
    }

    fn snapshot(&mut self, role: Role) -> Result<Snapshot, SimError> {
        if self.physics.parameters.gravity {
            self.solve_gravity_now()?;
        }
        let mut header = self.header.clone();
        header.role = role;
        (header.a, header.time, header.step) = (self.clock.a, self.clock.time, self.step);
        header.precision = self.physics.parameters.precision;
        header.eta = self.physics.parameters.switch().max(0.0);
        self.restart.steps_since_regrid.clone_from(&self.state.regrid.steps_since);
        self.restart.raised = self.state.regrid.raised;
        header.restart = serde_json::to_value(&self.restart).expect("numbers and names");
        Ok(Snapshot { header, state: self.state.to_host() })
    }

    /// See [`crate::Simulation::summary`].
    pub(crate) fn summary(&self) -> RunSummary {
        let own_cells = self.state.mesh.tree.group_count() * GROUP_CELLS;
        RunSummary {
            steps: self.step,
            a: self.clock.a,
            initial: self.restart.initial,
            sums: self.sums.sums,
            ledger: self.restart.ledger,
            mass_drift: self.mass_drift(),
            energy_residual: self.energy_residual(),
            cells: self.cells(),
            bytes_per_cell: self.state.device_bytes() as f64 / own_cells.max(1) as f64,
            timing: self.timing,
            cell_updates: self.cell_updates,
            device: self.state.device.name(),
        }
    }
}

fn read_restart(header: &SnapshotHeader) -> Result<Restart, SimError> {
    let mut restart: Restart = serde_json::from_value(header.restart.clone()).map_err(|e| SimError::Parameter {
        name: "restart data of the snapshot",
        value: header.restart.to_string(),
        reason: format!("{e}; start from another checkpoint"),
    })?;
    if restart.steering_version.is_none() {
        restart.steering.dt_max = restart.steering.dt_max.map(|of_a_sweep| 2.0 * of_a_sweep);
    }
    Ok(restart)
}
