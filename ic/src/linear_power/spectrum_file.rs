//! Spectra from tables: which columns and units a file has (docs/equations.md, *Initial conditions*).

use super::LinearPower;
use super::label::{Label, Quantity, Unit};
use super::plausibility::{OF_POWER, OF_TRANSFER, examine};
use super::spline::LogSpline;
use super::table::TextTable;
use crate::error::IcError;
use comove_sim::Cosmology;
use std::f64::consts::PI;
use std::path::Path;

/// A spectrum from a file.
pub(super) struct TabulatedSpectrum {
    /// P(k), of a transfer table up to a factor; k in h/Mpc.
    pub(super) spline: LogSpline,
    /// What the file's user should know of it.
    pub(super) remarks: Vec<String>,
}

/// Names of columns in CAMB's transfer tables and in those that CLASS writes in CAMB's format.
const TOTAL: [&str; 2] = ["total", "-T_tot/k2"];

/// Beginnings of CLASS's names for matter besides baryons and cold dark matter.
const OTHER_MATTER: [&str; 3] = ["d_ncdm", "d_dcdm", "d_idm"];

/// Reads a transfer table at z = 0: Δ/k² of all matter beside k. Named columns are found by name (`total` of CAMB, `d_m`, which
/// is Δ, of CLASS, or d_b and d_cdm in the shares of the cosmology); else k in h/Mpc is column 1 and Δ/k² column 7 of 7 or 13.
/// P(k) is k^n_s T² up to a factor.
///
/// # Errors
/// [`IcError::Io`], [`IcError::TableLine`], [`IcError::Content`].
pub(super) fn read_transfer(path: &Path, cosmology: &Cosmology) -> Result<TabulatedSpectrum, IcError> {
    let table = TextTable::read(path)?;
    let labels = table.labels();
    let names = labels.as_ref().map(|(_, names)| names.as_slice()).unwrap_or_default();
    let place = |name: &str| names.iter().position(|label| label.is(name));
    let begins = |start: &str| names.iter().any(|label| label.text().starts_with(start));
    let total = TOTAL.iter().find_map(|name| place(name));
    // without matter of other species these two are all
    let has_other_matter = OTHER_MATTER.iter().any(|start| begins(start));
    let parts = place("d_b").zip(place("d_cdm")).filter(|_| !has_other_matter);
    let baryons = cosmology.baryon_fraction();
    // columns with their weights
    let (terms, is_over_k2) = match (total, place("d_m"), parts, table.columns()) {
        (Some(column), ..) => (vec![(column, 1.0)], true),
        (None, Some(column), ..) => (vec![(column, 1.0)], false),
        (None, None, Some((d_b, d_cdm)), _) => (vec![(d_b, baryons), (d_cdm, 1.0 - baryons)], false),
        (None, None, None, _) if begins("d_") => {
            let names: Vec<&str> = names.iter().map(Label::text).collect();
            let reason = format!(
                "columns {}, but d_m is needed, or d_b and d_cdm if there is no other matter; run CLASS with output \
                 = mTk",
                names.join(", ")
            );
            return Err(table.wrong(reason));
        }
        (None, None, None, 7 | 13) => (vec![(6, 1.0)], true),
        (None, None, None, columns) => {
            let reason = format!(
                "{columns} columns; a CAMB transfer table has 7 or 13, one of CLASS names d_m in its header (a table of k and \
                 P(k) is a power table: power: #{{ camb_power: … }})"
            );
            return Err(table.wrong(reason));
        }
    };
    let wave_number = names.iter().position(Label::is_wave_number).unwrap_or(0);
    let unit = names.get(wave_number).and_then(|label| label.wave_number_unit(cosmology.h));
    let k_factor = unit.as_ref().map_or(1.0, |unit| unit.factor);
    let points = table.rows.iter().map(|row| {
        let k = k_factor * row.values[wave_number];
        let sum: f64 = terms.iter().map(|(column, weight)| weight * row.values[*column]).sum();
        let transfer = if is_over_k2 { sum } else { sum / k.powi(2) };
        (row.line, row.values[wave_number], k, k.powf(cosmology.n_s) * transfer * transfer)
    });
    let points = checked(&table, points)?;
    let line = labels.as_ref().map(|(line, _)| *line);
    let mut remarks = remarks(path, &table, unit.filter(|unit| unit.factor != 1.0).map(|unit| unit.text), line);
    remarks.extend(
        examine(&points, OF_TRANSFER, cosmology).map_err(|reason| table.wrong(reason))?.map(|r| named(path, &r)),
    );
    Ok(TabulatedSpectrum { spline: LogSpline::new(&points), remarks })
}

/// Reads a power table at z = 0: named columns of k and P or Δ², with the units that the header states; else P in (Mpc/h)³ in the
/// first column beside that of k, and k in h/Mpc in column 1.
///
/// # Errors
/// [`IcError::Io`], [`IcError::TableLine`], [`IcError::Content`].
pub(super) fn read_power(path: &Path, cosmology: &Cosmology) -> Result<TabulatedSpectrum, IcError> {
    let table = TextTable::read(path)?;
    let labels = table.labels();
    let names = labels.as_ref().map(|(_, names)| names.as_slice()).unwrap_or_default();
    let header = labels.as_ref().map_or(0, |(line, _)| *line);
    let wave_number = names.iter().position(Label::is_wave_number).unwrap_or(0);
    let (column, is_delta2) = power_column(&table, header, names, wave_number)?;
    let k_unit = names.get(wave_number).and_then(|label| label.wave_number_unit(cosmology.h));
    let p_unit = names.get(column).and_then(|label| label.power_unit(cosmology.h)).filter(|_| !is_delta2);
    let factor = |unit: &Option<Unit>| unit.as_ref().map_or(1.0, |unit| unit.factor);
    let points = table.rows.iter().map(|row| {
        let (k, value) = (factor(&k_unit) * row.values[wave_number], factor(&p_unit) * row.values[column]);
        let power = if is_delta2 { 2.0 * PI * PI * value / k.powi(3) } else { value };
        (row.line, row.values[wave_number], k, power)
    });
    let points = checked(&table, points)?;
    let of_k = k_unit.filter(|unit| unit.factor != 1.0).map(|unit| unit.text);
    let of_power = if is_delta2 {
        Some("Δ²".to_owned())
    } else {
        p_unit.filter(|unit| unit.factor != 1.0).map(|unit| unit.text)
    };
    let converted = of_k.into_iter().chain(of_power).collect::<Vec<_>>().join(" and ");
    let spline = LogSpline::new(&points);
    let sigma8 = || LinearPower::of_table(spline.clone(), cosmology.n_s).sigma8();
    let converted = (!converted.is_empty()).then(|| format!("{converted} (σ8 is then {:.3})", sigma8()));
    let mut remarks = remarks(path, &table, converted, labels.as_ref().map(|(line, _)| *line));
    remarks
        .extend(examine(&points, OF_POWER, cosmology).map_err(|reason| table.wrong(reason))?.map(|r| named(path, &r)));
    Ok(TabulatedSpectrum { spline, remarks })
}

/// The column of P or, if true, Δ²: by its name, else the first that is not the wave number. `names` stand in line `header`.
fn power_column(
    table: &TextTable,
    header: usize,
    names: &[Label],
    wave_number: usize,
) -> Result<(usize, bool), IcError> {
    let others: Vec<usize> = (0..table.columns()).filter(|n| *n != wave_number).collect();
    let quantity = |n: usize| names.get(n).and_then(Label::quantity);
    let is_power = |n: &usize| matches!(quantity(*n), Some(Quantity::Power | Quantity::Delta2));
    let is_known = |n: &usize| quantity(*n).is_some();
    let named = others.iter().copied().find(is_power).or_else(|| others.iter().copied().find(is_known));
    if let Some(column) = named {
        return match quantity(column) {
            Some(Quantity::Transfer) => Err(table.wrong_line(
                header,
                "the table holds a transfer function, but P(k) is needed; square it and multiply by k^n_s",
            )),
            Some(Quantity::Logarithm) => Err(table.wrong_line(header, "the table holds logarithms; write k and P(k)")),
            found => Ok((column, found == Some(Quantity::Delta2))),
        };
    }
    let of_transfer: Vec<&str> = names.iter().filter(|label| label.is_of_transfer_table()).map(Label::text).collect();
    if !of_transfer.is_empty() {
        let reason = format!(
            "columns {} are those of a transfer table, but P(k) is needed; read it with power: #{{ camb_transfer: … \
             }}, or use the table of P(k) (CLASS: output = mPk)",
            of_transfer.join(", ")
        );
        return Err(table.wrong_line(header, reason));
    }
    match others.first() {
        Some(column) if ![7, 13].contains(&table.columns()) => Ok((*column, false)),
        _ => {
            let reason = format!(
                "{} columns; a matter power table has k and P(k) (7 or 13 columns make a transfer table: power: #{{ \
                 camb_transfer: … }})",
                table.columns()
            );
            Err(table.wrong(reason))
        }
    }
}

fn named(path: &Path, remark: &str) -> String {
    format!("{}: {remark}", path.display())
}

/// The remarks on a table's units and epoch.
fn remarks(path: &Path, table: &TextTable, converted: Option<String>, header: Option<usize>) -> Vec<String> {
    let converted = converted.zip(header).map(|(units, line)| format!("converted from {units}, as line {line} says"));
    let epoch = table.redshift().filter(|(_, z)| *z > 0.01).map(|(line, z)| {
        format!("a table at z = {z}, as line {line} says, gives the shape of the spectrum today: make it at z = 0")
    });
    converted.into_iter().chain(epoch).map(|remark| named(path, &remark)).collect()
}

/// The points of a spectrum, from rows of line, k as it stands, k in h/Mpc and P.
fn checked(table: &TextTable, rows: impl Iterator<Item = (usize, f64, f64, f64)>) -> Result<Vec<(f64, f64)>, IcError> {
    let mut points: Vec<(f64, f64)> = Vec::with_capacity(table.rows.len());
    for (line, k, k_h_mpc, power) in rows {
        let reason = if !(k.is_finite() && k > 0.0) {
            format!("k = {k}: must be positive and finite{}", if k < 0.0 { " (log10 of k? write k)" } else { "" })
        } else if !(power.is_finite() && power > 0.0) {
            format!("spectrum = {power} at k = {k}: must be positive and finite (logarithms? write P)")
        } else if let Some((before, _)) = points.last().filter(|(before, _)| *before >= k_h_mpc) {
            let found = if *before == k_h_mpc { "occurs in two rows" } else { "follows a larger one" };
            format!("k = {k} {found}: k must increase from row to row (sort -g -u)")
        } else {
            points.push((k_h_mpc, power));
            continue;
        };
        return Err(table.wrong_line(line, reason));
    }
    // σ8 needs what a sphere of 8 Mpc/h sees; beyond these limits lies less than 10⁻⁴ of its variance.
    let (first, last) = (points[0].0, points[points.len() - 1].0);
    if first > 1e-3 || last < 5.0 {
        let reason = format!(
            "k from {first:e} to {last:e} h/Mpc; σ8 needs a table from 1e-3 or less to 5 or more (other units? state them in a \
             header, \"# k [1/Mpc] P [Mpc^3]\")"
        );
        return Err(table.wrong(reason));
    }
    Ok(points)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linear_power::PowerSource;
    use std::path::PathBuf;
    use std::sync::OnceLock;

    fn cosmology() -> Cosmology {
        Cosmology::flat(0.7, 0.3, 0.045, 0.9, 1.0)
    }

    fn spectrum() -> &'static LinearPower {
        static SPECTRUM: OnceLock<LinearPower> = OnceLock::new();
        SPECTRUM.get_or_init(|| LinearPower::new(&PowerSource::EisensteinHu, &cosmology()).unwrap())
    }

    /// Wave numbers in h/Mpc from 10⁻⁵ to this.
    fn grid(last: f64) -> Vec<f64> {
        (0..=600).map(|n| 1e-5 * (last / 1e-5).powf(f64::from(n) / 600.0)).collect()
    }

    /// A table of these columns for every wave number.
    fn table(header: &str, last: f64, columns: impl Fn(f64) -> Vec<f64>) -> String {
        let row = |k: f64| columns(k).iter().map(|value| format!("{value:.9e}")).collect::<Vec<_>>().join(" ") + "\n";
        format!("{header}\n{}", grid(last).into_iter().map(row).collect::<String>())
    }

    fn read(text: &str, source: fn(PathBuf) -> PowerSource) -> Result<LinearPower, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("table");
        std::fs::write(&path, text).unwrap();
        LinearPower::new(&source(path), &cosmology()).map_err(|error| error.to_string())
    }

    fn power(text: &str) -> Result<LinearPower, String> {
        read(text, PowerSource::CambPower)
    }

    fn transfer(text: &str) -> Result<LinearPower, String> {
        read(text, PowerSource::CambTransfer)
    }

    fn assert_right(found: &LinearPower) {
        for k in [0.01, 0.08, 0.14, 0.3, 1.7] {
            assert!((found.at(k) / spectrum().at(k) - 1.0).abs() < 2e-3, "k = {k}: {}", found.at(k) / spectrum().at(k));
        }
    }

    fn per_mpc(k: f64) -> Vec<f64> {
        vec![k * 0.7, spectrum().at(k) / 0.343]
    }

    fn delta2(k: f64) -> Vec<f64> {
        vec![k, k.powi(3) * spectrum().at(k) / (2.0 * PI * PI)]
    }

    /// A header decides units, quantity and columns.
    #[test]
    fn a_header_decides() {
        let p = spectrum();
        let right = power(&table("# k [h/Mpc] P [(Mpc/h)^3]", 50.0, |k| vec![k, p.at(k)])).unwrap();
        assert_right(&right);
        assert!(right.remarks().is_empty(), "{:?}", right.remarks());
        for (text, said) in [
            (
                table("# k [1/Mpc] P [Mpc^3]", 50.0, per_mpc),
                "converted from 1/Mpc and Mpc³ (σ8 is then 0.900), as line 1 says",
            ),
            (table("# k [h/Mpc] Delta^2", 50.0, delta2), "converted from Δ² (σ8 is then 0.900), as line 1 says"),
            (table("P(k) [Mpc^3], z, k [1/Mpc]", 50.0, |k| vec![per_mpc(k)[1], 0.0, per_mpc(k)[0]]), "1/Mpc and Mpc³"),
            (
                table("## k [1/Mpc] P [Mpc^3]\n# from CLASS", 50.0, per_mpc),
                "1/Mpc and Mpc³ (σ8 is then 0.900), as line 1",
            ),
            (table("# k [1/Mpc] (physical), P [Mpc^3] (h = 0.7)", 50.0, per_mpc), "1/Mpc and Mpc³ (σ8 is then 0.900)"),
        ] {
            let found = power(&text).unwrap();
            assert_right(&found);
            assert!(found.remarks().len() == 1 && found.remarks()[0].contains(said), "{:?}", found.remarks());
        }
        // an unknown name, and P behind another known one
        for text in [
            table("# S(k)  k [h/Mpc]", 50.0, |k| vec![p.at(k), k]),
            table("# k T(k) P(k)", 50.0, |k| vec![k, 1.0, p.at(k)]),
            table("# k phi P(k)", 50.0, |k| vec![k, 1.0, p.at(k)]),
        ] {
            let found = power(&text).unwrap();
            assert_right(&found);
            assert!(found.remarks().is_empty(), "{:?}", found.remarks());
        }
        let logarithms = table("# log10(k) log10(P)", 50.0, |k| vec![k.log10(), p.at(k).log10()]);
        assert!(power(&logarithms).unwrap_err().contains("line 1: the table holds logarithms"));
        assert!(
            power(&table("# k T(k)", 50.0, |k| vec![k, 1.0]))
                .unwrap_err()
                .contains("line 1: the table holds a transfer function")
        );
    }

    /// CLASS's own 13 columns, those of CAMB with and without header, and those of CLASS in CAMB's format.
    #[test]
    fn transfer_tables_of_two_codes_agree() {
        let t = |k: f64| 1e5 * (spectrum().at(k) / k).sqrt();
        let class = |k: f64| {
            let delta = -(0.7 * k).powi(2) * t(k);
            vec![k, 0.1 * delta, delta, delta, 0.1 * delta, delta, delta, 0.5, 0.5, 1e-3, 1e-3, 1e-3, 1e-3]
        };
        let names = "k (h/Mpc),d_g,d_b,d_cdm,d_ur,d_m,d_tot,phi,psi,t_g,t_b,t_ur,t_tot";
        let numbered = |names: &str| {
            let names = names.split(',').enumerate().map(|(n, name)| format!("    {}:{name}", n + 1));
            format!("#{}", names.collect::<String>())
        };
        let camb = |k: f64| vec![k, t(k), t(k), 0.1 * t(k), 0.1 * t(k), 0.0, t(k)];
        let in_camb_format = "k (h/Mpc),-T_cdm/k2,-T_b/k2,-T_g/k2,-T_ur/k2,-T_ncdm/k2,-T_tot/k2";
        for text in [
            table(&numbered(names), 50.0, class),
            table("# k/h CDM baryon photon nu mass_nu total", 50.0, camb),
            table("# of CAMB", 50.0, camb),
            table("# k/h total CDM", 50.0, |k| vec![k, t(k), 0.1]),
            table(&numbered(in_camb_format), 50.0, camb),
        ] {
            let found = transfer(&text).unwrap();
            assert_right(&found);
            assert!(found.remarks().is_empty(), "{:?}", found.remarks());
        }
        let bare = transfer(&table("# no names", 50.0, class)).unwrap_err();
        assert!(bare.contains("Δ instead of Δ/k²") && bare.contains("CLASS"), "{bare}");
        // without d_m: baryons are 0.045/0.3 of all matter
        let densities = |k: f64| {
            let delta = -(0.7 * k).powi(2) * t(k);
            vec![k, 0.1 * delta, 0.6 * delta, (1.0 - 0.15 * 0.6) / 0.85 * delta, 0.1 * delta, 2.0 * delta, 0.5]
        };
        let found = transfer(&table(&numbered("k (h/Mpc),d_g,d_b,d_cdm,d_ur,d_tot,phi"), 50.0, densities)).unwrap();
        assert_right(&found);
        assert!(found.remarks().is_empty(), "{:?}", found.remarks());
        for names in ["k (h/Mpc),d_g,d_b,d_cdm,d_ncdm[0],d_tot,phi", "k (h/Mpc),d_g,d_b,t_b,t_cdm,d_tot,phi"] {
            let message = transfer(&table(&numbered(names), 50.0, densities)).unwrap_err();
            assert!(message.contains("d_m is needed, or d_b and d_cdm"), "{message}");
        }
        let per_mpc = transfer(&table("# none", 50.0, |k| [vec![0.7 * k], camb(k)[1..].to_vec()].concat())).unwrap();
        assert!(per_mpc.remarks()[0].contains("k in 1/Mpc instead of h/Mpc?"), "{:?}", per_mpc.remarks());
    }

    /// Without a header σ8 and shape tell what a table holds.
    #[test]
    fn other_units_are_named() {
        let p = spectrum();
        let remark = |columns: &dyn Fn(f64) -> Vec<f64>| {
            let found = power(&table("# two columns here", 50.0, columns)).unwrap();
            assert!((found.sigma(8.0).unwrap() / 0.9 - 1.0).abs() < 1e-6);
            found.remarks().join("; ")
        };
        let says = |columns: &dyn Fn(f64) -> Vec<f64>, parts: &[&str]| {
            let found = remark(columns);
            assert!(parts.iter().all(|part| found.contains(part)), "{found}");
        };
        assert_eq!(remark(&|k| vec![k, p.at(k)]), "");
        says(
            &per_mpc,
            &[
                "of the table is 1.1",
                "that of the recipe 0.9",
                "k in 1/Mpc and P in Mpc³ instead of",
                "σ8 is 0.900",
                "off that of",
            ],
        );
        // an amplitude that fits by accident: the shape tells
        let sigma8_in_1_mpc = (0.9f64 / 1.16).powi(2);
        says(&|k| vec![0.7 * k, sigma8_in_1_mpc * per_mpc(k)[1]], &["k in 1/Mpc"]);
        says(&|k| vec![k, p.at(k) / 0.343], &["is 1.537", "P in Mpc³ instead of"]);
        says(&|k| vec![k / 0.7, p.at(k) * 0.343], &["units that were converted twice to h/Mpc and (Mpc/h)³?"]);
        // a fit without the suppression of baryons, as it is and in 1/Mpc
        let cold = LinearPower::new(&PowerSource::EisensteinHu, &Cosmology { omega_b: 0.0, ..cosmology() }).unwrap();
        assert_eq!(remark(&|k| vec![k, cold.at(k)]), "");
        says(&|k| vec![0.7 * k, cold.at(k) / 0.343], &["k in 1/Mpc and P in Mpc³ instead of", "σ8 is 0.900"]);
        says(&|k| vec![k, p.at(k) / (2.0 * PI).powi(3)], &["P/(2π)³ instead of P"]);
        let growth = cosmology().growth(0.1).0 / cosmology().growth(1.0).0;
        says(&|k| vec![k, p.at(k) * growth.powi(2)], &["a table at z = 9.0"]);
        says(&|k| vec![k, p.at(k) * 0.8], &["that of the recipe 0.9", "a table at z ="]);
        says(&|k| vec![k, p.at(k) * 1.3], &["another cosmology"]);
        let absurd = power(&table("# two columns here", 50.0, delta2)).unwrap_err();
        assert!(absurd.contains("Δ² = k³P/(2π²) instead of P?") && absurd.contains("is 0.0"), "{absurd}");
        let t = power(&table("# two columns here", 50.0, |k| vec![k, (p.at(k) / k).sqrt()])).unwrap_err();
        assert!(t.contains("transfer function T instead of P?"), "{t}");
        let early = power(&table("# at redshift z=99\n# k P", 50.0, |k| vec![k, p.at(k)])).unwrap();
        assert!(early.remarks()[0].contains("a table at z = 99, as line 1 says"), "{:?}", early.remarks());
    }

    #[test]
    fn unusable_tables_say_why() {
        let says = |text: &str, parts: &[&str]| {
            let found = power(text).unwrap_err();
            assert!(parts.iter().all(|part| found.contains(part)), "{found}");
        };
        says("1e-4 1\n1e-2 2\n1 2\n", &["σ8 needs", "header"]);
        says("1e-4 1\n10 2\n1 2\n", &["line 3: k = 1 follows a larger one", "in \"1 2\""]);
        says("1e-4 1\n1 2\n1 2\n10 1\n", &["line 3: k = 1 occurs in two rows"]);
        says("1e-4 1\n1 -2\n10 1\n", &["line 2: spectrum = -2 at k = 1", "in \"1 -2\""]);
        says("1e-4 1\n1 NaN\n10 1\n", &["line 2: spectrum = NaN"]);
        says("# k P\n0 0\n1e-4 1\n1 2\n10 1\n", &["line 2: k = 0"]);
        says("-4 1\n0 2\n1 1\n", &["line 1: k = -4", "log10 of k?"]);
        says("1 2 3 4 5 6 7\n2 2 3 4 5 6 7\n3 2 3 4 5 6 7\n", &["7 columns", "camb_transfer"]);
        says("# k\n1e-4\n1\n10\n", &["1 columns", "k and P(k)"]);
        let rows = "1e-4 2 3 4 5 6 7\n1 2 3 4 5 6 7\n10 2 3 4 5 6 7\n";
        let of_camb = format!("# k/h CDM baryon photon nu mass_nu total\n{rows}");
        says(&of_camb, &["line 1: columns CDM, baryon, photon, nu, mass_nu, total", "camb_transfer", "in \"# k/h CDM"]);
        says(
            "# k phi psi\n1e-4 2 3\n1 2 3\n10 2 3\n",
            &["line 1: columns phi, psi are those of a transfer table", "mPk"],
        );
        says("# k d_m\n1e-4 2\n1 2\n10 2\n", &["line 1: columns d_m are those of a transfer table"]);
        let narrow = transfer("1e-4 1\n1e-2 2\n1 2\n").unwrap_err();
        assert!(narrow.contains("2 columns") && narrow.contains("camb_power"), "{narrow}");
        let absent = LinearPower::new(&PowerSource::CambPower("absent".into()), &cosmology()).unwrap_err();
        assert!(absent.to_string().contains("absent"));
    }

    /// σ of small masses from a table to k = 5.2 h/Mpc, against one to 2000; masses that the table does not hold have none.
    #[test]
    fn sigma_goes_on_beyond_a_table() {
        let of = |last: f64, shape: &dyn Fn(f64) -> f64| power(&table("# k P", last, |k| vec![k, shape(k)])).unwrap();
        let p = spectrum();
        let cold = |k: f64| p.at(k);
        let (short, long) = (of(5.2, &cold), of(2000.0, &cold));
        for radius in [0.15, 0.3, 1.0, 3.0, 8.0] {
            let (found, right) = (short.sigma(radius).unwrap(), long.sigma(radius).unwrap());
            assert!((found / right - 1.0).abs() < 5e-3, "{radius}: {found} {right}");
            assert!((right / p.sigma(radius).unwrap() - 1.0).abs() < 1e-3, "{radius}: {right}");
        }
        assert_eq!(short.sigma(0.01), None);
        // a cut-off, as of warm dark matter, ends within the table
        let warm = |k: f64| p.at(k) * (1.0 + (0.3 * k).powf(2.2)).powf(-9.0);
        let (found, right) = (of(5.2, &warm).sigma(0.05).unwrap(), of(2000.0, &warm).sigma(0.05).unwrap());
        assert!((found / right - 1.0).abs() < 0.02, "{found} {right}");
        // no linear spectrum of cold dark matter: nothing is known beyond its end
        let bumpy = |k: f64| p.at(k) * (1.0 + (k / 2.0).powi(2));
        assert!(of(5.2, &bumpy).sigma(0.12).is_none() && of(5.2, &bumpy).sigma(8.0).is_some());
    }

    /// The integral of the fit is converged at the smallest masses: against the trapezoidal rule in steps a tenth as long.
    #[test]
    fn sigma_is_converged() {
        let p = spectrum();
        for radius in [3e-3, 0.05, 8.0] {
            let step = 3e-4;
            let variance: f64 = (0..90_000)
                .map(|n| 1e-6 * (step * f64::from(n)).exp())
                .map(|k| {
                    let x = k * radius;
                    let window = if x < 1e-2 { 1.0 - x * x / 10.0 } else { 3.0 * (x.sin() - x * x.cos()) / x.powi(3) };
                    step * k.powi(3) * p.at(k) * window * window / (2.0 * PI * PI)
                })
                .sum();
            let found = p.sigma(radius).unwrap();
            assert!((found / variance.sqrt() - 1.0).abs() < 1e-5, "{radius}: {found} {}", variance.sqrt());
        }
    }
}
