//! What the integration tests reach besides the program itself.

pub use crate::recipe::docs::PARTS;
pub use crate::recipe::engine::registered;
pub use crate::recipe::reference::{Callers, Function, Member, Part, Type};
pub use crate::stage::evolve::RESULTS_VERSION;

use crate::campaign::fingerprint::{fingerprint, fingerprint_of};
use crate::error::PipelineError;
use crate::ledger::Identity;
use crate::recipe::{Source, evaluate};
use crate::storage::lock::Lock;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// The last stage of a recipe: its fingerprint where it reads inputs with these digests, and its parameters.
///
/// # Errors
/// Those of the recipe.
pub fn last_stage(
    path: &str,
    text: &str,
    given: &BTreeMap<String, String>,
    digests: &[&str],
) -> Result<(String, Value), PipelineError> {
    let source = Source { path: path.into(), text: text.into() };
    let campaign = evaluate(source, given.clone())?.campaign;
    let stage = campaign.stages.last().expect("a campaign has stages").stage();
    let fingerprint = fingerprint(stage, stage.results_version(), digests.iter().copied());
    Ok((fingerprint, stage.parameters()))
}

/// The fingerprint that a run recorded as `identity` in the ledger has in another version of its results.
///
/// # Errors
/// If it is not the identity of a stage.
pub fn fingerprint_of_run(identity: Value, results_version: u32) -> serde_json::Result<String> {
    let Identity { label, parameters, inputs, .. } = serde_json::from_value(identity)?;
    let digests = inputs.iter().map(|file| file.digest.as_str());
    Ok(fingerprint_of("evolve", &label, results_version, &parameters, digests))
}

/// The records of a file of one JSON object a line.
///
/// # Errors
/// [`PipelineError::Io`] if the file cannot be read.
pub fn read_jsonl<T: DeserializeOwned>(file: &Path) -> Result<Vec<T>, PipelineError> {
    crate::storage::jsonl::read(file)
}

/// Takes the lock of a campaign folder for as long as the value lives.
///
/// # Errors
/// [`PipelineError::Busy`] if another process has it.
pub fn lock(folder: &Path) -> Result<impl Sized + use<>, PipelineError> {
    Lock::take(folder)
}
