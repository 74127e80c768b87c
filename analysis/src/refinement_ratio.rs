//! How much of the box each level covers, and with how many cells, against redshift or time.

use crate::table::{Record, Table};
use comove_sim::kernels::layout::GROUP_CELLS;
use comove_sim::{Octree, Snapshot, SnapshotHeader};
use serde::{Deserialize, Serialize};

/// A level at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LevelShare {
    /// Level.
    pub level: usize,
    /// Fraction of the box that the level's cells cover, refined further or not: 1 for level 0.
    pub volume_fraction: f64,
    /// Fraction of the box in the level's leaf cells.
    pub leaf_volume_fraction: f64,
    /// Cells of the level, refined further or not.
    pub cells: u64,
    /// Leaf cells of the level.
    pub leaf_cells: u64,
}

/// The levels at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RefinementRow {
    /// Redshift; `None` in non-comoving coordinates.
    pub redshift: Option<f64>,
    /// Scale factor.
    pub a: f64,
    /// Code time since the start of the run.
    pub time: f64,
    /// Root steps taken.
    pub step: u64,
    /// From the root to the finest level that has cells.
    pub levels: Vec<LevelShare>,
}

/// Refinement of a run in time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RefinementRatio {
    /// In the order of time.
    pub rows: Vec<RefinementRow>,
}

impl RefinementRow {
    /// The levels of one snapshot.
    pub fn new(snapshot: &Snapshot) -> Self {
        Self::of(&snapshot.header, &snapshot.state.tree)
    }

    /// The levels of an octree, at the moment that its snapshot's header says.
    pub fn of(header: &SnapshotHeader, tree: &Octree) -> Self {
        let box_cells: f64 = tree.cells(0).iter().map(|&n| n as f64).product();
        let levels = tree.volume_fractions().into_iter().zip(tree.leaf_cells()).enumerate();
        let levels = levels.map(|(level, (volume_fraction, leaf_cells))| LevelShare {
            level,
            volume_fraction,
            leaf_volume_fraction: leaf_cells as f64 / (box_cells * f64::from(1u32 << level).powi(3)),
            cells: (tree.level(level).len() * GROUP_CELLS) as u64,
            leaf_cells,
        });
        let redshift = header.cosmology.map(|_| header.redshift());
        Self { redshift, a: header.a, time: header.time, step: header.step, levels: levels.collect() }
    }
}

impl RefinementRatio {
    /// Sorts rows by time.
    pub fn from_rows(mut rows: Vec<RefinementRow>) -> Self {
        rows.sort_by(|x, y| x.a.total_cmp(&y.a).then(x.time.total_cmp(&y.time)).then(x.step.cmp(&y.step)));
        Self { rows }
    }
}

impl Record for RefinementRatio {
    fn table(&self) -> Table {
        let rows: Vec<_> = self.rows.iter().flat_map(|row| row.levels.iter().map(move |level| (row, level))).collect();
        Table::of(
            &rows,
            &[
                ("redshift", |(row, _)| row.redshift.unwrap_or(f64::NAN).into()),
                ("a", |(row, _)| row.a.into()),
                ("time", |(row, _)| row.time.into()),
                ("step", |(row, _)| row.step.into()),
                ("level", |(_, level)| level.level.into()),
                ("volume_fraction", |(_, level)| level.volume_fraction.into()),
                ("leaf_volume_fraction", |(_, level)| level.leaf_volume_fraction.into()),
                ("cells", |(_, level)| level.cells.into()),
                ("leaf_cells", |(_, level)| level.leaf_cells.into()),
            ],
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Fixture;

    #[test]
    fn fractions_add_up_to_the_box() {
        let mut early = Fixture::blob();
        (early.a, early.max_level) = (0.1, 1);
        let ratio = RefinementRatio::from_rows([Fixture::blob(), early].map(|f| RefinementRow::new(&f.build())).into());
        assert!(
            (ratio.rows[0].redshift.unwrap() - 9.0).abs() < 1e-12
                && (ratio.rows[1].redshift.unwrap() - 1.0).abs() < 1e-12
        );
        assert_eq!((ratio.rows[0].levels.len(), ratio.rows[1].levels.len()), (2, 3));
        for row in &ratio.rows {
            let leaves: f64 = row.levels.iter().map(|l| l.leaf_volume_fraction).sum();
            assert!((leaves - 1.0).abs() < 1e-14);
            for pair in row.levels.windows(2) {
                let refined = pair[0].volume_fraction - pair[0].leaf_volume_fraction;
                assert!((refined - pair[1].volume_fraction).abs() < 1e-14, "what is refined is the next level");
            }
        }
        assert_eq!(ratio.rows[0].levels[0].cells, 32 * 32 * 32);
        assert_eq!(ratio.table().rows.len(), 5);
    }
}
