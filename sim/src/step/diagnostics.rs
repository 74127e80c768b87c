//! Bookkeeping of a step: what its operations reported, summed in an order that does not matter.
//!
//! Operations on a GPU report when they are done. The diagnostics defer what is still to come, and collect it while the GPU works on the
//! next sweep ([`StepDiagnostics::collect`]).

use crate::mesh::CellPlace;
use crate::mesh::Key;
use crate::parallel::communicator::Communicator;
use crate::parallel::exact_sum::ExactSum;
use crate::parallel::load_balancer::SweepTime;
use crate::parameters::TimeSteps;
use crate::records::{DevicePart, Ladder, Ledger, PotentialRecord, Timing};
use crate::source::{Source, SourceLimit, time_limit};
use crate::state::State;
use comove_kernels::gravity_kick::{KickReport, Peak};
use comove_kernels::layout::{GROUP_CELLS, OCTANTS};
use comove_kernels::source::SourceReport;
use comove_kernels::timestep::SignalSpeed;
use comove_kernels::{Deferred, DeviceEvent};
use comove_kernels::{GroupReport, Real};
use serde::{Deserialize, Serialize};

/// The strongest acceleration of a step's kicks relative to the cell width: it limits the next step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Acceleration {
    /// √(h/g) times the level's steps in one of the root, code time.
    pub time: f64,
    /// Level of the cell.
    pub level: u8,
    /// The cell on the level's lattice.
    pub cell: [usize; 3],
    /// |g|, code units.
    pub acceleration: f64,
}

/// A report of an operation on a level that is still to come.
#[derive(Debug)]
pub enum Pending {
    /// A sweep.
    Sweep {
        /// One for each group.
        reports: Deferred<GroupReport>,
        /// Whether it is the level's last one in its step.
        last: bool,
    },
    /// A flux correction: groups and what was done to them.
    Correction(Deferred<(u32, GroupReport)>),
    /// A kick of gas.
    Kick(Deferred<KickReport>),
    /// An applied source.
    Source {
        /// The source.
        source: Source,
        /// Δt, code time.
        dt: f64,
        /// One for each group.
        reports: Deferred<SourceReport>,
    },
    /// The strongest acceleration of each group, where there is no gas.
    Peaks(Deferred<Peak>),
    /// Twice the potential energy of each group of a level over its cells' volume.
    Potential(Deferred<f64>),
    /// The signal speeds that a sweep left behind.
    Signals {
        /// One for each group.
        speeds: Deferred<SignalSpeed>,
        /// Δt/h of the sweep.
        dt_over_dx: f64,
    },
}

/// What is still to be collected.
#[derive(Debug)]
enum Open {
    Report { level: usize, pending: Pending },
    Time { part: DevicePart, from: DeviceEvent, to: DeviceEvent },
}

/// A sweep of a level that waited for no other rank, of so many groups that were not swept before.
#[derive(Debug)]
struct Measured {
    level: usize,
    groups: usize,
    from: DeviceEvent,
    to: DeviceEvent,
}

/// The first cell that something happened to: of the first operation, in the first of its groups in key order.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct First {
    operation: u64,
    place: CellPlace,
}

/// What the operations of one step reported.
#[derive(Debug, Default)]
pub struct StepDiagnostics {
    open: Vec<Open>,
    /// Operations that have been entered: all ranks enter the same.
    operations: u64,
    gravity_work: ExactSum,
    /// Energy from each source.
    sources: Vec<(Source, ExactSum)>,
    /// The sources' limit of the next Δt, and the operation that found it.
    source_limit: Option<(SourceLimit, u64)>,
    /// Scale factor of the potential whose energy is summed.
    potential_at: Option<f64>,
    /// Twice its energy.
    potential: ExactSum,
    entropy_energy: ExactSum,
    floor_energy: ExactSum,
    floor_mass: ExactSum,
    regrid_energy: f64,
    /// Whether a regrid changed the tree.
    pub regridded: bool,
    redone: u64,
    redone_faces: u64,
    first_redone: Option<First>,
    /// Leaf cells that sweeps advanced, sweep by sweep.
    swept: u64,
    floored: u64,
    floored_in_sweeps: u64,
    first_floored: Option<First>,
    /// Of each level's last sweep: cells whose pressure came from the entropy scalar, and those whose energy alone gave
    /// none.
    cold: Vec<[u64; 2]>,
    invalid: u64,
    first_invalid: Option<First>,
    time_steps: TimeSteps,
    courant_number: f64,
    /// Steps of each level.
    pub level_steps: Vec<u32>,
    /// Cells of the levels times their steps.
    pub cell_updates: u64,
    /// Of the step's kicks.
    pub acceleration: Option<Acceleration>,
    /// The operation that found it.
    accelerated: u64,
    /// Seconds by part.
    pub timing: Timing,
    measured: Vec<Measured>,
}

impl StepDiagnostics {
    /// The diagnostics of a step that has not begun.
    pub fn new(time_steps: TimeSteps) -> Self {
        Self { time_steps, ..Self::default() }
    }

    /// Counts a step that a level begins.
    pub fn count_level_step<T: Real>(&mut self, state: &State<T>, level: usize) {
        if self.level_steps.len() <= level {
            self.level_steps.resize(level + 1, 0);
        }
        self.level_steps[level] += 1;
        self.cell_updates += (state.mesh.tables[level].len() * GROUP_CELLS) as u64;
    }

    /// Takes note that an operation on a level will report.
    pub fn defer(&mut self, level: usize, pending: Pending) {
        self.open.push(Open::Report { level, pending });
    }

    /// Takes note of a part of the step that the device begins at one moment and ends at another.
    pub fn record_time(&mut self, part: DevicePart, from: DeviceEvent, to: DeviceEvent) {
        self.open.push(Open::Time { part, from, to });
    }

    /// Takes note of a sweep of a level that waited for no other rank, of so many groups that were not swept before.
    pub fn measure(&mut self, level: usize, groups: usize, from: DeviceEvent, to: DeviceEvent) {
        self.measured.push(Measured { level, groups, from, to });
    }

    /// By level: how long the sweeps that were measured took. Waits for them.
    pub fn sweep_times(&self) -> Vec<SweepTime> {
        let mut times = Vec::new();
        for Measured { level, groups, from, to } in &self.measured {
            if times.len() <= *level {
                times.resize(level + 1, SweepTime::default());
            }
            times[*level].seconds += to.seconds_since(from);
            times[*level].groups += *groups as u64;
        }
        times
    }

    /// Collects all deferred reports: while a sweep works, before the tree changes, and before any result is read.
    pub fn collect<T: Real>(&mut self, state: &State<T>) {
        for open in std::mem::take(&mut self.open) {
            match open {
                Open::Report { level, pending } => self.apply(state, level, pending),
                Open::Time { part, from, to } => self.timing.add_part(part, to.seconds_since(&from)),
            }
        }
    }

    fn apply<T: Real>(&mut self, state: &State<T>, level: usize, pending: Pending) {
        self.operations += 1;
        match pending {
            Pending::Sweep { reports, last } => {
                let reports = reports.wait();
                self.add_reports(state, level, reports.iter().enumerate());
                self.count_sweep(state, level, &reports);
                if last {
                    self.count_cold(level, &reports);
                }
            }
            Pending::Correction(reports) => {
                let reports = reports.wait();
                self.add_reports(state, level, reports.iter().map(|(group, report)| (*group as usize, report)));
            }
            Pending::Kick(kicks) => {
                let kicks = kicks.wait();
                self.add_reports(state, level, kicks.iter().map(|kick| &kick.report).enumerate());
                self.add_kicks(state, level, &kicks);
            }
            Pending::Source { source, dt, reports } => {
                let reports = reports.wait();
                self.add_reports(state, level, reports.iter().map(|done| &done.report).enumerate());
                self.add_source(state, level, (source, dt), &reports);
            }
            Pending::Peaks(peaks) => self.see_accelerations(state, level, peaks.wait()),
            Pending::Potential(sums) => {
                let volume = state.cell_width(level).powi(3);
                sums.wait().iter().for_each(|sum| self.potential.add(sum * volume));
            }
            Pending::Signals { speeds, dt_over_dx } => {
                let fastest = speeds.wait().iter().map(|fastest| fastest.speed).fold(0.0, f64::max);
                self.see_courant_number(fastest * dt_over_dx);
            }
        }
    }

    /// Adds the reports of groups on one level.
    fn add_reports<'a, T: Real>(
        &mut self,
        state: &State<T>,
        level: usize,
        reports: impl Iterator<Item = (usize, &'a GroupReport)>,
    ) {
        let volume = state.cell_width(level).powi(3);
        for (group, report) in reports {
            self.entropy_energy.add(report.energy_added * volume);
            self.floor_energy.add(report.floor_energy * volume);
            self.floor_mass.add(report.floor_mass * volume);
            self.redone_faces += u64::from(report.redone_faces);
            for (cells, first, sum, place) in [
                (report.redone, report.first_redone, &mut self.redone, &mut self.first_redone),
                (report.floored, report.first_floored, &mut self.floored, &mut self.first_floored),
                (report.invalid, report.first_invalid, &mut self.invalid, &mut self.first_invalid),
            ] {
                *sum += u64::from(cells);
                if cells > 0 && place.is_none() {
                    let cell = state.mesh.locate(level, group, first as usize);
                    let place_of_cell = CellPlace { level: level as u8, cell };
                    *place = Some(First { operation: self.operations, place: place_of_cell });
                }
            }
        }
    }

    /// Counts the leaf cells of a level whose pressure came from the entropy scalar in its last sweep, and those whose
    /// energy alone gave none.
    fn count_cold(&mut self, level: usize, reports: &[GroupReport]) {
        if self.cold.len() <= level {
            self.cold.resize(level + 1, [0; 2]);
        }
        let sum = |count: fn(&GroupReport) -> u32| reports.iter().map(|r| u64::from(count(r))).sum();
        self.cold[level] = [sum(|r| r.cold), sum(|r| r.negative)];
    }

    /// Counts the leaf cells of a sweep of a level, and those that it floored.
    fn count_sweep<T: Real>(&mut self, state: &State<T>, level: usize, reports: &[GroupReport]) {
        let patches: u32 = state.mesh.tables[level].leaves.iter().map(|leaves| leaves.count_ones()).sum();
        self.swept += u64::from(patches) * (GROUP_CELLS / OCTANTS) as u64;
        self.floored_in_sweeps += reports.iter().map(|r| u64::from(r.floored)).sum::<u64>();
    }

    /// Takes note of the Courant number that a sweep left behind.
    fn see_courant_number(&mut self, courant_number: f64) {
        // a cell that is no number has none either, and is found as such
        if courant_number.is_finite() {
            self.courant_number = self.courant_number.max(courant_number);
        }
    }

    /// The largest Courant number that a sweep of an individual step left behind; 0 with uniform steps.
    pub fn courant_number(&self) -> f64 {
        self.courant_number
    }

    /// Takes note of a regrid that changed the tree and the energy by so much.
    pub fn add_regrid(&mut self, energy: f64) {
        self.regridded = true;
        self.regrid_energy += energy;
    }

    /// Adds what a kick did on one level.
    fn add_kicks<T: Real>(&mut self, state: &State<T>, level: usize, kicks: &[KickReport]) {
        let width = state.cell_width(level);
        kicks.iter().for_each(|kick| self.gravity_work.add(kick.work * width.powi(3)));
        self.see_accelerations(state, level, kicks.iter().map(|kick| kick.peak));
    }

    /// Adds energy and limit of a source on one level.
    fn add_source<T: Real>(
        &mut self,
        state: &State<T>,
        level: usize,
        (source, dt): (Source, f64),
        reports: &[SourceReport],
    ) {
        let volume = state.cell_width(level).powi(3);
        let row = self.sources.iter().position(|(other, _)| *other == source).unwrap_or_else(|| {
            self.sources.push((source, ExactSum::default()));
            self.sources.len() - 1
        });
        reports.iter().for_each(|done| self.sources[row].1.add(done.energy * volume));
        for (group, done) in reports.iter().enumerate() {
            let time = time_limit(dt, done.relative_change) * self.time_steps.per_root_step(level);
            if time < self.source_limit.as_ref().map_or(f64::INFINITY, |(limit, _)| limit.time) {
                let cell = state.mesh.locate(level, group, done.cell as usize);
                let limit = SourceLimit { time, source, level: level as u8, cell };
                self.source_limit = Some((limit, self.operations));
            }
        }
    }

    /// The sources' limit of the next Δt.
    pub(crate) fn source_limit(&self) -> Option<SourceLimit> {
        self.source_limit.as_ref().map(|(limit, _)| limit.clone())
    }

    /// Begins the sum of the potential energy at this scale factor; one of several, as in the parts of a retried step, replaces
    /// the one before.
    pub fn begin_potential(&mut self, a: f64) {
        self.potential_at = Some(a);
        self.potential = ExactSum::default();
    }

    /// The potential energy, once it has been collected.
    pub fn potential(&self) -> Option<PotentialRecord> {
        self.potential_at.map(|a| PotentialRecord { a, energy: 0.5 * self.potential.value() })
    }

    /// Keeps the shortest √(h/g), in steps of the level.
    ///
    /// * `peaks`: of each group of the level
    pub fn see_accelerations<T: Real>(
        &mut self,
        state: &State<T>,
        level: usize,
        peaks: impl IntoIterator<Item = Peak>,
    ) {
        peaks.into_iter().enumerate().for_each(|(group, peak)| self.see_acceleration(state, level, group, peak));
    }

    fn see_acceleration<T: Real>(&mut self, state: &State<T>, level: usize, group: usize, peak: Peak) {
        let time = (state.cell_width(level) / peak.acceleration).sqrt() * self.time_steps.per_root_step(level);
        if time < self.acceleration.map_or(f64::INFINITY, |a| a.time) {
            let cell = state.mesh.locate(level, group, peak.cell as usize);
            self.acceleration = Some(Acceleration { time, level: level as u8, cell, acceleration: peak.acceleration });
            self.accelerated = self.operations;
        }
    }

    /// Writes the step into the run's ledger.
    pub fn close(&self, ledger: &mut Ledger) {
        ledger.gravity_work += self.gravity_work.value();
        for (source, energy) in &self.sources {
            *ledger.sources.entry(source.name().into()).or_default() += energy.value();
        }
        ledger.entropy_energy += self.entropy_energy.value();
        ledger.floor_energy += self.floor_energy.value();
        ledger.floor_mass += self.floor_mass.value();
        ledger.regrid_energy += self.regrid_energy;
        ledger.redone_cells += self.redone;
        ledger.floored_cells += self.floored;
    }

    /// Leaf cells whose pressure came from the entropy scalar in their level's last sweep.
    pub fn cold_cells(&self) -> u64 {
        self.cold.iter().map(|[cold, _]| cold).sum()
    }

    /// Leaf cells raised to a floor, operation by operation.
    pub fn floored_cells(&self) -> u64 {
        self.floored
    }

    /// Leaf cells that sweeps advanced, sweep by sweep: what a floor budget is a fraction of.
    pub fn swept_cells(&self) -> u64 {
        self.swept
    }

    /// Leaf cells that were redone at first order.
    pub fn redone_cells(&self) -> u64 {
        self.redone
    }

    /// Leaf cells that are not finite or not positive.
    pub fn invalid_cells(&self) -> u64 {
        self.invalid
    }

    /// What the ladder did in a step of a state with `leaf_cells` leaf cells, which was retried `retries` times.
    pub fn ladder(&self, leaf_cells: f64, retries: u32) -> Ladder {
        Ladder {
            negative_fraction: self.cold.iter().map(|[_, negative]| negative).sum::<u64>() as f64 / leaf_cells,
            redone_cells: self.redone,
            redone_faces: self.redone_faces,
            first_redone: self.first_redone.map(|first| first.place),
            retries,
            floored_cells: self.floored,
            floored_in_sweeps: self.floored_in_sweeps,
            first_floored: self.first_floored.map(|first| first.place),
            courant_number: self.courant_number,
        }
    }

    /// The first cell that is not valid, else the first that was floored.
    pub fn first_bad(&self) -> Option<CellPlace> {
        self.first_invalid.or(self.first_floored).map(|first| first.place)
    }

    /// Adds up the diagnostics of all ranks, once each has collected its own: collective.
    pub fn reduce(&mut self, communicator: &Communicator) {
        if communicator.size() == 1 {
            return;
        }
        let exact = [&mut self.gravity_work, &mut self.entropy_energy, &mut self.floor_energy, &mut self.floor_mass];
        let sources = self.sources.iter_mut().map(|(_, energy)| energy);
        ExactSum::reduce(exact.into_iter().chain([&mut self.potential]).chain(sources), communicator);
        let cold = self.cold.iter_mut().flatten();
        let counts = [&mut self.redone, &mut self.redone_faces, &mut self.swept, &mut self.floored];
        let counts = counts.into_iter().chain([&mut self.floored_in_sweeps, &mut self.invalid, &mut self.cell_updates]);
        let mut counts: Vec<&mut u64> = counts.chain(cold).collect();
        let mut sums: Vec<u64> = counts.iter().map(|count| **count).collect();
        communicator.sum(&mut sums);
        counts.iter_mut().zip(sums).for_each(|(count, sum)| **count = sum);
        self.courant_number = communicator.max(self.courant_number);

        let firsts = [self.first_redone, self.first_floored, self.first_invalid];
        // bits, as an acceleration may be infinite
        let bits = |a: Acceleration| (a.time.to_bits(), a.level, a.cell, a.acceleration.to_bits());
        let own = (firsts, self.acceleration.map(bits), self.accelerated);
        type OfRank = ([Option<First>; 3], Option<(u64, u8, [usize; 3], u64)>, u64);
        let all: Vec<OfRank> = communicator.gather_all_of(&own);
        let first = |n: usize| all.iter().filter_map(|rank| rank.0[n]).min_by_key(First::order);
        [self.first_redone, self.first_floored, self.first_invalid] = [first(0), first(1), first(2)];
        let strongest = |a: &&(Acceleration, u64), b: &&(Acceleration, u64)| {
            let order = |(acceleration, operation): &(Acceleration, u64)| {
                let place = CellPlace { level: acceleration.level, cell: acceleration.cell };
                First { operation: *operation, place }.order()
            };
            a.0.time.total_cmp(&b.0.time).then_with(|| order(a).cmp(&order(b)))
        };
        let acceleration = |rank: &OfRank| {
            let (time, level, cell, acceleration) = rank.1?;
            let [time, acceleration] = [time, acceleration].map(f64::from_bits);
            Some((Acceleration { time, level, cell, acceleration }, rank.2))
        };
        let accelerations: Vec<_> = all.iter().filter_map(acceleration).collect();
        self.acceleration = accelerations.iter().min_by(strongest).map(|found| found.0);
        if !self.sources.is_empty() {
            let all = communicator.gather_all_of(&self.source_limit).into_iter().flatten();
            let order = |(limit, operation): &(SourceLimit, u64)| {
                First { operation: *operation, place: CellPlace { level: limit.level, cell: limit.cell } }.order()
            };
            let shortest = all.min_by(|a, b| a.0.time.total_cmp(&b.0.time).then_with(|| order(a).cmp(&order(b))));
            self.source_limit = shortest;
        }
    }
}

impl First {
    /// Of two, the one that comes first in a run of one rank is smaller.
    fn order(&self) -> (u64, Key) {
        (self.operation, self.place.group())
    }
}
