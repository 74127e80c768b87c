//! Point masses on an adaptive mesh: cloud-in-cell deposition on every level, and accelerations by its inverse on the
//! finest (Hockney & Eastwood 1981).
//!
//! The box has length 1, the masses and Newton's constant are 1.

use comove_sim::State;
use comove_sim::kernels::gravity_kick::gravity_kick;
use comove_sim::kernels::layout::{DENSITY, ENERGY, ENTROPY, GROUP, GROUP_CELLS, GROUP_VALUES, MOMENTUM, PATCH, cell};
use comove_sim::kernels::{Buffer, Device, Eos, Real};
use comove_sim::mesh::nest;
use comove_sim::{HostState, Key, Octree, RunParameters, SimError};
use std::f64::consts::PI;

/// A mesh that is refined around some places, and the potential of masses there.
pub(super) struct ParticleMesh<T> {
    state: State<T>,
}

impl<T: Real> ParticleMesh<T> {
    /// Refines `levels` times where masses at these places put density, and `flag_buffer` cells around. The solver is
    /// that of `parameters`.
    ///
    /// - `root`: groups along each axis of the root level.
    /// - `places`: in [0, 1).
    ///
    /// # Errors
    /// [`SimError::Kernel`] if it does not fit.
    pub(super) fn new(
        device: Device,
        root: u32,
        levels: u8,
        places: &[[f64; 3]],
        parameters: &RunParameters,
    ) -> Result<Self, SimError> {
        let tree = tree_around(root, levels, places, parameters.flag_buffer);
        let width = 1.0 / tree.cells(0)[0] as f64;
        let parameters = RunParameters { gravity: true, ..parameters.clone() };
        Ok(Self { state: State::from_host(device, &HostState::zeros(tree), width, &parameters)? })
    }

    /// Deposits a unit mass at one of the places on every level and solves ∇²φ = 4π (ρ − ⟨ρ⟩).
    ///
    /// # Errors
    /// [`SimError::Kernel`] if the work space does not fit.
    pub(super) fn solve(&mut self, place: [f64; 3]) -> Result<(), SimError> {
        let state = &mut self.state;
        let mut fluid = vec![T::zero(); state.gas().fluid.values.len()];
        for level in 0..state.level_count() {
            let cells = state.mesh.tree.cells(level);
            let density = cells.iter().product::<usize>() as f64;
            for (place, weight) in cloud(place, cells) {
                let (key, offset) = locate(level, place);
                let group = state.mesh.tree.find(key).expect("a mass lies in cells of every level");
                let slot = state.mesh.slots[level][group] as usize;
                fluid[slot * GROUP_VALUES + DENSITY * GROUP_CELLS + offset] = T::from_f64(weight * density);
            }
        }
        state.gas_mut().fluid.values = Buffer::from_host(&state.device, fluid)?;
        state.solve_gravity(4.0 * PI, 1.0)
    }

    /// The acceleration at each of the places.
    ///
    /// # Errors
    /// [`SimError::Kernel`] if the work space does not fit.
    pub(super) fn accelerations(&self, places: &[[f64; 3]]) -> Result<Vec<[f64; 3]>, SimError> {
        let finest = self.state.level_count() - 1;
        let gas = self.kicked_gas(finest)?;
        let cells = self.state.mesh.tree.cells(finest);
        let at = |place: &[f64; 3]| {
            let mut sum = [0.0; 3];
            for (place, weight) in cloud(*place, cells) {
                let (key, offset) = locate(finest, place);
                let group = self.state.mesh.tree.find(key).expect("a mass lies in cells of the finest level");
                let slot = self.state.mesh.slots[finest][group] as usize;
                for axis in 0..3 {
                    let momentum = gas[slot * GROUP_VALUES + (MOMENTUM + axis) * GROUP_CELLS + offset];
                    sum[axis] += weight * momentum.as_f64();
                }
            }
            sum
        };
        Ok(places.iter().map(at).collect())
    }

    /// Gas of density 1 at rest after a kick of unit time on one level: its momentum is g there. `[slots, 6, 16³]`.
    fn kicked_gas(&self, level: usize) -> Result<Vec<T>, SimError> {
        let state = &self.state;
        let mut values = vec![T::zero(); state.gas().fluid.values.len()];
        for group in values.chunks_exact_mut(GROUP_VALUES) {
            for field in [DENSITY, ENERGY, ENTROPY] {
                group[field * GROUP_CELLS..][..GROUP_CELLS].fill(T::one());
            }
        }
        let mut gas = Buffer::from_host(&state.device, values)?;
        let _ = gravity_kick(
            &state.device,
            &state.mesh.tables[level],
            &state.gravity.as_ref().expect("gravity is on").potential.current,
            None,
            &mut gas,
            state.cell_width(level),
            1.0,
            &Eos::new(5.0 / 3.0),
        );
        Ok(gas.to_host())
    }
}

/// The lower cell of the eight that a mass is shared between, not wrapped, and its distance from that cell's centre in
/// cells.
fn lower_cell(place: [f64; 3], cells: [usize; 3]) -> ([i64; 3], [f64; 3]) {
    let scaled: [f64; 3] = std::array::from_fn(|axis| place[axis] * cells[axis] as f64 - 0.5);
    (scaled.map(|s| s.floor() as i64), scaled.map(|s| s - s.floor()))
}

/// The eight cells that a mass is shared between, and its parts.
fn cloud(place: [f64; 3], cells: [usize; 3]) -> [([usize; 3], f64); 8] {
    let (lower, distance) = lower_cell(place, cells);
    std::array::from_fn(|corner| {
        let upper = [0, 1, 2].map(|axis| corner >> axis & 1 == 1);
        let cell = |axis: usize| (lower[axis] + i64::from(upper[axis])).rem_euclid(cells[axis] as i64) as usize;
        let part = |axis: usize| if upper[axis] { distance[axis] } else { 1.0 - distance[axis] };
        ([cell(0), cell(1), cell(2)], part(0) * part(1) * part(2))
    })
}

/// The group of a cell of a level's lattice, and the cell's offset in it.
fn locate(level: usize, place: [usize; 3]) -> (Key, usize) {
    let [i, j, k] = place.map(|c| c % GROUP);
    (Key::new(level as u8, place.map(|c| (c / GROUP) as u32)), cell(i, j, k))
}

/// The octree whose patches are refined, level by level, where they have one of a mass's eight cells or lie within
/// `buffer` cells of one, properly nested.
fn tree_around(root: u32, levels: u8, places: &[[f64; 3]], buffer: u32) -> Octree {
    let lattice = Octree::new([root; 3], [true; 3]);
    let (patch, buffer) = (PATCH as i64, i64::from(buffer));
    let mut wanted = vec![Vec::new(); usize::from(levels) + 1];
    for level in 0..levels {
        let cells = lattice.cells(level.into());
        for place in places {
            let (lower, _) = lower_cell(*place, cells);
            let [xs, ys, zs] = lower.map(|c| (c - buffer).div_euclid(patch)..=(c + 1 + buffer).div_euclid(patch));
            for z in zs {
                for y in ys.clone() {
                    for x in xs.clone() {
                        let wrap = |axis: usize, c: i64| c.rem_euclid(cells[axis] as i64 / patch) as u32;
                        wanted[usize::from(level) + 1].push(Key::new(level + 1, [wrap(0, x), wrap(1, y), wrap(2, z)]));
                    }
                }
            }
        }
    }
    let groups = nest([root; 3], [true; 3], wanted);
    Octree::with_groups([root; 3], [true; 3], groups.into_iter().skip(1).flatten())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A mass in the corner of the box is shared across it, whole on every level, about its place.
    #[test]
    fn masses_are_shared_whole() {
        let place = [0.001, 0.999, 0.4];
        let mut mesh = mesh(2, 3, &[place]);
        mesh.solve(place).unwrap();
        let state = mesh.state.to_host();
        assert_eq!(state.tree.level_count(), 4);
        for level in 0..4 {
            let cells = state.tree.cells(level);
            let n = cells[0] as f64;
            let parts = cloud(place, cells);
            let centre: f64 = parts.iter().map(|([_, _, z], part)| part * (*z as f64 + 0.5) / n).sum();
            assert!((centre - place[2]).abs() < 1e-14, "{level}: {centre}");
            let first = state.tree.first_of_level(level);
            let groups = first..first + state.tree.level(level).len();
            let mass: f64 = groups.map(|group| state.field(group, DENSITY).sum()).sum::<f64>() / n.powi(3);
            assert!((mass - 1.0).abs() < 1e-12, "{level}: {mass}");
        }
    }

    /// On a uniform mesh deposition and force are each other's transpose: a pair's forces are opposite, and a mass does
    /// not pull itself.
    #[test]
    fn forces_on_a_uniform_mesh_are_opposite() {
        let places = [[0.21, 0.4, 0.93], [0.35, 0.47, 0.11]];
        let mut mesh = mesh(1, 0, &places);
        let [by_first, by_second] = [0, 1].map(|source| {
            mesh.solve(places[source]).unwrap();
            mesh.accelerations(&places).unwrap()
        });
        for axis in 0..3 {
            let (one, other) = (by_second[0][axis], by_first[1][axis]);
            assert!((one + other).abs() < 1e-11 * one.abs(), "{one:?} {other:?}");
            assert!(by_first[0][axis].abs() < 1e-11 && by_second[1][axis].abs() < 1e-11);
        }
    }

    fn mesh(root: u32, levels: u8, places: &[[f64; 3]]) -> ParticleMesh<f64> {
        ParticleMesh::new(Device::cpu(1).unwrap(), root, levels, places, &RunParameters::default()).unwrap()
    }
}
