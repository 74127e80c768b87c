//! Initial conditions: from a linear spectrum or a file to a uniform mesh, and from there to the octree.
//!
//! | module | what it holds |
//! |---|---|
//! | [`gaussian_ic`], [`load_ic`] | the two ways to a [`UniformMesh`]: generate it, or read a file |
//! | [`restrict()`] | from the mesh to the octree of a [`comove_sim::HostState`], with an audit of what it keeps |
//! | [`linear_power`] | P(k) today: Eisenstein & Hu 1998 or a table of CAMB or CLASS, normalised to σ8; transfer functions of gas and dark matter |
//! | [`gaussian_field`] | modes of a seed, which do not depend on resolution, or of a file of white noise; density, growing-mode velocity, displacements up to third order |
//! | [`doctor`] | examination: density, velocities and temperature beside linear theory, with the mistakes that would explain them |
//! | [`temperature`] | gas temperature after decoupling, internal energy |
//! | [`uniform_mesh`], [`particle_set`] | density, momentum and internal energy on a uniform mesh; dark matter on a displaced lattice or at given positions |
//! | [`particle_rows`] | particles, and cells in their place, as rows of files that are written |
//! | [`zoom`], [`Identities`] | nested lattices of particles around a region; which particles refinement follows |
//! | [`format`](mod@format) | file formats: GAMER's `UM_IC`, our own HDF5, Gadget, SWIFT, GRAFIC, monofonIC, MUSIC, Enzo; the table of all |
//! | [`problems`] | problems given by a formula, with their solutions |
//! | [`function_state()`] | from a formula to the octree, level by level |
//! | [`scalar_state()`] | a passive scalar of such a state |
//!
//! Ranks may share a mesh ([`comove_sim::parallel`]), each with some planes of it: what takes a communicator is an operation
//! of all of them, with the bits of one that is alone.
//!
//! Long work reports where it is through a callback `&dyn Fn(&str, f64)`: what it does, and the fraction done (0 to 1);
//! pass [`silent`] where nobody watches.

pub mod doctor;
pub mod error;
pub mod format;
pub mod function_state;
pub mod gaussian_field;
pub mod gaussian_ic;
mod identities;
pub mod linear_power;
pub mod load_ic;
mod ode;
mod ordered_sum;
pub mod particle_rows;
pub mod particle_set;
pub mod problems;
pub mod restrict;
mod scalar_state;
mod slab;
pub mod span;
pub mod temperature;
pub mod uniform_mesh;
pub mod zoom;

pub use doctor::{BareFile, Examination, Finding, Given, Verdict};
pub use error::IcError;
pub use format::{Contents, LengthUnit, LoadFormat, LoadIc};
pub use function_state::function_state;
pub use gaussian_field::noise_file::{NoiseFile, NoiseSign};
pub use gaussian_ic::GaussianIc;
pub use identities::Identities;
pub use linear_power::species_transfer::{Species, SpeciesRatios, SpeciesTransfer};
pub use linear_power::with_neutrinos::check_tables;
pub use linear_power::{LinearPower, PowerSource};
pub use particle_set::ParticleSet;
pub use restrict::{Audit, restrict};
pub use scalar_state::scalar_state;
pub use uniform_mesh::{DarkMatter, NestedGas, UniformMesh};
pub use zoom::Zoom;

/// A progress callback that says nothing.
pub fn silent(_activity: &str, _fraction: f64) {}
