//! Mass that a rank's particles leave in cells of other ranks' groups: which cells, and the messages that bring it to their
//! owners.
//!
//! A level takes the mass of its particles, of those of the next coarser level in and beside its groups, and of all finer ones.
//! So a rank leaves mass around its own groups of the level, where others refine its groups of the coarser level, and in the
//! groups that hold its finer ones, however much coarser. Those exist, as groups are properly nested, and their owners are told.
//! Weights are integers: owners add what comes in any order.

use crate::mesh::stencil::CellBox;
use crate::mesh::{Key, Octree};
use crate::parallel::communicator::Communicator;
use crate::parallel::link_lists::{CellLinks, need, peers};
use crate::parallel::links::{Concern, Reading, merged, reading};
use crate::parallel::owners::Owners;
use crate::parallel::remote_groups::RemoteGroups;
use comove_kernels::LevelTopology;
use comove_kernels::layout::GROUP;
use comove_kernels::messages::{MessageSizes, Piece, Pieces};
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

/// Cells of a level that mass may be from the group that its particle was sorted to: two at half a cell a step, and as many
/// again for particles that have become faster meanwhile.
const REACH: i64 = 4;

const WIDTH: i64 = GROUP as i64;

/// Boxes of cells with the ranks that own them, or that leave mass there.
type Boxes = Vec<(Concern, CellBox)>;

/// What a rank's particles leave in others' groups, and others' in its own.
#[derive(Clone, Debug, Default)]
pub struct Deposits {
    /// By level.
    send: Vec<Boxes>,
    receive: Vec<Boxes>,
    /// By level: groups that mass is left in and that have no ghost, with their slots.
    slots: Vec<Vec<(Key, u32)>>,
    links: Vec<DepositLinks>,
}

/// The messages about a level.
#[derive(Clone, Debug, Default)]
pub(crate) struct DepositLinks {
    /// Nothing but the slots that own particles leave mass in: of own groups and of others'.
    pub(crate) tables: LevelTopology,
    /// Boxes of cells of others' groups, and of own ones; these may overlap.
    pub(crate) cells: CellLinks,
}

impl Deposits {
    /// Of a rank with these groups, without slots as yet: collective.
    pub(crate) fn of(communicator: &Communicator, owners: &Owners, own: &Octree, known: &RemoteGroups) -> Self {
        let (rank, levels) = (communicator.rank(), own.level_count());
        let finer = holders(known, levels);
        let of_level = |level: usize| {
            let of_others = |of: &Key, width: i64, owner: &dyn Fn(Key) -> Option<u32>| {
                let mut found: Vec<Reading> = Vec::new();
                boxes(own, level, *of, width, |key, cells| {
                    found.extend(owner(key).map(|owner| reading(owner, key, cells)));
                });
                found
            };
            let near = |key: &Key, width: i64| of_others(key, width, &|key| known.find(key));
            let other = |key: Key| Some(owners.of(key)).filter(|&owner| owner != rank).map(|owner| owner as u32);
            let around = |key: &Key| of_others(key, WIDTH / 2, &other);
            let coarser = level.checked_sub(1).map_or(&[][..], |coarser| known.near(coarser));
            let list = known.near(level).par_iter().flat_map_iter(|key| near(key, WIDTH));
            let list = list.chain(coarser.par_iter().flat_map_iter(|key| near(key, 2 * WIDTH)));
            merged(level, list.chain(finer[level].par_iter().flat_map_iter(around)).collect())
        };
        let send: Vec<Boxes> = (0..levels).into_par_iter().map(of_level).collect();
        let receive = tell(communicator, &send);
        Self { send, receive, ..Self::default() }
    }

    /// Gives slots to groups that have no ghost.
    ///
    /// * `ghosts`: by level, in key order
    pub(crate) fn place(&mut self, ghosts: &[Vec<(Key, u32)>], mut next: impl FnMut() -> u32) {
        let of_level = |(level, boxes): (usize, &Boxes)| {
            let has_ghost = |key: &Key| ghosts[level].binary_search_by_key(key, |ghost| ghost.0).is_ok();
            let mut keys: Vec<Key> = boxes.iter().map(|((_, key), _)| *key).filter(|key| !has_ghost(key)).collect();
            keys.sort_unstable();
            keys.dedup();
            keys.into_iter().map(|key| (key, next())).collect()
        };
        self.slots = self.send.iter().enumerate().map(of_level).collect();
    }

    /// The groups that were given slots, of all levels.
    pub(crate) fn groups(&self) -> impl Iterator<Item = (Key, u32)> {
        self.slots.iter().flatten().copied()
    }

    /// Makes the messages, once every group has a slot.
    ///
    /// * `slots`: of own groups
    pub(crate) fn link(&mut self, own: &Octree, slots: &[Vec<u32>], ghosts: &[Vec<(Key, u32)>]) {
        let of_level = |level: usize| {
            let theirs: FxHashMap<Key, u32> = ghosts[level].iter().chain(&self.slots[level]).copied().collect();
            let (send, receive) = (&self.send[level], &self.receive[level]);
            let to: FxHashSet<u32> = send.iter().map(|((_, key), _)| theirs[key]).collect();
            let mine = |key: Key| slots[level][own.find(key).expect("mass for own groups")];
            let units =
                |boxes: &Boxes| boxes.iter().map(|((rank, _), cells)| (*rank, cells.cells())).collect::<Vec<_>>();
            DepositLinks {
                tables: LevelTopology {
                    slots: slots[level].iter().copied().chain(to).collect(),
                    ..LevelTopology::default()
                },
                cells: CellLinks {
                    send: Pieces::to_pack(pieces(send, |key| theirs[&key])),
                    receive: Pieces::to_add(pieces(receive, mine)),
                    peers: peers(&units(send), &units(receive)),
                },
            }
        };
        self.links = (0..self.send.len()).into_par_iter().map(of_level).collect();
    }

    /// Raises the bytes of messages to those of the deposits.
    ///
    /// * `needs`: by rank
    pub(crate) fn need(&self, needs: &mut [MessageSizes]) {
        self.links.iter().for_each(|links| need(needs, &links.cells.peers, size_of::<u64>()));
    }

    /// The messages about a level.
    pub(crate) fn links(&self, level: usize) -> &DepositLinks {
        &self.links[level]
    }
}

/// By level: groups of the next finer one that are own, or hold own ones, and have other ranks' groups around their parents. Around
/// the parent of any other group lie own groups alone, and the group leaves no mass in others'.
fn holders(known: &RemoteGroups, levels: usize) -> Vec<Vec<Key>> {
    let mut holders = vec![Vec::new(); levels];
    for level in (1..levels).rev() {
        let mut finer: Vec<Key> = holders[level].iter().filter_map(Key::parent).collect();
        finer.extend_from_slice(known.near(level));
        finer.sort_unstable();
        finer.dedup();
        holders[level - 1] = finer;
    }
    holders
}

/// Calls `each` with the groups of a level within [`REACH`] of another group, whose width is so many cells of that level, and
/// their cells there.
fn boxes(lattice: &Octree, level: usize, of: Key, width: i64, mut each: impl FnMut(Key, CellBox)) {
    let first = of.coordinate.map(|c| i64::from(c) * width - REACH);
    let end = first.map(|c| c + width + 2 * REACH);
    let groups = lattice.root_groups().map(|n| i64::from(n) << level);
    let range = |axis: usize| first[axis].div_euclid(WIDTH)..=(end[axis] - 1).div_euclid(WIDTH);
    for z in range(2) {
        for y in range(1) {
            for x in range(0) {
                let group = [x, y, z];
                let within = |c: [i64; 3]| std::array::from_fn(|a| (c[a] - group[a] * WIDTH).clamp(0, WIDTH) as u8);
                let key = Key::new(level as u8, std::array::from_fn(|a| group[a].rem_euclid(groups[a]) as u32));
                each(key, CellBox { first: within(first), end: within(end) });
            }
        }
    }
}

/// What others leave in own groups, by level, from what this rank leaves in theirs: collective.
fn tell(communicator: &Communicator, send: &[Boxes]) -> Vec<Boxes> {
    let mut messages = vec![Vec::<u64>::new(); communicator.size()];
    for (level, boxes) in send.iter().enumerate() {
        for ((rank, key), cells) in boxes {
            messages[*rank as usize].extend([level as u64, key.morton(), u64::from(cells.code())]);
        }
    }
    let messages = messages.into_iter().map(|message| bytemuck::cast_slice(&message).to_vec()).collect();
    let mut receive = vec![Boxes::new(); send.len()];
    for (rank, message) in communicator.exchange(messages).into_iter().enumerate() {
        let words: Vec<u64> = bytemuck::pod_collect_to_vec(&message);
        for words in words.chunks_exact(3) {
            let key = Key::from_morton(words[0] as u8, words[1]);
            receive[words[0] as usize].push(((rank as u32, key), CellBox::of_code(words[2] as u32)));
        }
    }
    receive
}

fn pieces(boxes: &Boxes, slot: impl Fn(Key) -> u32) -> Vec<Piece> {
    let mut at = 0;
    let piece = |((_, key), cells): &(Concern, CellBox)| {
        let extent = std::array::from_fn(|a| cells.end[a] - cells.first[a]);
        let piece = Piece { slot: slot(*key), first: cells.first, cells: extent, at };
        at += cells.cells() as u32;
        piece
    };
    boxes.iter().map(piece).collect()
}
