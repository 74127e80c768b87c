//! Groups of linked particles, exact and without a list of pairs.
//!
//! Cells of the grid are no wider than the linking length over √3, so all particles of a cell are friends, and a union-find
//! over occupied cells is enough: two cells are joined by the first pair found across them. Cells further than two apart
//! hold no friends. A cell's root is the first cell of its group, whichever thread joins what first.

use crate::particle_grid::ParticleGrid;
use comove_sim::HostParticles;
use rayon::prelude::*;
use std::sync::atomic::{AtomicU32, Ordering};

/// The least number of linking lengths along a side of the box: cells two apart are then different ones on both sides.
pub(super) const LEAST_LENGTHS: f64 = 4.0;

/// The grid on which particles are linked.
pub(super) fn grid(particles: &HostParticles, box_lengths: [f64; 3], linking_length: f64) -> ParticleGrid<'_> {
    let cells = box_lengths.map(|length| (3f64.sqrt() * length / linking_length).ceil() as u32);
    ParticleGrid::new(particles, box_lengths, cells)
}

/// Groups of at least so many particles, the largest first: each a list of particles of the grid in the order of their
/// identities. Groups of one size are in the order of their first identities.
pub(super) fn groups(grid: &ParticleGrid, linking_length: f64, min_particles: usize) -> Vec<Vec<u32>> {
    let joined = Cells::new(grid.occupied());
    // near cells first: what they have joined need not be compared again
    for beside in [NEAR, FAR] {
        (0..grid.rows()).into_par_iter().filter(|&row| !grid.row(row).is_empty()).for_each(|row| {
            beside.iter().for_each(|&offset| join_row(grid, &joined, row, offset, linking_length));
        });
    }
    let roots: Vec<u32> = (0..grid.occupied() as u32).into_par_iter().map(|cell| joined.root(cell)).collect();
    let mut counts = vec![0u32; grid.occupied()];
    roots.iter().enumerate().for_each(|(cell, &root)| counts[root as usize] += grid.in_cell(cell).len() as u32);
    const NONE: u32 = u32::MAX;
    let mut groups: Vec<Vec<u32>> = Vec::new();
    // from here on the number of the group that begins at a cell
    for (cell, count) in counts.iter_mut().enumerate() {
        let is_group = roots[cell] as usize == cell && *count as usize >= min_particles;
        if is_group {
            groups.push(Vec::with_capacity(*count as usize));
        }
        *count = if is_group { groups.len() as u32 - 1 } else { NONE };
    }
    for (cell, &root) in roots.iter().enumerate() {
        if let Some(group) = groups.get_mut(counts[root as usize] as usize) {
            group.extend(grid.in_cell(cell).map(|particle| particle as u32));
        }
    }
    let id = |particle: u32| grid.particles().id[grid.number(particle as usize)];
    groups.par_iter_mut().for_each(|group| group.sort_unstable_by_key(|&particle| id(particle)));
    groups.sort_unstable_by_key(|group| (std::cmp::Reverse(group.len()), id(group[0])));
    groups
}

/// A row beside another in y and z, and the least and largest step along x.
type Beside = ([i64; 2], [i64; 2]);

/// Half of the cells one apart.
const NEAR: &[Beside] =
    &[([0, 0], [1, 1]), ([1, 0], [-1, 1]), ([-1, 1], [-1, 1]), ([0, 1], [-1, 1]), ([1, 1], [-1, 1])];

/// Half of the cells two apart; those one apart among them are known by then.
const FAR: &[Beside] = &[
    ([0, 0], [2, 2]),
    ([1, 0], [-2, 2]),
    ([2, 0], [-2, 2]),
    ([-2, 1], [-2, 2]),
    ([-1, 1], [-2, 2]),
    ([0, 1], [-2, 2]),
    ([1, 1], [-2, 2]),
    ([2, 1], [-2, 2]),
    ([-2, 2], [-2, 2]),
    ([-1, 2], [-2, 2]),
    ([0, 2], [-2, 2]),
    ([1, 2], [-2, 2]),
    ([2, 2], [-2, 2]),
];

/// Joins the cells of a row with those of a row beside it that hold friends.
fn join_row(grid: &ParticleGrid, joined: &Cells, row: usize, (beside, [least, most]): Beside, linking_length: f64) {
    let other_row = grid.row_beside(row, beside);
    if grid.row(other_row).is_empty() {
        return;
    }
    let square = linking_length * linking_length;
    let are_friends = |one: usize, other: usize| {
        grid.in_cell(one).any(|from| {
            grid.in_cell(other).any(|to| grid.separation(from, to).iter().map(|d| d * d).sum::<f64>() <= square)
        })
    };
    for cell in grid.row(row) {
        let x = i64::from(grid.x(cell));
        for other in grid.in_row(other_row, x + least, x + most).into_iter().flatten() {
            if joined.root(cell as u32) != joined.root(other as u32) && are_friends(cell, other) {
                joined.join(cell as u32, other as u32);
            }
        }
    }
}

/// A union-find that threads share: a cell points to an earlier one of its group, a root to itself.
struct Cells(Vec<AtomicU32>);

impl Cells {
    fn new(count: usize) -> Self {
        Self((0..count as u32).into_par_iter().map(AtomicU32::new).collect())
    }

    fn above(&self, cell: u32) -> u32 {
        self.0[cell as usize].load(Ordering::Relaxed)
    }

    /// The first cell of the group, as far as it is joined.
    fn root(&self, mut cell: u32) -> u32 {
        loop {
            let above = self.above(cell);
            if above == cell {
                return cell;
            }
            let further = self.above(above);
            if further != above {
                // halves the way; another thread may have done so
                let _ = self.0[cell as usize].compare_exchange(above, further, Ordering::Relaxed, Ordering::Relaxed);
            }
            cell = further;
        }
    }

    fn join(&self, one: u32, other: u32) {
        loop {
            let (one, other) = (self.root(one), self.root(other));
            if one == other {
                return;
            }
            let (first, last) = (one.min(other), one.max(other));
            let set = self.0[last as usize].compare_exchange(last, first, Ordering::Relaxed, Ordering::Relaxed);
            if set.is_ok() {
                return;
            }
        }
    }
}
