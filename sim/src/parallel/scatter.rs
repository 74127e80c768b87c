//! What a run starts from dealt out to the ranks.

use super::blocks::{Blocks, GROUPS};
use super::communicator::Communicator;
use super::owners::Owners;
use super::share::Share;
use super::wanted::exchange_keys;
use crate::error::SimError;
use crate::host_state::HostState;
use crate::memory::Layout;
use crate::octree::Octree;
use crate::snapshot::StartFrom;
use comove_kernels::{FaceBoundary, layout::FACES};

/// The rank that reads and writes files.
pub const FIRST: usize = 0;

/// Deals out the groups of a state that the first rank has, or a file: every rank's own, and where they lie in its pools.
/// Collective.
///
/// * `from`: on other ranks only its box counts
/// * `scattered`: owners at random, by this number, for tests
///
/// # Errors
/// As [`crate::Snapshot::read`], on all ranks.
pub(crate) fn scatter(
    communicator: &Communicator,
    from: &StartFrom<'_>,
    scattered: Option<u64>,
    faces: [FaceBoundary; FACES],
) -> Result<(HostState, Layout), SimError> {
    let (root, periodic) = (from.tree().root_groups(), from.tree().periodic());
    let ranks = communicator.size();
    let mut shape = vec![from.tree().level_count() as u64];
    shape = bytemuck::pod_collect_to_vec(&communicator.broadcast(FIRST, bytemuck::cast_slice(&shape).to_vec()));
    let levels = shape[0] as usize;
    let whole = if communicator.rank() == FIRST { Some(from.tree()) } else { None };
    let owners = match scattered {
        Some(seed) => Owners::scattered(ranks, root, seed),
        None => {
            let empty = Octree::share(root, periodic, vec![Vec::new(); levels]);
            Owners::even(ranks, root).balanced(communicator, whole.unwrap_or(&empty), 0, &[])
        }
    };
    let mut keys = vec![Vec::new(); ranks];
    for key in whole.iter().flat_map(|tree| tree.keys()) {
        keys[owners.of(key)].push(key);
    }
    let keys = exchange_keys(communicator, &keys);
    let mut own = vec![Vec::new(); levels];
    for &key in &keys[FIRST] {
        own[usize::from(key.level)].push(key);
    }
    let tree = Octree::share(root, periodic, own);
    let blocks = Blocks::of_whole(communicator, &tree, whole, &owners, GROUPS);
    let mut host = HostState::zeros(tree.clone());
    from.deal(communicator, &blocks, &mut host)?;

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
    let layout = Layout::new(tree, slots, share, faces);
    Ok((host, layout))
}
