//! SWIFT: a parameter file and the list of its outputs (*SWIFT documentation*, Parameter Files).

use super::{Line, Setup, by_group, line, remark, top, write};
use crate::error::PipelineError;
use comove_ic::format::gadget::write::{Dialect, MASS_G, VELOCITY_CM_S};
use std::path::Path;

/// File of the initial condition.
pub(in crate::command::export) const IC: &str = "ics.hdf5";

const PARAMETERS: &str = "swift.yml";
const OUTPUTS: &str = "outputs.txt";

/// Files of SWIFT's input, the parameter file first.
pub(super) const FILES: [&str; 3] = [PARAMETERS, OUTPUTS, IC];

pub(in crate::command::export) fn write_deck(setup: &Setup<'_>, folder: &Path) -> Result<(), PipelineError> {
    let lines = lines(setup);
    let criteria: Vec<_> = setup.run.parameters.refine.iter().collect();
    let gravity = if setup.run.parameters.gravity { " --self-gravity" } else { "" };
    let hydro = if setup.has_gas { " --hydro" } else { "" };
    let start = line("swift", format!("--cosmology{gravity}{hydro} {PARAMETERS}"), "evolve.gravity, ic.gas");
    let remarks = [
        format!("Start with: {} {}", start.key, start.value),
        "Softening lengths are the width of a cell of the finest level; lengths are comoving Mpc without h.".into(),
    ];
    let all: Vec<&Line> = lines.iter().chain([&start]).collect();
    let text = top(setup, "SWIFT", "#", &remarks, &setup.not_covered(&all, &criteria));
    let outputs: String = setup.outputs().iter().map(|a| format!("{a}\n")).collect();
    write(folder, OUTPUTS, &format!("# Scale Factor\n{outputs}"))?;
    write(folder, PARAMETERS, &format!("{text}{}", sections(&lines)))
}

/// Keys `Section:name` in sections.
fn sections(lines: &[Line]) -> String {
    let of_line =
        |(name, line): (&str, &Line)| format!("  {:32} {}{}\n", format!("{name}:"), line.value, remark(line, "#"));
    by_group(lines)
        .map(|(section, lines)| format!("\n{section}:\n{}", lines.map(of_line).collect::<String>()))
        .collect()
}

fn lines(setup: &Setup<'_>) -> Vec<Line> {
    let (c, run) = (setup.cosmology(), &setup.run.parameters);
    let softening = setup.finest() / c.h;
    const SOFTENING: &str = "ic.box_mpc_h, ic.root, evolve.max_level";
    let mut lines = vec![
        line("MetaData:run_name", setup.campaign.replace(' ', "_"), "campaign"),
        line("InternalUnitSystem:UnitMass_in_cgs", format!("{MASS_G:e}"), ""),
        line("InternalUnitSystem:UnitLength_in_cgs", format!("{:e}", Dialect::Swift.length_cm()), ""),
        line("InternalUnitSystem:UnitVelocity_in_cgs", format!("{VELOCITY_CM_S:e}"), ""),
        line("InternalUnitSystem:UnitCurrent_in_cgs", 1, ""),
        line("InternalUnitSystem:UnitTemp_in_cgs", 1, ""),
        line("Cosmology:h", c.h, "cosmology.h"),
        line("Cosmology:a_begin", setup.start(), "ic.z"),
        line("Cosmology:a_end", setup.end(), "evolve.z_end, evolve.coordinates"),
        line("Cosmology:Omega_cdm", c.omega_m - setup.omega_gas(), "cosmology.omega_m"),
        line("Cosmology:Omega_b", setup.omega_gas(), "cosmology.omega_b"),
        line("Cosmology:Omega_lambda", c.omega_lambda, "cosmology.omega_lambda"),
        line("Cosmology:Omega_r", c.omega_r, "cosmology.omega_r"),
        line("Cosmology:w_0", c.w0, "cosmology.w0"),
        line("Cosmology:w_a", c.wa, "cosmology.wa"),
        line("Gravity:eta", 0.025, ""),
        line("Gravity:MAC", "adaptive", ""),
        line("Gravity:theta_cr", 0.6, ""),
        line("Gravity:epsilon_fmm", 0.001, ""),
        line("Gravity:use_tree_below_softening", 0, ""),
        line("Gravity:mesh_side_length", setup.facts.root[0] * 2, "ic.root"),
        line("Gravity:comoving_DM_softening", softening, SOFTENING),
        line("Gravity:max_physical_DM_softening", softening, SOFTENING),
        line("Gravity:comoving_baryon_softening", softening, SOFTENING),
        line("Gravity:max_physical_baryon_softening", softening, SOFTENING),
        line("TimeIntegration:dt_min", "1e-10", ""),
        line("TimeIntegration:dt_max", run.max_delta_a, "evolve.max_delta_a"),
        line("InitialConditions:file_name", IC, "ic"),
        line("InitialConditions:periodic", 1, "evolve.boundary, evolve.gravity_boundary"),
        line("InitialConditions:cleanup_h_factors", 0, ""),
        line("InitialConditions:cleanup_velocity_factors", 0, ""),
        line("Snapshots:basename", "snapshot", ""),
        line("Snapshots:scale_factor_first", setup.start(), ""),
        line("Snapshots:delta_time", 2, ""),
        line("Snapshots:output_list_on", 1, "evolve.outputs"),
        line("Snapshots:output_list", OUTPUTS, "evolve.outputs"),
        line("Restarts:delta_hours", setup.run.checkpoints.every_minutes / 60.0, "evolve.checkpoints.every_minutes"),
        line("Statistics:scale_factor_first", setup.start(), ""),
        line("Statistics:delta_time", 1.05, ""),
    ];
    if setup.has_gas {
        lines.extend([
            line("SPH:resolution_eta", 1.2348, ""),
            line("SPH:CFL_condition", 0.1, ""),
            line("SPH:minimal_temperature", 0, ""),
        ]);
    }
    lines
}
