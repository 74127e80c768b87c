//! `comove inspect`: what a snapshot holds.

use super::print;
use crate::error::PipelineError;
use crate::isolated_read;
use crate::moment::Moment;
use comove_sim::kernels::point::particle::mass_of_class;
use comove_sim::{Coordinates, Precision, Snapshot};
use std::path::Path;

/// Has a snapshot read, which checks its digests, and prints what it says of itself.
pub(super) fn inspect(file: &Path) -> Result<(), PipelineError> {
    isolated_read::snapshot(file)?;
    let (header, tree) = Snapshot::read_tree(file)?;
    print(&format!("{}: {}, every digest matches", file.display(), header.role.name()))?;
    let (moment, length) = match header.coordinates {
        Coordinates::Comoving => (format!("{}, a = {}", Moment::of(&header), header.a), "Mpc/h"),
        Coordinates::Plain => (Moment::of(&header).to_string(), "in code units"),
    };
    print(&format!("  {moment}, step {}", header.step))?;
    let precision = match header.precision {
        Precision::Single => "single",
        Precision::Double => "double",
    };
    let [x, y, z] = header.box_lengths(&tree);
    let lengths = if x == y && y == z { x.to_string() } else { format!("{x} × {y} × {z}") };
    print(&format!("  box {lengths} {length}, {precision} precision"))?;
    if let Some(c) = header.cosmology {
        print(&format!(
            "  h = {}, Omega_m = {}, Omega_b = {}, Omega_Lambda = {}",
            c.h, c.omega_m, c.omega_b, c.omega_lambda
        ))?;
        print(&format!("  age {:.4} Gyr", c.age_gyr(header.a)))?;
    }
    if let Some(dark_matter) = header.dark_matter {
        let mass = dark_matter.particle_mass * header.units().mass_msun_h();
        let unit = if header.cosmology.is_some() { format!(" of {mass:.4e} Msun/h") } else { String::new() };
        print(&format!("  dark matter: {} particles{unit}", dark_matter.particles))?;
        for (n, count) in dark_matter.heavier.iter().enumerate().filter(|(_, count)| **count > 0) {
            print(&format!("    {count} of them {} times as heavy", mass_of_class(n + 1)))?;
        }
    }
    let shares = tree.volume_fractions().into_iter().zip(tree.leaf_cells()).enumerate();
    for (level, (fraction, leaves)) in shares {
        let width = header.cell_width(&tree, level);
        print(&format!("  level {level}: cells of {width} {length}, {:.4} of the box, {leaves} leaf cells", fraction))?;
    }
    for (name, value) in header.provenance.as_object().into_iter().flatten() {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        print(&format!("  {}: {value}", name.replace('_', " ")))?;
    }
    Ok(())
}
