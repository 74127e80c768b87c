//! Bookkeeping of a step: what its operations reported, summed in an order that does not matter.

use crate::diagnosis::Diagnosis;
use crate::exact_sum::ExactSum;
use crate::records::{CellPlace, Ladder, Ledger, Sums, Timing};
use crate::state::State;
use comove_kernels::gravity_kick::{KickReport, Peak};
use comove_kernels::layout::{GROUP_CELLS, OCTANTS};
use comove_kernels::totals::{GroupTotals, totals};
use comove_kernels::{Eos, GroupReport, Real};
use serde::{Deserialize, Serialize};

/// The strongest acceleration of a kick relative to the cell width: it limits the next step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Acceleration {
    /// √(h/g), code time; infinite where nothing accelerates (stored as 0).
    pub time: f64,
    /// Level of the cell.
    pub level: u8,
    /// The cell on the level's lattice.
    pub cell: [usize; 3],
    /// |g|, code units.
    pub acceleration: f64,
}

/// A cell: level, group in the level, offset in the group.
type Offset = (usize, usize, usize);

/// What the operations of one step reported.
#[derive(Clone, Debug, Default)]
pub struct Book {
    gravity_work: ExactSum,
    entropy_energy: ExactSum,
    floor_energy: ExactSum,
    floor_mass: ExactSum,
    redone: u64,
    redone_faces: u64,
    first_redone: Option<Offset>,
    /// Leaf cells that sweeps advanced, sweep by sweep.
    swept: u64,
    floored: u64,
    floored_in_sweeps: u64,
    first_floored: Option<Offset>,
    cold: u64,
    negative: u64,
    invalid: u64,
    first_invalid: Option<Offset>,
    /// Of the step's kick.
    pub acceleration: Option<Acceleration>,
    /// Seconds by part.
    pub timing: Timing,
}

impl Book {
    /// Adds the reports of one operation on one level.
    pub fn add_reports<T: Real>(&mut self, state: &State<T>, level: usize, reports: &[GroupReport]) {
        let volume = state.cell_width(level).powi(3);
        for (group, report) in reports.iter().enumerate() {
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
                    *place = Some((level, group, first as usize));
                }
            }
        }
    }

    /// Counts the leaf cells of a sweep of a level, and those that it floored.
    pub fn count_sweep<T: Real>(&mut self, state: &State<T>, level: usize, reports: &[GroupReport]) {
        let patches: u32 = state.tables[level].leaves.iter().map(|leaves| leaves.count_ones()).sum();
        self.swept += u64::from(patches) * (GROUP_CELLS / OCTANTS) as u64;
        self.floored_in_sweeps += reports.iter().map(|r| u64::from(r.floored)).sum::<u64>();
    }

    /// Begins a part of a step: cold cells are counted in the last.
    pub fn begin_part(&mut self) {
        (self.cold, self.negative) = (0, 0);
    }

    /// Counts the leaf cells whose pressure came from the entropy scalar, and those whose energy alone gave none.
    pub fn count_cold(&mut self, reports: &[GroupReport]) {
        self.cold += reports.iter().map(|r| u64::from(r.cold)).sum::<u64>();
        self.negative += reports.iter().map(|r| u64::from(r.negative)).sum::<u64>();
    }

    /// Adds what a kick did on one level.
    pub fn add_kicks<T: Real>(&mut self, state: &State<T>, level: usize, kicks: &[KickReport]) {
        let width = state.cell_width(level);
        for (group, kick) in kicks.iter().enumerate() {
            self.gravity_work.add(kick.work * width.powi(3));
            self.see_acceleration(state, level, group, kick.peak);
        }
    }

    /// Keeps the shortest √(h/g).
    pub fn see_acceleration<T: Real>(&mut self, state: &State<T>, level: usize, group: usize, peak: Peak) {
        let time = (state.cell_width(level) / peak.acceleration).sqrt();
        if time < self.acceleration.map_or(f64::INFINITY, |a| a.time) {
            let cell = state.locate(level, group, peak.cell as usize);
            self.acceleration = Some(Acceleration { time, level: level as u8, cell, acceleration: peak.acceleration });
        }
    }

    /// Writes the step into the run's ledger.
    pub fn close(&self, ledger: &mut Ledger) {
        ledger.gravity_work += self.gravity_work.value();
        ledger.entropy_energy += self.entropy_energy.value();
        ledger.floor_energy += self.floor_energy.value();
        ledger.floor_mass += self.floor_mass.value();
        ledger.redone_cells += self.redone;
        ledger.floored_cells += self.floored;
    }

    /// Leaf cells whose pressure came from the entropy scalar in the last sweep.
    pub fn cold_cells(&self) -> u64 {
        self.cold
    }

    /// Leaf cells raised to a floor, operation by operation.
    pub fn floored_cells(&self) -> u64 {
        self.floored
    }

    /// Leaf cells that sweeps advanced, sweep by sweep: what a floor budget is a fraction of.
    pub fn swept_cells(&self) -> u64 {
        self.swept
    }

    /// Leaf cells that are not finite or not positive.
    pub fn invalid_cells(&self) -> u64 {
        self.invalid
    }

    /// What the ladder did in a step of a state with `leaf_cells` leaf cells, which was taken again `retries` times.
    pub fn ladder<T: Real>(&self, state: &State<T>, leaf_cells: f64, retries: u32) -> Ladder {
        let place = |offset: Option<Offset>| {
            offset.map(|(level, group, cell)| CellPlace { level: level as u8, cell: state.locate(level, group, cell) })
        };
        Ladder {
            negative_fraction: self.negative as f64 / leaf_cells,
            redone_cells: self.redone,
            redone_faces: self.redone_faces,
            first_redone: place(self.first_redone),
            retries,
            floored_cells: self.floored,
            floored_in_sweeps: self.floored_in_sweeps,
            first_floored: place(self.first_floored),
        }
    }

    /// The first cell that is not valid, else the first that was floored, with its neighbours.
    pub fn diagnosis<T: Real>(&self, state: &State<T>, eos: &Eos<T>) -> Option<Diagnosis> {
        let (level, group, cell) = self.first_invalid.or(self.first_floored)?;
        Some(Diagnosis::of(state, eos, level, group, cell))
    }
}

/// Conserved sums and density range over the leaves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LeafSums {
    /// Mass, momentum, energies.
    pub sums: Sums,
    /// Smallest and largest density.
    pub density: [f64; 2],
}

/// Sums over the leaves of all levels, the same bits in any order of groups.
pub fn leaf_sums<T: Real>(state: &State<T>) -> LeafSums {
    let mut exact: [ExactSum; 6] = Default::default();
    let mut density = [f64::INFINITY, 0.0f64];
    for level in 0..state.level_count() {
        let volume = state.cell_width(level).powi(3);
        let mut groups = vec![GroupTotals::default(); state.tables[level].len()];
        totals(&state.device, &state.tables[level], &state.fluid, &mut groups);
        for g in groups.iter().filter(|g| g.cells > 0) {
            let [x, y, z] = g.momentum;
            for (sum, value) in exact.iter_mut().zip([g.mass, x, y, z, g.kinetic, g.energy]) {
                sum.add(value * volume);
            }
            density = [density[0].min(g.density_min), density[1].max(g.density_max)];
        }
    }
    let [mass, x, y, z, kinetic, energy] = exact.map(ExactSum::value);
    LeafSums { sums: Sums { mass, momentum: [x, y, z], kinetic, energy }, density }
}
