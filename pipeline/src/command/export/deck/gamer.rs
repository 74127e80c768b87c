//! GAMER: `Input__Parameter`, the tables of its refinement criteria and of its outputs (*GAMER wiki*, Runtime Parameters).

use super::{Line, Setup, columns, line, top, write};
use crate::error::PipelineError;
use comove_sim::criterion::Quantity;
use comove_sim::{Criterion, TimeSteps};
use std::path::Path;

/// File of the gas.
pub(in crate::command::export) const GAS: &str = "UM_IC";

/// File of the dark matter.
pub(in crate::command::export) const DARK_MATTER: &str = "PAR_IC";

const PARAMETERS: &str = "Input__Parameter";
const DUMPS: &str = "Input__DumpTable";

/// A file that has to be there, whatever it says.
const PROBLEM: &str = "Input__TestProb";

/// A threshold that no cell reaches.
const NEVER: f64 = 1e30;

/// A refinement criterion of GAMER.
struct Flag {
    option: &'static str,
    file: &'static str,
    column: &'static str,
    /// Its thresholds by level, of criteria that it covers.
    thresholds: fn(&Setup<'_>, &Criterion) -> Option<Vec<f64>>,
    /// True if cells below the threshold are refined, false if those above are.
    is_below: bool,
}

const FLAGS: [Flag; 5] = [
    Flag {
        option: "OPT__FLAG_RHO",
        file: "Input__Flag_Rho",
        column: "Density",
        thresholds: |setup, criterion| match criterion {
            _ if !setup.has_gas => None,
            Criterion::DensityAbove { thresholds } => Some(thresholds.clone()),
            Criterion::OverdensityAbove { thresholds } => {
                let mean = setup.omega_gas() / setup.cosmology().omega_m;
                Some(thresholds.iter().map(|t| t * mean).collect())
            }
            _ => None,
        },
        is_below: false,
    },
    Flag {
        option: "OPT__FLAG_RHO_GRADIENT",
        file: "Input__Flag_RhoGradient",
        column: "Density_Gradient",
        thresholds: |_, criterion| gradient(criterion, Quantity::Density),
        is_below: false,
    },
    Flag {
        option: "OPT__FLAG_PRES_GRADIENT",
        file: "Input__Flag_PresGradient",
        column: "Pressure_Gradient",
        thresholds: |_, criterion| gradient(criterion, Quantity::Pressure),
        is_below: false,
    },
    Flag {
        option: "OPT__FLAG_JEANS",
        file: "Input__Flag_Jeans",
        column: "Jeans_Length_in_Cells",
        thresholds: |_, criterion| match criterion {
            Criterion::JeansCellsBelow { thresholds } => Some(thresholds.clone()),
            _ => None,
        },
        is_below: true,
    },
    Flag {
        option: "OPT__FLAG_PAR_MASS_CELL",
        file: "Input__Flag_ParMassCell",
        column: "Particle_Mass_per_Cell",
        thresholds: |setup, criterion| match criterion {
            // GAMER adds the masses of all particles
            Criterion::ParticlesAbove { thresholds } => {
                // a sum of as many masses rounds to either side of the threshold
                let mass = setup.counted()?.particle_mass * (1.0 + 1e-6);
                Some(thresholds.iter().map(|t| t * mass).collect())
            }
            _ => None,
        },
        is_below: false,
    },
];

fn gradient(criterion: &Criterion, quantity: Quantity) -> Option<Vec<f64>> {
    match criterion {
        Criterion::GradientAbove { of, thresholds } if *of == quantity => Some(thresholds.clone()),
        _ => None,
    }
}

impl Flag {
    /// Thresholds by level.
    fn by_level(&self, setup: &Setup<'_>) -> Option<Vec<f64>> {
        let (never, weaker): (f64, fn(f64, f64) -> f64) =
            if self.is_below { (0.0, f64::max) } else { (NEVER, f64::min) };
        let of_levels = setup.thresholds(|criterion| (self.thresholds)(setup, criterion), weaker)?;
        Some(of_levels.into_iter().map(|threshold| threshold.unwrap_or(never)).collect())
    }
}

/// Files of GAMER's input, the parameter file first.
pub(super) fn files() -> impl Iterator<Item = &'static str> {
    [PARAMETERS, DUMPS, PROBLEM, GAS, DARK_MATTER].into_iter().chain(FLAGS.iter().map(|flag| flag.file))
}

pub(in crate::command::export) fn write_deck(setup: &Setup<'_>, folder: &Path) -> Result<(), PipelineError> {
    let lines = lines(setup);
    let is_covered = |one: &Criterion| FLAGS.iter().any(|flag| (flag.thresholds)(setup, one).is_some());
    let left: Vec<&Criterion> = setup.criteria().into_iter().filter(|one| !is_covered(one)).collect();
    let (particles, run) = (setup.dark_matter.is_some(), &setup.run.parameters);
    let (gravity, levels) = (run.gravity, run.max_level + 1);
    let dual = if run.dual_energy { " --dual=ENPY" } else { "" };
    let remarks = [
        format!(
            "Configure with: --model=HYDRO --gravity={gravity} --comoving=true --particle={particles} --double=true{dual} \
             --hdf5=true --fftw=FFTW3 --nlevel={levels}"
        ),
        "Code units are those of comove: comoving Mpc/h, mean matter density, a v_pec/(100 km/s); omega_lambda is 1 - omega_m.".into(),
        "GAMER counts the particles of a cell, comove their clouds; both compare the mass with Input__Flag_ParMassCell.".into(),
    ];
    let text = top(setup, "GAMER", "#", &remarks, &setup.not_covered(&lines.iter().collect::<Vec<_>>(), &left));
    for flag in &FLAGS {
        if let Some(thresholds) = flag.by_level(setup) {
            let rows: String = thresholds.iter().enumerate().map(|(n, t)| format!("{n:7}  {t:e}\n")).collect();
            write(folder, flag.file, &format!("# Level  {}\n{rows}", flag.column))?;
        }
    }
    let dumps: String = setup.outputs().iter().enumerate().map(|(n, a)| format!("{n:9}  {a}\n")).collect();
    write(folder, DUMPS, &format!("#Dump ID  Dump Time\n{dumps}***************END LINE***************\n"))?;
    write(folder, PROBLEM, "# no parameters of a test problem\n")?;
    write(folder, PARAMETERS, &format!("{text}\n{}", columns(&lines, "#")))
}

fn lines(setup: &Setup<'_>) -> Vec<Line> {
    let (c, run, [nx, ny, nz]) = (setup.cosmology(), &setup.run.parameters, setup.facts.root);
    let longest = [nx, ny, nz].into_iter().max().unwrap_or(nx) as f64;
    let steps = if run.time_steps == TimeSteps::Uniform { 1 } else { 2 };
    let number = |is_so: bool| i32::from(is_so);
    let mut lines = vec![
        line("BOX_SIZE", setup.facts.box_mpc_h * (longest / nx as f64), "ic.box_mpc_h"),
        line("NX0_TOT_X", nx, "ic.root"),
        line("NX0_TOT_Y", ny, "ic.root"),
        line("NX0_TOT_Z", nz, "ic.root"),
        line("OMP_NTHREAD", -1, ""),
        line("END_T", setup.end(), "evolve.z_end"),
        line("END_STEP", i32::MAX, ""),
        // of dark matter alone, which needs gas of no mass
        line("TESTPROB_ID", if setup.has_gas { 0 } else { 100 }, "ic.gas"),
        line("OPT__UNIT", 1, "evolve.coordinates"),
    ];
    let faces =
        ["OPT__BC_FLU_XM", "OPT__BC_FLU_XP", "OPT__BC_FLU_YM", "OPT__BC_FLU_YP", "OPT__BC_FLU_ZM", "OPT__BC_FLU_ZP"];
    lines.extend(faces.map(|key| line(key, 1, "evolve.boundary")));
    lines.push(line("OPT__BC_POT", 1, "evolve.gravity_boundary"));
    if setup.dark_matter.is_some() {
        lines.extend([
            line("PAR_NPAR", setup.particles(), "ic.dark_matter"),
            line("PAR_INIT", 3, "ic.dark_matter"),
            line("PAR_IC_FORMAT", 1, "ic.dark_matter"),
            line("PAR_IC_FLOAT8", 1, "ic.dark_matter"),
            line("PAR_IC_MASS", -1.0, "ic.dark_matter"),
            line("PAR_IC_TYPE", 2, "ic.dark_matter"),
            line("PAR_INTERP", 2, ""),
        ]);
    }
    lines.extend([
        line("A_INIT", setup.start(), "ic.z"),
        line("OMEGA_M0", c.omega_m, "cosmology.omega_m"),
        line("HUBBLE0", c.h, "cosmology.h"),
        line("DT__MAX_DELTA_A", run.max_delta_a, "evolve.max_delta_a"),
        line("OPT__DT_LEVEL", steps, "evolve.time_steps"),
        line("REGRID_COUNT", run.regrid_every, "evolve.regrid_every"),
        line("FLAG_BUFFER_SIZE", run.flag_buffer, "evolve.flag_buffer"),
        line("MAX_LEVEL", run.max_level, "evolve.max_level"),
    ]);
    lines.extend(FLAGS.iter().map(|flag| line(flag.option, number(flag.by_level(setup).is_some()), "evolve.refine")));
    lines.extend([
        line("GAMMA", run.gamma, "evolve.gamma"),
        line("MOLECULAR_WEIGHT", setup.facts.mean_molecular_weight, "ic.mean_molecular_weight"),
        line("OPT__1ST_FLUX_CORR", if run.first_order_redo { -1 } else { 0 }, "evolve.first_order_redo"),
        line("OPT__FREEZE_FLUID", number(!setup.has_gas), "ic.gas"),
        line("MIN_DENS", format!("{:e}", run.density_floor), "evolve.density_floor"),
        line("MIN_PRES", format!("{:e}", run.pressure_floor), "evolve.pressure_floor"),
        line("OPT__SELF_GRAVITY", number(run.gravity), "evolve.gravity"),
        line("OPT__INIT", if setup.has_gas { 3 } else { 1 }, "ic.gas"),
        line("OPT__OUTPUT_TOTAL", 1, ""),
        line("OPT__OUTPUT_MODE", 3, "evolve.outputs"),
        line("OUTPUT_DIR", ".", ""),
    ]);
    if run.dual_energy {
        lines.push(line("DUAL_ENERGY_SWITCH", run.eta, "evolve.eta, evolve.dual_energy"));
    }
    if setup.has_gas {
        lines.extend([
            line("OPT__UM_IC_LEVEL", setup.facts.level, "ic.cells, ic.root"),
            line("OPT__UM_IC_NLEVEL", 1, ""),
            line("OPT__UM_IC_NVAR", 5, "ic.gas, cosmology.omega_b"),
            line("OPT__UM_IC_FORMAT", 1, ""),
            line("OPT__UM_IC_FLOAT8", 1, ""),
            line("OPT__UM_IC_DOWNGRADE", 1, "evolve.refine"),
            line("OPT__UM_IC_REFINE", 1, "evolve.refine"),
        ]);
    }
    lines
}
