//! Enzo: a parameter file beside the files of the initial condition (Bryan et al. 2014, ApJS 211, 19; *Enzo documentation*, Enzo
//! Parameter List and Initialization).

use super::{Line, Setup, line, remark, top, write};
use crate::error::PipelineError;
use comove_sim::Criterion;
use std::path::Path;

/// The parameter file.
pub(super) const PARAMETERS: &str = "enzo.par";

/// A flagging method of Enzo, and the parameter that has its threshold.
struct Flag {
    method: u8,
    parameter: &'static str,
    /// The threshold, if a criterion has the same on all levels.
    threshold: fn(&Setup<'_>, &Criterion) -> Option<f64>,
}

/// That of the temperatures of an initial condition, whatever `Mu` says.
const MEAN_MOLECULAR_WEIGHT: f64 = 0.6;

const OVERDENSITY: &str = "MinimumOverDensityForRefinement";

/// Methods 2 and 4 compare the mass of a cell, gas or dark matter, with that of a root cell on average.
const FLAGS: [Flag; 3] = [
    Flag {
        method: 2,
        parameter: OVERDENSITY,
        threshold: |setup, criterion| match criterion {
            Criterion::OverdensityAbove { thresholds } if setup.has_gas => {
                // in masses of a cell of the root grid, which is finer than comove's root by some levels
                let finer = i32::from(setup.facts.level);
                let masses = thresholds.iter().zip(0..).map(|(t, level)| t * 8f64.powi(finer - level));
                common_value(&masses.collect::<Vec<f64>>())
            }
            _ => None,
        },
    },
    Flag {
        method: 4,
        parameter: OVERDENSITY,
        threshold: |setup, criterion| match criterion {
            // a particle for each cell of the root grid
            Criterion::ParticlesAbove { thresholds } if setup.counted().is_some() => common_value(thresholds),
            _ => None,
        },
    },
    Flag {
        method: 6,
        parameter: "RefineByJeansLengthSafetyFactor",
        threshold: |_, criterion| match criterion {
            Criterion::JeansCellsBelow { thresholds } => common_value(thresholds),
            _ => None,
        },
    },
];

/// Common value of all numbers; `None` if they differ.
fn common_value(numbers: &[f64]) -> Option<f64> {
    numbers.first().copied().filter(|first| numbers.iter().all(|number| (number / first - 1.0).abs() < 1e-9))
}

impl Flag {
    /// True for a threshold in mass: a smaller mass refines more.
    fn is_of_mass(&self) -> bool {
        self.parameter == OVERDENSITY
    }

    fn found(&self, setup: &Setup<'_>) -> Option<f64> {
        let found = setup.criteria().into_iter().filter_map(|one| (self.threshold)(setup, one));
        found.reduce(if self.is_of_mass() { f64::min } else { f64::max })
    }
}

pub(in crate::command::export) fn write_deck(setup: &Setup<'_>, folder: &Path) -> Result<(), PipelineError> {
    let lines = lines(setup);
    let is_covered = |one: &Criterion| FLAGS.iter().any(|flag| (flag.threshold)(setup, one).is_some());
    let left: Vec<&Criterion> = setup.criteria().into_iter().filter(|one| !is_covered(one)).collect();
    let outputs: Vec<f64> = setup.outputs().into_iter().map(|a| 1.0 / a - 1.0).collect();
    let outputs: String =
        outputs.iter().enumerate().map(|(n, z)| format!("CosmologyOutputRedshift[{n}] = {z}\n")).collect();
    let remarks = [
        format!("Start with: enzo {PARAMETERS}"),
        "The root grid is the mesh of the initial condition. Each value is followed by a comment, which Enzo does not read.".into(),
        "Method 2 counts gas alone, comove's overdensity all matter.".into(),
    ];
    let text = top(setup, "Enzo", "//", &remarks, &setup.not_covered(&lines.iter().collect::<Vec<_>>(), &left));
    let of_line = |line: &Line| format!("{} = {}{}\n", line.key, line.value, remark(line, "//"));
    let lines: String = lines.iter().map(of_line).collect();
    write(folder, PARAMETERS, &format!("{text}\n{lines}{outputs}"))
}

fn lines(setup: &Setup<'_>) -> Vec<Line> {
    let (c, run, facts) = (setup.cosmology(), &setup.run.parameters, setup.facts);
    let number = |is_so: bool| i32::from(is_so);
    let [nx, ny, nz] = facts.cells;
    let flags: Vec<(&Flag, f64)> = FLAGS.iter().filter_map(|flag| Some((flag, flag.found(setup)?))).collect();
    let mut lines = vec![
        line("ProblemType", 30, ""),
        line("TopGridRank", 3, ""),
        line("TopGridDimensions", format!("{nx} {ny} {nz}"), "ic.cells"),
        line("SelfGravity", number(run.gravity), "evolve.gravity"),
        line("GravitationalConstant", 1, ""),
        line("TopGridGravityBoundary", 0, "evolve.gravity_boundary"),
        line("LeftFaceBoundaryCondition", "3 3 3", "evolve.boundary"),
        line("RightFaceBoundaryCondition", "3 3 3", "evolve.boundary"),
        line("CosmologySimulationOmegaBaryonNow", setup.omega_gas(), "cosmology.omega_b, ic.gas"),
        line("CosmologySimulationOmegaCDMNow", c.omega_m - setup.omega_gas(), "cosmology.omega_m, ic.dark_matter"),
    ];
    if setup.has_gas {
        lines.extend([
            line("CosmologySimulationDensityName", "GridDensity", "ic.gas"),
            line("CosmologySimulationVelocity1Name", "GridVelocities_x", "ic.gas"),
            line("CosmologySimulationVelocity2Name", "GridVelocities_y", "ic.gas"),
            line("CosmologySimulationVelocity3Name", "GridVelocities_z", "ic.gas"),
            line(
                "CosmologySimulationInitialTemperature",
                setup.temperature_k * MEAN_MOLECULAR_WEIGHT / facts.mean_molecular_weight,
                "ic.temperature_k, ic.mean_molecular_weight",
            ),
            line("Gamma", run.gamma, "evolve.gamma"),
            line("HydroMethod", 0, ""),
            line("DualEnergyFormalism", number(run.dual_energy), "evolve.dual_energy"),
            line("CourantSafetyNumber", 0.4, ""),
        ]);
    }
    if setup.dark_matter.is_some() {
        lines.extend([
            line("CosmologySimulationCalculatePositions", 1, "ic.dark_matter"),
            line("CosmologySimulationParticleDisplacement1Name", "ParticleDisplacements_x", "ic.dark_matter"),
            line("CosmologySimulationParticleDisplacement2Name", "ParticleDisplacements_y", "ic.dark_matter"),
            line("CosmologySimulationParticleDisplacement3Name", "ParticleDisplacements_z", "ic.dark_matter"),
            line("CosmologySimulationParticleVelocity1Name", "ParticleVelocities_x", "ic.dark_matter"),
            line("CosmologySimulationParticleVelocity2Name", "ParticleVelocities_y", "ic.dark_matter"),
            line("CosmologySimulationParticleVelocity3Name", "ParticleVelocities_z", "ic.dark_matter"),
        ]);
    }
    lines.extend([
        line("ComovingCoordinates", 1, "evolve.coordinates"),
        line("CosmologyHubbleConstantNow", c.h, "cosmology.h"),
        line("CosmologyComovingBoxSize", facts.box_mpc_h, "ic.box_mpc_h"),
        line("CosmologyOmegaMatterNow", c.omega_m, "cosmology.omega_m"),
        line("CosmologyOmegaLambdaNow", c.omega_lambda, "cosmology.omega_lambda"),
        line("CosmologyInitialRedshift", facts.z, "ic.z"),
        line("CosmologyFinalRedshift", 1.0 / setup.end() - 1.0, "evolve.z_end"),
        line("CosmologyMaxExpansionRate", run.max_delta_a, "evolve.max_delta_a"),
        line("RefineBy", 2, ""),
        line("StaticHierarchy", number(run.max_level <= facts.level || flags.is_empty()), "evolve.max_level"),
        line("MaximumRefinementLevel", run.max_level.saturating_sub(facts.level), "evolve.max_level, ic.root"),
        line("NumberOfBufferZones", run.flag_buffer, "evolve.flag_buffer"),
    ]);
    if !flags.is_empty() {
        let methods: Vec<String> = flags.iter().map(|(flag, _)| flag.method.to_string()).collect();
        lines.push(line("CellFlaggingMethod", methods.join(" "), "evolve.refine"));
        let of_mass: Vec<String> =
            flags.iter().filter(|(flag, _)| flag.is_of_mass()).map(|(_, threshold)| threshold.to_string()).collect();
        if !of_mass.is_empty() {
            lines.push(line(OVERDENSITY, of_mass.join(" "), "evolve.refine"));
            lines.push(line(
                "MinimumMassForRefinementLevelExponent",
                vec!["0"; of_mass.len()].join(" "),
                "evolve.refine",
            ));
        }
        let of_length = flags.iter().find(|(flag, _)| !flag.is_of_mass());
        lines.extend(of_length.map(|(flag, cells)| line(flag.parameter, cells, "evolve.refine")));
    }
    lines
}
