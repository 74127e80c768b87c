//! What every step leaves in the records, one JSON line a step.

use crate::mesh::CellPlace;
use crate::parallel::communicator::Traffic;
use crate::steering::Steering;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Which limit set a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum StepLimit {
    /// CFL: the fastest signal, where it is.
    Courant {
        /// Level.
        level: u8,
        /// Cell on the level's lattice.
        cell: [usize; 3],
        /// |v| + c_s along the worst axis, code velocity.
        speed: f64,
    },
    /// CFL: the fixed gas beyond a face of the box.
    Inflow {
        /// Finest level at that face.
        level: u8,
        /// |v| + c_s along the worst axis, code velocity.
        speed: f64,
    },
    /// Gravitational acceleration, where it is.
    Acceleration {
        /// Level.
        level: u8,
        /// Cell on the level's lattice.
        cell: [usize; 3],
        /// |g|, code units.
        acceleration: f64,
    },
    /// The fastest particle of a level.
    Particle {
        /// Level.
        level: u8,
        /// |v| along the worst axis, code velocity.
        speed: f64,
    },
    /// A source that would change the internal energy of a cell too much.
    Source {
        /// Its option in the recipe.
        source: String,
        /// Level.
        level: u8,
        /// Cell on the level's lattice.
        cell: [usize; 3],
    },
    /// Expansion: Δa/a.
    Expansion,
    /// What the run is steered by.
    Steered,
}

/// What `max_cells` did at the last regrid.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellBudgetAdjustment {
    /// Level whose refinement thresholds were raised, or that was removed.
    pub level: u8,
    /// Factor on the thresholds of that level; none if the level was removed.
    pub factor: Option<f64>,
}

impl std::fmt::Display for CellBudgetAdjustment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.factor {
            Some(factor) => write!(f, "the thresholds for level {} are raised by {factor:.3}", self.level),
            None => write!(f, "level {} is left out", self.level),
        }
    }
}

/// What the robustness ladder did in a step, beyond the entropy scalar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ladder {
    /// Fraction of leaf cells whose total energy did not exceed the kinetic one after the last sweep.
    pub negative_fraction: f64,
    /// Leaf cells redone with first-order fluxes, sweep by sweep.
    pub redone_cells: u64,
    /// Faces with first-order fluxes, directional pass by directional pass.
    pub redone_faces: u64,
    /// The first of the cells redone.
    pub first_redone: Option<CellPlace>,
    /// How often the step was retried: it stands as one in 2^`retries` parts.
    pub retries: u32,
    /// Leaf cells set to a floor, operation by operation.
    pub floored_cells: u64,
    /// Leaf cells set to a floor in sweeps; the others in flux correction and kick.
    pub floored_in_sweeps: u64,
    /// First cell that was set to a floor.
    pub first_floored: Option<CellPlace>,
    /// With individual steps the largest Courant number that a sweep of any level left behind: it grows within a root
    /// step, and beyond 0.8 the step is retried. 0 with uniform steps, which choose Δt anew each time.
    pub courant_number: f64,
}

/// Conserved sums over the box, code units (density × Mpc³/h³ and so on).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sums {
    /// Mass.
    pub mass: f64,
    /// Momentum along x, y, z.
    pub momentum: [f64; 3],
    /// Kinetic energy.
    pub kinetic: f64,
    /// Total energy (kinetic and thermal).
    pub energy: f64,
}

impl std::ops::Add for Sums {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            mass: self.mass + other.mass,
            momentum: std::array::from_fn(|axis| self.momentum[axis] + other.momentum[axis]),
            kinetic: self.kinetic + other.kinetic,
            energy: self.energy + other.energy,
        }
    }
}

/// The gas after a step, code units.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct GasRecord {
    /// Conserved sums over the leaf cells.
    #[serde(flatten)]
    pub sums: Sums,
    /// Smallest density of a leaf cell.
    pub density_min: f64,
    /// Largest density of a leaf cell.
    pub density_max: f64,
}

/// The dark matter after a step, code units.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DarkMatterRecord {
    /// Particles of each level.
    pub particles: Vec<u64>,
    /// Mass of all of them.
    pub mass: f64,
    /// Momentum along x, y, z.
    pub momentum: [f64; 3],
    /// Kinetic energy.
    pub kinetic: f64,
}

impl DarkMatterRecord {
    /// Conserved sums; the energy is the kinetic one.
    pub fn sums(&self) -> Sums {
        Sums { mass: self.mass, momentum: self.momentum, kinetic: self.kinetic, energy: self.kinetic }
    }
}

/// The potential energy of all matter in a step, code units: ½ Σ (ρ − ⟨ρ⟩) φ h³ over the leaf cells, isolated without ⟨ρ⟩.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PotentialRecord {
    /// Scale factor at which the potential of all levels was solved: at the kick of a uniform step, at the start of an
    /// individual one.
    pub a: f64,
    /// The energy.
    pub energy: f64,
}

/// What changed the gas's energy and mass besides the fluxes: the ledger. Sums over all steps so far, code units.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ledger {
    /// Work of gravity: Σ ρv·g 2Δt from the kicks' own inputs.
    pub gravity_work: f64,
    /// Energy from each source, by its option in the recipe.
    pub sources: BTreeMap<String, f64>,
    /// Energy that agreement with the entropy scalar added in cold gas.
    pub entropy_energy: f64,
    /// Energy that floors added.
    pub floor_energy: f64,
    /// Mass that floors added.
    pub floor_mass: f64,
    /// Energy that regrids changed (interpolation into new groups, averages of removed ones).
    pub regrid_energy: f64,
    /// Cells redone with first-order fluxes.
    pub redone_cells: u64,
    /// Times that a step was retried.
    pub retries: u64,
    /// Cells floored.
    pub floored_cells: u64,
}

impl Ledger {
    /// Energy from all rows.
    pub fn energy(&self) -> f64 {
        let Self { gravity_work, sources, entropy_energy, floor_energy, regrid_energy, .. } = self;
        gravity_work + entropy_energy + floor_energy + regrid_energy + sources.values().sum::<f64>()
    }
}

/// Seconds spent in the parts of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Timing {
    /// Copying the state that a step can go back to.
    pub save: f64,
    /// Hydro sweeps.
    pub hydro: f64,
    /// Poisson solves.
    pub poisson: f64,
    /// Gravity kicks.
    pub kick: f64,
    /// Sources of the gas's energy.
    pub sources: f64,
    /// Drifts, kicks and order of particles; their mass in cells counts as Poisson solves.
    pub particles: f64,
    /// Flux correction and restriction.
    pub correction: f64,
    /// Choosing Δt.
    pub time_step: f64,
    /// Flags, new tree, tables, prolongation.
    pub regrid: f64,
    /// Sums and state hash.
    pub records: f64,
}

/// A part of a step whose time is that of its work on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DevicePart {
    /// [`Timing::hydro`].
    Hydro,
    /// [`Timing::poisson`].
    Poisson,
    /// [`Timing::kick`].
    Kick,
    /// [`Timing::sources`].
    Sources,
    /// [`Timing::particles`].
    Particles,
    /// [`Timing::correction`].
    Correction,
}

impl Timing {
    /// Adds the time of a part.
    pub fn add_part(&mut self, part: DevicePart, seconds: f64) {
        *match part {
            DevicePart::Hydro => &mut self.hydro,
            DevicePart::Poisson => &mut self.poisson,
            DevicePart::Kick => &mut self.kick,
            DevicePart::Sources => &mut self.sources,
            DevicePart::Particles => &mut self.particles,
            DevicePart::Correction => &mut self.correction,
        } += seconds;
    }

    /// The parts by name.
    pub fn parts(&self) -> [(&'static str, f64); 10] {
        [
            ("saved state", self.save),
            ("hydro", self.hydro),
            ("Poisson", self.poisson),
            ("gravity kick", self.kick),
            ("sources", self.sources),
            ("particles", self.particles),
            ("flux correction and restriction", self.correction),
            ("time step", self.time_step),
            ("regrid", self.regrid),
            ("records", self.records),
        ]
    }

    /// All parts together.
    pub fn total(&self) -> f64 {
        self.parts().iter().map(|(_, seconds)| seconds).sum()
    }

    /// Adds another step's times.
    pub fn add(&mut self, other: &Self) {
        self.save += other.save;
        self.hydro += other.hydro;
        self.poisson += other.poisson;
        self.kick += other.kick;
        self.sources += other.sources;
        self.particles += other.particles;
        self.correction += other.correction;
        self.time_step += other.time_step;
        self.regrid += other.regrid;
        self.records += other.records;
    }
}

/// What the ranks that share an octree did in a root step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RanksRecord {
    /// Number of ranks.
    pub count: usize,
    /// Predicted load imbalance, by the groups at the end of the step and their cost: the busiest rank over the mean.
    pub imbalance: f64,
    /// Measured load imbalance of sweeps, over levels that fill all devices: the slowest rank over the mean; left out where
    /// there is no such level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sweep_imbalance: Option<f64>,
    /// Relative cost of a group on each rank, by the steps before this one; 1 if all are equally fast.
    #[serde(default)]
    pub costs: Vec<f64>,
    /// Groups that changed hands in the step.
    pub moved_groups: u64,
    /// Groups of which some rank has a ghost, and that rank, after the step.
    pub ghosts: u64,
    /// What each rank has sent.
    pub traffic: Vec<Traffic>,
}

/// The layout of records of steps.
///
/// | version | difference |
/// |---|---|
/// | 0, not stated | Δt is that of a sweep: half a step's |
/// | 1 | `sums`, `density_min` and `density_max` are the gas's; there is no `gas` |
/// | 2 | they are of all matter |
pub const RECORD_VERSION: u32 = 2;

/// Brings the record of a step that an older program has written to the present layout. The extreme densities of all matter
/// are left out where an older program noted those of the gas beside dark matter.
pub fn upgrade(record: &mut Value) {
    if !record.is_object() {
        return;
    }
    let version = record["version"].as_u64().unwrap_or(0);
    if version == 0 {
        for time_step in ["/dt", "/gas_dt", "/steering/dt_max"] {
            if let Some(value) = record.pointer_mut(time_step)
                && let Some(of_a_sweep) = value.as_f64()
            {
                *value = (2.0 * of_a_sweep).into();
            }
        }
    }
    if version < 2 {
        separate_gas(record);
    }
    if let Some(ledger) = record.get_mut("ledger").and_then(Value::as_object_mut) {
        // left out without sources before these had a row
        ledger.entry("sources").or_insert_with(|| json!({}));
    }
    record["version"] = version.max(RECORD_VERSION.into()).into();
}

/// Gives the gas its own place in a record of version 1.
fn separate_gas(record: &mut Value) {
    let Ok(of_gas) = serde_json::from_value::<Sums>(record["sums"].clone()) else { return };
    let dark_matter: Option<DarkMatterRecord> = serde_json::from_value(record["dark_matter"].clone()).ok();
    if of_gas.mass > 0.0 {
        let mut gas = json!(of_gas);
        for density in ["density_min", "density_max"] {
            gas[density] = record[density].clone();
        }
        record["gas"] = gas;
    }
    if let (Some(dark_matter), Some(fields)) = (dark_matter, record.as_object_mut()) {
        fields.insert("sums".into(), json!(of_gas + dark_matter.sums()));
        ["density_min", "density_max"].iter().for_each(|density| _ = fields.remove(*density));
    }
}

/// The record of one root step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepRecord {
    /// Layout of the record.
    pub version: u32,
    /// Number of the step, from 1.
    pub step: u64,
    /// Scale factor at its end.
    pub a: f64,
    /// Redshift at its end; left out in non-comoving coordinates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub z: Option<f64>,
    /// Code time at its end.
    pub time: f64,
    /// Δt of the root, code time; a step that was retried has 2^`retries` parts, each over Δt.
    pub dt: f64,
    /// What set Δt.
    pub limit: StepLimit,
    /// Δt that the gas alone would have allowed at the start of the step; left out where it stood still.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gas_dt: Option<f64>,
    /// Groups of each level after the step.
    pub groups: Vec<usize>,
    /// Fraction of the box that each level covers.
    pub volume_fractions: Vec<f64>,
    /// Steps that each level took in this one of the root.
    pub level_steps: Vec<u32>,
    /// Cell updates: cells of each level times its steps.
    pub cell_updates: u64,
    /// Cell updates per second (a cell through a step of its level).
    pub cell_updates_per_second: f64,
    /// Conserved sums of all matter at its end.
    pub sums: Sums,
    /// Gas at its end; left out where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gas: Option<GasRecord>,
    /// Dark matter at its end; left out where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dark_matter: Option<DarkMatterRecord>,
    /// Potential energy in the step; left out without gravity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub potential: Option<PotentialRecord>,
    /// The energy and mass ledger of the gas so far.
    pub ledger: Ledger,
    /// Of the gas: (energy now − energy at start − everything booked)/largest kinetic energy so far.
    pub energy_residual: f64,
    /// Of the gas: (mass now − mass at start − mass from floors)/mass at start.
    pub mass_drift: f64,
    /// Fraction of leaf cells whose pressure comes from the entropy scalar.
    pub cold_fraction: f64,
    /// Repairs of the gas in this step.
    pub ladder: Ladder,
    /// Smallest density of all matter in a leaf cell; left out in records of version 1 with dark matter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub density_min: Option<f64>,
    /// Largest density of all matter in a leaf cell; left out in records of version 1 with dark matter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub density_max: Option<f64>,
    /// Whether a regrid changed the tree in the step or at its end.
    pub regridded: bool,
    /// What `max_cells` did to the tree, as it is now; left out where it has done nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raised: Option<CellBudgetAdjustment>,
    /// What the run was steered by in the step; left out where it was by nothing.
    #[serde(default, skip_serializing_if = "Steering::is_none")]
    pub steering: Steering,
    /// Seconds by part; of the first rank.
    pub timing: Timing,
    /// Bytes of all device arrays; of all ranks' devices.
    pub device_bytes: u64,
    /// What ranks that share the octree did; left out for one that is alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ranks: Option<RanksRecord>,
    /// Hash of all fields and keys: equal states have equal hashes.
    pub state_hash: String,
}

/// The layout of summaries of runs.
///
/// | version | difference |
/// |---|---|
/// | 0, not stated | `initial` and `sums` are the gas's, zeros without gas; there is no `gas` |
/// | 1 | they are of all matter |
pub const SUMMARY_VERSION: u32 = 1;

/// Conserved sums of the gas of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct GasSums {
    /// At the start.
    pub initial: Sums,
    /// Now.
    pub sums: Sums,
}

/// What a run has done so far, for reports.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunSummary {
    /// Layout of the summary.
    #[serde(default)]
    pub version: u32,
    /// Steps taken since the start of the run.
    pub steps: u64,
    /// Scale factor.
    pub a: f64,
    /// Conserved sums of all matter at the start; left out where a checkpoint of an older program does not have those of dark
    /// matter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial: Option<Sums>,
    /// Conserved sums of all matter now.
    pub sums: Sums,
    /// Conserved sums of the gas; left out where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gas: Option<GasSums>,
    /// Conserved sums of dark matter now; left out where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dark_matter: Option<Sums>,
    /// The ledger of the gas.
    pub ledger: Ledger,
    /// Relative drift of the gas's mass.
    pub mass_drift: f64,
    /// Residual of the gas's energy ledger.
    pub energy_residual: f64,
    /// Cells now.
    pub cells: u64,
    /// Bytes of device arrays per cell.
    pub bytes_per_cell: f64,
    /// Where the time went, in this process.
    pub timing: Timing,
    /// Cell updates in this process.
    pub cell_updates: u64,
    /// Name of the device.
    pub device: String,
}

impl RunSummary {
    /// The summary in the present layout. Those of older programs do not have the initial sums of dark matter; where there
    /// is some, `initial` is left out.
    #[must_use]
    pub fn upgraded(mut self) -> Self {
        if self.version > 0 {
            return self;
        }
        self.version = SUMMARY_VERSION;
        let of_gas = self.sums;
        if of_gas.mass > 0.0 {
            self.gas = self.initial.map(|initial| GasSums { initial, sums: of_gas });
        }
        if let Some(dark_matter) = self.dark_matter {
            self.initial = None;
            self.sums = of_gas + dark_matter;
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_older_programs_get_whole_steps_once() {
        let mut record = json!({ "step": 3, "dt": 0.5, "gas_dt": 0.75, "steering": { "dt_max": 0.5 } });
        let whole =
            json!({ "version": RECORD_VERSION, "step": 3, "dt": 1.0, "gas_dt": 1.5, "steering": { "dt_max": 1.0 } });
        for _ in 0..2 {
            upgrade(&mut record);
            assert_eq!(record, whole);
        }
    }

    /// Sums of older records become those of all matter; extreme densities of the gas beside dark matter do not pass for
    /// those of all matter.
    #[test]
    fn records_of_older_programs_have_the_gas_apart() {
        let sums = |mass: f64| json!({ "mass": mass, "momentum": [mass, 0.0, 0.0], "kinetic": 2.0 * mass, "energy": 3.0 * mass });
        let dark = json!({ "particles": [8], "mass": 5.0, "momentum": [-1.0, 0.5, 0.0], "kinetic": 0.25 });
        let of = |gas: f64, dark_matter: &Value| {
            let mut record =
                json!({ "version": 1, "step": 1, "sums": sums(gas), "density_min": 0.5, "density_max": 2.0 });
            if !dark_matter.is_null() {
                record["dark_matter"] = dark_matter.clone();
            }
            upgrade(&mut record);
            let once = record.clone();
            upgrade(&mut record);
            assert_eq!(record, once);
            record
        };
        let gas = of(1.0, &Value::Null);
        assert_eq!((&gas["sums"], &gas["density_max"]), (&sums(1.0), &json!(2.0)));
        let mut apart = sums(1.0);
        (apart["density_min"], apart["density_max"]) = (json!(0.5), json!(2.0));
        assert_eq!(gas["gas"], apart);
        let both = of(1.0, &dark);
        let expected = json!({ "mass": 6.0, "momentum": [0.0, 0.5, 0.0], "kinetic": 2.25, "energy": 3.25 });
        assert_eq!((&both["sums"], &both["gas"]), (&expected, &apart));
        let alone = of(0.0, &dark);
        assert_eq!(
            alone["sums"],
            json!({ "mass": 5.0, "momentum": [-1.0, 0.5, 0.0], "kinetic": 0.25, "energy": 0.25 })
        );
        for (record, has_gas) in [(&both, true), (&alone, false)] {
            let lacks = |name: &str| record.get(name).is_none();
            assert!(lacks("density_max") && lacks("density_min") && lacks("gas") != has_gas, "{record}");
        }
    }

    /// Sums of older summaries become those of all matter, with the gas's beside them.
    #[test]
    fn summaries_of_older_programs_have_the_gas_apart() {
        let sums = |mass: f64| Sums { mass, momentum: [mass, 0.0, -mass], kinetic: 2.0 * mass, energy: 3.0 * mass };
        let of = |gas: f64, dark_matter: Option<f64>| {
            let mut old = json!({
                "steps": 3, "a": 0.5, "initial": sums(0.5 * gas), "sums": sums(gas), "ledger": {}, "mass_drift": 0.0,
                "energy_residual": 0.0, "cells": 4096, "bytes_per_cell": 100.0, "timing": {}, "cell_updates": 4096,
                "device": "cpu"
            });
            if let Some(mass) = dark_matter {
                old["dark_matter"] = json!(sums(mass));
            }
            let summary = serde_json::from_value::<RunSummary>(old).unwrap().upgraded();
            let text = serde_json::to_string(&summary).unwrap();
            assert_eq!(serde_json::from_str::<RunSummary>(&text).unwrap().upgraded(), summary);
            (summary.initial, summary.sums, summary.gas)
        };
        let gas = Some(GasSums { initial: sums(0.5), sums: sums(1.0) });
        assert_eq!(of(1.0, None), (Some(sums(0.5)), sums(1.0), gas));
        assert_eq!(of(1.0, Some(5.0)), (None, sums(6.0), gas));
        assert_eq!(of(0.0, Some(5.0)), (None, sums(5.0), None));
    }
}
