//! The record of what has happened in a campaign folder: `ledger.jsonl`, only ever appended to.
//!
//! | module | what it holds |
//! |---|---|
//! | [`event`] | the events, in the past tense |
//! | [`writer`] | appends, each on disk before the next thing happens |
//! | [`history`] | what the events add up to |

pub(crate) mod event;
pub(crate) mod history;
pub(crate) mod writer;

pub(crate) use event::{Artefact, Event, Identity, SnapshotFile, VERSION};
pub(crate) use history::{DIGITS, Given, History, Ruling, StageHistory};
pub(crate) use writer::Ledger;
