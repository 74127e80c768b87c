//! The kick on the host processor: one task a group, row by row.

use super::acceleration::{Row, acceleration, leaf_halves};
use super::{KickReport, Peak};
use crate::buffer::SlotWriter;
use crate::by_isa::by_isa;
use crate::layout::{DENSITY, ENERGY, FIELDS, GROUP, GROUP_CELLS, GROUP_VALUES, MOMENTUM, PATCH, cell};
use crate::point::dual_energy::{Cell, Synchronised, is_valid, synchronise};
use crate::point::eos::Eos;
use crate::potential_ghosts::{GHOST_CELLS, GhostOrigin, gather};
use crate::real::Real;
use crate::report::GroupReport;
use crate::tables::LevelTables;
use rayon::prelude::*;

pub(super) fn gravity_kick<T: Real>(
    tables: &LevelTables,
    potential: &[T],
    fluid: &mut [T],
    h: f64,
    dt: f64,
    eos: &Eos<T>,
    reports: &mut [GroupReport],
    kicks: &mut [KickReport],
) {
    let fluid = SlotWriter::new(fluid, GROUP_VALUES);
    reports.par_iter_mut().zip(kicks).enumerate().for_each(|(g, (report, kick))| {
        let mut ghosts = [T::zero(); GHOST_CELLS];
        gather(tables, g, GhostOrigin::Sibling, potential, &mut ghosts);
        // SAFETY: the slots of a level are distinct, and each is visited once.
        let fluid = unsafe { fluid.slot(tables.slots[g]) };
        (*report, *kick) = kick_group(own(tables, g, potential), &ghosts, tables.leaves[g], fluid, h, dt, eos);
    });
}

pub(super) fn max_acceleration<T: Real>(tables: &LevelTables, potential: &[T], h: f64, peaks: &mut [Peak]) {
    peaks.par_iter_mut().enumerate().for_each(|(g, peak)| {
        let mut ghosts = [T::zero(); GHOST_CELLS];
        gather(tables, g, GhostOrigin::Sibling, potential, &mut ghosts);
        *peak = peak_of_group(own(tables, g, potential), &ghosts, tables.leaves[g], h);
    });
}

/// The potential of a group.
fn own<'a, T>(tables: &LevelTables, g: usize, potential: &'a [T]) -> &'a [T] {
    &potential[tables.slots[g] as usize * GROUP_CELLS..][..GROUP_CELLS]
}

by_isa! {
    fn kick_group<T: Real>(
        potential: &[T], ghosts: &[T], leaves: u8, fluid: &mut [T], h: f64, dt: f64, eos: &Eos<T>,
    ) -> (GroupReport, KickReport) = kick_rows
}

by_isa! {
    fn peak_of_group<T: Real>(potential: &[T], ghosts: &[T], leaves: u8, h: f64) -> Peak = peak_of_rows
}

#[inline(always)]
fn kick_rows<T: Real, const LANES: usize>(
    potential: &[T],
    ghosts: &[T],
    leaves: u8,
    fluid: &mut [T],
    h: f64,
    dt: f64,
    eos: &Eos<T>,
) -> (GroupReport, KickReport) {
    let scale = T::of(-0.5 / h);
    let mut report = GroupReport::default();
    let mut peak = Peak::default();
    let mut work = [0.0; GROUP];
    for (k, j) in rows() {
        let g = acceleration(potential, ghosts, j, k, scale);
        let first = cell(0, j, k);
        let mut before = [[T::zero(); GROUP]; FIELDS];
        for field in 0..FIELDS {
            before[field].copy_from_slice(&fluid[field * GROUP_CELLS + first..][..GROUP]);
        }
        let kicked = kick_row(&before, &g, T::of(dt));
        let leaf = leaf_halves(leaves, j, k);
        let after = synchronise_row(&kicked, leaf, eos, first, &mut report);
        for field in 0..FIELDS {
            fluid[field * GROUP_CELLS + first..][..GROUP].copy_from_slice(&after[field]);
        }
        add_work(&before, &kicked, &g, dt, leaf, &mut work);
        raise_peak(&g, leaf, first, &mut peak);
    }
    (report, KickReport { work: work.iter().sum(), peak })
}

#[inline(always)]
fn peak_of_rows<T: Real, const LANES: usize>(potential: &[T], ghosts: &[T], leaves: u8, h: f64) -> Peak {
    let mut peak = Peak::default();
    for (k, j) in rows() {
        let g = acceleration(potential, ghosts, j, k, T::of(-0.5 / h));
        raise_peak(&g, leaf_halves(leaves, j, k), cell(0, j, k), &mut peak);
    }
    peak
}

/// The rows of a group as (k, j).
#[inline(always)]
fn rows() -> impl Iterator<Item = (usize, usize)> {
    (0..GROUP).flat_map(|k| (0..GROUP).map(move |j| (k, j)))
}

/// m' = m + ρ g dt; E' = E + Σ (m' + m)(m' − m)/(2ρ), the exact change of ½ρv².
#[inline(always)]
fn kick_row<T: Real>(before: &[Row<T>; FIELDS], g: &[Row<T>; 3], dt: T) -> [Row<T>; FIELDS] {
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

/// Makes energy and entropy scalar agree and books what that did to leaf cells.
#[inline(always)]
fn synchronise_row<T: Real>(
    kicked: &[Row<T>; FIELDS],
    leaf: [bool; 2],
    eos: &Eos<T>,
    first: usize,
    report: &mut GroupReport,
) -> [Row<T>; FIELDS] {
    let mut after = *kicked;
    let mut what = [(false, false, true); GROUP];
    for i in 0..GROUP {
        let u: Cell<T> = std::array::from_fn(|field| kicked[field][i]);
        let Synchronised { cell, floored, cold } = synchronise(&u, eos);
        for field in 0..FIELDS {
            after[field][i] = cell[field];
        }
        what[i] = (floored, cold, is_valid(&cell));
    }
    for i in (0..GROUP).filter(|i| leaf[i / PATCH]) {
        let (floored, cold, valid) = what[i];
        let added = after[ENERGY][i].wide() - kicked[ENERGY][i].wide();
        if floored {
            report.floored += 1;
            report.floor_energy += added;
            report.floor_mass += after[DENSITY][i].wide() - kicked[DENSITY][i].wide();
        } else {
            report.energy_added += added;
        }
        report.cold += u32::from(cold);
        if !valid {
            if report.invalid == 0 {
                report.first_invalid = (first + i) as u32;
            }
            report.invalid += 1;
        }
    }
    after
}

/// Adds ½(m + m')·g·dt of a row's leaf cells, column by column.
#[inline(always)]
fn add_work<T: Real>(
    before: &[Row<T>; FIELDS],
    after: &[Row<T>; FIELDS],
    g: &[Row<T>; 3],
    dt: f64,
    leaf: [bool; 2],
    work: &mut [f64; GROUP],
) {
    for i in 0..GROUP {
        let mut power = 0.0;
        for axis in 0..3 {
            power += (before[MOMENTUM + axis][i].wide() + after[MOMENTUM + axis][i].wide()) * g[axis][i].wide();
        }
        work[i] += if leaf[i / PATCH] { 0.5 * dt * power } else { 0.0 };
    }
}

/// Keeps the largest |g| of leaf cells; the first of equal ones.
#[inline(always)]
fn raise_peak<T: Real>(g: &[Row<T>; 3], leaf: [bool; 2], first: usize, peak: &mut Peak) {
    let square: Row<T> = std::array::from_fn(|i| {
        let sum = g[0][i] * g[0][i] + g[1][i] * g[1][i] + g[2][i] * g[2][i];
        if leaf[i / PATCH] { sum } else { T::zero() }
    });
    let largest = square.iter().fold(T::zero(), |a, &b| if b > a { b } else { a });
    if largest.wide().sqrt() > peak.acceleration {
        let i = square.iter().position(|&s| s == largest).expect("the largest is one of them");
        *peak = Peak { acceleration: largest.wide().sqrt(), cell: (first + i) as u32 };
    }
}
