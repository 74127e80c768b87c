//! An initial condition on a uniform mesh: how it is made, and what a run has to know of it.

use comove_ic::format::comove_ic as mesh_file;
use comove_ic::{Contents, GaussianIc, LoadIc};
use comove_sim::Cosmology;
use serde::{Deserialize, Serialize};

/// Cells along the three axes in a few words: 32³ or 64 × 16 × 16.
pub(crate) fn shown([x, y, z]: [usize; 3]) -> String {
    if x == y && y == z { format!("{x}³") } else { format!("{x} × {y} × {z}") }
}

/// As unless stated otherwise.
pub(super) fn yes() -> bool {
    true
}

/// What a run has to know of an initial condition besides the mesh.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct InitialFacts {
    pub cosmology: Cosmology,
    /// Box length along x in Mpc/h.
    pub box_mpc_h: f64,
    /// Cells of the mesh along x, y, z.
    pub cells: [usize; 3],
    /// Cells of the root level along x, y, z.
    pub root: [usize; 3],
    /// The level whose cells are the mesh's.
    pub level: u8,
    pub z: f64,
    pub mean_molecular_weight: f64,
    pub gamma: f64,
    /// Whether there is gas, as far as that is known before the mesh is made.
    #[serde(default = "yes")]
    pub gas: bool,
    /// Particles of dark matter, as far as they are known before the mesh is made.
    #[serde(default)]
    pub particles: u64,
    /// Whether both are known: a file of our own format may hold gas, particles or both.
    #[serde(default = "yes")]
    pub species_known: bool,
}

/// The species of an initial condition, a run or a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SpeciesPresent {
    pub gas: bool,
    pub dark_matter: bool,
}

impl SpeciesPresent {
    pub(crate) const GAS: Self = Self { gas: true, dark_matter: false };
}

/// Where the mesh comes from.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum InitialCondition {
    /// A Gaussian realisation of a linear spectrum.
    Gaussian(GaussianIc),
    /// A file, and its contents; `None` if there was no such file when the recipe was evaluated.
    Load(LoadIc, Option<Contents>),
}

/// What the file of such a mesh states.
pub(super) fn header(
    cosmology: &Cosmology,
    box_mpc_h: f64,
    z: f64,
    mean_molecular_weight: f64,
    gamma: f64,
) -> mesh_file::Header {
    mesh_file::Header {
        a: 1.0 / (1.0 + z),
        box_mpc_h,
        h: cosmology.h,
        omega_m: cosmology.omega_m,
        omega_lambda: cosmology.omega_lambda,
        omega_b: cosmology.omega_b,
        mean_molecular_weight,
        gamma,
    }
}
