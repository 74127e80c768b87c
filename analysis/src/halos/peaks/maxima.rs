//! Density peaks: leaf cells denser than every leaf cell they touch by a face, an edge or a corner.
//!
//! A rank asks the others for the densities of their cells only where a cell is denser than all of its own around it.

use crate::cells::{LeafCell, group_of, patch_cells};
use crate::messages::{exchange, gather};
use crate::part::Part;
use comove_sim::kernels::layout::{DENSITY, DIRECTIONS, GROUP, GROUP_CELLS, GROUP_VALUES, PATCH, cell};
use comove_sim::mesh::LeafPatch;
use comove_sim::parallel::Communicator;
use rayon::prelude::*;
use std::cmp::Ordering;

/// A density peak.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Peak {
    /// Centre of its cell in code length.
    pub position: [f64; 3],
    /// Width of its cell in code length.
    pub width: f64,
    /// Density of its cell in code units.
    pub density: f64,
}

/// The order of peaks: the denser first, equal densities by position (z, then y, then x).
fn order(x: (f64, [f64; 3]), y: (f64, [f64; 3])) -> Ordering {
    let along = |a: usize| x.1[a].total_cmp(&y.1[a]);
    y.0.total_cmp(&x.0).then(along(2)).then(along(1)).then(along(0))
}

/// Every peak above a density, the densest first, on the first rank: collective.
pub fn find(communicator: &Communicator, part: &Part, threshold: f64) -> Option<Vec<Peak>> {
    let patches: Vec<LeafPatch> = part.leaf_patches().collect();
    let neighbourhood = Neighbourhood { part };
    let candidates = patches.par_iter().flat_map_iter(|&patch| neighbourhood.candidates(patch, threshold));
    let candidates: Vec<Candidate> = candidates.collect();
    let lower = neighbourhood.others_are_lower(communicator, &candidates);
    let peaks = candidates.iter().zip(lower).filter(|(_, lower)| *lower).map(|(candidate, _)| candidate.peak.numbers());
    let mut peaks: Vec<Peak> = gather(communicator, peaks.collect())?.into_iter().flatten().map(Peak::of).collect();
    peaks.sort_by(|x, y| order((x.density, x.position), (y.density, y.position)));
    Some(peaks)
}

impl Peak {
    /// As it is sent.
    pub(super) fn numbers(&self) -> [f64; 5] {
        let [x, y, z] = self.position;
        [x, y, z, self.width, self.density]
    }

    pub(super) fn of([x, y, z, width, density]: [f64; 5]) -> Self {
        Self { position: [x, y, z], width, density }
    }
}

/// A cell denser than every leaf cell of this rank that it touches.
struct Candidate {
    peak: Peak,
    /// The others.
    others: Vec<Other>,
}

/// A leaf cell of another rank.
struct Other {
    rank: usize,
    /// Its level, its group's place in the level's list, its index in the group.
    place: [u64; 3],
    position: [f64; 3],
}

struct Neighbourhood<'a> {
    part: &'a Part<'a>,
}

impl Neighbourhood<'_> {
    fn candidates(&self, patch: LeafPatch, threshold: f64) -> Vec<Candidate> {
        let candidate = |(n, cell): (usize, LeafCell)| {
            let inside = [n % PATCH, n / PATCH % PATCH, n / (PATCH * PATCH)];
            let lattice = std::array::from_fn(|a| patch.first_cell[a] + inside[a]);
            let this = (cell.fluid[DENSITY], cell.position);
            let mut others = Vec::new();
            let mut directions = (0..DIRECTIONS).filter(|&d| d != DIRECTIONS / 2);
            let lower = directions.all(|d| self.is_lower(patch.level, lattice, d, this, &mut others));
            let peak = Peak { position: cell.position, width: cell.width, density: cell.fluid[DENSITY] };
            lower.then_some(Candidate { peak, others })
        };
        let cells = patch_cells(self.part.snapshot, patch).enumerate();
        cells.filter(|(_, cell)| cell.fluid[DENSITY] > threshold).filter_map(candidate).collect()
    }

    /// Whether all leaf cells that touch `cell` in a direction come after `this` in the order of peaks; those of other
    /// ranks are noted instead.
    fn is_lower(
        &self,
        level: usize,
        cell: [usize; 3],
        direction: usize,
        this: (f64, [f64; 3]),
        others: &mut Vec<Other>,
    ) -> bool {
        let tree = self.part.tree;
        let step = [direction % 3, direction / 3 % 3, direction / 9].map(|s| s as i64 - 1);
        let cells = tree.cells(level);
        let mut next = [0; 3];
        for a in 0..3 {
            let c = cell[a] as i64 + step[a];
            let n = cells[a] as i64;
            if !(0..n).contains(&c) && !tree.periodic()[a] {
                return true;
            }
            next[a] = c.rem_euclid(n) as usize;
        }
        self.all_lower(level, next, step, this, others)
    }

    /// The same for the leaf cells of a lattice cell that touch its face, edge or corner towards −`step`.
    fn all_lower(
        &self,
        level: usize,
        lattice: [usize; 3],
        step: [i64; 3],
        this: (f64, [f64; 3]),
        others: &mut Vec<Other>,
    ) -> bool {
        let Part { tree, snapshot, .. } = *self.part;
        let (mut level, mut lattice) = (level, lattice);
        let mut group = group_of(tree, level, lattice);
        while group.is_none() {
            (level, lattice) = (level - 1, lattice.map(|c| c / 2));
            group = group_of(tree, level, lattice);
        }
        if group_of(tree, level + 1, lattice.map(|c| 2 * c)).is_some() {
            return (0..8).all(|o| {
                let half = [o & 1, o >> 1 & 1, o >> 2 & 1];
                let touches = (0..3).all(|a| step[a] == 0 || (step[a] > 0) == (half[a] == 0));
                let finer = std::array::from_fn(|a| 2 * lattice[a] + half[a]);
                !touches || self.all_lower(level + 1, finer, step, this, others)
            });
        }
        let group = group.expect("found above");
        let [i, j, k] = lattice.map(|c| c % GROUP);
        let width = snapshot.cell_width(level);
        let position = lattice.map(|c| (c as f64 + 0.5) * width);
        if !self.part.groups(self.part.rank(), level).contains(&group) {
            let root = group_of(tree, 0, lattice.map(|c| c >> level)).expect("level 0 covers the box");
            let place = [level, group, cell(i, j, k)].map(|n| n as u64);
            others.push(Other { rank: self.part.rank_of(root), place, position });
            return true;
        }
        let density = snapshot.state.field(self.part.own(level, group), DENSITY)[[k, j, i]];
        // a coarse neighbour can be met in several directions, never the cell itself
        order(this, (density, position)) == Ordering::Less
    }

    /// Of each candidate, whether the cells of other ranks come after it too: collective.
    fn others_are_lower(&self, communicator: &Communicator, candidates: &[Candidate]) -> Vec<bool> {
        let mut to = vec![Vec::new(); communicator.size()];
        for other in candidates.iter().flat_map(|candidate| &candidate.others) {
            to[other.rank].push(other.place);
        }
        let density = |[level, group, cell]: [u64; 3]| {
            let group = self.part.own(level as usize, group as usize);
            self.part.snapshot.state.fluid[group * GROUP_VALUES + DENSITY * GROUP_CELLS + cell as usize]
        };
        let asked = exchange(communicator, to).into_iter();
        let answers = asked.map(|places| places.into_iter().map(density).collect()).collect();
        let mut answers: Vec<_> = exchange(communicator, answers).into_iter().map(Vec::into_iter).collect();
        let is_lower = |candidate: &Candidate| {
            let this = (candidate.peak.density, candidate.peak.position);
            // all answers are taken, whatever the first ones say
            candidate.others.iter().fold(true, |lower, other| {
                let density = answers[other.rank].next().expect("an answer to each question");
                lower & (order(this, (density, other.position)) == Ordering::Less)
            })
        };
        candidates.iter().map(is_lower).collect()
    }
}
