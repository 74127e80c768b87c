//! Nested meshes of dark matter: a particle for each cell that no finer mesh covers, and a mass class for each mesh.

use super::reader::Contents;
use super::request::{LoadFormat, LoadIc};
use crate::particle_set::ParticleSet;
use crate::span::Span;
use crate::temperature::{gas_temperature_k, specific_internal_energy};
use crate::uniform_mesh::{NestedGas, UniformMesh};
use comove_sim::HostParticles;
use comove_sim::kernels::point::particle::{CLASSES, id_of_class, marked};
use std::ops::Range;

/// Displacements that a file may have, in box lengths.
pub(super) const LARGEST_DISPLACEMENT: f64 = 0.5;

/// Velocities and density contrasts that a file may have in its own units: finite in 32 bits after conversion.
pub(super) const LARGEST_VALUE: f64 = 1e30;

/// Relative difference of cell widths that is accepted: that of numbers of 32 bits.
const SAME: f64 = 1e-5;

/// A mesh.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mesh {
    /// Along x, y, z.
    pub cells: [usize; 3],
    /// Width of a cell, in the file's unit of lengths.
    pub dx: f64,
    /// Lower corner, in the file's unit of lengths.
    pub corner: [f64; 3],
    /// Cells along x, y, z that the next finer mesh covers.
    covered: [Span; 3],
}

/// Meshes, the coarsest first.
#[derive(Clone, Debug)]
pub(super) struct Meshes {
    meshes: Vec<Mesh>,
    /// Axes of files, the fastest first.
    axes: [usize; 3],
    /// Unit of lengths in messages.
    unit: &'static str,
}

/// Particles of a plane, that is of all cells with one index along the slowest axis.
pub(super) struct Plane {
    /// Displacements from centres of cells along x, y, z in Mpc/h.
    pub displacement: [Vec<f64>; 3],
    /// Velocities ṽ along x, y, z.
    pub velocity: [Vec<f64>; 3],
    /// Which of them refinement follows; without it all.
    pub followed: Option<Vec<bool>>,
}

/// Refuses more meshes than there are mass classes.
///
/// # Errors
/// The reason.
pub(super) fn check_count(meshes: usize) -> Result<(), String> {
    match meshes {
        ..=CLASSES => Ok(()),
        _ => Err(format!("{meshes} nested meshes, expected at most {CLASSES}: leave out the coarsest or the finest")),
    }
}

impl Mesh {
    fn is_covered(&self, axis: usize, i: usize) -> bool {
        self.covered[axis].holds(i)
    }

    fn particles(&self) -> usize {
        self.cells.iter().product::<usize>() - self.covered.iter().map(|span| span.count).product::<usize>()
    }
}

impl Meshes {
    /// No meshes yet.
    pub(super) fn new(axes: [usize; 3], unit: &'static str) -> Self {
        Self { meshes: Vec::new(), axes, unit }
    }

    /// Appends the next finer mesh.
    ///
    /// # Errors
    /// The reason why it covers no whole cells of the one before.
    pub(super) fn push(&mut self, cells: [usize; 3], dx: f64, corner: [f64; 3]) -> Result<(), String> {
        // a mesh of the whole box has no border
        let (is_periodic, unit) = (self.meshes.len() == 1, self.unit);
        let mesh = Mesh { cells, dx, corner, covered: [Span::default(); 3] };
        if let Some(coarser) = self.meshes.last_mut() {
            coarser.covered = covered(coarser, &mesh, is_periodic, unit)?;
        }
        self.meshes.push(mesh);
        Ok(())
    }

    /// The mesh of the whole box.
    pub(super) fn base(&self) -> &Mesh {
        &self.meshes[0]
    }

    /// A mesh.
    pub(super) fn get(&self, n: usize) -> &Mesh {
        &self.meshes[n]
    }

    /// Compares the cells of the whole box with the recipe's.
    ///
    /// # Errors
    /// The reason why they do not go together.
    pub(super) fn check_cells(&self, ic: &LoadIc, gas: bool) -> Result<(), String> {
        let cells = self.base().cells;
        let is_in_proportion = (0..3).all(|axis| cells[axis] * ic.cells[0] == cells[0] * ic.cells[axis]);
        if !is_in_proportion || gas && cells != ic.cells {
            return Err(format!(
                "the header has {cells:?} cells, the recipe says {:?}: change cells or root",
                ic.cells
            ));
        }
        Ok(())
    }

    /// Species of a file that has its fields on these meshes.
    pub(super) fn contents(&self, format: LoadFormat, gas: bool, dark_matter: bool) -> Contents {
        let particles = if dark_matter { self.particles() as u64 } else { 0 };
        let nested_cells = if gas { Span::cells_of(&self.regions()) } else { 0 };
        Contents { format, gas, nested_cells, particles, off_lattice: dark_matter }
    }

    /// The cells of each mesh but the first, of those that the box has at its resolution.
    fn regions(&self) -> Vec<[Span; 3]> {
        let mut outer = self.base().cells.map(Span::whole);
        let finer = self.meshes.iter().take(self.meshes.len() - 1).map(|mesh| {
            outer = [0, 1, 2].map(|axis| {
                let (outer, covered) = (outer[axis], mesh.covered[axis]);
                let first = (outer.first + covered.first) % outer.of;
                Span { first, count: covered.count, of: outer.of }.children()
            });
            outer
        });
        finer.collect()
    }

    /// Reads the gas of the base mesh and of each nested mesh.
    ///
    /// * `read`: reads the gas of mesh n, which has these cells of the box, into the given mesh
    pub(super) fn read_gas<E>(
        &self,
        mesh: &mut UniformMesh,
        read: impl Fn(usize, [Span; 3], &mut UniformMesh) -> Result<(), E>,
    ) -> Result<(), E> {
        read(0, mesh.cells.map(Span::whole), mesh)?;
        for (n, region) in (1..).zip(self.regions()) {
            let planes = mesh.planes.start << n..mesh.planes.end << n;
            let mut nest = NestedGas::without_values(region, &planes);
            read(n, region, &mut nest.gas)?;
            mesh.nests.push(nest);
        }
        Ok(())
    }

    pub(super) fn particles(&self) -> usize {
        self.meshes.iter().map(Mesh::particles).sum()
    }

    /// Rows of the particles of all meshes, those of the coarsest first.
    ///
    /// * `mpc_h`: unit of lengths in Mpc/h
    /// * `read`: a plane of a mesh
    pub(super) fn read<E>(
        &self,
        rows: Range<usize>,
        mpc_h: f64,
        mut read: impl FnMut(usize, usize) -> Result<Plane, E>,
    ) -> Result<ParticleSet, E> {
        let Mesh { cells: base, dx: widest, corner: lowest, .. } = *self.base();
        let lengths = base.map(|n| n as f64 * widest * mpc_h);
        let [fast, middle, slow] = self.axes;
        let (mut set, mut end) = (ParticleSet::default(), 0);
        for (n, mesh) in self.meshes.iter().enumerate() {
            let class = self.meshes.len() - 1 - n;
            let width = mesh.cells[fast];
            for k in 0..mesh.cells[slow] {
                let is_free = |m: &usize| {
                    !(mesh.is_covered(slow, k)
                        && mesh.is_covered(middle, m / width)
                        && mesh.is_covered(fast, m % width))
                };
                let (first, all) = (end, width * mesh.cells[middle]);
                end += all
                    - if mesh.is_covered(slow, k) { mesh.covered[fast].count * mesh.covered[middle].count } else { 0 };
                if rows.end.min(end) <= rows.start.max(first) {
                    continue;
                }
                let Plane { displacement, velocity, followed } = read(n, k)?;
                for (m, row) in (0..all).filter(is_free).zip(first..).filter(|(_, row)| rows.contains(row)) {
                    let mut cell = [0; 3];
                    (cell[fast], cell[middle], cell[slow]) = (m % width, m / width, k);
                    for axis in 0..3 {
                        let start = mesh.corner[axis] - lowest[axis] + (cell[axis] as f64 + 0.5) * mesh.dx;
                        let x = start * mpc_h + displacement[axis][m];
                        let fraction = HostParticles::fraction(x.rem_euclid(lengths[axis]), lengths[axis]);
                        set.position[axis].push(fraction.expect("in the box"));
                        set.velocity[axis].push(velocity[axis][m] as f32);
                    }
                    let id = id_of_class(class, row as u64).expect("a number of a row and at most 8 meshes");
                    set.id.push(if followed.as_ref().is_none_or(|followed| followed[m]) { id } else { marked(id) });
                }
            }
        }
        Ok(set)
    }
}

/// Cells along x, y, z of a mesh that the next finer one covers.
///
/// # Errors
/// The reason why it covers no whole cells.
fn covered(coarse: &Mesh, fine: &Mesh, is_periodic: bool, unit: &str) -> Result<[Span; 3], String> {
    if (2.0 * fine.dx / coarse.dx - 1.0).abs() > SAME {
        return Err(format!(
            "cells are {} {unit} wide, expected half of the {} of the next coarser mesh",
            fine.dx, coarse.dx
        ));
    }
    let mut all = [Span::default(); 3];
    for (axis, covered) in all.iter_mut().enumerate() {
        let (n, count) = (coarse.cells[axis] as f64, fine.cells[axis] / 2);
        let first = (fine.corner[axis] - coarse.corner[axis]) / coarse.dx;
        let name = ["x", "y", "z"][axis];
        if (first - first.round()).abs() > 0.01 || !fine.cells[axis].is_multiple_of(2) {
            return Err(format!(
                "{} cells along {name} begin at {} {unit}, {first:.4} cells of the next coarser mesh: expected an even number \
                 from a whole cell",
                fine.cells[axis], fine.corner[axis]
            ));
        }
        let first = first.round();
        let is_inside = first >= 0.0 && first + count as f64 <= n;
        if count as f64 > n || !(is_inside || is_periodic) {
            return Err(format!(
                "cells {first} to {} of the next coarser mesh along {name}, which has {n}: expected a mesh inside it",
                first + count as f64
            ));
        }
        *covered = Span { first: first.rem_euclid(n) as usize, count, of: coarse.cells[axis] };
    }
    Ok(all)
}

/// Fills a part of a mesh with gas that has the temperature of gas after decoupling: the file has none.
///
/// * `dark_matter`: the gas is beside dark matter, and has its share of all matter
/// * `contrast`, `velocity`: density contrast, and peculiar velocity along x, y, z in km/s
pub(super) fn fill_with_gas(
    mesh: &mut UniformMesh,
    ic: &LoadIc,
    dark_matter: bool,
    contrast: Vec<f64>,
    velocity: [Vec<f64>; 3],
) {
    let (c, a) = (&ic.cosmology, 1.0 / (1.0 + ic.z));
    let share = if dark_matter { c.baryon_fraction() } else { 1.0 };
    let temperature_k = ic.temperature_k.unwrap_or_else(|| gas_temperature_k(c, ic.z));
    let specific = specific_internal_energy(c, a, temperature_k, ic.mean_molecular_weight, ic.gamma);
    let mut density = contrast;
    density.iter_mut().for_each(|delta| *delta = share * (1.0 + *delta));
    mesh.momentum = velocity;
    for momentum in &mut mesh.momentum {
        momentum.iter_mut().zip(&density).for_each(|(v, d)| *v = *v * a / 100.0 * d);
    }
    mesh.internal_energy = density.iter().map(|d| specific * d).collect();
    mesh.density = density;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A mesh of 4³ cells, and one of 4³ half as wide in its middle, of lengths in units of a cell.
    fn meshes(axes: [usize; 3]) -> Meshes {
        let mut meshes = Meshes::new(axes, "cells");
        meshes.push([4; 3], 1.0, [0.0; 3]).unwrap();
        meshes.push([4; 3], 0.5, [1.0; 3]).unwrap();
        meshes
    }

    /// Particles that are moved by 1 Mpc/h along x, with the number of their plane and cell as velocity.
    fn read(meshes: &Meshes, rows: Range<usize>) -> ParticleSet {
        let plane = |_: usize, k: usize| {
            let numbers = (0..16).map(|m| (16 * k + m) as f64).collect::<Vec<f64>>();
            let displacement = [1.0, 0.0, 0.0].map(|moved| vec![moved; 16]);
            let followed = (k == 1).then(|| (0..16).map(|m| m != 7).collect());
            Ok::<_, ()>(Plane { displacement, velocity: [numbers.clone(), numbers.clone(), numbers], followed })
        };
        meshes.read(rows, 2.0, plane).unwrap()
    }

    #[test]
    fn finer_particles_replace_coarser_ones() {
        let meshes = meshes([0, 1, 2]);
        assert_eq!(meshes.particles(), 64 - 8 + 64);
        let all = read(&meshes, 0..120);
        // of the box of 8 Mpc/h
        let at = |n: usize| [0, 1, 2].map(|axis| f64::from(all.position[axis][n]) / 2f64.powi(32) * 8.0);
        assert_eq!((at(0), at(3), at(4)), ([2.0, 1.0, 1.0], [0.0, 1.0, 1.0], [2.0, 3.0, 1.0]));
        assert_eq!((at(56), at(119)), ([3.5, 2.5, 2.5], [6.5, 5.5, 5.5]));
        assert_eq!((all.id[0], all.id[55], all.id[56]), (1 << 60, 55 | 1 << 60, 56));
        // of plane 1, cell 7 of each mesh has the mark: rows 16 to 27 and 72 to 87
        let marked: Vec<usize> = (0..120).filter(|&n| all.id[n] >> 59 & 1 == 1).collect();
        assert_eq!(marked, [21, 79]);
        // cells 5 and 6 of plane 1 are covered
        assert_eq!((all.velocity[0][20], all.velocity[0][21]), (20.0, 23.0));
        for split in [0, 17, 56, 90] {
            let (first, second) = (read(&meshes, 0..split), read(&meshes, split..120));
            assert_eq!([first.id, second.id].concat(), all.id);
            assert_eq!([first.velocity[2].clone(), second.velocity[2].clone()].concat(), all.velocity[2]);
        }
    }

    #[test]
    fn the_fastest_axis_is_the_first() {
        let all = read(&meshes([2, 1, 0]), 0..120);
        let at = |n: usize| [0, 1, 2].map(|axis| f64::from(all.position[axis][n]) / 2f64.powi(32) * 8.0);
        assert_eq!((at(1), at(4), at(57)), ([2.0, 1.0, 3.0], [2.0, 3.0, 1.0], [3.5, 2.5, 3.5]));
    }

    #[test]
    fn meshes_cover_whole_cells_of_the_coarser_one() {
        let pushed = |cells, dx, corner: f64| {
            let mut meshes = Meshes::new([0, 1, 2], "cells");
            meshes.push([4; 3], 1.0, [0.0; 3]).unwrap();
            meshes.push([4; 3], 0.5, [1.0; 3]).unwrap();
            meshes.push([cells; 3], dx, [corner; 3]).err().unwrap_or_default()
        };
        assert_eq!(pushed(4, 0.25, 1.5), "");
        assert!(pushed(4, 0.5, 1.5).contains("expected half of the 0.5 of the next coarser mesh"));
        assert!(pushed(3, 0.25, 1.5).contains("expected an even number from a whole cell"));
        assert!(pushed(4, 0.25, 1.25).contains("0.5000 cells of the next coarser mesh"));
        assert!(pushed(4, 0.25, 2.5).contains("cells 3 to 5 of the next coarser mesh along x, which has 4"));
        assert!(check_count(8).is_ok() && check_count(9).unwrap_err().contains("at most 8"));
    }
}
