//! The initial groups of a run distributed to the ranks.
//!
//! Of a state in memory each rank has some groups, or the first all; of a file each reads some blocks. Owners are the same
//! in both cases, and whoever had which groups.

use crate::dark_matter::{DarkMatterHeader, HostParticles, distribute};
use crate::error::SimError;
use crate::io::blocks::{Blocks, GROUPS};
use crate::io::snapshot::{Snapshot, StartFrom};
use crate::mesh::host_state::HostState;
use crate::mesh::{Key, Octree};
use crate::parallel::collective_result::collective_result;
use crate::parallel::communicator::{Communicator, FIRST};
use crate::parallel::deposits::Deposits;
use crate::parallel::keys::{exchange_keys, route};
use crate::parallel::load_balancer::LoadBalancer;
use crate::parallel::owners::Owners;
use crate::parallel::share::Share;
use crate::state::layout::Layout;
use comove_kernels::FaceBoundary;
use comove_kernels::layout::{FACES, GROUP_CELLS, GROUP_VALUES};

/// Of messages of whole groups.
const TAG: u32 = 3;

/// Groups that a rank sends at a time, and receives, or one to each and from each of the others: 48 MiB each way.
const AT_A_TIME: usize = 256;

/// Distributes the groups of a state that ranks have, or of a file: every rank's own, and their slots in its pools.
/// Collective.
///
/// * `from`: the groups that this rank has, none of them another rank's as well; or on the first rank a file
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
    let here = from.tree();
    let ranks = communicator.size();
    let levels = communicator.max(here.level_count() as f64) as usize;
    let owners = match scattered {
        Some(seed) => Owners::scattered(ranks, here.root_groups(), seed),
        None => owners(communicator, here, levels),
    };
    let mut to = vec![Vec::new(); ranks];
    here.keys().for_each(|key| to[owners.of(key)].push(key));
    let come = exchange_keys(communicator, &to);
    let tree = share(here, levels, come.concat());
    let mut host = HostState::zeros_of(tree.clone(), &from.header().fields);
    let is_file = matches!(from, StartFrom::File(..));
    match (communicator.any(communicator.rank() == FIRST && is_file), from) {
        (false, StartFrom::Memory(snapshot)) => send(communicator, snapshot, &to, &come, &mut host),
        _ => {
            let groups = if let StartFrom::File(stored, _) = from { stored.groups_of_file() } else { 0 };
            let whole = (communicator.rank() == FIRST).then_some((here, groups));
            let blocks = Blocks::of_whole(communicator, &tree, whole, &owners, GROUPS);
            from.distribute(communicator, &blocks, &mut host)?;
        }
    }

    let deposits = from.header().dark_matter.map(|_| Deposits::default());
    let mut share = Share { deposits, ..Share::alone(&tree) }.of(communicator, owners, &tree, 0);
    let mut next = 0..;
    let slots = (0..levels).map(|level| next.by_ref().take(tree.level(level).len()).collect()).collect();
    let ghosts = share.wanted_ghosts(&tree, 0).into_iter();
    share.ghosts = ghosts.map(|keys| keys.into_iter().zip(next.by_ref()).collect()).collect();
    if let Some(deposits) = &mut share.deposits {
        deposits.place(&share.ghosts, || next.next().expect("fewer than 2³² groups"));
    }
    let layout = Layout::new(tree, slots, share, faces);
    if let Some(stated) = from.header().dark_matter {
        let here = collective_result(communicator, particles(from, stated))?;
        host.particles = Some(distribute(communicator, &layout.share.owners, &layout.locator(0), &here));
    }
    Ok((host, layout))
}

/// The particles that this rank has, or has read from the file.
fn particles(from: &StartFrom<'_>, stated: DarkMatterHeader) -> Result<HostParticles, SimError> {
    let here = match from {
        StartFrom::Memory(snapshot) => snapshot.state.particles.clone(),
        StartFrom::File(stored, _) => stored.particles()?,
    };
    let here =
        here.unwrap_or_else(|| HostParticles { particle_mass: stated.particle_mass, ..HostParticles::default() });
    here.check_part().map(|()| here)
}

/// Owners of the groups that ranks have, along the curve: whoever has which, the same. Collective.
///
/// * `here`: those that this rank has; `levels`: of all ranks' together
fn owners(communicator: &Communicator, here: &Octree, levels: usize) -> Owners {
    let even = Owners::even(communicator.size(), here.root_groups());
    // a level is cut by ranks that have pieces of it, one behind the other
    let pieces = share(here, levels, route(communicator, &even, here.keys().collect()));
    even.balanced(communicator, &pieces, 0, &LoadBalancer::default().parts(communicator.size()), &|_| 1)
}

/// Groups in any order as a share of a tree of so many levels.
fn share(like: &Octree, levels: usize, keys: Vec<Key>) -> Octree {
    let mut of_levels = vec![Vec::new(); levels];
    keys.into_iter().for_each(|key| of_levels[usize::from(key.level)].push(key));
    of_levels.iter_mut().for_each(|keys| keys.sort_unstable());
    Octree::share(like.root_groups(), like.periodic(), of_levels)
}

/// Sends fluid and scalars of groups to their owners, so many at a time. Collective.
///
/// * `from`: the groups that this rank has; `to`: which of them go to each rank; `come`: those that each sends
/// * `own`: where those that come are put
fn send(communicator: &Communicator, from: &Snapshot, to: &[Vec<Key>], come: &[Vec<Key>], own: &mut HostState) {
    let (rank, state) = (communicator.rank(), &from.state);
    let of_fluid = if from.header.fields.has_gas() { GROUP_VALUES } else { 0 };
    let of_group = of_fluid + own.scalars.len() * GROUP_CELLS;
    if of_group == 0 {
        return;
    }
    let mut put = |key: Key, values: &[f64]| {
        let place = own.tree.index(key).expect("an own group");
        let (fluid, scalars) = values.split_at(of_fluid);
        own.fluid[place * of_fluid..][..of_fluid].copy_from_slice(fluid);
        for (own, values) in own.scalars.iter_mut().zip(scalars.chunks_exact(GROUP_CELLS)) {
            own[place * GROUP_CELLS..][..GROUP_CELLS].copy_from_slice(values);
        }
    };
    let values = |key: Key| {
        let place = state.tree.index(key).expect("a group that this rank has");
        let fluid = &state.fluid[place * of_fluid..][..of_fluid];
        let scalars = state.scalars.iter().flat_map(move |scalar| &scalar[place * GROUP_CELLS..][..GROUP_CELLS]);
        fluid.iter().chain(scalars).copied()
    };
    to[rank].iter().for_each(|&key| put(key, &values(key).collect::<Vec<f64>>()));
    let at_a_time = (AT_A_TIME / communicator.size()).max(1);
    let most = (0..to.len()).filter(|&peer| peer != rank).map(|peer| to[peer].len()).max().unwrap_or(0);
    let rounds = (communicator.max(most as f64) as usize).div_ceil(at_a_time);
    for round in 0..rounds {
        let [leaving, coming] = [to, come].map(|keys| {
            let parts = keys.iter().map(|keys| keys.chunks(at_a_time).nth(round).unwrap_or(&[])).enumerate();
            parts.filter(|(peer, part)| *peer != rank && !part.is_empty()).collect::<Vec<_>>()
        });
        let sent: Vec<Vec<f64>> =
            leaving.iter().map(|(_, keys)| keys.iter().flat_map(|&key| values(key)).collect()).collect();
        let mut received: Vec<Vec<f64>> = coming.iter().map(|(_, keys)| vec![0.0; keys.len() * of_group]).collect();
        let sends = leaving.iter().zip(&sent).map(|((peer, _), values)| (*peer, bytemuck::cast_slice(values)));
        let receives =
            coming.iter().zip(&mut received).map(|((peer, _), values)| (*peer, bytemuck::cast_slice_mut(values)));
        communicator.communicate(TAG, &sends.collect::<Vec<_>>(), &mut receives.collect::<Vec<_>>(), || ());
        for ((_, keys), groups) in coming.iter().zip(&received) {
            keys.iter().zip(groups.chunks_exact(of_group)).for_each(|(&key, values)| put(key, values));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::PERIODIC;
    use crate::parallel::on_ranks;

    /// Finer levels in a corner, so that cuts of theirs are others than the root's: by layers along z, or the first all.
    #[test]
    fn owners_do_not_depend_on_who_has_the_groups() {
        let finer = (0..216).map(|c| Key::new(1, [c % 6, c / 6 % 6, c / 36]));
        let finest = (0..64).map(|c| Key::new(2, [c % 4, c / 4 % 4, c / 16]));
        let tree = Octree::with_groups([4; 3], PERIODIC, finer.chain(finest));
        for ranks in [2, 3, 5] {
            let layer = |key: Key| (key.coordinate[2] >> key.level) as usize * ranks / 4;
            let found = on_ranks(ranks, |communicator| {
                let rank = communicator.rank();
                let of_first = |_: Key| FIRST;
                let of = |of: &dyn Fn(Key) -> usize| {
                    let keys = tree.keys().filter(|key| of(*key) == rank).collect();
                    owners(&communicator, &share(&tree, 3, keys), 3)
                };
                [of(&of_first), of(&layer)]
            });
            assert!(found.iter().flatten().all(|owners| *owners == found[0][0]), "{ranks}");
            for level in 0..3 {
                let mut counts = vec![0; ranks];
                tree.level(level).iter().for_each(|&key| counts[found[0][0].of(key)] += 1);
                let most = counts.into_iter().max().expect("some ranks");
                assert!(most <= tree.level(level).len().div_ceil(ranks), "level {level} on {ranks}: {most}");
            }
        }
    }
}
