//! Whole runs: conservation, symmetry, bits, ranks, devices, snapshots. One program, so that HDF5 is linked once.

mod bits;
mod boundaries;
mod common;
mod composite_grid;
mod conservation;
mod cosmic_energy;
mod criteria;
mod dark_matter;
mod dark_matter_forces;
mod devices;
mod gravity;
mod heating;
mod individual_steps;
mod isolated_gravity;
mod ladder;
mod memory;
mod potentials;
mod ranks;
mod ranks_dark_matter;
mod scalars;
mod snapshot;
mod steering;
mod strong_shocks;
mod symmetry;
