//! Distances of particles to their neighbours, by a k-d tree (Bentley 1975): the median along the longest side cuts a cell in
//! two and is in neither half, so that the cells of the tree follow from the order of particles and are not stored. Every rank
//! builds a tree of its own particles. Where the sphere of neighbours reaches the mesh of other ranks, it queries them.
//!
//! Distances and the order of particles do not depend on the order in which particles come.

use crate::messages::exchange;
use crate::part::Part;
use bytemuck::{Pod, Zeroable};
use comove_sim::HostParticles;
use comove_sim::kernels::point::particle::mass_of;
use comove_sim::parallel::Communicator;
use rayon::prelude::*;
use std::ops::Range;

/// Particles in a cell of the tree that is not cut.
const LEAF: usize = 16;
/// Particles that are worth a thread.
const PARALLEL: usize = 1 << 13;
/// Particles of a rank in one batch of queries.
const ASKED: usize = 1 << 16;
/// Positions along an axis: 2³².
const POSITIONS: f64 = 4_294_967_296.0;

/// A particle of the tree.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Point {
    position: [u32; 3],
    /// In units of class 0.
    mass: u32,
}

/// Particles in the order of the tree.
pub(super) struct Neighbours {
    points: Vec<Point>,
    /// Code length of a step of position along each axis.
    unit: [f64; 3],
    periodic: [bool; 3],
}

/// A cell of the tree: its particles, and its lower and upper ends.
#[derive(Clone)]
struct Cell {
    particles: Range<usize>,
    low: [u32; 3],
    high: [u32; 3],
}

impl Cell {
    /// The median.
    fn middle(&self) -> usize {
        self.particles.start + self.particles.len() / 2
    }

    /// Its two halves, cut at the position of the median.
    fn halves(&self, axis: usize, cut: u32) -> [Self; 2] {
        let middle = self.middle();
        let mut halves = [self.clone(), self.clone()];
        halves[0].particles.end = middle;
        halves[0].high[axis] = cut;
        halves[1].particles.start = middle + 1;
        halves[1].low[axis] = cut;
        halves
    }

    fn longest(&self, unit: [f64; 3]) -> usize {
        let length = |axis: &usize| f64::from(self.high[*axis] - self.low[*axis]) * unit[*axis];
        (0..3).max_by(|x, y| length(x).total_cmp(&length(y))).expect("three axes")
    }
}

impl Neighbours {
    /// The tree of particles in a box of these lengths.
    pub(super) fn new(particles: &HostParticles, lengths: [f64; 3], periodic: [bool; 3]) -> Self {
        let point = |n: usize| Point {
            position: particles.position.each_ref().map(|column| column[n]),
            mass: mass_of(particles.id[n]),
        };
        let mut points: Vec<Point> = (0..particles.len()).map(point).collect();
        let unit = lengths.map(|length| length / POSITIONS);
        let whole = Self::whole(points.len());
        sort(&mut points, &whole, unit);
        Self { points, unit, periodic }
    }

    fn whole(count: usize) -> Cell {
        Cell { particles: 0..count, low: [0; 3], high: [u32::MAX; 3] }
    }

    /// How many particles there are.
    pub(super) fn len(&self) -> usize {
        self.points.len()
    }

    /// Mass of a particle in units of class 0.
    pub(super) fn mass(&self, particle: usize) -> u32 {
        self.points[particle].mass
    }

    /// The position of a particle in code length.
    pub(super) fn position(&self, particle: usize) -> [f64; 3] {
        std::array::from_fn(|axis| f64::from(self.points[particle].position[axis]) * self.unit[axis])
    }

    /// Distances of particles of this rank to the `K`-th nearest particle of all ranks, counting themselves; to the farthest
    /// if there are fewer than `K`. Collective.
    pub(super) fn distances_by<const K: usize>(
        &self,
        communicator: &Communicator,
        part: &Part,
        particles: Range<usize>,
    ) -> Vec<f64> {
        let position = |n: usize| self.points[n].position;
        if communicator.size() == 1 {
            return particles
                .into_par_iter()
                .map(|n| self.nearest::<K>(position(n), f64::INFINITY).farthest())
                .collect();
        }
        let most = communicator.max(particles.len() as f64) as usize;
        let mut distances = Vec::with_capacity(particles.len());
        for first in (0..most).step_by(ASKED) {
            let some = |n: usize| particles.end.min(particles.start + n);
            let chunk = some(first)..some(first + ASKED);
            let own = chunk.clone().into_par_iter().map(|n| self.nearest::<K>(position(n), f64::INFINITY));
            let mut own: Vec<Nearest<K>> = own.collect();
            let others: Vec<Vec<usize>> = (chunk.clone(), &own)
                .into_par_iter()
                .map(|(n, nearest)| part.other_ranks_within(self.position(n), nearest.bound().sqrt()))
                .collect();
            let (mut to, mut asking) = (vec![Vec::new(); communicator.size()], vec![Vec::new(); communicator.size()]);
            for (n, ranks) in others.iter().enumerate() {
                for &rank in ranks {
                    to[rank].push(Query { bound: own[n].bound(), of: position(chunk.start + n), unused: 0 });
                    asking[rank].push(n);
                }
            }
            let answer = |queries: Vec<Query>| {
                let found: Vec<Nearest<K>> =
                    queries.par_iter().map(|query| self.nearest(query.of, query.bound)).collect();
                let counts = found.iter().map(|found| found.count as u64).collect();
                (counts, found.iter().flat_map(|found| &found.squares[..found.count]).copied().collect())
            };
            let (counts, squares): (Vec<Vec<u64>>, Vec<Vec<f64>>) =
                exchange(communicator, to).into_iter().map(answer).unzip();
            let (counts, squares) = (exchange(communicator, counts), exchange(communicator, squares));
            for ((asking, counts), squares) in asking.iter().zip(counts).zip(squares) {
                let mut squares = squares.into_iter();
                for (&n, count) in asking.iter().zip(counts) {
                    squares.by_ref().take(count as usize).for_each(|square| own[n].add(square));
                }
            }
            distances.extend(own.iter().map(Nearest::farthest));
        }
        distances
    }

    /// The nearest particles of this rank with squared distances below a bound.
    fn nearest<const K: usize>(&self, of: [u32; 3], bound: f64) -> Nearest<K> {
        let mut nearest = Nearest { squares: [bound; K], count: 0 };
        self.search(&Self::whole(self.len()), of, &mut nearest);
        nearest
    }

    fn search<const K: usize>(&self, cell: &Cell, of: [u32; 3], nearest: &mut Nearest<K>) {
        if cell.particles.len() <= LEAF {
            self.points[cell.particles.clone()]
                .iter()
                .for_each(|other| nearest.add(self.to_cell(of, other.position, other.position)));
            return;
        }
        let axis = cell.longest(self.unit);
        let median = self.points[cell.middle()].position;
        nearest.add(self.to_cell(of, median, median));
        let mut halves = cell.halves(axis, median[axis]).map(|half| (self.to_cell(of, half.low, half.high), half));
        if halves[1].0 < halves[0].0 {
            halves.swap(0, 1);
        }
        for (square, half) in &halves {
            if *square < nearest.squares[K - 1] {
                self.search(half, of, nearest);
            }
        }
    }

    /// The square of the distance to a cell of the tree.
    fn to_cell(&self, of: [u32; 3], low: [u32; 3], high: [u32; 3]) -> f64 {
        let along = |axis: usize| {
            let (x, low, high) = (of[axis], low[axis], high[axis]);
            let steps = match (low <= x && x <= high, self.periodic[axis]) {
                (true, _) => 0,
                (false, true) => low.wrapping_sub(x).min(x.wrapping_sub(high)),
                (false, false) => low.saturating_sub(x).max(x.saturating_sub(high)),
            };
            (f64::from(steps) * self.unit[axis]).powi(2)
        };
        along(0) + along(1) + along(2)
    }
}

/// Sorts the particles of a cell as the tree has them.
fn sort(points: &mut [Point], cell: &Cell, unit: [f64; 3]) {
    if points.len() <= LEAF {
        points.sort_unstable();
        return;
    }
    let (axis, middle) = (cell.longest(unit), points.len() / 2);
    // the other coordinates and the mass break ties, so that the halves do not depend on the order of the input
    let key = |Point { position: p, mass }: &Point| [p[axis], p[(axis + 1) % 3], p[(axis + 2) % 3], *mass];
    points.select_nth_unstable_by_key(middle, key);
    let [first, second] = cell.halves(axis, points[middle].position[axis]);
    let (below, above) = points.split_at_mut(middle);
    let above = &mut above[1..];
    match below.len() > PARALLEL {
        true => _ = rayon::join(|| sort(below, &first, unit), || sort(above, &second, unit)),
        false => {
            sort(below, &first, unit);
            sort(above, &second, unit);
        }
    }
}

/// A query for the nearest particles to a position.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Query {
    /// Upper bound of squared distances.
    bound: f64,
    of: [u32; 3],
    unused: u32,
}

/// Squares of the smallest distances, rising; entries beyond `count` hold the upper bound.
struct Nearest<const K: usize> {
    squares: [f64; K],
    count: usize,
}

impl<const K: usize> Nearest<K> {
    /// Upper bound of further squares.
    fn bound(&self) -> f64 {
        self.squares[K - 1]
    }

    /// Distance to the last particle.
    fn farthest(&self) -> f64 {
        self.squares[self.count - 1].sqrt()
    }

    fn add(&mut self, square: f64) {
        if square >= self.squares[K - 1] {
            return;
        }
        self.count = (self.count + 1).min(K);
        let mut at = self.count - 1;
        while at > 0 && self.squares[at - 1] > square {
            self.squares[at] = self.squares[at - 1];
            at -= 1;
        }
        self.squares[at] = square;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::random_particles;

    fn distance<const K: usize>(tree: &Neighbours, particle: usize) -> f64 {
        tree.nearest::<K>(tree.points[particle].position, f64::INFINITY).farthest()
    }

    /// Of random particles, clumps and coincident ones, across faces that are periodic and not across others.
    #[test]
    fn distances_are_those_of_all_pairs() {
        let lengths = [1.0, 0.5, 2.0];
        let mut particles = random_particles(700, lengths, 11);
        for n in 0..200 {
            // a clump about a corner, in which ten are at one place
            for axis in 0..3 {
                let offset = (n as u32).wrapping_mul(0x9e37_79b9 + 77 * axis as u32) >> 9;
                particles.position[axis][n] = if n < 10 { 5 } else { offset.wrapping_sub(1 << 22) };
            }
        }
        for periodic in [[true; 3], [false; 3], [true, false, true]] {
            let tree = Neighbours::new(&particles, lengths, periodic);
            for n in (0..tree.len()).step_by(7) {
                let x = tree.position(n);
                let square = |m: usize| -> f64 {
                    let y = tree.position(m);
                    let along = |a: usize| {
                        let d = (x[a] - y[a]).abs();
                        if periodic[a] { d.min(lengths[a] - d) } else { d }
                    };
                    (0..3).map(|a| along(a).powi(2)).sum()
                };
                let mut squares: Vec<f64> = (0..tree.len()).map(square).collect();
                squares.sort_by(f64::total_cmp);
                let [found, alone] = [distance::<32>(&tree, n), distance::<1>(&tree, n)];
                assert!(
                    (found - squares[31].sqrt()).abs() < 1e-9 && alone == 0.0,
                    "{n}: {found} {}",
                    squares[31].sqrt()
                );
            }
        }
        let few = Neighbours::new(&random_particles(2, lengths, 1), lengths, [false; 3]);
        let [x, y] = [few.position(0), few.position(1)];
        let apart = (0..3).map(|a| (x[a] - y[a]).powi(2)).sum::<f64>().sqrt();
        assert!((distance::<32>(&few, 0) - apart).abs() < 1e-9);
    }
}
