//! The command line.

use crate::control::{TimeLimit, parse_walltime};
use clap::builder::{PathBufValueParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;

/// Runs cosmological campaigns described by recipes.
#[derive(Debug, Parser)]
#[command(name = "comove", version, about, subcommand_required = true, arg_required_else_help = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What `comove` can do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a recipe's campaign, or what is left of it
    #[command(disable_help_flag = true, after_help = REQUESTS)]
    Run(Run),
    /// Show what `run` would do
    Plan(Plan),
    /// Say why `run` would do a stage, or do it again: what differs from what was done before
    Explain(Explain),
    /// Resume a campaign with its original options
    #[command(after_help = REQUESTS)]
    Resume {
        /// The campaign folder
        #[arg(value_parser = text_path())]
        dir: PathBuf,
        /// Where to compute, and for how long
        #[command(flatten)]
        machine: Machine,
        /// What is shown meanwhile
        #[command(flatten)]
        terminal: Terminal,
    },
    /// Say how far the campaign in a folder is
    Status {
        /// The campaign folder
        #[arg(value_parser = text_path())]
        dir: PathBuf,
        /// Say it anew every two seconds until the campaign ends: what is being done, and of runs their step, redshift (or
        /// time), speed, and the time that is left if they go on as in their last steps
        #[arg(short, long)]
        watch: bool,
    },
    /// Write the report of the campaign in a folder again
    Report {
        /// The campaign folder
        #[arg(value_parser = text_path())]
        dir: PathBuf,
    },
    /// List files that the recipe no longer uses; with --yes delete them
    Clean {
        /// The campaign folder
        #[arg(value_parser = text_path())]
        dir: PathBuf,
        /// Delete only these, as the list names them; an unfinished run is deleted only by its name [default: all but
        /// unfinished runs and their initial conditions]
        #[arg(value_name = "FILE")]
        stages: Vec<String>,
        /// Delete the files
        #[arg(long)]
        yes: bool,
    },
    /// Show what a snapshot holds, and check its digests
    Inspect {
        /// The snapshot file
        #[arg(value_parser = text_path())]
        file: PathBuf,
    },
    /// Say where two runs, or two snapshots, differ; exit code 1 if they do
    Diff(Diff),
    /// Continue a checkpoint for some steps in memory, and compare them with those that its run has recorded; exit code 1
    /// if they differ
    VerifyRestart(VerifyRestart),
    /// Evaluate a script that looks at what a campaign has left, and writes tables and plots of it
    #[command(after_help = SCRIPTS)]
    Script(Script),
    /// Evaluate a recipe and list its stages; nothing is run
    Check(Check),
    /// Print the reference of what the program understands
    Docs(Docs),
    /// Say what this machine and this program can compute with, what is missing, and what would help
    Doctor,
    /// Read a file in the place of the process that asks, which a damaged one might crash
    #[command(hide = true, subcommand)]
    Trial(Trial),
}

/// What is validated in a child process.
#[derive(Clone, Debug, Subcommand)]
pub enum Trial {
    /// A snapshot
    Snapshot {
        /// The file
        #[arg(value_parser = text_path())]
        file: PathBuf,
    },
    /// The species of a snapshot, which it prints
    SnapshotSpecies {
        /// The file
        file: PathBuf,
    },
    /// The species of a `comove_ic` file, which it prints
    MeshSpecies {
        /// The file
        file: PathBuf,
    },
    /// The mesh of an initial condition
    Mesh {
        /// What to load, as JSON
        ic: String,
    },
}

/// What a running campaign can be asked for.
const REQUESTS: &str = "While it runs: SIGINT, SIGTERM, SIGQUIT, SIGHUP, SIGUSR1, SIGUSR2, SIGALRM, SIGXCPU or a file \
                        `stop` in the campaign folder end it after the step in progress, with a checkpoint and exit code \
                        75; a file `dump` asks for a checkpoint, a file `pause` for one and a pause until the file is \
                        removed. Exit codes: docs/exit-codes.md.";

/// How a script is written.
const SCRIPTS: &str = include_str!("command/script.txt");

/// A recipe and what its parameters are set to.
#[derive(Debug, Args)]
pub struct Recipe {
    /// The recipe (a .rhai file)
    #[arg(value_parser = text_path())]
    pub recipe: PathBuf,
    /// Set a parameter of the recipe
    #[arg(short = 'p', value_name = "NAME=VALUE", value_parser = assignment)]
    pub parameters: Vec<(String, String)>,
}

/// Where to compute, and for how long.
#[derive(Clone, Debug, Args)]
pub struct Machine {
    /// auto, cpu or cuda:N; several GPUs of one kind as cuda:0,cuda:1
    #[arg(long, default_value = "auto", value_delimiter = ',')]
    pub device: Vec<String>,
    /// Stages that are done at the same time; runs among them share the devices [default: a run on each device, and an
    /// initial condition or an analysis beside each]
    #[arg(long, value_name = "N")]
    pub jobs: Option<NonZeroUsize>,
    /// Do everything that does not need a stage that has failed; without this nothing new begins after a failure, and runs
    /// end with a checkpoint
    #[arg(long)]
    pub keep_going: bool,
    /// Continue runs that an earlier version of `evolve` has made (CHANGELOG, Results changed) instead of starting them
    /// anew; the ledger and the report say so
    #[arg(long)]
    pub accept_version: bool,
    /// Threads of the CPU, which all jobs share (0: one per core)
    #[arg(long, default_value_t = 0)]
    pub threads: usize,
    /// GiB of each device's memory that runs may take, together [default: what is free]
    #[arg(long, value_name = "GIB", value_parser = gibibytes)]
    pub memory: Option<f64>,
    /// Leave within this time, as 11h50m: once the next step and a checkpoint might not end in it, write a checkpoint and
    /// leave with exit code 75; `none`: take as long as it takes [default: until SLURM_JOB_END_TIME, which Slurm sets in its
    /// jobs; else none]
    #[arg(long, value_name = "TIME", value_parser = parse_walltime)]
    pub walltime: Option<TimeLimit>,
}

impl Machine {
    /// What the command line has said of where to compute, to be said again; a wall-clock limit was for once.
    pub fn arguments(&self) -> Vec<String> {
        let device = (self.device != ["auto"]).then(|| ["--device".to_owned(), self.device.join(",")]);
        let number = |name: &str, value: Option<String>| value.map(|value| [name.to_owned(), value]);
        let numbers = [
            number("--jobs", self.jobs.map(|jobs| jobs.to_string())),
            number("--threads", (self.threads > 0).then(|| self.threads.to_string())),
            number("--memory", self.memory.map(|gib| gib.to_string())),
        ];
        let flags = [(self.keep_going, "--keep-going"), (self.accept_version, "--accept-version")];
        let flags = flags.into_iter().filter(|(given, _)| *given).map(|(_, flag)| flag.to_owned());
        device.into_iter().chain(numbers.into_iter().flatten()).flatten().chain(flags).collect()
    }
}

/// What is shown of a campaign that runs.
#[derive(Clone, Copy, Debug, Args)]
pub struct Terminal {
    /// Show warnings and errors only; everything is in log.txt
    #[arg(short, long)]
    pub quiet: bool,
    /// Print what happens to the standard output, as JSON, one object a line: the events of ledger.jsonl and the record of
    /// every step
    #[arg(long)]
    pub json: bool,
}

/// `comove run`.
#[derive(Debug, Args)]
pub struct Run {
    /// The recipe (a .rhai file)
    #[arg(required_unless_present = "help", value_parser = text_path())]
    pub recipe: Option<PathBuf>,
    /// Set a parameter of the recipe
    #[arg(short = 'p', value_name = "NAME=VALUE", value_parser = assignment)]
    pub parameters: Vec<(String, String)>,
    /// The campaign folder [default: in the working directory, named after the recipe]
    #[arg(long, value_parser = text_path())]
    pub dir: Option<PathBuf>,
    /// Do only these stages and what they need: by number, folder, name or kind, as `plan` shows them; several with commas
    /// between them
    #[arg(long, value_name = "STAGE")]
    pub only: Vec<String>,
    /// Do these stages again, though they may be done
    #[arg(long, value_name = "STAGE")]
    pub force: Vec<String>,
    /// Start although the folder has an unfinished run that this command does not continue (a forgotten -p, an edited option),
    /// or the campaign of another recipe; without it the command asks on a terminal and is refused elsewhere
    #[arg(long)]
    pub new: bool,
    /// Start without a rehearsal: the closures of the recipe are else called on a toy universe first, which takes seconds
    /// and finds misspelt members before the campaign comes to them
    #[arg(long)]
    pub no_rehearsal: bool,
    /// Where to compute, and for how long
    #[command(flatten)]
    pub machine: Machine,
    /// What is shown meanwhile
    #[command(flatten)]
    pub terminal: Terminal,
    /// Print help, and the parameters of the recipe if one is given
    #[arg(short, long)]
    pub help: bool,
}

/// `comove check`.
#[derive(Debug, Args)]
pub struct Check {
    /// What to check
    #[command(flatten)]
    pub recipe: Recipe,
    /// Call the closures and decisions of the recipe on a toy universe too, in seconds, as `run` does before it starts: names
    /// of members, types, options of later stages
    #[arg(long)]
    pub rehearse: bool,
}

/// `comove docs`.
#[derive(Debug, Args)]
pub struct Docs {
    /// Of what
    #[command(subcommand)]
    pub subject: Subject,
}

/// What there is a reference of.
#[derive(Clone, Copy, Debug, Subcommand)]
pub enum Subject {
    /// Functions, options and types of a recipe, as Markdown
    Recipes {
        /// As definitions for editors that know Rhai instead (recipes/api.d.rhai)
        #[arg(long)]
        definitions: bool,
    },
}

/// `comove plan`.
#[derive(Debug, Args)]
pub struct Plan {
    /// What to plan
    #[command(flatten)]
    pub recipe: Recipe,
    /// The campaign folder [default: in the working directory, named after the recipe]
    #[arg(long, value_parser = text_path())]
    pub dir: Option<PathBuf>,
    /// A campaign folder whose records tell what this one will take, besides its own and those beside it
    #[arg(long, value_name = "DIR", value_parser = text_path())]
    pub like: Option<PathBuf>,
    /// Where it is to run: auto, cpu or cuda:N; of several the first counts
    #[arg(long, default_value = "auto", value_delimiter = ',')]
    pub device: Vec<String>,
    /// Threads of the CPU (0: one per core)
    #[arg(long, default_value_t = 0)]
    pub threads: usize,
    /// Print the plan as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// `comove script`.
#[derive(Debug, Args)]
pub struct Script {
    /// The script (a .rhai file)
    #[arg(value_parser = text_path())]
    pub script: PathBuf,
    /// The campaign folder
    #[arg(long, value_name = "DIR", value_parser = text_path())]
    pub campaign: PathBuf,
    /// Set a parameter of the script, which declares it as a recipe does: param("name", default, "help")
    #[arg(short = 'p', value_name = "NAME=VALUE", value_parser = assignment)]
    pub parameters: Vec<(String, String)>,
    /// Where tables and plots go [default: scripts/SCRIPT in the campaign folder]
    #[arg(long, value_name = "FOLDER", value_parser = text_path())]
    pub output: Option<PathBuf>,
}

/// `comove explain`.
#[derive(Debug, Args)]
pub struct Explain {
    /// What to look at
    #[command(flatten)]
    pub recipe: Recipe,
    /// The stage: its number, folder, name or kind, as `plan` shows them
    pub stage: String,
    /// The campaign folder [default: in the working directory, named after the recipe]
    #[arg(long, value_parser = text_path())]
    pub dir: Option<PathBuf>,
}

/// `comove diff`.
#[derive(Debug, Args)]
pub struct Diff {
    /// A run: its folder in a campaign, or a campaign folder with one run; or a snapshot file
    #[arg(value_parser = text_path())]
    pub a: PathBuf,
    /// What it is compared with, of the same kind; values are shown as A → B
    #[arg(value_parser = text_path())]
    pub b: PathBuf,
    /// The run of a campaign folder that has several: its number, folder or kind, as `plan` shows them
    #[arg(long)]
    pub stage: Option<String>,
    /// Of two snapshots: how far apart each field is in the leaf cells that both have
    #[arg(long)]
    pub fields: bool,
    /// Of two snapshots: the power spectra of their densities on the root grid
    #[arg(long)]
    pub power: bool,
    /// Print the findings as one JSON object
    #[arg(long)]
    pub json: bool,
    /// Where runs that differ are replayed from a checkpoint, to find the groups that differ first
    #[command(flatten)]
    pub device: OneDevice,
}

/// `comove verify-restart`.
#[derive(Debug, Args)]
pub struct VerifyRestart {
    /// The checkpoint, in its run's folder
    #[arg(value_parser = text_path())]
    pub snapshot: PathBuf,
    /// Steps that are taken and compared
    #[arg(long, value_name = "K", default_value = "3")]
    pub steps: NonZeroU64,
    /// Where to compute
    #[command(flatten)]
    pub device: OneDevice,
}

/// A device.
#[derive(Clone, Debug, Args)]
pub struct OneDevice {
    /// cpu, cuda:N, or auto: one like that which wrote the checkpoint
    #[arg(long, default_value = "auto")]
    pub device: String,
    /// Threads of the CPU (0: one per core)
    #[arg(long, default_value_t = 0)]
    pub threads: usize,
}

fn gibibytes(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|gib: &f64| *gib > 0.0 && gib.is_finite()).ok_or_else(|| "expected a number of GiB".into())
}

/// A path in UTF-8, as JSON and HDF5 name files.
fn text_path() -> impl TypedValueParser<Value = PathBuf> {
    let utf8 = |path: PathBuf| if path.to_str().is_some() { Ok(path) } else { Err("the path is not UTF-8: rename it") };
    PathBufValueParser::new().try_map(utf8)
}

fn assignment(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => Ok((name.trim().into(), value.trim().into())),
        _ => Err("expected NAME=VALUE".into()),
    }
}
