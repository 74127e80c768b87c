//! `comove`: the command line. Everything else is the library beside it.

use clap::Parser;
use comove::{Cli, PipelineError, Ranks, catch_file_size_signal, execute, message, print_usage};
use comove_kernels::memory::keep_freed;
use std::process::ExitCode;

fn main() -> ExitCode {
    // each regrid makes tens of MB of lists
    keep_freed();
    catch_file_size_signal();
    let ranks = match Ranks::assemble() {
        Ok(ranks) => ranks,
        Err(error) => return failed(&error),
    };
    if !ranks.leads() {
        ranks.follow();
        return ExitCode::SUCCESS;
    }
    let outcome = Cli::try_parse().map(|cli| execute(cli, &ranks));
    ranks.crew.shutdown();
    drop(ranks);
    match outcome {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(error)) => failed(&error),
        Err(usage) => match print_usage(&usage) {
            Ok(()) => ExitCode::from(usage.exit_code() as u8),
            Err(error) => failed(&error),
        },
    }
}

fn failed(error: &PipelineError) -> ExitCode {
    message(&error.to_string());
    ExitCode::from(error.exit_code())
}
