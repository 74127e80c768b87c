//! The program's own reference: runs of `recipes/lcdm_100mpc.rhai` with roots of several widths, and the speeds of the
//! machines that they ran on. `scripts/cost-reference` writes `reference.json` from their campaigns.

use super::mesh::{Mesh, State};
use comove_sim::TimeSteps;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// What is known.
#[derive(Debug, Deserialize)]
pub(crate) struct Reference {
    /// Runs with individual time steps, the widest cells first.
    ways: Vec<Way>,
    /// The CFL number of these runs.
    courant: f64,
    /// Speeds on a CPU.
    pub cpu: Speeds,
    /// Speeds on a GPU.
    pub cuda: Speeds,
    /// Seconds of the other stages by kind: for each file that they read, and for each byte of these and of what they make.
    pub stages: BTreeMap<String, [f64; 2]>,
    /// Bytes on the device of a refined cell against one of the root, with uniform and with individual time steps.
    pub refined_bytes: [f64; 2],
}

/// A run with cells of one width.
#[derive(Debug, Deserialize)]
struct Way {
    /// Width of a root cell in Mpc/h.
    width: f64,
    /// ln a, the longest root step that the gas allows in ln a, and the fraction of the box that each refined level covers.
    rows: Vec<(f64, f64, Vec<f64>)>,
}

/// Seconds that a run takes on a machine.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct Speeds {
    pub threads: f64,
    /// For a step of a level, whatever its size.
    pub level_step: f64,
    /// For a cell of the root through a step.
    pub root_cell: f64,
    /// For a cell of a refined level through a step of that.
    pub refined_cell: f64,
    /// For a byte of a snapshot that is written.
    pub written_byte: f64,
}

pub(crate) static REFERENCE: LazyLock<Reference> =
    LazyLock::new(|| serde_json::from_str(include_str!("reference.json")).expect("the program's own file"));

/// What a run is like at `place`; `None` where the reference tells nothing of it.
pub(crate) fn state(mesh: &Mesh, place: f64) -> Option<State> {
    let width = mesh.width.filter(|_| mesh.is_cosmic)?;
    let ways = &REFERENCE.ways;
    // the ways whose cells are the next wider and the next narrower ones
    let finer = ways.partition_point(|way| way.width > width).clamp(1, ways.len() - 1);
    let [wide, narrow] = [&ways[finer - 1], &ways[finer]];
    let part = ((width / wide.width).ln() / (narrow.width / wide.width).ln()).clamp(0.0, 1.0);
    let [(gas, fractions), (more_gas, more)] = [wide, narrow].map(|way| way.at(place));
    let levels = usize::from(mesh.parameters.max_level).min(fractions.len().max(more.len()));
    let of = |fractions: &[f64], level: usize| fractions.get(level).copied().unwrap_or(0.0);
    let between = |level: usize| of(&fractions, level) * (1.0 - part) + of(&more, level) * part;
    let fractions: Vec<f64> = std::iter::once(1.0).chain((0..levels).map(between)).collect();
    // steps are as long as cells are wide
    let per_width = ((gas / wide.width).ln() * (1.0 - part) + (more_gas / narrow.width).ln() * part).exp();
    let finest = match mesh.parameters.time_steps {
        TimeSteps::Individual => 1.0,
        TimeSteps::Uniform => {
            (1u64 << fractions[1..].iter().filter(|fraction| **fraction > 0.0).count().min(60)) as f64
        }
    };
    Some(State { fractions, gas: per_width * width * mesh.parameters.courant / REFERENCE.courant / finest })
}

impl Way {
    /// Between two rows; before the first and after the last as there.
    fn at(&self, place: f64) -> (f64, Vec<f64>) {
        let next = self.rows.partition_point(|row| row.0 < place).clamp(1, self.rows.len() - 1);
        let [(before, gas, fractions), (after, more_gas, more)] = [&self.rows[next - 1], &self.rows[next]];
        let part = ((place - before) / (after - before)).clamp(0.0, 1.0);
        let of = |fractions: &[f64], level: usize| fractions.get(level).copied().unwrap_or(0.0);
        let levels = fractions.len().max(more.len());
        let between = |level| of(fractions, level) * (1.0 - part) + of(more, level) * part;
        ((gas.ln() * (1.0 - part) + more_gas.ln() * part).exp(), (0..levels).map(between).collect())
    }
}
