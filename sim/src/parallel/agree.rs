//! What goes wrong on one rank goes wrong on all.

use super::communicator::Communicator;
use crate::error::SimError;

/// The result, or where another rank failed, what it said: collective, so that all ranks go the same way.
///
/// # Errors
/// This rank's own, else [`SimError::OnRank`] of the first rank that has one.
pub fn agree<R>(communicator: &Communicator, result: Result<R, SimError>) -> Result<R, SimError> {
    if !communicator.any(result.is_err()) {
        return result;
    }
    let said = match &result {
        Ok(_) => Vec::new(),
        Err(error) => format!("{}{error}", if error.lacks_room() { '+' } else { '-' }).into_bytes(),
    };
    let said = communicator.gather_all(&said);
    let (rank, text) = said.iter().enumerate().find(|(_, text)| !text.is_empty()).expect("some rank failed");
    result.and_then(|_| {
        let text = String::from_utf8_lossy(text);
        let (lacks_room, message) = (text.starts_with('+'), text[1..].to_string());
        Err(SimError::OnRank { rank, lacks_room, message })
    })
}
