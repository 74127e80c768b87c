//! Lists of keys to other ranks.

use crate::mesh::Key;
use crate::parallel::communicator::Communicator;
use crate::parallel::owners::Owners;
use rayon::prelude::*;

/// Keys whose owners one thread finds.
const KEYS_AT_ONCE: usize = 512;

/// Sends keys to their owners; those that came.
pub(crate) fn route(communicator: &Communicator, owners: &Owners, keys: Vec<Key>) -> Vec<Key> {
    let mut messages = vec![Vec::new(); communicator.size()];
    let whose: Vec<usize> = keys.par_iter().with_min_len(KEYS_AT_ONCE).map(|&key| owners.of(key)).collect();
    for (key, owner) in keys.into_iter().zip(whose) {
        messages[owner].push(key);
    }
    exchange_keys(communicator, &messages).concat()
}

/// A list of keys to each rank, for one from each.
pub(crate) fn exchange_keys(communicator: &Communicator, to: &[Vec<Key>]) -> Vec<Vec<Key>> {
    let bytes = |keys: &Vec<Key>| bytemuck::cast_slice(&keys.iter().copied().map(packed).collect::<Vec<_>>()).to_vec();
    let keys = |bytes: &Vec<u8>| bytemuck::pod_collect_to_vec(bytes).into_iter().map(unpacked).collect();
    communicator.exchange(to.iter().map(bytes).collect()).iter().map(keys).collect()
}

/// A key as numbers.
pub(crate) fn packed(key: Key) -> [u32; 4] {
    let [x, y, z] = key.coordinate;
    [u32::from(key.level), x, y, z]
}

/// The key of numbers.
pub(crate) fn unpacked([level, x, y, z]: [u32; 4]) -> Key {
    Key::new(level as u8, [x, y, z])
}
