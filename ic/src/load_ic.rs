//! An initial condition read from a file.

use crate::doctor::{self, Examination, Subject, Verdict, content};
use crate::error::IcError;
use crate::format::{self, LoadFormat, LoadIc, Part, comove_ic};
use crate::gaussian_ic::{all_baryons, check_gas};
use crate::linear_power::LinearPower;
use crate::temperature::specific_internal_energy;
use crate::uniform_mesh::{DarkMatter, UniformMesh};
use comove_sim::parallel::Communicator;
use comove_sim::parallel::collective_result;
use rayon::prelude::*;

/// What to do about gas that has all of omega_m.
pub const FOR_GAS_ALONE: &str = "add dark matter in a file of format \"comove_ic\", or set baryons_only: true";

/// Cells or particles that are read at a time on trial.
const AT_A_TIME_ON_TRIAL: usize = 1 << 22;

impl LoadIc {
    /// Reads and examines it. Collective; of ranks that share the work each reads a part.
    ///
    /// # Errors
    /// [`IcError::Parameter`] for numbers out of range; [`IcError::Io`], [`IcError::Hdf5`], [`IcError::Size`],
    /// [`IcError::Content`] for a file that is not what the recipe says, and for findings that are wrong unless
    /// [`LoadIc::trust`] is set; [`IcError::Contradiction`] for one that states otherwise.
    pub fn load(
        &self,
        communicator: &Communicator,
        progress: &dyn Fn(&str, f64),
    ) -> Result<(UniformMesh, Examination), IcError> {
        self.check()?;
        progress("reading", 0.0);
        let part = Part::even(self.cells, communicator.rank(), communicator.size());
        let (mut mesh, format) = self.read(communicator, &part)?;
        progress("checking", 0.8);
        let examination = self.examine(communicator, &mesh, format, true)?;
        let wrong = examination.sentences(Verdict::Wrong);
        if !(wrong.is_empty() || self.trust.is_some()) {
            return Err(self.content(format!("{}; if the file is right, set trust: \"reason\"", wrong.join("; "))));
        }
        if !self.follow.is_empty() {
            mesh.follow(communicator, self.box_mpc_h, |number| self.follow.contains(number));
        }
        if let Some(DarkMatter::Set(set)) = &mesh.dark_matter {
            if let Some(id) = set.first_missing(communicator, &self.follow) {
                let reason = "no particle of the lightest mass has this identity: give those of this file";
                return Err(self.content(format!("follow = {id}: {reason}")));
            }
            set.check_followed(communicator).map_err(|error| self.content(error.to_string()))?;
        } else if !self.follow.is_empty() {
            return Err(self.content("follow: there is no dark matter to follow: remove follow".into()));
        }
        progress("initial condition", 1.0);
        Ok((mesh, examination))
    }

    /// Reads and examines it, whatever the findings: of one process.
    ///
    /// * `amplitude_is_known`: false where sigma8 is assumed
    ///
    /// # Errors
    /// As of [`LoadIc::load`], but for findings.
    pub(crate) fn examination(&self, amplitude_is_known: bool) -> Result<Examination, IcError> {
        self.check()?;
        let alone = Communicator::alone();
        let (mesh, format) = self.read(&alone, &Part::even(self.cells, 0, 1))?;
        self.examine(&alone, &mesh, format, amplitude_is_known)
    }

    fn content(&self, reason: String) -> IcError {
        IcError::Content { path: self.path.clone(), reason }
    }

    fn examine(
        &self,
        communicator: &Communicator,
        mesh: &UniformMesh,
        format: LoadFormat,
        amplitude_is_known: bool,
    ) -> Result<Examination, IcError> {
        let has_gas = mesh.has_gas(communicator);
        // beside dark matter, which the restriction to the octree checks more closely
        let expected = match communicator.any(mesh.dark_matter.is_some()) {
            true => self.cosmology.baryon_fraction(),
            false => 1.0,
        };
        mesh.check(communicator).map_err(|error| match error {
            // of particles
            IcError::Parameter { .. } => self.content(error.to_string()),
            IcError::Cell { .. } => {
                match has_gas.then(|| content::disorder(communicator, mesh, format, expected)).flatten() {
                    Some(why) => self.content(format!("{error}; {why}")),
                    None => self.content(error.to_string()),
                }
            }
            _ => error,
        })?;
        let power = collective_result(communicator, LinearPower::estimate(&self.cosmology))?;
        let subject = Subject {
            cosmology: &self.cosmology,
            power: &power,
            amplitude_is_known,
            a: 1.0 / (1.0 + self.z),
            box_mpc_h: self.box_mpc_h,
            format,
            temperature_k: self.temperature_k,
            mean_molecular_weight: self.mean_molecular_weight,
            gamma: self.gamma,
        };
        if let Some(lattice) = mesh.lattice() {
            content::half_of_the_box(communicator, mesh, lattice, &subject).map_err(|why| self.content(why))?;
        }
        if has_gas {
            content::mean_density(communicator, mesh, &subject, expected).map_err(|why| self.content(why))?;
        }
        let mut examination = doctor::examine(communicator, mesh, &subject, false);
        if has_gas
            && expected == 1.0
            && !self.baryons_only
            && !matches!(format, LoadFormat::UmIc { .. })
            && let Some(remark) = all_baryons(&self.cosmology, FOR_GAS_ALONE)
        {
            examination.remark("share of gas in matter", "1", self.cosmology.baryon_fraction().to_string(), remark);
        }
        Ok(examination)
    }

    /// Checks the numbers, which the file is not needed for.
    ///
    /// # Errors
    /// [`IcError::Parameter`] for numbers out of range.
    pub fn check(&self) -> Result<(), IcError> {
        self.cosmology.check()?;
        if self.trust.as_ref().is_some_and(|reason| reason.trim().is_empty()) {
            let reason = "must be the reason why the file is accepted though its examination finds mistakes".into();
            return Err(IcError::Parameter { name: "trust", value: "\"\"".into(), reason });
        }
        check_gas(self.box_mpc_h, self.z, self.temperature_k, self.mean_molecular_weight, self.gamma)
    }

    /// Opens every dataset and, unless all are contiguous and without filters, reads all values, a bounded number of cells and
    /// particles at a time: loading it then, HDF5 decodes nothing new.
    ///
    /// # Errors
    /// As [`LoadIc::load`].
    pub fn try_reading(&self) -> Result<(), IcError> {
        let (alone, format) = (Communicator::alone(), self.format()?);
        let particles = format::contents(format, &self.path)?.particles as usize;
        let read = format::open(format, self, &alone)?;
        if format::is_plain(format, &self.path)? {
            return read(&Part::of_planes(0..0, 1, 1)).map(drop);
        }
        let pieces = self.cells.iter().product::<usize>().max(particles).div_ceil(AT_A_TIME_ON_TRIAL).max(1);
        for piece in 0..pieces {
            let mut mesh = self.with_temperature(read(&Part::even(self.cells, piece, pieces))?);
            // which is checked as a whole
            mesh.dark_matter = mesh.dark_matter.filter(|dark_matter| matches!(dark_matter, DarkMatter::Lattice(_)));
            mesh.check(&alone)?;
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

    /// Collective.
    fn read(&self, communicator: &Communicator, part: &Part) -> Result<(UniformMesh, LoadFormat), IcError> {
        let format = collective_result(communicator, self.format())?;
        let read = format::open(format, self, communicator)?;
        let mesh = collective_result(communicator, read(part))?;
        Ok((self.with_temperature(mesh), format))
    }

    /// The mesh with the recipe's temperature.
    fn with_temperature(&self, mut mesh: UniformMesh) -> UniformMesh {
        if let Some(temperature_k) = self.temperature_k {
            let (weight, a) = (self.mean_molecular_weight, 1.0 / (1.0 + self.z));
            let specific = specific_internal_energy(&self.cosmology, a, temperature_k, weight, self.gamma);
            mesh.internal_energy.par_iter_mut().zip(&mesh.density).for_each(|(e, d)| *e = specific * d);
        }
        mesh
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
