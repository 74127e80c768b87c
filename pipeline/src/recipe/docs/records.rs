//! Members of the records that stages write as JSON, with their units, from the structures that are serialised: for
//! `index.json`, `columns.tsv` and the reference.

use super::options;
use super::structures::{Item, Member, item};
use comove_analysis::cell_fields::CELL_FIELDS;
use comove_analysis::columns;

/// A member of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// Its path: `gas.mass`; of the entries of a list `halos[].id`, of a map's values by any key `overdensities.*.mass_msun_h`.
    pub name: String,
    /// Empty for a number without a dimension, and for what is no number.
    pub unit: &'static str,
    /// Meaning, as Markdown.
    pub text: String,
}

/// A kind of file whose records have the members of structures, or members that are listed here.
pub(crate) struct Kind {
    /// The first part of the file's name: `halos` of `halos_z0.json`.
    pub name: &'static str,
    /// The file's name for a reader.
    pub file: &'static str,
    /// Meaning, as Markdown.
    pub text: &'static str,
    structures: &'static [&'static str],
    listed: &'static [(&'static str, &'static str)],
}

const fn of(name: &'static str, file: &'static str, structures: &'static [&'static str], text: &'static str) -> Kind {
    Kind { name, file, text, structures, listed: &[] }
}

const fn with(
    name: &'static str,
    file: &'static str,
    listed: &'static [(&'static str, &'static str)],
    text: &'static str,
) -> Kind {
    Kind { name, file, text, structures: &[], listed }
}

/// Moments of a run in lines that are no structure.
const Z: (&str, &str) = ("z", "redshift, in comoving coordinates");
const T: (&str, &str) = ("t", "code time, in non-comoving coordinates");

pub(crate) const KINDS: &[Kind] = &[
    of("steps", "steps.jsonl", &["StepRecord"], "A run's root steps, one record a line."),
    of("summary", "summary.json", &["RunSummary"], "A run's totals."),
    of("audit", "audit.json", &["Audit"], "What the restriction of the initial mesh to the octree has kept."),
    with(
        "observed",
        "observed.jsonl",
        &[
            ("hook", "option of the observer: `on_step` or `on_output`"),
            ("by", "digest of its closure"),
            ("step", "number of the root step"),
            Z,
            T,
            ("value", "value of the closure"),
        ],
        "Values of a run's observers, one record a line.",
    ),
    of(
        "halos",
        "halos_*.json",
        &["FofCatalogue", "HaloCatalogue"],
        "Halos: friends of friends, or around density peaks.",
    ),
    of("profile", "profile_*.json", &["HaloProfile"], "Radial profile of a halo."),
    of("mass_function", "mass_function_*.json", &["MassFunction"], "Halos by mass."),
    of("power_spectrum", "power_spectrum_*.json", &["PowerSpectrum"], "P(k)."),
    of("density_pdf", "density_pdf_*.json", &["DensityPdf"], "Volume and mass by density."),
    of("refinement_ratio", "refinement_ratio*.json", &["RefinementRatio"], "Levels of a run's outputs."),
    of("compare", "compare_*.json", &["Compared"], "An output against the solution of its problem."),
    of("force_test", "force_test.json", &["ForceRecord"], "Forces of point masses."),
    with(
        "result",
        "result.json",
        &[Z, T, ("result", "value of the closure")],
        "Results of a measurement, one record an output; of `combine` one record.",
    ),
];

/// The sources of the structures; those of options are in [`options`].
const SOURCES: &[(&[&str], &str)] = &[
    (
        &[
            "StepRecord",
            "StepLimit",
            "CellBudgetAdjustment",
            "Ladder",
            "Sums",
            "GasRecord",
            "DarkMatterRecord",
            "PotentialRecord",
            "Ledger",
            "Timing",
            "RanksRecord",
            "RunSummary",
            "GasSums",
        ],
        include_str!("../../../../sim/src/records.rs"),
    ),
    (&["Traffic"], include_str!("../../../../sim/src/parallel/communicator.rs")),
    (&["CellPlace"], include_str!("../../../../sim/src/mesh/key.rs")),
    (&["Cosmology"], include_str!("../../../../sim/src/cosmology.rs")),
    (&["Audit", "Totals", "LevelAudit"], include_str!("../../../../ic/src/restrict/audit.rs")),
    (&["ForceBin", "ForceSample", "Spread"], include_str!("../../../../ic/src/problems/point_masses.rs")),
    (&["FofHalo", "FofCatalogue"], include_str!("../../../../analysis/src/halos/fof/mod.rs")),
    (&["Halo", "HaloCatalogue"], include_str!("../../../../analysis/src/halos/peaks/mod.rs")),
    (&["Overdensity", "Overdensities"], include_str!("../../../../analysis/src/halos/overdensity/mod.rs")),
    (&["Shell", "HaloProfile"], include_str!("../../../../analysis/src/halos/profile.rs")),
    (&["MassBin", "MassFunction"], include_str!("../../../../analysis/src/halos/mass_function/mod.rs")),
    (&["PowerBin", "PowerSpectrum"], include_str!("../../../../analysis/src/power_spectrum.rs")),
    (&["PdfBin", "DensityPdf"], include_str!("../../../../analysis/src/density_pdf.rs")),
    (&["LevelShare", "RefinementRow", "RefinementRatio"], include_str!("../../../../analysis/src/refinement_ratio.rs")),
    (&["Comparison", "Errors", "Norms", "Point", "Path"], include_str!("../../../../analysis/src/comparison.rs")),
    (&["Compared"], include_str!("../../stage/compare.rs")),
    (&["ForceRecord"], include_str!("../../stage/force_test.rs")),
];

/// Names of members by unit.
type MembersByUnit = [(&'static str, &'static [&'static str])];

/// Units of numbers whose names do not end with them, structure by structure; empty without a dimension. Every real number
/// of [`SOURCES`] has its unit here or in its name.
const UNITS: &[(&str, &MembersByUnit)] = &[
    (
        "StepRecord",
        &[
            ("code time", &["time", "dt", "gas_dt"]),
            ("code density", &["density_min", "density_max"]),
            ("1/s", &["cell_updates_per_second"]),
            ("byte", &["device_bytes"]),
            ("", &["a", "z", "volume_fractions", "energy_residual", "mass_drift", "cold_fraction"]),
        ],
    ),
    ("StepLimit", &[("code velocity", &["speed"]), ("code acceleration", &["acceleration"])]),
    ("CellBudgetAdjustment", &[("", &["factor"])]),
    ("Ladder", &[("", &["negative_fraction", "courant_number"])]),
    ("Sums", SUMS),
    ("GasRecord", &[("code density", &["density_min", "density_max"])]),
    ("DarkMatterRecord", SUMS_WITHOUT_HEAT),
    ("PotentialRecord", &[("", &["a"]), ("code energy", &["energy"])]),
    (
        "Ledger",
        &[
            ("code energy", &["gravity_work", "sources", "entropy_energy", "floor_energy", "regrid_energy"]),
            ("code mass", &["floor_mass"]),
        ],
    ),
    (
        "Timing",
        &[(
            "s",
            &[
                "save",
                "hydro",
                "poisson",
                "kick",
                "sources",
                "particles",
                "correction",
                "time_step",
                "regrid",
                "records",
            ],
        )],
    ),
    ("RanksRecord", &[("", &["imbalance", "sweep_imbalance", "costs"])]),
    ("Traffic", &[("byte", &["bytes"]), ("s", &["seconds", "exchanging", "waiting"])]),
    ("Steering", &[("code time", &["dt_max"]), ("", &["threshold_factor"])]),
    ("RunSummary", &[("", &["a", "mass_drift", "energy_residual"]), ("byte", &["bytes_per_cell"])]),
    (
        "Cosmology",
        &[
            ("", &["h", "omega_m", "omega_b", "omega_lambda", "omega_r", "w0", "wa", "sigma8", "n_s"]),
            ("eV", &["m_nu_ev"]),
        ],
    ),
    (
        "Audit",
        &[("code momentum density", &["momentum_scale"]), ("code energy density", &["unresolved_kinetic_energy"])],
    ),
    (
        "Totals",
        &[
            ("code density", &["mass"]),
            ("code momentum density", &["momentum"]),
            ("code energy density", &["internal_energy", "kinetic_energy"]),
        ],
    ),
    ("ForceBin", &[("finest cells", &["separation"])]),
    ("ForceSample", &[("finest cells", &["separation"]), ("", &["to_newton", "to_root", "felt_to_root"])]),
    ("Spread", &[("", &["mean", "rms"])]),
    ("FofCatalogue", &[("", &["redshift", "fraction_in_halos"])]),
    ("Halo", &[("", &["gas_fraction"]), (MEAN, &["peak_density"])]),
    ("HaloCatalogue", &[("", &["redshift"]), (MEAN, &["reference_density"])]),
    ("Overdensity", &[("", &["gas_fraction", "heavy_fraction"])]),
    ("Overdensities", &[("", &["concentration_200c"])]),
    ("Shell", &[(MEAN, &["density"])]),
    ("HaloProfile", &[("", &["redshift"])]),
    ("MassFunction", &[("", &["redshift"])]),
    ("PowerSpectrum", &[("", &["redshift"])]),
    ("PdfBin", &[("", &["log10_density", "volume_pdf", "mass_pdf"])]),
    ("DensityPdf", &[("", &["redshift"])]),
    ("LevelShare", &[("", &["volume_fraction", "leaf_volume_fraction"])]),
    ("RefinementRow", &[("", &["redshift", "a"]), ("code time", &["time"])]),
    ("Comparison", &[("", &["redshift"]), ("code time", &["time"]), ("code length", &["finest_width", "front"])]),
    ("Norms", &[("unit of the quantity", &["l1", "l2", "max", "scale"]), ("code length", &["max_at"])]),
    (
        "Point",
        &[
            ("code length", &["position"]),
            ("", &["level"]),
            ("code density, velocity, pressure", &["values", "exact", "scatter"]),
        ],
    ),
    ("Path", &[("code length", &["through", "center", "radius"])]),
    ("PointMasses", &[("finest cells", &["separations"])]),
];

const MEAN: &str = "mean matter density";
const SUMS_WITHOUT_HEAT: &[(&str, &[&str])] =
    &[("code mass", &["mass"]), ("code momentum", &["momentum"]), ("code energy", &["kinetic"])];
const SUMS: &[(&str, &[&str])] =
    &[("code mass", &["mass"]), ("code momentum", &["momentum"]), ("code energy", &["kinetic", "energy"])];

/// The members of a kind of records, in the order in which they are written.
pub(crate) fn rows(kind: &Kind) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for name in kind.structures {
        add(name, "", &mut rows);
    }
    let listed = kind.listed.iter().map(|(name, text)| {
        let unit = if *name == T.0 { "code time" } else { "" };
        Row { name: (*name).into(), unit, text: (*text).into() }
    });
    rows.extend(listed);
    rows
}

/// The kind of the records in a file, by the first part of its name.
pub(crate) fn kind_of(name: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| {
        kind.name == name || (kind.file.starts_with(&format!("{}*", kind.name)) && name.starts_with(kind.name))
    })
}

/// A unit in non-comoving coordinates, where those of lengths, masses and velocities have no fixed size.
pub(crate) fn in_code_units(unit: &str) -> &str {
    let is_physical = columns::UNITS.iter().any(|(_, physical)| *physical == unit)
        || unit == MEAN
        || !unit.is_empty() && CELL_FIELDS.iter().any(|field| field.unit == unit);
    if is_physical { "code units" } else { unit }
}

/// Adds the members of a structure and of the structures within; two structures may share some.
fn add(name: &str, before: &str, rows: &mut Vec<Row>) {
    let Item { members, fields, tag, text } = read(name).unwrap_or_else(|| panic!("{name} has no source"));
    // the fields of an enumeration's variants stand beside its tag, or below the variant's name
    let before = if fields.is_empty() || tag.is_some() { before.to_owned() } else { format!("{before}*.") };
    if let Some(tag) = tag {
        push(Row { name: format!("{before}{tag}"), unit: "", text: phrase(&text) }, rows);
    }
    for Member { name: member, kind, text, is_flat, .. } in if fields.is_empty() { members } else { fields } {
        let path = format!("{before}{member}");
        let (inner, marks) = element(&kind);
        let within = if is_flat { before.clone() } else { format!("{path}{marks}.") };
        if !is_flat {
            push(Row { name: path, unit: unit(name, &member).unwrap_or_default(), text: phrase(&text) }, rows);
        }
        if read(inner).is_some() {
            add(inner, &within, rows);
        }
    }
}

/// Adds a row, or its meaning to that of the row with its name.
fn push(row: Row, rows: &mut Vec<Row>) {
    match rows.iter_mut().find(|known| known.name == row.name) {
        None => rows.push(row),
        Some(known) if format!("; {}; ", known.text).contains(&format!("; {}; ", row.text)) => {}
        Some(known) => known.text = format!("{}; {}", known.text, row.text),
    }
}

/// The type of what a member holds, and how its path is marked: `[]` for the entries of a list, `.*` for a map's values.
fn element(kind: &str) -> (&str, String) {
    let within = |before: &str| kind.strip_prefix(before)?.strip_suffix('>');
    if let Some(inner) = within("Option<") {
        return element(inner);
    }
    if let Some(entries) = within("Vec<") {
        let (inner, marks) = element(entries);
        return (inner, format!("[]{marks}"));
    }
    if let Some((_, value)) = within("BTreeMap<").and_then(|inner| inner.split_once(", ")) {
        let (inner, marks) = element(value);
        return (inner, format!(".*{marks}"));
    }
    match kind.strip_prefix("&'a [").and_then(|kind| kind.strip_suffix(']')) {
        Some(entries) => (entries, "[]".into()),
        None => (kind.strip_prefix("&'a ").unwrap_or(kind), String::new()),
    }
}

fn read(name: &str) -> Option<Item> {
    let own = SOURCES.iter().find(|(names, _)| names.contains(&name)).map(|(_, source)| *source);
    item(own.or_else(|| options::source(name))?, name)
}

/// The unit of a member of a structure, where it is known.
fn unit(structure: &str, member: &str) -> Option<&'static str> {
    let units = UNITS.iter().find(|(name, _)| *name == structure).map_or(&[][..], |(_, units)| *units);
    let listed = units.iter().find(|(_, members)| members.contains(&member)).map(|(unit, _)| *unit);
    listed.or_else(|| columns::unit_by_end(member))
}

/// A doc comment as a phrase: without its last point, and small at the beginning unless that is a name or an abbreviation.
fn phrase(text: &str) -> String {
    let text = &text.trim_end_matches('.').replace("`None`", "null");
    let mut chars = text.chars();
    let is_word = matches!((chars.next(), chars.next()), (Some('A'..='Z'), Some('a'..='z' | ' ')));
    if !is_word || ["Poisson", "Newton", "Nyquist"].iter().any(|name| text.starts_with(name)) {
        return text.to_owned();
    }
    text[..1].to_ascii_lowercase() + &text[1..]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::reference;
    use crate::recipe::step_members::STEP_MEMBERS;
    use std::collections::BTreeSet;

    fn rows_of(name: &str) -> Vec<Row> {
        rows(kind_of(name).unwrap())
    }

    /// Every real number of a record has a unit, if only that it has none, and every member a description; no unit is of a
    /// member that does not exist.
    #[test]
    fn every_number_has_its_unit() {
        let mut known = BTreeSet::new();
        for structure in SOURCES.iter().flat_map(|(names, _)| *names) {
            let Item { members, fields, .. } = read(structure).unwrap();
            for Member { name, kind, text, .. } in members.into_iter().chain(fields) {
                assert!(!text.is_empty(), "{structure}.{name} has no description");
                known.insert((*structure, name.clone()));
                let is_real = kind.contains("f64") || kind.contains("f32");
                assert!(
                    !is_real || unit(structure, &name).is_some() || kind == "Vec<(f64, Values)>",
                    "{structure}.{name} has no unit"
                );
            }
        }
        for (structure, units) in UNITS {
            for member in units.iter().flat_map(|(_, members)| *members) {
                let is_there = known.contains(&(*structure, (*member).to_owned()))
                    || read(structure).unwrap().members.iter().any(|known| known.name == *member);
                assert!(is_there, "{structure} has no member {member}");
            }
        }
    }

    /// Closures see members of the records, in the records' units.
    #[test]
    fn steps_of_closures_have_the_units_of_the_records() {
        fn check(members: &[reference::Member], within: &str, rows: &[Row]) {
            for member in members {
                let path = format!("{within}{}", member.name);
                let row = rows.iter().find(|row| row.name == path).unwrap_or_else(|| panic!("no {path}"));
                assert_eq!(member.unit, row.unit, "{path}");
                check(member.members, &format!("{path}."), rows);
            }
        }
        check(STEP_MEMBERS, "", &rows_of("steps"));
    }

    #[test]
    fn paths_lead_into_lists_maps_and_variants() {
        let unit = |kind: &str, path: &str| {
            let found = rows_of(kind).into_iter().find(|row| row.name == path);
            found.unwrap_or_else(|| panic!("{kind} has no {path}")).unit
        };
        for (kind, path, expected) in [
            ("steps", "sums.mass", "code mass"),
            ("steps", "gas.density_max", "code density"),
            ("steps", "limit.by", ""),
            ("steps", "limit.speed", "code velocity"),
            ("steps", "ladder.first_floored.cell", ""),
            ("steps", "ranks.traffic[].waiting", "s"),
            ("summary", "gas.initial.energy", "code energy"),
            ("halos", "halos[].overdensities.*.mass_msun_h", "M☉/h"),
            ("halos", "halos[].concentration_200c", ""),
            ("halos", "halos[].dispersion_km_s", "km/s"),
            ("halos", "halos[].peak_density", "mean matter density"),
            ("halos", "cosmology.t_cmb_k", "K"),
            ("halos", "options.linking_length", ""),
            ("compare", "points[].scatter", "code density, velocity, pressure"),
            ("compare", "path.*.radius", "code length"),
            ("force_test", "samples[].to_newton", ""),
            ("force_test", "masses.separations", "finest cells"),
            ("refinement_ratio_run2", "rows[].levels[].cells", ""),
            ("observed", "t", "code time"),
        ] {
            assert_eq!(unit(kind, path), expected, "{path} of {kind}");
        }
        let steps = rows_of("steps");
        let text = |path: &str| steps.iter().find(|row| row.name == path).unwrap().text.as_str();
        assert_eq!(
            [text("limit.level"), text("limit.cell")],
            ["level; finest level at that face", "cell on the level's lattice"]
        );
        assert!(
            rows_of("halos").iter().all(|row| row.text.matches("baryons").count() < 2 && !row.text.contains("None"))
        );
        assert!(kind_of("mine").is_none() && kind_of("halos_of_mine").is_none());
        assert_eq!(["km/s", "code time", ""].map(in_code_units), ["code units", "code time", ""]);
    }
}
