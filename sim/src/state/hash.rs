//! Hashes of the state: equal bits have equal hashes, on any number of ranks.

use super::State;
use crate::mesh::Key;
use comove_kernels::Real;

impl<T: Real> State<T> {
    /// The hashes of the own groups.
    fn own_hashes(&self) -> Vec<(Key, u64)> {
        let mut groups = Vec::with_capacity(self.mesh.tree.group_count());
        for level in 0..self.level_count() {
            let tables = &self.mesh.tables[level];
            let of_gas = self.gas.as_ref().map(|gas| gas.hashes(&self.device, tables));
            let hashes = of_gas.unwrap_or_else(|| vec![0; tables.len()]);
            groups.extend(self.mesh.tree.level(level).iter().copied().zip(hashes));
        }
        groups
    }

    /// The hash of each group's gas, scalars included (0 without gas), on all ranks, in key order: collective.
    pub(crate) fn group_hashes(&self) -> Vec<(Key, u64)> {
        let own = self.own_hashes();
        if self.exchange.communicator.size() == 1 {
            return own;
        }
        let all = self.exchange.communicator.gather_all(&serde_json::to_vec(&own).expect("numbers"));
        let of_rank =
            |bytes: &Vec<u8>| serde_json::from_slice::<Vec<(Key, u64)>>(bytes).expect("what was just written");
        let mut groups: Vec<(Key, u64)> = all.iter().flat_map(of_rank).collect();
        groups.sort_unstable();
        groups
    }

    /// The hash of all groups and particles: their hashes, those of groups mixed with their keys, added in any order.
    /// Collective.
    pub(crate) fn hash(&self) -> u64 {
        let mut total = [self.own_hashes().into_iter().fold(0, |total: u64, (key, hash)| {
            let key = key.morton() << 5 | u64::from(key.level);
            total.wrapping_add((hash ^ key.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_mul(hash | 1))
        })];
        if let Some(dark_matter) = &self.dark_matter {
            total[0] = total[0].wrapping_add(dark_matter.hash(&self.device));
        }
        self.exchange.communicator.sum(&mut total);
        total[0]
    }
}
