//! From a recipe to a finished campaign.
//!
//! | module | what it holds |
//! |---|---|
//! | `recipe` | the Rhai surface: engine, parameters, options, errors with a line and a caret |
//! | `campaign` | what a recipe evaluates to: a graph of stages, and their content fingerprints |
//! | `stage` | one file per kind of stage: its options and what it does |
//! | `cost` | what stages will take: cells, memory, disk, time |
//! | `ledger` | the append-only record of what has happened in a campaign folder |
//! | `executor` | does what is not yet done, several stages at once |
//! | `rehearsal` | calls the closures of a campaign on a toy universe before it runs |
//! | `storage` | files of a campaign: its folder, lock, lines, snapshots in memory |
//! | `processes` | the processes of MPI, child processes, signals, the machine |
//! | `terminal` | progress, log, event stream |
//! | `moment` | redshift or time: where a run is |
//! | `cli`, `command` | the command line |
//! | `error` | what can go wrong, and the exit code of each |
//!
//! Evaluating a recipe runs nothing: it builds a value. `plan`, `run`, `resume` and `report` share that one path.

#![warn(clippy::print_stdout, clippy::print_stderr)]
#![cfg_attr(test, allow(clippy::print_stdout, clippy::print_stderr))]

mod campaign;
mod cli;
mod command;
mod cost;
mod error;
mod executor;
mod ledger;
mod moment;
mod processes;
mod recipe;
mod rehearsal;
mod stage;
mod storage;
mod terminal;
pub mod testing;

pub use cli::Cli;
pub use command::execute;
pub use error::PipelineError;
pub use processes::control::catch_file_size_signal;
pub use processes::crew::Ranks;
pub use terminal::streams::{message, print_usage};
