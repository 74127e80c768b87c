//! A root solve by many ranks, each of which holds a part of the mesh. Who calls it moves blocks between them.

#[cfg(feature = "cuda")]
use super::cuda;
use super::periodic_green::PeriodicGreen;
use super::shape::Shape;
use super::transforms::Transforms;
use crate::device::Device;
use crate::device::buffer::Buffer;
use crate::device::device_table::DeviceTable;
use crate::device::error::KernelError;
use crate::layout::GROUP_CELLS;
use crate::operations::poisson_source::PoissonSource;
use crate::real::Real;
use rayon::prelude::*;
use std::ops::Range;

/// Plans and work space of one rank. The bits of the potential are those of [`super::RootPoisson`] for any number of
/// ranks, one included.
///
/// A solve: each rank makes the [`root_source`] of the groups that it has and sends it to the ranks of their layers;
/// [`RootShare::forward`]; block n of what that leaves goes to rank n; [`RootShare::solve_columns`] on the blocks from
/// ranks 0, 1, … in order; they go back to where they came from; [`RootShare::backward`]; the potential goes to the
/// ranks that have the groups.
///
/// Blocks are double precision: `[bands of the receiver, planes of the sender, 16, modes, 2]`, a band being 16 rows of
/// wave numbers along y. That of a rank alone may be in another order.
#[derive(Debug)]
pub struct RootShare {
    pub(super) transforms: Transforms,
    /// Slots of the groups of the rank's layers where only these are.
    in_order: DeviceTable<u32>,
}

impl RootShare {
    /// Plans the part of `rank` in the transforms of a root level of `groups` groups along x, y, z.
    ///
    /// # Errors
    /// [`KernelError::OutOfMemory`].
    ///
    /// # Panics
    /// If there is no such rank.
    pub fn new(
        device: &Device,
        groups: [usize; 3],
        isolated: bool,
        rank: usize,
        ranks: usize,
    ) -> Result<Self, KernelError> {
        Self::of(device, Shape::new(groups, isolated, rank, ranks))
    }

    pub(super) fn of(device: &Device, shape: Shape) -> Result<Self, KernelError> {
        let in_order = (0..shape.own_groups() as u32).collect();
        Ok(Self { transforms: Transforms::new(device, shape)?, in_order })
    }

    /// As [`super::RootPoisson::serve_particles`].
    ///
    /// # Errors
    /// [`KernelError::OutOfMemory`].
    pub fn serve_particles(&mut self, share: f64) -> Result<(), KernelError> {
        let green = PeriodicGreen::for_particles(self.transforms.shape().cells(), share);
        self.transforms.take(green)
    }

    /// Layers of groups along z whose planes a rank transforms along x and y: spread evenly, in order; ranks beyond the
    /// number of layers have none.
    ///
    /// # Panics
    /// If there is no such rank.
    pub fn layers(groups: [usize; 3], rank: usize, ranks: usize) -> Range<usize> {
        Shape::new(groups, false, rank, ranks).layers(rank)
    }

    /// [`RootShare::bytes`] of such a share, where cuFFT's own part is an estimate.
    pub fn bytes_for(device: &Device, groups: [usize; 3], isolated: bool, rank: usize, ranks: usize) -> usize {
        Self::bytes_of(device, Shape::new(groups, isolated, rank, ranks))
    }

    pub(super) fn bytes_of(device: &Device, shape: Shape) -> usize {
        Transforms::bytes_for(device, shape) + shape.own_groups() * size_of::<u32>()
    }

    /// Bytes of work space, without the blocks.
    pub fn bytes(&self) -> usize {
        self.transforms.bytes() + self.in_order.bytes()
    }

    /// Bytes that a solve takes on the device for itself: where the root is transformed on the host, the source of the
    /// rank's layers or their potential.
    pub fn working_bytes(&self) -> usize {
        self.transforms.working_bytes()
    }

    /// Values of the block that rank `from` sends rank `to` before lines along z are transformed, and gets back.
    ///
    /// # Panics
    /// If there is no such rank.
    pub fn block_values(&self, from: usize, to: usize) -> usize {
        self.transforms.shape().block_values(from, to)
    }

    /// Values of a slab: the modes of 16 rows of a plane. Blocks are whole slabs.
    pub fn slab_values(&self) -> usize {
        2 * self.transforms.shape().slab()
    }

    /// Values of the blocks that this rank sends to all ranks: about one for each cell of its layers, four if isolated.
    pub fn sent_values(&self) -> usize {
        self.transforms.shape().sent_values()
    }

    /// Values of the blocks that this rank receives from all ranks.
    pub fn received_values(&self) -> usize {
        self.transforms.shape().received_values()
    }

    /// Transforms the rank's planes along x and y.
    ///
    /// - `source`: of the groups of the rank's layers, `[groups z, y, x, 16, 16, 16]`.
    /// - `blocks`: at least [`RootShare::sent_values`]; the blocks for ranks 0, 1, … one after the other, overwritten.
    ///
    /// # Panics
    /// If an array is too short, or the device is another than the plans' one.
    pub fn forward(&mut self, device: &Device, source: &Buffer<f64>, blocks: &mut Buffer<f64>) {
        self.transforms.forward(device, &self.in_order, &PoissonSource::Field(source), blocks);
    }

    /// Transforms along z, multiplies by the Green's function of cells of width `h` and transforms back.
    ///
    /// - `blocks`: at least [`RootShare::received_values`]; the blocks from ranks 0, 1, … one after the other, each to
    ///   go back to where it came from.
    ///
    /// # Panics
    /// As [`RootShare::forward`].
    pub fn solve_columns(&mut self, device: &Device, blocks: &mut Buffer<f64>, h: f64) {
        self.transforms.solve_columns(device, blocks, h);
    }

    /// Transforms the rank's planes back.
    ///
    /// - `blocks`: those of [`RootShare::forward`], come back; they are used up.
    /// - `potential`: of the groups of the rank's layers, `[groups z, y, x, 16, 16, 16]`, rounded.
    ///
    /// # Panics
    /// As [`RootShare::forward`].
    pub fn backward<T: Real>(&mut self, device: &Device, blocks: &mut Buffer<f64>, potential: &mut Buffer<T>) {
        self.transforms.backward(device, &self.in_order, blocks, potential);
    }
}

/// The source in the groups with these slots, as [`RootShare::forward`] wants it: `[groups, 16, 16, 16]`.
///
/// # Panics
/// If `values` is shorter or a slot is beyond a pool.
pub fn root_source<T: Real>(
    device: &Device,
    slots: &DeviceTable<u32>,
    source: &PoissonSource<T>,
    values: &mut Buffer<f64>,
) {
    let most = slots.iter().max().map_or(0, |&slot| slot as usize + 1);
    assert!(source.slots() >= most, "a pool of {} slots has no slot {}", source.slots(), most - 1);
    assert!(values.len() >= slots.len() * GROUP_CELLS, "{} groups in an array of {}", slots.len(), values.len());
    match device {
        Device::Cpu(cpu) => cpu.install(|| {
            let groups = values.host_mut().par_chunks_exact_mut(GROUP_CELLS);
            groups.zip(slots.par_iter()).for_each(|(group, &slot)| source.fill(slot, 0, 1.0, group));
        }),
        #[cfg(feature = "cuda")]
        Device::Cuda(device) => cuda::gather(device, slots, source, values),
    }
}
