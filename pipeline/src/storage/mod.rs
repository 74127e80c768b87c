//! Files of a campaign.
//!
//! | module | what it holds |
//! |---|---|
//! | [`folder`], [`lock`] | the campaign folder and who may write to it |
//! | [`files`], [`canonical_json`] | whole files, regular ones only; JSON in one form |
//! | [`jsonl`] | files of one JSON object a line: the records of steps, what observers note |
//! | [`snapshots`] | the snapshots in memory, read once for all stages |

pub(crate) mod canonical_json;
pub(crate) mod files;
pub(crate) mod folder;
pub(crate) mod jsonl;
pub(crate) mod lock;
pub(crate) mod snapshots;
