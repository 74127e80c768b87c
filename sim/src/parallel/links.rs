//! What the ranks send each other about a level: lists that both sides derive from the same relations between groups, in the
//! same order, so that messages hold values alone.

use crate::mesh::sites::Sites;
use crate::mesh::stencil::{CellBox, KICK_GHOSTS, coarse_stencil, face_entry, patches_beside, same_level_stencil};
use crate::mesh::{Key, Octree};
use crate::parallel::coarse_links::CoarseLinks;
use crate::parallel::link_lists::{CellLinks, SlotLinks, links_of_slots, need, peers};
use crate::parallel::remote_groups::{RemoteGroup, RemoteGroups};
use comove_kernels::coarse_correction::GRID_WIDTHS;
use comove_kernels::group_poisson::FACE_GRADIENTS;
use comove_kernels::layout::{CENTRE, DIRECTIONS, FACES, HYDRO_GHOSTS, OCTANTS};
use comove_kernels::level_topology::NONE;
use comove_kernels::messages::{MessageSizes, Piece, Pieces};
use comove_kernels::{DeviceTable, LevelTopology, Parity};
use rayon::prelude::*;
use std::sync::OnceLock;

/// Groups whose readings one thread finds.
const READERS_AT_ONCE: usize = 128;

/// The links of one level.
#[derive(Clone, Debug, Default)]
pub struct LevelLinks {
    /// All cells of the level's ghosts that this rank reads.
    pub cells: CellLinks,
    /// Those of them that sweeps of own groups of the level itself read.
    pub sweep: CellLinks,
    /// Faces of groups across faces of own ones, in slots that begin with faces: of groups of even and of odd parity.
    pub faces: [CellLinks; 2],
    /// Patches refined by groups of one rank, and owned by another: from ghosts of the coarse groups to these.
    pub patches: CellLinks,
    /// The ghosts that own finer groups are restricted to, with these as children and nothing else.
    pub parents: LevelTopology,
    /// Gradients of the finer level's groups that the level's mass sheets take.
    pub gradients: SlotLinks,
    /// Ghosts that own groups read at their own level, in all 26 directions, which the coarse correction relies on.
    pub beside: SlotLinks,
    /// The groups behind `beside.receive`.
    pub beside_keys: Vec<Key>,
    /// The groups behind `beside.send`, as places in the level's list.
    pub beside_groups: Vec<u32>,
    /// Slots of own groups and ghosts.
    pub slots: DeviceTable<u32>,
    /// Of the coarse correction; none on the root.
    pub coarse: CoarseLinks,
    edges: OnceLock<OverlapSets>,
}

/// Some own groups of a level: those that read no ghosts of it, and can be worked on while these are on their way, and the
/// others. As places in the level's list.
#[derive(Clone, Debug, Default)]
pub struct InteriorBoundary {
    /// Without.
    pub inner: DeviceTable<u32>,
    /// With.
    pub outer: DeviceTable<u32>,
}

impl InteriorBoundary {
    fn of(groups: impl Iterator<Item = u32>, is_outer: impl Fn(u32) -> bool) -> Self {
        let (outer, inner): (Vec<u32>, Vec<u32>) = groups.partition(|&g| is_outer(g));
        Self { inner: inner.into(), outer: outer.into() }
    }
}

/// Which own groups of a level read ghosts of it.
#[derive(Clone, Debug, Default)]
pub struct OverlapSets {
    /// In sweeps: of all groups.
    pub sweep: InteriorBoundary,
    /// Across faces: of the groups of odd parity.
    pub odd: InteriorBoundary,
}

impl OverlapSets {
    fn of(tables: &LevelTopology) -> Self {
        let mut own = vec![false; tables.slots.iter().max().map_or(0, |&last| last as usize + 1)];
        tables.slots.iter().for_each(|&slot| own[slot as usize] = true);
        let is_ghost = |slot: u32| slot != NONE && own.get(slot as usize) != Some(&true);
        let beside = |g: u32| tables.row(g as usize).iter().any(|&slot| is_ghost(slot));
        let across = |g: u32| (0..FACES).any(|face| is_ghost(tables.row(g as usize)[face_entry(face)]));
        Self {
            sweep: InteriorBoundary::of(0..tables.len() as u32, beside),
            odd: InteriorBoundary::of(tables.half(Parity::Odd).iter().copied(), across),
        }
    }
}

impl LevelLinks {
    /// Which own groups read ghosts, found when it is first asked for.
    ///
    /// * `tables`: of the level
    pub fn edges(&self, tables: &LevelTopology) -> &OverlapSets {
        self.edges.get_or_init(|| OverlapSets::of(tables))
    }

    /// Raises what is needed for messages by those about the level, with values of so many bytes.
    ///
    /// * `needs`: by rank
    /// * `fields`: of a cell, at most
    pub fn need(&self, needs: &mut [MessageSizes], fields: usize, value: usize) {
        for links in [&self.cells, &self.sweep, &self.patches] {
            need(needs, &links.peers, fields * value);
        }
        self.faces.iter().for_each(|links| need(needs, &links.peers, value));
        need(needs, &self.gradients.peers, FACE_GRADIENTS * value);
        need(needs, &self.beside.peers, GRID_WIDTHS[0].pow(3) * value);
        need(needs, &self.coarse.gather.peers, value);
    }
}

/// Something that concerns a group and a rank.
pub(crate) type Concern = (u32, Key);

/// Cells of a group that one reads and another has: rank, place of the group along its level's curve, and the box, from the
/// highest bit to the lowest, so that numbers sort as lists of both sides do.
pub(crate) type Reading = u128;

pub(crate) fn reading(rank: u32, key: Key, cells: CellBox) -> Reading {
    u128::from(rank) << 96 | u128::from(key.morton()) << 32 | u128::from(cells.code())
}

/// The relations between a rank's groups and others', before there are slots.
#[derive(Clone, Debug, Default)]
pub struct Relations {
    /// What others read of own groups of the level.
    send: Readings,
    /// What own groups read of others'.
    receive: Readings,
    /// Own groups of the finer level, and the ranks that own their parents.
    send_patches: Vec<Concern>,
    /// Groups of the finer level and their ranks, whose parents are own.
    receive_patches: Vec<Concern>,
    send_gradients: Vec<Concern>,
    receive_gradients: Vec<Concern>,
}

impl Relations {
    /// Of a level.
    ///
    /// * `has_particles`: whether kicks of particles read potentials
    pub fn of(own: &Octree, known: &RemoteGroups, level: usize, has_particles: bool) -> Self {
        // on the root kicks read a cell less
        let depth = if has_particles && level > 0 { KICK_GHOSTS } else { HYDRO_GHOSTS };
        let mine = |key: Key| known.is_near(key);
        let theirs = |key: Key| known.find(key);
        let finer = level + 1;
        // both sides ask who reads whom: one for its own groups, the other for those that it knows of
        let beside = |found: &mut Beside, reader: Key, rank_of: &dyn Fn(Key) -> Option<u32>| {
            same_level_stencil(own, reader, |key, offset, across| {
                if let Some(rank) = rank_of(key) {
                    found.all.push(reading(rank, key, CellBox::facing(offset, depth)));
                    found.sweep.push(reading(rank, key, CellBox::facing(offset, HYDRO_GHOSTS)));
                    found.faces.extend(across.map(|cells| reading(rank, key, cells)));
                }
            });
        };
        let over = |reader: Key, rank_of: &dyn Fn(Key) -> Option<u32>| {
            let mut found = Vec::new();
            coarse_stencil(own, reader, |key, cells| found.extend(rank_of(key).map(|rank| reading(rank, key, cells))));
            found
        };
        let by = |reader: &RemoteGroup| {
            let rank = reader.rank;
            move |key: Key| mine(key).then_some(rank)
        };
        let send = || {
            let readers = known.level(level);
            let beside = Beside::of(readers, |found, reader| beside(found, reader.key, &by(reader)));
            let over = known.level(finer).par_iter().flat_map_iter(|reader| over(reader.key, &by(reader)));
            Readings::of(level, beside, over)
        };
        let receive = || {
            let beside = Beside::of(known.near(level), |found, &reader| beside(found, reader, &theirs));
            let over = known.near(finer).par_iter().flat_map_iter(|&reader| over(reader, &theirs));
            Readings::of(level, beside, over)
        };
        let (send, receive) = rayon::join(send, receive);
        let patches = |groups: &mut dyn Iterator<Item = Concern>| sorted(groups.collect());
        let beside_patch = |key: Key| {
            let mut found = Vec::with_capacity(FACES);
            patches_beside(own, key, |beside| found.push(beside));
            found.into_iter()
        };
        let to = |&key: &Key| beside_patch(key).filter_map(theirs).map(move |rank| (rank, key));
        let send_gradients = known.near(finer).par_iter().flat_map_iter(to).collect();
        let from = |g: &RemoteGroup| beside_patch(g.key).any(mine).then_some((g.rank, g.key));
        let receive_gradients = known.level(finer).par_iter().filter_map(from).collect();
        let parent = |key: Key| key.parent().expect("a refined level has parents");
        Self {
            send,
            receive,
            send_patches: patches(
                &mut known.near(finer).iter().filter_map(|&key| theirs(parent(key)).map(|rank| (rank, key))),
            ),
            receive_patches: patches(
                &mut known.level(finer).iter().filter(|group| mine(parent(group.key))).map(|g| (g.rank, g.key)),
            ),
            send_gradients: sorted(send_gradients),
            receive_gradients: sorted(receive_gradients),
        }
    }

    /// The level's groups of which cells are received, in key order.
    pub fn ghosts(&self) -> Vec<Key> {
        keys(self.receive.all.iter().map(|((_, key), _)| *key))
    }

    /// The finer level's groups of which gradients are received, in key order.
    pub fn finer_ghosts(&self) -> Vec<Key> {
        keys(self.receive_gradients.iter().map(|(_, key)| *key))
    }

    /// The links, once every group has a slot.
    ///
    /// * `ghosts`: of this level
    /// * `sites`, `finer_sites`: of own groups and ghosts of this level and the next finer one
    pub fn links<'a>(
        &self,
        own: &'a Octree,
        level: usize,
        ghosts: impl IntoIterator<Item = &'a Key>,
        sites: &Sites,
        finer_sites: &Sites,
    ) -> LevelLinks {
        let Self { send, receive, .. } = self;
        let slot = |key: Key| sites[&key].slot;
        let finer = |key: Key| finer_sites[&key].slot;
        let parent = |key: Key| key.parent().expect("a refined level has parents");
        let patch = |&(rank, key): &Concern| ((rank, parent(key)), CellBox::patch(key.octant()));
        let patches =
            [&self.send_patches, &self.receive_patches].map(|list| list.iter().map(patch).collect::<Vec<_>>());
        LevelLinks {
            cells: cell_links(&send.all, &receive.all, slot),
            sweep: cell_links(&send.beside, &receive.beside, slot),
            faces: [false, true].map(|odd| {
                let of = |list: &[(Concern, CellBox)]| of_parity(list, odd);
                cell_links(&of(&send.faces), &of(&receive.faces), slot)
            }),
            patches: cell_links(&patches[0], &patches[1], slot),
            parents: parents(&self.send_patches, slot, finer),
            gradients: slot_links(&self.send_gradients, &self.receive_gradients, finer),
            beside: slot_links(&names(&send.beside), &names(&receive.beside), slot),
            beside_keys: names(&receive.beside).iter().map(|(_, key)| *key).collect(),
            beside_groups: names(&send.beside).iter().map(|(_, key)| sites[key].place).collect(),
            slots: own.level(level).iter().chain(ghosts).map(|&key| slot(key)).collect(),
            coarse: CoarseLinks::default(),
            edges: OnceLock::new(),
        }
    }
}

/// Slots of the coarsest grid of the Poisson solve that ranks which share levels need; none for a rank that is alone.
pub(crate) fn coarsest_slots(links: &[LevelLinks]) -> usize {
    links.iter().map(|links| links.coarse.slots).max().unwrap_or(0)
}

fn names(list: &[(Concern, CellBox)]) -> Vec<Concern> {
    list.chunk_by(|a, b| a.0 == b.0).map(|of_one| of_one[0].0).collect()
}

/// What concerns groups whose coordinates have an odd sum, or an even one.
fn of_parity(list: &[(Concern, CellBox)], odd: bool) -> Vec<(Concern, CellBox)> {
    let is_odd = |key: Key| key.coordinate.iter().fold(0, |sum, c| sum ^ c) & 1 == 1;
    list.iter().copied().filter(|((_, key), _)| is_odd(*key) == odd).collect()
}

/// What is read of groups of one level, each cell once for each rank and group, in the order of ranks and groups.
#[derive(Clone, Debug, Default)]
struct Readings {
    /// Everything.
    all: Vec<(Concern, CellBox)>,
    /// What is read by groups of the same level.
    beside: Vec<(Concern, CellBox)>,
    /// Faces of the neighbours across faces.
    faces: Vec<(Concern, CellBox)>,
}

impl Readings {
    /// * `beside`: what groups of the level read
    /// * `over`: what groups of the finer level read
    fn of(level: usize, beside: Beside, over: impl ParallelIterator<Item = Reading>) -> Self {
        let Beside { all, sweep, faces } = beside;
        let all: Vec<Reading> = over.chain(all.into_par_iter()).collect();
        let (all, (beside, faces)) =
            rayon::join(|| merged(level, all), || rayon::join(|| merged(level, sweep), || merged(level, faces)));
        Self { all, beside, faces }
    }
}

/// What groups read of others on their level, in any order.
#[derive(Default)]
struct Beside {
    /// Everything.
    all: Vec<Reading>,
    /// What sweeps read.
    sweep: Vec<Reading>,
    /// Faces of the neighbours across faces.
    faces: Vec<Reading>,
}

impl Beside {
    /// What `add` finds for each of these readers.
    fn of<G: Sync>(readers: &[G], add: impl Fn(&mut Self, &G) + Sync) -> Self {
        let of_some = |readers: &[G]| {
            let mut found = Self::default();
            readers.iter().for_each(|reader| add(&mut found, reader));
            found
        };
        let parts: Vec<Self> = readers.par_chunks(READERS_AT_ONCE).map(of_some).collect();
        let of_all =
            |list: fn(&Self) -> &Vec<Reading>| parts.iter().map(list).map(Vec::as_slice).collect::<Vec<_>>().concat();
        Self { all: of_all(|part| &part.all), sweep: of_all(|part| &part.sweep), faces: of_all(|part| &part.faces) }
    }
}

/// Each cell once for each rank and group.
pub(crate) fn merged(level: usize, mut list: Vec<Reading>) -> Vec<(Concern, CellBox)> {
    list.par_sort_unstable();
    list.dedup();
    let apart = |of_one: &[Reading]| {
        let concern = ((of_one[0] >> 96) as u32, Key::from_morton(level as u8, (of_one[0] >> 32) as u64));
        let boxes = CellBox::apart(of_one.iter().map(|&reading| CellBox::of_code(reading as u32)).collect());
        boxes.into_iter().map(move |cells| (concern, cells))
    };
    list.par_chunk_by(|a, b| a >> 32 == b >> 32).flat_map_iter(apart).collect()
}

fn sorted(mut list: Vec<Concern>) -> Vec<Concern> {
    list.sort_by_cached_key(|(rank, key)| (*rank, key.morton()));
    list.dedup();
    list
}

fn keys(list: impl Iterator<Item = Key>) -> Vec<Key> {
    let mut keys: Vec<Key> = list.collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

fn cell_links(send: &[(Concern, CellBox)], receive: &[(Concern, CellBox)], slot: impl Fn(Key) -> u32) -> CellLinks {
    let pieces = |list: &[(Concern, CellBox)]| {
        let mut at = 0;
        let piece = |((_, key), cells): &(Concern, CellBox)| {
            let extent = std::array::from_fn(|a| cells.end[a] - cells.first[a]);
            let piece = Piece { slot: slot(*key), first: cells.first, cells: extent, at: at as _ };
            at += cells.cells();
            piece
        };
        list.iter().map(piece).collect::<Vec<Piece>>()
    };
    let units = |list: &[(Concern, CellBox)]| {
        let count = |((rank, _), cells): &(Concern, CellBox)| (*rank, cells.cells());
        list.iter().map(count).collect::<Vec<(u32, usize)>>()
    };
    let mut into_ghosts = pieces(receive);
    // as unpacking wants them; where they lie in the message says each of them
    into_ghosts.sort_by_key(|piece| piece.slot);
    CellLinks {
        send: Pieces::to_pack(pieces(send)),
        receive: Pieces::to_unpack(into_ghosts),
        peers: peers(&units(send), &units(receive)),
    }
}

fn slot_links(send: &[Concern], receive: &[Concern], slot: impl Fn(Key) -> u32) -> SlotLinks {
    let slots = |list: &[Concern]| list.iter().map(|(rank, key)| (*rank, slot(*key))).collect::<Vec<_>>();
    links_of_slots(&slots(send), &slots(receive))
}

/// Ghosts with their own children alone, as restriction takes them.
fn parents(children: &[Concern], slot: impl Fn(Key) -> u32, finer: impl Fn(Key) -> u32) -> LevelTopology {
    let parent = |key: Key| key.parent().expect("a refined level has parents");
    let ghosts = keys(children.iter().map(|(_, key)| parent(*key)));
    let mut of_children = vec![[NONE; OCTANTS]; ghosts.len()];
    for (_, key) in children {
        let g = ghosts.binary_search(&parent(*key)).expect("just listed");
        of_children[g][key.octant()] = finer(*key);
    }
    let rows = ghosts.iter().map(|&ghost| {
        let mut row = [NONE; DIRECTIONS];
        row[CENTRE] = slot(ghost);
        row
    });
    let n = ghosts.len();
    LevelTopology {
        slots: ghosts.iter().map(|&ghost| slot(ghost)).collect(),
        neighbours: rows.collect::<Vec<_>>().into_flattened().into(),
        parents: vec![NONE; n * DIRECTIONS].into(),
        octants: vec![0; n].into(),
        outside: vec![0; n].into(),
        leaves: vec![0; n].into(),
        children: of_children.into_flattened().into(),
        beyond: vec![NONE; n * OCTANTS * FACES].into(),
        ..LevelTopology::default()
    }
}
