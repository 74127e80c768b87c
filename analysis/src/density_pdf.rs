//! How volume and mass are distributed over density.

use crate::cell_fields::Gas;
use crate::cells::patch_values;
use crate::error::AnalysisError;
use crate::table::{Record, Table};
use comove_sim::Snapshot;
use comove_sim::kernels::layout::DENSITY;
use comove_sim::octree::tree::LeafPatch;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// Leaf patches whose cells are added up by one thread; a number of its own, so that results depend on no thread count.
const PATCHES: usize = 64;

/// A bin of density.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PdfBin {
    /// log₁₀ of the density over the box mean at the middle of the bin.
    pub log10_density: f64,
    /// Fraction of the volume per unit log₁₀ density.
    pub volume_pdf: f64,
    /// Fraction of the mass per unit log₁₀ density.
    pub mass_pdf: f64,
    /// Leaf cells.
    pub cells: u64,
}

/// The distribution of density by volume and by mass.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DensityPdf {
    /// Redshift.
    pub redshift: Option<f64>,
    /// By rising density, all bins between the thinnest and the densest cell.
    pub bins: Vec<PdfBin>,
}

/// The distribution in `bins_per_decade` bins per factor of ten, their edges at round powers.
///
/// # Errors
/// [`AnalysisError::Option`] for bins out of range, or a density that is not positive.
pub fn density_pdf(snapshot: &Snapshot, bins_per_decade: usize) -> Result<DensityPdf, AnalysisError> {
    if !(1..=200).contains(&bins_per_decade) {
        return Err(AnalysisError::option("bins_per_decade", bins_per_decade, "between 1 and 200"));
    }
    let gas = Gas::new(snapshot);
    let per_decade = bins_per_decade as f64;
    let bin_of = |density: f64| ((density / gas.mean_density()).log10() * per_decade).floor() as i64;
    let patches: Vec<LeafPatch> = snapshot.state.tree.leaf_patches().collect();
    let [thinnest, densest] = extremes(snapshot, &patches);
    if !(thinnest > 0.0 && densest.is_finite()) {
        return Err(AnalysisError::option("density", thinnest, "must be positive and finite in every cell"));
    }
    let first = bin_of(thinnest);
    let mut sums = vec![Sums::default(); (bin_of(densest) - first + 1) as usize];
    let partial: Vec<Vec<Sums>> = patches
        .par_chunks(PATCHES)
        .map(|patches| {
            let mut partial = vec![Sums::default(); sums.len()];
            for &patch in patches {
                let volume = snapshot.cell_width(patch.level).powi(3);
                for density in patch_values(snapshot, patch, DENSITY) {
                    partial[(bin_of(density) - first) as usize].add(&Sums { cells: 1, volume, mass: density * volume });
                }
            }
            partial
        })
        .collect();
    // in the order of the tree, so that the bits do not depend on the number of threads
    for partial in &partial {
        sums.iter_mut().zip(partial).for_each(|(sum, part)| sum.add(part));
    }
    let mut box_sums = Sums::default();
    sums.iter().for_each(|sum| box_sums.add(sum));
    let bin = |(n, sum): (i64, &Sums)| PdfBin {
        log10_density: (n as f64 + 0.5) / per_decade,
        volume_pdf: sum.volume / box_sums.volume * per_decade,
        mass_pdf: sum.mass / box_sums.mass * per_decade,
        cells: sum.cells,
    };
    let redshift = snapshot.header.cosmology.map(|_| snapshot.header.redshift());
    Ok(DensityPdf { redshift, bins: (first..).zip(&sums).map(bin).collect() })
}

/// What a bin collects.
#[derive(Clone, Copy, Default)]
struct Sums {
    cells: u64,
    volume: f64,
    mass: f64,
}

impl Sums {
    fn add(&mut self, other: &Self) {
        self.cells += other.cells;
        self.volume += other.volume;
        self.mass += other.mass;
    }
}

/// The least and the greatest density.
fn extremes(snapshot: &Snapshot, patches: &[LeafPatch]) -> [f64; 2] {
    let wider = |x: [f64; 2], y: [f64; 2]| [x[0].min(y[0]), x[1].max(y[1])];
    let none = || [f64::INFINITY, f64::NEG_INFINITY];
    let of_patch = |&patch: &LeafPatch| {
        patch_values(snapshot, patch, DENSITY).fold(none(), |range, density| wider(range, [density; 2]))
    };
    // in any order: these have no round-off
    patches.par_iter().map(of_patch).reduce(none, wider)
}

impl Record for DensityPdf {
    fn table(&self) -> Table {
        let mut table = Table::new(["log10_density_mean", "volume_pdf_per_dex", "mass_pdf_per_dex", "cells"]);
        for bin in &self.bins {
            table.push(vec![bin.log10_density.into(), bin.volume_pdf.into(), bin.mass_pdf.into(), bin.cells.into()]);
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::leaf_at;
    use crate::fixture::{Fixture, gas};

    /// A quarter of the box at 4 times the density of the rest: means ρ = 1.75, fractions 1/4 and 4/7.
    #[test]
    fn two_phases() {
        let mut fixture = Fixture::new(|x| gas(if x[0] < 0.25 { 4.0 } else { 1.0 }, [0.0; 3], 1.0));
        fixture.max_level = 1;
        fixture.refine = Box::new(|_, x, _| x[1] < 0.5);
        let snapshot = fixture.build();
        assert_eq!(leaf_at(&snapshot, [0.2, 0.2, 0.2]).level, 1);
        let pdf = density_pdf(&snapshot, 10).unwrap();
        let dense = pdf.bins.last().unwrap();
        // 36864 additions, each good to 1e-16 of the sum
        assert!((dense.volume_pdf - 2.5).abs() < 1e-11 && (dense.mass_pdf - 40.0 / 7.0).abs() < 1e-11, "{dense:?}");
        assert!((dense.log10_density - (4f64 / 1.75).log10()).abs() <= 0.05);
        let volume: f64 = pdf.bins.iter().map(|b| b.volume_pdf / 10.0).sum();
        assert!((volume - 1.0).abs() < 1e-11);
        assert!(density_pdf(&snapshot, 0).is_err());
    }
}
