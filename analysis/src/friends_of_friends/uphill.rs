//! The density maximum beside a place: uphill from cell to cell.

use crate::cells::{LeafCell, leaf_at};
use crate::sphere::{norm, separation};
use comove_sim::Snapshot;

/// Widths of the first cell, and share of the halo's radius, up to which a maximum belongs to the halo.
const REACH: f64 = 3.0;
const SHARE: f64 = 0.8;

/// Offsets in cell widths of the samples beside a cell: each cell that touches it holds one, also of half its width.
const BESIDE: [f64; 4] = [-0.75, -0.25, 0.25, 0.75];

/// The centre of the leaf cell with a local maximum of the density of all matter that the steepest way uphill leads to; the
/// place itself where that is too far away, where cells are wider than the halo's radius, or do not hold the particles'
/// density.
pub(super) fn densest_cell(snapshot: &Snapshot, place: [f64; 3], radius: f64) -> [f64; 3] {
    let mut cell = leaf_at(snapshot, place);
    if snapshot.state.dark_matter.is_empty() || cell.width > radius {
        return place;
    }
    let reach = (REACH * cell.width).min(SHARE * radius);
    let is_near = |cell: &LeafCell| norm(separation(snapshot, place, cell.position)) <= reach;
    while let Some(higher) = higher(snapshot, &cell) {
        if !is_near(&higher) {
            return place;
        }
        cell = higher;
    }
    if is_near(&cell) { cell.position } else { place }
}

/// The densest of the cells around one, if it is denser.
fn higher(snapshot: &Snapshot, cell: &LeafCell) -> Option<LeafCell> {
    let (lengths, periodic) = (snapshot.box_lengths(), snapshot.state.tree.periodic());
    let inside = |x: &[f64; 3]| (0..3).all(|a| periodic[a] || (0.0..lengths[a]).contains(&x[a]));
    let samples = (0..64).map(|n| {
        let steps = [n % 4, n / 4 % 4, n / 16].map(|step| BESIDE[step]);
        std::array::from_fn(|a| cell.position[a] + steps[a] * cell.width)
    });
    let cells = samples.filter(inside).map(|x| leaf_at(snapshot, x));
    let densest = cells.max_by(|x, y| x.matter_density().total_cmp(&y.matter_density()))?;
    (densest.matter_density() > cell.matter_density()).then_some(densest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Fixture;
    use comove_sim::kernels::layout::GROUP_CELLS;

    /// From beside the blob's peak the way leads to the cell that beats all others; not from far away, nor for a small halo.
    #[test]
    fn the_way_leads_to_the_peak_nearby() {
        let mut snapshot = Fixture::blob().build();
        let peak = crate::cells::densest(&snapshot);
        let beside = peak.position.map(|x| x + 0.9 * peak.width);
        let radius = 8.0 * peak.width;
        assert_eq!(densest_cell(&snapshot, beside, radius), beside, "without particles in cells a place stays");
        snapshot.state.dark_matter = vec![0.0; snapshot.state.tree.group_count() * GROUP_CELLS];
        assert_eq!(densest_cell(&snapshot, beside, radius), peak.position);
        let small = 1.5 * peak.width;
        assert_eq!(densest_cell(&snapshot, beside, small), beside, "the peak is outside the halo");
        let unresolved = 0.9 * peak.width;
        assert_eq!(densest_cell(&snapshot, peak.position.map(|x| x + 1e-3), unresolved)[0], peak.position[0] + 1e-3);
        let far = peak.position.map(|x| x + 4.0 * peak.width);
        assert_eq!(densest_cell(&snapshot, far, radius), far);
    }
}
