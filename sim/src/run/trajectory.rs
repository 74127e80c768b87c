//! A run in one precision: what [`crate::Simulation`] does, generic over the type of the state.

use crate::clock::Clock;
use crate::dark_matter::DarkMatter;
use crate::error::SimError;
use crate::gas::fields::FieldSet;
use crate::io::snapshot::{Role, Snapshot, SnapshotHeader, StartFrom};
use crate::mesh::tree::{leaf_cells, volume_fractions};
use crate::parallel::collective_result::collective_result;
use crate::parallel::{Communicator, Ranks};
use crate::parameters::{Coordinates, RunParameters};
use crate::records::{
    DarkMatterRecord, GasRecord, GasSums, RECORD_VERSION, RunSummary, SUMMARY_VERSION, StepLimit, StepRecord, Sums,
    Timing,
};
use crate::refinement::{self, RefinementContext};
use crate::run::attempts::{Advance, RootStep};
use crate::run::restart::Restart;
use crate::run::scatter::scatter;
use crate::run::start_scalars::StartScalars;
use crate::source::SourceLimit;
use crate::state::State;
use crate::steering::Steering;
use crate::step::diagnostics::StepDiagnostics;
use crate::step::leaf_sums::{LeafSums, leaf_sums, matter_range};
use crate::step::physics::Physics;
use crate::step::sources;
use crate::step::time_step::{self, CELLS_CROSSED, Choice};
use comove_kernels::layout::GROUP_CELLS;
use comove_kernels::{Device, Real};
use std::borrow::Cow;
use std::time::Instant;

/// Least Δt that a comoving run may be steered to, in what expansion allows: a then still grows by more than its round-off.
const SHORTEST_STEP: f64 = 1e-9;

/// Tolerance of the mean density of all matter in a comoving box with particles.
const MEAN_DENSITY_TOLERANCE: f64 = 0.01;

/// A run on a device.
pub(crate) struct Run<T> {
    pub(super) state: State<T>,
    /// With the parameters that hold for the next step.
    physics: Physics<T>,
    /// The parameters of a run that nothing steers.
    asked: RunParameters,
    clock: Clock,
    step: u64,
    restart: Restart,
    /// Of the gas.
    sums: LeafSums,
    /// Conserved sums of dark matter, if there is some.
    dark_matter: Option<Sums>,
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
        let mut header = from.header().clone();
        let (width, parameters) = (header.cell_width(from.tree(), 0), &physics.parameters);
        let of_run = if header.fields.has_gas() { parameters.scalars.fields()? } else { FieldSet::without_gas() };
        let given = std::mem::replace(&mut header.fields, of_run);
        let scalars = StartScalars::new(&given, &parameters.scalars)?;
        let mut state = match (ranks.communicator.size(), &from) {
            (1, StartFrom::Memory(snapshot)) => {
                State::from_host(device, &scalars.of(Cow::Borrowed(&snapshot.state)), width, parameters)?
            }
            (1, StartFrom::File(stored, report)) => {
                State::from_host(device, &scalars.of(Cow::Owned(stored.read(report)?.state)), width, parameters)?
            }
            _ => {
                let faces = parameters.boundary.for_kernels(parameters.gamma);
                let (own, layout) = scatter(&ranks.communicator, &from, ranks.scattered, faces)?;
                let mut state = State::on_layout(
                    device,
                    ranks.communicator,
                    &scalars.of(Cow::Owned(own)),
                    layout,
                    width,
                    parameters,
                )?;
                state.exchange.share.load_balancer = ranks.load_balancer;
                state
            }
        };
        let continues = header.role != Role::Initial;
        let restart = if continues { Restart::read(&header)? } else { Restart::default() };
        state.regrid.go_on(&restart.steps_since_regrid, &restart.travelled_since_regrid);
        state.regrid.raised = restart.raised;
        let mut run = Self {
            clock: Clock::new(header.a, header.time, header.cosmology),
            step: header.step,
            restart,
            sums: leaf_sums(&state),
            dark_matter: None,
            chosen: None,
            choosing: 0.0,
            header,
            timing: Timing::default(),
            cell_updates: 0,
            state,
            asked: physics.parameters.clone(),
            physics,
        };
        run.dark_matter = run.dark_matter_record().ok().flatten().map(|record| record.sums());
        if continues {
            run.steer(run.restart.steering)?;
        } else {
            run.begin()?;
        }
        Ok(run)
    }

    /// From an initial condition: refine as the criteria ask, find the first acceleration, open the ledger.
    ///
    /// # Errors
    /// [`SimError::Parameter`] where all matter of a comoving box with particles has not the mean density, which is 1.
    fn begin(&mut self) -> Result<(), SimError> {
        if let (Some(_), Coordinates::Comoving) = (&self.state.dark_matter, self.header.coordinates) {
            let mean = self.mean_density();
            let reason = "gas and particles of all masses must together have the mean density of matter, which is 1: scale their \
                          masses, or omega_b";
            SimError::require("mean density", &mean, (mean - 1.0).abs() <= MEAN_DENSITY_TOLERANCE, reason)?;
        }
        for _ in 0..self.physics.parameters.max_level {
            refinement::prepare(&mut self.state, &self.physics.parameters, 0)?;
            let context =
                RefinementContext::of(&self.state, &self.physics.parameters, &self.clock, self.mean_density());
            let wanted = refinement::wanted(&self.state, &context, 0);
            self.state.regrid.raised = wanted.raised;
            if !self.state.exchange.communicator.any(wanted.tree != self.state.mesh.tree) {
                break;
            }
            self.state.adopt_tree(wanted.tree, 0, &self.physics.eos)?;
        }
        self.sums = leaf_sums(&self.state);
        self.restart.initial = self.sums.sums;
        self.restart.initial_dark_matter = self.dark_matter;
        self.restart.peak_kinetic = self.sums.sums.kinetic;
        if self.physics.parameters.gravity {
            let mut diagnostics = StepDiagnostics::new(self.physics.parameters.time_steps);
            self.solve_gravity_now()?;
            for level in 0..self.state.level_count() {
                let Some(gravity) = &self.state.gravity else { break };
                let h = self.state.cell_width(level);
                let peaks = gravity.potential.peaks(&self.state.device, &self.state.mesh.tables[level], h);
                diagnostics.see_accelerations(&self.state, level, peaks.wait());
            }
            diagnostics.reduce(&self.state.exchange.communicator);
            self.restart.acceleration = diagnostics.acceleration;
        }
        self.state.check_cell_masses()
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
            let free = self.choose_freely();
            let steered = self.restart.steering.dt_max.filter(|dt_max| *dt_max < free.dt);
            self.chosen = Some(match steered {
                Some(dt) => Choice { dt, limit: StepLimit::Steered, ..free },
                None => free,
            });
            self.choosing = started.elapsed().as_secs_f64();
        }
        let choice = self.chosen.clone().expect("just chosen");
        // before the state is saved: a retry starts from it
        let parameters = &self.physics.parameters;
        let gas = parameters.courant * (choice.dt / choice.gas_dt).min(1.0);
        let particles = CELLS_CROSSED * (choice.dt / choice.particle_dt).min(1.0);
        self.state.regrid.courant_number = gas.max(particles / f64::from(parameters.step_plan().sweeps()));
        choice
    }

    /// The next step of a run that is not steered.
    fn choose_freely(&mut self) -> Choice {
        let Self { state, physics, clock, restart, .. } = self;
        // of a snapshot it may be that of a run with other sources
        let has_it = |limit: &&SourceLimit| physics.parameters.sources().any(|source| source == limit.source);
        let known = restart.source_limit.as_ref().filter(has_it);
        let choice = time_step::choose(state, physics, clock, restart.acceleration, known);
        if known.is_some() || !sources::any(physics) {
            return choice;
        }
        let first = sources::first_limit(state, physics, clock, choice.dt);
        time_step::choose(state, physics, clock, restart.acceleration, first.as_ref())
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
            SimError::require("dt_max", &dt_max, advances, "is too short to advance the time")?;
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
        let Advance { mut diagnostics, dt, retries, retry_policy, sums } = self.root_step().advance(&interval)?;
        self.sums = sums;
        let ladder = diagnostics.ladder(self.leaf_cells(), retries);
        let cold_fraction = diagnostics.cold_cells() as f64 / self.leaf_cells();
        self.restart.retry_policy = retry_policy;
        self.restart.ledger.retries += u64::from(retries);
        diagnostics.timing.save = saving;
        diagnostics.timing.time_step = std::mem::take(&mut self.choosing);
        self.clock = interval.end;
        self.step += 1;
        self.chosen = None;
        self.restart.acceleration = diagnostics.acceleration.or(self.restart.acceleration);
        self.restart.source_limit = diagnostics.source_limit();
        self.regrid_if_due(&mut diagnostics)?;
        self.state.check_cell_masses()?;
        let recording = Instant::now();
        diagnostics.close(&mut self.restart.ledger);
        self.restart.peak_kinetic = self.restart.peak_kinetic.max(self.sums.sums.kinetic);
        let dark_matter = self
            .dark_matter_record()
            .map_err(|particles| SimError::UnphysicalParticles { step: self.step, particles })?;
        let State { device, exchange, dark_matter: particles, .. } = &self.state;
        if let Some(strays) = particles.as_ref().and_then(|particles| particles.strays(device, &exchange.communicator))
        {
            return Err(SimError::ParticlesLeave { step: self.step, strays });
        }
        self.dark_matter = dark_matter.as_ref().map(DarkMatterRecord::sums);
        let [density_min, density_max] = matter_range(&mut self.state, self.sums.density).map(Some);
        let state_hash = format!("{:016x}", self.state.hash());
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
            sums: self.matter_sums(),
            gas: self.state.gas.is_some().then(|| self.gas_record()),
            dark_matter,
            potential: diagnostics.potential(),
            ledger: self.restart.ledger.clone(),
            energy_residual: self.energy_residual(),
            mass_drift: self.mass_drift(),
            cold_fraction,
            ladder,
            density_min,
            density_max,
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

    /// The next step.
    fn root_step(&mut self) -> RootStep<'_, T> {
        let mean_density = self.mean_density();
        let Self { state, physics, clock, step, restart, .. } = self;
        let (number, retry_policy) = (*step + 1, restart.retry_policy);
        RootStep { state, physics, clock: *clock, mean_density, number, retry_policy }
    }

    /// Conserved sums of all matter.
    fn matter_sums(&self) -> Sums {
        self.dark_matter.map_or(self.sums.sums, |dark_matter| self.sums.sums + dark_matter)
    }

    fn gas_record(&self) -> GasRecord {
        let LeafSums { sums, density: [density_min, density_max] } = self.sums;
        GasRecord { sums, density_min, density_max }
    }

    /// See [`DarkMatter::record`]; none without dark matter. Collective.
    fn dark_matter_record(&self) -> Result<Option<DarkMatterRecord>, u64> {
        let State { device, exchange, dark_matter, .. } = &self.state;
        dark_matter.as_ref().map(|dark_matter| dark_matter.record(device, &exchange.communicator)).transpose()
    }

    fn leaf_cells(&self) -> f64 {
        leaf_cells(self.state.groups()).iter().sum::<u64>() as f64
    }

    fn mean_density(&self) -> f64 {
        let dark_matter = self.state.dark_matter.as_ref().map_or(0.0, DarkMatter::mass);
        (self.sums.sums.mass + dark_matter) / self.state.volume()
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
        (self.sums.sums.energy - self.restart.initial.energy - self.restart.ledger.energy())
            / self.restart.peak_kinetic.max(f64::MIN_POSITIVE)
    }

    fn mass_drift(&self) -> f64 {
        let change = self.sums.sums.mass - self.restart.initial.mass - self.restart.ledger.floor_mass;
        change / self.restart.initial.mass.max(f64::MIN_POSITIVE)
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
        let branch = self.root_step().advance(&interval).and_then(|advance| {
            (self.clock, self.sums) = (interval.end, advance.sums);
            self.snapshot(Role::Output)
        });
        self.state.restore()?;
        (self.clock, self.sums) = (clock, sums);
        branch
    }

    fn snapshot(&mut self, role: Role) -> Result<Snapshot, SimError> {
        match self.physics.parameters.gravity {
            true => self.solve_gravity_now()?,
            false => drop(self.state.find_matter_density(0..self.state.level_count())),
        }
        self.state.check_cell_masses()?;
        let mut header = self.header.clone();
        header.role = role;
        (header.a, header.time, header.step) = (self.clock.a, self.clock.time, self.step);
        header.precision = self.physics.parameters.precision;
        header.eta = self.physics.parameters.switch().max(0.0);
        self.restart.steps_since_regrid.clone_from(&self.state.regrid.steps_since);
        self.restart.travelled_since_regrid.clone_from(&self.state.regrid.travelled);
        self.restart.raised = self.state.regrid.raised;
        header.restart = serde_json::to_value(&self.restart).expect("numbers and names");
        let state = self.state.to_host();
        header.dark_matter = self.state.dark_matter.as_ref().map(DarkMatter::header);
        Ok(Snapshot { header, state })
    }

    /// See [`crate::Simulation::summary`].
    pub(crate) fn summary(&self) -> RunSummary {
        let own_cells = self.state.mesh.tree.group_count() * GROUP_CELLS;
        let of_gas = self.restart.initial;
        let initial = match self.dark_matter {
            None => Some(of_gas),
            Some(_) => self.restart.initial_dark_matter.map(|dark_matter| of_gas + dark_matter),
        };
        RunSummary {
            version: SUMMARY_VERSION,
            steps: self.step,
            a: self.clock.a,
            initial,
            sums: self.matter_sums(),
            gas: self.state.gas.is_some().then_some(GasSums { initial: of_gas, sums: self.sums.sums }),
            dark_matter: self.dark_matter,
            ledger: self.restart.ledger.clone(),
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
