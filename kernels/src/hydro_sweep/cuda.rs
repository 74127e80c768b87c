//! The sweep of a level on a GPU: how it is tiled and launched.

use super::SweepParameters;
use crate::buffer::Buffer;
use crate::cuda::array::{Array, Pointer};
use crate::cuda::level::Level;
use crate::cuda::{CudaDevice, launch};
use crate::ghosts::{Earlier, cuda::EarlierOnDevice};
use crate::layout::{FIELDS, GROUP, HYDRO_GHOSTS};
use crate::point::eos::Eos;
use crate::real::Real;
use crate::report::GroupReport;
use crate::table::Table;
use crate::tables::LevelTables;

/// `Sweep` of `sweep.cu`.
#[repr(C)]
struct Sweep<T> {
    level: Level,
    flux_slots: Pointer<u32>,
    fluid: Pointer<T>,
    earlier: EarlierOnDevice<T>,
    out: Pointer<T>,
    fluxes: Pointer<T>,
    known: Pointer<u16>,
    found: Pointer<u16>,
    redo: Pointer<u32>,
    reports: Pointer<GroupReport>,
    dt_over_dx: T,
    axes: [i32; 3],
    eos: Eos<T>,
}

/// A part of a group that one block sweeps: 16 × y × z cells.
struct Tile {
    kernel: &'static str,
    cells: [usize; 2],
    threads: u32,
}

const GROUP_TILE: Tile = Tile { kernel: "hydro_sweep_group", cells: [16, 16], threads: 512 };
const QUARTER_TILE: Tile = Tile { kernel: "hydro_sweep_quarter", cells: [8, 8], threads: 256 };
const REDO_TILE: Tile = Tile { kernel: "hydro_redo", ..QUARTER_TILE };

impl Tile {
    fn per_group(&self) -> usize {
        GROUP / self.cells[0] * (GROUP / self.cells[1])
    }

    /// Bytes of shared memory: the cells and ghost cells after the first pass, whichever axis it was along.
    fn shared_bytes<T: Real>(&self) -> u32 {
        let [y, z] = self.cells;
        let with_ghosts = |n: usize| n + 2 * HYDRO_GHOSTS;
        let odd = |n: usize| n | 1;
        let after = [
            odd(GROUP) * with_ghosts(y) * with_ghosts(z),
            odd(with_ghosts(GROUP)) * y * with_ghosts(z),
            odd(with_ghosts(GROUP)) * with_ghosts(y) * z,
        ];
        (FIELDS * after.into_iter().max().unwrap_or(0) * T::BYTES) as u32
    }
}

pub(super) fn hydro_sweep<T: Real>(
    device: &CudaDevice,
    tables: &LevelTables,
    flux_slots: &Table<u32>,
    fluid: &Buffer<T>,
    earlier: Option<&Earlier<T>>,
    out: &Buffer<T>,
    fluxes: &Buffer<T>,
    (known, found): (Pointer<u16>, Pointer<u16>),
    redo: Option<&[u32]>,
    parameters: &SweepParameters<T>,
    reports: &mut [GroupReport],
) {
    let swept = redo.map_or(tables.len(), <[u32]>::len);
    let whole = T::BYTES == 4 && device.shared_bytes_per_block() >= GROUP_TILE.shared_bytes::<T>() as usize + STATIC;
    // where the groups do not fill the GPU, more and smaller blocks finish earlier
    let tile = match redo {
        Some(_) => REDO_TILE,
        None if whole && swept >= device.multiprocessors() as usize => GROUP_TILE,
        None => QUARTER_TILE,
    };
    let blocks = swept * tile.per_group();
    let list = redo.map(|groups| Array::of(device, groups).expect("room for a list"));
    let per_tile = Array::<GroupReport>::room(device, blocks).expect("room for reports");
    let sweep = Sweep {
        level: Level::of(device, tables),
        flux_slots: flux_slots.on(device),
        fluid: fluid.pointer(),
        earlier: EarlierOnDevice::of(device, earlier),
        out: out.pointer(),
        fluxes: fluxes.pointer(),
        known,
        found,
        redo: list.as_ref().map_or(Pointer::NULL, Array::pointer),
        reports: per_tile.pointer(),
        dt_over_dx: parameters.dt_over_dx,
        axes: parameters.axes.map(|axis| axis as i32),
        eos: parameters.eos,
    };
    // SAFETY: the kernel's one parameter; its arrays are those of the caller's checks.
    unsafe { launch!(device, T, tile.kernel, blocks, tile.threads, tile.shared_bytes::<T>(); sweep) };
    for (n, tiles) in per_tile.to_host().chunks_exact(tile.per_group()).enumerate() {
        let report = &mut reports[redo.map_or(n, |groups| groups[n] as usize)];
        *report = tiles[0];
        tiles[1..].iter().for_each(|other| report.add(other));
    }
}

/// Shared memory that the kernel declares by itself, at most: sums of reports and marks.
const STATIC: usize = 2048;
