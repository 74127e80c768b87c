//! Test problems in plain coordinates, each with its solution: one file each, and all of them in [`ALL`].

pub mod acoustic_wave;
mod riemann;
pub mod shock_tube;
pub mod uniform_flow;

pub use acoustic_wave::AcousticWave;
pub use shock_tube::ShockTube;
pub use uniform_flow::UniformFlow;

use crate::uniform_mesh::UniformMesh;
use comove_sim::kernels::layout::{DENSITY, PATCH, octant_origin};
use comove_sim::{Boundary, HostState};

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

    /// What lies beyond the box: by default its other side.
    fn boundary(&self) -> Boundary {
        Boundary::Periodic
    }

    /// Root cells along x, y, z for `n` of them along x, a multiple of 16: by default a cube.
    fn root_cells(&self, n: usize) -> [usize; 3] {
        [n; 3]
    }

    /// When a run of it ends, in code time.
    fn end_time(&self) -> f64;

    /// The solution at the point x at time t.
    fn exact(&self, x: [f64; 3], t: f64) -> Gas;

    /// The state at the point x from which a run starts.
    fn initial(&self, x: [f64; 3]) -> Gas {
        self.exact(x, 0.0)
    }

    /// The order at which the L1 error of a second-order scheme falls with resolution; `None` where the scheme keeps
    /// the solution to round-off.
    fn expected_order(&self) -> Option<f64>;

    /// The solution at time t at the cell centres of level `level` over a root of `n` cells along x, to be placed there
    /// by [`crate::restrict()`].
    fn mesh(&self, n: usize, level: u8, t: f64) -> UniformMesh {
        let cells = self.root_cells(n).map(|n| n << level);
        let count = cells.iter().product();
        let width = 1.0 / cells[0] as f64;
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

/// L1 error of the density: the box mean of |ρ − ρ_exact| over leaf cells, compared at their centres.
pub fn l1_error(problem: &dyn Problem, state: &HostState, t: f64) -> f64 {
    let mut error = 0.0;
    for patch in state.tree.leaf_patches() {
        let cells = state.tree.cells(patch.level);
        let density = state.field(patch.group, DENSITY);
        let origin = octant_origin(patch.octant);
        let mut sum = 0.0;
        for local in 0..PATCH * PATCH * PATCH {
            let offset = [local % PATCH, local / PATCH % PATCH, local / (PATCH * PATCH)];
            let x = std::array::from_fn(|a| ((patch.first_cell[a] + offset[a]) as f64 + 0.5) / cells[0] as f64);
            let [i, j, k] = std::array::from_fn(|a| origin[a] + offset[a]);
            sum += (density[[k, j, i]] - problem.exact(x, t).density).abs();
        }
        error += sum / cells.iter().product::<usize>() as f64;
    }
    error
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
    use comove_sim::clock::Clock;
    use comove_sim::{Criterion, RunParameters};

    /// A state at level 1 with some of it removed is the solution where it is fine; its coarse cells are means over
    /// points a quarter cell from the centre, which differ from the centre's value by at most A k² h²/32.
    #[test]
    fn errors_are_measured_on_leaf_cells() {
        let wave = AcousticWave { amplitude: 0.1, ..AcousticWave::STANDARD };
        let refine = vec![Criterion::DensityAbove { thresholds: vec![1.05] }];
        let parameters = RunParameters { max_level: 1, refine, flag_buffer: 0, ..RunParameters::default() };
        let clock = Clock::new(1.0, 0.0, None);
        let place = |mesh| crate::restrict(mesh, 1, wave.boundary(), 1.0, &clock, &parameters, &crate::silent).unwrap();
        let (state, audit) = place(wave.mesh(32, 1, 0.0));
        assert!(audit.levels[1].cells_kept > 0 && audit.levels[1].cells_removed > 0);
        let error = l1_error(&wave, &state, 0.0);
        let curvature = 0.1 * (std::f64::consts::TAU / 32.0).powi(2) / 32.0;
        assert!(error > 0.0 && error < curvature, "{error} {curvature}");
        // a quarter of a period later the wave is elsewhere: mean |cos(x) − cos(x − π/2)| = 2√2/π
        let moved = l1_error(&wave, &state, 0.25);
        assert!((moved / (0.1 * 8f64.sqrt() / std::f64::consts::PI) - 1.0).abs() < 0.01, "{moved}");
    }

    #[test]
    fn every_problem_makes_a_mesh_that_starts_as_it_should() {
        for problem in ALL {
            let mesh = problem.mesh(32, 0, 0.0);
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
