//! ∇²φ = source on the root mesh, periodic or isolated, by Fourier transforms with the Green's function of the 7-point
//! operator (paper, section 2.3; Hockney & Eastwood, *Computer Simulation Using Particles*, section 6-5-4).
//!
//! | file | what it holds |
//! |---|---|
//! | `mod.rs` | the operation: shapes, dispatch |
//! | `cpu.rs` | the transforms, a plane at a time |
//! | `cuda.rs`, `cufft.rs` | the same on a GPU, by a library that is opened at run time |
//! | `lattice_green.rs` | the Green's function of an isolated source |

mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
#[cfg(feature = "cuda")]
pub(crate) mod cufft;
mod lattice_green;
#[cfg(all(test, feature = "cuda"))]
mod tests;

use crate::buffer::Buffer;
use crate::device::Device;
use crate::error::KernelError;
use crate::layout::{GROUP, GROUP_CELLS};
use crate::poisson_source::PoissonSource;
use crate::real::Real;
use crate::table::Table;

/// The library that transforms on a GPU, and its version: part of the class within which bits are the same.
#[cfg(feature = "cuda")]
pub(crate) fn cuda_fft_name() -> String {
    match cufft::version() {
        Some(version) => format!("cufft {version}"),
        None => format!("no cufft: rustfft 6.4 {} on the host", crate::isa::name()),
    }
}

/// Plans and work space for one root mesh. Owned by the caller.
#[derive(Debug)]
pub struct RootPoisson {
    /// Groups along each axis.
    groups: [usize; 3],
    work: Work,
}

/// On the device that it was made for.
#[derive(Debug)]
enum Work {
    Cpu(Box<cpu::Work>),
    #[cfg(feature = "cuda")]
    Cuda(Box<cuda::Work>),
}

impl RootPoisson {
    /// Plans transforms for a periodic root level of `groups` groups along x, y, z.
    ///
    /// # Errors
    /// [`KernelError::OutOfMemory`] on a GPU.
    pub fn new(device: &Device, groups: [usize; 3]) -> Result<Self, KernelError> {
        let cells = groups.map(|n| n * GROUP);
        let work = match device {
            Device::Cpu(_) => Work::Cpu(Box::new(cpu::Work::periodic(cells))),
            #[cfg(feature = "cuda")]
            Device::Cuda(device) => Work::Cuda(Box::new(cuda::Work::periodic(device, cells)?)),
        };
        Ok(Self { groups, work })
    }

    /// Plans transforms for an isolated root level: no mass outside, φ = 0 at infinity.
    ///
    /// The mesh is padded with as many empty cells along each axis, so that the periodic images of the transforms fall
    /// there, and the Green's function is that of the 7-point operator in empty space: inside, the discrete equation
    /// holds to round-off, as it does on the refined levels. A root cell takes 40 bytes of work space (8 periodic); on a
    /// GPU 72, and as much again while cuFFT transforms.
    ///
    /// # Errors
    /// [`KernelError::OutOfMemory`] on a GPU.
    pub fn isolated(device: &Device, groups: [usize; 3]) -> Result<Self, KernelError> {
        let cells = groups.map(|n| n * GROUP);
        let work = match device {
            Device::Cpu(device) => Work::Cpu(Box::new(device.install(|| cpu::Work::isolated(cells)))),
            #[cfg(feature = "cuda")]
            Device::Cuda(device) => Work::Cuda(Box::new(cuda::Work::isolated(device, cells)?)),
        };
        Ok(Self { groups, work })
    }

    /// Bytes that the transforms of so many groups need on a device: [`RootPoisson::bytes`], and on a GPU what cuFFT
    /// takes, as much as the mesh.
    pub fn bytes_for(device: &Device, groups: [usize; 3], isolated: bool) -> usize {
        let cells = groups.map(|n| n * GROUP);
        match device {
            Device::Cpu(_) => cpu::Work::bytes_for(cells, isolated),
            #[cfg(feature = "cuda")]
            Device::Cuda(_) => cuda::Work::bytes_for(cells, isolated),
        }
    }

    /// Bytes of work space.
    pub fn bytes(&self) -> usize {
        match &self.work {
            Work::Cpu(work) => work.bytes(),
            #[cfg(feature = "cuda")]
            Work::Cuda(work) => work.bytes(),
        }
    }

    /// Bytes that a solve takes on the device for itself: where the root is transformed on the host, its source and its
    /// potential.
    pub fn working_bytes(&self) -> usize {
        match &self.work {
            Work::Cpu(_) => 0,
            #[cfg(feature = "cuda")]
            Work::Cuda(work) => work.working_bytes(),
        }
    }

    /// Solves ∇²φ = source on cells of width `h`. Periodic: of source − ⟨source⟩, with ⟨φ⟩ = 0.
    ///
    /// Computed in double precision, on the host by one-dimensional transforms of a fixed plan, each of one line: the
    /// bits do not depend on the number of threads. In Fourier space φ_k = −h² source_k / Σ_axes (2 − 2cos(2π k/N)) if periodic;
    /// else φ_k = h² G_k source_k on the padded mesh.
    ///
    /// - `slots`: slot of each root group, `[groups z, y, x]`.
    /// - `potential`: `[slots, 16, 16, 16]`; the root's slots are overwritten.
    ///
    /// # Panics
    /// If `slots` has the wrong length, names a slot twice, a pool is too short, or the device is another than the
    /// plans' one.
    pub fn solve<T: Real>(
        &mut self,
        device: &Device,
        slots: &Table<u32>,
        source: &PoissonSource<T>,
        h: f64,
        potential: &mut Buffer<T>,
    ) {
        assert_eq!(slots.len(), self.groups.iter().product::<usize>(), "one slot for each root group");
        let most = slots.iter().max().map_or(0, |&slot| slot as usize + 1);
        assert!(source.slots() >= most && potential.len() >= most * GROUP_CELLS, "the pools have no slot {most}");
        let mut sorted = slots.to_vec();
        sorted.sort_unstable();
        assert!(sorted.windows(2).all(|w| w[0] != w[1]), "a slot holds two root groups");
        match (device, &mut self.work) {
            (Device::Cpu(device), Work::Cpu(work)) => {
                device.install(|| work.solve(slots, source, h, potential.host_mut()));
            }
            #[cfg(feature = "cuda")]
            (Device::Cuda(_), Work::Cuda(work)) => work.solve(slots, source, h, potential),
            #[cfg(feature = "cuda")]
            _ => panic!("planned for another device"),
        }
    }
}
