//! `comove`: the command line. Everything else is the library beside it.

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    match comove::command::execute(comove::cli::Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(error.exit_code())
        }
    }
}
