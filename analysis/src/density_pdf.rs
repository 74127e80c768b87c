//! How volume and mass are distributed over density.

use crate::cell_fields::Gas;
use crate::cells::leaf_cells;
use crate::error::AnalysisError;
use crate::table::{Record, Table};
use comove_sim::Snapshot;
use serde::{Deserialize, Serialize};

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
    let (mut thinnest, mut densest, mut volume, mut mass) = (f64::INFINITY, 0.0f64, 0.0, 0.0);
    for cell in leaf_cells(snapshot) {
        thinnest = thinnest.min(cell.fluid[0]);
        densest = densest.max(cell.fluid[0]);
        volume += cell.volume();
        mass += cell.mass();
    }
    if !(thinnest > 0.0 && densest.is_finite()) {
        return Err(AnalysisError::option("density", thinnest, "must be positive and finite in every cell"));
    }
    let first = bin_of(thinnest);
    let mut bins: Vec<PdfBin> = (first..=bin_of(densest))
        .map(|n| PdfBin { log10_density: (n as f64 + 0.5) / per_decade, volume_pdf: 0.0, mass_pdf: 0.0, cells: 0 })
        .collect();
    for cell in leaf_cells(snapshot) {
        let bin = &mut bins[(bin_of(cell.fluid[0]) - first) as usize];
        bin.volume_pdf += cell.volume() / volume * per_decade;
        bin.mass_pdf += cell.mass() / mass * per_decade;
        bin.cells += 1;
    }
    Ok(DensityPdf { redshift: snapshot.header.cosmology.map(|_| snapshot.header.redshift()), bins })
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
