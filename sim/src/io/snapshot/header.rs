//! What a snapshot says of itself.

use crate::cosmology::Cosmology;
use crate::dark_matter::DarkMatterHeader;
use crate::error::SimError;
use crate::gas::fields::FieldSet;
use crate::mesh::Octree;
use crate::parameters::{Coordinates, Precision};
use crate::units::Units;
use serde::{Deserialize, Serialize};

/// What a snapshot is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// On the trajectory, at the end of a root step: restarts bit for bit.
    Checkpoint,
    /// A side branch at an exact time: to look at; resuming from it starts another trajectory.
    Output,
    /// An initial condition.
    Initial,
}

impl Role {
    /// The name in files and recipes.
    pub fn name(self) -> &'static str {
        match self {
            Self::Checkpoint => "checkpoint",
            Self::Output => "output",
            Self::Initial => "initial",
        }
    }
}

/// What a snapshot says of itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SnapshotHeader {
    /// Checkpoint or output.
    pub role: Role,
    /// Scale factor; 1 in non-comoving coordinates.
    pub a: f64,
    /// Code time since the start of the run.
    pub time: f64,
    /// Root steps taken.
    pub step: u64,
    /// Box length along x in code length (comoving Mpc/h); cells are cubic, so the other axes follow.
    pub box_length: f64,
    /// Comoving or plain.
    pub coordinates: Coordinates,
    /// The background; `None` in non-comoving coordinates.
    pub cosmology: Option<Cosmology>,
    /// Ratio of specific heats.
    pub gamma: f64,
    /// Mean molecular weight, for temperatures.
    pub mean_molecular_weight: f64,
    /// Switch between energy and entropy scalar, for pressures.
    pub eta: f64,
    /// Precision of the run and of the file's fields.
    pub precision: Precision,
    /// The fields of the run; left out where there are no scalars.
    #[serde(default, skip_serializing_if = "FieldSet::is_hydro_alone")]
    pub fields: FieldSet,
    /// The dark matter, if there is some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dark_matter: Option<DarkMatterHeader>,
    /// What else a bitwise restart needs: the run's own counters and ledgers, opaque to readers. Numbers in it must be
    /// finite: JSON has no others.
    pub restart: serde_json::Value,
    /// The recipe's canonical text; empty if there was none.
    pub recipe: String,
    /// Program version, device class, host and the like.
    pub provenance: serde_json::Value,
}

impl SnapshotHeader {
    /// Cell width in code length of a level of `tree`, the snapshot's.
    pub fn cell_width(&self, tree: &Octree, level: usize) -> f64 {
        self.box_length / tree.cells(level)[0] as f64
    }

    /// Box lengths along x, y, z in code length.
    pub fn box_lengths(&self, tree: &Octree) -> [f64; 3] {
        tree.cells(0).map(|n| n as f64 * self.cell_width(tree, 0))
    }

    /// The header of a state from which a run starts, in single precision: gas with γ = 5/3 in a box of length 1 at
    /// a = 1 and time 0, of neutral primordial composition. A comoving one still lacks its cosmology.
    pub fn initial(coordinates: Coordinates) -> Self {
        Self {
            role: Role::Initial,
            a: 1.0,
            time: 0.0,
            step: 0,
            box_length: 1.0,
            coordinates,
            cosmology: None,
            gamma: 5.0 / 3.0,
            mean_molecular_weight: 1.22,
            eta: 1e-2,
            precision: Precision::Single,
            fields: FieldSet::default(),
            dark_matter: None,
            restart: serde_json::Value::Null,
            recipe: String::new(),
            provenance: serde_json::Value::Null,
        }
    }

    /// Redshift: 1/a − 1.
    pub fn redshift(&self) -> f64 {
        1.0 / self.a - 1.0
    }

    /// The units of the run.
    pub fn units(&self) -> Units {
        Units::new(self.cosmology)
    }

    /// Forgets what the run was steered by; returns whether it was.
    pub fn unsteer(&mut self) -> bool {
        let Some(restart) = self.restart.as_object_mut() else { return false };
        restart.remove("steering_version");
        restart.remove("steering").is_some()
    }

    /// Checks ranges, and that the cosmology is there if and only if the coordinates are comoving.
    ///
    /// # Errors
    /// [`SimError::Parameter`] naming the first number that is out of range.
    pub fn check(&self) -> Result<(), SimError> {
        let check = |name, value: f64, good: bool, reason: &str| {
            SimError::require(name, &value, good && value.is_finite(), reason)
        };
        check("a", self.a, self.a > 0.0, "the scale factor is positive")?;
        check("time", self.time, true, "the time must be finite")?;
        check("box_length", self.box_length, self.box_length > 0.0, "the box has a positive length")?;
        check("gamma", self.gamma, self.gamma > 1.0, "the ratio of specific heats is above 1")?;
        let weight = self.mean_molecular_weight;
        check("mean_molecular_weight", weight, weight > 0.0, "the mean molecular weight is positive")?;
        check("eta", self.eta, (0.0..=1.0).contains(&self.eta), "must lie in [0, 1]")?;
        match (self.coordinates, &self.cosmology) {
            (Coordinates::Comoving, Some(cosmology)) => cosmology.check(),
            (Coordinates::Plain, None) => check("a", self.a, self.a == 1.0, "a is 1 in non-comoving coordinates"),
            (Coordinates::Comoving, None) => Err(SimError::Parameter {
                name: "cosmology",
                value: "none".into(),
                reason: "comoving coordinates need a cosmology; or use non-comoving coordinates".into(),
            }),
            (Coordinates::Plain, Some(_)) => Err(SimError::Parameter {
                name: "cosmology",
                value: "given".into(),
                reason: "non-comoving coordinates have no cosmology; or use comoving coordinates".into(),
            }),
        }
    }
}
