//! Commands of the first rank to the others.

use crate::parallel::{CommandLock, Communicator};
use parking_lot::MutexGuard;
use serde::Serialize;

/// Exit code of a program that panics.
pub(crate) const PANICKED: i32 = 101;

/// Sends the other ranks a command, once the one that another thread has sent is done; hold the guard until this one is.
pub(crate) fn broadcast<'l>(
    communicator: &Communicator,
    lock: &'l CommandLock,
    command: &impl Serialize,
) -> MutexGuard<'l, ()> {
    let held = lock.lock();
    communicator.order(&serde_json::to_vec(command).expect("numbers and names"));
    held
}
