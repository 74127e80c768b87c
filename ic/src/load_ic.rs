//! An initial condition read from a file.

use crate::error::IcError;
use crate::format::{self, LoadFormat, LoadIc, Part, comove_ic};
use crate::gaussian_ic::{all_baryons, check_gas};
use crate::growing_mode::{self, Frame};
use crate::temperature::specific_internal_energy;
use crate::uniform_mesh::{DarkMatter, UniformMesh};
use comove_sim::parallel::Communicator;
use comove_sim::parallel::collective_result;
use rayon::prelude::*;

/// What to do about gas that has all of omega_m.
pub const FOR_GAS_ALONE: &str = "add dark matter in a file of format \"comove_ic\", or set baryons_only: true";

/// Cells or particles that are read at a time on trial.
const AT_A_TIME_ON_TRIAL: usize = 1 << 22;

/// How far the mean density of a file may be from the mean matter density, its unit.
const MEAN_DENSITY_TOLERANCE: f64 = 0.01;

impl LoadIc {
    /// Reads and checks it, with remarks on what is right but probably not meant so. Collective; of ranks that share the
    /// work each reads a part.
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
        let part = Part::even(self.cells, communicator.rank(), communicator.size());
        let (mesh, format) = collective_result(communicator, self.read(&part))?;
        progress("checking", 0.8);
        mesh.check(communicator).map_err(|error| match error {
            // of particles
            IcError::Parameter { .. } => IcError::Content { path: self.path.clone(), reason: error.to_string() },
            _ => error,
        })?;
        let frame = Frame { cosmology: &self.cosmology, a: 1.0 / (1.0 + self.z), box_mpc_h: self.box_mpc_h };
        let content = |reason| IcError::Content { path: self.path.clone(), reason };
        let mut remarks = growing_mode::examine(communicator, &mesh, &frame).map_err(content)?;
        if !mesh.has_gas(communicator) {
            progress("initial condition", 1.0);
            return Ok((mesh, remarks));
        }
        let mean = mesh.mean(communicator, |i| mesh.density[i]);
        // beside dark matter, which the restriction to the octree checks more closely
        let expected = match communicator.any(mesh.dark_matter.is_some()) {
            true => self.cosmology.omega_b / self.cosmology.omega_m,
            false => 1.0,
        };
        if (mean - expected).abs() > MEAN_DENSITY_TOLERANCE {
            let reason = format!(
                "mean density {mean:.6}, expected {expected}: densities must be in units of the mean matter density; divide density and momentum by the mean, or check the field order"
            );
            return Err(content(reason));
        }
        if expected == 1.0 && !self.baryons_only && format == LoadFormat::ComoveIc {
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

    /// Reads all of it, a bounded number of cells and particles at a time: what can be read can be loaded, if particles differ
    /// in their identities.
    ///
    /// # Errors
    /// As [`LoadIc::load`].
    pub fn try_reading(&self) -> Result<(), IcError> {
        let particles = format::contents(self.format()?, &self.path)?.particles as usize;
        let pieces = self.cells.iter().product::<usize>().max(particles).div_ceil(AT_A_TIME_ON_TRIAL).max(1);
        for piece in 0..pieces {
            let (mut mesh, _) = self.read(&Part::even(self.cells, piece, pieces))?;
            // which is checked as a whole
            mesh.dark_matter = mesh.dark_matter.filter(|dark_matter| matches!(dark_matter, DarkMatter::Lattice(_)));
            mesh.check(&Communicator::alone())?;
        }
        Ok(())
    }

    /// The format that the recipe or the content says.
    fn format(&self) -> Result<LoadFormat, IcError> {
        if let Some(format @ (LoadFormat::UmIc { .. } | LoadFormat::ComoveIc)) = self.format {
            return Ok(format);
        }
        let found = LoadFormat::of(&self.path)?;
        match self.format {
            Some(stated) if stated != found => Err(IcError::Contradiction {
                path: self.path.clone(),
                name: "format",
                file: found.name().into(),
                recipe: stated.name().into(),
            }),
            _ => Ok(found),
        }
    }

    fn read(&self, part: &Part) -> Result<(UniformMesh, LoadFormat), IcError> {
        let format = self.format()?;
        let mut mesh = format::read(format, self, part)?;
        if let Some(temperature_k) = self.temperature_k {
            let (weight, a) = (self.mean_molecular_weight, 1.0 / (1.0 + self.z));
            let specific = specific_internal_energy(&self.cosmology, a, temperature_k, weight, self.gamma);
            mesh.internal_energy.par_iter_mut().zip(&mesh.density).for_each(|(e, d)| *e = specific * d);
        }
        Ok((mesh, format))
    }

    /// Header of a `comove_ic` file with this initial condition.
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
