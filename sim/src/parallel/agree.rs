//! What goes wrong on one rank goes wrong on all.

use crate::error::SimError;
use crate::parallel::communicator::Communicator;

/// The result, or where another rank failed, what it said: collective, so that all ranks go the same way.
///
/// # Errors
/// This rank's own, else [`SimError::OnRank`] of the first rank that has one.
pub fn agree<R>(communicator: &Communicator, result: Result<R, SimError>) -> Result<R, SimError> {
    if !communicator.any(result.is_err()) {
        return result;
    }
    let own = result.as_ref().err().map(|error| (error.kind(), error.to_string()));
    let said = communicator.gather_all_of(&own);
    let first = said.into_iter().enumerate().find_map(|(rank, said)| Some((rank, said?)));
    let (rank, (kind, message)) = first.expect("some rank failed");
    result.and_then(|_| Err(SimError::OnRank { rank, kind, message }))
}
