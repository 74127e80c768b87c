//! Gas on a uniform mesh: what every initial condition is before it becomes an octree.

use crate::error::IcError;
use rayon::prelude::*;

/// Gas on a uniform mesh, comoving code units (or plain ones), cell `(k · cells[1] + j) · cells[0] + i`: x fastest.
///
/// It carries the *internal* energy, not the total: averaging the total would turn the kinetic energy that a coarser
/// mesh cannot resolve into heat.
#[derive(Clone, Debug, PartialEq)]
pub struct UniformMesh {
    /// Cells along x, y, z.
    pub cells: [usize; 3],
    /// Mass density ρ̃, in the mean matter density.
    pub density: Vec<f64>,
    /// Momentum density ρ̃ṽ along x, y, z.
    pub momentum: [Vec<f64>; 3],
    /// Internal energy density ρ̃ε̃.
    pub internal_energy: Vec<f64>,
}

impl UniformMesh {
    /// Number of cells.
    pub fn cell_count(&self) -> usize {
        self.cells.iter().product()
    }

    /// Offset of cell (i, j, k).
    pub fn index(&self, [i, j, k]: [usize; 3]) -> usize {
        (k * self.cells[1] + j) * self.cells[0] + i
    }

    /// Cell (i, j, k) at an offset.
    pub fn cell(&self, index: usize) -> [usize; 3] {
        let [nx, ny, _] = self.cells;
        [index % nx, index / nx % ny, index / (nx * ny)]
    }

    /// ½ρv² of the cell at an offset.
    pub fn kinetic_energy(&self, index: usize) -> f64 {
        let [x, y, z] = [0, 1, 2].map(|axis| self.momentum[axis][index]);
        0.5 * (x * x + y * y + z * z) / self.density[index]
    }

    /// Checks that every value is finite and that density and internal energy are positive.
    ///
    /// # Errors
    /// [`IcError::Cell`] naming the first cell that is not so.
    ///
    /// # Panics
    /// If an array's length is not the number of cells: the caller's bug.
    pub fn check(&self) -> Result<(), IcError> {
        const DENSITY: &str = "must be positive and finite (is the initial redshift too low for linear theory, or the \
                               file's field order or byte order another one?)";
        const ENERGY: &str = "must be positive and finite (where it is the small difference of a total and a kinetic \
                              energy, state a temperature instead)";
        self.check_field("density", &self.density, true, DENSITY)?;
        for (name, field) in ["momentum along x", "momentum along y", "momentum along z"].iter().zip(&self.momentum) {
            self.check_field(name, field, false, "must be finite")?;
        }
        self.check_field("internal energy", &self.internal_energy, true, ENERGY)
    }

    fn check_field(
        &self,
        field: &'static str,
        values: &[f64],
        positive: bool,
        reason: &'static str,
    ) -> Result<(), IcError> {
        assert_eq!(values.len(), self.cell_count(), "{field}: one value a cell");
        match values.par_iter().position_first(|v| !v.is_finite() || (positive && *v <= 0.0)) {
            Some(index) => Err(IcError::Cell { field, cell: self.cell(index), value: values[index], reason }),
            None => Ok(()),
        }
    }
}

/// Σ f(i) over `count` indices, in partial sums whose borders do not depend on the number of threads.
pub(crate) fn ordered_sum(count: usize, f: impl Fn(usize) -> f64 + Sync) -> f64 {
    const BLOCK: usize = 1024;
    let block = |b: usize| (b * BLOCK..count.min((b + 1) * BLOCK)).map(&f).sum();
    let mut sums: Vec<f64> = (0..count.div_ceil(BLOCK)).into_par_iter().map(block).collect();
    while sums.len() > 1 {
        sums = sums.chunks(BLOCK).map(|part| part.iter().sum()).collect();
    }
    sums.first().copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bad_cell_is_named() {
        let n = 4 * 3 * 2;
        let ones = || vec![1.0; n];
        let mut mesh = UniformMesh {
            cells: [4, 3, 2],
            density: ones(),
            momentum: [ones(), ones(), ones()],
            internal_energy: ones(),
        };
        assert!(mesh.check().is_ok());
        mesh.momentum[1][23] = f64::NAN;
        assert!(mesh.check().unwrap_err().to_string().starts_with("cell [3, 2, 1] (x, y, z): momentum along y = NaN"));
        mesh.density[5] = -0.5;
        mesh.density[17] = 0.0;
        let error = mesh.check().unwrap_err().to_string();
        assert!(error.starts_with("cell [1, 1, 0] (x, y, z): density = -5e-1"), "{error}");
        assert_eq!(mesh.cell(mesh.index([3, 1, 1])), [3, 1, 1]);
    }

    #[test]
    fn ordered_sums_are_complete() {
        let n = 1024 * 1024 + 7;
        assert_eq!(ordered_sum(n, |i| i as f64), (n as f64 - 1.0) * n as f64 / 2.0);
        assert_eq!(ordered_sum(0, |_| 1.0), 0.0);
    }
}
