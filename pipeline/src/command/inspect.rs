//! `comove inspect`: contents of a snapshot, or examination of a file of initial conditions.

use super::print;
use crate::cli::Inspect;
use crate::error::PipelineError;
use crate::moment::Moment;
use crate::processes::isolated_read;
use comove_ic::{Finding, Given, Verdict};
use comove_sim::kernels::point::particle::mass_of_class;
use comove_sim::{Coordinates, Precision, Snapshot};
use std::path::Path;

/// Inspects a file of either kind.
pub(super) fn inspect(asked: &Inspect) -> Result<(), PipelineError> {
    let file = &asked.file;
    let given = given(asked)?;
    match isolated_read::mesh_contents(file) {
        Ok(Some(_)) => examine(file, &given),
        // the options are those of initial conditions
        Err(error) if asked.redshift.is_some() || !asked.cosmology.is_empty() => Err(error),
        _ => snapshot(file),
    }
}

/// Numbers of the command line.
fn given(asked: &Inspect) -> Result<Given, PipelineError> {
    if let Some(z) = asked.redshift.filter(|z| !z.is_finite()) {
        return Err(PipelineError::Usage(format!("--redshift {z}: expected a number")));
    }
    let mut given = Given { z: asked.redshift, ..Given::default() };
    for (name, value) in &asked.cosmology {
        let number = value.parse::<f64>().ok().filter(|number| number.is_finite());
        let number =
            number.ok_or_else(|| PipelineError::Usage(format!("--cosmology {name}={value}: expected a number")))?;
        let member = match name.as_str() {
            "h" => &mut given.h,
            "omega_m" => &mut given.omega_m,
            "omega_b" => &mut given.omega_b,
            "omega_lambda" => &mut given.omega_lambda,
            "sigma8" => &mut given.sigma8,
            "n_s" => &mut given.n_s,
            _ => {
                let reason = "expected h, omega_m, omega_b, omega_lambda, sigma8 or n_s";
                return Err(PipelineError::Usage(format!("--cosmology {name}={value}: unknown name; {reason}")));
            }
        };
        *member = Some(number);
    }
    Ok(given)
}

/// Has an initial condition examined, and prints its findings.
fn examine(file: &Path, given: &Given) -> Result<(), PipelineError> {
    let found = isolated_read::examination(file, given)?;
    print(&format!("{}: initial condition, format {}", file.display(), found.format))?;
    for [name, value, source] in &found.stated {
        print(&format!("  {name} = {value} ({source})"))?;
    }
    let width = |of: fn(&Finding) -> &String| found.findings.iter().map(|f| of(f).chars().count()).max().unwrap_or(0);
    let (quantity, value, expected) = (width(|f| &f.quantity), width(|f| &f.found), width(|f| &f.expected).max(8));
    print(&format!("  {:quantity$}  {:>value$}  {:>expected$}  verdict", "quantity", "found", "expected"))?;
    for f in &found.findings {
        print(&format!(
            "  {:quantity$}  {:>value$}  {:>expected$}  {}",
            f.quantity,
            f.found,
            f.expected,
            f.verdict.name()
        ))?;
    }
    for sentence in &found.missing {
        print(&format!("  note: {sentence}"))?;
    }
    for finding in found.findings.iter().filter(|f| f.verdict != Verdict::Good) {
        print(&format!("  {}: {}", finding.verdict.name(), finding.sentence))?;
    }
    let wrong = found.findings.iter().filter(|f| f.verdict == Verdict::Wrong).count();
    match wrong {
        0 => Ok(()),
        _ => Err(PipelineError::input(file, format!("{wrong} of {} findings are wrong", found.findings.len()))),
    }
}

/// Has a snapshot read, which checks its digests, and prints what it says of itself.
fn snapshot(file: &Path) -> Result<(), PipelineError> {
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
        if c.has_neutrinos() {
            print(&format!("  massive neutrinos of {} eV in all, Omega_nu = {:.5}", c.m_nu_ev, c.omega_nu()))?;
        }
        print(&format!("  age {:.4} Gyr", c.age_gyr(header.a)))?;
    }
    if let Some(dark_matter) = header.dark_matter {
        let mass = dark_matter.particle_mass * header.units().mass_msun_h();
        let unit = if header.cosmology.is_some() { format!(" of {mass:.4e} Msun/h") } else { String::new() };
        print(&format!("  dark matter: {} particles{unit}", dark_matter.particles))?;
        for (n, count) in dark_matter.heavier.iter().enumerate().filter(|(_, count)| **count > 0) {
            print(&format!("    {count} of them {} times as heavy", mass_of_class(n + 1)))?;
        }
        if dark_matter.not_followed > 0 {
            print(&format!("    {} of the lightest not followed by refinement", dark_matter.not_followed))?;
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
