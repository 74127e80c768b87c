//! ∇²φ = source on the root mesh, periodic or isolated, by Fourier transforms with the Green's function of the 7-point
//! operator (paper, section 2.3; Hockney & Eastwood, *Computer Simulation Using Particles*, section 6-5-4).
//!
//! | file | what it holds |
//! |---|---|
//! | `mod.rs` | the operation, by one rank that has the whole mesh |
//! | `share.rs` | the same by many ranks, each of which has a part |
//! | `shape.rs` | which rank holds what |
//! | `transforms.rs` | the parts of a solve: shapes, dispatch |
//! | `cpu.rs` | the transforms, a line at a time |
//! | `cuda.rs` | the same on a GPU |
//! | `plans.rs` | cuFFT's plans for them |
//! | `periodic_green.rs` | what divides by the Laplacian of a periodic mesh, with particles and without |
//! | `lattice_green.rs` | the Green's function of an isolated source |

mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
mod lattice_green;
mod periodic_green;
#[cfg(feature = "cuda")]
mod plans;
mod shape;
mod share;
#[cfg(test)]
mod tests;
mod transforms;

use crate::device::Device;
use crate::device::buffer::Buffer;
use crate::device::device_table::DeviceTable;
use crate::device::error::KernelError;
use crate::operations::poisson_source::PoissonSource;
use crate::real::Real;
use periodic_green::PeriodicGreen;
use shape::Shape;
pub use share::{RootShare, root_source};
use transforms::Transforms;

/// Plans and work space for one root mesh. Owned by the caller.
#[derive(Debug)]
pub struct RootPoisson {
    transforms: Transforms,
    /// The modes: what the only rank sends itself.
    blocks: Buffer<f64>,
}

impl RootPoisson {
    /// Plans transforms for a periodic root level of `groups` groups along x, y, z.
    ///
    /// # Errors
    /// [`KernelError::OutOfMemory`].
    pub fn new(device: &Device, groups: [usize; 3]) -> Result<Self, KernelError> {
        Self::of(device, Shape::whole(groups, false))
    }

    /// Plans transforms for an isolated root level: no mass outside, φ = 0 at infinity.
    ///
    /// The mesh is padded with as many empty cells along each axis, so that the periodic images of the transforms fall
    /// there, and the Green's function is that of the 7-point operator in empty space: inside, the discrete equation
    /// holds to round-off, as it does on the refined levels. A root cell takes 40 bytes of work space (8 periodic).
    ///
    /// # Errors
    /// [`KernelError::OutOfMemory`].
    pub fn isolated(device: &Device, groups: [usize; 3]) -> Result<Self, KernelError> {
        Self::of(device, Shape::whole(groups, true))
    }

    /// From now on for a periodic mesh with particles, which have this share of all matter: the Green's function makes up, as
    /// far as it can, for what central differences and clouds in cells lose of the force
    /// (`periodic_green.rs`; Hockney & Eastwood, section 8-3-3).
    ///
    /// # Errors
    /// [`KernelError::OutOfMemory`].
    pub fn serve_particles(&mut self, share: f64) -> Result<(), KernelError> {
        let green = PeriodicGreen::for_particles(self.transforms.shape().cells(), share);
        self.transforms.take(green)
    }

    fn of(device: &Device, shape: Shape) -> Result<Self, KernelError> {
        let transforms = Transforms::new(device, shape)?;
        let blocks = transforms.blocks(device, shape.sent_values())?;
        Ok(Self { transforms, blocks })
    }

    /// Bytes that the transforms of so many groups need on a device: [`RootPoisson::bytes`], where cuFFT's own part is
    /// an estimate.
    pub fn bytes_for(device: &Device, groups: [usize; 3], isolated: bool) -> usize {
        Self::bytes_of(device, Shape::whole(groups, isolated))
    }

    fn bytes_of(device: &Device, shape: Shape) -> usize {
        Transforms::bytes_for(device, shape) + shape.sent_values() * size_of::<f64>()
    }

    /// Bytes of work space.
    pub fn bytes(&self) -> usize {
        self.transforms.bytes() + self.blocks.len() * size_of::<f64>()
    }

    /// Bytes that a solve takes on the device for itself: where the root is transformed on the host, its source or its
    /// potential.
    pub fn working_bytes(&self) -> usize {
        self.transforms.working_bytes()
    }

    /// Solves ∇²φ = source on cells of width `h`. Periodic: of source − ⟨source⟩, with ⟨φ⟩ = 0.
    ///
    /// Computed in double precision, on the host by one-dimensional transforms of a fixed plan, each of one line: the
    /// bits do not depend on the number of threads, nor of ranks ([`RootShare`]). In Fourier space
    /// φ_k = −h² source_k / Σ_axes (2 − 2cos(2π k/N)) if periodic; else φ_k = h² G_k source_k on the padded mesh.
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
        slots: &DeviceTable<u32>,
        source: &PoissonSource<T>,
        h: f64,
        potential: &mut Buffer<T>,
    ) {
        let Self { transforms, blocks } = self;
        transforms.forward(device, slots, source, blocks);
        transforms.solve_columns(device, blocks, h);
        transforms.backward(device, slots, blocks, potential);
    }
}
