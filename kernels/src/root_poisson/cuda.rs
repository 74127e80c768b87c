//! Root transforms on a GPU: by cuFFT on the whole mesh at once, or on the host where that library is missing.

use super::cpu::{self, eigenvalues};
use super::cufft::{NoPlan, Plans};
use super::lattice_green::LatticeGreen;
use crate::buffer::Buffer;
use crate::cuda::array::{Array, Pointer};
use crate::cuda::{CudaDevice, launch};
use crate::error::KernelError;
use crate::layout::{GROUP, GROUP_CELLS};
use crate::poisson_source::{DeviceSource, PoissonSource};
use crate::real::Real;
use crate::table::Table;

/// Threads of a block that copies a group, and of one that has a row of modes.
const GROUP_THREADS: u32 = 256;
const ROW_THREADS: u32 = 64;

/// How the root's groups lie in the mesh: the `RootMesh` of `root_poisson.cu`.
#[derive(Clone, Copy)]
#[repr(C)]
struct RootMesh {
    slots: Pointer<u32>,
    values: Pointer<f64>,
    row: u64,
    plane: u64,
    groups: [u32; 2],
}

/// What divides by the Laplacian in Fourier space.
enum Green {
    /// The eigenvalues along x, y and z, one after the other.
    Periodic(Array<f64>),
    /// The transform of the lattice's Green's function, `[N_y + 1, N_z + 1, N_x + 1]`.
    Isolated(Array<f64>),
}

/// Where the transforms are done.
enum Transforms {
    Device {
        plans: Plans,
        green: Green,
        /// `[z, y, x]`, padded as the transforms want it; in Fourier space `[kz, ky, kx]`.
        mesh: Array<f64>,
    },
    Host(Box<cpu::Work>),
}

/// Plans, Green's function and mesh.
pub(super) struct Work {
    device: CudaDevice,
    /// Cells along x, y, z.
    cells: [usize; 3],
    /// Lengths of the transforms: the cells, or twice as many, the second half zero.
    lengths: [usize; 3],
    transforms: Transforms,
}

impl std::fmt::Debug for Work {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Work({:?} cells on {:?})", self.cells, self.device)
    }
}

impl Work {
    pub(super) fn periodic(device: &CudaDevice, cells: [usize; 3]) -> Result<Self, KernelError> {
        let green = || Ok(Green::Periodic(Array::of(device, &cells.map(eigenvalues).concat())?));
        Self::new(device, cells, cells, green, cpu::Work::periodic)
    }

    pub(super) fn isolated(device: &CudaDevice, cells: [usize; 3]) -> Result<Self, KernelError> {
        let green = || {
            let green = device.host().install(|| LatticeGreen::new(cells));
            Ok(Green::Isolated(Array::of(device, green.values())?))
        };
        Self::new(device, cells, cells.map(|n| 2 * n), green, |cells| {
            device.host().install(|| cpu::Work::isolated(cells))
        })
    }

    fn new(
        device: &CudaDevice,
        cells: [usize; 3],
        lengths: [usize; 3],
        green: impl FnOnce() -> Result<Green, KernelError>,
        on_host: impl FnOnce([usize; 3]) -> cpu::Work,
    ) -> Result<Self, KernelError> {
        let values = mesh_values(lengths);
        let transforms = match Plans::new(device, lengths) {
            Ok(plans) => Transforms::Device { plans, green: green()?, mesh: Array::room(device, values)? },
            Err(NoPlan::NoLibrary) => Transforms::Host(Box::new(on_host(cells))),
            Err(NoPlan::OutOfMemory) => {
                let bytes = values * size_of::<f64>();
                return Err(KernelError::OutOfMemory { device: device.name().into(), bytes });
            }
        };
        Ok(Self { device: device.clone(), cells, lengths, transforms })
    }

    /// What a mesh of so many cells needs, cuFFT's own part included.
    pub(super) fn bytes_for(cells: [usize; 3], isolated: bool) -> usize {
        match isolated {
            false => 2 * mesh_values(cells) * size_of::<f64>() + cells.iter().sum::<usize>() * size_of::<f64>(),
            true => 2 * mesh_values(cells.map(|n| 2 * n)) * size_of::<f64>() + LatticeGreen::bytes_for(cells),
        }
    }

    pub(super) fn working_bytes(&self) -> usize {
        match &self.transforms {
            Transforms::Device { .. } => 0,
            Transforms::Host(_) => 2 * self.cells.iter().product::<usize>() * size_of::<f64>(),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        match &self.transforms {
            Transforms::Device { green: Green::Periodic(green) | Green::Isolated(green), mesh, .. } => {
                (green.len() + mesh.len()) * size_of::<f64>()
            }
            Transforms::Host(work) => work.bytes(),
        }
    }

    pub(super) fn solve<T: Real>(
        &mut self,
        slots: &Table<u32>,
        source: &PoissonSource<T>,
        h: f64,
        potential: &Buffer<T>,
    ) {
        let Self { device, cells, lengths, transforms } = self;
        match transforms {
            Transforms::Device { plans, green, mesh } => {
                if lengths != cells {
                    mesh.clear(0);
                }
                let modes = lengths[0] / 2 + 1;
                let row = 2 * modes;
                let place = place(device, *cells, slots, mesh, row, row * lengths[1]);
                gather(device, slots, source, place);
                plans.forward(mesh);
                multiply(device, green, *lengths, mesh, h);
                plans.backward(mesh);
                scatter(device, slots, place, potential);
            }
            Transforms::Host(work) => {
                let mut mesh = Array::room(device, slots.len() * GROUP_CELLS).expect("room for the root's source");
                let together = place(device, *cells, slots, &mesh, 0, 0);
                gather(device, slots, source, together);
                let in_order: Vec<u32> = (0..slots.len() as u32).collect();
                let source = Buffer::Cpu(mesh.to_host());
                let mut solution = vec![0.0; source.len()];
                let field = PoissonSource::Field(&source);
                device.host().install(|| work.solve::<f64>(&in_order, &field, h, &mut solution));
                mesh.copy_start_from(&Array::of(device, &solution).expect("room for the root's potential"));
                scatter(device, slots, together, potential);
            }
        }
    }
}

/// Real values of a mesh whose rows have room for their modes.
fn mesh_values([nx, ny, nz]: [usize; 3]) -> usize {
    2 * (nx / 2 + 1) * ny * nz
}

fn place(
    device: &CudaDevice,
    cells: [usize; 3],
    slots: &Table<u32>,
    mesh: &Array<f64>,
    row: usize,
    plane: usize,
) -> RootMesh {
    RootMesh {
        slots: slots.on(device),
        values: mesh.pointer(),
        row: row as u64,
        plane: plane as u64,
        groups: [cells[0], cells[1]].map(|n| (n / GROUP) as u32),
    }
}

fn gather<T: Real>(device: &CudaDevice, slots: &Table<u32>, source: &PoissonSource<T>, mesh: RootMesh) {
    // SAFETY: the parameters are the kernel's; the slots are those of the pools, one for each group of the mesh,
    // checked by the caller.
    unsafe {
        launch!(device, T, "root_source", slots.len(), GROUP_THREADS, 0; DeviceSource::new(source), mesh);
    }
}

fn scatter<T: Real>(device: &CudaDevice, slots: &Table<u32>, mesh: RootMesh, potential: &Buffer<T>) {
    // SAFETY: as above.
    unsafe {
        launch!(device, T, "root_potential", slots.len(), GROUP_THREADS, 0; mesh, potential.pointer());
    }
}

/// Multiplies the modes by the Green's function; the transforms' norm is in it.
fn multiply(device: &CudaDevice, green: &Green, [nx, ny, nz]: [usize; 3], mesh: &Array<f64>, h: f64) {
    let modes = (nx / 2 + 1) as u32;
    let rows = ny * nz;
    // SAFETY: the parameters are the kernels'; mesh and Green's function were made for these lengths.
    unsafe {
        match green {
            Green::Periodic(eigenvalues) => {
                let factor = -h * h / (nx * ny * nz) as f64;
                launch!(device, f64, "root_periodic", rows, ROW_THREADS, 0;
                    mesh.pointer(), eigenvalues.pointer(), modes, nx as u32, ny as u32, factor);
            }
            Green::Isolated(green) => {
                let factor = h * h;
                launch!(device, f64, "root_isolated", rows, ROW_THREADS, 0;
                    mesh.pointer(), green.pointer(), modes, (ny / 2) as u32, (nz / 2) as u32, factor);
            }
        }
    }
}
