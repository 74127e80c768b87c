//! Particles that change hands between ranks.
//!
//! A particle belongs to the owner of its home group ([`GroupLocator::home`]). A rank knows the groups around its own, and sends
//! a particle to the owner of the finest one of these. That one may know of a finer group, or that the particle is in a buffer
//! and so in the parent's group, and sends it on.

use crate::dark_matter::HostParticles;
use crate::mesh::device_mesh::buffers_of;
use crate::mesh::morton_map::MortonMap;
use crate::mesh::{Key, Mesh, Octree};
use crate::parallel::communicator::{Communicator, FIRST};
use crate::parallel::deposits::Deposits;
use crate::parallel::owners::Owners;
use crate::parallel::share::Share;
use comove_kernels::layout::OCTANTS;
use comove_kernels::level_topology::NONE;
use comove_kernels::particles::{self, COLUMNS, Particles};
use comove_kernels::{Device, GroupLocator, KernelError, buffer_sides};
use std::ops::Range;

/// Particles that a rank sends at a time, and about as many that it receives: 32 MiB.
const AT_A_TIME: usize = 1 << 20;

/// A particle as a message has it.
type Row = [u32; COLUMNS];

/// Columns of particles on the host.
type HostColumns = [Vec<u32>; COLUMNS];

/// Particles that leave a rank and those that come to it, before either has happened.
#[derive(Default)]
pub(crate) struct Transfer {
    /// Their numbers, rising.
    leaving: Vec<u32>,
    coming: HostColumns,
}

impl Transfer {
    /// How many particles a rank has afterwards that has so many before.
    pub(super) fn count_after(&self, count: usize) -> usize {
        count - self.leaving.len() + self.coming[0].len()
    }

    /// Puts those that come in the places of those that leave, and at the end, or fills these places from there.
    ///
    /// # Errors
    /// [`KernelError::OutOfMemory`], with the particles of before.
    pub(super) fn apply(self, device: &Device, particles: &mut Particles) -> Result<(), KernelError> {
        let (count, after) = (particles.len(), self.count_after(particles.len()));
        let Self { leaving, coming } = self;
        let coming_count = coming[0].len();
        if coming_count >= leaving.len() {
            particles.resize(device, after)?;
            let places: Vec<u32> = leaving.into_iter().chain(count as u32..after as u32).collect();
            particles::put(device, particles, &places, coming.each_ref().map(Vec::as_slice));
            return Ok(());
        }
        let (places, holes) = leaving.split_at(coming_count);
        particles::put(device, particles, places, coming.each_ref().map(Vec::as_slice));
        let (holes, beyond) = holes.split_at(holes.partition_point(|&n| (n as usize) < after));
        let last: Vec<u32> = (after as u32..count as u32).filter(|n| beyond.binary_search(n).is_err()).collect();
        let moved = particles::take(device, particles, &last);
        particles::put(device, particles, holes, moved.each_ref().map(Vec::as_slice));
        particles.resize(device, after)
    }
}

/// Finds which particles of some ranges are other ranks', and brings all ranks' to their owners' hosts: collective.
///
/// * `ranges`: with the coarsest level of groups to which their particles leave
/// * `least`: the level of the groups whose owners are asked about particles in unknown places
pub(super) fn transfer(
    device: &Device,
    (communicator, owners): (&Communicator, &Owners),
    locator: &GroupLocator,
    particles: &Particles,
    ranges: &[(Range<usize>, usize)],
    least: usize,
) -> Transfer {
    let mut leaving = Vec::new();
    for (range, from) in ranges {
        leaving.extend(particles::foreign(device, locator, particles, range.clone(), *from));
    }
    let columns = particles::take(device, particles, &leaving);
    Transfer { leaving, coming: route(communicator, owners, locator, &columns, least) }
}

/// Brings particles of the host to their owners, whoever has them: collective.
pub(crate) fn distribute(
    communicator: &Communicator,
    owners: &Owners,
    locator: &GroupLocator,
    particles: &HostParticles,
) -> HostParticles {
    HostParticles::of_columns(particles.particle_mass, route(communicator, owners, locator, &particles.columns(), 0))
}

/// All ranks' particles on the first one, in the order of files: collective. They come column by column.
///
/// * `tree`: on the first rank, the whole tree
pub(crate) fn gather(
    communicator: &Communicator,
    particles: &HostParticles,
    tree: Option<&Octree>,
) -> Option<HostParticles> {
    let gathered = particles.columns().map(|column| {
        let mut all = Vec::new();
        // all ranks do as many rounds as the one that has most
        let mut rest = column.as_slice();
        while communicator.any(!rest.is_empty()) {
            let (part, behind) = rest.split_at(rest.len().min(8 * AT_A_TIME));
            rest = behind;
            let parts = communicator.gather(FIRST, bytemuck::cast_slice(part).to_vec()).unwrap_or_default();
            all.extend(parts.iter().map(|part| bytemuck::pod_collect_to_vec::<u8, u32>(part)));
        }
        all.concat()
    });
    tree.map(|tree| HostParticles::of_columns(particles.particle_mass, gathered).in_file_order(tree))
}

/// Sends particles on until all are with their owners: collective. Those that have come, in any order. One whose home turns out
/// to be coarser than `least` stays with the owner of the group of that level that contains it, and waits for the coarser level.
fn route(
    communicator: &Communicator,
    owners: &Owners,
    locator: &GroupLocator,
    columns: &HostColumns,
    least: usize,
) -> HostColumns {
    let mut own = HostColumns::default();
    let mut travelling = Vec::new();
    let mut sort_out = |rows: &mut dyn Iterator<Item = Row>, has_come: bool, travelling: &mut Vec<(usize, Row)>| {
        for row in rows {
            let position = [row[0], row[1], row[2]];
            let (group, level) = locator.home(position);
            if locator.is_foreign(group) && !(has_come && level < least) {
                let level = level.max(least);
                travelling.push((owners.of(key_at(locator.root, position, level)), row));
            } else {
                own.iter_mut().zip(row).for_each(|(column, value)| column.push(value));
            }
        }
    };
    let count = columns[0].len();
    sort_out(&mut (0..count).map(|n| std::array::from_fn(|c| columns[c][n])), false, &mut travelling);
    while communicator.any(!travelling.is_empty()) {
        let mut messages = vec![Vec::<u8>::new(); communicator.size()];
        for (rank, row) in travelling.drain(travelling.len().saturating_sub(AT_A_TIME)..) {
            assert_ne!(rank, communicator.rank(), "a particle in a group that there is not");
            messages[rank].extend(bytemuck::cast_slice(&row));
        }
        for message in communicator.exchange(messages) {
            let rows: Vec<Row> = bytemuck::pod_collect_to_vec(&message);
            sort_out(&mut rows.into_iter(), true, &mut travelling);
        }
    }
    own
}

/// The group of a level that there is or would be at a position.
fn key_at(root: [u32; 3], position: [u32; 3], level: usize) -> Key {
    let group = |axis: usize| ((u64::from(position[axis]) * (u64::from(root[axis]) << level)) >> 32) as u32;
    Key::new(level as u8, std::array::from_fn(group))
}

/// What the particles of a rank among others look up: its own groups and all that it knows of.
pub(crate) fn locator(mesh: &Mesh, share: &Share) -> GroupLocator {
    let levels = mesh.tree.level_count();
    let mut nodes = vec![MortonMap::default(); levels];
    let mut end = 0;
    let own = (0..levels).flat_map(|n| mesh.tree.level(n).iter().copied().zip(mesh.slots[n].iter().copied()));
    let theirs = share.ghosts.iter().flatten().copied();
    for (key, slot) in own.chain(theirs).chain(share.deposits.iter().flat_map(Deposits::groups)) {
        *nodes[usize::from(key.level)].entry(key.morton()) = slot;
        end = end.max(slot + 1);
    }
    // the others have numbers beyond the slots, the first one stands for all root groups that nobody here knows of
    let (slots, unknown) = (end, end);
    let mut next = end + 1;
    let mut add = |nodes: &mut MortonMap, position: u64| {
        let node = nodes.entry(position);
        if *node == NONE {
            *node = next;
            next += 1;
        }
    };
    for level in (0..levels).rev() {
        share.known.level(level).iter().for_each(|group| add(&mut nodes[level], group.key.morton()));
        if let [.., parents, finer] = &mut nodes[..=level] {
            finer.iter().for_each(|(position, _)| add(parents, position >> 3));
        }
    }
    let end = next as usize;
    let mut children = vec![NONE; end * OCTANTS];
    for levels in nodes.windows(2) {
        for (position, node) in levels[1].iter() {
            children[levels[0].at(position >> 3) as usize * OCTANTS + (position & 7) as usize] = node;
        }
    }
    let mut buffers = vec![0; end];
    for tables in &mesh.tables {
        tables.slots.iter().zip(buffers_of(tables)).for_each(|(&slot, sides)| buffers[slot as usize] = sides);
    }
    // a rank knows the neighbours of all children of its own groups
    for group in (1..levels).flat_map(|level| share.known.level(level)) {
        let level = usize::from(group.key.level);
        if group.key.parent().is_some_and(|parent| mesh.tree.find(parent).is_some()) {
            let is_missing = |key: Key| nodes[level].find(key) == NONE;
            let sides = buffer_sides(|step| mesh.tree.neighbour(group.key, step).is_some_and(is_missing));
            buffers[nodes[level].find(group.key) as usize] = sides;
        }
    }
    let (mut numbers, mut first) = (vec![0; end], vec![1]);
    for level in &mesh.slots {
        let before = first[first.len() - 1];
        level.iter().zip(before..).for_each(|(&slot, number)| numbers[slot as usize] = number);
        // one more for particles that are sorted to the level and have left it
        first.push(before + level.len() as u32 + 1);
    }
    let root = mesh.tree.root_groups();
    let [nx, ny, nz] = root;
    let places = (0..nz).flat_map(|z| (0..ny).flat_map(move |y| (0..nx).map(move |x| [x, y, z])));
    GroupLocator {
        root,
        slots,
        root_slots: places
            .map(|c| match nodes[0].find(Key::new(0, c)) {
                NONE => unknown,
                node => node,
            })
            .collect(),
        children: children.into(),
        numbers: numbers.into(),
        buffers: buffers.into(),
        first: first.into(),
    }
}
