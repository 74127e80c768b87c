//! `comove`: the command line. Everything else is the library beside it.

use clap::Parser;
use comove::{Cli, PipelineError, Ranks, execute};
use comove_kernels::memory::keep_freed;
use std::process::ExitCode;

fn main() -> ExitCode {
    // each regrid makes tens of MB of lists
    keep_freed();
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
        // says what is wrong with the command line, or shows help
        Err(usage) => usage.exit(),
    }
}

fn failed(error: &PipelineError) -> ExitCode {
    eprintln!("{error}");
    ExitCode::from(error.exit_code())
}
