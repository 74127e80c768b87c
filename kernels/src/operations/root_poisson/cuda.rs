//! Root transforms on a GPU: by cuFFT, or on the host where that library is missing.
//!
//! Layers and bands are transformed in parts that stay in the GPU's cache, in a work space between which and the blocks
//! slabs are copied. A rank that has all of the mesh needs no blocks to send: what it keeps instead is the mesh
//! `[z, ky, kx]`, its layers are transformed where they lie, and so are its bands if cuFFT can do it with the same bits and
//! nothing is padded.

use super::cpu;
use super::lattice_green::LatticeGreen;
use super::periodic_green::PeriodicGreen;
use super::plans::{Plans, Slabs};
use super::shape::Shape;
use crate::device::buffer::Buffer;
use crate::device::cuda::array::{Array, Pointer};
use crate::device::cuda::cufft::{self, Direction};
use crate::device::cuda::{CudaDevice, launch};
use crate::device::device_table::DeviceTable;
use crate::device::error::KernelError;
use crate::layout::{GROUP, GROUP_CELLS};
use crate::level::level_topology::NONE;
use crate::operations::poisson_source::{DeviceSource, PoissonSource};
use crate::real::Real;
use std::ops::Range;

/// Threads of a block that copies a group or a slab, and of one that has a row of modes.
const GROUP_THREADS: u32 = 256;
const ROW_THREADS: u32 = 64;

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

/// Places of slabs in blocks: the `Places` of `root_poisson.cu`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Places {
    places: Pointer<u32>,
    first: u32,
    all: u32,
}

/// What divides by the Laplacian in Fourier space.
enum Green {
    /// The sums along x, y and z, one after the other, then the factors.
    Periodic(Array<f64>),
    /// The transform of the lattice's Green's function, `[rows, N_z + 1, N_x + 1]`, and the |ky| of its first row.
    Isolated(Array<f64>, usize),
}

impl Green {
    fn new(device: &CudaDevice, shape: &Shape) -> Result<Self, KernelError> {
        if !shape.isolated {
            return Self::periodic(device, &PeriodicGreen::of_seven_points(shape.cells()));
        }
        let green = device.host().install(|| LatticeGreen::new(shape.cells(), shape.wave_numbers()));
        Ok(Self::Isolated(Array::of(device, green.values())?, green.rows().start))
    }

    fn periodic(device: &CudaDevice, green: &PeriodicGreen) -> Result<Self, KernelError> {
        Ok(Self::Periodic(Array::of(device, &[green.sums.concat(), green.factors.concat()].concat())?))
    }

    fn bytes_for(shape: &Shape) -> usize {
        match shape.isolated {
            false => 2 * shape.cells().iter().sum::<usize>() * size_of::<f64>(),
            true => LatticeGreen::bytes_for(shape.cells(), shape.wave_numbers()),
        }
    }

    fn bytes(&self) -> usize {
        let (Self::Periodic(values) | Self::Isolated(values, _)) = self;
        values.len() * size_of::<f64>()
    }
}

/// The device that transforms: the GPU with cuFFT, the host without.
enum TransformsOn {
    Device(Box<OnDevice>),
    Host(Box<cpu::Transforms>),
}

/// Plans, Green's function and work space.
pub(super) struct Transforms {
    device: CudaDevice,
    shape: Shape,
    on: TransformsOn,
}

impl std::fmt::Debug for Transforms {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let plans = match &self.on {
            TransformsOn::Device(on) => format!("{:?}", on.plans),
            TransformsOn::Host(_) => "on the host".into(),
        };
        write!(f, "Transforms({:?} on {:?}: {plans})", self.shape, self.device)
    }
}

impl Transforms {
    pub(super) fn new(device: &CudaDevice, shape: Shape) -> Result<Self, KernelError> {
        let on = match cufft::is_there() {
            true => TransformsOn::Device(Box::new(OnDevice::new(device, shape)?)),
            false => TransformsOn::Host(Box::new(device.host().install(|| cpu::Transforms::new(shape)))),
        };
        Ok(Self { device: device.clone(), shape, on })
    }

    /// At most: less if no work space is needed.
    pub(super) fn bytes_for(shape: Shape) -> usize {
        let sent = if shape.is_alone() { 0 } else { shape.sent_slabs().count() };
        let tables = (sent + shape.bands(shape.rank).len() * shape.lengths()[2]) * size_of::<u32>();
        let work = shape.values_at_once() * size_of::<f64>();
        Green::bytes_for(&shape) + tables + work + Plans::bytes_for(&shape)
    }

    pub(super) fn bytes(&self) -> usize {
        match &self.on {
            TransformsOn::Device(on) => on.bytes(),
            TransformsOn::Host(transforms) => transforms.bytes(),
        }
    }

    pub(super) fn working_bytes(&self) -> usize {
        match &self.on {
            TransformsOn::Device(_) => 0,
            TransformsOn::Host(_) => self.shape.own_groups() * GROUP_CELLS * size_of::<f64>(),
        }
    }

    pub(super) fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Takes another Green's function of a periodic mesh.
    pub(super) fn take(&mut self, green: PeriodicGreen) -> Result<(), KernelError> {
        match &mut self.on {
            TransformsOn::Device(on) => on.green = Green::periodic(&on.device, &green)?,
            TransformsOn::Host(host) => host.take(green),
        }
        Ok(())
    }

    pub(super) fn are_on_host(&self) -> bool {
        matches!(self.on, TransformsOn::Host(_))
    }

    pub(super) fn forward<T: Real>(
        &self,
        slots: &DeviceTable<u32>,
        source: &PoissonSource<T>,
        blocks: &mut Buffer<f64>,
    ) {
        match &self.on {
            TransformsOn::Device(on) => on.forward(slots, source, blocks),
            TransformsOn::Host(transforms) => {
                let mut values = Buffer::Cuda(self.room_for_groups());
                gather(&self.device, slots, source, &mut values);
                let source = Buffer::Cpu(values.to_host());
                let field = PoissonSource::Field(&source);
                self.on_host(blocks, |blocks| transforms.forward(&self.in_order(), &field, blocks));
            }
        }
    }

    pub(super) fn solve_columns(&self, blocks: &mut Buffer<f64>, h: f64) {
        match &self.on {
            TransformsOn::Device(on) => on.solve_columns(blocks, h),
            TransformsOn::Host(transforms) => self.on_host(blocks, |blocks| transforms.solve_columns(blocks, h)),
        }
    }

    pub(super) fn backward<T: Real>(&self, slots: &DeviceTable<u32>, blocks: &mut Buffer<f64>, potential: &Buffer<T>) {
        match &self.on {
            TransformsOn::Device(on) => on.backward(slots, blocks, potential),
            TransformsOn::Host(transforms) => {
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
        Array::work_space(&self.device, self.shape.own_groups() * GROUP_CELLS)
    }
}

/// What cuFFT transforms, and with what.
struct OnDevice {
    device: CudaDevice,
    shape: Shape,
    plans: Plans,
    green: Green,
    /// Layers `[z, y, x]`, rows padded to those of modes; or bands as the plans have them. Empty if all is transformed
    /// where it lies.
    work: Array<f64>,
    /// Where the slabs `[z, band]` of this rank's planes lie in the blocks that it sends; empty if they are the mesh.
    sent: DeviceTable<u32>,
    /// Where the slabs `[z, band]` of this rank's bands lie in the blocks that it receives; NONE for the padding.
    received: DeviceTable<u32>,
}

impl OnDevice {
    fn new(device: &CudaDevice, shape: Shape) -> Result<Self, KernelError> {
        let plans = Plans::new(device, &shape)?;
        let (all, bands, nz) = (shape.all_bands(), shape.bands(shape.rank).len(), shape.lengths()[2]);
        let mut sent = Vec::new();
        let mut received = vec![NONE; bands * nz];
        if shape.is_alone() {
            let slabs = received.iter_mut().zip(0..).take(shape.sent_slabs().count());
            slabs.for_each(|(place, slab)| *place = slab);
        } else {
            sent = vec![NONE; shape.sent_slabs().count()];
            for (slab, [band, plane]) in shape.sent_slabs().enumerate() {
                sent[plane * all + band] = slab as u32;
            }
            for (slab, [band, plane]) in shape.received_slabs().enumerate() {
                received[plane * bands + band] = slab as u32;
            }
        }
        let work = if plans.lines_stay() { 0 } else { shape.values_at_once() };
        Ok(Self {
            device: device.clone(),
            shape,
            green: Green::new(device, &shape)?,
            work: Array::room(device, work)?,
            plans,
            sent: sent.into(),
            received: received.into(),
        })
    }

    fn bytes(&self) -> usize {
        let tables = self.sent.bytes() + self.received.bytes();
        self.green.bytes() + tables + self.work.len() * size_of::<f64>() + self.plans.bytes()
    }

    fn forward<T: Real>(&self, slots: &DeviceTable<u32>, source: &PoissonSource<T>, blocks: &Buffer<f64>) {
        let Self { device, shape, plans, .. } = self;
        for layers in plans.layers_in_parts(Direction::Forward, shape.layers(shape.rank).len()) {
            let (mesh, first) = self.mesh(&layers, blocks);
            if shape.isolated {
                mesh.clear_part(first..first + layers.len() * shape.layer_values());
            }
            let (groups, cells) = self.cells(slots, &layers, mesh.pointer_to(first));
            // SAFETY: the parameters are the kernel's; the slots are those of the pools, one for each group of the
            // layers, which the mesh has room for.
            unsafe {
                launch!(device, T, "root_source", groups, GROUP_THREADS, 0; DeviceSource::new(source), cells);
            }
            plans.layers(Direction::Forward, mesh, first, layers.len());
            if !shape.is_alone() {
                self.copy_planes("root_spread", &layers, blocks);
            }
        }
    }

    fn solve_columns(&self, blocks: &Buffer<f64>, h: f64) {
        let Self { shape, plans, work, .. } = self;
        for bands in plans.bands_in_parts(shape.bands(shape.rank).len()) {
            let (lines, first) = match plans.lines_stay() {
                true => (on_device(blocks), 2 * bands.start * shape.slab()),
                false => (work, 0),
            };
            if !plans.lines_stay() {
                self.copy_bands("root_collect", &bands, blocks);
            }
            plans.bands(Direction::Forward, lines, first, bands.len());
            self.multiply(&bands, lines.pointer_to(first), h);
            plans.bands(Direction::Backward, lines, first, bands.len());
            if !plans.lines_stay() {
                self.copy_bands("root_spread", &bands, blocks);
            }
        }
    }

    fn backward<T: Real>(&self, slots: &DeviceTable<u32>, blocks: &Buffer<f64>, potential: &Buffer<T>) {
        let Self { device, shape, plans, .. } = self;
        for layers in plans.layers_in_parts(Direction::Backward, shape.layers(shape.rank).len()) {
            if !shape.is_alone() {
                self.copy_planes("root_collect", &layers, blocks);
            }
            let (mesh, first) = self.mesh(&layers, blocks);
            plans.layers(Direction::Backward, mesh, first, layers.len());
            let (groups, cells) = self.cells(slots, &layers, mesh.pointer_to(first));
            scatter(device, groups, cells, potential);
        }
    }

    /// Where these layers, counted from the rank's first, are transformed: an array, and their first value in it.
    fn mesh<'a>(&'a self, layers: &Range<usize>, blocks: &'a Buffer<f64>) -> (&'a Array<f64>, usize) {
        match self.shape.is_alone() {
            true => (on_device(blocks), layers.start * self.shape.layer_values()),
            false => (&self.work, 0),
        }
    }

    /// The groups of some layers in a mesh that begins with them, and how many they are.
    fn cells(&self, slots: &DeviceTable<u32>, layers: &Range<usize>, values: Pointer<f64>) -> (usize, RootMesh) {
        let groups = self.shape.cells().map(|n| n / GROUP);
        let row = 2 * self.shape.modes();
        let mesh = RootMesh {
            slots: slots.on(&self.device),
            values,
            row: row as u64,
            plane: (row * self.shape.lengths()[1]) as u64,
            groups: [groups[0] as u32, groups[1] as u32],
            first: (layers.start * groups[0] * groups[1]) as u32,
        };
        (layers.len() * groups[0] * groups[1], mesh)
    }

    /// Copies the slabs of some layers between the start of the work space and blocks.
    fn copy_planes(&self, kernel: &str, layers: &Range<usize>, blocks: &Buffer<f64>) {
        let all = self.shape.all_bands();
        let first = (layers.start * GROUP * all) as u32;
        let places = Places { places: self.sent.on(&self.device), first, all: all as u32 };
        self.copy(kernel, Slabs::of_planes(&self.shape), layers.len() * GROUP * all, places, blocks);
    }

    /// Copies those of some bands, which lie in the work space as the plans have them.
    fn copy_bands(&self, kernel: &str, bands: &Range<usize>, blocks: &Buffer<f64>) {
        let Self { device, shape, plans, received, .. } = self;
        let all = shape.bands(shape.rank).len() as u32;
        let places = Places { places: received.on(device), first: bands.start as u32, all };
        self.copy(kernel, plans.slabs(shape, bands.len()), bands.len() * shape.lengths()[2], places, blocks);
    }

    fn copy(&self, kernel: &str, slabs: Slabs, count: usize, places: Places, blocks: &Buffer<f64>) {
        let Self { device, work, .. } = self;
        // SAFETY: the parameters are the kernels'; the work space has room for so many slabs, and the blocks hold the
        // places, checked by the caller.
        unsafe {
            launch!(device, f64, kernel, count, GROUP_THREADS, 0; work.pointer(), slabs, blocks.pointer(), places);
        }
    }

    /// Multiplies the modes of some bands by the Green's function; the transforms' norm is in it.
    fn multiply(&self, bands: &Range<usize>, lines: Pointer<f64>, h: f64) {
        let Self { device, shape, plans, green, .. } = self;
        let [nx, ny, nz] = shape.lengths();
        let (slabs, rows) = (plans.slabs(shape, bands.len()), bands.len() * nz * GROUP);
        let first = (shape.wave_numbers().start + bands.start * GROUP) as u32;
        // SAFETY: the parameters are the kernels'; the lines have these slabs, the Green's function was made for their
        // wave numbers.
        unsafe {
            match green {
                Green::Periodic(tables) => {
                    let factor = -h * h / (nx * ny * nz) as f64;
                    launch!(device, f64, "root_periodic", rows, ROW_THREADS, 0;
                        lines, slabs, tables.pointer(), [nx, ny, nz].map(|n| n as u32), first, factor);
                }
                Green::Isolated(green, first_row) => {
                    let factor = h * h;
                    launch!(device, f64, "root_isolated", rows, ROW_THREADS, 0;
                        lines, slabs, green.pointer(), [ny / 2, nz / 2].map(|n| n as u32), first, *first_row as u32,
                        factor);
                }
            }
        }
    }
}

/// Blocks of a rank whose transforms are computed on a GPU.
fn on_device(blocks: &Buffer<f64>) -> &Array<f64> {
    match blocks {
        Buffer::Cuda(array) => array,
        Buffer::Cpu(_) => panic!("blocks of the host where a GPU transforms"),
    }
}

/// Groups with these slots, the cells of each one after the other.
fn together(device: &CudaDevice, slots: &DeviceTable<u32>, values: Pointer<f64>) -> RootMesh {
    RootMesh { slots: slots.on(device), values, row: 0, plane: 0, groups: [0; 2], first: 0 }
}

/// The source of groups with these slots, one after the other.
pub(super) fn gather<T: Real>(
    device: &CudaDevice,
    slots: &DeviceTable<u32>,
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
