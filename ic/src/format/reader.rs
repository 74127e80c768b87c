//! The seam that a format implements.

use super::hdf5_input::Hdf5Input;
use super::request::{LoadFormat, LoadIc};
use crate::error::IcError;
use crate::particle_set::ParticleSet;
use crate::slab;
use crate::uniform_mesh::UniformMesh;
use comove_sim::parallel::Communicator;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::path::Path;

/// Relative difference at which Ω_Λ contradicts the recipe: some programs subtract the density of radiation from it.
pub(super) const SAME_LAMBDA: f64 = 1e-3;

/// Species of an initial condition, as its header has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contents {
    /// Format of the file.
    pub format: LoadFormat,
    /// The file has gas.
    pub gas: bool,
    /// Cells with gas on meshes finer than that of the whole box.
    pub nested_cells: u64,
    /// Number of dark-matter particles.
    pub particles: u64,
    /// Particles have positions of their own, not those of a lattice.
    pub off_lattice: bool,
}

/// The part of an initial condition that one of several ranks reads.
#[derive(Clone, Debug)]
pub struct Part {
    pub(super) planes: Range<usize>,
    rank: usize,
    ranks: usize,
}

/// Statements of a file about itself; `None` where it makes none.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Statements {
    /// Scale factor.
    pub a: Option<f64>,
    /// Length of the box along x: in comoving Mpc/h, or Mpc if `length_is_without_h`; in units of a Gadget file that states none.
    pub box_length: Option<f64>,
    /// True for lengths without the factor 1/h, as in SWIFT files.
    pub length_is_without_h: bool,
    pub h: Option<f64>,
    pub omega_m: Option<f64>,
    pub omega_lambda: Option<f64>,
    pub omega_b: Option<f64>,
    pub mean_molecular_weight: Option<f64>,
    pub gamma: Option<f64>,
    /// Cells of the mesh along x, y, z.
    pub cells: Option<[usize; 3]>,
}

/// Reader of a format.
pub(crate) trait Reader {
    /// Whether a file is of this format, and not only of its container.
    fn recognises(&self, file: &Hdf5Input) -> bool;

    /// Species in a file, from its header.
    fn contents(&self, path: &Path) -> Result<Contents, IcError>;

    /// Statements of a file about itself.
    fn statements(&self, path: &Path) -> Result<Statements, IcError>;

    /// Opens what `ic` describes, and checks its header against the recipe. Collective.
    ///
    /// # Errors
    /// [`IcError`] of the file, on all ranks.
    fn open<'i>(&self, ic: &'i LoadIc, communicator: &Communicator) -> Result<ReadPart<'i>, IcError>;
}

/// Reads a part of an open initial condition, a bounded number of values at a time, and checks each.
pub(crate) type ReadPart<'i> = Box<dyn Fn(&Part) -> Result<UniformMesh, IcError> + 'i>;

impl Part {
    /// Part `rank` of `ranks` equal ones of a mesh of `cells` along x, y, z and of particles.
    pub fn even(cells: [usize; 3], rank: usize, ranks: usize) -> Self {
        Self { planes: slab::planes(cells, rank, ranks), rank, ranks }
    }

    /// These planes along z, and part `rank` of `ranks` equal ones of particles that are on no lattice: none from `ranks` on.
    pub(crate) fn of_planes(planes: Range<usize>, rank: usize, ranks: usize) -> Self {
        Self { planes, rank, ranks }
    }

    /// Rows of the part, of `total`.
    pub(super) fn rows(&self, total: u64) -> Range<usize> {
        if self.rank < self.ranks { ParticleSet::rows(total, self.rank, self.ranks) } else { 0..0 }
    }
}

/// These planes along z, and all particles that are on no lattice.
impl From<Range<usize>> for Part {
    fn from(planes: Range<usize>) -> Self {
        Self::of_planes(planes, 0, 1)
    }
}
