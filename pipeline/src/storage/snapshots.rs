//! The snapshots that are in memory: each is read once, and shared by the stages that look at it.
//!
//! A run leaves its outputs here as it writes them. Where several processes look at a snapshot together, each has a part of
//! it here. What is held takes at most a quarter of the memory that is there for it; beyond that, what has not been used for
//! longest goes and is read again when it is asked for.

use crate::error::PipelineError;
use crate::stage::result::Input;
use crate::terminal::progress::Progress;
use comove_kernels::memory;
use comove_sim::parallel::{Communicator, node};
use comove_sim::snapshot::SnapshotPart;
use comove_sim::{Octree, SimError, Snapshot, SnapshotHeader};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The share of the memory free for this process, with what is held already, that snapshots may take.
const SHARE: f64 = 0.25;
/// Bytes that they may take where the system does not say what is free.
const UNKNOWN: f64 = 4.0 * memory::GIB;

/// What is in memory, by the digests of the files, the one used last at the end.
type Held = Vec<(String, Content)>;

#[derive(Clone, Debug)]
enum Content {
    Whole(Arc<Snapshot>),
    /// What this process has of it.
    Part(Arc<SnapshotPart>),
}

impl Content {
    fn bytes(&self) -> usize {
        match self {
            Self::Whole(snapshot) => snapshot.bytes(),
            Self::Part(part) => part.bytes(),
        }
    }
}

/// Snapshots in memory; clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Snapshots {
    held: Arc<Mutex<Held>>,
    /// Where reading a file is shown.
    progress: Progress,
}

impl Snapshots {
    /// None yet; reading them is shown at `progress`.
    pub(crate) fn new(progress: &Progress) -> Self {
        Self { held: Arc::default(), progress: progress.clone() }
    }

    /// The snapshot in a file: as it is held, or read.
    pub(crate) fn read(&self, input: &Input) -> Result<Arc<Snapshot>, SimError> {
        if let Some(snapshot) = self.whole(&input.digest) {
            return Ok(snapshot);
        }
        let line = self.progress.file("reading", &input.path);
        let snapshot = Arc::new(Snapshot::read_reporting(&input.path, &|fraction| line.fraction(fraction))?);
        self.hold(&input.digest, &snapshot);
        Ok(snapshot)
    }

    /// The same of a file that nobody has compared with its digest yet: that comes before HDF5 opens it.
    pub(crate) fn read_checked(&self, input: &Input) -> Result<Arc<Snapshot>, PipelineError> {
        if let Some(snapshot) = self.whole(&input.digest) {
            return Ok(snapshot);
        }
        input.check(&self.progress)?;
        Ok(self.read(input)?)
    }

    /// This process's part of the snapshot in a file that all see and the first knows to have this digest: as each holds
    /// it, or read by all. Collective.
    pub(crate) fn part(
        &self,
        communicator: &Communicator,
        path: &Path,
        digest: &str,
    ) -> Result<Arc<SnapshotPart>, SimError> {
        let held = self.held_as(digest, |content| match content {
            Content::Part(part) => Some(Arc::clone(part)),
            Content::Whole(_) => None,
        });
        if !communicator.any(held.is_none()) {
            return Ok(held.expect("no process lacks it"));
        }
        drop(held);
        let line = self.progress.file("reading", path);
        let part = Arc::new(SnapshotPart::read(communicator, path, &|fraction| line.fraction(fraction))?);
        // others on this node take from the same memory
        let here = node();
        let sharers = communicator.gather_all_of(&here).into_iter().filter(|other| *other == here).count();
        self.hold_within(digest, Content::Part(Arc::clone(&part)), self.limit() / sharers as f64);
        Ok(part)
    }

    /// The header and the octree of the snapshot in a file; its fields are not read for this.
    pub(crate) fn read_tree(&self, input: &Input) -> Result<(SnapshotHeader, Octree), SimError> {
        match self.whole(&input.digest) {
            Some(snapshot) => Ok((snapshot.header.clone(), snapshot.state.tree.clone())),
            None => Snapshot::read_tree(&input.path),
        }
    }

    /// Holds the content of a file with this digest.
    pub(crate) fn hold(&self, digest: &str, snapshot: &Arc<Snapshot>) {
        self.hold_within(digest, Content::Whole(Arc::clone(snapshot)), self.limit());
    }

    /// Lets go of everything that no stage is looking at.
    pub(crate) fn clear(&self) {
        self.lock().clear();
    }

    /// Bytes that all may take.
    fn limit(&self) -> f64 {
        let held: usize = self.lock().iter().map(|(_, content)| content.bytes()).sum();
        memory::available().map_or(UNKNOWN, |free| SHARE * (free + held as f64))
    }

    fn hold_within(&self, digest: &str, content: Content, limit: f64) {
        let mut held = self.lock();
        let is_same = |other: &Content| std::mem::discriminant(other) == std::mem::discriminant(&content);
        held.retain(|(other, held)| other != digest || !is_same(held));
        held.push((digest.to_owned(), content));
        let mut bytes: usize = held.iter().map(|(_, content)| content.bytes()).sum();
        while bytes as f64 > limit && !held.is_empty() {
            bytes -= held.remove(0).1.bytes();
        }
    }

    fn whole(&self, digest: &str) -> Option<Arc<Snapshot>> {
        self.held_as(digest, |content| match content {
            Content::Whole(snapshot) => Some(Arc::clone(snapshot)),
            Content::Part(_) => None,
        })
    }

    /// What is held under a digest and is of the right kind; it is now the one used last.
    fn held_as<T>(&self, digest: &str, of_kind: impl Fn(&Content) -> Option<T>) -> Option<T> {
        let mut held = self.lock();
        let is_it = |(other, content): &(String, Content)| other == digest && of_kind(content).is_some();
        let place = held.iter().position(is_it)?;
        let entry = held.remove(place);
        let content = of_kind(&entry.1);
        held.push(entry);
        content
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        // no holder of the lock leaves the list half changed
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use comove_sim::mesh::PERIODIC;
    use comove_sim::{Coordinates, HostState};

    /// Three snapshots of one size where there is room for two: the one used least recently goes.
    #[test]
    fn what_was_not_used_for_longest_goes() {
        let snapshot = || {
            let state = HostState::zeros(Octree::new([1; 3], PERIODIC));
            Arc::new(Snapshot { header: SnapshotHeader::initial(Coordinates::Plain), state })
        };
        let snapshots = Snapshots::default();
        let limit = 2.5 * snapshot().bytes() as f64;
        let first = snapshot();
        snapshots.hold_within("a", Content::Whole(first.clone()), limit);
        snapshots.hold_within("b", Content::Whole(snapshot()), limit);
        assert!(Arc::ptr_eq(&snapshots.whole("a").unwrap(), &first));
        snapshots.hold_within("c", Content::Whole(snapshot()), limit);
        let there = ["a", "b", "c"].map(|digest| snapshots.whole(digest).is_some());
        assert_eq!(there, [true, false, true]);
        snapshots.hold_within("d", Content::Whole(snapshot()), 0.0);
        assert!(snapshots.lock().is_empty());
    }

    /// A file is read once; its tree alone is not held.
    #[test]
    fn a_file_is_read_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.h5");
        let state = HostState::zeros(Octree::new([1, 2, 1], PERIODIC));
        let written = Snapshot { header: SnapshotHeader::initial(Coordinates::Plain), state };
        let digest = written.write(&path).unwrap();
        let input = Input { path, content: digest.clone(), digest, moment: None };
        let snapshots = Snapshots::default();
        assert_eq!(snapshots.read_tree(&input).unwrap(), (written.header, written.state.tree));
        assert!(snapshots.lock().is_empty());
        let first = snapshots.read(&input).unwrap();
        std::fs::remove_file(&input.path).unwrap();
        assert!(Arc::ptr_eq(&snapshots.read(&input).unwrap(), &first));
        assert!(snapshots.read_tree(&input).is_ok());
    }
}
