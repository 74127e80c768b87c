//! What a recipe may say in `evolve(IC, #{ … })` besides the run's own parameters.

use comove_sim::{RunParameters, SimError};
use serde::{Deserialize, Serialize};

/// The options that only decide how long a run goes and what it writes: outside the fingerprint.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Extent {
    /// Redshift at which the run ends.
    pub z_end: f64,
    /// Outputs on the way; there is always one at `z_end`.
    #[serde(default)]
    pub outputs: Outputs,
    /// Checkpoints on the way; there is always one before the last step.
    #[serde(default)]
    pub checkpoints: Checkpoints,
    /// For a run from an output: start another trajectory there.
    #[serde(default)]
    pub branch: bool,
}

/// The names of [`Extent`]'s options.
pub const EXTENT: [&str; 4] = ["z_end", "outputs", "checkpoints", "branch"];

/// When outputs are written.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Outputs {
    /// At these redshifts, exactly.
    pub at_z: Vec<f64>,
}

/// When checkpoints are written, and how many stay.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Checkpoints {
    /// After so many minutes of computing.
    pub every_minutes: f64,
    /// At the end of the first step past each of these redshifts; these stay for good.
    pub at_z: Vec<f64>,
    /// How many of the others stay.
    pub keep: usize,
}

impl Default for Checkpoints {
    fn default() -> Self {
        Self { every_minutes: 10.0, at_z: Vec::new(), keep: 2 }
    }
}

impl Extent {
    /// All output redshifts, falling, `z_end` last.
    ///
    /// # Errors
    /// The name of an option and what is wrong with it.
    pub fn redshifts(&self, z_start: Option<f64>) -> Result<Vec<f64>, (&'static str, String)> {
        let check = |name: &'static str, z: f64| {
            if !(z.is_finite() && z > -1.0) {
                return Err((name, format!("z = {z} is not a redshift")));
            }
            match z_start {
                Some(start) if z >= start => Err((name, format!("z = {z} is not after the start at z = {start}"))),
                _ => Ok(()),
            }
        };
        check("z_end", self.z_end)?;
        for &z in &self.outputs.at_z {
            check("outputs", z)?;
            if z < self.z_end {
                return Err(("outputs", format!("an output at z = {z} lies after z_end = {}", self.z_end)));
            }
        }
        for &z in &self.checkpoints.at_z {
            check("checkpoints", z)?;
        }
        if self.checkpoints.keep == 0 {
            return Err(("checkpoints", "keep = 0: at least one checkpoint has to stay".into()));
        }
        if self.checkpoints.every_minutes.is_nan() || self.checkpoints.every_minutes < 0.0 {
            return Err(("checkpoints", format!("every_minutes = {} is no time", self.checkpoints.every_minutes)));
        }
        let mut redshifts = self.outputs.at_z.clone();
        redshifts.push(self.z_end);
        redshifts.sort_by(|x, y| y.total_cmp(x));
        redshifts.dedup();
        Ok(redshifts)
    }
}

/// What can be refused before anything is computed, in the words of a recipe.
///
/// # Errors
/// The name of an option and what is wrong with it.
pub fn check(p: &RunParameters) -> Result<(), (&'static str, String)> {
    if let Err(error) = p.check() {
        let SimError::Parameter { name, value, reason } = error else { return Err(("", error.to_string())) };
        return Err((name, format!("{name} = {value}: {reason}")));
    }
    if p.max_level > 0 && p.refine.is_empty() {
        let what = format!("max_level = {}, but no criterion: add refine: density_above(…) or another", p.max_level);
        return Err(("max_level", what));
    }
    Ok(())
}
