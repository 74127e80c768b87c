//! What a run keeps in a checkpoint besides clock, tree and fields.

use crate::error::SimError;
use crate::io::snapshot::SnapshotHeader;
use crate::records::{CellBudgetAdjustment, Ledger, Sums};
use crate::source::SourceLimit;
use crate::steering::Steering;
use crate::step::diagnostics::Acceleration;
use crate::step::retry::RetryPolicy;
use serde::{Deserialize, Serialize};

/// What a bitwise restart needs besides clock, tree and fields.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Restart {
    /// Of the gas.
    pub(super) initial: Sums,
    /// None without dark matter, and from an older program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) initial_dark_matter: Option<Sums>,
    pub(super) ledger: Ledger,
    pub(super) peak_kinetic: f64,
    pub(super) acceleration: Option<Acceleration>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) source_limit: Option<SourceLimit>,
    /// One a level.
    pub(super) steps_since_regrid: Vec<u32>,
    /// One a level; none from an older program, which went by the steps alone.
    #[serde(default)]
    pub(super) travelled_since_regrid: Vec<f64>,
    #[serde(default, rename = "patience")]
    pub(super) retry_policy: RetryPolicy,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) raised: Option<CellBudgetAdjustment>,
    #[serde(default, skip_serializing_if = "Steering::is_none")]
    pub(super) steering: Steering,
    /// Of what an older program has been steered by, Δt was that of a sweep: half a step's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) steering_version: Option<u32>,
}

impl Restart {
    /// Of a snapshot that a run continues from.
    ///
    /// # Errors
    /// [`SimError::Parameter`] where it holds none that this version understands.
    pub(super) fn read(header: &SnapshotHeader) -> Result<Self, SimError> {
        let mut restart: Self = serde_json::from_value(header.restart.clone()).map_err(|e| SimError::Parameter {
            name: "restart data of the snapshot",
            value: header.restart.to_string(),
            reason: format!("{e}; start from another checkpoint"),
        })?;
        if restart.steering_version.is_none() {
            restart.steering.dt_max = restart.steering.dt_max.map(|of_a_sweep| 2.0 * of_a_sweep);
        }
        Ok(restart)
    }
}
