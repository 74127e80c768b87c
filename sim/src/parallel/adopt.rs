//! Another tree for a state that ranks share: balanced anew where that is worth while, groups moved to their new owners.

use super::agree::agree;
use super::owners::Owners;
use super::share::Share;
use super::wanted::exchange_keys;
use crate::error::SimError;
use crate::memory::Layout;
use crate::octree::{Key, Octree};
use crate::state::{State, places_of};
use comove_kernels::layout::GROUP_VALUES;
use comove_kernels::slots::copy_slots;
use comove_kernels::{Buffer, Eos, Real, Table, prolong};
use rustc_hash::{FxHashMap, FxHashSet};

/// A level is cut anew once some rank has so many times its part of it.
const TOLERANCE: f64 = 1.05;

/// Groups that change hands, as keys in the order in which their data is sent.
struct Moves {
    /// To each rank.
    to: Vec<Vec<Key>>,
    /// From each rank.
    from: Vec<Vec<Key>>,
}

/// A layout, the slots that then stay free (the first at the end), and by level the own groups that nobody has yet.
struct Placed {
    layout: Layout,
    free: Vec<u32>,
    new: Vec<Vec<usize>>,
}

impl<T: Real> State<T> {
    /// [`State::adopt_tree`] of ranks that share a tree: collective.
    ///
    /// * `tree`: what this rank owns of the new tree, by the present owners
    pub(crate) fn adopt_share(&mut self, tree: Octree, eos: &Eos<T>) -> Result<(), SimError> {
        let kept = self.kept_level(&tree);
        let (owners, tree, moves) = self.balance(tree, kept);
        let mut share = self.share.of(&self.communicator, owners, &tree, kept);
        share.moved += moves.to.iter().map(Vec::len).sum::<usize>() as u64;
        let Placed { layout, free, new } = self.placed(tree, share, kept, &moves);

        // nothing has moved as long as anything can fail
        let room = self.room_for(&layout);
        let room = agree(&self.communicator, room)?;
        let used = self.capacity.max(layout.slot_count());
        let messages = self.pack_moves(&moves);
        let fitted = messages.and_then(|messages| self.fit(&layout, room).map(|()| messages));
        let messages = agree(&self.communicator, fitted)?;

        let came = self.communicator.exchange(messages);
        self.free = (used as u32..self.capacity as u32).rev().chain(free).collect();
        self.take(layout);
        self.unpack_moves(&moves, &came)?;
        self.refresh(kept)?;
        for level in kept + 1..self.level_count() {
            prolong::prolong(&self.device, &self.tables[level], &new[level], &mut self.fluid, eos);
            self.refresh(level)?;
        }
        Ok(())
    }

    /// The finest level of those that stay as they are on all ranks.
    fn kept_level(&self, tree: &Octree) -> usize {
        let levels = tree.level_count().min(self.level_count());
        let stay = (0..levels).take_while(|&level| tree.level(level) == self.tree.level(level)).count();
        // the smallest of all ranks'
        let stay = -self.communicator.max(-(stay as f64));
        (stay as usize).saturating_sub(1)
    }

    /// Owners of the levels finer than `kept`, what this rank then owns of a tree, and which groups change hands.
    fn balance(&self, tree: Octree, kept: usize) -> (Owners, Octree, Moves) {
        let ranks = self.communicator.size();
        let owners = &self.share.owners;
        if !owners.is_unbalanced(&self.communicator, &tree, kept, TOLERANCE) {
            return (owners.clone(), tree, Moves { to: vec![Vec::new(); ranks], from: vec![Vec::new(); ranks] });
        }
        let owners = owners.balanced(&self.communicator, &tree, kept, &[]);
        let mut to = vec![Vec::new(); ranks];
        let mut all = vec![Vec::new(); ranks];
        for level in kept + 1..tree.level_count() {
            for &key in tree.level(level) {
                let owner = owners.of(key);
                all[owner].push(key);
                // what is new is interpolated by its owner
                if owner != self.communicator.rank() && self.tree.find(key).is_some() {
                    to[owner].push(key);
                }
            }
        }
        let mut levels: Vec<Vec<Key>> = (0..tree.level_count()).map(|level| tree.level(level).to_vec()).collect();
        levels[kept + 1..].iter_mut().for_each(Vec::clear);
        for key in exchange_keys(&self.communicator, &all).into_iter().flatten() {
            levels[usize::from(key.level)].push(key);
        }
        levels[kept + 1..].iter_mut().for_each(|keys| keys.sort_unstable());
        let from = exchange_keys(&self.communicator, &to);
        (owners, Octree::share(tree.root_groups(), tree.periodic(), levels), Moves { to, from })
    }

    /// Gives every own group and every ghost its slot: those that stay keep theirs.
    fn placed(&self, tree: Octree, mut share: Share, kept: usize, moves: &Moves) -> Placed {
        let ghosts = share.wanted_ghosts(&tree, kept);
        let came: FxHashSet<Key> = moves.from.iter().flatten().copied().collect();
        let of_level = |level: usize| self.share.ghosts.get(level).map_or(&[][..], Vec::as_slice);
        // slots that nobody has or will have any more
        let mut free = self.free.clone();
        for level in 0..self.level_count() {
            let stays = places_of(self.tree.level(level), tree.level(level));
            free.extend(stays.iter().zip(&self.slots[level]).filter(|(stay, _)| stay.is_none()).map(|(_, &slot)| slot));
        }
        for level in kept..self.level_count() {
            let wanted = level.checked_sub(kept).and_then(|n| ghosts.get(n)).map_or(&[][..], Vec::as_slice);
            let gone = of_level(level).iter().filter(|(key, _)| wanted.binary_search(key).is_err());
            free.extend(gone.map(|&(_, slot)| slot));
        }
        free.sort_unstable_by(|a, b| b.cmp(a));
        let mut beyond = self.capacity as u32..;
        let mut next = || free.pop().or_else(|| beyond.next()).expect("fewer than 2³² groups");

        let mut slots = Vec::with_capacity(tree.level_count());
        let mut new = Vec::with_capacity(tree.level_count());
        for level in 0..tree.level_count() {
            let mut new_here = Vec::new();
            let places = places_of(tree.level(level), self.tree.level(level));
            let slot = |(g, place): (usize, Option<usize>)| match place {
                Some(place) => self.slots[level][place],
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
        let layout = Layout::with_finer(&self.tables[..=kept], &self.flux, tree, slots, share, self.faces);
        Placed { layout, free, new }
    }

    /// The fluid of groups that leave, for each rank.
    fn pack_moves(&self, moves: &Moves) -> Result<Vec<Vec<u8>>, SimError> {
        let slot = |key: &Key| {
            let level = usize::from(key.level);
            self.slots[level][self.tree.find(*key).expect("an own group leaves")]
        };
        let message = |keys: &Vec<Key>| {
            if keys.is_empty() {
                return Ok(Vec::new());
            }
            let slots: Table<u32> = keys.iter().map(slot).collect();
            let mut message = Buffer::zeros(&self.device, keys.len() * GROUP_VALUES)?;
            copy_slots(
                &self.device,
                GROUP_VALUES,
                &self.fluid,
                &slots,
                &mut message,
                &(0..keys.len() as u32).collect(),
            );
            Ok(bytemuck::cast_slice::<T, u8>(&message.to_host()).to_vec())
        };
        moves.to.iter().map(message).collect()
    }

    /// Puts the fluid of groups that came into their slots.
    fn unpack_moves(&mut self, moves: &Moves, came: &[Vec<u8>]) -> Result<(), SimError> {
        for (keys, message) in moves.from.iter().zip(came).filter(|(keys, _)| !keys.is_empty()) {
            let slot = |key: &Key| {
                let level = usize::from(key.level);
                self.slots[level][self.tree.find(*key).expect("an own group came")]
            };
            let slots: Table<u32> = keys.iter().map(slot).collect();
            let message = Buffer::from_host(&self.device, bytemuck::pod_collect_to_vec::<u8, T>(message))?;
            copy_slots(
                &self.device,
                GROUP_VALUES,
                &message,
                &(0..keys.len() as u32).collect(),
                &mut self.fluid,
                &slots,
            );
        }
        Ok(())
    }
}
