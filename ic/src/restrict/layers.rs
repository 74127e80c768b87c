//! Which layers of groups along z each rank has while it restricts a mesh, and those beside its own.

use crate::slab::part;
use crate::uniform_mesh::UniformMesh;
use comove_sim::Key;
use comove_sim::kernels::layout::GROUP;
use comove_sim::parallel::Communicator;
use std::ops::Range;

/// Of messages.
const TAG: u32 = 6;

/// Layers of root groups dealt out evenly; those of finer levels go with the layer that they lie in. With more ranks than
/// root layers some have none.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layers {
    /// Layers of the root.
    root: usize,
    ranks: usize,
}

impl Layers {
    /// Of so many root layers.
    pub(super) fn new(root: usize, ranks: usize) -> Self {
        Self { root, ranks }
    }

    /// The layers of groups of a level that a rank has.
    pub(super) fn of(self, rank: usize, level: u8) -> Range<usize> {
        let Range { start, end } = part(self.root, 1, rank, self.ranks);
        start << level..end << level
    }

    /// The rank that has a group.
    pub(super) fn rank_of(self, level: u8, coordinate: [u32; 3]) -> usize {
        self.rank_of_layer(level, coordinate[2] as usize)
    }

    /// Of groups in key order, those that a rank has.
    pub(super) fn share(self, rank: usize, keys: &[Key]) -> Vec<Key> {
        keys.iter().copied().filter(|key| self.rank_of(key.level, key.coordinate) == rank).collect()
    }

    fn rank_of_layer(self, level: u8, layer: usize) -> usize {
        // the first ranks have one more than the others
        let (layer, each, longer) = (layer >> level, self.root / self.ranks, self.root % self.ranks);
        let before = longer * (each + 1);
        if layer < before { layer / (each + 1) } else { longer + (layer - before) / each }
    }

    /// Ranks with cells of a particle's cloud in their own layers or in the layers beside them.
    ///
    /// * `z`: position of the particle in 2⁻³² of the box
    pub(super) fn ranks_near(self, z: u32) -> Vec<usize> {
        let layer = ((u64::from(z) * self.root as u64) >> 32) as usize;
        // the cloud reaches into the next layer, which others have beside theirs
        let around = (0..5).map(|n| (layer + 2 * self.root + n - 2) % self.root);
        let mut ranks: Vec<usize> = around.map(|layer| self.rank_of_layer(0, layer)).collect();
        ranks.sort_unstable();
        ranks.dedup();
        ranks
    }

    /// The layers of others that lie beside those of a rank.
    fn beside(self, rank: usize, level: u8, periodic: bool) -> Vec<usize> {
        let (own, all) = (self.of(rank, level), self.root << level);
        if own.is_empty() {
            return Vec::new();
        }
        let before = own.start.checked_sub(1).or(periodic.then(|| all - 1));
        let behind = if own.end < all { Some(own.end) } else { periodic.then_some(0) };
        let mut beside: Vec<usize> = before.into_iter().chain(behind).filter(|layer| !own.contains(layer)).collect();
        beside.dedup();
        beside
    }

    /// The layers of groups beside this rank's, each as a mesh of 16 planes, from the ranks that have them. Collective.
    ///
    /// * `mesh`: the own planes of the complete level; `periodic`: whether the box is so along z
    pub(super) fn around(
        self,
        communicator: &Communicator,
        mesh: &UniformMesh,
        level: u8,
        periodic: bool,
    ) -> Vec<UniformMesh> {
        let values = mesh.cells[0] * mesh.cells[1] * GROUP;
        let own = self.of(communicator.rank(), level);
        let packed = |layer: usize| {
            let at = (layer - own.start) * values;
            mesh.fields().map(|field| field[at..at + values].to_vec()).concat()
        };
        let asked = |rank: usize| self.beside(rank, level, periodic).into_iter().filter(|layer| own.contains(layer));
        let others = (0..self.ranks).filter(|&rank| rank != communicator.rank());
        let sent: Vec<(usize, Vec<f64>)> = others
            .flat_map(|rank| asked(rank).map(move |layer| (rank, layer)))
            .map(|(rank, layer)| (rank, packed(layer)))
            .collect();
        let sends: Vec<(usize, &[u8])> =
            sent.iter().map(|(rank, layer)| (*rank, bytemuck::cast_slice(layer))).collect();
        let beside = self.beside(communicator.rank(), level, periodic);
        let mut received: Vec<Vec<f64>> = vec![vec![0.0; 5 * values]; beside.len()];
        let owners = beside.iter().map(|&layer| self.rank_of_layer(level, layer));
        let mut receives: Vec<(usize, &mut [u8])> =
            owners.zip(&mut received).map(|(rank, layer)| (rank, bytemuck::cast_slice_mut(layer))).collect();
        communicator.communicate(TAG, &sends, &mut receives, || ());
        let of_layer = |(layer, fields): (usize, Vec<f64>)| {
            let field = |n: usize| fields[n * values..(n + 1) * values].to_vec();
            UniformMesh {
                cells: mesh.cells,
                planes: layer * GROUP..(layer + 1) * GROUP,
                density: field(0),
                momentum: [field(1), field(2), field(3)],
                internal_energy: field(4),
                nests: Vec::new(),
                dark_matter: None,
            }
        };
        beside.into_iter().zip(received).map(of_layer).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_of_others_lie_beside_the_own() {
        let three = Layers::new(5, 3);
        assert_eq!([0, 1, 2].map(|rank| three.of(rank, 1)), [0..4, 4..8, 8..10]);
        assert_eq!(
            (0..10).map(|layer| three.rank_of_layer(1, layer)).collect::<Vec<_>>(),
            [0, 0, 0, 0, 1, 1, 1, 1, 2, 2]
        );
        assert_eq!([0, 1, 2].map(|rank| three.beside(rank, 1, true)), [vec![9, 4], vec![3, 8], vec![7, 0]]);
        assert_eq!([0, 1, 2].map(|rank| three.beside(rank, 1, false)), [vec![4], vec![3, 8], vec![7]]);
        // the one beside it on both sides, and ranks without layers
        let many = Layers::new(2, 4);
        assert_eq!([0, 1, 2, 3].map(|rank| many.beside(rank, 0, true)), [vec![1], vec![0], vec![], vec![]]);
        assert_eq!(many.rank_of_layer(0, 1), 1);
        assert!(Layers::new(1, 1).beside(0, 0, true).is_empty());
    }
}
