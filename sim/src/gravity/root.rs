//! The Poisson solve of the root level: by transforms, on one rank or on all that share it.

use crate::boundary::GravityBoundary;
use crate::gravity::hierarchy::Hierarchy;
use crate::parallel::communicator::Communicator;
use crate::parallel::owners::Owners;
use crate::parallel::root::SharedRoot;
use crate::parameters::{Precision, RunParameters};
use comove_kernels::messages::MessageSizes;
use comove_kernels::{Buffer, Device, KernelError, PoissonSource, Real, RootPoisson};

/// The root's solver.
#[derive(Debug)]
pub(super) enum Root<T> {
    /// Of a rank that has the whole root.
    Alone(RootPoisson),
    /// Of ranks that share it.
    Shared(Box<SharedRoot<T>>),
}

impl<T: Real> Root<T> {
    /// With the groups of the root level along x, y, z.
    pub(super) fn new(
        device: &Device,
        communicator: &Communicator,
        owners: &Owners,
        isolated: bool,
        root_groups: [u32; 3],
    ) -> Result<Self, KernelError> {
        let groups = root_groups.map(|n| n as usize);
        Ok(match communicator.size() {
            1 if isolated => Self::Alone(RootPoisson::isolated(device, groups)?),
            1 => Self::Alone(RootPoisson::new(device, groups)?),
            ranks => {
                let place = (communicator.rank(), ranks);
                Self::Shared(Box::new(SharedRoot::new(device, place, owners, root_groups, isolated)?))
            }
        })
    }

    /// Bytes of the longest messages to each of so many ranks and from it.
    pub(super) fn needs(&self, ranks: usize) -> Vec<MessageSizes> {
        match self {
            Self::Alone(_) => vec![MessageSizes::default(); ranks],
            Self::Shared(root) => root.needs(ranks),
        }
    }

    /// See [`RootPoisson::serve_particles`].
    pub(super) fn serve_particles(&mut self, share: f64) -> Result<(), KernelError> {
        match self {
            Self::Alone(root) => root.serve_particles(share),
            Self::Shared(root) => root.serve_particles(share),
        }
    }

    pub(super) fn solve(
        &mut self,
        device: &Device,
        hierarchy: &Hierarchy,
        source: &PoissonSource<T>,
        field: &mut Buffer<T>,
    ) {
        let Hierarchy { tables, root_slots, h, ranks } = hierarchy;
        match self {
            Self::Alone(root) => root.solve(device, root_slots, source, *h, field),
            Self::Shared(root) => root.solve(ranks.ghost_exchange, device, &tables[0].slots, source, *h, field),
        }
        ranks.refresh(0, |links| &links.cells, field);
    }

    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Alone(root) => root.bytes(),
            Self::Shared(root) => root.bytes(),
        }
    }

    pub(super) fn working_bytes(&self) -> usize {
        match self {
            Self::Alone(root) => root.working_bytes(),
            Self::Shared(root) => root.working_bytes(),
        }
    }
}

/// Bytes for the transforms of a root of so many groups, on one of the ranks that share it.
pub(crate) fn root_bytes(
    device: &Device,
    groups: [usize; 3],
    parameters: &RunParameters,
    (rank, ranks): (usize, usize),
) -> usize {
    let isolated = parameters.gravity_boundary == GravityBoundary::Isolated;
    match ranks {
        _ if !parameters.gravity => 0,
        1 => RootPoisson::bytes_for(device, groups, isolated),
        _ => match parameters.precision {
            Precision::Single => SharedRoot::<f32>::bytes_for(device, groups, isolated, (rank, ranks)),
            Precision::Double => SharedRoot::<f64>::bytes_for(device, groups, isolated, (rank, ranks)),
        },
    }
}
