//! The fingerprint of a stage: content, never a file's name or time.
//!
//! BLAKE3 over the stage's kind, the name that a recipe has given it, the version of its results, its parameters as
//! canonical JSON, and the digests of the artefacts it reads: of a snapshot the digest of what it shows, so that neither
//! the machine that wrote it nor the wording of the recipe counts. What only decides how long a run goes or what it writes
//! (`z_end`, outputs, checkpoints) is not among the parameters, so extending a run continues it.

use crate::stage::Stage;
use crate::storage::canonical_json::canonical;
use serde_json::Value;

/// The fingerprint, 64 hexadecimal digits, of `stage` with this version of its results and inputs with these digests.
pub(crate) fn fingerprint<'a>(
    stage: &dyn Stage,
    results_version: u32,
    input_digests: impl IntoIterator<Item = &'a str>,
) -> String {
    fingerprint_of(stage.kind(), &stage.label(), results_version, &stage.parameters(), input_digests)
}

/// The fingerprint of a stage of this kind, label and parameters.
pub(crate) fn fingerprint_of<'a>(
    kind: &str,
    label: &str,
    results_version: u32,
    parameters: &Value,
    input_digests: impl IntoIterator<Item = &'a str>,
) -> String {
    let mut hasher = blake3::Hasher::new();
    let mut field = |text: &str| {
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    };
    field("comove stage");
    field(kind);
    // two labels are two stages
    if label != kind {
        field(label);
    }
    field(&results_version.to_string());
    field(&canonical(parameters));
    for digest in input_digests {
        field(digest);
    }
    hasher.finalize().to_hex().to_string()
}
