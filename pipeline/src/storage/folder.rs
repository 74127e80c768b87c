//! The campaign folder: where everything of a campaign lies.
//!
//! ```text
//! quickstart/
//!   campaign.json      what the command line said: recipe, parameters
//!   recipe.rhai        the recipe as it was run
//!   ledger.jsonl       what has happened
//!   log.txt            the log
//!   report.html        the report
//!   index.json         stages, their state and files
//!   lock               who works here
//!   evolve-seed1-3f9a/ one folder per stage: its kind, what tells it from others, and digits of its fingerprint
//!                      (`CampaignResolver::folder_of`)
//! ```

use crate::error::PipelineError;
use crate::stage::work::write_file;
use crate::storage::files::absolute;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

const REMEDY: &str = "`comove run` with the recipe writes it again and keeps finished stages";

/// What the command line said, for `resume` and `report`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Manifest {
    /// The recipe's file, absolute; files that it names are relative to its folder.
    pub recipe: PathBuf,
    /// The recipe's file relative to the campaign folder: it holds where both were moved or copied. Campaigns of older programs
    /// do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recipe_from_folder: Option<PathBuf>,
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
                "the folder is not empty and holds no campaign; choose another with --dir",
            ));
        }
        Ok(folder)
    }

    pub(crate) fn open(path: &Path) -> Result<Self, PipelineError> {
        let folder = Self { path: path.into() };
        if folder.manifest_path().exists() {
            return Ok(folder);
        }
        Err(PipelineError::input(
            path,
            "not a campaign folder: campaign.json is missing; give the folder that `comove run` made",
        ))
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

    pub(crate) fn index(&self) -> PathBuf {
        self.path.join("index.json")
    }

    /// The recipe as it was run.
    pub(crate) fn recipe(&self) -> PathBuf {
        self.path.join("recipe.rhai")
    }

    fn manifest_path(&self) -> PathBuf {
        self.path.join("campaign.json")
    }

    /// Stores a recipe, whose absolute path this is, and the parameters that the command line gives it.
    pub(crate) fn store(
        &self,
        path: &Path,
        parameters: BTreeMap<String, String>,
        recipe: &str,
    ) -> Result<(), PipelineError> {
        let from_folder = relative(path, &absolute(&self.path)?);
        let manifest = Manifest { recipe: path.into(), recipe_from_folder: Some(from_folder), parameters };
        write_file(&self.recipe(), recipe.as_bytes())?;
        let text = serde_json::to_vec_pretty(&manifest).expect("paths in UTF-8, and texts");
        write_file(&self.manifest_path(), &text)
    }

    /// What the command line said, with the place of the recipe now.
    pub(crate) fn manifest(&self) -> Result<Manifest, PipelineError> {
        let path = self.manifest_path();
        let text = std::fs::read_to_string(&path).map_err(PipelineError::io(&path))?;
        let mut manifest: Manifest = serde_json::from_str(&text)
            .map_err(|e| PipelineError::input(&path, format!("not a valid campaign.json ({e}); {REMEDY}")))?;
        if let Some(from_folder) = &manifest.recipe_from_folder {
            let here = lexical(&absolute(&self.path)?.join(from_folder));
            // a campaign folder may have been moved without its recipe
            if here.exists() || !manifest.recipe.exists() {
                manifest.recipe = here;
            }
        }
        Ok(manifest)
    }

    /// What [`CampaignFolder::store`] stored: manifest and recipe.
    pub(crate) fn load(&self) -> Result<(Manifest, String), PipelineError> {
        let manifest = self.manifest()?;
        let recipe = std::fs::read_to_string(self.recipe()).map_err(|error| match error.kind() {
            ErrorKind::NotFound => PipelineError::input(&self.recipe(), format!("missing: {REMEDY}")),
            _ => PipelineError::io(&self.recipe())(error),
        })?;
        Ok((manifest, recipe))
    }
}

/// The path of `file` as seen from `folder`; both are absolute.
fn relative(file: &Path, folder: &Path) -> PathBuf {
    let (file, folder) = (lexical(file), lexical(folder));
    let shared = file.components().zip(folder.components()).take_while(|(one, other)| one == other).count();
    let up = folder.components().skip(shared).map(|_| Component::ParentDir);
    up.chain(file.components().skip(shared)).collect()
}

/// An absolute path without `..`, by its text alone.
fn lexical(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => _ = plain.pop(),
            part => plain.push(part),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recipe_is_found_from_the_campaign_folder() {
        for (recipe, folder, expected) in [
            ("/p/run.rhai", "/p/run", "../run.rhai"),
            ("/p/recipes/run.rhai", "/p/work/a/../run", "../../recipes/run.rhai"),
            ("/p/run/recipe/x.rhai", "/p/run", "recipe/x.rhai"),
            ("/home/x.rhai", "/scratch/x", "../../home/x.rhai"),
        ] {
            let found = relative(recipe.as_ref(), folder.as_ref());
            assert_eq!(found, Path::new(expected));
            assert_eq!(lexical(&Path::new(folder).join(found)), Path::new(recipe));
        }
    }

    /// A project is copied whole; of another one only the campaign folder is moved.
    #[test]
    fn a_copy_has_its_own_recipe() {
        let place = tempfile::tempdir().unwrap();
        let (original, copy) = (place.path().join("original"), place.path().join("copy"));
        let make = |project: &Path| {
            std::fs::create_dir_all(project.join("run")).unwrap();
            std::fs::write(project.join("run.rhai"), "").unwrap();
            CampaignFolder { path: project.join("run") }
        };
        let folder = make(&original);
        folder.store(&original.join("run.rhai"), BTreeMap::new(), "").unwrap();
        let copied = make(&copy);
        std::fs::copy(folder.manifest_path(), copied.manifest_path()).unwrap();
        assert_eq!(copied.manifest().unwrap().recipe, copy.join("run.rhai"));
        std::fs::remove_file(copy.join("run.rhai")).unwrap();
        assert_eq!(copied.manifest().unwrap().recipe, original.join("run.rhai"));
    }
}
