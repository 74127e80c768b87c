//! A whole state dealt out to the ranks, and put together again on one of them.

use super::communicator::Communicator;
use super::owners::Owners;
use super::share::Share;
use super::wanted::{exchange_keys, packed, unpacked};
use crate::host_state::HostState;
use crate::memory::Layout;
use crate::octree::{Key, Octree};
use comove_kernels::layout::{GROUP_CELLS, GROUP_VALUES};
use comove_kernels::{FaceBoundary, layout::FACES};

/// The rank that reads and writes files.
pub const FIRST: usize = 0;

/// Deals out the groups of a state that the first rank has: every rank's own, and where they lie in its pools. Collective.
///
/// * `host`: on other ranks only its box counts
/// * `scattered`: owners at random, by this number, for tests
pub(crate) fn scatter(
    communicator: &Communicator,
    host: &HostState,
    scattered: Option<u64>,
    faces: [FaceBoundary; FACES],
) -> (HostState, Layout) {
    let (root, periodic) = (host.tree.root_groups(), host.tree.periodic());
    let ranks = communicator.size();
    let mut shape = vec![host.tree.level_count() as u64];
    shape = bytemuck::pod_collect_to_vec(&communicator.broadcast(FIRST, bytemuck::cast_slice(&shape).to_vec()));
    let levels = shape[0] as usize;
    let whole = if communicator.rank() == FIRST { Some(host) } else { None };
    let owners = match scattered {
        Some(seed) => Owners::scattered(ranks, root, seed),
        None => {
            let empty = Octree::share(root, periodic, vec![Vec::new(); levels]);
            let tree = whole.map_or(&empty, |host| &host.tree);
            Owners::even(ranks, root).balanced(communicator, tree, 0, &[])
        }
    };
    let mut keys = vec![Vec::new(); ranks];
    let mut fluid = vec![Vec::<f64>::new(); ranks];
    for (g, key) in whole.iter().flat_map(|host| host.tree.keys().enumerate()) {
        let owner = owners.of(key);
        keys[owner].push(key);
        fluid[owner].extend_from_slice(&host.fluid[g * GROUP_VALUES..][..GROUP_VALUES]);
    }
    let bytes = |numbers: Vec<f64>| bytemuck::cast_slice(&numbers).to_vec();
    let keys = exchange_keys(communicator, &keys);
    let fluid = communicator.exchange(fluid.into_iter().map(bytes).collect());
    let mut own = vec![Vec::new(); levels];
    for &key in &keys[FIRST] {
        own[usize::from(key.level)].push(key);
    }
    let tree = Octree::share(root, periodic, own);
    let fluid = bytemuck::pod_collect_to_vec(&fluid[FIRST]);

    let alone = Share {
        owners: owners.clone(),
        known: Default::default(),
        ghosts: Vec::new(),
        groups: Vec::new(),
        links: Vec::new(),
        relations: Vec::new(),
        moved: 0,
    };
    let mut share = alone.of(communicator, owners, &tree, 0);
    let mut next = 0..;
    let slots = (0..levels).map(|level| next.by_ref().take(tree.level(level).len()).collect()).collect();
    let ghosts = share.wanted_ghosts(&tree, 0).into_iter();
    share.ghosts = ghosts.map(|keys| keys.into_iter().zip(next.by_ref()).collect()).collect();
    let layout = Layout::new(tree.clone(), slots, share, faces);
    (HostState { tree, fluid, potential: Vec::new() }, layout)
}

/// All ranks' groups in key order on the first rank; on others what they had. Collective.
pub fn gather(communicator: &Communicator, own: HostState) -> HostState {
    if communicator.size() == 1 {
        return own;
    }
    let keys: Vec<[u32; 4]> = own.tree.keys().map(packed).collect();
    let keys = communicator.gather(FIRST, bytemuck::cast_slice(&keys).to_vec());
    let fluid = communicator.gather(FIRST, bytemuck::cast_slice(&own.fluid).to_vec());
    let potential = communicator.gather(FIRST, bytemuck::cast_slice(&own.potential).to_vec());
    let (Some(keys), Some(fluid), Some(potential)) = (keys, fluid, potential) else { return own };
    let of_ranks = keys.iter().enumerate().flat_map(|(rank, keys)| {
        let keys = bytemuck::pod_collect_to_vec::<u8, [u32; 4]>(keys);
        keys.into_iter().enumerate().map(move |(g, key)| (unpacked(key), rank, g))
    });
    let mut of_ranks: Vec<(Key, usize, usize)> = of_ranks.collect();
    of_ranks.sort_unstable();
    let refined = of_ranks.iter().map(|(key, ..)| *key).filter(|key| key.level > 0);
    let tree = Octree::with_groups(own.tree.root_groups(), own.tree.periodic(), refined);
    let put_together = |values: usize, of_each: &[Vec<u8>]| {
        let of_each: Vec<Vec<f64>> = of_each.iter().map(|bytes| bytemuck::pod_collect_to_vec(bytes)).collect();
        let group =
            |&(_, rank, g): &(Key, usize, usize)| of_each[rank].get(g * values..(g + 1) * values).unwrap_or(&[]);
        of_ranks.iter().map(group).collect::<Vec<_>>().concat()
    };
    HostState { fluid: put_together(GROUP_VALUES, &fluid), potential: put_together(GROUP_CELLS, &potential), tree }
}
