//! The tree that flags ask for, decided by all ranks together, each for what it owns.

use super::communicator::Communicator;
use super::owners::Owners;
use crate::octree::nesting::{Family, families};
use crate::octree::{Key, Octree};
use crate::refinement::flagged_children;

/// The own part of what [`crate::refinement::wanted_tree`] gives for the whole tree: collective. Levels that no rank has
/// groups of are dropped.
///
/// * `own`, `masks`: as there, of own groups
pub fn wanted_share(
    communicator: &Communicator,
    owners: &Owners,
    own: &Octree,
    masks: &[Vec<u32>],
    max_level: usize,
    kept: usize,
) -> Octree {
    let flagged = (kept..max_level.min(masks.len())).flat_map(|level| flagged_children(own, level, &masks[level]));
    let mut wanted = vec![Vec::new(); max_level + 1];
    wanted[..=kept.min(max_level)].iter_mut().enumerate().for_each(|(level, keys)| *keys = own.level(level).to_vec());
    let take = |wanted: &mut [Vec<Key>], keys: Vec<Key>| {
        for key in route(communicator, owners, keys.into_iter()) {
            wanted[usize::from(key.level)].push(key);
        }
    };
    take(&mut wanted, flagged.collect());
    for level in (kept + 1..=max_level).rev() {
        wanted[level] = Key::sorted(level as u8, std::mem::take(&mut wanted[level]));
        if level > kept + 1 {
            let families = families(&wanted[level]);
            let around = families.iter().flat_map(|family| family.groups_around(own).map(|(_, key)| key));
            take(&mut wanted, around.collect());
        }
    }
    // in a complete root everything nests
    for level in kept + 1..if kept == 0 { 0 } else { max_level + 1 } {
        let (coarser, finer) = wanted.split_at_mut(level);
        let families = families(&finer[0]);
        let present = present(communicator, owners, own, &coarser[level - 1], &families);
        let nested = |(family, missing): (&Family, u32)| family.nested(&finer[0], missing).collect::<Vec<Key>>();
        finer[0] = families.iter().zip(present).flat_map(nested).collect();
    }
    let mut groups: Vec<u64> = wanted.iter().map(|keys| keys.len() as u64).collect();
    communicator.sum(&mut groups);
    let levels = groups.iter().take_while(|&&groups| groups > 0).count();
    wanted.truncate(levels);
    Octree::share(own.root_groups(), own.periodic(), wanted)
}

/// Sends keys to their owners; those that came.
pub fn route(communicator: &Communicator, owners: &Owners, keys: impl Iterator<Item = Key>) -> Vec<Key> {
    let mut messages = vec![Vec::<[u32; 4]>::new(); communicator.size()];
    for key in keys {
        messages[owners.of(key)].push(packed(key));
    }
    for message in &mut messages {
        message.sort_unstable();
        message.dedup();
    }
    let messages = messages.into_iter().map(|message| bytemuck::cast_slice(&message).to_vec()).collect();
    let came = communicator.exchange(messages).concat();
    bytemuck::pod_collect_to_vec::<u8, [u32; 4]>(&came).into_iter().map(unpacked).collect()
}

/// For each family, the groups that it needs and that do not exist, by direction from its parent.
///
/// * `coarser`: the own groups of the coarser level, in key order
fn present(
    communicator: &Communicator,
    owners: &Owners,
    lattice: &Octree,
    coarser: &[Key],
    families: &[Family],
) -> Vec<u32> {
    let mut asked = vec![Vec::<[u32; 4]>::new(); communicator.size()];
    let mut whom = Vec::new();
    for (n, family) in families.iter().enumerate() {
        for (direction, key) in family.groups_around(lattice) {
            let owner = owners.of(key);
            whom.push((n, direction, owner, asked[owner].len()));
            asked[owner].push(packed(key));
        }
    }
    let asked = asked.into_iter().map(|keys| bytemuck::cast_slice(&keys).to_vec()).collect();
    let answer = |keys: Vec<u8>| {
        let keys = bytemuck::pod_collect_to_vec::<u8, [u32; 4]>(&keys).into_iter().map(unpacked);
        keys.map(|key| u8::from(coarser.binary_search(&key).is_ok())).collect()
    };
    let answers = communicator.exchange(asked).into_iter().map(answer).collect();
    let answers = communicator.exchange(answers);
    let mut missing = vec![0; families.len()];
    for (n, direction, owner, at) in whom {
        if answers[owner][at] == 0 {
            missing[n] |= 1 << direction;
        }
    }
    missing
}

/// A key as numbers.
pub fn packed(key: Key) -> [u32; 4] {
    let [x, y, z] = key.coordinate;
    [u32::from(key.level), x, y, z]
}

/// The key of numbers.
pub fn unpacked([level, x, y, z]: [u32; 4]) -> Key {
    Key::new(level as u8, [x, y, z])
}
