//! `comove inspect`: what a snapshot holds.

use crate::error::PipelineError;
use comove_sim::Snapshot;
use std::path::Path;

/// Reads a snapshot, which checks its digests, and prints what it says of itself.
pub(super) fn inspect(file: &Path) -> Result<(), PipelineError> {
    let snapshot = Snapshot::read(file)?;
    let header = &snapshot.header;
    let tree = &snapshot.state.tree;
    println!("{}: {:?}, every digest matches", file.display(), header.role);
    println!("  z = {}, a = {}, step {}", header.redshift(), header.a, header.step);
    println!("  box {} Mpc/h, {:?} precision", header.box_length, header.precision);
    if let Some(c) = header.cosmology {
        println!("  h = {}, Omega_m = {}, Omega_b = {}, Omega_Lambda = {}", c.h, c.omega_m, c.omega_b, c.omega_lambda);
        println!("  age {:.4} Gyr", c.age_gyr(header.a));
    }
    let shares = tree.volume_fractions().into_iter().zip(tree.leaf_cells()).enumerate();
    for (level, (fraction, leaves)) in shares {
        let width = snapshot.cell_width(level);
        println!("  level {level}: cells of {width} Mpc/h, {:.4} of the box, {leaves} leaf cells", fraction);
    }
    println!("  provenance {}", header.provenance);
    Ok(())
}
