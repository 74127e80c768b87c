//! Neighbour tables: the octree as the kernels see it, of one rank's own groups. Derived data, rebuilt at a regrid.
//!
//! Rows hold slots, and groups that stay keep theirs. So a regrid looks up the surroundings of the groups that came; those
//! that stay keep their rows, but for the entries that name a group that came or went.

use crate::mesh::sites::{Changes, GROUPS_AT_ONCE, LevelGroups, Sites};
use crate::mesh::stencil::{face_offset, inside, outside, row_of};
use crate::mesh::{Key, Octree};
use crate::parallel::share::Share;
use comove_kernels::layout::{DIRECTIONS, FACES, OCTANTS, direction, offset};
use comove_kernels::level_topology::NONE;
use comove_kernels::{DeviceTable, FaceBoundary, LevelTopology};
use rayon::prelude::*;

/// A neighbour row: slots, [`NONE`] where there is no group.
type Row = [u32; DIRECTIONS];

/// The kernels' tables of every level. `slots[ℓ][n]` is the slot of the n-th group of level ℓ in key order; `faces`
/// gives the boundary conditions at −x, +x, −y, +y, −z, +z where the box is not periodic.
///
/// # Panics
/// If `slots` and the octree disagree in shape, or two groups of a level share a slot.
pub fn build_tables(tree: &Octree, slots: &[Vec<u32>], faces: [FaceBoundary; FACES]) -> Vec<LevelTopology> {
    let share = Share::alone(tree);
    let groups = share.level_groups(tree, slots);
    let sites: Vec<Sites> = groups.iter().map(LevelGroups::sites).collect();
    rebuilt_tables(tree, (&[], &[]), &groups, &sites, 0, faces)
}

/// The tables of own groups after a regrid. Entries of groups without a slot are missing where nothing reads them: in rows
/// of parents, and all children of other ranks.
///
/// * `before`: the groups before it, and their tables; empty if there were none
/// * `now`, `sites`: the groups after it
/// * `first`: on coarser levels nothing has changed, and on this one no own group came or went
///
/// # Panics
/// If two groups of a level share a slot.
pub fn rebuilt_tables(
    lattice: &Octree,
    (before, tables): (&[LevelGroups], &[LevelTopology]),
    now: &[LevelGroups],
    sites: &[Sites],
    first: usize,
    faces: [FaceBoundary; FACES],
) -> Vec<LevelTopology> {
    let levels = first..now.len();
    let changes_of = |level: usize| now[level].changes_since(&before.get(level).copied().unwrap_or_default());
    let mut changes: Vec<Changes> = levels.clone().into_par_iter().map(changes_of).collect();
    // behind the finest level there is none, or none any more
    let gone = before.get(now.len()).map_or_else(Default::default, |gone| LevelGroups::default().changes_since(gone));
    changes.push(gone);
    let (none, no_sites) = (LevelTopology::default(), Sites::default());
    let level = |level: usize| Level {
        lattice,
        own: now[level].own,
        sites: &sites[level],
        finer: sites.get(level + 1).unwrap_or(&no_sites),
        changes: &changes[level - first],
        of_finer: &changes[level + 1 - first],
        old: tables.get(level).unwrap_or(&none),
    };
    let beside: Vec<LevelTopology> =
        levels.clone().into_par_iter().map(|n| level(n).beside(now[n].slots, faces)).collect();
    let with_parents = |n: usize| {
        let coarser = n.checked_sub(1).filter(|&coarser| coarser >= first);
        let coarser = coarser.map(|coarser| (level(coarser), &beside[coarser - first].neighbours));
        let tables = level(n).with_children(level(n).with_parents(beside[n - first].clone(), coarser));
        tables.check();
        tables
    };
    tables[..first].iter().cloned().chain(levels.into_par_iter().map(with_parents).collect::<Vec<_>>()).collect()
}

/// A level whose tables are rebuilt.
struct Level<'a> {
    lattice: &'a Octree,
    own: &'a [Key],
    sites: &'a Sites,
    /// Those of the next finer level.
    finer: &'a Sites,
    changes: &'a Changes,
    /// What has changed on the next finer level.
    of_finer: &'a Changes,
    old: &'a LevelTopology,
}

fn slot_of(sites: &Sites, key: Key) -> u32 {
    sites.get(&key).map_or(NONE, |site| site.slot)
}

impl Level<'_> {
    fn row(&self, key: Key) -> Row {
        row_of(self.lattice, key, |neighbour| slot_of(self.sites, neighbour))
    }

    /// The neighbours of each group.
    fn beside(&self, slots: &[u32], faces: [FaceBoundary; FACES]) -> LevelTopology {
        let Self { lattice, own, changes, old, .. } = self;
        let outside = changes.carry(&old.outside, |g| [outside(lattice, own[g])], Vec::new());
        // entries of the groups around one that came or went
        let around = |&key: &Key| {
            let slot = slot_of(self.sites, key);
            let staying = (0..DIRECTIONS).filter_map(move |d| {
                let other = lattice.neighbour(key, offset(d))?;
                Some((changes.staying(self.sites.get(&other))?, offset(d).map(|step| -step)))
            });
            let outside = &outside;
            staying.flat_map(move |(g, [x, y, z])| {
                // at a face of the box other entries may name the same group
                let there = direction(x, y, z);
                let entries = if outside[g] == 0 { there..there + 1 } else { 0..DIRECTIONS };
                let entries = entries.filter(move |&entry| inside(entry, outside[g]) == [x, y, z]);
                entries.map(move |entry| (g * DIRECTIONS + entry, slot))
            })
        };
        let others = changes.keys.par_iter().flat_map_iter(around).collect();
        LevelTopology {
            slots: if changes.all_stay { old.slots.clone() } else { slots.to_vec().into() },
            neighbours: changes.carry(&old.neighbours, |g| self.row(own[g]), others),
            octants: changes.carry(&old.octants, |g| [own[g].octant() as u8], Vec::new()),
            outside,
            faces,
            ..LevelTopology::default()
        }
    }

    /// The same with the rows of the groups' parents, which are on this level with these rows; without one, those of before.
    fn with_parents(&self, beside: LevelTopology, coarser: Option<(Level, &DeviceTable<u32>)>) -> LevelTopology {
        let parents = match coarser {
            Some((coarser, _)) if self.changes.all_stay && coarser.changes.keys.is_empty() => self.old.parents.clone(),
            Some((coarser, rows)) => coarser.rows_of_parents(rows, self.own),
            None if self.changes.all_stay => self.old.parents.clone(),
            None => vec![NONE; self.own.len() * DIRECTIONS].into(),
        };
        LevelTopology { parents, ..beside }
    }

    /// This level's rows of the parents of groups of the finer level: of own ones they are there.
    fn rows_of_parents(&self, rows: &DeviceTable<u32>, finer: &[Key]) -> DeviceTable<u32> {
        let (mut places, mut foreign) = (Vec::with_capacity(finer.len()), Vec::<Key>::new());
        let mut own = self.own.iter().enumerate().peekable();
        for key in finer {
            let parent = key.parent().expect("a refined level has parents");
            while own.next_if(|(_, other)| **other < parent).is_some() {}
            places.push(match own.peek() {
                Some(&(place, other)) if *other == parent => place,
                _ => {
                    if foreign.last() != Some(&parent) {
                        foreign.push(parent);
                    }
                    self.own.len() + foreign.len() - 1
                }
            });
        }
        let foreign: Vec<Row> = foreign.par_iter().map(|&parent| self.row(parent)).collect();
        let row = |&place: &usize| match place.checked_sub(self.own.len()) {
            Some(n) => foreign[n],
            None => rows[place * DIRECTIONS..][..DIRECTIONS].try_into().expect("a row"),
        };
        places.par_iter().with_min_len(GROUPS_AT_ONCE).map(row).collect::<Vec<Row>>().into_flattened().into()
    }

    /// The same with the groups' children, and those of the groups beside them.
    fn with_children(&self, own: LevelTopology) -> LevelTopology {
        let Self { lattice, own: keys, finer, changes, of_finer, old, .. } = self;
        let exists = |key: Key| finer.contains_key(&key);
        let child = |key: Key| finer.get(&key).filter(|site| site.place != NONE).map_or(NONE, |site| site.slot);
        let leaves = |key: Key| (0..OCTANTS).filter(|&o| !exists(key.child(o))).fold(0, |mask, o| mask | 1 << o);
        let beyond = |key: Key| {
            std::array::from_fn::<_, { OCTANTS * FACES }, _>(|n| {
                let patch = key.child(n / FACES);
                lattice.neighbour(patch, face_offset(n % FACES)).map_or(NONE, |key| slot_of(finer, key))
            })
        };
        // the group that has a patch, if it stays, and which patch it is
        let patch = |key: Key| {
            let parent = key.parent().expect("a refined level has parents");
            Some((changes.staying(self.sites.get(&parent))? * OCTANTS + key.octant(), parent))
        };
        let changed = of_finer.keys.par_iter();
        let refined = changed.clone().filter_map(|&key| Some((patch(key)?, key)));
        let across = |&key: &Key| {
            let slot = slot_of(finer, key);
            let patch_at = move |face: usize| patch(lattice.neighbour(key, face_offset(face ^ 1))?);
            (0..FACES).filter_map(move |face| Some((patch_at(face)?.0 * FACES + face, slot)))
        };
        let of_leaves = refined.clone().map(|((at, parent), _)| (at / OCTANTS, leaves(parent))).collect();
        let of_children = refined.map(|((at, _), key)| (at, child(key))).collect();
        LevelTopology {
            leaves: changes.carry(&old.leaves, |g| [leaves(keys[g])], of_leaves),
            children: changes.carry(
                &old.children,
                |g| std::array::from_fn::<_, OCTANTS, _>(|o| child(keys[g].child(o))),
                of_children,
            ),
            beyond: changes.carry(&old.beyond, |g| beyond(keys[g]), changed.flat_map_iter(across).collect()),
            ..own
        }
    }
}

/// Slot of each root group, `[groups z, y, x]`, as [`comove_kernels::RootPoisson`] wants it.
pub fn root_slots(tree: &Octree, slots: &[Vec<u32>]) -> DeviceTable<u32> {
    let [nx, ny, nz] = tree.root_groups();
    let mut mesh = vec![NONE; (nx * ny * nz) as usize];
    for (key, &slot) in tree.level(0).iter().zip(&slots[0]) {
        let [x, y, z] = key.coordinate;
        mesh[((z * ny + y) * nx + x) as usize] = slot;
    }
    mesh.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::{CLOSED, PERIODIC, nest};
    use crate::parallel::communicator::Communicator;
    use crate::parallel::load_balancer::LoadBalancer;
    use crate::parallel::on_ranks;
    use crate::parallel::owners::Owners;
    use comove_kernels::layout::CENTRE;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// A box whose root octants are refined in a pattern, three levels deep.
    fn tree(root: [u32; 3], periodic: [bool; 3]) -> Octree {
        let mut refined = Vec::new();
        for key in Octree::new(root, periodic).level(0) {
            for o in (0..OCTANTS).filter(|o| !(key.coordinate[0] as usize + o).is_multiple_of(3)) {
                refined.push(key.child(o));
                refined.extend((0..OCTANTS).filter(|p| (o + p).is_multiple_of(2)).map(|p| key.child(o).child(p)));
            }
        }
        Octree::with_groups(root, periodic, refined)
    }

    fn slots(tree: &Octree) -> Vec<Vec<u32>> {
        // any distinct numbers, to see that slots and places are not confused
        (0..tree.level_count())
            .map(|l| (0..tree.level(l).len()).map(|n| 7 + 3 * (tree.first_of_level(l) + n) as u32).collect())
            .collect()
    }

    /// Against look-ups of coordinates, group by group.
    #[test]
    fn rows_agree_with_look_ups() {
        for periodic in [PERIODIC, CLOSED, [true, false, true], [false, true, true]] {
            let tree = tree([3, 1, 2], periodic);
            let slots = slots(&tree);
            let tables = build_tables(&tree, &slots, Default::default());
            let slot = |key: Key| tree.find(key).map_or(NONE, |n| slots[usize::from(key.level)][n]);
            for level in 0..tree.level_count() {
                let cells = tree.root_groups().map(|n| n << level);
                for (g, &key) in tree.level(level).iter().enumerate() {
                    let expected = |key: Key| {
                        let mut row = [NONE; DIRECTIONS];
                        for d in 0..27i32 {
                            let mut offset = [d % 3 - 1, d / 3 % 3 - 1, d / 9 - 1];
                            for axis in 0..3 {
                                let single = [
                                    offset[axis] * i32::from(axis == 0),
                                    offset[axis] * i32::from(axis == 1),
                                    offset[axis] * i32::from(axis == 2),
                                ];
                                if tree.neighbour(key, single).is_none() {
                                    offset[axis] = 0;
                                }
                            }
                            row[d as usize] = slot(tree.neighbour(key, offset).expect("inside by now"));
                        }
                        row
                    };
                    assert_eq!(*tables[level].row(g), expected(key), "{key:?}");
                    if let Some(parent) = key.parent() {
                        assert_eq!(*tables[level].parent_row(g), expected(parent));
                    }
                    assert_eq!(tables[level].leaves[g], tree.leaves(key));
                    assert_eq!(usize::from(tables[level].octants[g]), key.octant());
                    for face in 0..6 {
                        let edge = if face & 1 == 0 { 0 } else { cells[face / 2] - 1 };
                        let touches = !periodic[face / 2] && key.coordinate[face / 2] == edge;
                        assert_eq!(tables[level].outside[g] >> face & 1 == 1, touches);
                    }
                    for o in 0..OCTANTS {
                        assert_eq!(tables[level].children_of(g)[o], slot(key.child(o)));
                        for face in 0..FACES {
                            let mut offset = [0; 3];
                            offset[face / 2] = if face & 1 == 0 { -1 } else { 1 };
                            let beyond = tree.neighbour(key.child(o), offset).map_or(NONE, slot);
                            assert_eq!(tables[level].beyond_of(g, o)[face], beyond);
                        }
                    }
                }
            }
            assert_eq!(tables[0].row(0)[CENTRE], slots[0][0]);
            assert_eq!(root_slots(&tree, &slots)[5], slot(Key::new(0, [2, 0, 1])));
        }
    }

    /// What a rank has of a tree.
    struct Rank {
        own: Octree,
        slots: Vec<Vec<u32>>,
        share: Share,
        tables: Vec<LevelTopology>,
    }

    impl Rank {
        /// Without groups.
        fn new(owners: &Owners, lattice: &Octree) -> Self {
            let own = Octree::share(lattice.root_groups(), lattice.periodic(), Vec::new());
            let share = Share { owners: owners.clone(), ..Share::alone(&own) };
            Self { own, slots: Vec::new(), share, tables: Vec::new() }
        }

        /// Takes its part of a tree that has the same levels up to `first`, by new owners of finer levels.
        fn regrid(&mut self, communicator: &Communicator, tree: &Octree, first: usize) {
            let of_old = |owners: &Owners, level: usize| -> Vec<Key> {
                tree.level(level).iter().copied().filter(|&key| owners.of(key) == communicator.rank()).collect()
            };
            let part = |owners: &Owners| {
                let levels = (0..tree.level_count()).map(|level| of_old(owners, level)).collect();
                Octree::share(tree.root_groups(), tree.periodic(), levels)
            };
            let (own, mut share) = if self.share.is_alone() {
                (tree.clone(), Share::alone(tree))
            } else {
                let (owners, parts) = (&self.share.owners, LoadBalancer::default().parts(communicator.size()));
                let owners = owners.balanced(communicator, &part(owners), first, &parts, &|_| 1);
                let own = part(&owners);
                (own.clone(), self.share.of(communicator, owners, &own, first))
            };
            let ghosts = share.wanted_ghosts(&own, first);
            // those that stay what they are keep their slots, others take what is free
            let owned = self.own.keys().zip(self.slots.iter().flatten().copied());
            let owned: BTreeMap<Key, u32> = owned.filter(|(key, _)| own.find(*key).is_some()).collect();
            let copied = self.share.ghosts.iter().flatten().copied();
            let stays = |key: Key| {
                let level = usize::from(key.level);
                level < first || ghosts.get(level - first).is_some_and(|keys| keys.binary_search(&key).is_ok())
            };
            let copied: BTreeMap<Key, u32> = copied.filter(|(key, _)| stays(*key)).collect();
            let mut free = (0..).filter(|slot| !owned.values().chain(copied.values()).any(|taken| taken == slot));
            let mut slot = |old: &BTreeMap<Key, u32>, key: &Key| {
                old.get(key).copied().unwrap_or_else(|| free.next().expect("a slot"))
            };
            let mut of_level = |level: usize| own.level(level).iter().map(|key| slot(&owned, key)).collect();
            let slots: Vec<Vec<u32>> = (0..own.level_count()).map(&mut of_level).collect();
            let coarser = self.share.ghosts.iter().take(first).cloned();
            let finer = ghosts.iter().map(|keys| keys.iter().map(|key| (*key, slot(&copied, key))).collect());
            share.ghosts = coarser.chain(finer).collect();

            let (before, now) = (self.share.level_groups(&self.own, &self.slots), share.level_groups(&own, &slots));
            let sites: Vec<Sites> = now.iter().map(LevelGroups::sites).collect();
            let tables = rebuilt_tables(&own, (&before, &self.tables), &now, &sites, first, Default::default());
            let expected = rebuilt_tables(&own, (&[], &[]), &now, &sites, 0, Default::default());
            for (level, (tables, expected)) in tables.iter().zip(&expected).enumerate() {
                assert_eq!(format!("{tables:?}"), format!("{expected:?}"), "level {level}");
            }
            *self = Self { own, slots, share, tables };
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        /// Tables that follow others are those made from nothing, on one rank and with others, whoever owns what.
        #[test]
        fn tables_follow_the_tree(
            coarse in prop::collection::vec([0u32..12, 0u32..8, 0u32..8], 1..6),
            changes in prop::collection::vec((1usize..4, [0u32..24, 0u32..16, 0u32..16]), 1..12),
            (ranks, seed) in (1usize..5, 0u64..3),
        ) {
            for periodic in [PERIODIC, CLOSED, [true, false, true]] {
                // the same groups and more and more others, then fewer again
                let tree = |others: &[(usize, [u32; 3])]| {
                    let mut wanted = vec![Vec::new(); 4];
                    wanted[2] = coarse.iter().map(|&c| Key::new(2, c)).collect();
                    for &(level, at) in others {
                        wanted[level].push(Key::new(level as u8, at.map(|c| c >> (3 - level))));
                    }
                    let nested = nest([3, 2, 2], periodic, wanted);
                    Octree::with_groups([3, 2, 2], periodic, nested.into_iter().skip(1).flatten())
                };
                let parts = [0, changes.len() / 2, changes.len(), changes.len() / 3];
                let trees = parts.map(|n| tree(&changes[..n]));
                let owners = match seed {
                    _ if ranks == 1 => Owners::alone(),
                    0 => Owners::even(ranks, [3, 2, 2]),
                    seed => Owners::scattered(ranks, [3, 2, 2], seed),
                };
                on_ranks(ranks, |communicator| {
                    let mut rank = Rank::new(&owners, &trees[0]);
                    rank.regrid(&communicator, &trees[0], 0);
                    for (before, after) in trees.iter().zip(&trees[1..]) {
                        let stay = (0..).take_while(|&l| l < after.level_count() && before.level(l) == after.level(l));
                        let stay = stay.count();
                        for first in (0..stay).rev().take(2) {
                            rank.regrid(&communicator, after, first);
                        }
                    }
                });
            }
        }
    }
}
