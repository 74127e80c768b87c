//! An error of one rank becomes that of all.

use super::communicator::Communicator;
use crate::error::{ErrorKind, SimError};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// An error that other ranks can be told.
pub trait CollectiveError: Sized + std::fmt::Display {
    /// What other ranks know of it besides its message.
    type Kind: Serialize + DeserializeOwned;
    /// Its kind.
    fn collective_kind(&self) -> Self::Kind;
    /// The error of another rank.
    fn on_rank(rank: usize, kind: Self::Kind, message: String) -> Self;
}

impl CollectiveError for SimError {
    type Kind = ErrorKind;

    fn collective_kind(&self) -> ErrorKind {
        self.kind()
    }

    fn on_rank(rank: usize, kind: ErrorKind, message: String) -> Self {
        Self::OnRank { rank, kind, message }
    }
}

/// The result, or the error of another rank: collective, so that all ranks go the same way.
///
/// # Errors
/// This rank's own, else that of the first rank that has one ([`CollectiveError::on_rank`]).
pub fn collective_result<R, E: CollectiveError>(communicator: &Communicator, result: Result<R, E>) -> Result<R, E> {
    if !communicator.any(result.is_err()) {
        return result;
    }
    let own = result.as_ref().err().map(|error| (error.collective_kind(), error.to_string()));
    let said = communicator.gather_all_of(&own);
    let first = said.into_iter().enumerate().find_map(|(rank, said)| Some((rank, said?)));
    let (rank, (kind, message)) = first.expect("some rank failed");
    result.and_then(|_| Err(E::on_rank(rank, kind, message)))
}
