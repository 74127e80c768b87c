//! How far the fields of two snapshots are apart, in the leaf cells that both have.

use crate::cells::{PATCH_CELLS, patch_cells, patch_values};
use crate::error::AnalysisError;
use comove_sim::fields::{Field, FieldSet, Storage};
use comove_sim::kernels::layout::{GROUP, PATCH};
use comove_sim::mesh::{CellPlace, LeafPatch};
use comove_sim::{Key, Octree, Snapshot};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// How far one field is apart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FieldDifference {
    /// The field.
    pub name: String,
    /// Root of the mean square of its values in both, code units: what the others are relative to.
    pub rms: f64,
    /// Largest |q_b − q_a|/rms; infinite where only one value is finite.
    pub largest: f64,
    /// Where that is.
    pub largest_at: CellPlace,
    /// Mean of |q_b − q_a|/rms over the cells, whatever their size.
    pub mean: f64,
}

/// How far the fields are apart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FieldDifferences {
    /// Leaf cells that both have.
    pub common: u64,
    /// Leaf cells of each.
    pub leaves: [u64; 2],
    /// The fields that both have.
    pub fields: Vec<FieldDifference>,
}

/// Sums over a patch, or all of them.
#[derive(Clone, Copy)]
struct Sums {
    squares: f64,
    differences: f64,
    largest: f64,
    at: CellPlace,
}

/// Compares the gas and the density of dark matter of two snapshots cell by cell where both have a leaf cell of the same level at the same place.
///
/// # Errors
/// [`AnalysisError::Option`] for boxes whose root levels differ, where no cell is the same.
pub fn field_differences(a: &Snapshot, b: &Snapshot) -> Result<FieldDifferences, AnalysisError> {
    let [root_a, root_b] = [a, b].map(|snapshot| snapshot.state.tree.cells(0));
    if root_a != root_b {
        let reason = format!("the other snapshot has {root_b:?}: no cell is the same");
        return Err(AnalysisError::option("root cells", format!("{root_a:?}"), reason));
    }
    let pairs: Vec<(LeafPatch, LeafPatch)> =
        a.state.tree.leaf_patches().filter_map(|patch| Some((patch, same_leaf(patch, &b.state.tree)?))).collect();
    let common = (pairs.len() * PATCH_CELLS) as u64;
    // gas and scalars that both have
    let common_scalars = a.header.fields.scalars().iter().filter(|name| b.header.fields.scalar(name).is_some());
    let set = match [a, b].iter().all(|snapshot| snapshot.header.fields.has_gas()) {
        true => FieldSet::with_scalars(common_scalars).expect("names of a snapshot"),
        false => FieldSet::without_gas(),
    };
    let dark_matter = [a, b].iter().all(|snapshot| !snapshot.state.dark_matter.is_empty());
    let fields = set.stored(dark_matter, false).map(|field| {
        // patches in key order, so that sums do not depend on threads
        let sums: Vec<Sums> = pairs.par_iter().map(|pair| sums([a, b], *pair, &field)).collect();
        let total = sums.into_iter().reduce(Sums::and).unwrap_or(Sums::NONE);
        let rms = (total.squares / (2 * common).max(1) as f64).sqrt();
        // without values there are no differences either
        let relative = |value: f64| if value == 0.0 { 0.0 } else { value / rms };
        FieldDifference {
            name: field.name.into_owned(),
            rms,
            largest: if total.largest.is_finite() { relative(total.largest) } else { f64::INFINITY },
            largest_at: total.at,
            mean: relative(total.differences / common.max(1) as f64),
        }
    });
    let leaves = [a, b].map(|snapshot| snapshot.state.tree.leaf_cells().iter().sum());
    Ok(FieldDifferences { common, leaves, fields: fields.collect() })
}

/// The same patch in another tree, if it is a leaf there.
fn same_leaf(patch: LeafPatch, tree: &Octree) -> Option<LeafPatch> {
    let key = Key::new(patch.level as u8, patch.first_cell.map(|cell| (cell / GROUP) as u32));
    let group = tree.index(key)?;
    (tree.leaves(key) >> patch.octant & 1 == 1).then_some(LeafPatch { group, ..patch })
}

/// A field in the cells of a leaf patch.
fn values<'a>(snapshot: &'a Snapshot, patch: LeafPatch, field: &Field) -> Box<dyn Iterator<Item = f64> + 'a> {
    match (field.storage, snapshot.header.fields.scalar(&field.dataset)) {
        (Storage::Scalar(_), Some(n)) => Box::new(patch_cells(snapshot, patch).map(move |cell| cell.scalars[n])),
        (Storage::DarkMatter, _) => Box::new(patch_cells(snapshot, patch).map(|cell| cell.dark_matter)),
        (Storage::Fluid(index), _) => Box::new(patch_values(snapshot, patch, index)),
        // scalars that only one has, and what snapshots do not hold
        (Storage::Scalar(_), None) | (Storage::Potential, _) => Box::new(std::iter::empty()),
    }
}

fn sums([a, b]: [&Snapshot; 2], (patch, other): (LeafPatch, LeafPatch), field: &Field) -> Sums {
    let pairs = values(a, patch, field).zip(values(b, other, field));

    let cells = pairs.enumerate().map(|(n, (a, b))| {
        let difference = match (b - a).abs() {
            _ if a.to_bits() == b.to_bits() => 0.0,
            difference if difference.is_nan() => f64::INFINITY,
            difference => difference,
        };
        let inside = [n % PATCH, n / PATCH % PATCH, n / (PATCH * PATCH)];
        let cell = std::array::from_fn(|axis| patch.first_cell[axis] + inside[axis]);
        let at = CellPlace { level: patch.level as u8, cell };
        Sums { squares: a * a + b * b, differences: difference, largest: difference, at }
    });
    cells.reduce(Sums::and).expect("a patch has cells")
}

impl Sums {
    const NONE: Self = Self { squares: 0.0, differences: 0.0, largest: 0.0, at: CellPlace { level: 0, cell: [0; 3] } };

    fn and(self, next: Self) -> Self {
        let larger = if next.largest > self.largest { next } else { self };
        Self { squares: self.squares + next.squares, differences: self.differences + next.differences, ..larger }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Fixture;
    use comove_sim::kernels::layout::{DENSITY, cell};

    /// A denser cell is found where it is; so is a cell that one snapshot has refined, which is none of the common ones.
    #[test]
    fn a_cell_that_differs_is_found() {
        let a = Fixture::uniform(2.0).build();
        let mut b = a.clone();
        let same = field_differences(&a, &b).unwrap();
        assert!(same.fields.iter().all(|field| (field.largest, field.mean) == (0.0, 0.0)), "{same:?}");
        assert_eq!((same.common, same.leaves, same.fields[0].rms), (32768, [32768; 2], 2.0));
        let group = b.state.tree.index(Key::new(0, [1, 0, 1])).unwrap();
        let place = (group * 6 + DENSITY) * 4096 + cell(3, 9, 15);
        b.state.fluid[place] = 3.0;
        let found = field_differences(&a, &b).unwrap().fields;
        assert_eq!(found[0].largest_at, CellPlace { level: 0, cell: [19, 9, 31] });
        let rms = ((4.0 * 65535.0 + 9.0) / 65536.0f64).sqrt();
        assert!((found[0].largest - 1.0 / rms).abs() < 1e-12 && (found[0].mean * 32768.0 * rms - 1.0).abs() < 1e-9);
        assert!(found[1..].iter().all(|field| field.largest == 0.0));
        b.state.fluid[place] = f64::NAN;
        assert_eq!(field_differences(&a, &b).unwrap().fields[0].largest, f64::INFINITY);
        let refined = Fixture::blob().build();
        let against = field_differences(&refined, &a).unwrap();
        let [all, _] = against.leaves;
        assert!(against.common > 0 && against.common < 32768 && all > 32768, "{against:?}");
        let other = Fixture { root: [1; 3], ..Fixture::uniform(2.0) }.build();
        assert!(field_differences(&a, &other).unwrap_err().to_string().contains("root cells"));
    }
}
