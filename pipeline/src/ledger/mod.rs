//! The record of what has happened in a campaign folder: `ledger.jsonl`, only ever appended to.
//!
//! | module | what it holds |
//! |---|---|
//! | [`event`] | the events, in the past tense |
//! | [`writer`] | appends, each on disk before the next thing happens |
//! | [`history`] | what the events add up to |

pub mod event;
pub mod history;
pub mod writer;

pub use event::{Artefact, Entry, Event, Identity, SnapshotFile, VERSION};
pub use history::{History, Ruling, StageHistory};
pub use writer::Ledger;
