//! What a restriction keeps and what it drops.

use super::layers::Layers;
use crate::ordered_sum::{of_first, ordered_sum};
use crate::uniform_mesh::UniformMesh;
use comove_sim::kernels::Eos;
use comove_sim::kernels::layout::{DENSITY, ENERGY, ENTROPY, GROUP, GROUP_CELLS, MOMENTUM, PATCH, cell, octant_origin};
use comove_sim::kernels::point::dual_energy::{kinetic, pressure};
use comove_sim::mesh::LeafPatch;
use comove_sim::parallel::Communicator;
use comove_sim::parallel::FIRST;
use comove_sim::{HostState, Octree};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// The account of one restriction. Amounts are means of the gas over the box, in code units.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Audit {
    /// Cells of the mesh along x, y, z.
    pub mesh_cells: [usize; 3],
    /// The level it was placed at.
    pub mesh_level: u8,
    /// On the mesh.
    pub before: Totals,
    /// On the leaf cells of the octree, from its conserved fields.
    pub after: Totals,
    /// Mean magnitude of the mesh's momentum density: what a change of the net momentum, which may be zero, is compared
    /// to.
    pub momentum_scale: f64,
    /// Kinetic energy of motions that the kept cells cannot resolve; dropped, not turned into heat.
    pub unresolved_kinetic_energy: f64,
    /// Level 0 first.
    pub levels: Vec<LevelAudit>,
}

/// Means over the box, in code units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Totals {
    /// Mass density.
    pub mass: f64,
    /// Momentum density along x, y, z.
    pub momentum: [f64; 3],
    /// Internal energy density.
    pub internal_energy: f64,
    /// Kinetic energy density.
    pub kinetic_energy: f64,
}

/// What became of a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LevelAudit {
    /// The level.
    pub level: u8,
    /// Its cells in the octree, leaf or not.
    pub cells_kept: u64,
    /// Its cells that were removed; with those kept, the whole box.
    pub cells_removed: u64,
    /// Its leaf cells.
    pub leaf_cells: u64,
}

impl Audit {
    /// Of dark matter alone, on the root.
    pub(super) fn without_gas(mesh_cells: [usize; 3], tree: &Octree, mesh_level: u8) -> Self {
        Self {
            mesh_cells,
            mesh_level,
            before: Totals::default(),
            after: Totals::default(),
            momentum_scale: 0.0,
            unresolved_kinetic_energy: 0.0,
            levels: levels(tree, mesh_level),
        }
    }

    /// Whether there is gas.
    pub fn has_gas(&self) -> bool {
        self.before.mass > 0.0
    }

    /// Largest relative change of mass, momentum (against [`Audit::momentum_scale`]) and internal energy; round-off if
    /// all is well.
    pub fn worst_change(&self) -> f64 {
        let relative =
            |before: f64, after: f64, scale: f64| if scale > 0.0 { (after - before).abs() / scale } else { 0.0 };
        let (before, after) = (&self.before, &self.after);
        (0..3)
            .map(|axis| relative(before.momentum[axis], after.momentum[axis], self.momentum_scale))
            .chain([relative(before.mass, after.mass, before.mass)])
            .chain([relative(before.internal_energy, after.internal_energy, before.internal_energy)])
            .fold(0.0, f64::max)
    }
}

impl Totals {
    /// Of a mesh: collective.
    pub(super) fn of_mesh(communicator: &Communicator, mesh: &UniformMesh) -> Self {
        let mean = |values: &Vec<f64>| mesh.mean(communicator, |i| values[i]);
        Self {
            mass: mean(&mesh.density),
            momentum: std::array::from_fn(|axis| mean(&mesh.momentum[axis])),
            internal_energy: mean(&mesh.internal_energy),
            kinetic_energy: mesh.mean(communicator, |i| mesh.kinetic_energy(i)),
        }
    }

    /// Of the leaf cells of a state, with the pressure that a run would take there: collective. The first rank adds up what
    /// ranks have found of their patches, in key order.
    ///
    /// * `whole`: the tree; `state`: the rank's part of it
    pub(super) fn of_state(
        communicator: &Communicator,
        whole: &Octree,
        layers: Layers,
        state: &HostState,
        eos: &Eos<f64>,
    ) -> Self {
        let patches: Vec<LeafPatch> = state.tree.leaf_patches().collect();
        let of_patch = |patch: &LeafPatch| {
            let cells: usize = state.tree.cells(patch.level).iter().product();
            patch_sums(state, patch, eos).map(|sum| sum / cells as f64)
        };
        let sums: Vec<[f64; 6]> = patches.par_iter().map(of_patch).collect();
        let rank_of =
            |patch: LeafPatch| layers.rank_of(patch.level as u8, patch.first_cell.map(|c| (c / GROUP) as u32)) as u32;
        let ranks: Vec<u32> = match communicator.rank() {
            FIRST => whole.leaf_patches().map(rank_of).collect(),
            _ => Vec::new(),
        };
        let [mass, x, y, z, internal_energy, kinetic_energy] = std::array::from_fn(|quantity| {
            let own: Vec<f64> = sums.iter().map(|sums| sums[quantity]).collect();
            let of_ranks = communicator.gather(FIRST, bytemuck::cast_slice(&own).to_vec());
            let sum = of_ranks.map(|of_ranks| {
                let of_ranks: Vec<Vec<f64>> = of_ranks.iter().map(|sums| bytemuck::pod_collect_to_vec(sums)).collect();
                let mut of_ranks: Vec<_> = of_ranks.into_iter().map(Vec::into_iter).collect();
                let next = |&rank: &u32| of_ranks[rank as usize].next().expect("as many patches as the rank has");
                let all: Vec<f64> = ranks.iter().map(next).collect();
                ordered_sum(all.len(), |i| all[i])
            });
            of_first(communicator, sum.as_slice())[0]
        });
        Self { mass, momentum: [x, y, z], internal_energy, kinetic_energy }
    }
}

/// Sums over the cells of a patch: mass, momenta, internal and kinetic energy density.
fn patch_sums(state: &HostState, patch: &LeafPatch, eos: &Eos<f64>) -> [f64; 6] {
    let group = state.group(patch.group);
    let group = group.as_slice().expect("a group is contiguous");
    let [x0, y0, z0] = octant_origin(patch.octant);
    let mut sums = [0.0; 6];
    for k in z0..z0 + PATCH {
        for j in y0..y0 + PATCH {
            for i in x0..x0 + PATCH {
                let at = |field: usize| group[field * GROUP_CELLS + cell(i, j, k)];
                let u = [at(DENSITY), at(MOMENTUM), at(MOMENTUM + 1), at(MOMENTUM + 2), at(ENERGY), at(ENTROPY)];
                let internal = pressure(&u, eos) / (eos.gamma - 1.0);
                for (sum, value) in sums.iter_mut().zip([u[0], u[1], u[2], u[3], internal, kinetic(&u)]) {
                    *sum += value;
                }
            }
        }
    }
    sums
}

/// Mean of |ρ̃ṽ| over a mesh: collective.
pub(super) fn momentum_scale(communicator: &Communicator, mesh: &UniformMesh) -> f64 {
    mesh.mean(communicator, |i| (0..3).map(|axis| mesh.momentum[axis][i].powi(2)).sum::<f64>().sqrt())
}

/// Cells kept and removed on the levels 0 … `mesh_level`.
pub(super) fn levels(tree: &Octree, mesh_level: u8) -> Vec<LevelAudit> {
    let leaves = tree.leaf_cells();
    (0..=mesh_level)
        .map(|level| {
            let l = usize::from(level);
            let complete: usize = tree.cells(l).iter().product();
            let cells_kept = (tree.level(l).len() * GROUP_CELLS) as u64;
            let leaf_cells = leaves.get(l).copied().unwrap_or(0);
            LevelAudit { level, cells_kept, cells_removed: complete as u64 - cells_kept, leaf_cells }
        })
        .collect()
}
