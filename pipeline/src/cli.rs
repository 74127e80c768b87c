//! The command line.

use crate::processes::control::{TimeLimit, parse_walltime};
use crate::processes::isolated_read::Trial;
use clap::builder::{PathBufValueParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;
use std::str::FromStr;

/// Runs cosmological campaigns described by recipes.
#[derive(Debug, Parser)]
#[command(name = "comove", version, about, subcommand_required = true, arg_required_else_help = true)]
pub struct Cli {
    /// Command.
    #[command(subcommand)]
    pub command: Command,
}

/// Commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a recipe's campaign; skip the stages that are done
    #[command(disable_help_flag = true, after_help = REQUESTS)]
    Run(Run),
    /// List the stages that `run` would compute, with time, memory and disk space
    Plan(Plan),
    /// Explain why `run` would compute a stage, or compute it again
    Explain(Explain),
    /// Resume a campaign with its original options
    #[command(after_help = REQUESTS)]
    Resume {
        /// The campaign folder
        #[arg(value_parser = text_path())]
        dir: PathBuf,
        /// Devices and limits
        #[command(flatten)]
        machine: Machine,
        /// Terminal output
        #[command(flatten)]
        terminal: Terminal,
    },
    /// Show a campaign's progress
    Status {
        /// The campaign folder
        #[arg(value_parser = text_path())]
        dir: PathBuf,
        /// Refresh every two seconds until the campaign ends; of each run show step, redshift or time, speed and remaining
        /// time
        #[arg(short, long)]
        watch: bool,
    },
    /// Write a campaign's report again
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
        /// Delete only these files, named as in the list [default: all of the list but unfinished runs and their initial
        /// conditions]
        #[arg(value_name = "FILE")]
        stages: Vec<String>,
        /// Delete the files instead of listing them
        #[arg(long)]
        yes: bool,
    },
    /// Show the contents of a snapshot and verify its digests, or examine a file of initial conditions
    #[command(after_help = EXAMINATION)]
    Inspect(Inspect),
    /// Compare two runs or two snapshots; exit with code 1 if they differ
    Diff(Diff),
    /// Repeat steps of a run from a checkpoint; exit with code 1 if they differ from its records
    VerifyRestart(VerifyRestart),
    /// Evaluate a script that makes tables and plots of a campaign
    #[command(after_help = SCRIPTS)]
    Script(Script),
    /// Check a recipe and list its stages without running them
    Check(Check),
    /// Write a snapshot in another format, or a recipe's initial condition and run as the input of another code
    #[command(after_help = EXPORT)]
    Export(Export),
    /// Write the white noise of a seed of ic_gaussian as a file for GRAFIC, MUSIC and the option noise
    #[command(after_help = NOISE)]
    Noise(Noise),
    /// Print reference documentation
    Docs(Docs),
    /// Show the processor, GPUs and libraries found, and how to install what is missing
    Doctor,
    /// Validate a file in a child process, because a damaged file may crash the library that reads it
    #[command(hide = true, subcommand)]
    Trial(Trial),
}

/// A snapshot, or a file of initial conditions with numbers that it does not state.
#[derive(Debug, Args)]
pub struct Inspect {
    /// The file
    #[arg(value_parser = text_path())]
    pub file: PathBuf,
    /// Set numbers of the cosmology that a file of initial conditions does not state, separated by commas: h, omega_m, omega_b,
    /// omega_lambda, sigma8, n_s
    #[arg(long, value_name = "NAME=VALUE", value_delimiter = ',', value_parser = assignment)]
    pub cosmology: Vec<(String, String)>,
    /// Set the redshift that a file of initial conditions does not state
    #[arg(long, value_name = "Z")]
    pub redshift: Option<f64>,
}

/// Explanation of examinations.
const EXAMINATION: &str = "Initial conditions of comove_ic, Gadget, SWIFT, GRAFIC, monofonIC and Enzo are compared with \
                           linear theory of the cosmology in the file, or given by --cosmology. The exit code is 4 if a finding is wrong.";

/// `comove export`.
#[derive(Debug, Args)]
pub struct Export {
    /// The snapshot, or with --for the recipe (a .rhai file)
    #[arg(value_parser = text_path())]
    pub source: PathBuf,
    /// The file to write; a folder with --for and --format npy or grafic [default: in the working directory, named after the source]
    #[arg(value_parser = text_path())]
    pub output: Option<PathBuf>,
    /// Write the snapshot in this format
    #[arg(long, value_enum, required_unless_present = "code", conflicts_with = "code")]
    pub format: Option<ExportFormat>,
    /// Write the initial condition of the recipe's run and a parameter file for this code
    #[arg(long = "for", value_name = "CODE", value_enum)]
    pub code: Option<Code>,
    /// Write only these fields (npy, vtkhdf), separated by commas [default: density, velocity, temperature, dark matter, potential
    /// and scalars]
    #[arg(long, value_name = "FIELD", value_delimiter = ',', conflicts_with = "code")]
    pub fields: Vec<String>,
    /// Write fields on the uniform grid of this level (npy, grafic) [default: 0]
    #[arg(long, conflicts_with = "code")]
    pub level: Option<u8>,
    /// Choose the run of a recipe that has several, by number, name or kind, as `plan` shows them
    #[arg(long, conflicts_with = "format")]
    pub stage: Option<String>,
    /// Set a parameter of the recipe; may be repeated
    #[arg(short = 'p', value_name = "NAME=VALUE", value_parser = assignment, conflicts_with = "format")]
    pub parameters: Vec<(String, String)>,
    /// Replace files of an earlier export
    #[arg(long)]
    pub overwrite: bool,
}

/// Formats of snapshots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// HDF5 of Gadget in kpc/h: dark matter by mass, a particle of type 0 for each leaf cell of gas
    Gadget,
    /// A folder of NumPy arrays: fields on the uniform grid of a level, columns of particles
    Npy,
    /// Overlapping meshes for ParaView
    Vtkhdf,
    /// A folder of files of GRAFIC for RAMSES: gas on the uniform grid of a level, a particle for each of its cells
    Grafic,
}

/// Name of a value on the command line.
pub(crate) fn name_of(value: impl ValueEnum) -> String {
    value.to_possible_value().expect("no value is hidden").get_name().to_owned()
}

/// Codes that `comove export` writes the input of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Code {
    /// Gadget-4: ics.hdf5, param.txt, outputs.txt, Config.sh
    Gadget,
    /// SWIFT: ics.hdf5, swift.yml, outputs.txt
    Swift,
    /// GAMER: UM_IC, PAR_IC, Input__Parameter, tables of refinement and outputs
    Gamer,
    /// RAMSES: a folder of GRAFIC files, ramses.nml
    Ramses,
    /// Enzo: an HDF5 file for each field, enzo.par
    Enzo,
    /// Nyx, dark matter alone: ics.nyx, inputs
    Nyx,
}

/// Explanation of exports.
const EXPORT: &str =
    "A file appears under its name when it is complete. Formats and units: docs/snapshot-format.md, *Export*.";

/// `comove noise`.
#[derive(Debug, Args)]
pub struct Noise {
    /// The file
    #[arg(value_parser = text_path())]
    pub file: PathBuf,
    /// Cells of the mesh along each axis: one even number, or three separated by commas
    #[arg(long, value_name = "N", value_delimiter = ',', required = true, value_parser = positive::<NonZeroUsize>)]
    pub cells: Vec<NonZeroUsize>,
    /// The seed
    #[arg(long)]
    pub seed: u64,
    /// Give every mode its mean amplitude
    #[arg(long)]
    pub fixed_amplitude: bool,
    /// Give every mode the opposite sign
    #[arg(long)]
    pub inverted: bool,
    /// Write 32-bit numbers [default: 64-bit]
    #[arg(long)]
    pub single: bool,
}

/// Explanation of files of white noise.
const NOISE: &str = "The numbers have the sign of the density contrast: MUSIC reads the file with grafic_sign = yes. The mean and \
                     the modes of the Nyquist planes are 0, as in ic_gaussian. The command takes 25 bytes of memory a cell.";

/// Signals and files that a running campaign reacts to.
const REQUESTS: &str = "To end a campaign: press Ctrl-C, create a file `stop` in the campaign folder, or send SIGTERM, SIGQUIT, \
                        SIGHUP, SIGUSR1, SIGUSR2, SIGALRM or SIGXCPU. Runs finish their step and write a checkpoint; \
                        the exit code is 75. A file `dump` requests a checkpoint. A file `pause` requests a checkpoint \
                        and a pause until the file is removed. Exit codes: docs/exit-codes.md.";

/// Explanation of scripts.
const SCRIPTS: &str = include_str!("command/script.txt");

/// A recipe and values of its parameters.
#[derive(Debug, Args)]
pub struct Recipe {
    /// The recipe (a .rhai file)
    #[arg(value_parser = text_path())]
    pub recipe: PathBuf,
    /// Set a parameter of the recipe; may be repeated
    #[arg(short = 'p', value_name = "NAME=VALUE", value_parser = assignment)]
    pub parameters: Vec<(String, String)>,
}

/// Devices and limits.
#[derive(Clone, Debug, Args)]
pub struct Machine {
    /// Compute on auto, cpu or cuda:N; separate several GPUs of one kind by commas: cuda:0,cuda:1
    #[arg(long, default_value = "auto", value_delimiter = ',')]
    pub device: Vec<String>,
    /// Compute at most N stages at a time [default: two for each device, at most one of them a run]
    #[arg(long, value_name = "N", value_parser = positive::<NonZeroUsize>)]
    pub jobs: Option<NonZeroUsize>,
    /// After a failure, continue with all stages that do not need the failed one [default: write checkpoints and exit]
    #[arg(long)]
    pub keep_going: bool,
    /// Continue runs of an older program whose results differ (CHANGELOG, Results changed) [default: start them again]; the
    /// report states it
    #[arg(long)]
    pub accept_version: bool,
    /// Use this number of CPU threads for all stages together; 0 means one per core
    #[arg(long, default_value_t = 0, value_parser = count)]
    pub threads: usize,
    /// Limit the memory of all runs together, in GiB per device [default: the free memory]
    #[arg(long, value_name = "GIB", value_parser = gibibytes)]
    pub memory: Option<f64>,
    /// Write checkpoints and exit with code 75 before this time is over, for example 11h50m; `none` means no limit [default:
    /// the end of the Slurm job; outside Slurm no limit]
    #[arg(long, value_name = "TIME", value_parser = parse_walltime)]
    pub walltime: Option<TimeLimit>,
}

impl Machine {
    /// The options that differ from their defaults, for a command that repeats them; without `--walltime`.
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

/// Terminal output of a running campaign.
#[derive(Clone, Copy, Debug, Args)]
pub struct Terminal {
    /// Show warnings and errors only; log.txt has all messages
    #[arg(short, long)]
    pub quiet: bool,
    /// Print the events of ledger.jsonl and the record of every step as JSON, one object per line
    #[arg(long)]
    pub json: bool,
}

/// `comove run`.
#[derive(Debug, Args)]
pub struct Run {
    /// The recipe (a .rhai file)
    #[arg(required_unless_present = "help", value_parser = text_path())]
    pub recipe: Option<PathBuf>,
    /// Set a parameter of the recipe; may be repeated
    #[arg(short = 'p', value_name = "NAME=VALUE", value_parser = assignment)]
    pub parameters: Vec<(String, String)>,
    /// The campaign folder [default: in the working directory, named after the recipe]
    #[arg(long, value_parser = text_path())]
    pub dir: Option<PathBuf>,
    /// Compute only this stage and its inputs; name it by number, folder, name or kind, as `plan` shows them; separate several
    /// by commas
    #[arg(long, value_name = "STAGE")]
    pub only: Vec<String>,
    /// Compute this stage again although it is done; separate several by commas
    #[arg(long, value_name = "STAGE")]
    pub force: Vec<String>,
    /// Start even if the folder has another recipe's campaign, or an unfinished run with other options (a forgotten -p)
    /// [default: ask; without a terminal refuse]
    #[arg(long)]
    pub new: bool,
    /// Skip the rehearsal, which first calls the recipe's closures on a toy universe to find mistakes, in seconds
    #[arg(long)]
    pub no_rehearsal: bool,
    /// Devices and limits
    #[command(flatten)]
    pub machine: Machine,
    /// Terminal output
    #[command(flatten)]
    pub terminal: Terminal,
    /// Print help, and the parameters of RECIPE if given
    #[arg(short, long)]
    pub help: bool,
}

/// `comove check`.
#[derive(Debug, Args)]
pub struct Check {
    /// Recipe and parameters
    #[command(flatten)]
    pub recipe: Recipe,
    /// Also call the recipe's closures on a toy universe, as `run` does before it starts; takes seconds
    #[arg(long)]
    pub rehearse: bool,
}

/// `comove docs`.
#[derive(Debug, Args)]
pub struct Docs {
    /// The subject
    #[command(subcommand)]
    pub subject: Subject,
}

/// Subjects of the reference.
#[derive(Clone, Copy, Debug, Subcommand)]
pub enum Subject {
    /// Print functions, options and types of recipes as Markdown
    Recipes {
        /// Print Rhai definitions for editors instead (recipes/api.d.rhai)
        #[arg(long)]
        definitions: bool,
    },
}

/// `comove plan`.
#[derive(Debug, Args)]
pub struct Plan {
    /// Recipe and parameters
    #[command(flatten)]
    pub recipe: Recipe,
    /// The campaign folder [default: in the working directory, named after the recipe]
    #[arg(long, value_parser = text_path())]
    pub dir: Option<PathBuf>,
    /// Base the predictions also on the records of this campaign [default: records of this campaign and of those beside it]
    #[arg(long, value_name = "DIR", value_parser = text_path())]
    pub like: Option<PathBuf>,
    /// Predict for auto, cpu or cuda:N; only the first of several counts
    #[arg(long, default_value = "auto", value_delimiter = ',')]
    pub device: Vec<String>,
    /// Predict for this number of CPU threads; 0 means one per core
    #[arg(long, default_value_t = 0, value_parser = count)]
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
    /// Set a parameter that the script declares by param("name", default, "help"); may be repeated
    #[arg(short = 'p', value_name = "NAME=VALUE", value_parser = assignment)]
    pub parameters: Vec<(String, String)>,
    /// Write tables and plots to this folder [default: scripts/SCRIPT in the campaign folder]
    #[arg(long, value_name = "FOLDER", value_parser = text_path())]
    pub output: Option<PathBuf>,
}

/// `comove explain`.
#[derive(Debug, Args)]
pub struct Explain {
    /// Recipe and parameters
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
    /// The folder of a run, a campaign folder with one run, or a snapshot file
    #[arg(value_parser = text_path())]
    pub a: PathBuf,
    /// The run or snapshot compared with A; values are shown as A → B
    #[arg(value_parser = text_path())]
    pub b: PathBuf,
    /// Choose the run of a campaign folder that has several, by number, folder, name or kind, as `plan` shows them
    #[arg(long)]
    pub stage: Option<String>,
    /// Compare the fields of two snapshots in the leaf cells that both have
    #[arg(long)]
    pub fields: bool,
    /// Compare the density power spectra of two snapshots on the root grid
    #[arg(long)]
    pub power: bool,
    /// Print the result as one JSON object
    #[arg(long)]
    pub json: bool,
    /// Device on which steps of runs that differ are repeated, to find the first groups that differ
    #[command(flatten)]
    pub device: OneDevice,
}

/// `comove verify-restart`.
#[derive(Debug, Args)]
pub struct VerifyRestart {
    /// The checkpoint, in its run's folder
    #[arg(value_parser = text_path())]
    pub snapshot: PathBuf,
    /// Compare K steps
    #[arg(long, value_name = "K", default_value = "3", value_parser = positive::<NonZeroU64>)]
    pub steps: NonZeroU64,
    /// Device
    #[command(flatten)]
    pub device: OneDevice,
}

/// A device.
#[derive(Clone, Debug, Args)]
pub struct OneDevice {
    /// Compute on cpu, cuda:N, or auto: a device of the kind that wrote the checkpoint
    #[arg(long, default_value = "auto")]
    pub device: String,
    /// Use this number of CPU threads; 0 means one per core
    #[arg(long, default_value_t = 0, value_parser = count)]
    pub threads: usize,
}

fn count(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| "expected a whole number from 0 on".into())
}

fn positive<N: FromStr>(text: &str) -> Result<N, String> {
    text.parse().map_err(|_| "expected a whole number from 1 on".into())
}

fn gibibytes(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|gib: &f64| *gib > 0.0 && gib.is_finite())
        .ok_or_else(|| "expected a positive number of GiB, as in 8".into())
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
