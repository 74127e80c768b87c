//! From a recipe to a finished campaign.
//!
//! | module | what it holds |
//! |---|---|
//! | `recipe` | the Rhai surface: engine, parameters, options, errors with a line and a caret |
//! | `campaign` | what a recipe evaluates to: a graph of stages, and their content fingerprints |
//! | `stage` | one file per kind of stage: its options and what it does |
//! | `cost` | what stages will take: cells, memory, disk, time |
//! | `ledger` | the append-only record of what has happened in a campaign folder |
//! | `jsonl` | files of one JSON object a line: the records of steps, what observers note |
//! | `files`, `canonical_json` | whole files of a campaign, regular ones only; JSON in one form |
//! | `folder`, `lock` | the campaign folder and who may write to it |
//! | `executor` | does what is not yet done, several stages at once |
//! | `rehearsal` | calls the closures of a campaign on a toy universe before it runs |
//! | `crew`, `task` | the processes of MPI, and what they do together besides runs |
//! | `isolated_read` | files that nobody vouches for, read by a child process first |
//! | `snapshots` | the snapshots in memory, read once for all stages |
//! | `progress`, `logging`, `event_stream`, `control` | the terminal, the log file, what other programs are told, what is asked for from outside |
//! | `streams` | standard output and standard error, which cannot always be written |
//! | `machine` | what a process runs on, for provenance |
//! | `moment` | redshift or time: where a run is |
//! | `time_left` | the time that a run in progress has left; estimated in `cost` |
//! | `cli`, `command` | the command line |
//! | `error` | what can go wrong, and the exit code of each |
//!
//! Evaluating a recipe runs nothing: it builds a value. `plan`, `run`, `resume` and `report` share that one path.

#![warn(clippy::print_stdout, clippy::print_stderr)]
#![cfg_attr(test, allow(clippy::print_stdout, clippy::print_stderr))]

mod campaign;
mod canonical_json;
mod cli;
mod command;
mod control;
mod cost;
mod crew;
mod error;
mod event_stream;
mod executor;
mod files;
mod folder;
mod isolated_read;
mod jsonl;
mod launchers;
mod ledger;
mod lock;
mod logging;
mod machine;
mod moment;
mod probe;
mod progress;
mod recipe;
mod rehearsal;
mod snapshots;
mod stage;
mod streams;
mod task;
pub mod testing;
mod time_left;

pub use cli::Cli;
pub use command::execute;
pub use control::catch_file_size_signal;
pub use crew::Ranks;
pub use error::PipelineError;
pub use streams::{message, print_usage};
