//! Marks: the cells that a second-order sweep cannot advance, and the faces that are swept at first order for them.
//!
//! A cell is marked where the sweep leaves a leaf cell that a floor would have to repair or that is not finite. A redo
//! from the untouched state before the sweep takes the first-order flux through the faces of every marked cell, in all
//! three directional passes. That flux keeps density, energy less kinetic energy and entropy scalar positive in a cell
//! whose own and whose neighbours' values are positive as a pass begins. So the faces of cells beside a marked one are
//! marked too along the axes that are still to be swept: the pass along z marks the faces of the marked cells, the one
//! along y before it also those of their neighbours in z, the one along x those of their neighbours in y and z.
//!
//! Which flux a face takes depends on the marks around it alone, so two groups that share a face compute the same bits
//! and the redo conserves what the sweep conserves.
//!
//! Groups of other ranks are seen like any others: their marks are put into their slots here ([`TroubledCells::set_found`]) before
//! they are accepted.

#[cfg(feature = "cuda")]
mod cuda;
#[cfg(test)]
pub(crate) mod tests;

use crate::device::Device;
use crate::device::buffer::Buffer;
#[cfg(feature = "cuda")]
use crate::device::cuda::array::Pointer;
use crate::device::device_table::DeviceTable;
use crate::device::error::KernelError;
use crate::layout::{DIRECTIONS, GROUP, HYDRO_BLOCK, HYDRO_GHOSTS, direction, offset};
use crate::level::level_topology::{LevelTopology, NONE};
use crate::level::report::GroupReport;

/// Rows of a group: a row's 16 marks are the bits of one `u16`, cell i bit i.
pub const MARK_ROWS: usize = GROUP * GROUP;

/// How far a mark is seen: by one cell further than a sweep reaches, because neighbours of marked cells are swept at
/// first order too.
const DEPTH: usize = HYDRO_GHOSTS + 1;
/// A group with the marks around it, along one axis. A row is one `u32`.
const WIDTH: usize = GROUP + 2 * DEPTH;

/// The marks of all groups of a pool.
#[derive(Debug)]
pub struct TroubledCells {
    /// What a redo goes by, `[slots, 16, 16]`.
    known: Buffer<u16>,
    /// The same and what the last sweep or redo has found.
    found: Buffer<u16>,
}

impl TroubledCells {
    /// Room for the marks of `slots` groups.
    ///
    /// # Errors
    /// [`KernelError::OutOfMemory`].
    pub fn new(device: &Device, slots: usize) -> Result<Self, KernelError> {
        let room = || Buffer::zeros(device, slots * MARK_ROWS);
        Ok(Self { known: room()?, found: room()? })
    }

    /// Room for more slots; fewer are ignored.
    ///
    /// # Errors
    /// [`KernelError::OutOfMemory`].
    pub fn grow(&mut self, device: &Device, slots: usize) -> Result<(), KernelError> {
        self.known.grow(device, slots * MARK_ROWS)?;
        self.found.grow(device, slots * MARK_ROWS)
    }

    /// Slots that there is room for.
    pub fn slots(&self) -> usize {
        self.found.len() / MARK_ROWS
    }

    /// Bytes on the device.
    pub fn bytes(&self) -> usize {
        (self.known.len() + self.found.len()) * size_of::<u16>()
    }

    /// Bytes on the device of the marks of `slots` groups.
    pub fn bytes_for(slots: usize) -> usize {
        2 * slots * MARK_ROWS * size_of::<u16>()
    }

    /// Makes what has been found known to the next redo.
    pub fn accept(&mut self) {
        self.known.copy_from(&self.found);
    }

    /// What is found in these slots, on the host: `[slots, 16, 16]`.
    ///
    /// # Panics
    /// If a slot is beyond the pool.
    pub fn found_of(&self, device: &Device, slots: &DeviceTable<u32>) -> Vec<u16> {
        self.assert_holds(slots);
        match device {
            Device::Cpu(_) => {
                let rows = |&slot: &u32| &self.found.host()[slot as usize * MARK_ROWS..][..MARK_ROWS];
                slots.iter().flat_map(rows).copied().collect()
            }
            #[cfg(feature = "cuda")]
            Device::Cuda(device) => cuda::found_of(device, &self.found, slots),
        }
    }

    /// Puts what other ranks have found into the slots of their groups here. No sweep of this rank touches these, so they
    /// keep what was found in an earlier sweep until they are set again or [cleared](TroubledCells::clear_found).
    ///
    /// * `rows`: `[slots, 16, 16]`, from [`TroubledCells::found_of`]
    ///
    /// # Panics
    /// If a slot is beyond the pool, or rows and slots differ in number.
    pub fn set_found(&mut self, device: &Device, slots: &DeviceTable<u32>, rows: &[u16]) {
        self.assert_holds(slots);
        assert_eq!(rows.len(), slots.len() * MARK_ROWS, "rows of marks for another number of slots");
        match device {
            Device::Cpu(_) => {
                for (&slot, rows) in slots.iter().zip(rows.chunks_exact(MARK_ROWS)) {
                    self.found.host_mut()[slot as usize * MARK_ROWS..][..MARK_ROWS].copy_from_slice(rows);
                }
            }
            #[cfg(feature = "cuda")]
            Device::Cuda(device) => cuda::set_found(device, &self.found, slots, rows),
        }
    }

    /// Forgets what was found in these slots.
    ///
    /// # Panics
    /// If a slot is beyond the pool.
    pub fn clear_found(&mut self, device: &Device, slots: &DeviceTable<u32>) {
        self.assert_holds(slots);
        match device {
            Device::Cpu(_) => {
                for &slot in slots {
                    self.found.host_mut()[slot as usize * MARK_ROWS..][..MARK_ROWS].fill(0);
                }
            }
            #[cfg(feature = "cuda")]
            Device::Cuda(device) => cuda::clear_found(device, &self.found, slots),
        }
    }

    fn assert_holds(&self, slots: &[u32]) {
        let last = slots.iter().max().map_or(0, |&slot| slot as usize + 1);
        assert!(last <= self.slots(), "marks of slot {} in a pool of {}", last - 1, self.slots());
    }

    /// What is found, on the host.
    #[cfg(all(test, feature = "cuda"))]
    pub(crate) fn found(&self) -> Vec<u16> {
        self.found.to_host()
    }

    /// What is known and what is found, on a GPU.
    #[cfg(feature = "cuda")]
    pub(crate) fn pointers(&mut self) -> (Pointer<u16>, Pointer<u16>) {
        (self.known.pointer(), self.found.pointer())
    }

    /// What is known, to read, and what is found, to write: `[slots, 16, 16]` each.
    pub(crate) fn host(&mut self) -> (&[u16], &mut [u16]) {
        (self.known.host(), self.found.host_mut())
    }
}

/// The groups whose sweep sees a new mark, theirs or a neighbour's, in order: those that a redo must sweep again. The
/// reports then know of no new marks.
///
/// * `also`: groups of the level that see a mark of another rank
///
/// # Panics
/// If one of `also` is not in the level.
pub fn groups_to_redo(
    tables: &LevelTopology,
    reports: &mut [GroupReport],
    also: impl IntoIterator<Item = usize>,
) -> Vec<u32> {
    let slots = tables.slots.iter().max().map_or(0, |&slot| slot as usize + 1);
    let mut wanted = vec![false; slots];
    for g in also {
        wanted[tables.slots[g] as usize] = true;
    }
    for (g, report) in reports.iter_mut().enumerate().filter(|(_, report)| report.marked > 0) {
        report.marked = 0;
        let reach = std::mem::take(&mut report.marks_reach);
        for d in (0..DIRECTIONS).filter(|d| reach >> d & 1 == 1) {
            // in a slot that is none of the level's lies a group of another rank, which redoes it
            if let Some(wanted) = wanted.get_mut(tables.row(g)[d] as usize) {
                *wanted = true;
            }
        }
    }
    (0..tables.len() as u32).filter(|&g| wanted[tables.slots[g as usize] as usize]).collect()
}

/// The directions of the groups that see a mark of this group's rows, `[16, 16]`.
pub(crate) fn reach(rows: &[u16]) -> u32 {
    const LOW: u16 = (1 << DEPTH) - 1;
    const HIGH: u16 = LOW << (GROUP - DEPTH);
    let mut mask = 0;
    for (n, &row) in rows.iter().enumerate().filter(|(_, row)| **row != 0) {
        let near = |x: usize| (-i32::from(x < DEPTH), i32::from(x + DEPTH >= GROUP));
        let (y, z) = (near(n % GROUP), near(n / GROUP));
        let x = (-i32::from(row & LOW != 0), i32::from(row & HIGH != 0));
        for dz in z.0..=z.1 {
            for dy in y.0..=y.1 {
                for dx in x.0..=x.1 {
                    mask |= 1 << direction(dx, dy, dz);
                }
            }
        }
    }
    mask
}

/// A cube of bits, `[24, 24]` rows: bit and row `n` are cell `n − 4` of the group.
pub(crate) type Bits = [u32; WIDTH * WIDTH];

/// The cells of a group's block whose faces are swept at first order, pass by pass.
pub(crate) struct FirstOrderCells {
    /// Of the first, second and third directional pass.
    passes: [Bits; 3],
    /// The axes of the passes.
    axes: [usize; 3],
}

impl FirstOrderCells {
    pub(crate) fn new() -> Box<Self> {
        Box::new(Self { passes: [[0; WIDTH * WIDTH]; 3], axes: [0, 1, 2] })
    }

    /// Gathers the marks in and around group `g` and spreads them for the passes along `axes`.
    pub(crate) fn gather(&mut self, tables: &LevelTopology, g: usize, known: &[u16], axes: [usize; 3]) {
        self.axes = axes;
        let [first, second, third] = &mut self.passes;
        gather(tables, g, known, third);
        spread(third, axes[2], second);
        spread(second, axes[1], first);
    }

    /// The cells of row (j, k) of the block ([`crate::level::ghosts::block_cell`]), cell i bit i.
    fn row(&self, pass: usize, j: usize, k: usize) -> u32 {
        self.passes[pass][(k + 1) * WIDTH + j + 1] >> 1
    }

    /// Where the low faces of cells 3 to 19 of rows j to j + R − 1 that are swept at first order lie in a sheet of rows.
    #[cold]
    pub(crate) fn faces_of_rows<const R: usize>(&self, pass: usize, j: usize, k: usize, faces: &mut Vec<usize>) {
        faces.clear();
        for r in 0..R {
            let cells = self.row(pass, j + r, k);
            let low = cells | cells << 1;
            faces.extend(FACES.filter(|n| low >> n & 1 == 1).map(|n| r * HYDRO_BLOCK + n));
        }
    }

    /// The same for a sheet of `W` pencils along y or z: those at i to i + W − 1 and `other` on the third axis.
    #[cold]
    pub(crate) fn faces_of_columns<const W: usize>(&self, pass: usize, i: usize, other: usize, faces: &mut Vec<usize>) {
        faces.clear();
        for n in FACES {
            let cells = match self.axes[pass] {
                1 => self.row(pass, n - 1, other) | self.row(pass, n, other),
                _ => self.row(pass, other, n - 1) | self.row(pass, other, n),
            };
            faces.extend((0..W).filter(|lane| cells >> (i + lane) & 1 == 1).map(|lane| n * W + lane));
        }
    }

    /// Low faces of the group's own cells that are swept at first order, in the three passes together.
    pub(crate) fn face_count(&self) -> u32 {
        const OWN: u32 = ((1 << GROUP) - 1) << HYDRO_GHOSTS;
        let mut count = 0;
        for pass in 0..3 {
            for (j, k) in (0..MARK_ROWS).map(|n| (n % GROUP + HYDRO_GHOSTS, n / GROUP + HYDRO_GHOSTS)) {
                let cells = self.row(pass, j, k);
                let below = match self.axes[pass] {
                    0 => cells << 1,
                    1 => self.row(pass, j - 1, k),
                    _ => self.row(pass, j, k - 1),
                };
                count += ((cells | below) & OWN).count_ones();
            }
        }
        count
    }
}

/// The low faces of a group's own cells and the high face of the last, along one axis of the block.
const FACES: std::ops::RangeInclusive<usize> = HYDRO_GHOSTS..=HYDRO_GHOSTS + GROUP;

/// The marks of group `g` and those around it. There are none on the coarser level; beyond a boundary that is not
/// periodic lies the mirror image of those inside.
fn gather(tables: &LevelTopology, g: usize, known: &[u16], bits: &mut Bits) {
    bits.fill(0);
    for (d, &slot) in tables.row(g).iter().enumerate().filter(|(_, slot)| **slot != NONE) {
        let rows = &known[slot as usize * MARK_ROWS..][..MARK_ROWS];
        let [x, y, z] = offset(d);
        // the cells of that group that lie in the block, and where its first cell would
        let range = |step: i32| match step {
            -1 => GROUP - DEPTH..GROUP,
            0 => 0..GROUP,
            _ => 0..DEPTH,
        };
        let place = |step: i32, cell: usize| (step * GROUP as i32 + DEPTH as i32 + cell as i32) as usize;
        for k in range(z) {
            for j in range(y) {
                let row = u32::from(rows[k * GROUP + j]);
                let to = &mut bits[place(z, k) * WIDTH + place(y, j)];
                *to |= match x {
                    -1 => row >> (GROUP - DEPTH),
                    0 => row << DEPTH,
                    _ => (row & ((1 << DEPTH) - 1)) << (GROUP + DEPTH),
                };
            }
        }
    }
    for face in (0..6).filter(|face| tables.outside[g] >> face & 1 == 1) {
        mirror(bits, face);
    }
}

/// Overwrites the marks beyond a face of the group with the mirror image of those inside.
fn mirror(bits: &mut Bits, face: usize) {
    // the n-th cell outside and inside, counted from the face
    let pair = |n: usize| {
        if face & 1 == 0 { (DEPTH - 1 - n, DEPTH + n) } else { (WIDTH - DEPTH + n, WIDTH - DEPTH - 1 - n) }
    };
    for (outside, inside) in (0..DEPTH).map(pair) {
        for n in 0..WIDTH {
            match face / 2 {
                0 => {
                    for row in &mut bits[n * WIDTH..][..WIDTH] {
                        *row = *row & !(1 << outside) | (*row >> inside & 1) << outside;
                    }
                }
                1 => bits[n * WIDTH + outside] = bits[n * WIDTH + inside],
                _ => bits[outside * WIDTH + n] = bits[inside * WIDTH + n],
            }
        }
    }
}

/// The same cells and their neighbours along an axis; the outermost cells of the cube are not to be relied on.
fn spread(from: &Bits, axis: usize, to: &mut Bits) {
    let stride = [0, 1, WIDTH][axis];
    for (n, to) in to.iter_mut().enumerate() {
        let row = |n: usize| from.get(n).copied().unwrap_or(0);
        *to = match axis {
            0 => row(n) | row(n) << 1 | row(n) >> 1,
            _ => row(n.wrapping_sub(stride)) | row(n) | row(n + stride),
        };
    }
}
