//! How gas and dark matter differ from all matter at the initial redshift: contrasts and velocities from a table of a
//! Boltzmann code (docs/equations.md, *Initial conditions*).

use super::label::Label;
use super::spline::Spline;
use super::table::Row as TableRow;
use super::table::TextTable;
use crate::error::IcError;
use comove_sim::Cosmology;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Where the transfer functions of gas and dark matter at the initial redshift come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SpeciesTransfer {
    /// A CAMB transfer table of 13 columns.
    Camb(PathBuf),
    /// A CLASS transfer table (`_tk.dat`) with header, in CLASS's own format, of densities and velocities.
    Class(PathBuf),
}

impl SpeciesTransfer {
    /// Its name in recipes.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Camb(_) => "camb",
            Self::Class(_) => "class",
        }
    }

    /// The file that it reads.
    pub fn file(&self) -> &Path {
        let (Self::Camb(path) | Self::Class(path)) = self;
        path
    }

    /// The same of another file.
    pub fn file_mut(&mut self) -> &mut PathBuf {
        let (Self::Camb(path) | Self::Class(path)) = self;
        path
    }
}

/// A fluid of the box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Species {
    /// Gas and dark matter as one.
    Both,
    /// Gas, which are the baryons.
    Gas,
    /// Cold dark matter.
    DarkMatter,
}

/// The contrast and the velocity of a species over those of all matter, by wave number.
///
/// With the shares f of both in all matter and δ_m = f_g δ_g + f_d δ_d, the table gives (δ_g − δ_d)/δ_m, and the same of
/// the velocities' divergences. So δ_g/δ_m = 1 + f_d (δ_g − δ_d)/δ_m and δ_d/δ_m = 1 − f_g (δ_g − δ_d)/δ_m, and their
/// mean is δ_m whatever the table.
///
/// Here δ_m is that of cold dark matter and baryons. Beside massive neutrinos velocities have the growth rate of the table at each
/// wave number.
#[derive(Clone, Debug)]
pub struct SpeciesRatios {
    gas_share: f64,
    density: Spline,
    velocity: Spline,
    /// Growth rate of both species over that of the run; only beside massive neutrinos.
    rate: Option<Spline>,
    /// k in h/Mpc and the contrast of both species.
    transfer: Vec<(f64, f64)>,
}

/// A row of a table: of gas and dark matter, up to one factor, the contrasts of the synchronous gauge and the velocities
/// of the Newtonian one. These are those of Newton's equations.
struct Row {
    line: usize,
    k_h_mpc: f64,
    contrast: [f64; 2],
    /// dδ/dlna that the velocity makes.
    growth: [f64; 2],
    /// The contrast of both together by the table.
    total: Option<f64>,
    /// Contrasts of massive neutrinos and of all matter, in tables that have them.
    neutrinos: Option<[f64; 2]>,
}

/// How far the growth rate of a table may be from the run's. Radiation and the baryons' late fall make 0.02 at z = 99.
const GROWTH_RATE: f64 = 0.1;

/// How far the contrast of all matter may be from that of its parts in the recipe's shares.
const TOTAL: f64 = 2e-3;

/// How far the share of neutrinos in a table may be from the recipe's: digits of a table make 0.01 for the lightest neutrinos.
const NEUTRINOS: f64 = 0.05;

impl SpeciesRatios {
    /// Reads a table at redshift `z`.
    ///
    /// # Errors
    /// [`IcError::Io`]; [`IcError::TableLine`] and [`IcError::Content`] for a table that cannot be used, or is one of another
    /// redshift or cosmology.
    pub fn new(source: &SpeciesTransfer, cosmology: &Cosmology, z: f64) -> Result<Self, IcError> {
        let path = source.file();
        let gas_share = cosmology.baryon_fraction();
        let mean = |[gas, dark]: [f64; 2]| gas_share * gas + (1.0 - gas_share) * dark;
        let table = TextTable::read(path)?;
        let rows = match source {
            SpeciesTransfer::Camb(_) => camb_rows(&table, cosmology.h)?,
            SpeciesTransfer::Class(_) => class_rows(&table, cosmology, z)?,
        };
        for row in &rows {
            check_row(row, mean).map_err(|reason| table.wrong_line(row.line, reason))?;
        }
        if let Some([_, row]) = rows.windows(2).find(|pair| pair[1].k_h_mpc <= pair[0].k_h_mpc) {
            let reason = format!("k = {:e} h/Mpc: k must increase from row to row (sort -g -u)", row.k_h_mpc);
            return Err(table.wrong_line(row.line, reason));
        }
        check_growth_rate(&table, &rows, mean, cosmology, z)?;
        if cosmology.has_neutrinos() {
            check_neutrinos(&table, &rows, cosmology, z)?;
        }
        let difference = |values: fn(&Row) -> [f64; 2]| {
            let points = rows.iter().map(|row| {
                let [gas, dark] = values(row);
                (row.k_h_mpc, (gas - dark) / mean([gas, dark]))
            });
            Spline::new(&points.collect::<Vec<_>>())
        };
        let of_run = cosmology.growth(1.0 / (1.0 + z)).1;
        let rate = |row: &Row| (row.k_h_mpc, mean(row.growth) / mean(row.contrast) / of_run);
        Ok(Self {
            gas_share,
            density: difference(|row| row.contrast),
            velocity: difference(|row| row.growth),
            rate: cosmology.has_neutrinos().then(|| Spline::new(&rows.iter().map(rate).collect::<Vec<_>>())),
            transfer: rows.iter().map(|row| (row.k_h_mpc, mean(row.contrast))).collect(),
        })
    }

    /// δ of the species over that of all, k in h/Mpc. Meaningful inside [`SpeciesRatios::range`].
    pub fn density(&self, species: Species, k: f64) -> f64 {
        1.0 + self.share_of_the_other(species) * self.density.at(k)
    }

    /// The velocity of the species over that of all at the run's growth rate, k in h/Mpc. Meaningful inside
    /// [`SpeciesRatios::range`].
    pub fn velocity(&self, species: Species, k: f64) -> f64 {
        let ratio = 1.0 + self.share_of_the_other(species) * self.velocity.at(k);
        self.rate.as_ref().map_or(ratio, |rate| ratio * rate.at(k))
    }

    /// k in h/Mpc and contrasts of both species together, up to one factor, of the table's rows.
    pub fn transfer(&self) -> &[(f64, f64)] {
        &self.transfer
    }

    /// The k in h/Mpc of the table.
    pub fn range(&self) -> (f64, f64) {
        self.density.range()
    }

    fn share_of_the_other(&self, species: Species) -> f64 {
        match species {
            Species::Both => 0.0,
            Species::Gas => 1.0 - self.gas_share,
            Species::DarkMatter => -self.gas_share,
        }
    }
}

/// CAMB's columns (`transfer_names` of its documentation): 1 k in h/Mpc; over k² of 1/Mpc², 2 cold dark matter, 3 baryons, 8
/// both; 11, 12 velocities of cold dark matter and baryons as dδ/dlna. Names of a header decide.
fn camb_rows(table: &TextTable, h: f64) -> Result<Vec<Row>, IcError> {
    let of_class = "write CLASS's own format (output = mTk, vTk), and read it with species_transfer: #{ class: … }";
    let columns = table.columns();
    let labels = table.labels();
    let names = labels.as_ref().map(|(_, names)| names.as_slice()).unwrap_or_default();
    if let Some((line, _)) = labels.as_ref().filter(|_| names.iter().any(|name| name.text().starts_with("d_"))) {
        return Err(
            table.wrong_line(*line, format!("the columns are those of CLASS, expected those of CAMB; {of_class}"))
        );
    }
    if columns != 13 {
        let reason = format!("{columns} columns; a CAMB transfer table with velocities has 13 ({of_class})");
        return Err(table.wrong(reason));
    }
    let place = |name: &str, otherwise: usize| names.iter().position(|label| label.is(name)).unwrap_or(otherwise);
    let [dark, gas] = [place("CDM", 1), place("baryon", 2)];
    let [v_dark, v_gas, total] = [place("v_CDM", 10), place("v_b", 11), place("no_nu", 7)];
    let [neutrinos, matter] = [place("mass_nu", 5), place("total", 6)];
    let (wave_number, factor) = wave_number(names, h);
    let row = |row: &TableRow| Row {
        line: row.line,
        k_h_mpc: factor * row.values[wave_number],
        contrast: [row.values[gas], row.values[dark]],
        growth: [row.values[v_gas], row.values[v_dark]],
        total: Some(row.values[total]),
        neutrinos: Some([row.values[neutrinos], row.values[matter]]),
    };
    Ok(table.rows.iter().map(row).collect())
}

/// The column of wave numbers, without names the first, and their unit in h/Mpc.
fn wave_number(names: &[Label], h: f64) -> (usize, f64) {
    let column = names.iter().position(Label::is_wave_number).unwrap_or(0);
    let unit = names.get(column).and_then(|label| label.wave_number_unit(h));
    (column, unit.map_or(1.0, |unit| unit.factor))
}

/// CLASS's columns by the names in its header: k in h/Mpc, contrasts d_b, d_cdm, d_m, and divergences of velocities t_b, t_cdm
/// in 1/Mpc, where dδ/dlna = −t/(aH).
///
/// In the synchronous gauge dark matter is at rest: t_b is the difference of the velocities, and all matter has that of the run's
/// growth rate. In the Newtonian gauge contrasts lack 3 aH θ/k² of all matter.
fn class_rows(table: &TextTable, cosmology: &Cosmology, z: f64) -> Result<Vec<Row>, IcError> {
    let Some((line, names)) = table.labels() else {
        let reason = "the header that names the columns (\"1:k (h/Mpc)\" …) is missing; CLASS writes it with \
                      format = class, headers = yes";
        return Err(table.wrong(reason));
    };
    if let Some((line, found)) = table.redshift().filter(|(_, found)| (found - z).abs() > 1e-3 * (1.0 + z)) {
        let reason =
            format!("the table is at z = {found}, the recipe's initial condition at {z}; run CLASS with z_pk = {z}");
        return Err(table.wrong_line(line, reason));
    }
    let column = |name: &str| names.iter().position(|label| label.is(name));
    let [Some(d_b), Some(d_cdm), Some(t_b)] = ["d_b", "d_cdm", "t_b"].map(column) else {
        let names: Vec<&str> = names.iter().map(Label::text).collect();
        let reason = format!(
            "columns {}, but d_b, d_cdm and t_b are needed; run CLASS with output = mTk, vTk",
            names.join(", ")
        );
        return Err(table.wrong_line(line, reason));
    };
    // d_m has massive neutrinos in it
    let total = column("d_m").filter(|_| !names.iter().any(|label| label.text().starts_with("d_ncdm")));
    let a = 1.0 / (1.0 + z);
    let hubble = cosmology.comoving_hubble_h_mpc(a) * cosmology.h;
    let gas_share = cosmology.baryon_fraction();
    let growth_rate = cosmology.growth(a).1;
    let (wave_number, factor) = wave_number(&names, cosmology.h);
    let row = |row: &TableRow| {
        let (line, row) = (row.line, &row.values);
        let k_h_mpc = factor * row[wave_number];
        let of_all = |[gas, dark]: [f64; 2]| gas_share * gas + (1.0 - gas_share) * dark;
        let contrast = [row[d_b], row[d_cdm]];
        let (growth, shift) = match column("t_cdm") {
            Some(t_cdm) => {
                let growth = [row[t_b], row[t_cdm]].map(|divergence| -divergence / hubble);
                (growth, -3.0 * (hubble / (k_h_mpc * cosmology.h)).powi(2) * of_all(growth))
            }
            None => {
                let (mean, difference) = (growth_rate * of_all(contrast), -row[t_b] / hubble);
                ([mean + (1.0 - gas_share) * difference, mean - gas_share * difference], 0.0)
            }
        };
        // which has no gauge
        let total = total.map(|d_m| row[d_m]);
        Row { line, k_h_mpc, contrast: contrast.map(|d| d + shift), growth, total, neutrinos: None }
    };
    Ok(table.rows.iter().map(row).collect())
}

/// Whether a row can be used; else why not.
fn check_row(row: &Row, mean: impl Fn([f64; 2]) -> f64) -> Result<(), String> {
    let Row { k_h_mpc, contrast, growth, total, .. } = row;
    let finite = contrast.iter().chain(growth).chain(total).all(|value| value.is_finite());
    if !(k_h_mpc.is_finite() && *k_h_mpc > 0.0 && finite) {
        return Err(format!("k = {k_h_mpc:e} h/Mpc: k must be positive, and all values finite"));
    }
    let (delta, rate) = (mean(*contrast), mean(*growth));
    if delta == 0.0 || rate == 0.0 {
        return Err(format!("contrast {delta:e} and velocity {rate:e} of all matter: neither may be 0"));
    }
    match total {
        Some(total) if (total / delta - 1.0).abs() > TOTAL => Err(format!(
            "the table has {total:e} for all matter, and {delta:e} as the sum of its parts with the recipe's omega_b \
             and omega_m; make the table for the recipe's cosmology"
        )),
        _ => Ok(()),
    }
}

/// The row whose k is next to 1 h/Mpc.
fn nearest(rows: &[Row]) -> &Row {
    let distance = |row: &&Row| row.k_h_mpc.ln().abs();
    rows.iter().min_by(|a, b| distance(a).total_cmp(&distance(b))).expect("rows")
}

/// Checks that the table has the redshift and the share of massive neutrinos of the recipe.
///
/// The share is compared in the row nearest to k = 1 h/Mpc, the redshift only where the table states one.
fn check_neutrinos(table: &TextTable, rows: &[Row], cosmology: &Cosmology, z: f64) -> Result<(), IcError> {
    if let Some((line, found)) = table.redshift().filter(|(_, found)| (found - z).abs() > 1e-3 * (1.0 + z)) {
        let reason = format!("the table is at z = {found}, the recipe's initial condition at {z}; make it at z = {z}");
        return Err(table.wrong_line(line, reason));
    }
    let row = nearest(rows);
    let share = |(both, [neutrinos, all]): (f64, [f64; 2])| (both - all) / (both - neutrinos);
    let found = row.total.zip(row.neutrinos).map_or(0.0, share);
    let expected = cosmology.neutrino_fraction(1.0 / (1.0 + z));
    if (found / expected - 1.0).abs() <= NEUTRINOS {
        return Ok(());
    }
    let reason = format!(
        "massive neutrinos have {found:.5} of all matter, and the recipe's m_nu_ev = {} gives {expected:.5} at z = {z}; make the \
         table for the recipe's cosmology",
        cosmology.m_nu_ev
    );
    Err(table.wrong_line(row.line, reason))
}

/// Whether velocities make contrasts grow as the run does at its initial redshift, by the row whose k is next to 1 h/Mpc,
/// far inside the horizon.
fn check_growth_rate(
    table: &TextTable,
    rows: &[Row],
    mean: impl Fn([f64; 2]) -> f64,
    cosmology: &Cosmology,
    z: f64,
) -> Result<(), IcError> {
    let row = nearest(rows);
    let (found, expected) = (mean(row.growth) / mean(row.contrast), cosmology.growth(1.0 / (1.0 + z)).1);
    if (found / expected - 1.0).abs() <= GROWTH_RATE {
        return Ok(());
    }
    let reason = format!(
        "the velocities have the growth rate f = {found:.3} at k = {:e} h/Mpc, and the recipe's cosmology has {expected:.3} \
         at z = {z}; make the table at this redshift",
        row.k_h_mpc
    );
    Err(table.wrong_line(row.line, reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(name: &str) -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("data").join(name)
    }

    fn cosmology() -> Cosmology {
        // photons and massless neutrinos of the tables
        let omega_r = 8.54e-5;
        Cosmology { omega_r, omega_lambda: 0.7 - omega_r, ..Cosmology::flat(0.7, 0.3, 0.045, 0.9, 1.0) }
    }

    /// CAMB, and CLASS in two gauges, from which contrasts and velocities follow in different ways, at the rows of CLASS: the
    /// codes agree within 10⁻⁴, the spline through the rows kept of CAMB's table within 10⁻³.
    #[test]
    fn tables_of_two_codes_agree() {
        let read = |source| SpeciesRatios::new(&source, &cosmology(), 99.0).unwrap();
        let camb = read(SpeciesTransfer::Camb(data("camb_transfer_z99.dat")));
        for name in ["class_synchronous_z99_tk.dat", "class_newtonian_z99_tk.dat"] {
            let class = read(SpeciesTransfer::Class(data(name)));
            let rows = TextTable::read(&data(name)).unwrap().rows;
            for species in [Species::Gas, Species::DarkMatter] {
                let ratios = rows.iter().map(|row| row.values[0]).filter(|k| (0.002..20.0).contains(k)).map(|k| {
                    let density = class.density(species, k) / camb.density(species, k);
                    let velocity = class.velocity(species, k) / camb.velocity(species, k);
                    [density, velocity]
                });
                let worst = ratios.flatten().map(|ratio| (ratio - 1.0).abs()).fold(0.0, f64::max);
                println!("{name} {species:?}: {worst:.5}");
                assert!(worst < 1.5e-3, "{name} {species:?}: {worst}");
            }
        }
        // at 1 h/Mpc by the row itself
        assert!((camb.density(Species::Gas, 0.9895) / camb.density(Species::DarkMatter, 0.9895) - 0.7151).abs() < 1e-3);
    }

    /// Nor does it matter which column has the wave number.
    #[test]
    fn a_comment_as_wide_as_the_table_does_not_hide_the_header() {
        let name = "class_synchronous_z99_tk.dat";
        let text = std::fs::read_to_string(data(name)).unwrap();
        let columns = TextTable::read(&data(name)).unwrap().columns();
        let header = text.lines().rfind(|line| line.starts_with('#')).unwrap();
        let mut names: Vec<&str> =
            header.split(':').skip(1).map(|name| name.trim_end_matches(char::is_numeric).trim()).collect();
        assert_eq!(names.len(), columns);
        names.rotate_left(1);
        let numbered: Vec<String> = names.iter().enumerate().map(|(n, name)| format!("{}:{name}", n + 1)).collect();
        let mut lines = vec![format!("# {}", numbered.join("  ")), format!("#{}", " word".repeat(columns))];
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let mut values: Vec<&str> = line.split_whitespace().collect();
            values.rotate_left(1);
            lines.push(values.join(" "));
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("table");
        std::fs::write(&path, lines.join("\n")).unwrap();
        let read = |path: PathBuf| SpeciesRatios::new(&SpeciesTransfer::Class(path), &cosmology(), 99.0).unwrap();
        let (found, expected) = (read(path), read(data(name)));
        for k in [0.01, 1.0, 10.0] {
            assert_eq!(found.density(Species::Gas, k), expected.density(Species::Gas, k));
            assert_eq!(found.velocity(Species::DarkMatter, k), expected.velocity(Species::DarkMatter, k));
        }
    }

    #[test]
    fn unusable_tables_say_why() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("table");
        let message = |source: fn(PathBuf) -> SpeciesTransfer, text: &str, cosmology: &Cosmology, z: f64| {
            std::fs::write(&path, text).unwrap();
            SpeciesRatios::new(&source(path.clone()), cosmology, z).unwrap_err().to_string()
        };
        let says = |message: String, parts: &[&str]| {
            let all = ["table"].iter().chain(parts).all(|part| message.contains(part));
            assert!(all, "{message}");
        };
        let text = |name: &str| std::fs::read_to_string(data(name)).unwrap();
        let (camb, class) = (text("camb_transfer_z99.dat"), text("class_synchronous_z99_tk.dat"));
        let right = cosmology();

        let z0 = text("camb_transfer_z0.dat");
        let parts = ["line ", "f = 0.513", "has 0.98", "z = 99", "make the table at this redshift"];
        says(message(SpeciesTransfer::Camb, &z0, &right, 99.0), &parts);
        let baryons = Cosmology { omega_b: 0.06, ..right };
        says(message(SpeciesTransfer::Camb, &camb, &baryons, 99.0), &["line ", "omega_b", "recipe's cosmology"]);
        says(message(SpeciesTransfer::Camb, "1 2 3\n2 3 4\n3 4 5\n", &right, 99.0), &["3 columns", "vTk"]);
        says(message(SpeciesTransfer::Camb, &class, &right, 99.0), &["line ", "those of CLASS", "#{ class: … }"]);
        let mut lines: Vec<&str> = camb.lines().collect();
        lines.swap(9, 10);
        says(message(SpeciesTransfer::Camb, &lines.join("\n"), &right, 99.0), &["line 11", "must increase"]);
        let bad = camb.lines().nth(4).unwrap();
        let nan = camb.replace(bad, &bad.replacen(bad.split(' ').nth(11).unwrap(), "NaN", 1));
        says(message(SpeciesTransfer::Camb, &nan, &right, 99.0), &["line 5", "finite"]);

        says(message(SpeciesTransfer::Class, &class, &right, 49.0), &["line 1", "z = 99", "z_pk = 49"]);
        says(
            message(SpeciesTransfer::Class, &camb, &right, 99.0),
            &["line 2", "d_b, d_cdm and t_b are needed", "v_CDM"],
        );
        let bare: Vec<&str> = class.lines().filter(|line| !line.starts_with('#')).collect();
        says(
            message(SpeciesTransfer::Class, &bare.join("\n"), &right, 99.0),
            &["the header that names the columns", "headers = yes"],
        );
        let without = class.replace(":t_b ", ":t_g2 ");
        says(message(SpeciesTransfer::Class, &without, &right, 99.0), &["d_cdm", "t_g2", "output = mTk, vTk"]);
    }
}
