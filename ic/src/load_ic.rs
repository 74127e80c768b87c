//! An initial condition read from a file.

use crate::error::IcError;
use crate::format::{comove_ic, um_ic};
use crate::gaussian_ic::{all_baryons, check_gas};
use crate::growing_mode::{self, Frame};
use crate::slab;
use crate::temperature::specific_internal_energy;
use crate::uniform_mesh::UniformMesh;
use comove_sim::parallel::Communicator;
use comove_sim::parallel::collective_result;
use comove_sim::{Cosmology, Precision};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::path::PathBuf;

/// The format of a file to load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadFormat {
    /// GAMER's raw binary `UM_IC`, which says nothing of itself.
    UmIc {
        /// Order of its axes.
        order: um_ic::Order,
        /// Precision of its numbers; by default deduced from its size.
        precision: Option<Precision>,
    },
    /// Our own HDF5 file, which states its epoch, box and cosmology.
    ComoveIc,
}

/// A uniform mesh in a file, with what the recipe says about it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadIc {
    /// The file.
    pub path: PathBuf,
    /// Its format.
    pub format: LoadFormat,
    /// The background; a file that states another is refused.
    pub cosmology: Cosmology,
    /// Length of the box along x in comoving Mpc/h; a file that states another is refused.
    pub box_mpc_h: f64,
    /// Cells of the mesh in the file along x, y, z: root cells · 2^level.
    pub cells: [usize; 3],
    /// Redshift; a file that states another is refused.
    pub z: f64,
    /// Gas temperature in K to take instead of the file's energy.
    pub temperature_k: Option<f64>,
    /// Mean molecular weight μ in hydrogen masses; a file that states another is refused.
    pub mean_molecular_weight: f64,
    /// Ratio of specific heats; a file that states another is refused.
    pub gamma: f64,
    /// Whether gas alone may have all of omega_m, more than omega_b, without a remark.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub baryons_only: bool,
}

/// What to do about gas that has all of omega_m.
pub const FOR_GAS_ALONE: &str = "add dark matter in a file of format \"comove_ic\", or set baryons_only: true";

/// Cells that are read at a time on trial.
const CELLS_ON_TRIAL: usize = 1 << 22;

/// How far the mean density of a file may be from the mean matter density, its unit.
const MEAN_DENSITY_TOLERANCE: f64 = 0.01;

impl LoadIc {
    /// Reads and checks the mesh, with remarks on what is right but probably not meant so. Collective; of ranks that share the
    /// work each reads some planes.
    ///
    /// # Errors
    /// [`IcError::Parameter`] for numbers out of range; [`IcError::Io`], [`IcError::Hdf5`], [`IcError::Size`],
    /// [`IcError::Content`] for a file that is not what the recipe says; [`IcError::Contradiction`] for one that states
    /// otherwise; [`IcError::Cell`] for a cell that is not finite and positive.
    pub fn load(
        &self,
        communicator: &Communicator,
        progress: &dyn Fn(&str, f64),
    ) -> Result<(UniformMesh, Vec<String>), IcError> {
        self.check()?;
        progress("reading", 0.0);
        let planes = slab::planes(self.cells, communicator.rank(), communicator.size());
        let mesh = collective_result(communicator, self.read(planes))?;
        progress("checking", 0.8);
        mesh.check(communicator)?;
        let frame = Frame { cosmology: &self.cosmology, a: 1.0 / (1.0 + self.z), box_mpc_h: self.box_mpc_h };
        let content = |reason| IcError::Content { path: self.path.clone(), reason };
        let mut remarks = growing_mode::examine(communicator, &mesh, &frame).map_err(content)?;
        if !mesh.has_gas(communicator) {
            progress("initial condition", 1.0);
            return Ok((mesh, remarks));
        }
        let mean = mesh.mean(communicator, |i| mesh.density[i]);
        // beside dark matter, which the restriction to the octree checks more closely
        let expected = match communicator.any(mesh.lattice.is_some()) {
            true => self.cosmology.omega_b / self.cosmology.omega_m,
            false => 1.0,
        };
        if (mean - expected).abs() > MEAN_DENSITY_TOLERANCE {
            let reason = format!(
                "mean density {mean:.6}, expected {expected}: densities must be in units of the mean matter density; divide density and momentum by the mean, or check the field order"
            );
            return Err(content(reason));
        }
        if expected == 1.0 && !self.baryons_only && self.format == LoadFormat::ComoveIc {
            remarks.extend(all_baryons(&self.cosmology, FOR_GAS_ALONE));
        }
        progress("initial condition", 1.0);
        Ok((mesh, remarks))
    }

    /// Checks the numbers, which the file is not needed for.
    ///
    /// # Errors
    /// [`IcError::Parameter`] for numbers out of range.
    pub fn check(&self) -> Result<(), IcError> {
        self.cosmology.check()?;
        check_gas(self.box_mpc_h, self.z, self.temperature_k, self.mean_molecular_weight, self.gamma)
    }

    /// Reads all of the file, a few planes at a time: what can be read can be loaded, if its cells are good.
    ///
    /// # Errors
    /// As [`LoadIc::load`].
    pub fn try_reading(&self) -> Result<(), IcError> {
        let at_a_time = (CELLS_ON_TRIAL / (self.cells[0] * self.cells[1]).max(1)).max(1);
        for first in (0..self.cells[2]).step_by(at_a_time) {
            self.read(first..self.cells[2].min(first + at_a_time))?.check(&Communicator::alone())?;
        }
        Ok(())
    }

    fn read(&self, planes: Range<usize>) -> Result<UniformMesh, IcError> {
        let mut mesh = match self.format {
            LoadFormat::UmIc { order, precision } => um_ic::read(&self.path, self.cells, planes, order, precision)?,
            LoadFormat::ComoveIc => comove_ic::read(&self.path, self.cells, planes, &self.header())?,
        };
        if let Some(temperature_k) = self.temperature_k {
            let (weight, a) = (self.mean_molecular_weight, 1.0 / (1.0 + self.z));
            let specific = specific_internal_energy(&self.cosmology, a, temperature_k, weight, self.gamma);
            mesh.internal_energy.par_iter_mut().zip(&mesh.density).for_each(|(e, d)| *e = specific * d);
        }
        Ok(mesh)
    }

    /// What our own file format would state of this initial condition.
    pub fn header(&self) -> comove_ic::Header {
        comove_ic::Header {
            a: 1.0 / (1.0 + self.z),
            box_mpc_h: self.box_mpc_h,
            h: self.cosmology.h,
            omega_m: self.cosmology.omega_m,
            omega_lambda: self.cosmology.omega_lambda,
            omega_b: self.cosmology.omega_b,
            mean_molecular_weight: self.mean_molecular_weight,
            gamma: self.gamma,
        }
    }
}
