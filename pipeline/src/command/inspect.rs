//! `comove inspect`: what a snapshot holds.

use super::print;
use crate::error::PipelineError;
use crate::moment::Moment;
use comove_sim::{Coordinates, Precision, Snapshot};
use std::path::Path;

/// Reads a snapshot, which checks its digests, and prints what it says of itself.
pub(super) fn inspect(file: &Path) -> Result<(), PipelineError> {
    let snapshot = Snapshot::read(file)?;
    let header = &snapshot.header;
    let tree = &snapshot.state.tree;
    print(&format!("{}: {}, every digest matches", file.display(), header.role.name()));
    let (moment, length) = match header.coordinates {
        Coordinates::Comoving => (format!("{}, a = {}", Moment::of(header), header.a), "Mpc/h"),
        Coordinates::Plain => (Moment::of(header).to_string(), "in code units"),
    };
    print(&format!("  {moment}, step {}", header.step));
    let precision = match header.precision {
        Precision::Single => "single",
        Precision::Double => "double",
    };
    print(&format!("  box {} {length}, {precision} precision", header.box_length));
    if let Some(c) = header.cosmology {
        print(&format!(
            "  h = {}, Omega_m = {}, Omega_b = {}, Omega_Lambda = {}",
            c.h, c.omega_m, c.omega_b, c.omega_lambda
        ));
        print(&format!("  age {:.4} Gyr", c.age_gyr(header.a)));
    }
    let shares = tree.volume_fractions().into_iter().zip(tree.leaf_cells()).enumerate();
    for (level, (fraction, leaves)) in shares {
        let width = snapshot.cell_width(level);
        print(&format!("  level {level}: cells of {width} {length}, {:.4} of the box, {leaves} leaf cells", fraction));
    }
    for (name, value) in header.provenance.as_object().into_iter().flatten() {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        print(&format!("  {}: {value}", name.replace('_', " ")));
    }
    Ok(())
}
