//! Groups of linked particles, exact and without a list of pairs.
//!
//! Cells of the grid are no wider than the linking length over √3, so all particles of a cell are friends, and a union-find
//! over occupied cells is enough: two cells are joined by the first pair found across them. Cells further than two apart
//! hold no friends. A cell's root is the first cell of its group, whichever thread joins what first.
//!
//! Each of several ranks links its own particles and copies of particles within a linking length of its mesh. A particle and
//! its copy have a root on either rank. All ranks gather these pairs of roots and unite the groups that span ranks. The rank
//! with most particles of a group receives the rest.

use crate::messages::{exchange, gather_all};
use crate::particle_grid::{ParticleGrid, in_code_length, position_of};
use bytemuck::{Pod, Zeroable};
use comove_sim::HostParticles;
use comove_sim::kernels::point::particle::{mass_of, unmarked};
use comove_sim::parallel::Communicator;
use rayon::prelude::*;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU32, Ordering};

/// The least number of linking lengths along a side of the box: cells two apart are then different ones on both sides.
pub(super) const LEAST_LENGTHS: f64 = 4.0;

/// A particle of a group.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Member {
    pub(super) id: u64,
    /// Fractions of the box in 2⁻³².
    pub(super) position: [u32; 3],
    /// In code units.
    pub(super) velocity: [f32; 3],
}

impl Member {
    /// Mass in units of class 0.
    pub(super) fn mass(&self) -> u32 {
        mass_of(self.id)
    }

    fn new(particles: &HostParticles, n: usize) -> Self {
        let velocity = particles.velocity.each_ref().map(|column| column[n]);
        Self { id: unmarked(particles.id[n]), position: position_of(particles, n), velocity }
    }
}

/// A particle on its way to the rank that has its group.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Sent {
    /// Number of the group, equal on all ranks.
    group: u64,
    particle: Member,
}

/// A group of linked particles.
#[derive(Default)]
pub(super) struct Group {
    /// Indices of particles of this rank.
    own: Vec<u32>,
    /// Particles of other ranks.
    received: Vec<Member>,
}

impl Group {
    /// All particles, sorted by identity.
    ///
    /// * `particles`: of this rank
    pub(super) fn members(&self, particles: &HostParticles) -> Vec<Member> {
        let own = self.own.iter().map(|&n| Member::new(particles, n as usize));
        let mut members: Vec<Member> = own.chain(self.received.iter().copied()).collect();
        members.sort_unstable_by_key(|member| member.id);
        members
    }
}

/// Finds the groups of at least `min_particles` particles, each on one rank, unsorted: collective.
///
/// * `particles`: of this rank
/// * `other_ranks_near`: other ranks with mesh within a linking length of a position
pub(super) fn groups_by(
    communicator: &Communicator,
    particles: &HostParticles,
    box_lengths: [f64; 3],
    linking_length: f64,
    min_particles: usize,
    other_ranks_near: &(dyn Fn([f64; 3]) -> Vec<usize> + Sync),
) -> Vec<Group> {
    let own = particles.len();
    let rim = Rim::new(communicator, particles, box_lengths, other_ranks_near);
    let position = |n: usize| if n < own { position_of(particles, n) } else { rim.copies[n - own] };
    let cells = box_lengths.map(|length| (3f64.sqrt() * length / linking_length).ceil() as u32);
    let grid = ParticleGrid::new(own + rim.copies.len(), position, box_lengths, cells);
    let roots = roots(&grid, linking_length);
    let own_in = |cell: usize| grid.in_cell(cell).map(|particle| grid.number(particle)).filter(|&n| n < own);
    let mut counts = vec![0u32; grid.occupied()];
    roots.iter().enumerate().for_each(|(cell, &root)| counts[root as usize] += own_in(cell).count() as u32);
    let shared = rim.shared(communicator, &grid, &roots, &counts);
    // from here on the target of the particles whose root a cell is
    const NONE: u32 = u32::MAX;
    let mut targets: Vec<Target> = Vec::new();
    let mut groups: Vec<Group> = Vec::new();
    let mut across: HashMap<u64, usize> = HashMap::new();
    for (cell, count) in counts.iter_mut().enumerate() {
        let particles = std::mem::replace(count, NONE) as usize;
        let target = match shared.of_root.get(&(cell as u32)) {
            Some(&group) => {
                let Extent { particles, rank, .. } = shared.extents[&group];
                match rank == communicator.rank() {
                    _ if particles < min_particles as u64 => None,
                    true => Some(Target::Own(*across.entry(group).or_insert_with(|| new_group(&mut groups)))),
                    false => Some(Target::Other { rank, group }),
                }
            }
            None if particles >= min_particles.max(1) => Some(Target::Own(new_group(&mut groups))),
            None => None,
        };
        if let Some(target) = target {
            *count = targets.len() as u32;
            targets.push(target);
        }
    }
    let mut to = vec![Vec::new(); communicator.size()];
    for (cell, &root) in roots.iter().enumerate() {
        match targets.get(counts[root as usize] as usize) {
            Some(Target::Own(group)) => groups[*group].own.extend(own_in(cell).map(|n| n as u32)),
            Some(&Target::Other { rank, group }) => {
                to[rank].extend(own_in(cell).map(|n| Sent { group, particle: Member::new(particles, n) }));
            }
            None => {}
        }
    }
    for Sent { group, particle } in exchange(communicator, to).into_iter().flatten() {
        groups[across[&group]].received.push(particle);
    }
    groups
}

fn new_group(groups: &mut Vec<Group>) -> usize {
    groups.push(Group::default());
    groups.len() - 1
}

/// Destination of the particles of a root.
enum Target {
    /// A group of this rank.
    Own(usize),
    /// A group of another rank.
    Other { rank: usize, group: u64 },
}

/// Size and owner of a group that spans ranks.
#[derive(Clone, Copy, Default)]
struct Extent {
    /// Number of particles on all ranks.
    particles: u64,
    /// The owner: the first of the ranks with most particles.
    rank: usize,
    /// Number of particles on the owner.
    most: u64,
}

/// Groups that span ranks, by numbers that are equal on all ranks.
#[derive(Default)]
struct Shared {
    /// The group of a root of this rank.
    of_root: HashMap<u32, u64>,
    extents: BTreeMap<u64, Extent>,
}

/// Particles near the meshes of other ranks, and copies of particles near the mesh of this rank.
struct Rim {
    /// Indices of particles of this rank, by the rank that receives copies.
    sent: Vec<Vec<u32>>,
    /// Positions of copies, by rank.
    copies: Vec<[u32; 3]>,
}

impl Rim {
    /// Sends copies: collective.
    fn new(
        communicator: &Communicator,
        particles: &HostParticles,
        box_lengths: [f64; 3],
        other_ranks_near: &(dyn Fn([f64; 3]) -> Vec<usize> + Sync),
    ) -> Self {
        let ranks = communicator.size();
        let mut sent = vec![Vec::new(); ranks];
        if ranks == 1 {
            return Self { sent, copies: Vec::new() };
        }
        let near = |n: usize| {
            let others = other_ranks_near(in_code_length(position_of(particles, n), box_lengths));
            others.into_iter().map(move |rank| (rank, n as u32))
        };
        let all: Vec<(usize, u32)> = (0..particles.len()).into_par_iter().flat_map_iter(near).collect();
        all.into_iter().for_each(|(rank, n)| sent[rank].push(n));
        let positions = |sent: &Vec<u32>| sent.iter().map(|&n| position_of(particles, n as usize)).collect();
        let copies = exchange(communicator, sent.iter().map(positions).collect()).concat();
        Self { sent, copies }
    }

    /// Unites the groups that span ranks: collective.
    ///
    /// * `roots`: root of each occupied cell
    /// * `counts`: number of particles of this rank by root
    fn shared(&self, communicator: &Communicator, grid: &ParticleGrid, roots: &[u32], counts: &[u32]) -> Shared {
        if communicator.size() == 1 {
            return Shared::default();
        }
        let rank = communicator.rank();
        let label = |rank: usize, root: u32| (rank as u64) << 32 | u64::from(root);
        let mut root_of = vec![0; particles_in(grid)];
        for (cell, &root) in roots.iter().enumerate() {
            grid.in_cell(cell).for_each(|particle| root_of[grid.number(particle)] = root);
        }
        let roots_of = |sent: &Vec<u32>| sent.iter().map(|&n| root_of[n as usize]).collect();
        let theirs = exchange(communicator, self.sent.iter().map(roots_of).collect());
        let own = root_of.len() - self.copies.len();
        let theirs =
            theirs.iter().enumerate().flat_map(|(rank, roots)| roots.iter().map(move |&root| label(rank, root)));
        let mut pairs: Vec<[u64; 2]> =
            theirs.zip(&root_of[own..]).map(|(other, &root)| [other, label(rank, root)]).collect();
        drop(root_of);
        pairs.sort_unstable();
        pairs.dedup();
        let pairs = gather_all(communicator, &pairs).concat();
        let groups = united(&pairs);
        let of_rank = groups.range(label(rank, 0)..=label(rank, u32::MAX));
        let of_root: HashMap<u32, u64> = of_rank.map(|(&label, &group)| (label as u32, group)).collect();
        let mut own: BTreeMap<u64, u64> = BTreeMap::new();
        of_root.iter().for_each(|(&root, &group)| *own.entry(group).or_default() += u64::from(counts[root as usize]));
        let own: Vec<[u64; 2]> = own.into_iter().map(|(group, particles)| [group, particles]).collect();
        let mut extents: BTreeMap<u64, Extent> = BTreeMap::new();
        for (rank, of_rank) in gather_all(communicator, &own).into_iter().enumerate() {
            for [group, particles] in of_rank {
                let extent = extents.entry(group).or_default();
                extent.particles += particles;
                if particles > extent.most {
                    (extent.rank, extent.most) = (rank, particles);
                }
            }
        }
        Shared { of_root, extents }
    }
}

/// Number of particles in a grid.
fn particles_in(grid: &ParticleGrid) -> usize {
    (0..grid.occupied()).last().map_or(0, |cell| grid.in_cell(cell).end)
}

/// The smallest label of the set that pairs unite each label with.
fn united(pairs: &[[u64; 2]]) -> BTreeMap<u64, u64> {
    let mut labels: Vec<u64> = pairs.as_flattened().to_vec();
    labels.sort_unstable();
    labels.dedup();
    let place = |label: u64| labels.binary_search(&label).expect("a label of a pair") as u32;
    let joined = Joined::new(labels.len());
    pairs.iter().for_each(|&[one, other]| joined.join(place(one), place(other)));
    (0..labels.len()).map(|n| (labels[n], labels[joined.root(n as u32) as usize])).collect()
}

/// The root of each occupied cell.
fn roots(grid: &ParticleGrid, linking_length: f64) -> Vec<u32> {
    let joined = Joined::new(grid.occupied());
    // near cells first: what they have joined need not be compared again
    for beside in [NEAR, FAR] {
        (0..grid.rows()).into_par_iter().filter(|&row| !grid.row(row).is_empty()).for_each(|row| {
            beside.iter().for_each(|&offset| join_row(grid, &joined, row, offset, linking_length));
        });
    }
    (0..grid.occupied() as u32).into_par_iter().map(|cell| joined.root(cell)).collect()
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
fn join_row(grid: &ParticleGrid, joined: &Joined, row: usize, (beside, [least, most]): Beside, linking_length: f64) {
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

/// A union-find that threads share: an element points to an earlier element of its group, a root to itself.
struct Joined(Vec<AtomicU32>);

impl Joined {
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
