//! From a uniform mesh to the octree: placed at its level, averaged down to level 0, thinned to what criteria keep.
//!
//! Averages are of density, momentum and *internal* energy; the total energy and the entropy scalar are rebuilt on
//! every level. Averaging the total energy would turn the kinetic energy that a coarser mesh cannot resolve into heat.
//!
//! Ranks that share a mesh have layers of root groups along z each ([`planes`]), with all that lies in them. Of the layers
//! beside its own a rank is sent the gas of the level that is being flagged. Which groups are flagged all ranks know, and
//! each finds out by itself what nests.

mod audit;
mod flags;
mod followed;
mod layers;

pub use audit::{Audit, LevelAudit, Totals};

use crate::error::IcError;
use crate::format::Part;
use crate::uniform_mesh::{DarkMatter, NestedGas, UniformMesh};
use comove_sim::Clock;
use comove_sim::kernels::Eos;
use comove_sim::kernels::layout::{GROUP, GROUP_CELLS, GROUP_VALUES, cell};
use comove_sim::mesh::nest;
use comove_sim::parallel::Communicator;
use comove_sim::refinement::RefinementContext;
use comove_sim::{Cosmology, HostParticles, HostState, Key, Octree, RunParameters};
use followed::Followed;
use layers::Layers;
use rayon::prelude::*;
use std::ops::Range;

/// By how much the mean density of gas may differ from its share of all matter.
const MEAN_DENSITY: f64 = 1e-3;

/// Finest level at which a mesh can be placed.
const FINEST_LEVEL: u8 = 12;

/// The planes along z of a mesh of `cells` at `level` that one of so many ranks is to have for [`restrict`].
///
/// # Errors
/// [`IcError::Parameter`] for a mesh whose extents do not fit the level.
pub fn planes(cells: [usize; 3], level: u8, rank: usize, ranks: usize) -> Result<Range<usize>, IcError> {
    let root = root_groups(cells, level)?;
    let Range { start, end } = Layers::new(root[2] as usize, ranks).of(rank, level);
    Ok(start * GROUP..end * GROUP)
}

/// The part of a file that one of several ranks is to read for [`restrict`]: its [`planes`], and rows of particles that are on
/// no lattice. A rank without planes has no particles either, because where the first rank has the whole octree a run takes
/// nothing from the others.
///
/// # Errors
/// As of [`planes`].
pub fn part(cells: [usize; 3], level: u8, rank: usize, ranks: usize) -> Result<Part, IcError> {
    let layers = root_groups(cells, level)?[2] as usize;
    Ok(Part::of_planes(planes(cells, level, rank, ranks)?, rank, ranks.min(layers)))
}

/// Places `mesh` at `level` of the octree and restricts it down to level 0. Collective.
///
/// Level ℓ's cells are twice as wide as level ℓ+1's, so the root has `mesh.cells`/2^level cells; each axis needs a
/// multiple of 16 there. Of the levels 1 … min(`level`, `max_level`) those groups are kept that a criterion asks for
/// (`refine`, with `flag_buffer` cells around a cell that meets it), those that finer kept groups stand on, and those
/// that proper nesting asks for ([`nest`]). Everything else is removed, from fine to coarse; a removed patch lives on
/// as the average in its parent. Of finer levels those groups are kept that nested gas has cells of
/// ([`UniformMesh::nests`]), with the values of the coarser mesh in their other cells; coarser cells below nested gas get its
/// averages. All other finer patches are left to the run's first regrid, and where there is dark matter alone all finer ones
/// than the root's.
///
/// `box_length` (along x, code length) and `clock` are what criteria may look at besides the gas. Returns the state, in
/// key order, or a rank's part of it, and the audit of what all of it keeps. From `parameters` the axes along which the box is periodic (`boundary`), the
/// refinement (`max_level`, `refine`, `flag_buffer`), 4πG in non-comoving coordinates and the gas (`gamma`, `eta` and floors) are
/// used.
///
/// # Errors
/// [`IcError::Parameter`] for a mesh whose extents do not fit the level; [`IcError::Cell`] for a cell that is not
/// finite and positive; [`IcError::Sim`] if a level does not fit into memory. On all ranks.
///
/// # Panics
/// If the mesh is not on this rank's [`planes`]: the caller's bug.
pub fn restrict(
    communicator: &Communicator,
    mut mesh: UniformMesh,
    level: u8,
    box_length: f64,
    clock: &Clock,
    parameters: &RunParameters,
    progress: &dyn Fn(&str, f64),
) -> Result<(HostState, Audit), IcError> {
    let (rank, ranks) = (communicator.rank(), communicator.size());
    let root = root_groups(mesh.cells, level)?;
    assert_eq!(mesh.planes, planes(mesh.cells, level, rank, ranks)?, "the planes of rank {rank}");
    for (n, nest) in (1..).zip(&mesh.nests) {
        let own = nest.region[2].positions(&(mesh.planes.start << n..mesh.planes.end << n));
        assert_eq!(nest.gas.planes, own, "the planes of rank {rank} at nested mesh {n}");
    }
    let layers = Layers::new(root[2] as usize, ranks);
    mesh.check(communicator)?;
    let root_cell_width = box_length / (root[0] as usize * GROUP) as f64;
    let has_gas = mesh.has_gas(communicator);
    let nests = averaged_nests(&mut mesh);
    let width = root_cell_width * (1.0 / f64::from(1u32 << level));
    let particles = take_dark_matter(communicator, &mut mesh, has_gas, width, clock.cosmology())?;
    let dark_matter = particles.as_ref().map(|particles| particles.header_of_all(communicator));
    let periodic = parameters.boundary.periodic();
    // those of a rank among others may be in groups of any: a run brings them to their owners
    let placed = |particles: Option<HostParticles>, tree: &Octree| match ranks {
        1 => particles.map(|particles| particles.in_file_order(tree)),
        _ => particles,
    };
    if !has_gas {
        // the run refines the root where its particles ask for it
        let tree = Octree::new(root, periodic);
        let own = Octree::share(root, periodic, vec![layers.share(rank, tree.level(0))]);
        let state = HostState { particles: placed(particles, &own), ..HostState::without_fields(own) };
        progress("restriction", 1.0);
        return Ok((state, Audit::without_gas(mesh.cells, &tree, level)));
    }
    progress("averaging", 0.0);
    let before = Totals::of_mesh(communicator, &mesh);
    let momentum_scale = audit::momentum_scale(communicator, &mesh);
    let (mesh_cells, mut levels) = (mesh.cells, vec![mesh]);
    for done in 0..level {
        let coarser = coarsen(&levels[levels.len() - 1]);
        // Data finer than the run may refine is only averaged.
        if level - done > parameters.max_level {
            levels.pop();
        }
        levels.push(coarser);
    }
    levels.reverse();

    progress("refinement", 0.4);
    let eos = parameters.eos();
    // beside dark matter the mean of all matter is 1
    let gas_share = if dark_matter.is_some() { before.mass } else { 1.0 };
    let mean_density = before.mass / gas_share;
    let context = RefinementContext { parameters, clock, mean_density, gas_share, dark_matter, root_cell_width, eos };
    let gas = Levels { levels, nests };
    let kept = kept_groups((communicator, layers), &gas, root, particles.as_ref(), &context)?;
    let tree = Octree::with_groups(root, periodic, kept);
    progress("octree", 0.5);
    let own = (0..tree.level_count()).map(|level| layers.share(rank, tree.level(level))).collect();
    let mut state = fill(Octree::share(root, periodic, own), &gas, &eos);
    state.particles = placed(particles, &state.tree);
    progress("audit", 0.8);
    let after = Totals::of_state(communicator, &tree, layers, &state, &eos);
    let audit = Audit {
        mesh_cells,
        mesh_level: level,
        unresolved_kinetic_energy: before.kinetic_energy - after.kinetic_energy,
        before,
        after,
        momentum_scale,
        levels: audit::levels(&tree, level + gas.nests.len() as u8),
    };
    progress("restriction", 1.0);
    Ok((state, audit))
}

/// Takes the dark matter of a mesh with cells of this width: all of the mean matter density that the gas lacks. Collective.
///
/// # Errors
/// [`IcError::Parameter`] where that is nothing, or not what the cosmology says.
pub fn take_dark_matter(
    communicator: &Communicator,
    mesh: &mut UniformMesh,
    has_gas: bool,
    width: f64,
    cosmology: Option<&Cosmology>,
) -> Result<Option<HostParticles>, IcError> {
    if !communicator.any(mesh.dark_matter.is_some()) {
        return Ok(None);
    }
    let refuse = |name, value: String, reason: String| Err(IcError::Parameter { name, value, reason });
    let lengths = mesh.cells.map(|n| n as f64 * width);
    // of the mean density, with the mass of a particle of class 0
    let volume = match &mesh.dark_matter {
        Some(DarkMatter::Set(set)) => lengths.iter().product::<f64>() / set.mass(communicator) as f64,
        _ => width.powi(3),
    };
    if !has_gas {
        return Ok(mesh.take_particles(lengths, volume));
    }
    let gas = mesh.mean(communicator, |n| mesh.density[n]);
    let expected = cosmology.map_or(0.0, Cosmology::baryon_fraction);
    let matter = cosmology.map_or("omega_m", Cosmology::omega_cb_name);
    if (gas - expected).abs() > MEAN_DENSITY || expected >= 1.0 {
        let reason = format!(
            "the gas of a run with dark matter must have omega_b/{matter} = {expected} of the mean matter \
                     density"
        );
        return refuse("mean density of the gas", gas.to_string(), reason);
    }
    Ok(mesh.take_particles(lengths, (1.0 - gas) * volume))
}

/// Groups along each axis of the root below a mesh at `level`.
fn root_groups(cells: [usize; 3], level: u8) -> Result<[u32; 3], IcError> {
    if level > FINEST_LEVEL {
        let reason = format!("must be at most {FINEST_LEVEL} for an initial condition");
        return Err(IcError::Parameter { name: "level", value: level.to_string(), reason });
    }
    let unit = GROUP << level;
    if cells.iter().any(|n| *n == 0 || n % unit != 0) {
        let reason = format!("at level {level} every axis needs a multiple of 16·2^{level} = {unit} cells");
        return Err(IcError::Parameter { name: "cells", value: format!("{cells:?}"), reason });
    }
    Ok(cells.map(|n| (n / unit) as u32))
}

/// The mesh of half as many cells along each axis: means of 2³ cells.
fn coarsen(fine: &UniformMesh) -> UniformMesh {
    let cells = fine.cells.map(|n| n / 2);
    let [nx, ny, _] = cells;
    let planes = fine.planes.start / 2..fine.planes.end / 2;
    let row = fine.cells[0];
    let plane = row * fine.cells[1];
    let mean = |values: &Vec<f64>| {
        let mut out = vec![0.0; nx * ny * planes.len()];
        out.par_chunks_mut(nx).enumerate().for_each(|(n, line)| {
            let first = 2 * (n / ny) * plane + 2 * (n % ny) * row;
            for (i, value) in line.iter_mut().enumerate() {
                // Pairwise, so that mirrored data has mirrored averages bit for bit.
                let pair = |offset: usize| values[offset + 2 * i] + values[offset + 2 * i + 1];
                let lower = pair(first) + pair(first + row);
                let upper = pair(first + plane) + pair(first + plane + row);
                *value = 0.125 * (lower + upper);
            }
        });
        out
    };
    UniformMesh {
        cells,
        nests: Vec::new(),
        dark_matter: None,
        planes: planes.clone(),
        density: mean(&fine.density),
        momentum: std::array::from_fn(|axis| mean(&fine.momentum[axis])),
        internal_energy: mean(&fine.internal_energy),
    }
}

/// Gas by levels of the octree.
struct Levels {
    /// Complete ones, the root first.
    levels: Vec<UniformMesh>,
    /// Parts of the next finer ones.
    nests: Vec<NestedGas>,
}

impl Levels {
    /// The mesh and the offset that have the gas of a cell: that of a coarser level where a part lacks it.
    fn find(&self, level: u8, mut cell: [usize; 3]) -> (&UniformMesh, usize) {
        let finest = self.levels.len() - 1;
        for nest in self.nests[..usize::from(level).saturating_sub(finest)].iter().rev() {
            if let Some(index) = nest.index(cell) {
                return (&nest.gas, index);
            }
            cell = cell.map(|c| c / 2);
        }
        let mesh = &self.levels[usize::from(level).min(finest)];
        (mesh, mesh.index(cell))
    }

    /// Groups of a part of a level.
    fn groups(nest: &NestedGas, level: u8) -> Vec<Key> {
        let along = nest.region.map(|span| {
            let span = span.in_blocks(GROUP);
            (0..span.count / GROUP).map(move |n| (span.cell(n * GROUP) / GROUP) as u32)
        });
        let [x, y, z] = along;
        let planes = z.flat_map(|z| y.clone().map(move |y| (y, z)));
        Key::sorted(
            level,
            &planes.flat_map(|(y, z)| x.clone().map(move |x| Key::new(level, [x, y, z]))).collect::<Vec<_>>(),
        )
    }
}

/// Takes the nested gas of a mesh, and gives the cells below it its averages, from fine to coarse.
fn averaged_nests(mesh: &mut UniformMesh) -> Vec<NestedGas> {
    let mut nests = std::mem::take(&mut mesh.nests);
    for n in (0..nests.len()).rev() {
        let (coarser, finer) = nests.split_at_mut(n);
        let average = coarsen(&finer[0].gas);
        for index in 0..average.cell_count() {
            // parts begin at even cells
            let [i, j, k] = average.cell(index).map(|c| 2 * c);
            let fine = &finer[0];
            let cell = fine.cell(fine.gas.index([i, j, k])).map(|c| c / 2);
            let (target, at) = match coarser.last_mut() {
                Some(nest) => {
                    let at = nest.index(cell).expect("a part lies inside the coarser one");
                    (&mut nest.gas, at)
                }
                None => {
                    let at = mesh.index(cell);
                    (&mut *mesh, at)
                }
            };
            target.density[at] = average.density[index];
            (0..3).for_each(|axis| target.momentum[axis][at] = average.momentum[axis][index]);
            target.internal_energy[at] = average.internal_energy[index];
        }
    }
    nests
}

/// The refined groups that stay: flagged, with gas of finer meshes, under finer ones, or asked for by nesting.
fn kept_groups(
    (communicator, layers): (&Communicator, Layers),
    gas: &Levels,
    root: [u32; 3],
    particles: Option<&HostParticles>,
    context: &RefinementContext<'_, f64>,
) -> Result<impl Iterator<Item = Key> + use<>, IcError> {
    let periodic = context.parameters.boundary.periodic();
    let followed = Followed::gather(communicator, layers, particles, context);
    let mut wanted = vec![Vec::new()];
    for (level, mesh) in gas.levels[..gas.levels.len() - 1].iter().enumerate() {
        let ranks = (communicator, layers);
        wanted.push(flags::wanted_groups(ranks, mesh, level as u8, periodic, followed.as_ref(), context)?);
    }
    for (nest, level) in gas.nests.iter().zip(gas.levels.len()..) {
        if level <= usize::from(context.parameters.max_level) {
            wanted.push(Levels::groups(nest, level as u8));
        }
    }
    Ok(nest(root, periodic, wanted).into_iter().skip(1).flatten())
}

/// All groups of the tree with the gas of their level.
fn fill(tree: Octree, gas: &Levels, eos: &Eos<f64>) -> HostState {
    let keys: Vec<Key> = tree.keys().collect();
    let fluid = gas_of(&keys, |key, cell| gas.find(key.level, cell), eos);
    HostState { fluid, ..HostState::without_fields(tree) }
}

/// The gas of groups, `[groups, 6, 16, 16, 16]`; energy and entropy scalar rebuilt from the internal energy.
///
/// * `find`: the mesh and the offset that have the gas of a cell of a group's level
fn gas_of<'m>(
    keys: &[Key],
    find: impl Fn(Key, [usize; 3]) -> (&'m UniformMesh, usize) + Sync,
    eos: &Eos<f64>,
) -> Vec<f64> {
    let mut fluid = vec![0.0; keys.len() * GROUP_VALUES];
    fluid.par_chunks_mut(GROUP_VALUES).zip(keys).for_each(|(group, &key)| {
        let [x0, y0, z0] = key.coordinate.map(|c| c as usize * GROUP);
        for k in 0..GROUP {
            for j in 0..GROUP {
                for i in 0..GROUP {
                    let (mesh, index) = find(key, [x0 + i, y0 + j, z0 + k]);
                    let (density, internal) = (mesh.density[index], mesh.internal_energy[index]);
                    let values = [
                        density,
                        mesh.momentum[0][index],
                        mesh.momentum[1][index],
                        mesh.momentum[2][index],
                        internal + mesh.kinetic_energy(index),
                        eos.entropy(density, (eos.gamma - 1.0) * internal),
                    ];
                    for (field, value) in values.into_iter().enumerate() {
                        group[field * GROUP_CELLS + cell(i, j, k)] = value;
                    }
                }
            }
        }
    });
    fluid
}

#[cfg(test)]
mod tests;
