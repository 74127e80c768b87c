//! The places of the groups of a level, and what a regrid changes of them.

use crate::mesh::Key;
use crate::parallel::remote_groups::RemoteGroup;
use comove_kernels::DeviceTable;
use comove_kernels::level_topology::NONE;
use rayon::prelude::*;
use rustc_hash::FxHashMap;

/// Groups whose rows one thread copies.
pub(super) const GROUPS_AT_ONCE: usize = 512;

/// The groups of a level that a rank has or knows of, each list in key order.
#[derive(Clone, Copy, Debug, Default)]
pub struct LevelGroups<'a> {
    /// Its own.
    pub own: &'a [Key],
    /// Their slots.
    pub slots: &'a [u32],
    /// Others' that have a slot here, with that.
    pub ghosts: &'a [(Key, u32)],
    /// All of others' near the own ones.
    pub known: &'a [RemoteGroup],
}

/// The place of a group.
#[derive(Clone, Copy, Debug)]
pub struct Site {
    /// Its slot; [`NONE`] of a group that another rank owns and nothing here reads.
    pub slot: u32,
    /// Its place in the list of own groups; [`NONE`] of another rank's.
    pub place: u32,
}

/// The groups of a level that a rank has or knows of.
pub type Sites = FxHashMap<Key, Site>;

impl LevelGroups<'_> {
    /// Their places.
    pub fn sites(&self) -> Sites {
        let own = self.own.iter().zip(self.slots).zip(0..).map(|((&key, &slot), place)| (key, Site { slot, place }));
        let mut sites: Sites = own.collect();
        sites.extend(self.known.iter().map(|group| (group.key, Site { slot: NONE, place: NONE })));
        sites.extend(self.ghosts.iter().map(|&(key, slot)| (key, Site { slot, place: NONE })));
        sites
    }

    /// What is other than it was before.
    pub(super) fn changes_since(&self, before: &LevelGroups) -> Changes {
        let (mut places, mut keys) = (Vec::with_capacity(self.own.len()), Vec::new());
        let mut old = before.own.iter().zip(before.slots).zip(0..).peekable();
        for (key, slot) in self.own.iter().zip(self.slots) {
            while let Some(((gone, _), _)) = old.next_if(|((other, _), _)| *other < key) {
                keys.push(*gone);
            }
            let stays = old.next_if(|((other, _), _)| *other == key).filter(|((_, other), _)| *other == slot);
            places.push(stays.map_or(NONE, |(_, place)| place));
            if stays.is_none() {
                keys.push(*key);
            }
        }
        keys.extend(old.map(|((gone, _), _)| *gone));
        let all_stay = keys.is_empty();
        differing(self.ghosts, before.ghosts, |(key, _)| *key, &mut keys);
        differing(self.known, before.known, |group| group.key, &mut keys);
        keys.sort_unstable();
        keys.dedup();
        Changes { places, all_stay, keys }
    }
}

/// Adds the keys of what is in one of two lists in key order and not in the other.
fn differing<I: PartialEq>(a: &[I], b: &[I], key: impl Fn(&I) -> Key, keys: &mut Vec<Key>) {
    let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
    while let (Some(one), Some(other)) = (a.peek(), b.peek()) {
        let order = key(one).cmp(&key(other));
        if order.is_ne() || one != other {
            keys.push(key(if order.is_gt() { other } else { one }));
        }
        a.next_if(|_| order.is_le());
        b.next_if(|_| order.is_ge());
    }
    keys.extend(a.chain(b).map(key));
}

/// What a regrid has changed on a level.
#[derive(Default)]
pub(super) struct Changes {
    /// Where each own group stood before; [`NONE`] of one that came.
    pub(super) places: Vec<u32>,
    /// Whether no own group came or went.
    pub(super) all_stay: bool,
    /// Groups that came, went, or have other slots or owners, in key order.
    pub(super) keys: Vec<Key>,
}

impl Changes {
    /// A table with `N` numbers for each group: of one that came what `row` gives, of one that stays what it had, but for
    /// `others`, by their place in the table.
    pub(super) fn carry<V: Copy + Send + Sync, const N: usize>(
        &self,
        old: &DeviceTable<V>,
        row: impl Fn(usize) -> [V; N] + Sync,
        others: Vec<(usize, V)>,
    ) -> DeviceTable<V> {
        if self.all_stay && others.is_empty() {
            return old.clone();
        }
        let carried = |(g, &place): (usize, &u32)| match place {
            NONE => row(g),
            place => old[place as usize * N..][..N].try_into().expect("a row"),
        };
        let mut rows: Vec<[V; N]> =
            self.places.par_iter().enumerate().with_min_len(GROUPS_AT_ONCE).map(carried).collect();
        let numbers = rows.as_flattened_mut();
        others.into_iter().for_each(|(at, number)| numbers[at] = number);
        rows.into_flattened().into()
    }

    /// The place of a group that stays.
    pub(super) fn staying(&self, site: Option<&Site>) -> Option<usize> {
        let place = site?.place;
        (place != NONE && self.places[place as usize] != NONE).then_some(place as usize)
    }
}
