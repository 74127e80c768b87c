//! How volume and mass are distributed over density.

use crate::cell_fields::Gas;
use crate::cells::{PATCH_CELLS, patch_values};
use crate::error::AnalysisError;
use crate::matter::require_gas;
use crate::messages::{exchange, gather, gather_all};
use crate::part::{Part, alone};
use crate::table::{Record, Table};
use comove_sim::Snapshot;
use comove_sim::kernels::layout::DENSITY;
use comove_sim::mesh::LeafPatch;
use comove_sim::parallel::Communicator;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::ops::Range;

/// Leaf patches whose cells are added up by one thread; a number of its own, so that results depend on the number neither of
/// threads nor of ranks.
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

/// Checks a number of bins per factor of ten.
///
/// # Errors
/// [`AnalysisError::Option`] for one out of range.
pub fn check(bins_per_decade: usize) -> Result<(), AnalysisError> {
    match bins_per_decade {
        1..=200 => Ok(()),
        _ => Err(AnalysisError::option("bins_per_decade", bins_per_decade, "must lie between 1 and 200")),
    }
}

/// The distribution in `bins_per_decade` bins per factor of ten, their edges at round powers.
///
/// # Errors
/// [`AnalysisError::Option`] for bins out of range, or a density that is not positive.
pub fn density_pdf(snapshot: &Snapshot, bins_per_decade: usize) -> Result<DensityPdf, AnalysisError> {
    alone(snapshot, |communicator, part| density_pdf_by(communicator, part, bins_per_decade))
}

/// The same of a snapshot in parts, on the first rank: collective.
pub fn density_pdf_by(
    communicator: &Communicator,
    part: &Part,
    bins_per_decade: usize,
) -> Result<Option<DensityPdf>, AnalysisError> {
    check(bins_per_decade)?;
    require_gas(part, "needs gas, and the snapshot has none")?;
    let mean = Gas::by(communicator, part).mean_density();
    let per_decade = bins_per_decade as f64;
    let bin_of = |density: f64| ((density / mean).log10() * per_decade).floor() as i64;
    let patches: Vec<LeafPatch> = part.leaf_patches().collect();
    let [thinnest, densest] = extremes(communicator, part.snapshot, &patches);
    if !(thinnest > 0.0 && densest.is_finite()) {
        return Err(AnalysisError::option("density", thinnest, "must be positive and finite in every cell"));
    }
    let first = bin_of(thinnest);
    let count = (bin_of(densest) - first + 1) as usize;
    let chunks = Chunks::new(communicator, part, &patches);
    let rows: Vec<Vec<[f64; 5]>> = chunks
        .starts()
        .into_par_iter()
        .map(|start| {
            let mut sums = vec![Sums::default(); count];
            chunks.visit(start, |level, densities| {
                let volume = part.snapshot.cell_width(level).powi(3);
                for density in densities {
                    let bin = (bin_of(density) - first) as usize;
                    sums[bin].add(&Sums { cells: 1, volume, mass: density * volume });
                }
            });
            let filled = sums.into_iter().enumerate().filter(|(_, sums)| sums.cells > 0);
            filled.map(|(bin, sums)| Row { chunk: start, bin, sums }.numbers()).collect()
        })
        .collect();
    let Some(rows) = gather(communicator, rows.concat()) else { return Ok(None) };
    // in the order of the tree, so that the bits depend on the number neither of threads nor of ranks
    let mut rows: Vec<Row> = rows.into_iter().flatten().map(Row::of).collect();
    rows.sort_by_key(|row| row.chunk);
    let mut sums = vec![Sums::default(); count];
    rows.iter().for_each(|row| sums[row.bin].add(&row.sums));
    let mut box_sums = Sums::default();
    sums.iter().for_each(|sum| box_sums.add(sum));
    let bin = |(n, sum): (i64, &Sums)| PdfBin {
        log10_density: (n as f64 + 0.5) / per_decade,
        volume_pdf: sum.volume / box_sums.volume * per_decade,
        mass_pdf: sum.mass / box_sums.mass * per_decade,
        cells: sum.cells,
    };
    let redshift = part.header().cosmology.map(|_| part.header().redshift());
    Ok(Some(DensityPdf { redshift, bins: (first..).zip(&sums).map(bin).collect() }))
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

/// What a chunk of patches has in a bin.
struct Row {
    chunk: usize,
    bin: usize,
    sums: Sums,
}

impl Row {
    /// As it is sent; counts are exact up to 2⁵³.
    fn numbers(&self) -> [f64; 5] {
        let Sums { cells, volume, mass } = self.sums;
        [self.chunk as f64, self.bin as f64, cells as f64, volume, mass]
    }

    fn of([chunk, bin, cells, volume, mass]: [f64; 5]) -> Self {
        Self { chunk: chunk as usize, bin: bin as usize, sums: Sums { cells: cells as u64, volume, mass } }
    }
}

/// The leaf patches of the box in chunks of [`PATCHES`], in key order, each of which is the matter of the rank that has its
/// first patch. A place is a patch's number in that order.
struct Chunks<'a> {
    part: &'a Part<'a>,
    /// Those of this rank.
    patches: &'a [LeafPatch],
    /// By level, the places of this rank's patches, and where they start in `patches`.
    own: Vec<(Range<usize>, usize)>,
    /// Levels and densities of patches in its chunks that others have, by their places.
    strays: HashMap<usize, (usize, Vec<f64>)>,
    /// Patches of all ranks.
    all: usize,
}

impl<'a> Chunks<'a> {
    /// Sends patches to the ranks whose matter they are: collective.
    fn new(communicator: &Communicator, part: &'a Part<'a>, patches: &'a [LeafPatch]) -> Self {
        let levels = part.tree.level_count();
        // by level, where each rank's places start, and where they end
        let mut next = 0;
        let mut starts = Vec::with_capacity(levels);
        for level in 0..levels {
            let mut of_level = vec![next];
            for rank in 0..communicator.size() {
                next += part.leaf_patch_count(rank, level);
                of_level.push(next);
            }
            starts.push(of_level);
        }
        let mut first = 0;
        let own = starts.iter().map(|starts| {
            let places = starts[communicator.rank()]..starts[communicator.rank() + 1];
            let from = first;
            first += places.len();
            (places, from)
        });
        let mut chunks = Self { part, patches, own: own.collect(), strays: HashMap::new(), all: next };
        let mut to = vec![Vec::new(); communicator.size()];
        for (level, (places, _)) in chunks.own.iter().enumerate() {
            let start = places.start / PATCHES * PATCHES;
            if places.is_empty() || start == places.start {
                continue;
            }
            // places are those of one rank after the other on each level
            let of_level = starts.iter().find(|starts| start < starts[communicator.size()]).expect("a place");
            let rank = of_level.partition_point(|&first| first <= start) - 1;
            if rank == communicator.rank() {
                continue;
            }
            for place in places.start..places.end.min(start + PATCHES) {
                let (_, densities) = chunks.own_patch(place).expect("one of its own");
                to[rank].extend([place as f64, level as f64].into_iter().chain(densities));
            }
        }
        let came = exchange(communicator, to);
        chunks.strays.extend(came.iter().flat_map(|values| values.chunks_exact(2 + PATCH_CELLS)).map(|values| {
            let [place, level] = [values[0] as usize, values[1] as usize];
            (place, (level, values[2..].to_vec()))
        }));
        chunks
    }

    /// The places at which this rank's chunks start.
    fn starts(&self) -> Vec<usize> {
        let of_level = |(places, _): &(Range<usize>, usize)| {
            (places.start.next_multiple_of(PATCHES)..places.end).step_by(PATCHES).collect::<Vec<_>>()
        };
        self.own.iter().flat_map(of_level).collect()
    }

    /// Calls `visit` with level and densities of every patch of a chunk.
    fn visit(&self, start: usize, mut visit: impl FnMut(usize, &mut dyn Iterator<Item = f64>)) {
        for place in start..self.all.min(start + PATCHES) {
            match self.own_patch(place) {
                Some((level, mut densities)) => visit(level, &mut densities),
                None => {
                    let (level, densities) = &self.strays[&place];
                    visit(*level, &mut densities.iter().copied());
                }
            }
        }
    }

    fn own_patch(&self, place: usize) -> Option<(usize, impl Iterator<Item = f64>)> {
        let (places, first) = self.own.iter().find(|(places, _)| places.contains(&place))?;
        let patch = self.patches[first + place - places.start];
        Some((patch.level, patch_values(self.part.snapshot, patch, DENSITY)))
    }
}

/// The least and the greatest density of all ranks: collective.
fn extremes(communicator: &Communicator, snapshot: &Snapshot, patches: &[LeafPatch]) -> [f64; 2] {
    let wider = |x: [f64; 2], y: [f64; 2]| [x[0].min(y[0]), x[1].max(y[1])];
    let none = || [f64::INFINITY, f64::NEG_INFINITY];
    let of_patch = |&patch: &LeafPatch| {
        patch_values(snapshot, patch, DENSITY).fold(none(), |range, density| wider(range, [density; 2]))
    };
    // in any order: these have no round-off
    let own = patches.par_iter().map(of_patch).reduce(none, wider);
    gather_all(communicator, &own).iter().fold(none(), |all, range| wider(all, [range[0], range[1]]))
}

impl Record for DensityPdf {
    fn table(&self) -> Table {
        Table::of(
            &self.bins,
            &[
                ("log10_density_mean", |bin| bin.log10_density.into()),
                ("volume_pdf_per_dex", |bin| bin.volume_pdf.into()),
                ("mass_pdf_per_dex", |bin| bin.mass_pdf.into()),
                ("cells", |bin| bin.cells.into()),
            ],
        )
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
