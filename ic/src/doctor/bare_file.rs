//! A file without a recipe: box, epoch and background from its header, what it does not state from the command line.

use super::Examination;
use crate::error::IcError;
use crate::format::{self, LengthUnit, LoadFormat, LoadIc, Statements};
use comove_sim::Cosmology;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Numbers that are given beside a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Given {
    /// H0/(100 km/s/Mpc).
    pub h: Option<f64>,
    /// Matter today.
    pub omega_m: Option<f64>,
    /// Dark energy today.
    pub omega_lambda: Option<f64>,
    /// Baryons today.
    pub omega_b: Option<f64>,
    /// Rms of the linear density in spheres of 8 Mpc/h today.
    pub sigma8: Option<f64>,
    /// Slope of the primordial spectrum.
    pub n_s: Option<f64>,
    /// Redshift.
    pub z: Option<f64>,
}

/// A file, and its examination.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BareFile {
    /// Its format.
    pub format: String,
    /// Statements of its header and given numbers: name, value, source.
    pub stated: Vec<[String; 3]>,
    /// Sentences on what could not be compared.
    pub missing: Vec<String>,
    /// Findings.
    pub findings: Vec<super::Finding>,
}

/// σ8 and n_s of Planck 2018, and Ω_b/Ω_m, where they are not known.
const ASSUMED: (f64, f64, f64) = (0.811, 0.965, 0.157);

impl BareFile {
    /// Reads and examines a file of a format with header.
    ///
    /// # Errors
    /// [`IcError`] of a file that cannot be read, of one that lacks a number that is not given either, and of one whose
    /// values no initial condition can have.
    pub fn examine(path: &Path, given: &Given) -> Result<Self, IcError> {
        let format = LoadFormat::of(path)?;
        let statements = format::statements(format, path)?;
        let mut stated = Vec::new();
        let mut number = |name: &str, given: Option<f64>, file: Option<f64>| {
            let (value, source) = match (given, file) {
                (Some(value), _) => (value, "given"),
                (None, Some(value)) => (value, "file"),
                (None, None) => return None,
            };
            stated.push([name.to_owned(), value.to_string(), source.to_owned()]);
            Some(value)
        };
        let needed = |value: Option<f64>, name: &str, option: &str| {
            let reason = format!("{name} is neither in the file nor given: add {option}");
            value.ok_or_else(|| IcError::Content { path: path.into(), reason })
        };
        let h = needed(number("h", given.h, statements.h), "h", "--cosmology h=…")?;
        let omega_m = needed(number("omega_m", given.omega_m, statements.omega_m), "omega_m", "--cosmology omega_m=…")?;
        let omega_lambda = number("omega_lambda", given.omega_lambda, statements.omega_lambda);
        let omega_b = number("omega_b", given.omega_b, statements.omega_b);
        let sigma8 = number("sigma8", given.sigma8, None);
        let n_s = number("n_s", given.n_s, None);
        let of_a = statements.a.map(|a| 1.0 / a - 1.0);
        let z = needed(number("z", given.z, of_a), "the redshift", "--redshift …")?;
        let cosmology = Cosmology {
            omega_lambda: omega_lambda.unwrap_or(1.0 - omega_m),
            ..Cosmology::flat(
                h,
                omega_m,
                omega_b.unwrap_or(ASSUMED.2 * omega_m),
                sigma8.unwrap_or(ASSUMED.0),
                n_s.unwrap_or(ASSUMED.1),
            )
        };
        let mut missing = Vec::new();
        for (name, is_missing, what) in [
            ("sigma8", sigma8.is_none(), "the amplitude of the density contrast is not judged"),
            ("n_s", n_s.is_none(), "the shape of the spectrum is that of n_s = 0.965"),
            ("omega_b", omega_b.is_none(), "baryons have 0.157 of omega_m"),
        ] {
            if is_missing {
                missing.push(format!("{name} is not known: {what}; add --cosmology {name}=…"));
            }
        }
        let request = Request { path, format, statements, cosmology, z, gamma: statements.gamma.unwrap_or(5.0 / 3.0) };
        let (box_mpc_h, examination) = request.examination(sigma8.is_some())?;
        stated.insert(0, ["box, Mpc/h".into(), box_mpc_h.to_string(), "file".into()]);
        Ok(Self { format: format.name().into(), stated, missing, findings: examination.findings })
    }
}

struct Request<'a> {
    path: &'a Path,
    format: LoadFormat,
    statements: Statements,
    cosmology: Cosmology,
    z: f64,
    gamma: f64,
}

impl Request<'_> {
    /// The length of the box, and the examination; of a Gadget file without a unit of length with that which gives it its
    /// mean density.
    fn examination(&self, amplitude_is_known: bool) -> Result<(f64, Examination), IcError> {
        let length = self.statements.box_length.ok_or_else(|| IcError::Content {
            path: self.path.into(),
            reason: "the length of the box is not in the file; examine it with ic_load in a recipe".into(),
        })?;
        let box_mpc_h = if self.statements.length_is_without_h { length * self.cosmology.h } else { length };
        let first = self.of_box(box_mpc_h, None).examination(amplitude_is_known);
        let Err(error) = first else { return Ok((box_mpc_h, first?)) };
        if self.format == LoadFormat::Gadget {
            let kpc = self.of_box(1e-3 * length, Some(LengthUnit::KpcH));
            if let Ok(examination) = kpc.examination(amplitude_is_known) {
                return Ok((1e-3 * length, examination));
            }
        }
        Err(error)
    }

    fn of_box(&self, box_mpc_h: f64, length_unit: Option<LengthUnit>) -> LoadIc {
        LoadIc {
            path: PathBuf::from(self.path),
            format: Some(self.format),
            length_unit,
            cosmology: self.cosmology,
            box_mpc_h,
            cells: self.statements.cells.unwrap_or([16; 3]),
            z: self.z,
            temperature_k: None,
            mean_molecular_weight: self.statements.mean_molecular_weight.unwrap_or(1.22),
            gamma: self.gamma,
            baryons_only: false,
            follow: crate::Identities::default(),
            trust: None,
        }
    }
}
