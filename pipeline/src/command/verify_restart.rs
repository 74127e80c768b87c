//! `comove verify-restart`: whether a checkpoint continues with the bits that its run has recorded.

use super::print;
use super::recorded::{RecordedRun, Replay, class_of};
use crate::cli;
use crate::error::PipelineError;
use crate::moment::Moment;
use crate::stage::evolve::{RESULTS_VERSION, steps};
use crate::storage::files::regular_file;
use comove_kernels::Device;
use comove_sim::{Role, Snapshot};

/// Continues a checkpoint in memory and compares each step with its record.
pub(super) fn verify_restart(arguments: &cli::VerifyRestart) -> Result<(), PipelineError> {
    let path = &arguments.snapshot;
    regular_file(path)?;
    let real = path.canonicalize().map_err(PipelineError::io(path))?;
    let (Some(folder), Some(file)) = (real.parent(), real.file_name()) else {
        return Err(PipelineError::input(path, "the file is not in the folder of a run"));
    };
    let run = RecordedRun::open(folder)?;
    let snapshot = run.snapshot(&file.to_string_lossy())?;
    let device = arguments.device.open(class_of(&snapshot.header))?;
    let wrong = |reason: String| PipelineError::input(path, reason);
    refusal(&run, &snapshot, &device, arguments.steps.get()).map_or(Ok(()), |reason| Err(wrong(reason)))?;
    let mut replay = Replay::start(&run, &snapshot, &device)?;
    let first = snapshot.header.step;
    drop(snapshot);
    if let Some(record) = run.records.get(&first)
        && record.step.state_hash != replay.simulation.state_hash()
    {
        let (recorded, found) = (&record.step.state_hash, replay.simulation.state_hash());
        return Err(wrong(format!(
            "its state differs from the record of step {first} (hash {found}, recorded {recorded}): another device \
             or program wrote it in a repetition of the run, or one of the two files was changed; give another \
             checkpoint"
        )));
    }
    let mut steps = 0;
    for (step, record) in run.records.range(first + 1..).take(arguments.steps.get() as usize) {
        let found = replay.step()?;
        let recorded = &record.step.state_hash;
        if found.state_hash != *recorded {
            return Err(PipelineError::Different(format!(
                "{}: step {step} differs: the repeated step has the state hash {}, the record has {recorded}",
                path.display(),
                found.state_hash
            )));
        }
        print(&format!("step {step}, {}: {recorded} in both", Moment::after(&found).rounded()))?;
        steps += 1;
    }
    let steps = if steps == 1 { "1 step agrees".to_owned() } else { format!("{steps} steps agree") };
    let end = if run.last() < first + arguments.steps.get() { "; no more are recorded" } else { "" };
    print(&format!("{}: {steps}, bit for bit{end}", path.display()))?;
    Ok(())
}

/// Why the records that follow a snapshot say nothing about it, if they do not.
fn refusal(run: &RecordedRun, snapshot: &Snapshot, device: &Device, steps: u64) -> Option<String> {
    let step = snapshot.header.step;
    if snapshot.header.role != Role::Checkpoint {
        return Some(match snapshot.header.role {
            Role::Output => "an output, from which its run does not continue; give a checkpoint".into(),
            _ => "an initial condition; give a checkpoint".into(),
        });
    }
    let version = run.known.identity.as_ref().map(|identity| identity.results_version);
    if let Some(version) = version.filter(|version| *version != RESULTS_VERSION) {
        return Some(format!(
            "its run has results version {version} of evolve, and this program has version {RESULTS_VERSION} \
             (CHANGELOG); use the program that began the run"
        ));
    }
    let mut following = run.records.range(step + 1..).take(steps as usize).enumerate().peekable();
    if following.peek().is_none() {
        let last = run.last();
        return Some(format!(
            "{} has no record after step {step} (its last is {last}); give an earlier checkpoint",
            steps::FILE
        ));
    }
    let (written, here) = (class_of(&snapshot.header), device.class());
    if written != here {
        return Some(format!(
            "written on a device of class {written}, and this one is {here}; their bits differ, so choose a device \
             of the first class with --device"
        ));
    }
    for (n, (number, record)) in following {
        if *number != step + 1 + n as u64 {
            return Some(format!("{} lacks the record of step {}", steps::FILE, step + 1 + n as u64));
        }
        if record.step.continued_from_device_class.as_deref() == Some(here.as_str()) {
            return Some(format!(
                "step {number} was computed on a device of another class than the checkpoint's {here}, so their bits \
                 cannot be compared; give a later checkpoint"
            ));
        }
    }
    None
}
