//! Attributes of the header: particles by type, and statements that a recipe also makes.

use super::input::{HEADER, Input};
use crate::error::IcError;
use crate::format::hdf5_input::SAME;
use crate::format::reader::{SAME_LAMBDA, Statements};
use crate::format::request::{LoadFormat, LoadIc};

/// Attribute of SWIFT's `/Units`.
pub(super) const SWIFT_LENGTH: &str = "Unit length in cgs (U_L)";

pub(super) const MPC_CM: f64 = 3.085_677_581_491_367e24;

/// Groups that have attributes, the most usual first (Gadget-4 has units and cosmology in `/Parameters`).
pub(super) const GROUPS: [&str; 4] = [HEADER, "Parameters", "Units", "Cosmology"];

/// Types of dark matter: beside halo particles those of the coarser levels of zooms, which files of Gadget have as disk, bulge
/// and boundary, and files of SWIFT as background.
pub(super) fn dark_types(format: LoadFormat) -> &'static [usize] {
    if format == LoadFormat::Swift { &[1, 2] } else { &[1, 2, 3, 5] }
}

/// Numbers of particles by type, files, and masses by type, 0 where they are in a dataset.
pub(super) struct Header {
    pub this_file: Vec<u64>,
    pub total: Vec<u64>,
    pub files: usize,
    table: Vec<f64>,
}

impl Header {
    /// Reads the header of a file with dark matter alone.
    pub(super) fn read(input: &Input, format: LoadFormat) -> Result<Self, IcError> {
        let list = |name: &str| Ok::<_, IcError>(input.numbers(&[HEADER], name)?.map(|(_, values)| values));
        let counts = |values: Vec<f64>| values.into_iter().map(|value| value.max(0.0) as u64).collect::<Vec<u64>>();
        let missing = |name: &str| {
            input.content(format!("{} is missing: expected counts of types", input.statement(HEADER, name)))
        };
        let this_file = counts(list("NumPart_ThisFile")?.ok_or_else(|| missing("NumPart_ThisFile"))?);
        let mut total = list("NumPart_Total")?.map_or_else(|| this_file.clone(), counts);
        let high = list("NumPart_Total_HighWord")?.map_or_else(Vec::new, counts);
        total
            .iter_mut()
            .zip(high)
            .for_each(|(total, high)| *total = total.saturating_add(high.saturating_mul(1 << 32)));
        let files = list("NumFilesPerSnapshot")?.map_or(1, |values| values[0] as usize).max(1);
        let table = list("MassTable")?.unwrap_or_default();
        let types = dark_types(format);
        if let Some((kind, count)) = total.iter().enumerate().find(|(kind, count)| !types.contains(kind) && **count > 0)
        {
            return Err(input.content(match kind {
                0 => format!(
                    "{count} gas particles (PartType0) are not read: write gas on a mesh (format = grafic2 in MUSIC and \
                     monofonIC, or a file of format \"comove_ic\"), or dark matter alone, with all of Omega0"
                ),
                _ => format!(
                    "{count} particles of PartType{kind} are not read: expected dark matter, PartType{}; write it there, or \
                     remove them",
                    in_words(types)
                ),
            }));
        }
        if this_file.len() < total.len() || total.iter().sum::<u64>() == 0 {
            return Err(input.content(format!(
                "{} is {this_file:?} and {} is {total:?}: expected dark matter, PartType{}",
                input.statement(HEADER, "NumPart_ThisFile"),
                input.statement(HEADER, "NumPart_Total"),
                in_words(types)
            )));
        }
        Ok(Self { this_file, total, files, table })
    }

    /// Mass of all particles of a type, if the header has it.
    pub(super) fn table_mass(&self, kind: usize) -> Option<f64> {
        self.table.get(kind).copied().filter(|mass| *mass != 0.0)
    }

    /// Number of particles of all files.
    pub(super) fn particles(&self) -> u64 {
        self.total.iter().sum()
    }
}

/// Numbers as in "1, 2 or 3".
fn in_words(numbers: &[usize]) -> String {
    let words: Vec<String> = numbers.iter().map(usize::to_string).collect();
    let [before @ .., last] = words.as_slice() else { return String::new() };
    format!("{} or {last}", before.join(", "))
}

/// Compares what a header states with the recipe.
pub(super) fn check_statements(input: &Input, ic: &LoadIc, format: LoadFormat) -> Result<(), IcError> {
    let (cosmology, a) = (&ic.cosmology, 1.0 / (1.0 + ic.z));
    let is_gadget = format == LoadFormat::Gadget;
    let [epoch, hubble, omega_m, omega_lambda] = names(format);
    let has_redshift = redshift_of_swift(input, format)?.is_some();
    for (name, option, expected, tolerance, needed) in [
        (epoch, "a = 1/(1 + z)", a, SAME, is_gadget),
        (hubble, "h", cosmology.h, SAME, is_gadget),
        (omega_m, "omega_m", cosmology.omega_m, SAME, is_gadget),
        (omega_lambda, "omega_lambda", cosmology.omega_lambda, SAME_LAMBDA, false),
        ("Redshift", "z", ic.z, SAME * (1.0 + ic.z) / ic.z.max(1e-3), false),
    ] {
        if name == epoch && has_redshift {
            continue;
        }
        let Some((statement, values)) = input.numbers(&GROUPS, name)? else {
            if needed {
                let reason = format!("{} is missing: expected {option} = {expected}", input.statement(HEADER, name));
                return Err(input.content(reason));
            }
            continue;
        };
        let found = values[0];
        if (found - expected).abs() <= tolerance * expected.abs() {
            continue;
        }
        let shown = |value: f64| {
            if name == epoch { format!("{value} (z = {:.6})", 1.0 / value - 1.0) } else { value.to_string() }
        };
        return Err(input.content(format!(
            "{statement} is {}, the recipe says {option} = {}: change one of them",
            shown(found),
            shown(expected)
        )));
    }
    Ok(())
}

/// Attributes of scale factor, h, Ω_m and Ω_Λ.
fn names(format: LoadFormat) -> [&'static str; 4] {
    match format {
        LoadFormat::Swift => ["Scale-factor", "h", "Omega_m", "Omega_lambda"],
        _ => ["Time", "HubbleParam", "Omega0", "OmegaLambda"],
    }
}

/// The redshift of a SWIFT file, which counts in place of its `Scale-factor`: MUSIC writes z there too, and SWIFT reads neither
/// in initial conditions.
fn redshift_of_swift(input: &Input, format: LoadFormat) -> Result<Option<f64>, IcError> {
    if format != LoadFormat::Swift {
        return Ok(None);
    }
    Ok(input.numbers(&GROUPS, "Redshift")?.map(|(_, values)| values[0]))
}

/// Statements of a header.
pub(super) fn statements(input: &Input, format: LoadFormat) -> Result<Statements, IcError> {
    let one = |name: &str| Ok::<_, IcError>(input.numbers(&GROUPS, name)?.map(|(_, values)| values[0]));
    let [epoch, hubble, omega_m, omega_lambda] = names(format);
    let is_swift = format == LoadFormat::Swift;
    let unit = |name: &str| Ok::<_, IcError>(one(name)?.map(|cm| cm / MPC_CM));
    let unit = if is_swift { unit(SWIFT_LENGTH)? } else { unit("UnitLength_in_cm")? };
    Ok(Statements {
        a: redshift_of_swift(input, format)?.map(|z| 1.0 / (1.0 + z)).or(one(epoch)?),
        box_length: one("BoxSize")?.map(|length| length * unit.unwrap_or(1.0)),
        length_is_without_h: is_swift,
        h: one(hubble)?,
        omega_m: one(omega_m)?,
        omega_lambda: one(omega_lambda)?,
        omega_b: one("OmegaBaryon")?,
        ..Statements::default()
    })
}
