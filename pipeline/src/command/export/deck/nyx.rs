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
    vec![
        line("geometry.coord_sys", 0, ""),
        line("geometry.is_periodic", "1 1 1", "evolve.boundary, evolve.gravity_boundary"),
        line("geometry.prob_lo", "0 0 0", ""),
        line("geometry.prob_hi", format!("{side} {side} {side}"), "ic.box_mpc_h, cosmology.h"),
        line("nyx.lo_bc", "0 0 0", "evolve.boundary"),
        line("nyx.hi_bc", "0 0 0", "evolve.boundary"),
        line("amr.n_cell", format!("{nx} {ny} {nz}"), "ic.root"),
        line("amr.max_level", run.max_level, "evolve.max_level"),
        line("amr.ref_ratio", vec!["2"; usize::from(run.max_level).max(1)].join(" "), ""),
        line("amr.regrid_int", run.regrid_every, "evolve.regrid_every"),
        line("amr.n_error_buf", run.flag_buffer, "evolve.flag_buffer"),
        line("amr.blocking_factor", 8, ""),
        line("amr.max_grid_size", 32, ""),
        line("nyx.do_hydro", 0, "ic.gas"),
        line("nyx.do_grav", i32::from(run.gravity), "evolve.gravity"),
        line("max_step", 10000000, ""),
        line("nyx.particle_move_type", "Gravitational", ""),
        line("nyx.initial_z", facts.z, "ic.z"),
        line("nyx.final_z", 1.0 / setup.end() - 1.0, "evolve.z_end, evolve.coordinates"),
        line("nyx.relative_max_change_a", run.max_delta_a, "evolve.max_delta_a"),
        line("nyx.comoving_h", c.h, "cosmology.h"),
        line("nyx.comoving_OmM", c.omega_m, "cosmology.omega_m, cosmology.omega_lambda"),
        line("nyx.comoving_OmB", 0, "cosmology.omega_b"),
        line("nyx.do_dm_particles", 1, "ic.dark_matter"),
        line("nyx.particle_init_type", "BinaryFile", ""),
        line("nyx.binary_particle_file", IC, "ic"),
        line("nyx.plot_z_values", redshifts.join(" "), "evolve.outputs"),
    ]
}
