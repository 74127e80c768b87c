//! The campaign folder: where everything of a campaign lies.
//!
//! ```text
//! quickstart/
//!   campaign.json      what the command line said: recipe, parameters
//!   recipe.rhai        the recipe as it was run
//!   ledger.jsonl       what has happened
//!   log.txt            the log
//!   report.html        the report
//!   lock               who works here
//!   evolve-3f9a1c/     one folder per stage: its kind and the first digits of its fingerprint (`History::folder_of`)
//! ```

use crate::error::PipelineError;
use crate::stage::work::write_file;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// What the command line said, for `resume` and `report`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Manifest {
    /// The recipe's file, absolute; files that it names are relative to its folder.
    pub recipe: PathBuf,
    pub parameters: BTreeMap<String, String>,
}

#[derive(Clone, Debug)]
pub(crate) struct CampaignFolder {
    path: PathBuf,
}

impl CampaignFolder {
    /// Creates the folder, or takes one that holds a campaign.
    pub(crate) fn create(path: &Path) -> Result<Self, PipelineError> {
        std::fs::create_dir_all(path).map_err(PipelineError::io(path))?;
        let folder = Self { path: path.into() };
        let foreign = std::fs::read_dir(path).map_err(PipelineError::io(path))?.next().is_some();
        if foreign && !folder.manifest_path().exists() && !folder.path.join("lock").exists() {
            return Err(PipelineError::input(
                path,
                "the folder is not empty and holds no campaign: choose another one with --dir",
            ));
        }
        Ok(folder)
    }

    pub(crate) fn open(path: &Path) -> Result<Self, PipelineError> {
        let folder = Self { path: path.into() };
        if folder.manifest_path().exists() {
            return Ok(folder);
        }
        Err(PipelineError::input(path, "no campaign here: campaign.json is missing"))
    }

    /// Where a recipe's campaign lies unless `--dir` says otherwise: in the working directory, named after the recipe.
    pub(crate) fn default_for(recipe: &Path) -> PathBuf {
        PathBuf::from(recipe.file_stem().unwrap_or_default())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn ledger(&self) -> PathBuf {
        self.path.join("ledger.jsonl")
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.path.join("log.txt")
    }

    pub(crate) fn report(&self) -> PathBuf {
        self.path.join("report.html")
    }

    /// The recipe as it was run.
    pub(crate) fn recipe(&self) -> PathBuf {
        self.path.join("recipe.rhai")
    }

    fn manifest_path(&self) -> PathBuf {
        self.path.join("campaign.json")
    }

    /// Stores the recipe and what the command line said.
    pub(crate) fn store(&self, manifest: &Manifest, recipe: &str) -> Result<(), PipelineError> {
        write_file(&self.recipe(), recipe.as_bytes())?;
        let text = serde_json::to_vec_pretty(manifest).expect("paths and texts");
        write_file(&self.manifest_path(), &text)
    }

    /// What [`CampaignFolder::store`] stored: manifest and recipe.
    pub(crate) fn load(&self) -> Result<(Manifest, String), PipelineError> {
        let path = self.manifest_path();
        let text = std::fs::read_to_string(&path).map_err(PipelineError::io(&path))?;
        let remedy = "`comove run` with the recipe writes it again, and what is done is not done again";
        let manifest = serde_json::from_str(&text)
            .map_err(|e| PipelineError::input(&path, format!("not a campaign's manifest ({e}): {remedy}")))?;
        let recipe = std::fs::read_to_string(self.recipe()).map_err(|error| match error.kind() {
            ErrorKind::NotFound => PipelineError::input(&self.recipe(), format!("missing: {remedy}")),
            _ => PipelineError::io(&self.recipe())(error),
        })?;
        Ok((manifest, recipe))
    }
}
