//! Particles sorted by the cells of a uniform grid over the periodic box, of which only the occupied ones are stored.
//!
//! Positions stay the integers of [`HostParticles`], so that a particle's cell is exact and differences wrap around the box.

use comove_sim::HostParticles;
use rayon::prelude::*;
use std::ops::Range;

/// Positions along an axis: 2³².
const POSITIONS: f64 = 4_294_967_296.0;

/// An occupied cell.
#[derive(Clone, Copy, Debug)]
struct Cell {
    /// Its coordinate along x.
    x: u32,
    /// The first of its particles.
    first: u32,
}

/// Particles by cell, x fastest; within a cell by number.
pub(crate) struct ParticleGrid {
    box_lengths: [f64; 3],
    cells: [u32; 3],
    /// Occupied cells, and one beyond the last.
    occupied: Vec<Cell>,
    /// The first occupied cell of each row along x, y fastest, and one beyond the last.
    rows: Vec<u32>,
    /// The number of each particle.
    order: Vec<u32>,
    /// Their positions.
    positions: Vec<[u32; 3]>,
}

impl ParticleGrid {
    /// Sorts particles into so many cells along x, y, z.
    ///
    /// * `count`, `position`: number of particles, and their positions as fractions of the box in 2⁻³²
    pub(crate) fn new(
        count: usize,
        position: impl Fn(usize) -> [u32; 3] + Sync,
        box_lengths: [f64; 3],
        cells: [u32; 3],
    ) -> Self {
        let key = |n: usize| {
            let position = position(n);
            let [x, y, z] = [0, 1, 2].map(|axis| u64::from(cell_of(position[axis], cells[axis])));
            (z * u64::from(cells[1]) + y) * u64::from(cells[0]) + x
        };
        let mut sorted: Vec<(u64, u32)> = (0..count).into_par_iter().map(|n| (key(n), n as u32)).collect();
        sorted.par_sort_unstable();
        let mut rows = vec![0; cells[1] as usize * cells[2] as usize + 1];
        let mut occupied = Vec::new();
        let (mut last, mut row) = (None, 0);
        for (first, &(key, _)) in sorted.iter().enumerate() {
            if last != Some(key) {
                let of_cell = (key / u64::from(cells[0])) as usize;
                rows[row..=of_cell].fill(occupied.len() as u32);
                row = of_cell + 1;
                occupied.push(Cell { x: (key % u64::from(cells[0])) as u32, first: first as u32 });
                last = Some(key);
            }
        }
        rows[row..].fill(occupied.len() as u32);
        occupied.push(Cell { x: u32::MAX, first: sorted.len() as u32 });
        let order: Vec<u32> = sorted.into_par_iter().map(|(_, n)| n).collect();
        let positions = order.par_iter().map(|&n| position(n as usize)).collect();
        Self { box_lengths, cells, occupied, rows, order, positions }
    }

    /// Sorts particles into about eight cells per particle of the box, which suit spheres.
    ///
    /// * `all`: number of particles in the box, of all ranks
    pub(crate) fn for_spheres(particles: &HostParticles, box_lengths: [f64; 3], all: u64) -> Self {
        let spacing = mean_spacing(all, box_lengths);
        let cells = box_lengths.map(|length| (2.0 * length / spacing).ceil().max(1.0) as u32);
        Self::new(particles.len(), |n| position_of(particles, n), box_lengths, cells)
    }

    /// How many cells are occupied.
    pub(crate) fn occupied(&self) -> usize {
        self.occupied.len() - 1
    }

    /// Rows of cells along x.
    pub(crate) fn rows(&self) -> usize {
        self.rows.len() - 1
    }

    /// The occupied cells of a row.
    pub(crate) fn row(&self, row: usize) -> Range<usize> {
        self.rows[row] as usize..self.rows[row + 1] as usize
    }

    /// The row that is `y` and `z` rows further, around the box.
    pub(crate) fn row_beside(&self, row: usize, [y, z]: [i64; 2]) -> usize {
        let [_, ny, nz] = self.cells.map(i64::from);
        let row = row as i64;
        ((row / ny + z).rem_euclid(nz) * ny + (row % ny + y).rem_euclid(ny)) as usize
    }

    /// The occupied cells of a row with coordinates between `first` and `last` along x, around the box: two ranges, as the
    /// box may end between them. No more coordinates than the row has.
    pub(crate) fn in_row(&self, row: usize, first: i64, last: i64) -> [Range<usize>; 2] {
        let cells = self.row(row);
        let n = i64::from(self.cells[0]);
        let at = |x: i64| cells.start + self.occupied[cells.clone()].partition_point(|cell| i64::from(cell.x) < x);
        if first < 0 {
            [at(first + n)..cells.end, cells.start..at(last + 1)]
        } else if last >= n {
            [at(first)..cells.end, cells.start..at(last + 1 - n)]
        } else {
            [at(first)..at(last + 1), 0..0]
        }
    }

    /// The coordinate along x of an occupied cell.
    pub(crate) fn x(&self, cell: usize) -> u32 {
        self.occupied[cell].x
    }

    /// The particles of an occupied cell, in the order of this grid.
    pub(crate) fn in_cell(&self, cell: usize) -> Range<usize> {
        self.occupied[cell].first as usize..self.occupied[cell + 1].first as usize
    }

    /// The number of a particle of this grid.
    pub(crate) fn number(&self, particle: usize) -> usize {
        self.order[particle] as usize
    }

    /// A particle's position minus another's, to the nearest image, in code length.
    pub(crate) fn separation(&self, from: usize, to: usize) -> [f64; 3] {
        separation(self.positions[from], self.positions[to], self.box_lengths)
    }

    /// A particle's position in code length.
    fn position(&self, particle: usize) -> [f64; 3] {
        in_code_length(self.positions[particle], self.box_lengths)
    }

    /// Calls `visit(particle, distance)` for the particles of a sphere, which is no wider than the box.
    pub(crate) fn visit_sphere(&self, centre: [f64; 3], radius: f64, mut visit: impl FnMut(usize, f64)) {
        let width: [f64; 3] = std::array::from_fn(|a| self.box_lengths[a] / f64::from(self.cells[a]));
        // as many cells as there are at most: each is met once
        let range = |axis: usize, half: f64| {
            let [low, high] = [centre[axis] - half, centre[axis] + half].map(|x| x / width[axis]);
            // a hair more, unless that is as much as the box: round-off decides on no particle
            let hair = if high - low + 2.0 < f64::from(self.cells[axis]) { 1e-9 } else { 0.0 };
            let (first, last) = ((low - hair).floor() as i64, (high + hair).floor() as i64);
            first..=last.min(first + i64::from(self.cells[axis]) - 1)
        };
        let gap = |axis: usize, cell: i64| {
            let low = cell as f64 * width[axis] - centre[axis];
            // a hair less: what a row cannot hold is left out, nothing else
            (low.max(-low - width[axis]) - 1e-9 * width[axis]).max(0.0)
        };
        for z in range(2, radius) {
            for y in range(1, radius) {
                let left = radius * radius - gap(2, z).powi(2) - gap(1, y).powi(2);
                if left < 0.0 {
                    continue;
                }
                let row = self.row_beside(0, [y, z]);
                if self.row(row).is_empty() {
                    continue;
                }
                let along = range(0, left.sqrt() + 1e-9 * width[0]);
                let n = i64::from(self.cells[0]);
                let first = along.start().rem_euclid(n);
                for cell in self.in_row(row, first, first + along.end() - along.start()).into_iter().flatten() {
                    for particle in self.in_cell(cell) {
                        let distance = self.distance(particle, centre);
                        if distance <= radius {
                            visit(particle, distance);
                        }
                    }
                }
            }
        }
    }

    fn distance(&self, particle: usize, centre: [f64; 3]) -> f64 {
        let position = self.position(particle);
        let offset = |a: usize| {
            let d = position[a] - centre[a];
            d - self.box_lengths[a] * (d / self.box_lengths[a]).round()
        };
        crate::sphere::norm([offset(0), offset(1), offset(2)])
    }
}

/// The position of a particle as a fraction of the box in 2⁻³².
pub(crate) fn position_of(particles: &HostParticles, particle: usize) -> [u32; 3] {
    particles.position.each_ref().map(|column| column[particle])
}

/// A position in code length.
pub(crate) fn in_code_length(position: [u32; 3], box_lengths: [f64; 3]) -> [f64; 3] {
    std::array::from_fn(|a| f64::from(position[a]) * (box_lengths[a] / POSITIONS))
}

/// A position minus another, to the nearest image, in code length.
pub(crate) fn separation(from: [u32; 3], to: [u32; 3], box_lengths: [f64; 3]) -> [f64; 3] {
    std::array::from_fn(|a| f64::from(to[a].wrapping_sub(from[a]) as i32) * (box_lengths[a] / POSITIONS))
}

/// Mean spacing (V/N)^⅓ of particles in code length.
pub(crate) fn mean_spacing(particles: u64, box_lengths: [f64; 3]) -> f64 {
    (box_lengths.iter().product::<f64>() / particles as f64).cbrt()
}

fn cell_of(position: u32, cells: u32) -> u32 {
    ((u64::from(position) * u64::from(cells)) >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::random_particles;

    /// Spheres across the faces of an uneven box, one as wide as the box, against all particles.
    #[test]
    fn spheres_hold_what_a_search_through_all_finds() {
        let lengths = [1.0, 0.5, 0.25];
        let particles = random_particles(3000, lengths, 7);
        for cells in [[1, 1, 1], [5, 3, 2], [40, 20, 10]] {
            let grid = ParticleGrid::new(particles.len(), |n| position_of(&particles, n), lengths, cells);
            for (centre, radius) in [([0.3, 0.2, 0.1], 0.05), ([0.99, 0.01, 0.249], 0.11), ([0.0, 0.0, 0.0], 0.125)] {
                let mut found = Vec::new();
                grid.visit_sphere(centre, radius, |particle, _| found.push(grid.number(particle)));
                found.sort_unstable();
                let inside = |n: &usize| {
                    let offset = |a: usize| {
                        let d = particles.coordinate(*n, a, lengths[a]) - centre[a];
                        d - lengths[a] * (d / lengths[a]).round()
                    };
                    (0..3).map(|a| offset(a).powi(2)).sum::<f64>().sqrt() <= radius
                };
                let expected: Vec<usize> = (0..particles.len()).filter(inside).collect();
                assert!(!expected.is_empty() && found == expected, "{cells:?} {centre:?}");
            }
        }
    }
}
