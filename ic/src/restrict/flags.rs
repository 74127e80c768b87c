//! Which groups of the next level the criteria ask for.
//!
//! A complete level of the mesh is the root of an octree of its own, and is flagged by the operation that a run uses.

use super::followed::Followed;
use super::gas_of;
use super::layers::Layers;
use crate::error::IcError;
use crate::uniform_mesh::UniformMesh;
use comove_sim::kernels::layout::{DENSITY, GROUP, GROUP_CELLS, GROUP_VALUES};
use comove_sim::kernels::{Buffer, Device};
use comove_sim::mesh::LevelGroups;
use comove_sim::mesh::rebuilt_tables;
use comove_sim::parallel::Communicator;
use comove_sim::parallel::collective_result;
use comove_sim::refinement::RefinementContext;
use comove_sim::refinement::flagged_children;
use comove_sim::{Key, Octree, SimError};
use std::ops::Range;

/// The groups of level `level` + 1 whose parent patch has a cell that meets a criterion, or has one within the flag
/// buffer along each axis (paper, section 2.1). Collective; the same on all ranks.
///
/// `mesh` is the complete level `level`, or of ranks that share it the own layers; the buffer reaches across the box's
/// faces along the axes where it is periodic. `followed`: followed particles where criteria count them.
///
/// # Errors
/// [`IcError::Sim`] if the level does not fit into memory.
pub(super) fn wanted_groups(
    (communicator, layers): (&Communicator, Layers),
    mesh: &UniformMesh,
    level: u8,
    periodic: [bool; 3],
    followed: Option<&Followed>,
    context: &RefinementContext<'_, f64>,
) -> Result<Vec<Key>, IcError> {
    let around = layers.around(communicator, mesh, level, periodic[2]);
    let own = flagged(mesh, &around, level, periodic, followed, context);
    let own: Vec<u64> = collective_result(communicator, own)?.iter().map(Key::morton).collect();
    let all = communicator.gather_all(bytemuck::cast_slice(&own));
    let places = all.iter().flat_map(|places| bytemuck::pod_collect_to_vec::<u8, u64>(places));
    Ok(Key::sorted(level + 1, &places.map(|place| Key::from_morton(level + 1, place)).collect::<Vec<_>>()))
}

/// Those that own groups ask for.
///
/// * `around`: the layers of groups beside the own ones
fn flagged(
    mesh: &UniformMesh,
    around: &[UniformMesh],
    level: u8,
    periodic: [bool; 3],
    followed: Option<&Followed>,
    context: &RefinementContext<'_, f64>,
) -> Result<Vec<Key>, IcError> {
    let groups = mesh.cells.map(|n| (n / GROUP) as u32);
    // the level as the root of a tree of its own
    let keys_in = |planes: &Range<usize>| {
        let layers = planes.start / GROUP..planes.end / GROUP;
        let rows = layers.flat_map(|z| (0..groups[1]).map(move |y| (y, z as u32)));
        Key::sorted(0, &rows.flat_map(|(y, z)| (0..groups[0]).map(move |x| Key::new(0, [x, y, z]))).collect::<Vec<_>>())
    };
    let own = keys_in(&mesh.planes);
    let (mut keys, mut fluid) = (Vec::new(), gas_of(&own, |_, cell| (mesh, mesh.index(cell)), &context.eos));
    for layer in around {
        let beside = keys_in(&layer.planes);
        fluid.extend(gas_of(&beside, |_, cell| (layer, layer.index(cell)), &context.eos));
        keys.extend(beside);
    }
    let all: Vec<Key> = own.iter().chain(&keys).copied().collect();
    let weights = followed.map(|followed| followed.deposit(&all, groups));
    let tree = Octree::share(groups, periodic, vec![own]);
    let own = tree.level(0);
    let slots: Vec<u32> = (0..own.len() as u32).collect();
    let ghosts: Vec<(Key, u32)> = keys.into_iter().zip(own.len() as u32..).collect();
    let groups = LevelGroups { own, slots: &slots, ghosts: &ghosts, known: &[] };
    let faces = context.parameters.boundary.for_kernels(context.parameters.gamma);
    let tables = rebuilt_tables(&tree, (&[], &[]), &[groups], &[groups.sites()], 0, faces).remove(0);
    let device = Device::cpu(rayon::current_num_threads()).map_err(SimError::from)?;
    // dark matter lies as the gas does
    let groups = fluid.chunks_exact(GROUP_VALUES).filter(|_| context.gas_share < 1.0);
    let matter = groups.flat_map(|group| &group[DENSITY * GROUP_CELLS..][..GROUP_CELLS]);
    let matter: Vec<f64> = matter.map(|density| density / context.gas_share).collect();
    let matter =
        (!matter.is_empty()).then(|| Buffer::from_host(&device, matter)).transpose().map_err(SimError::from)?;
    let fluid = Buffer::from_host(&device, fluid).map_err(SimError::from)?;
    let weights = weights.map(|weights| Buffer::from_host(&device, weights)).transpose().map_err(SimError::from)?;
    let masks =
        context.masks(&device, &tree, (level.into(), 0), &tables, Some(&fluid), matter.as_ref(), weights.as_ref(), 1.0);
    Ok(flagged_children(&tree, 0, &masks).into_iter().map(|key| Key::new(level + 1, key.coordinate)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use comove_sim::Clock;
    use comove_sim::kernels::Eos;
    use comove_sim::kernels::layout::PATCH;
    use comove_sim::mesh::{CLOSED, PERIODIC};
    use comove_sim::{Criterion, RunParameters};
    use proptest::prelude::*;

    /// A mesh of density 1 with density 10 in one cell.
    fn mesh_with_peak(cells: [usize; 3], peak: [usize; 3]) -> UniformMesh {
        let n = cells.iter().product();
        let mut mesh = UniformMesh {
            cells,
            planes: 0..cells[2],
            density: vec![1.0; n],
            momentum: [vec![0.0; n], vec![0.0; n], vec![0.0; n]],
            internal_energy: vec![1.0; n],
            nests: Vec::new(),
            dark_matter: None,
        };
        let index = mesh.index(peak);
        mesh.density[index] = 10.0;
        mesh
    }

    proptest! {
        /// Against the definition: the distance between the cell and the nearest cell of a patch, axis by axis.
        #[test]
        fn reach_is_distance(x in 0usize..48, y in 0usize..16, z in 0usize..32, buffer in 0u32..9) {
            let cells = [48, 16, 32];
            let mesh = mesh_with_peak(cells, [x, y, z]);
            let refine = vec![Criterion::DensityAbove { thresholds: vec![1e9, 9.0] }];
            let parameters = RunParameters { refine, flag_buffer: buffer, ..RunParameters::default() };
            let context = RefinementContext {
                parameters: &parameters,
                clock: &Clock::new(1.0, 0.0, None),
                mean_density: 1.0,
                gas_share: 1.0,
                dark_matter: None,
                root_cell_width: 1.0,
                eos: Eos::new(parameters.gamma),
            };
            let alone = (&Communicator::alone(), Layers::new(2, 1));
            for periodic in [PERIODIC, CLOSED, [false, true, false]] {
                let wanted = wanted_groups(alone, &mesh, 1, periodic, None, &context).unwrap();
                let near = |axis: usize, patch: usize, at: usize| {
                    (0..PATCH).any(|c| {
                        let distance = (patch * PATCH + c).abs_diff(at);
                        let around = if periodic[axis] { cells[axis] - distance } else { distance };
                        distance.min(around) as u32 <= buffer
                    })
                };
                for pz in 0..4 {
                    for py in 0..2 {
                        for px in 0..6 {
                            let expected = near(0, px, x) && near(1, py, y) && near(2, pz, z);
                            let key = Key::new(2, [px, py, pz].map(|c| c as u32));
                            prop_assert_eq!(wanted.contains(&key), expected, "{:?} {:?}", key, periodic);
                        }
                    }
                }
            }
            // levels beyond the list are not refined
            prop_assert!(wanted_groups(alone, &mesh, 2, PERIODIC, None, &context).unwrap().is_empty());
        }
    }
}
