//! The density maximum beside a place: uphill from cell to cell, across ranks.

use crate::cells::{LeafDensity, leaf_densities_at};
use crate::part::Part;
use crate::sphere::{norm, separation};
use comove_sim::parallel::Communicator;

/// Widths of the first cell, and share of the halo's radius, up to which a maximum belongs to the halo.
const REACH: f64 = 3.0;
const SHARE: f64 = 0.8;
/// Places of a rank in one batch.
const AT_ONCE: usize = 1 << 13;

/// Offsets in cell widths of the samples beside a cell: each cell that touches it holds one, also of half its width.
const BESIDE: [f64; 4] = [-0.75, -0.25, 0.25, 0.75];

/// Moves places to the centre of the leaf cell with the local maximum of the density of all matter that the steepest ascent
/// reaches. A place stays where the maximum is too far away, where cells are wider than the halo's radius, or where cells
/// hold no density of particles. Collective.
///
/// * `places`: places of this rank, with the radii of their halos
pub(super) fn densest_cells(communicator: &Communicator, part: &Part, places: &[([f64; 3], f64)]) -> Vec<[f64; 3]> {
    if !communicator.any(!part.snapshot.state.dark_matter.is_empty()) {
        return places.iter().map(|(place, _)| *place).collect();
    }
    let most = communicator.max(places.len() as f64) as usize;
    let some = |n: usize| n.min(places.len());
    let chunks = (0..most).step_by(AT_ONCE).map(|first| &places[some(first)..some(first + AT_ONCE)]);
    chunks.flat_map(|places| maxima(communicator, part, places)).collect()
}

fn maxima(communicator: &Communicator, part: &Part, places: &[([f64; 3], f64)]) -> Vec<[f64; 3]> {
    let positions: Vec<[f64; 3]> = places.iter().map(|(place, _)| *place).collect();
    let mut cells = leaf_densities_at(communicator, part, &positions);
    let reaches: Vec<f64> =
        cells.iter().zip(places).map(|(cell, (_, radius))| (REACH * cell.width).min(SHARE * radius)).collect();
    let is_near =
        |n: usize, cell: &LeafDensity| norm(separation(part.snapshot, positions[n], cell.position)) <= reaches[n];
    let mut found = positions.clone();
    let mut climbing: Vec<usize> = (0..places.len()).filter(|&n| cells[n].width <= places[n].1).collect();
    while communicator.any(!climbing.is_empty()) {
        let samples: Vec<Vec<[f64; 3]>> = climbing.iter().map(|&n| samples(part, &cells[n])).collect();
        let mut around = leaf_densities_at(communicator, part, &samples.concat()).into_iter();
        let mut further = Vec::new();
        for (&n, samples) in climbing.iter().zip(&samples) {
            let densest = around.by_ref().take(samples.len()).max_by(|x, y| x.density.total_cmp(&y.density));
            match densest.filter(|densest| densest.density > cells[n].density) {
                Some(higher) if is_near(n, &higher) => {
                    cells[n] = higher;
                    further.push(n);
                }
                None if is_near(n, &cells[n]) => found[n] = cells[n].position,
                _ => {}
            }
        }
        climbing = further;
    }
    found
}

/// Positions that sample all cells which touch a cell.
fn samples(part: &Part, cell: &LeafDensity) -> Vec<[f64; 3]> {
    let (lengths, periodic) = (part.snapshot.box_lengths(), part.tree.periodic());
    let inside = |x: &[f64; 3]| (0..3).all(|a| periodic[a] || (0.0..lengths[a]).contains(&x[a]));
    let samples = (0..64).map(|n| {
        let steps = [n % 4, n / 4 % 4, n / 16].map(|step| BESIDE[step]);
        std::array::from_fn(|a| cell.position[a] + steps[a] * cell.width)
    });
    samples.filter(inside).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Fixture;
    use comove_sim::Snapshot;
    use comove_sim::kernels::layout::GROUP_CELLS;

    fn densest_cell(snapshot: &Snapshot, place: [f64; 3], radius: f64) -> [f64; 3] {
        densest_cells(&Communicator::alone(), &snapshot.into(), &[(place, radius)])[0]
    }

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
