//! Analyses of snapshots by all processes: each reads its part of the file, and the first has the result.

use comove_analysis::{AnalysisError, Part};
use comove_sim::parallel::Communicator;

/// What is found in a snapshot, by all processes together.
pub(crate) trait Analysis {
    type Found;

    /// Finds it, on the first process: collective.
    ///
    /// # Errors
    /// [`AnalysisError`], on the first process at least; the others then have nothing more to do either.
    fn find(&self, communicator: &Communicator, part: &Part) -> Result<Option<Self::Found>, AnalysisError>;
}
