//! Ghost values on the host processor.

use super::coarse::{CoarseBlock, beyond};
use super::{GHOST_CELLS, GhostOrigin, TimedPotential, face_axes, strides};
use crate::device::isa::{Isa, Kernel, compiled_here};
use crate::layout::{CENTRE, FACE_CELLS, FACES, GROUP, GROUP_CELLS, direction};
use crate::level::level_topology::{LevelTopology, NONE};
use crate::real::Real;
use rayon::prelude::*;

pub(super) fn potential_ghosts<T: Real>(
    isa: Isa,
    tables: &LevelTopology,
    origin: GhostOrigin,
    potential: &[T],
    coarse: Option<&TimedPotential<T>>,
    ghosts: &mut [T],
) {
    ghosts.par_chunks_exact_mut(GHOST_CELLS).take(tables.len()).enumerate().for_each(|(g, ghosts)| {
        isa.run(Gather { tables, g, origin, potential, coarse, ghosts });
    });
}

/// The ghost values of one group as work of its own.
struct Gather<'a, T> {
    tables: &'a LevelTopology,
    g: usize,
    origin: GhostOrigin,
    potential: &'a [T],
    coarse: Option<&'a TimedPotential<'a, T>>,
    ghosts: &'a mut [T],
}

compiled_here!(Gather<'static, f32>, Gather<'static, f64>);

impl<T: Real> Kernel for Gather<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        gather(self.tables, self.g, self.origin, self.potential, self.coarse, self.ghosts);
    }
}

/// Fills `ghosts`, `[6, 16, 16]`, of group `g` from `potential`, `[slots, 16, 16, 16]`, and the coarser level's values
/// from `coarse` if it is given.
#[inline(always)]
pub(crate) fn gather<T: Real>(
    tables: &LevelTopology,
    g: usize,
    origin: GhostOrigin,
    potential: &[T],
    coarse: Option<&TimedPotential<T>>,
    ghosts: &mut [T],
) {
    let row = tables.row(g);
    let outside = tables.outside[g];
    let is_root = tables.parent_row(g)[CENTRE] == NONE;
    let mut block = None;
    for face in 0..FACES {
        let ghosts = &mut ghosts[face * FACE_CELLS..][..FACE_CELLS];
        let sibling = match origin {
            GhostOrigin::Coarse => NONE,
            _ if outside >> face & 1 == 1 => NONE,
            GhostOrigin::Sibling => row[face_direction(face)],
        };
        if sibling != NONE {
            facing_cells(&potential[sibling as usize * GROUP_CELLS..][..GROUP_CELLS], face, ghosts);
        } else if is_root {
            cells_beyond(&potential[tables.slots[g] as usize * GROUP_CELLS..][..GROUP_CELLS], face, ghosts);
        } else {
            let load = || CoarseBlock::load(tables.parent_row(g), tables.octants[g], outside, potential, coarse);
            block.get_or_insert_with(load).face(face, ghosts);
        }
    }
}

/// Continues a group's cells across a face of the domain by one cell, on the parabola through the last three.
#[inline(always)]
fn cells_beyond<T: Real>(cells: &[T], face: usize, ghosts: &mut [T]) {
    let axis = face / 2;
    let normal = strides(GROUP)[axis];
    let [a, b] = face_axes(axis).map(|other| strides(GROUP)[other]);
    let layer = |depth: usize| if face & 1 == 0 { depth * normal } else { (GROUP - 1 - depth) * normal };
    for n in 0..GROUP {
        for m in 0..GROUP {
            let [first, second, third] = [0, 1, 2].map(|depth| cells[layer(depth) + n * b + m * a]);
            ghosts[n * GROUP + m] = beyond(first, second, third);
        }
    }
}

/// The row entry of the neighbour across a face.
pub(crate) const fn face_direction(face: usize) -> usize {
    let sign = if face & 1 == 0 { -1 } else { 1 };
    match face / 2 {
        0 => direction(sign, 0, 0),
        1 => direction(0, sign, 0),
        _ => direction(0, 0, sign),
    }
}

/// Sets the ghosts of a face to the neighbour's cells across it.
#[inline(always)]
fn facing_cells<T: Real>(neighbour: &[T], face: usize, ghosts: &mut [T]) {
    let axis = face / 2;
    let [a, b] = face_axes(axis).map(|other| strides(GROUP)[other]);
    let layer = if face & 1 == 0 { GROUP - 1 } else { 0 };
    let first = layer * strides(GROUP)[axis];
    for n in 0..GROUP {
        let ghosts = &mut ghosts[n * GROUP..][..GROUP];
        if a == 1 {
            ghosts.copy_from_slice(&neighbour[first + n * b..][..GROUP]);
        } else {
            for m in 0..GROUP {
                ghosts[m] = neighbour[first + n * b + m * a];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{DIRECTIONS, cell};

    /// One fine group in octant 6 of a lone periodic coarse group.
    fn lone_child() -> LevelTopology {
        let mut neighbours = vec![NONE; DIRECTIONS];
        neighbours[CENTRE] = 1;
        LevelTopology {
            slots: vec![1].into(),
            neighbours: neighbours.into(),
            parents: vec![0; DIRECTIONS].into(),
            octants: vec![6].into(),
            outside: vec![0].into(),
            leaves: vec![0xff].into(),
            ..LevelTopology::default()
        }
    }

    /// Between two times the ghost values are those of the potential interpolated in time, wherever the two are kept.
    #[test]
    fn coarse_values_are_interpolated_in_time() {
        let device = crate::Device::cpu(1).unwrap();
        let at =
            |t: f64| -> Vec<f64> { (0..GROUP_CELLS).map(|c| (0.01 * c as f64).sin() + t * (c % 7) as f64).collect() };
        let kept = |t: f64| crate::Buffer::from_host(&device, [vec![f64::NAN; GROUP_CELLS], at(t)].concat()).unwrap();
        let (from, to) = (kept(0.0), kept(1.0));
        let stale = vec![1e30; 2 * GROUP_CELLS];
        let places = vec![1, NONE].into();
        for weight in [0.0, 0.5, 1.0] {
            let timed = TimedPotential { from: &from, to: &to, places: &places, weight };
            let (mut ghosts, mut expected) = (vec![0.0; GHOST_CELLS], vec![0.0; GHOST_CELLS]);
            gather(&lone_child(), 0, GhostOrigin::Coarse, &stale, Some(&timed), &mut ghosts);
            let now = [at(weight), vec![0.0; GROUP_CELLS]].concat();
            gather(&lone_child(), 0, GhostOrigin::Coarse, &now, None, &mut expected);
            let worst = ghosts.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            // a few roundings of values below 8
            assert!(worst < 32.0 * f64::EPSILON, "weight {weight}: {worst:e}");
        }
    }

    /// A parabola in each axis is interpolated exactly, wherever the stencil stays inside one period.
    #[test]
    fn parabolas_are_interpolated_exactly() {
        let value = |x: f64, y: f64, z: f64| (1.0 + x - 0.1 * x * x) * (2.0 - y * y) * (0.3 + z + 0.2 * z * z);
        let mut potential = vec![0.0; 2 * GROUP_CELLS];
        for (k, j, i) in (0..16).flat_map(|k| (0..16).flat_map(move |j| (0..16).map(move |i| (k, j, i)))) {
            // the period starts at x = -2, y = 4, z = 4, so that the child's surroundings are smooth
            let x = if i >= 14 { i as f64 - 16.0 } else { i as f64 };
            let [y, z] = [j, k].map(|c| if c < 4 { c as f64 + 16.0 } else { c as f64 });
            potential[cell(i, j, k)] = value(x, y, z);
        }
        let mut ghosts = vec![0.0; GHOST_CELLS];
        gather(&lone_child(), 0, GhostOrigin::Sibling, &potential, None, &mut ghosts);
        for face in 0..FACES {
            for n in 0..FACE_CELLS {
                let layer = if face & 1 == 0 { -1.0 } else { 16.0 };
                let mut fine = [0.0; 3];
                fine[face / 2] = layer;
                let [a, b] = face_axes(face / 2);
                (fine[a], fine[b]) = ((n % GROUP) as f64, (n / GROUP) as f64);
                let [x, y, z] = std::array::from_fn(|axis| 0.5 * (fine[axis] - 0.5) + [0.0, 8.0, 8.0][axis]);
                let exact = value(x, y, z);
                let error = (ghosts[face * FACE_CELLS + n] - exact).abs();
                assert!(error < 1e-12 * (1.0 + exact.abs()) * 10.0, "face {face}, {n}: {error:e} of {exact}");
            }
        }
    }

    /// Beyond the faces of the domain the potential goes on along its parabola, at edges and corners of the coarse
    /// cells around a refined group too.
    #[test]
    fn parabolas_go_on_beyond_the_domain() {
        let value = |x: f64, y: f64, z: f64| (1.0 + x - 0.1 * x * x) * (2.0 - y * y) * (0.3 + z + 0.2 * z * z);
        let mut potential = vec![0.0; 2 * GROUP_CELLS];
        for (k, j, i) in (0..16).flat_map(|k| (0..16).flat_map(move |j| (0..16).map(move |i| (k, j, i)))) {
            potential[cell(i, j, k)] = value(i as f64, j as f64, k as f64);
        }
        let root = LevelTopology { slots: vec![0].into(), neighbours: vec![0; DIRECTIONS].into(), ..lone_child() };
        let root = LevelTopology { parents: vec![NONE; DIRECTIONS].into(), outside: vec![0b11_1111].into(), ..root };
        // octant 6 touches −x, +y, +z
        let child = LevelTopology { outside: vec![0b10_1001].into(), ..lone_child() };
        for (tables, width, origin) in [(root, 1.0, [0.0; 3]), (child, 0.5, [0.0, 8.0, 8.0])] {
            let mut ghosts = vec![f64::NAN; GHOST_CELLS];
            gather(&tables, 0, GhostOrigin::Sibling, &potential, None, &mut ghosts);
            for face in (0..FACES).filter(|face| tables.outside[0] >> face & 1 == 1) {
                for n in 0..FACE_CELLS {
                    let mut at = [0.0; 3];
                    at[face / 2] = if face & 1 == 0 { -1.0 } else { 16.0 };
                    let [a, b] = face_axes(face / 2);
                    (at[a], at[b]) = ((n % GROUP) as f64, (n / GROUP) as f64);
                    // of a cell centre, in coarse cells from the first coarse centre
                    let centre = |axis: usize| width * (at[axis] + 0.5) - 0.5 + origin[axis];
                    let exact = value(centre(0), centre(1), centre(2));
                    let error = (ghosts[face * FACE_CELLS + n] - exact).abs();
                    assert!(error < 1e-11 * (1.0 + exact.abs()), "face {face}, {n}: {error:e} of {exact}");
                }
            }
        }
    }
}
