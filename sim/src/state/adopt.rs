//! Another tree for a state: the groups that stay keep their slots, new ones are interpolated from their parents. Ranks that
//! share a tree balance it where that is worth while, and move groups to their new owners.

use crate::dark_matter::Transfer;
use crate::error::SimError;
use crate::mesh::morton_map::MortonMap;
use crate::mesh::{Key, Octree};
use crate::parallel::collective_result::collective_result;
use crate::parallel::exchange::Exchange;
use crate::parallel::keys::exchange_keys;
use crate::parallel::link_lists::links_of_slots;
use crate::parallel::load_balancer::LoadBalancer;
use crate::parallel::owners::Owners;
use crate::parallel::share::Share;
use crate::state::State;
use crate::state::layout::Layout;
use crate::state::memory::Footprint;
use comove_kernels::layout::{GROUP_CELLS, OCTANTS};
use comove_kernels::level_topology::NONE;
use comove_kernels::messages::MessageSizes;
use comove_kernels::{DeviceTable, Eos, Real};
use rustc_hash::{FxHashMap, FxHashSet};

/// A level is cut anew once some rank has so many times the part of it that it is to have.
const TOLERANCE: f64 = 1.05;

/// Work of a cell's step in units of a particle's, about (docs/performance.md, docs/notes/dark-matter.md).
const PARTICLES_OF_A_CELL: u64 = 3;

/// Groups that two ranks send each other at a time: all at once might take more room than there is.
const AT_A_TIME: usize = 32;

/// Groups that change hands, as keys in the order in which their data is sent.
struct Moves {
    /// To each rank.
    to: Vec<Vec<Key>>,
    /// From each rank.
    from: Vec<Vec<Key>>,
}

impl Moves {
    /// How often ranks send each other groups.
    fn parts(&self) -> usize {
        self.to.iter().chain(&self.from).map(|keys| keys.len().div_ceil(AT_A_TIME)).max().unwrap_or(0)
    }

    /// Raises what is needed for messages by theirs, with values of so many bytes.
    ///
    /// * `of_group`: of a group, at most
    fn need(&self, needs: &mut [MessageSizes], of_group: usize, value: usize) {
        let bytes = |keys: &Vec<Key>| keys.len().min(AT_A_TIME) * of_group * value;
        for (need, (to, from)) in needs.iter_mut().zip(self.to.iter().zip(&self.from)) {
            *need = need.or(MessageSizes { send: bytes(to), receive: bytes(from) });
        }
    }
}

/// How much work groups are.
struct GroupWork {
    /// Particles in own groups by level, where there is dark matter.
    particles: Option<Vec<MortonMap>>,
}

impl GroupWork {
    /// In particles; of a rank without dark matter all groups are as much.
    fn of(&self, key: Key) -> u64 {
        let Some(particles) = &self.particles else { return 1 };
        let count = |key: &Key| match particles.get(usize::from(key.level))?.find(*key) {
            NONE => None,
            count => Some(u64::from(count)),
        };
        // a new group takes those of a patch
        let of_patch = || key.parent().and_then(|parent| count(&parent)).map(|count| count / OCTANTS as u64);
        GROUP_CELLS as u64 * PARTICLES_OF_A_CELL + count(&key).or_else(of_patch).unwrap_or(0)
    }
}

/// A tree and whose its groups are to be.
struct Distribution {
    /// The finest level that stays as it is.
    kept: usize,
    owners: Owners,
    /// What this rank then owns.
    tree: Octree,
    moves: Moves,
}

/// A layout, the slots that then stay free (the first at the end), and by level the own groups that nobody has yet.
struct Placed {
    layout: Layout,
    free: Vec<u32>,
    new: Vec<Vec<usize>>,
}

/// A tree with its owners that there is room for.
struct Planned {
    /// The finest level that stays as it is.
    kept: usize,
    moves: Moves,
    placed: Placed,
    /// Slots of the pools.
    room: usize,
    /// Particles that change hands, and how many there is to be room for.
    particles: Option<(Transfer, usize)>,
}

impl<T: Real> State<T> {
    /// Moves to another tree: kept groups stay where they are, removed ones free their slots (their parents already
    /// hold the restricted values), new ones are interpolated from their parents, coarse levels first. Of ranks that share
    /// a tree, those that have more than their part of a level give groups to others: collective.
    ///
    /// * `tree`: what this rank owns of the new tree, by the present owners
    /// * `from`: the finest level that stays in any case, with all coarser ones, where and as it is
    ///
    /// # Errors
    /// [`SimError::OutOfMemory`] if the new tree will not fit, before anything has moved. [`SimError::Kernel`] if it did not
    /// although it should have, because another process was faster: then some pools are longer than others, and the state
    /// is good for a snapshot and for nothing else.
    pub fn adopt_tree(&mut self, tree: Octree, from: usize, eos: &Eos<T>) -> Result<(), SimError> {
        let planned = match self.exchange.share.is_alone() {
            true => self.planned(self.as_owned(tree))?,
            false => match self.planned_anew(&tree, from, &self.work()) {
                // ranks need not have the same memory
                Err(error) if error.is_out_of_memory() => self.planned(self.as_owned(tree))?,
                planned => planned?,
            },
        };
        self.move_to(planned, eos)
    }

    /// What the arrays would take on another tree of a rank that is alone, a saved state among them.
    pub fn footprint_on(&self, tree: Octree) -> Footprint {
        let Distribution { kept, owners, tree, moves } = self.as_owned(tree);
        let share = self.exchange.share.of(&self.exchange.communicator, owners, &tree, kept);
        let layout = self.placed(tree, share, kept, &moves).layout;
        self.wanted(&layout, self.capacities(&layout)[0], self.kind.particles)
    }

    /// Moves groups to other owners where some rank has more than its part of a level finer than `from`, and all have room
    /// for what they are to have: collective.
    ///
    /// # Errors
    /// As [`State::adopt_tree`].
    pub(crate) fn rebalance(&mut self, from: usize, eos: &Eos<T>) -> Result<(), SimError> {
        if self.exchange.share.is_alone() {
            return Ok(());
        }
        let work = self.work();
        if self.even_to(&self.mesh.tree, from, &work) + 1 == self.level_count() {
            return Ok(());
        }
        match self.planned_anew(&self.mesh.tree.clone(), from, &work) {
            // there is for what they have
            Err(error) if error.is_out_of_memory() => Ok(()),
            planned => self.move_to(planned?, eos),
        }
    }

    /// Takes a tree whose groups already sit in these slots of the pools.
    ///
    /// # Errors
    /// [`SimError::Kernel`] if what depends on the tree does not fit.
    ///
    /// # Panics
    /// If a slot is beyond the pools.
    pub(super) fn place(&mut self, tree: Octree, slots: Vec<Vec<u32>>, share: Share) -> Result<(), SimError> {
        let mut used = vec![false; self.pool.capacity];
        let ghosts = share.ghosts.iter().flatten().map(|(_, slot)| *slot);
        for slot in slots.iter().flatten().copied().chain(ghosts).chain(share.deposit_slots()) {
            used[slot as usize] = true;
        }
        let layout = Layout::new(tree, slots, share, self.mesh.faces);
        let fitted = self.fit(&layout, self.pool.capacity);
        collective_result(&self.exchange.communicator, fitted)?;
        self.exchange.ghosts.fit(&self.needs(&layout))?;
        self.pool.free = (0..used.len() as u32).rev().filter(|&slot| !used[slot as usize]).collect();
        self.take(layout);
        Ok(())
    }

    /// Takes what was planned.
    fn move_to(&mut self, planned: Planned, eos: &Eos<T>) -> Result<(), SimError> {
        let Planned { kept, moves, placed: Placed { layout, free, new }, room, particles } = planned;
        // nothing has moved as long as anything can fail
        let used = self.pool.capacity.max(layout.slot_count());
        let wanted = particles.as_ref().map_or(0, |(_, wanted)| *wanted);
        let fitted = self.reserve_particles(wanted).and_then(|()| self.fit(&layout, room));
        collective_result(&self.exchange.communicator, fitted)?;
        let mut needs = self.needs(&layout);
        moves.need(&mut needs, self.widest() * GROUP_CELLS, T::BYTES);
        self.exchange.ghosts.fit(&needs)?;

        let leaving = self.leaving(&moves);
        self.pool.free = (used as u32..self.pool.capacity as u32).rev().chain(free).collect();
        self.take(layout);
        self.change_hands(&moves, &leaving);
        self.refresh(kept);
        for level in kept + 1..self.level_count() {
            let (tables, new) = (&self.mesh.tables[level], &new[level]);
            if let Some(gas) = &mut self.gas {
                gas.prolong(&self.device, tables, new, eos);
            }
            self.refresh(level);
        }
        if let (Some(dark_matter), Some((transfer, _))) = (&mut self.dark_matter, particles) {
            dark_matter.change_hands(&self.device, transfer).expect("there is room");
            dark_matter.sort(&self.device, kept);
        }
        Ok(())
    }

    /// Makes room for so many particles, if there is dark matter.
    fn reserve_particles(&mut self, count: usize) -> Result<(), SimError> {
        if let Some(dark_matter) = &mut self.dark_matter {
            dark_matter.reserve(&self.device, count)?;
            self.kind = self.kind.with_room_for(dark_matter.capacity());
        }
        Ok(())
    }

    /// What is to come of a tree whose levels finer than `from` are cut anew where they are uneven: as groups cost, else in
    /// equal parts. Coarser ones are cut when it is their turn.
    fn planned_anew(&mut self, tree: &Octree, from: usize, work: &GroupWork) -> Result<Planned, SimError> {
        match self.planned(self.balance(tree.clone(), from, work)) {
            // a fast rank need not have the memory for more than its equal part
            Err(error) if error.is_out_of_memory() && self.exchange.share.load_balancer.is_imbalanced() => {
                self.exchange.share.load_balancer = LoadBalancer::default();
                self.planned(self.balance(tree.clone(), from, work))
            }
            planned => planned,
        }
    }

    /// What is to come of a tree with this distribution, with the slots that the pools then have.
    fn planned(&self, Distribution { kept, owners, tree, moves }: Distribution) -> Result<Planned, SimError> {
        let mut share = self.exchange.share.of(&self.exchange.communicator, owners, &tree, kept);
        share.moved += moves.to.iter().map(Vec::len).sum::<usize>() as u64;
        // loops in loops on threads that are awake
        let placed = self.device.install(|| self.placed(tree, share, kept, &moves));
        let particles = self.dark_matter.as_ref().map(|dark_matter| {
            let Layout { share, .. } = &placed.layout;
            if share.is_alone() {
                return (Transfer::default(), dark_matter.capacity());
            }
            let ranks = (&*self.exchange.communicator, &share.owners);
            let transfer = dark_matter.transfer_to(&self.device, ranks, &placed.layout.locator(0), kept);
            let capacity = dark_matter.capacity_after(&transfer);
            (transfer, capacity)
        });
        let wanted = particles.as_ref().map_or(0, |(_, wanted)| *wanted);
        let room = collective_result(&self.exchange.communicator, self.room_for(&placed.layout, wanted))?;
        Ok(Planned { kept, moves, placed, room, particles })
    }

    /// The finest level of those that stay as they are on all ranks.
    fn kept_level(&self, tree: &Octree) -> usize {
        let levels = tree.level_count().min(self.level_count());
        let stay = (0..levels).take_while(|&level| tree.level(level) == self.mesh.tree.level(level)).count();
        // the smallest of all ranks'
        let stay = -self.exchange.communicator.max(-(stay as f64));
        (stay as usize).saturating_sub(1)
    }

    /// The finest level, from `from` on, up to which ranks have their parts of a tree.
    fn even_to(&self, tree: &Octree, from: usize, work: &GroupWork) -> usize {
        let communicator = &self.exchange.communicator;
        let Share { owners, load_balancer, .. } = &self.exchange.share;
        let parts = load_balancer.parts(communicator.size());
        owners.even_to(communicator, tree, from, &parts, &|key| work.of(key), TOLERANCE)
    }

    /// The work of groups, of the present tree and of those that are to come.
    fn work(&self) -> GroupWork {
        let particles = self.dark_matter.as_ref().map(|dark_matter| dark_matter.of_groups(&self.device, &self.mesh));
        GroupWork { particles }
    }

    /// A tree by the present owners.
    fn as_owned(&self, tree: Octree) -> Distribution {
        let none = vec![Vec::new(); self.exchange.communicator.size()];
        let moves = Moves { to: none.clone(), from: none };
        Distribution { kept: self.kept_level(&tree), owners: self.exchange.share.owners.clone(), tree, moves }
    }

    /// A tree whose levels finer than `from` belong to new owners from the first on that is uneven.
    fn balance(&self, tree: Octree, from: usize, work: &GroupWork) -> Distribution {
        let Exchange { communicator, share, .. } = &self.exchange;
        let (ranks, owners) = (communicator.size(), &share.owners);
        let even = self.even_to(&tree, from, work);
        if even + 1 == tree.level_count() {
            return self.as_owned(tree);
        }
        let kept = self.kept_level(&tree).min(even);
        let owners = owners.balanced(communicator, &tree, kept, &share.load_balancer.parts(ranks), &|key| work.of(key));
        let mut to = vec![Vec::new(); ranks];
        let mut all = vec![Vec::new(); ranks];
        for level in kept + 1..tree.level_count() {
            for &key in tree.level(level) {
                let owner = owners.of(key);
                all[owner].push(key);
                // what is new is interpolated by its owner
                if owner != communicator.rank() && self.mesh.tree.find(key).is_some() {
                    to[owner].push(key);
                }
            }
        }
        let mut levels: Vec<Vec<Key>> = (0..tree.level_count()).map(|level| tree.level(level).to_vec()).collect();
        levels[kept + 1..].iter_mut().for_each(Vec::clear);
        for key in exchange_keys(communicator, &all).into_iter().flatten() {
            levels[usize::from(key.level)].push(key);
        }
        levels[kept + 1..].iter_mut().for_each(|keys| keys.sort_unstable());
        let from = exchange_keys(communicator, &to);
        let tree = Octree::share(tree.root_groups(), tree.periodic(), levels);
        Distribution { kept, owners, tree, moves: Moves { to, from } }
    }

    /// Gives every own group and every ghost its slot: those that stay keep theirs.
    fn placed(&self, tree: Octree, mut share: Share, kept: usize, moves: &Moves) -> Placed {
        let ghosts = share.wanted_ghosts(&tree, kept);
        let came: FxHashSet<Key> = moves.from.iter().flatten().copied().collect();
        let of_level = |level: usize| self.exchange.share.ghosts.get(level).map_or(&[][..], Vec::as_slice);
        // slots that nobody has or will have any more
        let mut free = self.pool.free.clone();
        for level in 0..self.level_count() {
            let stays = places_of(self.mesh.tree.level(level), tree.level(level));
            free.extend(
                stays.iter().zip(&self.mesh.slots[level]).filter(|(stay, _)| stay.is_none()).map(|(_, &slot)| slot),
            );
        }
        for level in kept..self.level_count() {
            let wanted = level.checked_sub(kept).and_then(|n| ghosts.get(n)).map_or(&[][..], Vec::as_slice);
            let gone = of_level(level).iter().filter(|(key, _)| wanted.binary_search(key).is_err());
            free.extend(gone.map(|&(_, slot)| slot));
        }
        free.extend(self.exchange.share.deposit_slots());
        free.sort_unstable_by(|a, b| b.cmp(a));
        let mut beyond = self.pool.capacity as u32..;
        let mut next = || free.pop().or_else(|| beyond.next()).expect("fewer than 2³² groups");

        let mut slots = Vec::with_capacity(tree.level_count());
        let mut new = Vec::with_capacity(tree.level_count());
        for level in 0..tree.level_count() {
            let mut new_here = Vec::new();
            let places = places_of(tree.level(level), self.mesh.tree.level(level));
            let slot = |(g, place): (usize, Option<usize>)| match place {
                Some(place) => self.mesh.slots[level][place],
                None => {
                    if !came.contains(&tree.level(level)[g]) {
                        new_here.push(g);
                    }
                    next()
                }
            };
            slots.push(places.into_iter().enumerate().map(slot).collect());
            new.push(new_here);
        }
        share.ghosts = (0..kept).map(|level| of_level(level).to_vec()).collect();
        for (n, keys) in ghosts.into_iter().enumerate() {
            let old: FxHashMap<Key, u32> = of_level(kept + n).iter().copied().collect();
            let slot = |key: Key| (key, old.get(&key).copied().unwrap_or_else(&mut next));
            share.ghosts.push(keys.into_iter().map(slot).collect());
        }
        if let Some(deposits) = &mut share.deposits {
            deposits.place(&share.ghosts, &mut next);
        }
        let layout = Layout::after(Some((&self.mesh, &self.exchange.share)), kept, tree, slots, share, self.mesh.faces);
        Placed { layout, free, new }
    }

    /// Ranks and slots of the groups that leave, in the order in which they are sent.
    fn leaving(&self, moves: &Moves) -> Vec<Vec<u32>> {
        let slot = |key: &Key| self.slot_of(*key).expect("an own group leaves");
        moves.to.iter().map(|keys| keys.iter().map(slot).collect()).collect()
    }

    /// Sends the gas of groups that leave, and puts that of those that come into their slots. Some of these are still
    /// those of groups that leave, so it comes to the other pool first, where nobody has these slots.
    ///
    /// * `leaving`: slots by rank, before the tree changed
    fn change_hands(&mut self, moves: &Moves, leaving: &[Vec<u32>]) {
        let slot = |key: &Key| self.slot_of(*key).expect("an own group came");
        let coming: Vec<Vec<u32>> = moves.from.iter().map(|keys| keys.iter().map(slot).collect()).collect();
        let Some(gas) = &mut self.gas else { return };
        for part in 0..moves.parts() {
            let of_part = |all: &[Vec<u32>]| {
                let of_rank = |(rank, slots): (usize, &Vec<u32>)| {
                    let slots = slots.iter().skip(part * AT_A_TIME).take(AT_A_TIME);
                    slots.map(|&slot| (rank as u32, slot)).collect::<Vec<_>>()
                };
                all.iter().enumerate().flat_map(of_rank).collect::<Vec<_>>()
            };
            let links = links_of_slots(&of_part(leaving), &of_part(&coming));
            gas.fields_mut().for_each(|fields| fields.send_groups(&self.exchange, &links));
        }
        let came: DeviceTable<u32> = coming.into_iter().flatten().collect();
        gas.fields_mut().for_each(|fields| fields.copy_from_next(&self.device, &came));
    }
}

/// Where each of some sorted keys stands among others.
fn places_of(keys: &[Key], among: &[Key]) -> Vec<Option<usize>> {
    let mut next = 0;
    keys.iter()
        .map(|key| {
            while among.get(next).is_some_and(|other| other < key) {
                next += 1;
            }
            (among.get(next) == Some(key)).then_some(next)
        })
        .collect()
}
