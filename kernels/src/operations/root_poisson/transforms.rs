//! The three parts of a root solve by one rank, on the device that they were planned for.

use super::cpu;
#[cfg(feature = "cuda")]
use super::cuda;
use super::periodic_green::PeriodicGreen;
use super::shape::Shape;
use crate::device::Device;
use crate::device::buffer::Buffer;
use crate::device::device_table::DeviceTable;
use crate::device::error::KernelError;
use crate::layout::GROUP_CELLS;
use crate::operations::poisson_source::PoissonSource;
use crate::real::Real;

/// Plans, Green's function and work space.
#[derive(Debug)]
pub(super) enum Transforms {
    Cpu(Box<cpu::Transforms>),
    #[cfg(feature = "cuda")]
    Cuda(Box<cuda::Transforms>),
}

impl Transforms {
    pub(super) fn new(device: &Device, shape: Shape) -> Result<Self, KernelError> {
        Ok(match device {
            Device::Cpu(device) => Self::Cpu(Box::new(device.install(|| cpu::Transforms::new(shape)))),
            #[cfg(feature = "cuda")]
            Device::Cuda(device) => Self::Cuda(Box::new(cuda::Transforms::new(device, shape)?)),
        })
    }

    /// Takes another Green's function of a periodic mesh.
    pub(super) fn take(&mut self, green: PeriodicGreen) -> Result<(), KernelError> {
        match self {
            Self::Cpu(transforms) => transforms.take(green),
            #[cfg(feature = "cuda")]
            Self::Cuda(transforms) => transforms.take(green)?,
        }
        Ok(())
    }

    pub(super) fn bytes_for(device: &Device, shape: Shape) -> usize {
        match device {
            Device::Cpu(_) => cpu::Transforms::bytes_for(shape),
            #[cfg(feature = "cuda")]
            Device::Cuda(_) => cuda::Transforms::bytes_for(shape),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Cpu(transforms) => transforms.bytes(),
            #[cfg(feature = "cuda")]
            Self::Cuda(transforms) => transforms.bytes(),
        }
    }

    /// Bytes that each part takes on the device for itself.
    pub(super) fn working_bytes(&self) -> usize {
        match self {
            Self::Cpu(_) => 0,
            #[cfg(feature = "cuda")]
            Self::Cuda(transforms) => transforms.working_bytes(),
        }
    }

    pub(super) fn shape(&self) -> &Shape {
        match self {
            Self::Cpu(transforms) => transforms.shape(),
            #[cfg(feature = "cuda")]
            Self::Cuda(transforms) => transforms.shape(),
        }
    }

    /// Room for so many values of blocks where this rank's transforms are computed.
    pub(super) fn blocks(&self, device: &Device, values: usize) -> Result<Buffer<f64>, KernelError> {
        match self {
            #[cfg(feature = "cuda")]
            Self::Cuda(transforms) if transforms.are_on_host() => Ok(Buffer::Cpu(vec![0.0; values])),
            _ => Buffer::zeros(device, values),
        }
    }

    /// The source in the groups of the rank's layers, which have these slots, to modes of its planes, as blocks.
    pub(super) fn forward<T: Real>(
        &self,
        device: &Device,
        slots: &DeviceTable<u32>,
        source: &PoissonSource<T>,
        blocks: &mut Buffer<f64>,
    ) {
        self.check(slots, source.slots());
        check_blocks(blocks, self.shape().sent_values());
        match (device, self) {
            (Device::Cpu(device), Self::Cpu(transforms)) => {
                device.install(|| transforms.forward(slots, source, blocks.host_mut()));
            }
            #[cfg(feature = "cuda")]
            (Device::Cuda(_), Self::Cuda(transforms)) => transforms.forward(slots, source, blocks),
            #[cfg(feature = "cuda")]
            _ => panic!("planned for another device"),
        }
    }

    /// Along z, times the Green's function, and back: blocks that were received, in place.
    pub(super) fn solve_columns(&self, device: &Device, blocks: &mut Buffer<f64>, h: f64) {
        check_blocks(blocks, self.shape().received_values());
        match (device, self) {
            (Device::Cpu(device), Self::Cpu(transforms)) => {
                device.install(|| transforms.solve_columns(blocks.host_mut(), h));
            }
            #[cfg(feature = "cuda")]
            (Device::Cuda(_), Self::Cuda(transforms)) => transforms.solve_columns(blocks, h),
            #[cfg(feature = "cuda")]
            _ => panic!("planned for another device"),
        }
    }

    /// The blocks that were sent, come back, to the potential in these slots. They are overwritten.
    pub(super) fn backward<T: Real>(
        &self,
        device: &Device,
        slots: &DeviceTable<u32>,
        blocks: &mut Buffer<f64>,
        potential: &mut Buffer<T>,
    ) {
        self.check(slots, potential.len() / GROUP_CELLS);
        check_blocks(blocks, self.shape().sent_values());
        match (device, self) {
            (Device::Cpu(device), Self::Cpu(transforms)) => {
                device.install(|| transforms.backward(slots, blocks.host_mut(), potential.host_mut()));
            }
            #[cfg(feature = "cuda")]
            (Device::Cuda(_), Self::Cuda(transforms)) => transforms.backward(slots, blocks, potential),
            #[cfg(feature = "cuda")]
            _ => panic!("planned for another device"),
        }
    }

    /// One slot for each of the rank's groups, none twice, all in a pool of so many.
    fn check(&self, slots: &DeviceTable<u32>, pool: usize) {
        assert_eq!(slots.len(), self.shape().own_groups(), "one slot for each root group");
        let mut sorted = slots.to_vec();
        sorted.sort_unstable();
        let most = sorted.last().map_or(0, |&slot| slot as usize + 1);
        assert!(pool >= most, "a pool of {pool} slots has no slot {}", most - 1);
        assert!(sorted.windows(2).all(|w| w[0] != w[1]), "a slot holds two root groups");
    }
}

fn check_blocks(blocks: &Buffer<f64>, values: usize) {
    assert!(blocks.len() >= values, "blocks of {values} values in an array of {}", blocks.len());
}
