//! Root transforms on a GPU: by cuFFT, or on the host where that library is missing.
//!
//! Layers and bands are transformed one at a time by plans of a fixed shape, in a work space that holds a few of them
//! and stays in the GPU's cache; slabs go between it and the blocks.

use super::cpu::{self, eigenvalues};
use super::cufft::{Direction, Plans, band_values, layer_values};
use super::lattice_green::LatticeGreen;
use super::shape::Shape;
use crate::buffer::Buffer;
use crate::cuda::array::{Array, Pointer};
use crate::cuda::{CudaDevice, launch};
use crate::error::KernelError;
use crate::layout::{GROUP, GROUP_CELLS};
use crate::poisson_source::{DeviceSource, PoissonSource};
use crate::real::Real;
use crate::table::Table;
use crate::tables::NONE;
use std::ops::Range;

/// Threads of a block that copies a group or a slab, and of one that has a row of modes.
const GROUP_THREADS: u32 = 256;
const ROW_THREADS: u32 = 64;
/// Bytes of the work space, unless one layer or band is larger. Tests have meshes of several times as much.
const WORK_BYTES: usize = if cfg!(test) { 3 << 20 } else { 32 << 20 };

/// How some groups of the root lie in a mesh: the `RootMesh` of `root_poisson.cu`.
#[derive(Clone, Copy)]
#[repr(C)]
struct RootMesh {
    slots: Pointer<u32>,
    values: Pointer<f64>,
    row: u64,
    plane: u64,
    groups: [u32; 2],
    first: u32,
}

/// What divides by the Laplacian in Fourier space.
enum Green {
    /// The eigenvalues along x, y and z, one after the other.
    Periodic(Array<f64>),
    /// The transform of the lattice's Green's function, `[rows, N_z + 1, N_x + 1]`, and the |ky| of its first row.
    Isolated(Array<f64>, usize),
}

impl Green {
    fn new(device: &CudaDevice, shape: &Shape) -> Result<Self, KernelError> {
        if !shape.isolated {
            return Ok(Self::Periodic(Array::of(device, &shape.cells().map(eigenvalues).concat())?));
        }
        let green = device.host().install(|| LatticeGreen::new(shape.cells(), shape.wave_numbers()));
        Ok(Self::Isolated(Array::of(device, green.values())?, green.rows().start))
    }

    fn bytes_for(shape: &Shape) -> usize {
        match shape.isolated {
            false => shape.cells().iter().sum::<usize>() * size_of::<f64>(),
            true => LatticeGreen::bytes_for(shape.cells(), shape.wave_numbers()),
        }
    }

    fn bytes(&self) -> usize {
        let (Self::Periodic(values) | Self::Isolated(values, _)) = self;
        values.len() * size_of::<f64>()
    }
}

/// Where the transforms are done.
enum Place {
    Device(Box<OnDevice>),
    Host(Box<cpu::Transforms>),
}

/// Plans, Green's function and work space.
pub(super) struct Transforms {
    device: CudaDevice,
    shape: Shape,
    place: Place,
}

impl std::fmt::Debug for Transforms {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Transforms({:?} on {:?})", self.shape, self.device)
    }
}

impl Transforms {
    pub(super) fn new(device: &CudaDevice, shape: Shape) -> Result<Self, KernelError> {
        let place = match Plans::new(device, &shape)? {
            Some(plans) => Place::Device(Box::new(OnDevice::new(device, shape, plans)?)),
            None => Place::Host(Box::new(device.host().install(|| cpu::Transforms::new(shape)))),
        };
        Ok(Self { device: device.clone(), shape, place })
    }

    pub(super) fn bytes_for(shape: Shape) -> usize {
        let tables = slabs(&shape) * size_of::<u32>();
        let work = work_values(&shape) * size_of::<f64>();
        Green::bytes_for(&shape) + tables + work + Plans::bytes_for(&shape)
    }

    pub(super) fn bytes(&self) -> usize {
        match &self.place {
            Place::Device(on) => on.bytes(),
            Place::Host(transforms) => transforms.bytes(),
        }
    }

    pub(super) fn working_bytes(&self) -> usize {
        match &self.place {
            Place::Device(_) => 0,
            Place::Host(_) => self.shape.own_groups() * GROUP_CELLS * size_of::<f64>(),
        }
    }

    pub(super) fn shape(&self) -> &Shape {
        &self.shape
    }

    pub(super) fn are_on_host(&self) -> bool {
        matches!(self.place, Place::Host(_))
    }

    pub(super) fn forward<T: Real>(&self, slots: &Table<u32>, source: &PoissonSource<T>, blocks: &mut Buffer<f64>) {
        match &self.place {
            Place::Device(on) => on.forward(slots, source, blocks),
            Place::Host(transforms) => {
                let mut values = Buffer::Cuda(self.room_for_groups());
                gather(&self.device, slots, source, &mut values);
                let source = Buffer::Cpu(values.to_host());
                let field = PoissonSource::Field(&source);
                self.on_host(blocks, |blocks| transforms.forward(&self.in_order(), &field, blocks));
            }
        }
    }

    pub(super) fn solve_columns(&self, blocks: &mut Buffer<f64>, h: f64) {
        match &self.place {
            Place::Device(on) => on.solve_columns(blocks, h),
            Place::Host(transforms) => self.on_host(blocks, |blocks| transforms.solve_columns(blocks, h)),
        }
    }

    pub(super) fn backward<T: Real>(&self, slots: &Table<u32>, blocks: &mut Buffer<f64>, potential: &Buffer<T>) {
        match &self.place {
            Place::Device(on) => on.backward(slots, blocks, potential),
            Place::Host(transforms) => {
                let mut solution = vec![0.0; self.shape.own_groups() * GROUP_CELLS];
                self.on_host(blocks, |blocks| transforms.backward(&self.in_order(), blocks, &mut solution));
                let mut values = self.room_for_groups();
                values.copy_from_host(&solution);
                scatter(&self.device, slots.len(), together(&self.device, slots, values.pointer()), potential);
            }
        }
    }

    /// Does `work` on blocks on the host, wherever they lie.
    fn on_host(&self, blocks: &mut Buffer<f64>, work: impl FnOnce(&mut [f64]) + Send) {
        match blocks {
            Buffer::Cpu(values) => self.device.host().install(|| work(values)),
            Buffer::Cuda(array) => {
                let mut values = array.to_host();
                self.device.host().install(|| work(&mut values));
                array.copy_from_host(&values);
            }
        }
    }

    fn in_order(&self) -> Vec<u32> {
        (0..self.shape.own_groups() as u32).collect()
    }

    fn room_for_groups(&self) -> Array<f64> {
        Array::room(&self.device, self.shape.own_groups() * GROUP_CELLS).expect("room for the root's source")
    }
}

/// What cuFFT transforms, and with what.
struct OnDevice {
    device: CudaDevice,
    shape: Shape,
    plans: Plans,
    green: Green,
    /// Layers `[z, y, x]`, rows padded to those of modes; or bands `[band, z, 16, kx]`.
    work: Array<f64>,
    /// Where the slabs `[z, band]` of this rank's planes lie in the blocks that it sends.
    sent: Table<u32>,
    /// Where the slabs `[band, z]` of this rank's bands lie in the blocks that it receives; NONE for the padding.
    received: Table<u32>,
}

impl OnDevice {
    fn new(device: &CudaDevice, shape: Shape, plans: Plans) -> Result<Self, KernelError> {
        let (bands, nz) = (shape.all_bands(), shape.lengths()[2]);
        let mut sent = vec![NONE; shape.sent_slabs().count()];
        for (slab, [band, plane]) in shape.sent_slabs().enumerate() {
            sent[plane * bands + band] = slab as u32;
        }
        let mut received = vec![NONE; shape.bands(shape.rank).len() * nz];
        for (slab, [band, plane]) in shape.received_slabs().enumerate() {
            received[band * nz + plane] = slab as u32;
        }
        Ok(Self {
            device: device.clone(),
            shape,
            plans,
            green: Green::new(device, &shape)?,
            work: Array::room(device, work_values(&shape))?,
            sent: sent.into(),
            received: received.into(),
        })
    }

    fn bytes(&self) -> usize {
        let tables = self.sent.bytes() + self.received.bytes();
        self.green.bytes() + tables + self.work.len() * size_of::<f64>() + self.plans.bytes()
    }

    fn forward<T: Real>(&self, slots: &Table<u32>, source: &PoissonSource<T>, blocks: &Buffer<f64>) {
        let Self { device, shape, plans, work, .. } = self;
        for layers in self.layers() {
            if shape.isolated {
                work.clear(0);
            }
            let (groups, mesh) = self.mesh(slots, &layers);
            // SAFETY: the parameters are the kernel's; the slots are those of the pools, one for each group of the
            // layers, which the work space has room for.
            unsafe {
                launch!(device, T, "root_source", groups, GROUP_THREADS, 0; DeviceSource::new(source), mesh);
            }
            (0..layers.len()).for_each(|n| plans.layer(Direction::Forward, work, n));
            self.copy_slabs("root_spread", &self.sent, self.slabs_of_layers(&layers), blocks);
        }
    }

    fn solve_columns(&self, blocks: &Buffer<f64>, h: f64) {
        let Self { shape, plans, work, .. } = self;
        for bands in self.bands() {
            let slabs = bands.start * shape.lengths()[2]..bands.end * shape.lengths()[2];
            self.copy_slabs("root_collect", &self.received, slabs.clone(), blocks);
            (0..bands.len()).for_each(|n| plans.band(Direction::Forward, work, n));
            self.multiply(&bands, h);
            (0..bands.len()).for_each(|n| plans.band(Direction::Backward, work, n));
            self.copy_slabs("root_spread", &self.received, slabs, blocks);
        }
    }

    fn backward<T: Real>(&self, slots: &Table<u32>, blocks: &Buffer<f64>, potential: &Buffer<T>) {
        let Self { device, plans, work, .. } = self;
        for layers in self.layers() {
            self.copy_slabs("root_collect", &self.sent, self.slabs_of_layers(&layers), blocks);
            (0..layers.len()).for_each(|n| plans.layer(Direction::Backward, work, n));
            let (groups, mesh) = self.mesh(slots, &layers);
            scatter(device, groups, mesh, potential);
        }
    }

    /// The rank's layers, counted from its first, as many at a time as the work space has room for.
    fn layers(&self) -> impl Iterator<Item = Range<usize>> {
        in_parts(self.shape.layers(self.shape.rank).len(), self.work.len() / layer_values(&self.shape))
    }

    /// The rank's bands likewise.
    fn bands(&self) -> impl Iterator<Item = Range<usize>> {
        in_parts(self.shape.bands(self.shape.rank).len(), self.work.len() / band_values(&self.shape))
    }

    fn slabs_of_layers(&self, layers: &Range<usize>) -> Range<usize> {
        let slabs = GROUP * self.shape.all_bands();
        layers.start * slabs..layers.end * slabs
    }

    /// The groups of some layers in the work space, and how many they are.
    fn mesh(&self, slots: &Table<u32>, layers: &Range<usize>) -> (usize, RootMesh) {
        let groups = self.shape.cells().map(|n| n / GROUP);
        let row = 2 * self.shape.modes();
        let mesh = RootMesh {
            slots: slots.on(&self.device),
            values: self.work.pointer(),
            row: row as u64,
            plane: (row * self.shape.lengths()[1]) as u64,
            groups: [groups[0] as u32, groups[1] as u32],
            first: (layers.start * groups[0] * groups[1]) as u32,
        };
        (layers.len() * groups[0] * groups[1], mesh)
    }

    /// Copies slabs between the start of the work space and their places in blocks.
    fn copy_slabs(&self, kernel: &str, places: &Table<u32>, slabs: Range<usize>, blocks: &Buffer<f64>) {
        let Self { device, shape, work, .. } = self;
        let first = slabs.start as u32;
        // SAFETY: the parameters are the kernels'; the work space has room for so many slabs, and the blocks hold the
        // places, checked by the caller.
        unsafe {
            launch!(device, f64, kernel, slabs.len(), GROUP_THREADS, 0;
                work.pointer(), blocks.pointer(), places.on(device), first, shape.slab() as u32);
        }
    }

    /// Multiplies the modes of some bands by the Green's function; the transforms' norm is in it.
    fn multiply(&self, bands: &Range<usize>, h: f64) {
        let Self { device, shape, work, green, .. } = self;
        let [nx, ny, nz] = shape.lengths();
        let (modes, rows) = (shape.modes() as u32, bands.len() * nz * GROUP);
        let first = (shape.wave_numbers().start + bands.start * GROUP) as u32;
        // SAFETY: the parameters are the kernels'; the work space holds the rows, the Green's function was made for their
        // wave numbers.
        unsafe {
            match green {
                Green::Periodic(eigenvalues) => {
                    let factor = -h * h / (nx * ny * nz) as f64;
                    launch!(device, f64, "root_periodic", rows, ROW_THREADS, 0;
                        work.pointer(), eigenvalues.pointer(), modes, [nx, ny, nz].map(|n| n as u32), first, factor);
                }
                Green::Isolated(green, first_row) => {
                    let factor = h * h;
                    launch!(device, f64, "root_isolated", rows, ROW_THREADS, 0;
                        work.pointer(), green.pointer(), modes, [ny / 2, nz / 2].map(|n| n as u32), first,
                        *first_row as u32, factor);
                }
            }
        }
    }
}

/// Slabs that a share has a place for.
fn slabs(shape: &Shape) -> usize {
    shape.sent_slabs().count() + shape.bands(shape.rank).len() * shape.lengths()[2]
}

/// Values of the work space: some layers, or some bands.
fn work_values(shape: &Shape) -> usize {
    let some = |things: usize, values: usize| (WORK_BYTES / (values * size_of::<f64>())).max(1).min(things) * values;
    let (layers, bands) = (shape.layers(shape.rank).len(), shape.bands(shape.rank).len());
    some(layers, layer_values(shape)).max(some(bands, band_values(shape)))
}

/// `n` things, `most` at a time.
fn in_parts(n: usize, most: usize) -> impl Iterator<Item = Range<usize>> {
    (0..n).step_by(most.max(1)).map(move |first| first..n.min(first + most))
}

/// Groups with these slots, the cells of each one after the other.
fn together(device: &CudaDevice, slots: &Table<u32>, values: Pointer<f64>) -> RootMesh {
    RootMesh { slots: slots.on(device), values, row: 0, plane: 0, groups: [0; 2], first: 0 }
}

/// The source of groups with these slots, one after the other.
pub(super) fn gather<T: Real>(
    device: &CudaDevice,
    slots: &Table<u32>,
    source: &PoissonSource<T>,
    values: &mut Buffer<f64>,
) {
    let mesh = together(device, slots, values.pointer());
    // SAFETY: the parameters are the kernel's; the slots are those of the pools and the array has room for as many
    // groups, checked by the caller.
    unsafe {
        launch!(device, T, "root_source", slots.len(), GROUP_THREADS, 0; DeviceSource::new(source), mesh);
    }
}

fn scatter<T: Real>(device: &CudaDevice, groups: usize, mesh: RootMesh, potential: &Buffer<T>) {
    // SAFETY: the parameters are the kernel's; the slots are those of the pool, one for each group of the mesh, checked
    // by the caller.
    unsafe {
        launch!(device, T, "root_potential", groups, GROUP_THREADS, 0; mesh, potential.pointer());
    }
}
