//! RAMSES: a namelist (Teyssier 2002, A&A 385, 337; *RAMSES documentation*, Runtime Parameters) beside a folder of GRAFIC files.

use super::{Line, Setup, by_group, line, remark, top, write};
use crate::error::PipelineError;
use comove_sim::{Criterion, TimeSteps};
use std::path::Path;

/// Folder of the initial condition.
pub(in crate::command::export) const IC: &str = "ics";

/// The parameter file.
pub(super) const PARAMETERS: &str = "ramses.nml";

/// The threshold of a level that is not refined.
const NEVER: f64 = -1.0;

pub(in crate::command::export) fn write_deck(setup: &Setup<'_>, folder: &Path) -> Result<(), PipelineError> {
    let lines = lines(setup);
    let is_covered = |one: &Criterion| of_mass(setup, one).or(of_jeans(one)).is_some();
    let left: Vec<&Criterion> = setup.criteria().into_iter().filter(|one| !is_covered(one)).collect();
    let remarks = [
        format!("Build with NDIM=3, NVAR=5 and SOLVER=hydro; start with: ramses3d {PARAMETERS}"),
        "RAMSES reads h, omega_m, omega_lambda and the gas's temperature in the GRAFIC files.".into(),
        "m_refine is a threshold of particles and gas together, each in its mean mass in a cell of levelmin.".into(),
        "RAMSES writes an output after the first step of levelmin beyond its aout.".into(),
    ];
    let text = top(setup, "RAMSES", "!", &remarks, &setup.not_covered(&lines.iter().collect::<Vec<_>>(), &left));
    write(folder, PARAMETERS, &format!("{text}{}", groups(&lines)))
}

/// Keys `GROUP:name` in namelist groups.
fn groups(lines: &[Line]) -> String {
    let of_line = |(name, line): (&str, &Line)| format!("{name}={}{}\n", line.value, remark(line, "!"));
    by_group(lines).map(|(group, lines)| format!("\n&{group}\n{}/\n", lines.map(of_line).collect::<String>())).collect()
}

/// Thresholds on the levels from that of the initial condition on, if there are some.
fn shown(setup: &Setup<'_>, thresholds: Option<Vec<Option<f64>>>) -> Option<String> {
    let levels = thresholds?.into_iter().skip(setup.facts.level.into());
    let levels: Vec<String> = levels.map(|threshold| threshold.unwrap_or(NEVER).to_string()).collect();
    (!levels.is_empty()).then(|| levels.join(","))
}

/// Thresholds of the mass in a cell: of particles in the number of them, of gas in the mean of its mass in a cell of the mesh.
/// RAMSES adds both, so that gas beside dark matter doubles the thresholds.
fn of_mass(setup: &Setup<'_>, criterion: &Criterion) -> Option<Vec<f64>> {
    let both = if setup.has_gas && setup.dark_matter.is_some() { 2.0 } else { 1.0 };
    match criterion {
        Criterion::ParticlesAbove { thresholds } => {
            setup.counted().map(|_| thresholds.iter().map(|t| both * t).collect())
        }
        Criterion::OverdensityAbove { thresholds } => {
            let finer = i32::from(setup.facts.level);
            Some(thresholds.iter().zip(0..).map(|(t, level)| both * t * 8f64.powi(finer - level)).collect())
        }
        _ => None,
    }
}

fn of_jeans(criterion: &Criterion) -> Option<Vec<f64>> {
    if let Criterion::JeansCellsBelow { thresholds } = criterion { Some(thresholds.clone()) } else { None }
}

fn lines(setup: &Setup<'_>) -> Vec<Line> {
    let (run, facts) = (&setup.run.parameters, setup.facts);
    let (root, mesh) = (facts.root[0].ilog2(), facts.cells[0].ilog2());
    // for as many levels as RAMSES may have
    let steps = if run.time_steps == TimeSteps::Uniform { "30*1" } else { "30*2" };
    let logical = |is_so: bool| if is_so { ".true." } else { ".false." };
    let aout: Vec<String> = setup.outputs().iter().map(f64::to_string).collect();
    let cells = facts.cells.iter().product::<usize>();
    let mut lines = vec![
        line("RUN_PARAMS:cosmo", ".true.", "evolve.coordinates"),
        line("RUN_PARAMS:pic", logical(setup.dark_matter.is_some()), "ic.dark_matter"),
        line("RUN_PARAMS:poisson", logical(run.gravity), "evolve.gravity"),
        line("RUN_PARAMS:hydro", logical(setup.has_gas), "ic.gas"),
        line("RUN_PARAMS:nrestart", 0, ""),
        line("RUN_PARAMS:nremap", 10, ""),
        line("RUN_PARAMS:nsubcycle", steps, "evolve.time_steps"),
        line("RUN_PARAMS:ncontrol", 1, ""),
        line("OUTPUT_PARAMS:noutput", aout.len(), "evolve.outputs"),
        line("OUTPUT_PARAMS:aout", aout.join(","), "evolve.outputs, evolve.z_end"),
        line("INIT_PARAMS:filetype", "'grafic'", ""),
        line(
            "INIT_PARAMS:initfile(1)",
            format!("'{IC}'"),
            "ic, cosmology.h, cosmology.omega_m, cosmology.omega_lambda",
        ),
        line("INIT_PARAMS:omega_b", setup.omega_gas(), "cosmology.omega_b"),
        line("AMR_PARAMS:levelmin", mesh, "ic.cells"),
        line("AMR_PARAMS:levelmax", mesh.max(root + u32::from(run.max_level)), "ic.root, evolve.max_level"),
        line("AMR_PARAMS:nexpand", 1, ""),
        line("AMR_PARAMS:ngridmax", (cells / 2).max(100_000), ""),
        line("AMR_PARAMS:npartmax", (2 * setup.particles()).max(100_000), ""),
    ];
    for (key, value) in [
        ("REFINE_PARAMS:m_refine", setup.thresholds(|one| of_mass(setup, one), f64::min)),
        ("REFINE_PARAMS:jeans_refine", setup.thresholds(of_jeans, f64::max)),
    ] {
        lines.extend(shown(setup, value).map(|value| line(key, value, "evolve.refine")));
    }
    lines.push(line("REFINE_PARAMS:interpol_var", 1, ""));
    if setup.has_gas {
        lines.extend([
            line("HYDRO_PARAMS:gamma", run.gamma, "evolve.gamma"),
            line("HYDRO_PARAMS:courant_factor", 0.8, ""),
            line("HYDRO_PARAMS:slope_type", 1, ""),
            line("HYDRO_PARAMS:scheme", "'muscl'", ""),
            line("HYDRO_PARAMS:riemann", "'hllc'", ""),
            line("HYDRO_PARAMS:pressure_fix", logical(run.dual_energy), "evolve.dual_energy"),
            // without it pressure_fix does nothing
            line("HYDRO_PARAMS:beta_fix", 0.5, ""),
            line("HYDRO_PARAMS:smallr", format!("{:e}", run.density_floor), "evolve.density_floor"),
        ]);
    }
    lines
}
