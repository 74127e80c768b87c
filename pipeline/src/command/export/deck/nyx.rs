//! Nyx: an inputs file beside a binary file of particles (Almgren et al. 2013, ApJ 765, 39; *Nyx documentation*, Initial Conditions
//! and Running the code).

use super::{Line, Setup, columns, line, top, write};
use crate::error::PipelineError;
use comove_sim::Criterion;
use std::path::Path;

/// File of the particles.
pub(in crate::command::export) const IC: &str = "ics.nyx";

/// The parameter file.
const PARAMETERS: &str = "inputs";

/// Files of Nyx's input, the parameter file first.
pub(super) const FILES: [&str; 2] = [PARAMETERS, IC];

pub(in crate::command::export) fn write_deck(setup: &Setup<'_>, folder: &Path) -> Result<(), PipelineError> {
    let lines = lines(setup);
    let criteria: Vec<&Criterion> = setup.criteria();
    let remarks = [
        format!("Build with DIM=3 and NO_HYDRO=TRUE; start with: Nyx3d.ex {PARAMETERS}"),
        "Lengths are comoving Mpc without h. Nyx refines by tags that its build defines.".into(),
    ];
    let text = top(setup, "Nyx", "#", &remarks, &setup.not_covered(&lines.iter().collect::<Vec<_>>(), &criteria));
    write(folder, PARAMETERS, &format!("{text}\n{}", columns(&lines, "#")))
}

fn lines(setup: &Setup<'_>) -> Vec<Line> {
    let (c, run, facts) = (setup.cosmology(), &setup.run.parameters, setup.facts);
    let [nx, ny, nz] = facts.root;
    let side = facts.box_mpc_h / c.h;
    let redshifts: Vec<String> = setup.outputs().into_iter().map(|a| (1.0 / a - 1.0).to_string()).collect();
    let lines = [
        ("geometry.coord_sys", "0".to_string(), ""),
        ("geometry.is_periodic", "1 1 1".into(), "evolve.boundary, evolve.gravity_boundary"),
        ("geometry.prob_lo", "0 0 0".into(), ""),
        ("geometry.prob_hi", format!("{side} {side} {side}"), "ic.box_mpc_h, cosmology.h"),
        ("nyx.lo_bc", "0 0 0".into(), "evolve.boundary"),
        ("nyx.hi_bc", "0 0 0".into(), "evolve.boundary"),
        ("amr.n_cell", format!("{nx} {ny} {nz}"), "ic.root"),
        ("amr.max_level", run.max_level.to_string(), "evolve.max_level"),
        ("amr.ref_ratio", vec!["2"; usize::from(run.max_level).max(1)].join(" "), ""),
        ("amr.regrid_int", run.regrid_every.to_string(), "evolve.regrid_every"),
        ("amr.n_error_buf", run.flag_buffer.to_string(), "evolve.flag_buffer"),
        ("amr.blocking_factor", "8".into(), ""),
        ("amr.max_grid_size", "32".into(), ""),
        ("nyx.do_hydro", "0".into(), "ic.gas"),
        ("nyx.do_grav", i32::from(run.gravity).to_string(), "evolve.gravity"),
        ("max_step", "10000000".into(), ""),
        ("nyx.particle_move_type", "Gravitational".into(), ""),
        ("nyx.initial_z", facts.z.to_string(), "ic.z"),
        ("nyx.final_z", (1.0 / setup.end() - 1.0).to_string(), "evolve.z_end, evolve.coordinates"),
        ("nyx.relative_max_change_a", run.max_delta_a.to_string(), "evolve.max_delta_a"),
        ("nyx.comoving_h", c.h.to_string(), "cosmology.h"),
        ("nyx.comoving_OmM", c.omega_m.to_string(), "cosmology.omega_m, cosmology.omega_lambda"),
        ("nyx.comoving_OmB", "0".into(), "cosmology.omega_b"),
        ("nyx.do_dm_particles", "1".into(), "ic.dark_matter"),
        ("nyx.particle_init_type", "BinaryFile".into(), ""),
        ("nyx.binary_particle_file", IC.into(), "ic"),
        ("nyx.plot_z_values", redshifts.join(" "), "evolve.outputs"),
    ];
    lines.map(|(key, value, options)| line(key, value, options)).into()
}
