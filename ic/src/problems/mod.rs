//! Test problems in plain coordinates, each with its solution: one file each, and all of them in [`ALL`].

pub mod acoustic_wave;
mod riemann;
pub mod shock_tube;
pub mod uniform_flow;

pub use acoustic_wave::AcousticWave;
pub use shock_tube::ShockTube;
pub use uniform_flow::UniformFlow;

use crate::uniform_mesh::UniformMesh;
use comove_sim::Boundary;

/// Gas at a point: density, velocity and pressure in plain code units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gas {
    /// Mass density.
    pub density: f64,
    /// Velocity along x, y, z.
    pub velocity: [f64; 3],
    /// Pressure.
    pub pressure: f64,
}

/// A problem with a known solution, in a box of length 1 along x with cubic cells.
pub trait Problem: Sync {
    /// Its name, as in recipes.
    fn name(&self) -> &'static str;

    /// Ratio of specific heats.
    fn gamma(&self) -> f64;

    /// What lies beyond the box.
    fn boundary(&self) -> Boundary;

    /// Cells along x, y, z for a resolution of `n` cells along x, a multiple of 16.
    fn cells(&self, n: usize) -> [usize; 3];

    /// When a run of it ends, in code time.
    fn end_time(&self) -> f64;

    /// The solution at the point x at time t.
    fn exact(&self, x: [f64; 3], t: f64) -> Gas;

    /// The state at the point x from which a run starts.
    fn initial(&self, x: [f64; 3]) -> Gas {
        self.exact(x, 0.0)
    }

    /// The order at which the L1 error of a second-order scheme falls with resolution; `None` where the scheme keeps the
    /// solution to round-off.
    fn expected_order(&self) -> Option<f64>;

    /// The solution at time t at the centres of the cells of [`Problem::cells`].
    fn mesh(&self, n: usize, t: f64) -> UniformMesh {
        let cells = self.cells(n);
        let count = cells.iter().product();
        let width = 1.0 / n as f64;
        let mut mesh = UniformMesh {
            cells,
            density: Vec::with_capacity(count),
            momentum: std::array::from_fn(|_| Vec::with_capacity(count)),
            internal_energy: Vec::with_capacity(count),
        };
        for index in 0..count {
            let x = mesh.cell(index).map(|i| (i as f64 + 0.5) * width);
            let gas = self.exact(x, t);
            mesh.density.push(gas.density);
            for axis in 0..3 {
                mesh.momentum[axis].push(gas.density * gas.velocity[axis]);
            }
            mesh.internal_energy.push(gas.pressure / (self.gamma() - 1.0));
        }
        mesh
    }
}

/// Every problem with its standard parameters.
pub static ALL: [&dyn Problem; 3] = [&UniformFlow::STANDARD, &AcousticWave::STANDARD, &ShockTube::SOD];

/// The problem of that name with its standard parameters.
pub fn by_name(name: &str) -> Option<&'static dyn Problem> {
    ALL.into_iter().find(|problem| problem.name() == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_problem_makes_a_mesh_that_starts_as_it_should() {
        for problem in ALL {
            let mesh = problem.mesh(32, 0.0);
            assert!(mesh.check().is_ok() && mesh.cells.iter().all(|n| n % 16 == 0), "{}", problem.name());
            let index = mesh.index([7, 11, 3]);
            let gas = problem.initial([7.5 / 32.0, 11.5 / 32.0, 3.5 / 32.0]);
            assert_eq!(mesh.density[index], gas.density);
            assert_eq!(mesh.momentum[1][index], gas.density * gas.velocity[1]);
            assert_eq!(by_name(problem.name()).map(Problem::name), Some(problem.name()));
        }
        assert!(by_name("no such problem").is_none());
    }
}
