//! A run from outside: start, step, side branches, checkpoints.

use crate::error::SimError;
use crate::io::snapshot::{Snapshot, SnapshotHeader, StartFrom, Unverified};
use crate::mesh::{HostState, Key, Octree};
use crate::parallel::{CommandLock, Ranks};
use crate::parameters::{Coordinates, Precision, RunParameters, StartFacts};
use crate::records::{RunSummary, StepRecord};
use crate::run::command::{PANICKED, broadcast};
use crate::run::start_scalars::StartScalars;
use crate::run::trajectory::Run;
use crate::steering::Steering;
use crate::step::physics::Physics;
use comove_kernels::{Device, Real};
use parking_lot::MutexGuard;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::Path;

/// A run on a device, in either precision.
pub struct Simulation {
    inner: Inner,
    /// Of a rank that others follow.
    leads: Option<CommandLock>,
}

enum Inner {
    Single(Box<Run<f32>>),
    Double(Box<Run<f64>>),
}

/// Calls the same method of the run of either precision.
macro_rules! each {
    ($simulation:expr, $run:ident => $call:expr) => {
        match $simulation {
            Inner::Single($run) => $call,
            Inner::Double($run) => $call,
        }
    };
}

/// A command to the ranks that follow: what to do with their simulations.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Command {
    /// Make the device ready.
    Prepare,
    /// [`Simulation::start`], from groups that the first rank has as a whole, or else from those that each rank has kept of
    /// an analysis.
    Start {
        header: Box<SnapshotHeader>,
        root: [u32; 3],
        periodic: [bool; 3],
        whole: bool,
        parameters: Box<RunParameters>,
    },
    /// One of the collective methods of [`Simulation`].
    Call(Call),
    /// [`Simulation::write`] of the last snapshot.
    Write,
    /// The simulation is dropped.
    End,
    /// Work other than a simulation: [`super::rank_group::RankGroup::run_collective`].
    Task(Value),
    /// There is nothing more to do.
    Shutdown,
}

/// What a call leaves on a rank that follows: a snapshot of its groups, nothing, or its own error.
trait IntoOutcome {
    fn into_outcome(self) -> Result<Option<Snapshot>, SimError>;
}

impl IntoOutcome for Result<Snapshot, SimError> {
    fn into_outcome(self) -> Result<Option<Snapshot>, SimError> {
        self.map(Some)
    }
}

/// Results that the first rank alone reads.
macro_rules! read_by_the_first_rank {
    ($($value:ty),*; $($result:ty),*) => {
        $(impl IntoOutcome for $value {
            fn into_outcome(self) -> Result<Option<Snapshot>, SimError> {
                Ok(None)
            }
        })*
        $(impl IntoOutcome for Result<$result, SimError> {
            fn into_outcome(self) -> Result<Option<Snapshot>, SimError> {
                self.map(|_| None)
            }
        })*
    };
}
read_by_the_first_rank!(f64, String, Vec<(Key, u64)>; (), StepRecord);

/// Numbers in commands by their bits: any number, exactly.
mod bits {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
        value.to_bits().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
        u64::deserialize(deserializer).map(f64::from_bits)
    }
}

/// The one table of collective calls. Of each entry it makes the method of [`Simulation`], which sends the command to the
/// ranks that follow and then does the work; the command; and what a rank does that follows.
macro_rules! collective_calls {
    ($(
        $(#[$doc:meta])*
        $call:ident: fn $method:ident($run:ident $(, $(#[$serde:meta])* $argument:ident: $type:ty)*) -> $result:ty $work:block
    )*) => {
        /// A collective method of [`Simulation`] and its arguments.
        #[derive(Debug, Serialize, Deserialize)]
        pub(super) enum Call {
            $($call { $($(#[$serde])* $argument: $type),* },)*
        }

        impl Simulation {
            $($(#[$doc])* pub fn $method(&mut self $(, $argument: $type)*) -> $result {
                let lock = self.leads.clone();
                let _held = self.command(&lock, &Command::Call(Call::$call { $($argument),* }));
                each!(&mut self.inner, $run => $work)
            })*

            /// Does what the first rank calls.
            pub(super) fn dispatch(&mut self, call: Call) -> Result<Option<Snapshot>, SimError> {
                match call {
                    $(Call::$call { $($argument),* } => self.$method($($argument),*).into_outcome(),)*
                }
            }
        }
    };
}

impl Simulation {
    /// Starts from an initial condition (refining it as the criteria ask), continues a checkpoint bit for bit, or starts
    /// another trajectory from an output.
    ///
    /// # Errors
    /// [`SimError::Parameter`] for numbers that no run can use or that contradict the snapshot, [`SimError::OutOfMemory`] where
    /// the memory does not suffice.
    pub fn start(device: Device, snapshot: &Snapshot, parameters: RunParameters) -> Result<Self, SimError> {
        Self::start_on(device, Ranks::alone(), snapshot, parameters)
    }

    /// The same by ranks that share the octree, each with a device of its own. From then on all of them call the same
    /// methods in the same order: everything is collective. Of a snapshot each of them has its own groups.
    ///
    /// * `from`: a snapshot in memory, of whose groups each rank has some, or the first all and the others none; or on the
    ///   first rank one in a file, on others one in memory without groups. Header and box are the same on all
    ///
    /// # Errors
    /// As [`Simulation::start`], and of a file as [`Snapshot::read`]; on all ranks.
    pub fn start_on<'a>(
        device: Device,
        ranks: Ranks,
        from: impl Into<StartFrom<'a>>,
        parameters: RunParameters,
    ) -> Result<Self, SimError> {
        let (leads, from) = (ranks.leads.clone(), from.into());
        check(from.header(), from.tree(), &parameters)?;
        if let StartFrom::Memory(Snapshot { state: HostState { particles: Some(particles), .. }, .. }) = &from
            && ranks.communicator.size() == 1
        {
            particles.check()?;
        }
        let _held = leads.as_ref().map(|lock| {
            let (header, tree) = (Box::new(from.header().clone()), from.tree());
            let (root, periodic, parameters) = (tree.root_groups(), tree.periodic(), Box::new(parameters.clone()));
            let start = Command::Start { header, root, periodic, whole: tree.is_whole(), parameters };
            broadcast(&ranks.communicator, lock, &start)
        });
        let inner = match parameters.precision {
            Precision::Single => Inner::Single(Box::new(Run::start(device, ranks, from, physics(parameters))?)),
            Precision::Double => Inner::Double(Box::new(Run::start(device, ranks, from, physics(parameters))?)),
        };
        Ok(Self { inner, leads: leads.clone() })
    }

    /// Sends a command to the ranks that follow; hold the guard until it is done.
    fn command<'l>(&self, lock: &'l Option<CommandLock>, command: &Command) -> Option<MutexGuard<'l, ()>> {
        let communicator = each!(&self.inner, run => run.communicator());
        lock.as_ref().map(|lock| broadcast(communicator, lock, command))
    }

    /// Scale factor, or time in non-comoving coordinates.
    pub fn now(&self) -> f64 {
        each!(&self.inner, run => run.now())
    }

    /// Root steps taken since the start of the run.
    pub fn step_number(&self) -> u64 {
        each!(&self.inner, run => run.step_number())
    }

    /// What holds for the next step.
    pub fn steering(&self) -> Steering {
        each!(&self.inner, run => run.steering())
    }

    /// Writes a snapshot that the ranks of this run have, each its own groups, as [`Snapshot::write_by`] does.
    ///
    /// * `snapshot`: what [`Simulation::output_at`] or [`Simulation::checkpoint`] gave last
    ///
    /// # Errors
    /// As [`Snapshot::write_by`].
    pub fn write(&self, snapshot: &Snapshot, path: &Path) -> Result<Option<Unverified>, SimError> {
        let _held = self.command(&self.leads, &Command::Write);
        snapshot.write_by(each!(&self.inner, run => run.communicator()), path)
    }

    /// Groups of each level.
    pub fn groups(&self) -> Vec<usize> {
        each!(&self.inner, run => run.groups())
    }

    /// What the run has done so far.
    pub fn summary(&self) -> RunSummary {
        each!(&self.inner, run => run.summary())
    }
}

collective_calls! {
    /// Scale factor (time in non-comoving coordinates) after the next unclipped step.
    NextStop: fn next_stop(run) -> f64 { run.next() }

    /// Takes the next root step.
    ///
    /// # Errors
    /// [`SimError::Unphysical`] naming the first bad cell, where neither the redo at first order nor shorter steps help;
    /// the state is then of no further use and the last checkpoint is what to go on from. [`SimError::OutOfMemory`] where a
    /// refinement does not fit the memory, [`comove_kernels::KernelError::OutOfMemory`] where another process was faster:
    /// the run is then where it was before the step, and a checkpoint of it continues on a machine with more room with the
    /// bits that it would have had.
    Step: fn step(run) -> Result<StepRecord, SimError> { run.step() }

    /// What holds from the next step on, in place of what held before.
    ///
    /// # Errors
    /// [`SimError::Parameter`] for more than the run's parameters allow; it then goes on as before.
    Steer: fn steer(run, steering: Steering) -> Result<(), SimError> { run.steer(steering) }

    /// The state at exactly `target`, between now and [`Simulation::next_stop`], as a side branch: the trajectory goes on
    /// as if nobody had asked. A rank among others gets its own groups.
    ///
    /// # Errors
    /// As [`Simulation::step`], and [`SimError::Parameter`] if `target` is outside the next step.
    OutputAt: fn output_at(run, #[serde(with = "bits")] target: f64) -> Result<Snapshot, SimError> { run.output_at(target) }

    /// The state now, from which a run continues bit for bit. A rank among others gets its own groups.
    ///
    /// # Errors
    /// [`SimError::Kernel`] where the device has no room.
    Checkpoint: fn checkpoint(run) -> Result<Snapshot, SimError> { run.checkpoint() }

    /// The hash of each group's fluid, in key order: equal groups have equal hashes.
    GroupHashes: fn group_hashes(run) -> Vec<(Key, u64)> { run.state.group_hashes() }

    /// The hash of all fields and keys as [`StepRecord::state_hash`] has it.
    StateHash: fn state_hash(run) -> String { format!("{:016x}", run.state.hash()) }
}

impl Drop for Simulation {
    fn drop(&mut self) {
        if self.leads.is_some() && std::thread::panicking() {
            // the others may be in the middle of what this rank will not go on with
            each!(&self.inner, run => run.communicator()).abort(PANICKED);
        }
        let _held = self.command(&self.leads, &Command::End);
        if !std::thread::panicking() {
            each!(&self.inner, run => run.leave());
        }
    }
}

fn physics<T: Real>(parameters: RunParameters) -> Physics<T> {
    Physics { eos: parameters.eos(), parameters }
}

/// Refuses numbers that no run can use or that contradict the snapshot.
fn check(header: &SnapshotHeader, tree: &Octree, p: &RunParameters) -> Result<(), SimError> {
    p.check()?;
    StartScalars::new(&header.fields, &p.scalars)?;
    if !header.fields.has_gas() {
        SimError::require("fields", &"none of gas", header.dark_matter.is_some(), "without gas there is dark matter")?;
    }
    let refuse = |name, value: String, reason: String| Err(SimError::Parameter { name, value, reason });
    let comoving = p.coordinates == Coordinates::Comoving;
    if comoving != header.cosmology.is_some() || p.coordinates != header.coordinates {
        return refuse(
            "coordinates",
            format!("{:?}", p.coordinates).to_lowercase(),
            format!("the initial state is {:?}", header.coordinates).to_lowercase(),
        );
    }
    if let Some(cosmology) = header.cosmology {
        cosmology.check()?;
    }
    p.check_start(&StartFacts {
        gas: header.fields.has_gas(),
        particles: Some(header.dark_matter.map_or(0, |dark_matter| dark_matter.particles)),
        gamma: header.gamma,
        mean_molecular_weight: Some(header.mean_molecular_weight),
        box_lengths: header.box_lengths(tree),
        root_cells: tree.cells(0),
        levels: tree.level_count(),
    })?;
    let periodic = tree.periodic();
    if p.boundary.periodic() != periodic {
        let axes: Vec<&str> = ["x", "y", "z"].into_iter().zip(periodic).filter(|a| a.1).map(|a| a.0).collect();
        let along = if axes.is_empty() { "no axis".into() } else { axes.join(", ") };
        let reason = format!("the initial state is periodic along {along}; set the same boundary for the run");
        return refuse("boundary", p.boundary.to_string(), reason);
    }
    Ok(())
}
