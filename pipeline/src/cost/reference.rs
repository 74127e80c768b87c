//! Speeds of the reference machines, of which `scripts/cost-reference` writes `reference.json`.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::LazyLock;

#[derive(Debug, Deserialize)]
pub(crate) struct Reference {
    /// Speeds on a CPU.
    pub cpu: Speeds,
    /// Speeds on a GPU.
    pub cuda: Speeds,
    /// Seconds of the other stages by kind: for each file that they read, and for each byte of these and of what they make.
    pub stages: BTreeMap<String, [f64; 2]>,
    /// Bytes on the device of a refined cell over those of a root cell, with uniform and with individual time steps.
    pub refined_bytes: [f64; 2],
}

/// Seconds that a run takes on a machine.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct Speeds {
    pub threads: f64,
    /// For a step of a level, whatever its size.
    pub level_step: f64,
    /// For the gas of a cell through a step: of the root, of a refined level.
    pub gas: [f64; 2],
    /// For the gravity of a cell through a step and the decisions on refinement: of the root, of a refined level.
    pub gravity: [f64; 2],
    /// For a particle through a step.
    pub particle: f64,
    /// For a byte of a snapshot that is written.
    pub written_byte: f64,
}

pub(crate) static REFERENCE: LazyLock<Reference> =
    LazyLock::new(|| serde_json::from_str(include_str!("reference.json")).expect("the program's own file"));
