//! The sweep of one group on the processor, in parallel over groups.
//!
//! A block of 22³ cells is gathered once and swept in place. A direction covers the ghost cells of the axes that are
//! still to be swept and only the group's own cells on the others. A redo does the same with some faces at first order
//! ([`crate::level::troubled_cells`]).

use super::sheet::{Advance, REACH, Sheet};
use super::{SweepParameters, SweepTargets};
use crate::device::buffer::SlotWriter;
use crate::device::isa::{Isa, Kernel, compiled_here};
use crate::device::scratch::PerThread;
use crate::layout::{
    DENSITY, ENTROPY, FACE_CELLS, FIELDS, FLUX_PLANE_VALUES, FLUX_PLANES, FLUX_PLANES_PER_AXIS, GROUP, GROUP_CELLS,
    GROUP_VALUES, HYDRO_BLOCK, HYDRO_GHOSTS, INTERIOR, MOMENTUM, PATCH, cell,
};
use crate::level::ghosts::{self, BLOCK_CELLS, BLOCK_VALUES, CoarseCells, EarlierFluid, block_cell};
use crate::level::level_topology::{LevelTopology, NONE};
use crate::level::report::GroupReport;
use crate::level::troubled_cells::{FirstOrderCells, MARK_ROWS, reach};
use crate::operations::scalars::ScalarSweep;
use crate::operations::scalars::sweep::{GroupScalars, ScalarScratch};
use crate::operations::synchronised_row::{SynchronisedRow, leaf_offsets};
use crate::point::dual_energy::{UNSEEN, keeps_adiabat, on_adiabat};
use crate::point::eos::Eos;
use crate::real::Real;
use crate::scheme::Scheme;
use rayon::prelude::*;
use std::ops::Range;

const _: () = assert!(REACH == HYDRO_GHOSTS, "the block must be as deep as the schemes reach");
const _: () = assert!(Scheme::Ppm.ghost_zones() <= REACH && Scheme::Plm.ghost_zones() <= REACH);
const _: () = assert!(Scheme::RelaxingTvd.ghost_zones() <= REACH && Scheme::Hll.ghost_zones() <= REACH);

pub(super) fn hydro_sweep<T: Real>(
    isa: Isa,
    tables: &LevelTopology,
    flux_slots: &[u32],
    fluid: &[T],
    earlier: Option<&EarlierFluid<T>>,
    out: &mut [T],
    fluxes: &mut [T],
    (known, found): (&[u16], &mut [u16]),
    scalars: Option<&mut ScalarSweep<'_, T>>,
    which: SweepTargets,
    parameters: &SweepParameters<T>,
) -> Vec<GroupReport> {
    let scalars = scalars.map(|scalars| {
        let ScalarSweep { count, before, earlier, after, fluxes } = scalars;
        let after = SlotWriter::new(after.host_mut(), *count * GROUP_CELLS);
        let fluxes = SlotWriter::new(fluxes.host_mut(), *count * FACE_CELLS);
        (*count, before.host(), earlier.host(), after, fluxes)
    });
    let out = SlotWriter::new(out, GROUP_VALUES);
    let fluxes = SlotWriter::new(fluxes, FLUX_PLANE_VALUES);
    let found = SlotWriter::new(found, MARK_ROWS);
    let scratch = PerThread::new(Scratch::new);
    let sweep = |g: usize| {
        // SAFETY: the slots of a level are distinct, no group is listed twice, and the planes are distinct (checked by the
        // caller).
        let out = unsafe { out.slot(tables.slots[g]) };
        let planes: [Option<&mut [T]>; FLUX_PLANES] = std::array::from_fn(|p| match flux_slots[g * FLUX_PLANES + p] {
            NONE => None,
            // SAFETY: as above.
            plane => Some(unsafe { fluxes.slot(plane) }),
        });
        // SAFETY: as above.
        let found = unsafe { found.slot(tables.slots[g]) };
        let scalars = scalars.as_ref().map(|(count, before, earlier, after, fluxes)| GroupScalars {
            count: *count,
            before,
            earlier,
            // SAFETY: as above.
            out: unsafe { after.slot(tables.slots[g]) },
            planes: std::array::from_fn(|p| match flux_slots[g * FLUX_PLANES + p] {
                NONE => None,
                // SAFETY: as above.
                plane => Some(unsafe { fluxes.slot(plane) }),
            }),
        });
        let known = matches!(which, SweepTargets::Redo(_)).then_some(known);
        scratch.with(|scratch| {
            isa.run(GroupSweep {
                isa,
                tables,
                g,
                fluid,
                earlier,
                scratch,
                out,
                planes,
                scalars,
                known,
                found,
                parameters,
            })
        })
    };
    tables.places(which.list()).map(sweep).collect()
}

/// A thread's work space.
struct Scratch<T> {
    coarse: CoarseCells<T>,
    block: Box<[T; BLOCK_VALUES]>,
    /// What neighbours say about the energy of each cell of the block ([`mod@crate::point::dual_energy`]).
    shock_indicator: Box<[T; BLOCK_CELLS]>,
    sheet: Box<Sheet<T>>,
    first_order: Box<FirstOrderCells>,
    /// Faces of the present sheet that are swept at first order.
    faces: Vec<usize>,
    scalars: ScalarScratch<T>,
}

impl<T: Real> Scratch<T> {
    fn new() -> Self {
        let block = vec![T::zero(); BLOCK_VALUES].into_boxed_slice();
        Self {
            coarse: CoarseCells::new(),
            block: block.try_into().expect("the length is the array's"),
            shock_indicator: vec![T::zero(); BLOCK_CELLS]
                .into_boxed_slice()
                .try_into()
                .expect("the length is the array's"),
            sheet: Sheet::new(),
            first_order: FirstOrderCells::new(),
            faces: Vec::new(),
            scalars: ScalarScratch::default(),
        }
    }
}

/// The sweep of one group.
struct GroupSweep<'a, T> {
    isa: Isa,
    tables: &'a LevelTopology,
    g: usize,
    /// The pool, `[slot, 6, 16, 16, 16]`.
    fluid: &'a [T],
    earlier: Option<&'a EarlierFluid<'a, T>>,
    scratch: &'a mut Scratch<T>,
    /// The group's values afterwards, `[6, 16, 16, 16]`.
    out: &'a mut [T],
    planes: [Option<&'a mut [T]>; FLUX_PLANES],
    scalars: Option<GroupScalars<'a, T>>,
    /// For a redo: the marks of the pool, `[slot, 16, 16]`.
    known: Option<&'a [u16]>,
    /// The group's marks afterwards, `[16, 16]`.
    found: &'a mut [u16],
    parameters: &'a SweepParameters<T>,
}

compiled_here!(GroupSweep<'static, f32>, GroupSweep<'static, f64>);

impl<T: Real> Kernel for GroupSweep<'_, T> {
    type Output = GroupReport;

    #[inline(always)]
    fn run(mut self) -> GroupReport {
        self.gather();
        self.sweep();
        let eos = self.parameters.eos;
        let monatomic = T::from_f64(5.0 / 3.0);
        // the compiler sees a constant exponent in the one copy and leaves out the general power
        let mut report =
            if eos.gamma == monatomic { self.finish(&Eos { gamma: monatomic, ..eos }) } else { self.finish(&eos) };
        self.report_marks(&mut report);
        report
    }
}

impl<T: Real> GroupSweep<'_, T> {
    /// The block of cells, and which faces a redo sweeps at first order.
    #[inline(always)]
    fn gather(&mut self) {
        let Scratch { coarse, block, .. } = &mut *self.scratch;
        let eos = self.parameters.eos;
        let monatomic = T::from_f64(5.0 / 3.0);
        // a constant exponent for the common gas, as in the passes
        if eos.gamma == monatomic {
            let eos = Eos { gamma: monatomic, ..eos };
            ghosts::gather(self.tables, self.g, self.fluid, self.earlier, &eos, coarse, block);
        } else {
            ghosts::gather(self.tables, self.g, self.fluid, self.earlier, &eos, coarse, block);
        }
        self.scratch.shock_indicator.fill(T::from_f64(UNSEEN));
        self.scratch.faces.clear();
        if self.scalars.is_some() {
            let density = &self.scratch.block[block_cell(DENSITY, 0, 0, 0)..][..BLOCK_CELLS];
            self.scratch.scalars.begin(density);
        }
        if let Some(known) = self.known {
            self.scratch.first_order.gather(self.tables, self.g, known, self.parameters.axes);
        }
    }

    /// The three passes.
    #[inline(always)]
    fn sweep(&mut self) {
        // axes that are still to be swept need their ghost cells along the others
        let mut ranges = [0..HYDRO_BLOCK, 0..HYDRO_BLOCK, 0..HYDRO_BLOCK];
        for (pass, axis) in self.parameters.axes.into_iter().enumerate() {
            ranges[axis] = INTERIOR;
            let [x, y, z] = ranges.clone();
            match (axis, if axis == 0 { y.len() } else { x.len() }) {
                (0, GROUP) => self.sweep_rows::<8>(pass, y, z),
                (0, _) => self.sweep_rows::<11>(pass, y, z),
                (1, GROUP) => self.sweep_columns::<8>(pass, 1, x, z),
                (1, _) => self.sweep_columns::<11>(pass, 1, x, z),
                (_, GROUP) => self.sweep_columns::<8>(pass, 2, x, y),
                _ => self.sweep_columns::<11>(pass, 2, x, y),
            }
        }
        if let Some(scalars) = &mut self.scalars {
            let SweepParameters { dt_over_dx, axes, .. } = *self.parameters;
            self.scratch.scalars.sweep(self.tables, self.g, self.fluid, self.earlier, dt_over_dx, axes, scalars);
        }
    }

    /// Sweeps along x, as the given `pass`: `R` rows at a time, which lie one behind the other in the block.
    #[inline(always)]
    fn sweep_rows<const R: usize>(&mut self, pass: usize, along_y: Range<usize>, along_z: Range<usize>) {
        let fields = momentum_first(0);
        for k in along_z {
            for j in along_y.clone().step_by(R) {
                let Scratch { block, shock_indicator, sheet, first_order, faces, scalars, .. } = &mut *self.scratch;
                for f in 0..FIELDS {
                    let rows = &block[block_cell(fields[f], 0, j, k)..][..R * HYDRO_BLOCK];
                    sheet.state[f][..R * HYDRO_BLOCK].copy_from_slice(rows);
                }
                let rows = &shock_indicator[block_cell(0, 0, j, k)..][..R * HYDRO_BLOCK];
                sheet.shock_indicator[..R * HYDRO_BLOCK].copy_from_slice(rows);
                if self.known.is_some() {
                    first_order.faces_of_rows::<R>(pass, j, k, faces);
                }
                self.isa.run(Advance::<T, 1> {
                    sheet,
                    cells: R * HYDRO_BLOCK,
                    parameters: self.parameters,
                    first_order: faces,
                });
                for f in 0..FIELDS {
                    for r in 0..R {
                        let new = &sheet.state[f][r * HYDRO_BLOCK + HYDRO_GHOSTS..][..GROUP];
                        block[block_cell(fields[f], HYDRO_GHOSTS, j + r, k)..][..GROUP].copy_from_slice(new);
                    }
                }
                for r in 0..R {
                    let new = &sheet.shock_indicator[r * HYDRO_BLOCK + HYDRO_GHOSTS..][..GROUP];
                    shock_indicator[block_cell(0, HYDRO_GHOSTS, j + r, k)..][..GROUP].copy_from_slice(new);
                }
                if self.scalars.is_some() {
                    for r in 0..R {
                        let flux = &sheet.flux[DENSITY][r * HYDRO_BLOCK + HYDRO_GHOSTS..][..=GROUP];
                        scalars.keep_mass_flux(pass, block_cell(0, HYDRO_GHOSTS, j + r, k), flux);
                    }
                }
                for r in (0..R).filter(|r| INTERIOR.contains(&(j + r))) {
                    let pencil = |face| r * HYDRO_BLOCK + face;
                    self.record(0, pencil, j + r, k);
                }
            }
        }
    }

    /// Sweeps along y or z, as the `pass`-th axis: `W` pencils side by side in x at a time.
    #[inline(always)]
    fn sweep_columns<const W: usize>(
        &mut self,
        pass: usize,
        axis: usize,
        along_x: Range<usize>,
        along_other: Range<usize>,
    ) {
        let fields = momentum_first(axis);
        for other in along_other {
            for i in along_x.clone().step_by(W) {
                let at = |field: usize, n: usize| match axis {
                    1 => block_cell(field, i, n, other),
                    _ => block_cell(field, i, other, n),
                };
                let Scratch { block, shock_indicator, sheet, first_order, faces, scalars, .. } = &mut *self.scratch;
                for f in 0..FIELDS {
                    for n in 0..HYDRO_BLOCK {
                        sheet.state[f][n * W..][..W].copy_from_slice(&block[at(fields[f], n)..][..W]);
                    }
                }
                for n in 0..HYDRO_BLOCK {
                    sheet.shock_indicator[n * W..][..W].copy_from_slice(&shock_indicator[at(0, n)..][..W]);
                }
                if self.known.is_some() {
                    first_order.faces_of_columns::<W>(pass, i, other, faces);
                }
                self.isa.run(Advance::<T, W> {
                    sheet,
                    cells: HYDRO_BLOCK * W,
                    parameters: self.parameters,
                    first_order: faces,
                });
                for f in 0..FIELDS {
                    for n in INTERIOR {
                        block[at(fields[f], n)..][..W].copy_from_slice(&sheet.state[f][n * W..][..W]);
                    }
                }
                for n in INTERIOR {
                    shock_indicator[at(0, n)..][..W].copy_from_slice(&sheet.shock_indicator[n * W..][..W]);
                }
                if self.scalars.is_some() {
                    for n in HYDRO_GHOSTS..=HYDRO_GHOSTS + GROUP {
                        scalars.keep_mass_flux(pass, at(0, n), &sheet.flux[DENSITY][n * W..][..W]);
                    }
                }
                for lane in (0..W).filter(|lane| INTERIOR.contains(&(i + lane))) {
                    self.record(axis, |face| face * W + lane, i + lane, other);
                }
            }
        }
    }

    /// Keeps the fluxes of one pencil through the planes that were asked for: the sheet's value at `pencil(face)`. The
    /// pencil stands at (a, b) of the block on the other two axes.
    #[inline(always)]
    fn record(&mut self, axis: usize, pencil: impl Fn(usize) -> usize, a: usize, b: usize) {
        if !INTERIOR.contains(&b) {
            return;
        }
        let fields = momentum_first(axis);
        let place = (b - HYDRO_GHOSTS) * GROUP + a - HYDRO_GHOSTS;
        for p in 0..FLUX_PLANES_PER_AXIS {
            if let Some(plane) = &mut self.planes[axis * FLUX_PLANES_PER_AXIS + p] {
                for f in 0..FIELDS {
                    let twice = self.scratch.sheet.flux[f][pencil(HYDRO_GHOSTS + p * PATCH)];
                    plane[fields[f] * FACE_CELLS + place] = T::from_f64(0.5) * twice;
                }
            }
        }
    }

    /// Synchronises the group's cells, writes them out, marks and reports on the leaves. Cells that keep their adiabat
    /// get the scalar of it first.
    #[inline(always)]
    fn finish(&mut self, eos: &Eos<T>) -> GroupReport {
        let mut report = GroupReport::default();
        self.found.fill(0);
        let block = &self.scratch.block;
        let before = &self.fluid[self.tables.slots[self.g] as usize * GROUP_VALUES..][..GROUP_VALUES];
        for k in 0..GROUP {
            for j in 0..GROUP {
                let mut cells = [[T::zero(); GROUP]; FIELDS];
                for f in 0..FIELDS {
                    let from = block_cell(f, HYDRO_GHOSTS, j + HYDRO_GHOSTS, k + HYDRO_GHOSTS);
                    cells[f].copy_from_slice(&block[from..from + GROUP]);
                }
                let first = cell(0, j, k);
                if cells[ENTROPY].iter().fold(false, |lacking, &entropy| lacking | (entropy <= T::zero())) {
                    keep_adiabats(before, &mut cells, first);
                }
                let mut shock_indicator = [T::zero(); GROUP];
                let from = block_cell(0, HYDRO_GHOSTS, j + HYDRO_GHOSTS, k + HYDRO_GHOSTS);
                shock_indicator.copy_from_slice(&self.scratch.shock_indicator[from..from + GROUP]);
                let row = SynchronisedRow::new(cells, &shock_indicator, eos);
                for f in 0..FIELDS {
                    self.out[f * GROUP_CELLS + first..][..GROUP].copy_from_slice(&row.after[f]);
                }
                let leaves = leaf_offsets(self.tables.leaves[self.g], j, k);
                if row.book(&leaves, &mut report) {
                    self.found[k * GROUP + j] = row.marks(&leaves);
                }
            }
        }
        report
    }

    /// Adds the marks that were known to those just found, and reports on both.
    #[inline(always)]
    fn report_marks(&mut self, report: &mut GroupReport) {
        if report.floored + report.invalid > 0 || self.known.is_some() {
            self.merge_marks(report);
        }
    }

    #[cold]
    fn merge_marks(&mut self, report: &mut GroupReport) {
        let mut new = [0; MARK_ROWS];
        new.copy_from_slice(self.found);
        if let Some(known) = self.known {
            let known = &known[self.tables.slots[self.g] as usize * MARK_ROWS..][..MARK_ROWS];
            for row in 0..MARK_ROWS {
                if known[row] != 0 && report.redone == 0 {
                    report.first_redone = (row * GROUP) as u32 + known[row].trailing_zeros();
                }
                report.redone += known[row].count_ones();
                new[row] &= !known[row];
                self.found[row] |= known[row];
            }
            report.redone_faces = self.scratch.first_order.face_count();
        }
        report.marked = new.iter().map(|row| row.count_ones()).sum();
        report.marks_reach = reach(&new);
    }
}

/// Gives the cells of a row that keep their adiabat its entropy scalar ([`keeps_adiabat`]).
///
/// * `before`: the group before the sweep, `[6, 16, 16, 16]`
/// * `first`: offset of the row's first cell in it
#[cold]
fn keep_adiabats<T: Real>(before: &[T], cells: &mut [[T; GROUP]; FIELDS], first: usize) {
    for i in 0..GROUP {
        if keeps_adiabat(&cells.map(|row| row[i])) {
            let [density, entropy] = [DENSITY, ENTROPY].map(|f| before[f * GROUP_CELLS + first + i]);
            cells[ENTROPY][i] = on_adiabat(entropy, density, cells[DENSITY][i]);
        }
    }
}

/// The fields in a sheet's order for a sweep along `axis`: the momentum along it comes first, the others follow
/// cyclically.
#[inline(always)]
const fn momentum_first(axis: usize) -> [usize; FIELDS] {
    [0, MOMENTUM + axis, MOMENTUM + (axis + 1) % 3, MOMENTUM + (axis + 2) % 3, 4, 5]
}
