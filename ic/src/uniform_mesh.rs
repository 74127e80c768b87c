//! Gas on a uniform mesh and dark matter beside it: an initial condition before it becomes an octree.

use crate::error::IcError;
use crate::ordered_sum::{BLOCK, ordered_sum_of_ranks};
use crate::particle_set::ParticleSet;
use crate::span::Span;
use comove_sim::HostParticles;
use comove_sim::parallel::Communicator;
use rayon::prelude::*;
use std::ops::Range;

/// Gas on a uniform mesh, comoving code units (or plain ones), or on a slab of it: of ranks that share a mesh each has
/// some of its planes, those of the first rank first. Cell (i, j, k) lies at `((k − planes.start) · cells[1] + j) ·
/// cells[0] + i`: x fastest.
///
/// It carries the *internal* energy, not the total: averaging the total would turn the kinetic energy that a coarser
/// mesh cannot resolve into heat. Where there is dark matter alone the fields of the gas are empty.
#[derive(Clone, Debug, PartialEq)]
pub struct UniformMesh {
    /// Cells of the whole mesh along x, y, z.
    pub cells: [usize; 3],
    /// The planes along z that are here.
    pub planes: Range<usize>,
    /// Mass density ρ̃, in the mean matter density.
    pub density: Vec<f64>,
    /// Momentum density ρ̃ṽ along x, y, z.
    pub momentum: [Vec<f64>; 3],
    /// Internal energy density ρ̃ε̃.
    pub internal_energy: Vec<f64>,
    /// Gas on parts of finer meshes, each with half the cell width of the one before, and inside it.
    pub nests: Vec<NestedGas>,
    /// Dark matter, if there is some; on all ranks of one form.
    pub dark_matter: Option<DarkMatter>,
}

/// Dark matter of an initial condition.
#[derive(Clone, Debug, PartialEq)]
pub enum DarkMatter {
    /// A particle for each cell, displaced.
    Lattice(Lattice),
    /// Particles at given positions.
    Set(ParticleSet),
}

/// A particle for each cell of the whole mesh, in the same order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lattice {
    /// From the cell's lower corner along x, y, z, code length.
    pub displacement: [Vec<f64>; 3],
    /// ṽ along x, y, z.
    pub velocity: [Vec<f64>; 3],
}

impl UniformMesh {
    /// Planes of a mesh, without any values.
    pub fn without_values(cells: [usize; 3], planes: Range<usize>) -> Self {
        Self {
            cells,
            planes,
            density: Vec::new(),
            momentum: Default::default(),
            internal_energy: Vec::new(),
            nests: Vec::new(),
            dark_matter: None,
        }
    }

    /// Number of cells that are here.
    pub fn cell_count(&self) -> usize {
        self.cells[0] * self.cells[1] * self.planes.len()
    }

    /// Offset of cell (i, j, k), which is here.
    pub fn index(&self, [i, j, k]: [usize; 3]) -> usize {
        ((k - self.planes.start) * self.cells[1] + j) * self.cells[0] + i
    }

    /// Cell (i, j, k) at an offset.
    pub fn cell(&self, index: usize) -> [usize; 3] {
        let [nx, ny, _] = self.cells;
        [index % nx, index / nx % ny, self.planes.start + index / (nx * ny)]
    }

    /// The fields of the gas: density, momentum along x, y, z, internal energy.
    pub fn fields(&self) -> [&Vec<f64>; 5] {
        let [x, y, z] = &self.momentum;
        [&self.density, x, y, z, &self.internal_energy]
    }

    /// The displaced lattice of dark matter, if it is one.
    pub fn lattice(&self) -> Option<&Lattice> {
        match &self.dark_matter {
            Some(DarkMatter::Lattice(lattice)) => Some(lattice),
            _ => None,
        }
    }

    /// Whether there is gas, on any rank: collective.
    pub fn has_gas(&self, communicator: &Communicator) -> bool {
        communicator.any(!self.density.is_empty())
    }

    /// ½ρv² of the cell at an offset.
    pub fn kinetic_energy(&self, index: usize) -> f64 {
        let [x, y, z] = [0, 1, 2].map(|axis| self.momentum[axis][index]);
        0.5 * (x * x + y * y + z * z) / self.density[index]
    }

    /// The mean over the whole mesh of what a function gives for an offset, with bits that do not depend on the number of
    /// ranks: collective.
    ///
    /// # Panics
    /// If slabs of ranks end where sums may not be divided: the caller's bug.
    pub fn mean(&self, communicator: &Communicator, f: impl Fn(usize) -> f64 + Sync) -> f64 {
        let plane = self.cells[0] * self.cells[1];
        let ends_well = self.planes.end == self.cells[2] || (self.planes.end * plane).is_multiple_of(BLOCK);
        assert!(ends_well, "planes {:?} of {:?} cells are no whole blocks of sums", self.planes, self.cells);
        ordered_sum_of_ranks(communicator, self.cell_count(), f) / (plane * self.cells[2]) as f64
    }

    /// Takes the particles, in a box of these lengths and with this mass each; of a rank among others those of its
    /// planes or rows.
    pub fn take_particles(&mut self, box_lengths: [f64; 3], particle_mass: f64) -> Option<HostParticles> {
        Some(match self.dark_matter.take()? {
            DarkMatter::Lattice(lattice) => self.of_lattice(&lattice, box_lengths, particle_mass),
            DarkMatter::Set(set) => set.with_mass(particle_mass),
        })
    }

    /// Has refinement follow, of the particles of class 0, those alone whose numbers a function picks. A lattice becomes particles at
    /// given positions. Collective.
    pub(crate) fn follow(&mut self, communicator: &Communicator, box_mpc_h: f64, picks: impl Fn(u64) -> bool + Sync) {
        let lengths = self.cells.map(|n| box_mpc_h * n as f64 / self.cells[0] as f64);
        let is_lattice = self.lattice().is_some();
        let Some(HostParticles { position, velocity, id, .. }) = self.take_particles(lengths, 1.0) else { return };
        let counts = [id.len() as u64];
        let set = ParticleSet { position, velocity, id };
        let mut set = if is_lattice { set.in_rows(communicator, &counts) } else { set };
        set.follow(picks);
        self.dark_matter = Some(DarkMatter::Set(set));
    }

    fn of_lattice(&self, lattice: &Lattice, box_lengths: [f64; 3], particle_mass: f64) -> HostParticles {
        let position = |axis: usize| {
            let fraction = |(n, displacement): (usize, &f64)| {
                let width = box_lengths[axis] / self.cells[axis] as f64;
                let x = self.cell(n)[axis] as f64 * width + displacement;
                let x = x.rem_euclid(box_lengths[axis]);
                HostParticles::fraction(x, box_lengths[axis]).expect("in the box")
            };
            lattice.displacement[axis].par_iter().enumerate().map(fraction).collect()
        };
        let velocity = lattice.velocity.each_ref().map(|v| v.par_iter().map(|&v| v as f32).collect());
        let first = (self.planes.start * self.cells[0] * self.cells[1]) as u64;
        let id = (first..first + self.cell_count() as u64).collect();
        HostParticles { particle_mass, position: [0, 1, 2].map(position), velocity, id }
    }

    /// Checks that every value is finite, that density and internal energy are positive, and particles at given positions
    /// as [`ParticleSet`] says: collective.
    ///
    /// # Errors
    /// [`IcError::Cell`] naming the first cell of the mesh that is not so, [`IcError::Parameter`] of particles, on all ranks.
    ///
    /// # Panics
    /// If an array's length is not the number of cells: the caller's bug.
    pub fn check(&self, communicator: &Communicator) -> Result<(), IcError> {
        const DENSITY: &str = "must be positive and finite; check the initial redshift (too low for linear theory?) \
                               and the field and byte order of a file";
        const ENERGY: &str = "must be positive and finite; if it is a small difference of total and kinetic energy, \
                              set a temperature instead";
        const MOMENTUM: &str = "must be finite";
        const NAMES: [(&str, &str); 11] = [
            ("density", DENSITY),
            ("momentum along x", MOMENTUM),
            ("momentum along y", MOMENTUM),
            ("momentum along z", MOMENTUM),
            ("internal energy", ENERGY),
            ("displacement along x", MOMENTUM),
            ("displacement along y", MOMENTUM),
            ("displacement along z", MOMENTUM),
            ("particles' velocity along x", MOMENTUM),
            ("particles' velocity along y", MOMENTUM),
            ("particles' velocity along z", MOMENTUM),
        ];
        let skipped = if self.has_gas(communicator) { 0 } else { self.fields().len() };
        let bad = |(n, values): (usize, &Vec<f64>)| {
            let (field, reason) = NAMES[n];
            assert_eq!(values.len(), self.cell_count(), "{field}: one value a cell");
            let least = if reason == MOMENTUM { f64::NEG_INFINITY } else { 0.0 };
            let is_good = |v: &f64| *v > least && *v < f64::INFINITY;
            // whole blocks without a branch for each value
            let is_bad = |block: &[f64]| !block.iter().fold(true, |all, v| all & is_good(v));
            let block = values.par_chunks(BLOCK).position_first(is_bad)?;
            let index = block * BLOCK + values[block * BLOCK..].iter().position(|v| !is_good(v))?;
            let [i, j, k] = self.cell(index);
            Some((n, [k, j, i], values[index].to_bits()))
        };
        if let Some(DarkMatter::Set(set)) = &self.dark_matter {
            set.check(communicator)?;
        }
        let lattice = self.lattice().into_iter();
        let lattice = lattice.flat_map(|lattice| lattice.displacement.iter().chain(&lattice.velocity));
        let fields = self.fields().into_iter().chain(lattice);
        let found = fields.enumerate().skip(skipped).find_map(bad);
        match communicator.gather_all_of(&found).into_iter().flatten().min() {
            Some((n, [k, j, i], bits)) => {
                let (field, reason) = NAMES[n];
                Err(IcError::Cell { field, cell: [i, j, k], value: f64::from_bits(bits), reason })
            }
            None => self.nests.iter().try_for_each(|nest| nest.check(communicator)),
        }
    }
}

/// Gas on a part of a mesh that would fill the box. Of ranks that share it each has some planes along z, as of the mesh of the whole
/// box.
#[derive(Clone, Debug, PartialEq)]
pub struct NestedGas {
    /// The cells along x, y, z, of all that the box has at this resolution.
    pub region: [Span; 3],
    /// Gas of these cells, in ascending order along each axis: planes are positions among those of the region.
    pub gas: UniformMesh,
}

impl NestedGas {
    /// A part without values.
    ///
    /// * `planes`: own planes of the mesh that would fill the box
    pub(crate) fn without_values(region: [Span; 3], planes: &Range<usize>) -> Self {
        let gas = UniformMesh::without_values(region.map(|span| span.count), region[2].positions(planes));
        Self { region, gas }
    }

    /// Offset of a cell of the mesh that would fill the box, if it is of the region; its plane must be here.
    pub(crate) fn index(&self, cell: [usize; 3]) -> Option<usize> {
        let [i, j, k] = [0, 1, 2].map(|axis| self.region[axis].position(cell[axis]));
        Some(self.gas.index([i?, j?, k?]))
    }

    /// The cell at an offset.
    pub(crate) fn cell(&self, index: usize) -> [usize; 3] {
        let at = self.gas.cell(index);
        [0, 1, 2].map(|axis| self.region[axis].cell(at[axis]))
    }

    /// Checks the values: collective.
    ///
    /// # Errors
    /// [`IcError::Cell`] naming a cell of the mesh that would fill the box.
    pub(crate) fn check(&self, communicator: &Communicator) -> Result<(), IcError> {
        self.gas.check(communicator).map_err(|error| match error {
            IcError::Cell { field, cell, value, reason } => {
                let cell = [0, 1, 2].map(|axis| self.region[axis].cell(cell[axis]));
                IcError::Cell { field, cell, value, reason }
            }
            error => error,
        })
    }

    /// Values of the own cells, from those of whole planes.
    ///
    /// * `planes`: the planes that there are values of
    pub(crate) fn cut(&self, values: &[f64], planes: &Range<usize>) -> Vec<f64> {
        let [nx, ny, _] = self.region.map(|span| span.of);
        let place = |index: usize| {
            let [i, j, k] = self.cell(index);
            ((k - planes.start) * ny + j) * nx + i
        };
        (0..self.gas.cell_count()).map(|index| values[place(index)]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use comove_sim::parallel::on_ranks;

    #[test]
    fn the_first_bad_cell_is_named() {
        let n = 4 * 3 * 2;
        let ones = || vec![1.0; n];
        let mut mesh = UniformMesh {
            cells: [4, 3, 2],
            planes: 0..2,
            density: ones(),
            momentum: [ones(), ones(), ones()],
            internal_energy: ones(),
            nests: Vec::new(),
            dark_matter: None,
        };
        let check = |mesh: &UniformMesh| mesh.check(&Communicator::alone());
        assert!(check(&mesh).is_ok());
        mesh.momentum[1][23] = f64::NAN;
        assert!(check(&mesh).unwrap_err().to_string().starts_with("cell [3, 2, 1] (x, y, z): momentum along y = NaN"));
        mesh.density[5] = -0.5;
        mesh.density[17] = 0.0;
        let error = check(&mesh).unwrap_err().to_string();
        assert!(error.starts_with("cell [1, 1, 0] (x, y, z): density = -5e-1"), "{error}");
        assert_eq!(mesh.cell(mesh.index([3, 1, 1])), [3, 1, 1]);
    }

    /// Of several ranks' bad cells the first of the first field is named, by all.
    #[test]
    fn all_ranks_name_the_same_cell() {
        let errors = on_ranks(4, |communicator| {
            let planes = communicator.rank()..communicator.rank() + 1;
            let ones = || vec![1.0; 12];
            let mut mesh = UniformMesh {
                cells: [4, 3, 4],
                planes,
                density: ones(),
                momentum: [ones(), ones(), ones()],
                internal_energy: ones(),
                nests: Vec::new(),
                dark_matter: None,
            };
            match communicator.rank() {
                0 => mesh.internal_energy[0] = -1.0,
                1 => {}
                rank => mesh.density[rank] = 0.0,
            }
            mesh.check(&communicator).unwrap_err().to_string()
        });
        assert!(errors[0].starts_with("cell [2, 0, 2] (x, y, z): density = 0e0"), "{}", errors[0]);
        assert!(errors.iter().all(|error| *error == errors[0]));
    }
}
