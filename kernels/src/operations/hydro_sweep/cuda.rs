//! The sweep of a level on a GPU: how it is tiled and launched.

use super::{SweepOutput, SweepParameters, SweepTargets};
use crate::device::buffer::Buffer;
use crate::device::cuda::array::{Array, Pointer};
use crate::device::cuda::{CudaDevice, launch};
use crate::device::device_table::DeviceTable;
use crate::layout::{FIELDS, GROUP, HYDRO_GHOSTS};
use crate::level::cuda::Level;
use crate::level::ghosts::{EarlierFluid, cuda::EarlierFluidPointers};
use crate::level::level_topology::LevelTopology;
use crate::level::report::GroupReport;
use crate::level::troubled_cells::Bits;
use crate::operations::scalars::ScalarSweep;
use crate::operations::scalars::cuda::ScalarPools;
use crate::point::eos::Eos;
use crate::real::Real;
use crate::scheme::Scheme;

/// `Sweep` of `sweep.cu`.
#[repr(C)]
struct Sweep<T> {
    level: Level,
    flux_slots: Pointer<u32>,
    fluid: Pointer<T>,
    earlier: EarlierFluidPointers<T>,
    out: Pointer<T>,
    fluxes: Pointer<T>,
    known: Pointer<u16>,
    found: Pointer<u16>,
    list: Pointer<u32>,
    reports: Pointer<GroupReport>,
    marked: Pointer<u32>,
    shells: Pointer<T>,
    redos: Pointer<Redo>,
    groups: u32,
    dt_over_dx: T,
    axes: [i32; 3],
    eos: Eos<T>,
}

/// `Redo` of `sweep.cuh`: the rows of three cubes of marks.
type Redo = [Bits; 3];

/// A part of a group that one block sweeps: 16 × y × z cells.
struct Tile {
    cells: [usize; 2],
    threads: u32,
}

const WHOLE: Tile = Tile { cells: [16, 16], threads: 512 };
const QUARTER: Tile = Tile { cells: [8, 8], threads: 256 };

impl Tile {
    fn per_group(&self) -> usize {
        GROUP / self.cells[0] * (GROUP / self.cells[1])
    }

    /// Values of a `Shell` around it.
    fn shell_values(&self) -> usize {
        let [y, z] = self.cells.map(|n| n + 2 * HYDRO_GHOSTS);
        FIELDS * (GROUP + 2 * HYDRO_GHOSTS + 2) * y * z
    }

    /// Values of the `MassFluxes` of a pass.
    fn mass_flux_values(&self) -> usize {
        let [y, z] = self.cells.map(|n| n + 2 * HYDRO_GHOSTS);
        (GROUP + 1) * y * z
    }

    /// Bytes of shared memory: the cells and ghost cells after the first pass, whichever axis it was along; behind the
    /// fields of each what its neighbours say about its energy.
    fn shared_bytes<T: Real>(&self) -> u32 {
        let [y, z] = self.cells;
        let with_ghosts = |n: usize| n + 2 * HYDRO_GHOSTS;
        let odd = |n: usize| n | 1;
        let after = [
            odd(GROUP) * with_ghosts(y) * with_ghosts(z),
            odd(with_ghosts(GROUP)) * y * with_ghosts(z),
            odd(with_ghosts(GROUP)) * with_ghosts(y) * z,
        ];
        ((FIELDS + 1) * after.into_iter().max().unwrap_or(0) * T::BYTES) as u32
    }
}

pub(super) fn hydro_sweep<T: Real>(
    device: &CudaDevice,
    tables: &LevelTopology,
    flux_slots: &DeviceTable<u32>,
    fluid: &Buffer<T>,
    earlier: Option<&EarlierFluid<T>>,
    out: &Buffer<T>,
    fluxes: &Buffer<T>,
    (known, found): (Pointer<u16>, Pointer<u16>),
    scalars: Option<&mut ScalarSweep<'_, T>>,
    which: SweepTargets,
    parameters: &SweepParameters<T>,
) -> SweepOutput {
    let swept = which.list().map_or(tables.len(), <[u32]>::len);
    let fits = device.shared_bytes_per_block() >= WHOLE.shared_bytes::<T>() as usize + STATIC;
    let multiprocessors = device.multiprocessors() as usize;
    let order = match parameters.axes {
        [0, 1, 2] => "_xyz",
        [2, 1, 0] => "_zyx",
        _ => "",
    };
    let is_redo = matches!(which, SweepTargets::Redo(_));
    // half as many groups as multiprocessors: their quarters would be two to a multiprocessor and no faster
    let (what, enough) = if is_redo { ("redo", multiprocessors / 2) } else { ("sweep", multiprocessors) };
    // where the groups do not fill the GPU, more and smaller blocks finish earlier
    let whole = T::BYTES == 4 && fits && swept >= enough && !order.is_empty() && !(is_redo && scalars.is_some());
    let scheme = match parameters.scheme {
        Scheme::Ppm => "ppm",
        Scheme::Plm => "plm",
        Scheme::RelaxingTvd => "tvd",
        Scheme::Hll => "hll",
    };
    let with = if scalars.is_some() { "_scalars" } else { "" };
    let (tile, kernel) = match (parameters.scheme, device.exact(), whole) {
        (Scheme::Hll, ..) | (_, true, _) => (QUARTER, format!("hydro_{what}_{scheme}{with}_exact")),
        (_, false, true) => (WHOLE, format!("hydro_{what}_{scheme}{with}_group{order}")),
        (_, false, false) if is_redo || scalars.is_some() => (QUARTER, format!("hydro_{what}_{scheme}{with}_quarter")),
        (_, false, false) => (QUARTER, format!("hydro_sweep_{scheme}_quarter{order}")),
    };
    let tiles = swept * tile.per_group();
    // as many blocks as run at once, each with room for the cells around a tile; they take one tile after another
    let blocks = tiles.min(multiprocessors * if tile.threads == 512 { 1 } else { 2 });
    let shells = Array::<T>::work_space(device, blocks * tile.shell_values());
    let redos = Array::<Redo>::work_space(device, if is_redo { blocks } else { 0 });
    let redone = match which {
        SweepTargets::Redo(groups) => Some(Array::work_space_of(device, groups)),
        _ => None,
    };
    let list = match which {
        SweepTargets::Subset(groups) => groups.on(device),
        _ => redone.as_ref().map_or(Pointer::NULL, Array::pointer),
    };
    let reports = Array::<GroupReport>::work_space(device, tiles);
    let marked = Array::<u32>::work_space(device, 1);
    marked.clear(0);
    let sweep = Sweep {
        level: Level::of(device, tables),
        flux_slots: flux_slots.on(device),
        fluid: fluid.pointer(),
        earlier: EarlierFluidPointers::of(device, earlier),
        out: out.pointer(),
        fluxes: fluxes.pointer(),
        known,
        found,
        list,
        reports: reports.pointer(),
        marked: marked.pointer(),
        shells: shells.pointer(),
        redos: redos.pointer(),
        groups: swept as u32,
        dt_over_dx: parameters.dt_over_dx,
        axes: parameters.axes.map(|axis| axis as i32),
        eos: parameters.eos,
    };
    // SAFETY: the kernel's parameters; their arrays are those of the caller's checks.
    unsafe {
        match scalars {
            Some(scalars) => {
                let mass_fluxes = Array::<T>::work_space(device, blocks * 3 * tile.mass_flux_values());
                let scalars = ScalarPools::of(scalars, &mass_fluxes);
                launch!(device, T, &kernel, blocks, tile.threads, tile.shared_bytes::<T>(); sweep, scalars);
            }
            None => launch!(device, T, &kernel, blocks, tile.threads, tile.shared_bytes::<T>(); sweep),
        }
    };
    let of_group = |tiles: &[GroupReport]| {
        let mut report = tiles[0];
        tiles[1..].iter().for_each(|other| report.add(other));
        report
    };
    let per_group = tile.per_group();
    SweepOutput {
        marked: marked.read_later(<[_]>::to_vec),
        reports: reports.read_later(move |tiles| tiles.chunks_exact(per_group).map(of_group).collect()),
    }
}

/// Shared memory that the kernel declares by itself, at most: sums of reports and marks.
const STATIC: usize = 1024;

#[cfg(test)]
mod tests {
    use super::super::hydro_sweep;
    use super::*;
    use crate::device::Device;
    use crate::device::deferred::Deferred;
    use crate::layout::{FLUX_PLANE_VALUES, FLUX_PLANES, GROUP_CELLS, GROUP_VALUES};
    use crate::level::level_topology::NONE;
    use crate::level::troubled_cells::{TroubledCells, groups_to_redo};
    use crate::testing::{Mesh, Noise, conserved, with_gpu};

    /// What a sweep and a redo leave behind.
    struct Outcome<T> {
        out: Vec<T>,
        fluxes: Vec<T>,
        marks: Vec<u16>,
        redone: Vec<u32>,
        reports: Vec<GroupReport>,
    }

    fn swept<T: Real>(
        device: &Device,
        tables: &LevelTopology,
        fluid: &[T],
        before: Option<&[T]>,
        flux_slots: &DeviceTable<u32>,
        parameters: &SweepParameters<T>,
    ) -> Outcome<T> {
        let pool = |values: &[T]| Buffer::from_host(device, values.to_vec()).unwrap();
        let slots = fluid.len() / GROUP_VALUES;
        let earlier_pool = pool(before.unwrap_or(&[]));
        let places: DeviceTable<u32> = (0..slots as u32).collect();
        let earlier = before.map(|_| EarlierFluid { fluid: &earlier_pool, places: &places, weight: T::from_f64(0.25) });
        let planes = flux_slots.iter().filter(|&&plane| plane != NONE).count();
        let mut out = pool(&vec![T::from_f64(-7.0); fluid.len()]);
        let mut fluxes = pool(&vec![T::from_f64(-7.0); planes * FLUX_PLANE_VALUES]);
        let mut marks = TroubledCells::new(device, slots).unwrap();
        let mut sweep = |which: SweepTargets, marks: &mut TroubledCells| {
            let (fluid, earlier) = (pool(fluid), earlier.as_ref());
            let (out, fluxes) = (&mut out, &mut fluxes);
            let swept =
                hydro_sweep(device, tables, flux_slots, &fluid, earlier, out, fluxes, marks, None, which, parameters);
            let (marked, reports) = (swept.marked.wait(), swept.reports.wait());
            assert_eq!(marked, [reports.iter().map(|report| report.marked).sum::<u32>()]);
            reports
        };
        let mut reports = match before {
            None => sweep(SweepTargets::All, &mut marks),
            // in two parts
            Some(_) => {
                let of =
                    |rest: u32| (0..tables.len() as u32).filter(|g| g % 3 % 2 == rest).collect::<DeviceTable<u32>>();
                let [these, others] = [of(1), of(0)];
                let [first, second] = [&these, &others].map(|groups| sweep(SweepTargets::Subset(groups), &mut marks));
                let swept =
                    |reports| SweepOutput { marked: Deferred::ready(vec![0]), reports: Deferred::ready(reports) };
                swept(first).joined(swept(second), &these).reports.wait()
            }
        };
        marks.accept();
        let redone = groups_to_redo(tables, &mut reports, []);
        for (&g, report) in redone.iter().zip(sweep(SweepTargets::Redo(&redone), &mut marks)) {
            reports[g as usize] = report;
        }
        Outcome { out: out.to_host(), fluxes: fluxes.to_host(), marks: marks.found(), redone, reports }
    }

    /// Rough cold and hot gas that needs floors and redos here and there, on random hierarchies: equal bits.
    fn sweeps_agree<T: Real>(gpu: &Device) {
        let cpu = Device::cpu(2).unwrap();
        let mut noise = Noise::new(5);
        let mut redone = 0;
        for case in 0..6 {
            let mesh = Mesh::random(&mut noise, 3);
            let gamma = if [2, 4, 5].contains(&case) { 1.4 } else { 5.0 / 3.0 };
            let mut gas = || {
                let pressure = 10f64.powf(2.0 * noise.next() - 2.0);
                let velocity = [0, 1, 2].map(|_| 4.0 * noise.next() * noise.next());
                conserved(10f64.powf(1.5 * noise.next()), velocity, pressure, gamma)
            };
            let fluid: Vec<T> = mesh.fill(|_| gas());
            let before: Vec<T> = mesh.fill(|_| gas());
            for (level, timed) in (0..mesh.levels.len()).flat_map(|level| [(level, false), (level, true)]) {
                let tables = mesh.tables(level);
                let mut planes = 0;
                let flux_slots: DeviceTable<u32> = (0..tables.len() * FLUX_PLANES)
                    .map(|n| {
                        let plane = if (n * 7 + case) % 3 == 0 { planes } else { return NONE };
                        planes += 1;
                        plane
                    })
                    .collect();
                let axes = [[0, 1, 2], [2, 1, 0], [1, 2, 0], [0, 2, 1], [2, 0, 1], [1, 0, 2]][(case + level) % 6];
                let parameters = SweepParameters {
                    scheme: [Scheme::Ppm, Scheme::Plm, Scheme::RelaxingTvd, Scheme::Hll][case % 4],
                    dt_over_dx: T::from_f64(0.2),
                    axes,
                    eos: Eos::new(gamma),
                };
                let before = timed.then_some(&before[..]);
                let [expected, found] =
                    [&cpu, gpu].map(|device| swept(device, &tables, &fluid, before, &flux_slots, &parameters));
                let what = format!("case {case} level {level} axes {axes:?} earlier {timed}");
                let same = |name: &str, found: &[T], expected: &[T], stride: usize| {
                    for (n, (found, expected)) in found.iter().zip(expected).enumerate() {
                        let (slot, value) = (n / stride, n % stride);
                        let (field, cell) = (value * FIELDS / stride, value % (stride / FIELDS));
                        assert!(
                            found.bits() == expected.bits() || (found.is_nan() && expected.is_nan()),
                            "{what}: {name} {slot} field {field} cell {cell}: GPU {found}, CPU {expected}, {}",
                            expected_redone(&tables, slot),
                        );
                    }
                };
                assert_eq!(found.redone, expected.redone, "{what}: groups to redo");
                redone += expected.redone.len();
                assert_eq!(found.marks, expected.marks, "{what}: marks");
                same("slot", &found.out, &expected.out, GROUP_VALUES);
                same("plane", &found.fluxes, &expected.fluxes, FLUX_PLANE_VALUES);
                for (g, (found, expected)) in found.reports.iter().zip(&expected.reports).enumerate() {
                    let sums = |r: &GroupReport| [r.energy_added, r.floor_energy, r.floor_mass];
                    for (found, expected) in sums(found).into_iter().zip(sums(expected)) {
                        let close = (found - expected).abs() <= 1e-9 * (1.0 + expected.abs());
                        assert!(close || !expected.is_finite(), "{what}: group {g}: sums {found} {expected}");
                    }
                    let numbers = GroupReport { energy_added: 0.0, floor_energy: 0.0, floor_mass: 0.0, ..*found };
                    let wanted = GroupReport { energy_added: 0.0, floor_energy: 0.0, floor_mass: 0.0, ..*expected };
                    assert_eq!(numbers, wanted, "{what}: group {g} of {}", GROUP_CELLS);
                }
            }
        }
        assert!(redone > 20, "the test needs redos: {redone}");
    }

    fn expected_redone(tables: &LevelTopology, slot: usize) -> String {
        tables.slots.iter().position(|&s| s as usize == slot).map_or("another level".into(), |g| format!("group {g}"))
    }

    #[test]
    fn gpu_sweeps_give_the_cpu_s_bits() {
        with_gpu(|gpu| {
            sweeps_agree::<f32>(gpu);
            sweeps_agree::<f64>(gpu);
        });
    }
}
