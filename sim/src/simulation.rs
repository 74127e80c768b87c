//! A run from outside: start, step, side branches, checkpoints.

use crate::error::SimError;
use crate::octree::{Key, Octree};
use crate::parallel::Ranks;
use crate::parallel::crew::{Order, PANICKED, Turn, tell};
use crate::parameters::{Coordinates, Precision, RunParameters};
use crate::records::{RunSummary, StepRecord};
use crate::run::Run;
use crate::snapshot::{Snapshot, SnapshotHeader, StartFrom, Unverified};
use crate::steering::Steering;
use crate::step::Physics;
use comove_kernels::{Device, Real};
use std::path::Path;

/// A run on a device, in either precision.
pub struct Simulation {
    inner: Inner,
    /// Of a rank that others follow.
    leads: Option<Turn>,
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

/// Tells the ranks that follow; what they are told is to be done while this is held.
macro_rules! told {
    ($simulation:ident, $order:expr) => {{
        let communicator = each!(&$simulation.inner, run => run.communicator());
        $simulation.leads.as_ref().map(|turn| tell(communicator, turn, &$order))
    }};
}

impl Simulation {
    /// Starts from an initial condition (refining it as the criteria ask), continues a checkpoint bit for bit, or starts
    /// another trajectory from an output.
    ///
    /// # Errors
    /// [`SimError::Parameter`] for numbers that no run can use or that contradict the snapshot, [`SimError::NoRoom`] where
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
        let _turn = leads.as_ref().map(|turn| {
            let (header, tree) = (Box::new(from.header().clone()), from.tree());
            let (root, periodic, parameters) = (tree.root_groups(), tree.periodic(), Box::new(parameters.clone()));
            tell(
                &ranks.communicator,
                turn,
                &Order::Start { header, root, periodic, whole: tree.is_whole(), parameters },
            )
        });
        let inner = match parameters.precision {
            Precision::Single => Inner::Single(Box::new(Run::start(device, ranks, from, physics(parameters))?)),
            Precision::Double => Inner::Double(Box::new(Run::start(device, ranks, from, physics(parameters))?)),
        };
        Ok(Self { inner, leads: leads.clone() })
    }

    /// Scale factor, or time in plain coordinates.
    pub fn now(&self) -> f64 {
        each!(&self.inner, run => run.now())
    }

    /// Root steps taken since the start of the run.
    pub fn step_number(&self) -> u64 {
        each!(&self.inner, run => run.step_number())
    }

    /// Scale factor (time in plain coordinates) after the next unclipped step.
    pub fn next_stop(&mut self) -> f64 {
        let _turn = told!(self, Order::Next);
        each!(&mut self.inner, run => run.next())
    }

    /// Takes the next root step.
    ///
    /// # Errors
    /// [`SimError::Unphysical`] naming the first bad cell, where neither the redo at first order nor shorter steps help;
    /// the state is then of no further use and the last checkpoint is what to go on from. [`SimError::NoRoom`] where a
    /// refinement does not fit the memory, [`comove_kernels::KernelError::OutOfMemory`] where another process was faster:
    /// the run is then where it was before the step, and a checkpoint of it continues on a machine with more room with the
    /// bits that it would have had.
    pub fn step(&mut self) -> Result<StepRecord, SimError> {
        let _turn = told!(self, Order::Step);
        each!(&mut self.inner, run => run.step())
    }

    /// What holds from the next step on, in place of what held before.
    ///
    /// # Errors
    /// [`SimError::Parameter`] for more than the run's parameters allow; it then goes on as before.
    pub fn steer(&mut self, steering: Steering) -> Result<(), SimError> {
        let _turn = told!(self, Order::Steer(steering));
        each!(&mut self.inner, run => run.steer(steering))
    }

    /// What holds for the next step.
    pub fn steering(&self) -> Steering {
        each!(&self.inner, run => run.steering())
    }

    /// The state at exactly `target`, between now and [`Simulation::next_stop`], as a side branch: the trajectory goes on
    /// as if nobody had asked. A rank among others gets its own groups.
    ///
    /// # Errors
    /// As [`Simulation::step`], and [`SimError::Parameter`] if `target` lies outside the next step.
    pub fn output_at(&mut self, target: f64) -> Result<Snapshot, SimError> {
        let _turn = told!(self, Order::Output(target.to_bits()));
        each!(&mut self.inner, run => run.output_at(target))
    }

    /// The state now, from which a run continues bit for bit. A rank among others gets its own groups.
    ///
    /// # Errors
    /// [`SimError::Kernel`] where the device has no room.
    pub fn checkpoint(&mut self) -> Result<Snapshot, SimError> {
        let _turn = told!(self, Order::Checkpoint);
        each!(&mut self.inner, run => run.checkpoint())
    }

    /// Writes a snapshot that the ranks of this run have, each its own groups, as [`Snapshot::write_by`] does.
    ///
    /// * `snapshot`: what [`Simulation::output_at`] or [`Simulation::checkpoint`] gave last
    ///
    /// # Errors
    /// As [`Snapshot::write_by`].
    pub fn write(&self, snapshot: &Snapshot, path: &Path) -> Result<Option<Unverified>, SimError> {
        let _turn = told!(self, Order::Write);
        snapshot.write_by(each!(&self.inner, run => run.communicator()), path)
    }

    /// Groups of each level.
    pub fn groups(&self) -> Vec<usize> {
        each!(&self.inner, run => run.groups())
    }

    /// The hash of each group's fluid, in key order: equal groups have equal hashes.
    pub fn group_hashes(&self) -> Vec<(Key, u64)> {
        let _turn = told!(self, Order::GroupHashes);
        each!(&self.inner, run => run.all_group_hashes())
    }

    /// The hash of all fields and keys as [`StepRecord::state_hash`] has it.
    pub fn state_hash(&self) -> String {
        let _turn = told!(self, Order::StateHash);
        format!("{:016x}", each!(&self.inner, run => run.state_hash()))
    }

    /// What the run has done so far.
    pub fn summary(&self) -> RunSummary {
        each!(&self.inner, run => run.summary())
    }
}

impl Drop for Simulation {
    fn drop(&mut self) {
        if self.leads.is_some() && std::thread::panicking() {
            // the others may be in the middle of what this rank will not go on with
            each!(&self.inner, run => run.communicator()).abort(PANICKED);
        }
        let _turn = told!(self, Order::End);
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
    if (p.gamma - header.gamma).abs() > 1e-12 {
        return refuse("gamma", p.gamma.to_string(), format!("the initial state was made with {}", header.gamma));
    }
    let periodic = tree.periodic();
    if p.boundary.periodic() != periodic {
        let axes: Vec<&str> = ["x", "y", "z"].into_iter().zip(periodic).filter(|a| a.1).map(|a| a.0).collect();
        let along = if axes.is_empty() { "no axis".into() } else { axes.join(", ") };
        let reason = format!("the initial state is periodic along {along}: its patches were laid out for that");
        return refuse("boundary", p.boundary.to_string(), reason);
    }
    let root_cells = tree.cells(0).into_iter().map(|n| n as u64).product();
    if let Some(most) = p.max_cells.filter(|&most| most < root_cells) {
        return refuse("max_cells", most.to_string(), format!("the root level alone has {root_cells}"));
    }
    let finest = tree.cells(0).into_iter().max().unwrap_or(0) as u64;
    if finest << p.max_level > 1 << 24 {
        return refuse(
            "max_level",
            p.max_level.to_string(),
            format!("{finest} root cells refined so often exceed 2^24 cells a side"),
        );
    }
    if tree.level_count() > usize::from(p.max_level) + 1 {
        return refuse(
            "max_level",
            p.max_level.to_string(),
            format!("the initial state has groups on level {}", tree.level_count() - 1),
        );
    }
    Ok(())
}
