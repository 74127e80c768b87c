//! From a recipe to a finished campaign.
//!
//! | module | what it holds |
//! |---|---|
//! | [`recipe`] | the Rhai surface: engine, parameters, options, errors with a line and a caret |
//! | [`campaign`] | what a recipe evaluates to: a graph of stages, and their content fingerprints |
//! | [`stage`] | one file per kind of stage: its options and what it does |
//! | [`cost`] | what stages will take: cells, memory, disk, time |
//! | [`ledger`] | the append-only record of what has happened in a campaign folder |
//! | [`jsonl`] | files of one JSON object a line: the records of steps, what observers note |
//! | `files`, `canonical_json` | whole files of a campaign, regular ones only; JSON in one form |
//! | [`folder`], [`lock`] | the campaign folder and who may write to it |
//! | [`executor`] | does what is not yet done, several stages at once |
//! | [`crew`], [`task`] | the processes of MPI, and what they do together besides runs |
//! | [`isolated_read`] | files that nobody vouches for, read by a child process first |
//! | [`snapshots`] | the snapshots in memory, read once for all stages |
//! | [`progress`], [`logging`], [`event_stream`], [`control`] | the terminal, the log file, what other programs are told, what is asked for from outside |
//! | [`machine`] | what a process runs on, for provenance |
//! | [`moment`] | redshift or time: where a run is |
//! | [`cli`], [`command`] | the command line |
//! | [`error`] | what can go wrong, and the exit code of each |
//!
//! Evaluating a recipe runs nothing: it builds a value. `plan`, `run`, `resume` and `report` share that one path.

pub mod campaign;
pub mod canonical_json;
pub mod cli;
pub mod command;
pub mod control;
pub mod cost;
pub mod crew;
pub mod error;
pub mod event_stream;
pub mod executor;
mod files;
pub mod folder;
pub mod isolated_read;
pub mod jsonl;
mod launchers;
pub mod ledger;
pub mod lock;
pub mod logging;
pub mod machine;
pub mod moment;
mod probe;
pub mod progress;
pub mod recipe;
pub mod snapshots;
pub mod stage;
pub mod task;

pub use error::PipelineError;
