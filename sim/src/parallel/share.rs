//! A rank's share of the octree: the groups that it owns, and ghost copies of others' that these read.

use crate::mesh::sites::{LevelGroups, Sites};
use crate::mesh::{Key, Octree};
use crate::parallel::coarse_links::{AllGroups, CoarseLinks};
use crate::parallel::communicator::{Communicator, Traffic};
use crate::parallel::deposits::Deposits;
use crate::parallel::ghost_exchange::GhostExchange;
use crate::parallel::links::{LevelLinks, Relations};
use crate::parallel::load_balancer::{Compared, LoadBalancer, SweepTime};
use crate::parallel::owners::Owners;
use crate::parallel::remote_groups::RemoteGroups;
use crate::records::RanksRecord;
use comove_kernels::{DeviceTable, LevelTopology};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// What a rank knows besides its own groups. With one rank alone there is nothing.
#[derive(Clone, Debug)]
pub struct Share {
    /// Who owns what.
    pub owners: Owners,
    /// Other ranks' groups near the own ones.
    pub known: RemoteGroups,
    /// Those of them that have a slot, with their slots: level by level in key order.
    pub ghosts: Vec<Vec<(Key, u32)>>,
    /// The groups of refined levels, of all ranks.
    pub all: AllGroups,
    /// Groups of each level, of all ranks together.
    pub groups: Vec<usize>,
    /// What is sent and received about each level; derived from all this.
    pub links: Vec<LevelLinks>,
    /// On the way to them.
    pub relations: Vec<Relations>,
    /// Where own particles leave mass in others' groups, where there are particles.
    pub deposits: Option<Deposits>,
    /// How fast the ranks are.
    pub load_balancer: LoadBalancer,
    /// Groups that this rank has given to others since it was last asked.
    pub moved: u64,
}

/// What a rank did in a step.
#[derive(Serialize, Deserialize)]
struct Done {
    groups: Vec<usize>,
    moved: u64,
    ghosts: u64,
    traffic: Traffic,
    sweeps: Vec<SweepTime>,
}

impl Share {
    /// Of a rank that is alone with this tree.
    pub fn alone(tree: &Octree) -> Self {
        Self {
            owners: Owners::alone(),
            known: RemoteGroups::default(),
            all: AllGroups::default(),
            ghosts: Vec::new(),
            groups: tree.groups(),
            links: Vec::new(),
            relations: Vec::new(),
            deposits: None,
            load_balancer: LoadBalancer::default(),
            moved: 0,
        }
    }

    /// With new owners of the levels finer than `kept` and these own groups, ghosts without slots as yet: collective.
    #[must_use]
    pub fn of(&self, communicator: &Communicator, owners: Owners, own: &Octree, kept: usize) -> Self {
        if owners.ranks() == 1 {
            return Self::alone(own);
        }
        let all = self.all.gathered(communicator, own, kept);
        let known = self.known.told(communicator, &owners, own, kept);
        let deposits = self.deposits.as_ref().map(|_| Deposits::of(communicator, &owners, own, &known));
        Self {
            known,
            groups: all.counts(own.root_groups()),
            all,
            deposits,
            owners,
            ghosts: Vec::new(),
            links: self.links.iter().take(kept).cloned().collect(),
            relations: Vec::new(),
            load_balancer: self.load_balancer.clone(),
            moved: self.moved,
        }
    }

    fn relations_of(&self, own: &Octree, level: usize) -> Relations {
        Relations::of(own, &self.known, level, self.deposits.is_some())
    }

    /// The ghosts that own groups of the levels from `first` on need, by level from there on. What is found out about these
    /// levels is kept for [`Share::link`].
    pub fn wanted_ghosts(&mut self, own: &Octree, first: usize) -> Vec<Vec<Key>> {
        let mut wanted = vec![Vec::new(); own.level_count()];
        if self.is_alone() {
            return wanted.split_off(first.min(own.level_count()));
        }
        self.relations.clear();
        // one call for all levels: each that comes from outside of the pool waits for threads to wake
        let levels = first.saturating_sub(1)..own.level_count();
        let of_levels: Vec<_> = levels.into_par_iter().map(|n| (n, self.relations_of(own, n))).collect();
        for (level, relations) in of_levels {
            wanted[level].extend(relations.ghosts());
            if let Some(finer) = wanted.get_mut(level + 1) {
                finer.extend(relations.finer_ghosts());
            }
            if level >= first {
                self.relations.push(relations);
            }
        }
        let mut wanted = wanted.split_off(first.min(own.level_count()));
        for keys in &mut wanted {
            keys.sort_unstable();
            keys.dedup();
        }
        wanted
    }

    /// Whether there are no other ranks.
    pub fn is_alone(&self) -> bool {
        self.owners.ranks() == 1
    }

    /// The slots of own groups and ghosts of each level.
    pub fn slots_of_levels(&self, tables: &[LevelTopology]) -> Vec<DeviceTable<u32>> {
        match self.is_alone() {
            true => tables.iter().map(|level| level.slots.clone()).collect(),
            false => self.links.iter().map(|level| level.slots.clone()).collect(),
        }
    }

    /// What the ranks did in a step in which levels took so many steps, and what this one has measured of their sweeps; none
    /// for a rank that is alone. Collective.
    pub fn record(
        &mut self,
        ghost_exchange: &GhostExchange,
        own: &Octree,
        level_steps: &[u32],
        sweeps: &[SweepTime],
    ) -> Option<RanksRecord> {
        if self.is_alone() {
            return None;
        }
        let (communicator, times) = (ghost_exchange.communicator(), ghost_exchange.take_times());
        let traffic = Traffic { exchanging: times.exchanging, waiting: times.waiting, ..communicator.take_traffic() };
        let (moved, ghosts) = (std::mem::take(&mut self.moved), self.ghost_count() as u64);
        let all =
            communicator.gather_all_of(&Done { groups: own.groups(), moved, ghosts, traffic, sweeps: sweeps.to_vec() });
        let costs = self.load_balancer.costs(all.len());
        let speed: f64 = costs.iter().map(|cost| cost.recip()).sum();
        let steps = |level: usize| level_steps.get(level).map_or(0.0, |&steps| f64::from(steps));
        let load = |(rank, cost): (&Done, &f64), level: usize| rank.groups[level] as f64 * cost;
        let busiest = |level: usize| all.iter().zip(&costs).map(|rank| load(rank, level)).fold(0.0, f64::max);
        let levels = 0..own.level_count();
        let longest: f64 = levels.clone().map(|level| steps(level) * busiest(level)).sum();
        let even: f64 = levels.map(|level| steps(level) * self.groups[level] as f64).sum::<f64>() / speed;
        let compared = Compared::of(&all.iter().map(|rank| rank.sweeps.as_slice()).collect::<Vec<_>>());
        self.load_balancer.add(compared.as_ref().map(|compared| compared.costs.clone()));
        Some(RanksRecord {
            count: all.len(),
            imbalance: longest / even - 1.0,
            sweep_imbalance: compared.map(|compared| compared.imbalance),
            costs,
            moved_groups: all.iter().map(|rank| rank.moved).sum(),
            ghosts: all.iter().map(|rank| rank.ghosts).sum(),
            traffic: all.iter().map(|rank| rank.traffic).collect(),
        })
    }

    /// Groups that have a slot besides the own ones.
    pub fn ghost_count(&self) -> usize {
        self.ghosts.iter().map(Vec::len).sum::<usize>() + self.deposit_slots().count()
    }

    /// Bytes of the tables that others' groups need on a device.
    pub(crate) fn table_bytes(&self) -> usize {
        self.links.iter().map(|links| links.coarse.bytes()).sum()
    }

    /// Slots of groups that own particles leave mass in and that have no ghost.
    pub(crate) fn deposit_slots(&self) -> impl Iterator<Item = u32> {
        self.deposits.iter().flat_map(Deposits::groups).map(|(_, slot)| slot)
    }

    /// Own groups, which lie in these slots, and others', level by level.
    ///
    /// # Panics
    /// If a level has another number of slots than of own groups.
    pub fn level_groups<'a>(&'a self, own: &'a Octree, slots: &'a [Vec<u32>]) -> Vec<LevelGroups<'a>> {
        let of_level = |level: usize| {
            let (own, slots) = (own.level(level), slots[level].as_slice());
            assert_eq!(slots.len(), own.len(), "one slot for each group of level {level}");
            let ghosts = self.ghosts.get(level).map_or(&[][..], Vec::as_slice);
            LevelGroups { own, slots, ghosts, known: self.known.level(level) }
        };
        (0..own.level_count()).map(of_level).collect()
    }

    /// Makes the links of the levels from `first` on.
    ///
    /// * `tables`, `sites`: of these levels' groups
    pub fn link(&mut self, own: &Octree, tables: &[LevelTopology], sites: &[Sites], first: usize) {
        self.links.truncate(first);
        let none = Default::default();
        // found out already, or of a tree that ranks have come back to
        let mut found = std::mem::take(&mut self.relations);
        if found.is_empty() {
            found = (first..own.level_count()).map(|level| self.relations_of(own, level)).collect();
        }
        assert_eq!(found.len(), own.level_count() - first, "relations of the levels from {first} on");
        let of_level = |(n, relations): (usize, Relations)| {
            let level = first + n;
            let ghosts = self.ghosts.get(level).into_iter().flatten().map(|(key, _)| key);
            let mut links = relations.links(own, level, ghosts, &sites[level], sites.get(level + 1).unwrap_or(&none));
            if level > 0 {
                links.coarse =
                    CoarseLinks::of(own, level, &tables[level], &links.beside_keys, &sites[level], &self.all);
            }
            links
        };
        let links: Vec<LevelLinks> = found.into_par_iter().enumerate().map(of_level).collect();
        self.links.extend(links);
    }
}
