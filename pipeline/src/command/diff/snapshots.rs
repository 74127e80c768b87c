//! Two snapshots: headers, trees, and on request fields and power spectra.

use super::super::differences::changes;
use super::{Findings, listed};
use crate::cli;
use crate::error::PipelineError;
use crate::processes::isolated_read;
use comove_analysis::field_difference::{FieldDifferences, field_differences};
use comove_analysis::power_spectrum::{PowerOptions, PowerSpectrum, power_spectrum};
use comove_analysis::table::readable;
use comove_sim::{Octree, Snapshot, SnapshotHeader};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

#[derive(Serialize)]
pub(super) struct SnapshotComparison {
    a: PathBuf,
    b: PathBuf,
    /// Whether they show the same and continue alike.
    equal: bool,
    /// What differs in what decides about the state and how it continues, a line each.
    header: Vec<String>,
    /// What differs in who made them, a line each.
    provenance: Vec<String>,
    /// What differs in the trees, a line each.
    tree: Vec<String>,
    /// The arrays whose digests differ.
    datasets: Vec<String>,
    fields: Option<FieldDifferences>,
    power: Option<Vec<PowerPair>>,
}

/// P(k) of both in a bin.
#[derive(Serialize)]
struct PowerPair {
    k_h_mpc: f64,
    power_mpc3_h3: [f64; 2],
    /// B/A − 1.
    relative_difference: f64,
}

/// Compares them.
pub(super) fn compare(arguments: &cli::Diff) -> Result<SnapshotComparison, PipelineError> {
    let paths = [arguments.a.as_path(), arguments.b.as_path()];
    paths.into_iter().try_for_each(isolated_read::snapshot)?;
    let [a, b] = paths.map(Snapshot::read_tree);
    let ((header_a, tree_a), (header_b, tree_b)) = (a?, b?);
    let [content_a, content_b] = paths.map(Snapshot::content_digest);
    let mut comparison = SnapshotComparison {
        a: paths[0].into(),
        b: paths[1].into(),
        equal: content_a? == content_b?,
        header: changes(&physical(&header_a), &physical(&header_b)),
        provenance: changes(&header_a.provenance, &header_b.provenance),
        tree: tree_differences(&tree_a, &tree_b),
        datasets: differing_datasets(paths)?,
        fields: None,
        power: None,
    };
    if header_a.recipe != header_b.recipe {
        comparison.provenance.push("recipe: the texts differ".into());
    }
    if arguments.fields || arguments.power {
        let [a, b] = paths.map(Snapshot::read);
        let (a, b) = (a?, b?);
        if arguments.fields {
            comparison.fields = Some(field_differences(&a, &b)?);
        }
        if arguments.power {
            comparison.power = Some(power(&a, &b, paths)?);
        }
    }
    Ok(comparison)
}

/// A header without who made the file.
fn physical(header: &SnapshotHeader) -> Value {
    let mut value = serde_json::to_value(header).expect("numbers and names");
    let fields = value.as_object_mut().expect("a header is a map");
    ["recipe", "provenance"].iter().for_each(|name| _ = fields.remove(*name));
    value
}

fn tree_differences(a: &Octree, b: &Octree) -> Vec<String> {
    let mut lines = Vec::new();
    if a.root_groups() != b.root_groups() {
        lines.push(format!("root cells: {:?} → {:?}", a.cells(0), b.cells(0)));
    }
    if a.periodic() != b.periodic() {
        lines.push(format!("periodic: {:?} → {:?}", a.periodic(), b.periodic()));
    }
    for level in 0..a.level_count().max(b.level_count()) {
        let [keys_a, keys_b] = [a, b].map(|tree| tree.level(level).iter().collect::<BTreeSet<_>>());
        let (only_a, only_b) = (keys_a.difference(&keys_b).count(), keys_b.difference(&keys_a).count());
        if only_a + only_b > 0 {
            let (a, b) = (keys_a.len(), keys_b.len());
            lines.push(format!("level {level}: {a} → {b} groups, {only_a} only in A, {only_b} only in B"));
        }
    }
    lines
}

/// The fields that only one has, or that differ.
fn differing_datasets(paths: [&Path; 2]) -> Result<Vec<String>, PipelineError> {
    let [a, b] = paths.map(|path| Snapshot::digests(path).map(BTreeSet::from_iter));
    let (a, b): (BTreeSet<_>, BTreeSet<_>) = (a?, b?);
    let names: BTreeSet<String> = a.symmetric_difference(&b).map(|(name, _)| name.clone()).collect();
    Ok(names.into_iter().filter(|name| name.starts_with("GridData/")).collect())
}

fn power(a: &Snapshot, b: &Snapshot, paths: [&Path; 2]) -> Result<Vec<PowerPair>, PipelineError> {
    let [spectrum_a, spectrum_b] = [a, b].map(|snapshot| power_spectrum(snapshot, &PowerOptions::default()));
    let (spectrum_a, spectrum_b) = (spectrum_a?, spectrum_b?);
    let grid = |spectrum: &PowerSpectrum| (spectrum.cells, spectrum.k_nyquist_h_mpc);
    if grid(&spectrum_a) != grid(&spectrum_b) {
        let reason = format!(
            "--power: its root grid has {:?} cells and a Nyquist wave number of {} h/Mpc, {} has {:?} and {}: power spectra \
             are compared on one grid",
            spectrum_a.cells,
            readable(spectrum_a.k_nyquist_h_mpc),
            paths[1].display(),
            spectrum_b.cells,
            readable(spectrum_b.k_nyquist_h_mpc)
        );
        return Err(PipelineError::input(paths[0], reason));
    }
    let pairs = spectrum_a.bins.iter().zip(&spectrum_b.bins).map(|(a, b)| PowerPair {
        k_h_mpc: a.k_h_mpc,
        power_mpc3_h3: [a.power_mpc3_h3, b.power_mpc3_h3],
        relative_difference: if a == b { 0.0 } else { b.power_mpc3_h3 / a.power_mpc3_h3 - 1.0 },
    });
    Ok(pairs.collect())
}

impl Findings for SnapshotComparison {
    fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!("{} → {}", self.a.display(), self.b.display())];
        lines.extend(listed("header", &self.header));
        lines.extend(listed("who made them", &self.provenance));
        lines.extend(listed("tree", &self.tree));
        lines.extend(listed("arrays that differ", &self.datasets));
        if let Some(fields) = &self.fields {
            let FieldDifferences { common, leaves: [a, b], .. } = fields;
            lines.push(format!(
                "fields in the {common} common leaf cells (A has {a}, B has {b}), relative to their rms:"
            ));
            for field in &fields.fields {
                let [x, y, z] = field.largest_at.cell;
                let place = format!("at cell ({x}, {y}, {z}) of level {}", field.largest_at.level);
                let place = if field.largest > 0.0 { format!(" {place}") } else { String::new() };
                let (largest, mean) = (readable(field.largest), readable(field.mean));
                lines.push(format!("  {:<11} largest {largest}{place}, mean {mean}", field.name));
            }
        }
        if let Some(power) = &self.power {
            lines.push("P(k) on the root grid: k in h/Mpc, P in (Mpc/h)³ of A and B, B/A − 1".into());
            lines.extend(power.iter().map(|bin| {
                let [a, b] = bin.power_mpc3_h3.map(readable);
                format!("  {:>9} {a:>12} {b:>12} {:>12}", readable(bin.k_h_mpc), readable(bin.relative_difference))
            }));
        }
        if self.equal {
            lines.push("equal".into());
        }
        lines
    }

    fn verdict(&self) -> Option<String> {
        (!self.equal).then(|| "the snapshots differ".into())
    }
}
