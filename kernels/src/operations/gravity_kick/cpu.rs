//! The kick on the host processor: one task a group, row by row.

use super::acceleration::{Row, acceleration};
use super::{KickReport, Peak};
use crate::device::buffer::SlotWriter;
use crate::device::isa::{Isa, Kernel, compiled_here};
use crate::layout::{DENSITY, ENERGY, FIELDS, GROUP, GROUP_CELLS, GROUP_VALUES, MOMENTUM, cell};
use crate::level::level_topology::{LevelTopology, NONE};
use crate::level::report::GroupReport;
use crate::operations::potential_ghosts::{GHOST_CELLS, GhostOrigin, TimedPotential, gather};
use crate::operations::synchronised_row::{Rows, SynchronisedRow, leaf_offsets};
use crate::point::dual_energy::UNSEEN;
use crate::point::eos::Eos;
use crate::real::Real;
use rayon::prelude::*;

pub(super) fn gravity_kick<T: Real>(
    isa: Isa,
    tables: &LevelTopology,
    potential: &[T],
    coarse: Option<&TimedPotential<T>>,
    fluid: &mut [T],
    h: f64,
    dt: f64,
    eos: &Eos<T>,
) -> Vec<KickReport> {
    let fluid = SlotWriter::new(fluid, GROUP_VALUES);
    let kick = |g: usize| {
        // SAFETY: the slots of a level are distinct, and each is visited once.
        let fluid = unsafe { fluid.slot(tables.slots[g]) };
        let field = Field { tables, g, potential, coarse, h };
        isa.run(GroupKick { field, fluid, dt, eos })
    };
    (0..tables.len()).into_par_iter().map(kick).collect()
}

pub(super) fn max_acceleration<T: Real>(
    isa: Isa,
    tables: &LevelTopology,
    potential: &[T],
    coarse: Option<&TimedPotential<T>>,
    h: f64,
) -> Vec<Peak> {
    (0..tables.len()).into_par_iter().map(|g| isa.run(Field { tables, g, potential, coarse, h })).collect()
}

/// The gravitational field of one group; as a kernel of its own, where it is largest.
struct Field<'a, T> {
    tables: &'a LevelTopology,
    g: usize,
    /// The pool, `[slot, 16, 16, 16]`.
    potential: &'a [T],
    coarse: Option<&'a TimedPotential<'a, T>>,
    h: f64,
}

impl<T: Real> Kernel for Field<'_, T> {
    type Output = Peak;

    #[inline(always)]
    fn run(self) -> Peak {
        let (potential, ghosts, scale) = self.load();
        let mut peak = RunningPeak::new();
        for row in 0..GROUP * GROUP {
            let (j, k) = (row % GROUP, row / GROUP);
            let g = acceleration(potential, &ghosts, j, k, scale);
            peak.raise(&g, &leaf_offsets(self.tables.leaves[self.g], j, k), row);
        }
        peak.finish()
    }
}

impl<T: Real> Field<'_, T> {
    /// The group's potential, its ghost values and the factor of a difference.
    #[inline(always)]
    fn load(&self) -> (&[T], [T; GHOST_CELLS], T) {
        let mut ghosts = [T::zero(); GHOST_CELLS];
        gather(self.tables, self.g, GhostOrigin::Sibling, self.potential, self.coarse, &mut ghosts);
        let potential = &self.potential[self.tables.slots[self.g] as usize * GROUP_CELLS..][..GROUP_CELLS];
        (potential, ghosts, T::from_f64(-0.5 / self.h))
    }
}

/// The kick of one group.
struct GroupKick<'a, T> {
    field: Field<'a, T>,
    /// `[6, 16, 16, 16]`
    fluid: &'a mut [T],
    dt: f64,
    eos: &'a Eos<T>,
}

compiled_here!(GroupKick<'static, f32>, GroupKick<'static, f64>);

impl<T: Real> Kernel for GroupKick<'_, T> {
    type Output = KickReport;

    #[inline(always)]
    fn run(mut self) -> Self::Output {
        let eos = *self.eos;
        let monatomic = T::from_f64(5.0 / 3.0);
        // a constant exponent for the common gas, as in the sweep
        if eos.gamma == monatomic { self.kick(&Eos { gamma: monatomic, ..eos }) } else { self.kick(&eos) }
    }
}

impl<T: Real> GroupKick<'_, T> {
    #[inline(always)]
    fn kick(&mut self, eos: &Eos<T>) -> KickReport {
        let (potential, ghosts, scale) = self.field.load();
        let leaves = self.field.tables.leaves[self.field.g];
        let mut report = GroupReport::default();
        let mut peak = RunningPeak::new();
        let mut work = [0.0; GROUP];
        for row in 0..GROUP * GROUP {
            let (j, k) = (row % GROUP, row / GROUP);
            let g = acceleration(potential, &ghosts, j, k, scale);
            let first = cell(0, j, k);
            let mut before = [[T::zero(); GROUP]; FIELDS];
            for f in 0..FIELDS {
                before[f].copy_from_slice(&self.fluid[f * GROUP_CELLS + first..][..GROUP]);
            }
            let kicked = kick_row(&before, &g, T::from_f64(self.dt));
            let leaf = leaf_offsets(leaves, j, k);
            add_work(&before, &kicked, &g, self.dt, &leaf, &mut work);
            peak.raise(&g, &leaf, row);
            let row = SynchronisedRow::new(kicked, &[T::from_f64(UNSEEN); GROUP], eos);
            for f in 0..FIELDS {
                self.fluid[f * GROUP_CELLS + first..][..GROUP].copy_from_slice(&row.after[f]);
            }
            row.book(&leaf, &mut report);
        }
        KickReport { report, work: work.iter().sum(), peak: peak.finish() }
    }
}

/// m' = m + ρ g dt; E' = E + Σ (m' + m)(m' − m)/(2ρ), the exact change of ½ρv².
#[inline(always)]
fn kick_row<T: Real>(before: &Rows<T, GROUP>, g: &[Row<T>; 3], dt: T) -> Rows<T, GROUP> {
    let mut after = *before;
    for i in 0..GROUP {
        let density = before[DENSITY][i];
        let mut twice_kinetic = T::zero();
        for axis in 0..3 {
            let old = before[MOMENTUM + axis][i];
            let new = old + density * g[axis][i] * dt;
            after[MOMENTUM + axis][i] = new;
            twice_kinetic += (new + old) * (new - old);
        }
        after[ENERGY][i] += twice_kinetic / (density + density);
    }
    after
}

/// Adds ½(m + m')·g·dt of a row's leaf cells, column by column.
#[inline(always)]
fn add_work<T: Real>(
    before: &Rows<T, GROUP>,
    after: &Rows<T, GROUP>,
    g: &[Row<T>; 3],
    dt: f64,
    leaf: &[u32; GROUP],
    work: &mut [f64; GROUP],
) {
    for i in 0..GROUP {
        let mut power = 0.0;
        for axis in 0..3 {
            power += (before[MOMENTUM + axis][i].as_f64() + after[MOMENTUM + axis][i].as_f64()) * g[axis][i].as_f64();
        }
        work[i] += if leaf[i] != NONE { 0.5 * dt * power } else { 0.0 };
    }
}

/// The largest |g|² of each column of rows so far, and the first row that has it.
struct RunningPeak<T> {
    square: Row<T>,
    row: [u32; GROUP],
}

impl<T: Real> RunningPeak<T> {
    #[inline(always)]
    fn new() -> Self {
        Self { square: [T::zero(); GROUP], row: [0; GROUP] }
    }

    /// Takes the leaf cells of a row into account.
    #[inline(always)]
    fn raise(&mut self, g: &[Row<T>; 3], leaf: &[u32; GROUP], row: usize) {
        for i in 0..GROUP {
            let square = g[0][i] * g[0][i] + g[1][i] * g[1][i] + g[2][i] * g[2][i];
            let larger = (leaf[i] != NONE) & (square > self.square[i]);
            self.square[i] = if larger { square } else { self.square[i] };
            self.row[i] = if larger { row as u32 } else { self.row[i] };
        }
    }

    /// The largest of all; the first of equal ones in layout order.
    #[inline(always)]
    fn finish(&self) -> Peak {
        let mut largest = T::zero();
        let mut cell = 0;
        for i in 0..GROUP {
            let here = self.row[i] * GROUP as u32 + i as u32;
            let first_of_equals = self.square[i] == largest && largest > T::zero() && here < cell;
            if self.square[i] > largest || first_of_equals {
                (largest, cell) = (self.square[i], here);
            }
        }
        Peak { acceleration: largest.as_f64().sqrt(), cell }
    }
}
