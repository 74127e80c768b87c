//! The processes that `mpiexec` or `srun` has started: the first does what the command line says, and the others compute
//! with it.

use crate::cli::{Cli, Command, Machine};
use crate::error::PipelineError;
use crate::processes::control::STOPS;
use crate::processes::launchers::{PMIX, SIZES};
use crate::processes::machine;
use crate::processes::task::Task;
use crate::storage::snapshots::Snapshots;
use clap::Parser;
use comove_kernels::gpus::gpus;
use comove_kernels::{Device, KernelError};
use comove_sim::RankGroup;
use comove_sim::parallel::Communicator;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// This process among the others, if there are any.
pub struct Ranks {
    /// All of them.
    pub crew: RankGroup,
    /// Its number among those on its node.
    place: usize,
    /// Those on its node that have the same cores.
    sharers: usize,
    /// Those on its node.
    on_node: usize,
}

impl Ranks {
    /// Finds the others: collective.
    ///
    /// # Errors
    /// [`PipelineError::Usage`] where there are others and the program was built without MPI, or MPI cannot be used.
    pub fn assemble() -> Result<Self, PipelineError> {
        let communicator = match started() {
            1 => Communicator::alone(),
            ranks => world(ranks)?,
        };
        // by node, and by cores, which a launcher may have dealt out
        let own = (comove_sim::parallel::node(), cores());
        let all = communicator.gather_all_of(&own);
        let place = all[..communicator.rank()].iter().filter(|(node, _)| *node == own.0).count();
        let sharers = all.iter().filter(|other| **other == own).count();
        let on_node = all.iter().filter(|(node, _)| *node == own.0).count();
        Ok(Self { crew: RankGroup::of(communicator), place, sharers, on_node })
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.crew.communicator().size()
    }

    /// The part of the processes that is on this one's node, and so of the memory that they take together.
    pub fn part_on_node(&self) -> f64 {
        self.on_node as f64 / self.count() as f64
    }

    /// Whether this is the process that decides.
    pub fn leads(&self) -> bool {
        self.crew.communicator().rank() == 0
    }

    /// What a command line says of where to compute, for this process: a device of its own and its part of the cores.
    ///
    /// # Errors
    /// [`PipelineError::Usage`] for several runs at once, which processes that share one have no room for.
    pub fn own(&self, machine: &Machine) -> Result<Machine, PipelineError> {
        if self.count() == 1 {
            return Ok(machine.clone());
        }
        if let Some(jobs) = machine.jobs.filter(|jobs| jobs.get() > 1) {
            let message =
                format!("--jobs {jobs}: the {} MPI processes compute one stage at a time; remove --jobs", self.count());
            return Err(PipelineError::Usage(message));
        }
        let device = match (machine.device.as_slice(), gpus().map_or(0, |found| found.gpus.len())) {
            ([auto], 0) if auto == "auto" => "cpu".into(),
            ([auto], gpus) if auto == "auto" => format!("cuda:{}", self.place % gpus),
            (names, _) => names[self.place % names.len()].clone(),
        };
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = if machine.threads == 0 { (cores / self.sharers).max(1) } else { machine.threads };
        Ok(Machine { device: vec![device], threads, ..machine.clone() })
    }

    /// Does what the first process says until that has nothing more to do. It alone listens to signals.
    pub fn follow(&self) {
        for (signal, _) in STOPS {
            let _ = signal_hook::flag::register(*signal, Arc::new(AtomicBool::new(false)));
        }
        let machine = Cli::try_parse().ok().and_then(|cli| match cli.command {
            Command::Run(arguments) => Some(arguments.machine),
            Command::Resume { machine, .. } => Some(machine),
            _ => None,
        });
        let machine = machine.and_then(|machine| self.own(&machine).ok());
        if let Some(machine) = &machine {
            let _ = rayon::ThreadPoolBuilder::new().num_threads(machine.threads).build_global();
        }
        let device = || {
            let machine = machine
                .as_ref()
                .ok_or_else(|| KernelError::NoDevice("none".into(), "this command computes in one process".into()))?;
            let device = Device::from_name(&machine.device[0], machine.threads)?;
            let limit = machine.memory.map(|gib| (gib * comove_kernels::memory::GIB) as u64);
            Ok(limit.map_or(device.clone(), |bytes| device.limited_to(bytes)))
        };
        let snapshots = Snapshots::default();
        self.crew.follow(device, |task, communicator| {
            serde_json::from_value::<Task>(task).expect("a task of the same program").follow(communicator, &snapshots)
        });
    }
}

/// How many processes a launcher says it has started.
fn started() -> usize {
    let told = SIZES.into_iter().filter_map(|name| std::env::var(name).ok()?.parse().ok());
    // srun with PMIx says how many in a variable of its own
    let pmix = std::env::var_os(PMIX).and_then(|_| std::env::var("SLURM_STEP_NUM_TASKS").ok()?.parse().ok());
    told.chain(pmix).max().unwrap_or(1)
}

#[cfg(feature = "mpi")]
fn world(_ranks: usize) -> Result<Communicator, PipelineError> {
    Ok(Communicator::world()?)
}

#[cfg(not(feature = "mpi"))]
fn world(ranks: usize) -> Result<Communicator, PipelineError> {
    let message =
        format!("MPI started {ranks} processes, but this program was built without MPI; build it with --features mpi");
    Err(PipelineError::Usage(message))
}

/// The cores that this process may use, as the system names them.
fn cores() -> String {
    machine::process_status("Cpus_allowed_list").unwrap_or_default()
}
