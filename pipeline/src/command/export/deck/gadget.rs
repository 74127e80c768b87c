//! Gadget-4: `param.txt`, the list of its outputs and the options to build it with (Springel et al. 2021, MNRAS 506, 2871; *GADGET-4
//! documentation*, Parameterfile).

use super::{Line, Setup, columns, line, top, write};
use crate::error::PipelineError;
use comove_ic::format::gadget::write::{Dialect, MASS_G, VELOCITY_CM_S};
use std::path::Path;

/// File of the initial condition.
pub(in crate::command::export) const IC: &str = "ics.hdf5";

const PARAMETERS: &str = "param.txt";
const OUTPUTS: &str = "outputs.txt";
const CONFIG: &str = "Config.sh";

/// Files of Gadget's input, the parameter file first.
pub(super) const FILES: [&str; 4] = [PARAMETERS, OUTPUTS, CONFIG, IC];

pub(in crate::command::export) fn write_deck(setup: &Setup<'_>, folder: &Path) -> Result<(), PipelineError> {
    let (lines, config) = (lines(setup), config(setup));
    let all: Vec<&Line> = lines.iter().chain(&config).collect();
    let criteria: Vec<_> = setup.run.parameters.refine.iter().collect();
    let remarks = [
        format!("Build with {CONFIG} beside this file; start with: mpirun -np 1 Gadget4 {PARAMETERS}"),
        "Lengths are kpc/h.".into(),
        "Softening lengths of types 0 and 1 are the width of a cell of the finest level, of others that of the root."
            .into(),
    ];
    let text = top(setup, "Gadget-4", "%", &remarks, &setup.not_covered(&all, &criteria));
    let config = config.iter().map(|Line { key, value, options }| match *options {
        "" => format!("{key}{value}\n"),
        options => format!("{:28} # {options}\n", format!("{key}{value}")),
    });
    write(folder, CONFIG, &config.collect::<String>())?;
    let outputs: String = setup.outputs().iter().map(|a| format!("{a} 1\n")).collect();
    write(folder, OUTPUTS, &outputs)?;
    write(folder, PARAMETERS, &format!("{text}\n{}", columns(&lines, "%")))
}

/// Options of Gadget-4's build: names with values, if they have some.
fn config(setup: &Setup<'_>) -> Vec<Line> {
    let run = &setup.run.parameters;
    let mut config = vec![
        line("PERIODIC", "", "evolve.boundary, evolve.gravity_boundary"),
        line("NTYPES=", 6, ""),
        line("NSOFTCLASSES=", 2, ""),
        line("GAMMA=", run.gamma, "evolve.gamma"),
        line("DOUBLEPRECISION=", 1, ""),
        line("IDS_64BIT", "", ""),
        line("OUTPUT_NON_SYNCHRONIZED_ALLOWED", "", "evolve.outputs"),
    ];
    if run.gravity {
        config.push(line("SELFGRAVITY", "", "evolve.gravity"));
        config.push(line("PMGRID=", 2 * setup.facts.root[0], "ic.root"));
    }
    config
}

fn lines(setup: &Setup<'_>) -> Vec<Line> {
    let (c, run) = (setup.cosmology(), &setup.run.parameters);
    let mut lines = vec![
        line("InitCondFile", format!("./{}", IC.trim_end_matches(".hdf5")), "ic"),
        line("ICFormat", 3, ""),
        line("OutputDir", "./output", ""),
        line("SnapshotFileBase", "snapshot", ""),
        line("SnapFormat", 3, ""),
        line("OutputListOn", 1, "evolve.outputs"),
        line("OutputListFilename", format!("./{OUTPUTS}"), "evolve.outputs"),
        line("TimeOfFirstSnapshot", setup.start(), ""),
        line("TimeBetSnapshot", 2, ""),
        line("TimeBetStatistics", 0.05, ""),
        line("NumFilesPerSnapshot", 1, ""),
        line("MaxFilesWithConcurrentIO", 1, ""),
        line("TimeLimitCPU", 86400, ""),
        line("CpuTimeBetRestartFile", 60.0 * setup.run.checkpoints.every_minutes, "evolve.checkpoints.every_minutes"),
        line("MaxMemSize", 2000, ""),
        line("TimeBegin", setup.start(), "ic.z"),
        line("TimeMax", setup.end(), "evolve.z_end"),
        line("ComovingIntegrationOn", 1, "evolve.coordinates"),
        line("Omega0", c.omega_m, "cosmology.omega_m"),
        line("OmegaLambda", c.omega_lambda, "cosmology.omega_lambda"),
        line("OmegaBaryon", setup.omega_gas(), "cosmology.omega_b"),
        line("HubbleParam", c.h, "cosmology.h"),
        line("Hubble", 0.1, ""),
        line("BoxSize", setup.facts.box_mpc_h * 1e3, "ic.box_mpc_h"),
        line("MaxSizeTimestep", run.max_delta_a, "evolve.max_delta_a"),
        line("MinSizeTimestep", 0, ""),
        line("ErrTolIntAccuracy", 0.025, ""),
        line("CourantFac", 0.15, ""),
        line("TypeOfOpeningCriterion", 1, ""),
        line("ErrTolTheta", 0.7, ""),
        line("ErrTolThetaMax", 1.0, ""),
        line("ErrTolForceAcc", 0.0025, ""),
        line("TopNodeFactor", 2.5, ""),
        line("ActivePartFracForNewDomainDecomp", 0.01, ""),
        line("DesNumNgb", 64, ""),
        line("MaxNumNgbDeviation", 2, ""),
        line("ArtBulkViscConst", 1.0, ""),
        line("MinEgySpec", 0, ""),
        line("InitGasTemp", 0, ""),
        line("GravityConstantInternal", 0, ""),
    ];
    let units = [
        ("UnitLength_in_cm", Dialect::Gadget.length_cm()),
        ("UnitMass_in_g", MASS_G),
        ("UnitVelocity_in_cm_per_s", VELOCITY_CM_S),
    ];
    lines.extend(units.map(|(key, unit)| line(key, format!("{unit:e}"), "")));
    let fine = ["SofteningComovingClass0", "SofteningMaxPhysClass0"];
    lines.extend(fine.map(|key| line(key, setup.finest() * 1e3, "ic.box_mpc_h, ic.root, evolve.max_level")));
    let coarse = ["SofteningComovingClass1", "SofteningMaxPhysClass1"];
    lines.extend(coarse.map(|key| line(key, setup.width(0) * 1e3, "ic.box_mpc_h, ic.root")));
    lines.extend(
        [
            ("SofteningClassOfPartType0", 0),
            ("SofteningClassOfPartType1", 0),
            ("SofteningClassOfPartType2", 1),
            ("SofteningClassOfPartType3", 1),
            ("SofteningClassOfPartType4", 1),
            ("SofteningClassOfPartType5", 1),
        ]
        .map(|(key, class)| line(key, class, "")),
    );
    lines
}
