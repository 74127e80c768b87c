//! Kinds of stages: for each its options, what it reads, and what it does. One file each.
//!
//! | module | what it makes |
//! |---|---|
//! | [`formula`] | a starting state that a run evaluates itself: a problem or a closure |
//! | [`ic`], [`extents`] | an initial condition on a uniform mesh: generated or loaded; its cells along the axes |
//! | [`initial`] | what it is, for runs |
//! | [`ic_report`] | examination of an initial condition |
//! | [`ic_task`] | what all processes of MPI do of it together |
//! | [`saved`] | a snapshot from elsewhere, as it is |
//! | [`evolve`] | a run: checkpoints, outputs, a record of every step |
//! | [`refinement_ratio`], [`power_spectrum`], [`density_pdf`], [`maps`], [`halos`] | analyses |
//! | [`mass_function`] | halos by mass, from their catalogues |
//! | [`analysis`] | what all processes find in a snapshot together |
//! | [`compare`] | outputs against the solution of their problem |
//! | [`force_test`] | the forces of point masses on refined meshes, without a run |
//! | [`measure`], [`combine`] | what a closure of the recipe computes, of a snapshot or of several stages |
//! | [`closure`], [`drawn`] | the closure of either, and the tables and plots in its result |
//! | [`work`], [`result`], [`section`] | what a stage is given, what it leaves, and its part of the report |

pub(crate) mod analysis;
pub(crate) mod closure;
pub(crate) mod combine;
pub(crate) mod compare;
pub(crate) mod density_pdf;
pub(crate) mod drawn;
pub(crate) mod evolve;
pub(crate) mod extents;
pub(crate) mod force_test;
pub(crate) mod formula;
pub(crate) mod halos;
pub(crate) mod ic;
pub(crate) mod ic_report;
pub(crate) mod ic_task;
pub(crate) mod initial;
pub(crate) mod maps;
pub(crate) mod mass_function;
pub(crate) mod measure;
pub(crate) mod power_spectrum;
pub(crate) mod refinement_ratio;
pub(crate) mod result;
pub(crate) mod saved;
pub(crate) mod section;
pub(crate) mod work;

use crate::error::PipelineError;
use crate::ledger::{History, SnapshotFile, StageHistory};
use crate::recipe::Place;
use crate::terminal::progress::Progress;
use comove_kernels::Device;
use comove_sim::{Octree, SnapshotHeader};
pub(crate) use result::{Input, Selection, StageResult};
use serde_json::Value;
use std::path::{Path, PathBuf};
pub(crate) use work::Work;

/// The key in a stage's extent of the expressions among its parameters as the recipe has them.
pub(crate) const EXPRESSIONS: &str = "expressions";

/// Header and octree of a snapshot from which a run resumes or starts.
pub(crate) type SavedState = (SnapshotHeader, Octree);

/// Bytes that a stage needs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Memory {
    /// On the host, besides those on a device that is the host.
    pub host: f64,
    pub device: f64,
}

/// One kind of work in a campaign, with its options.
pub(crate) trait Stage: std::fmt::Debug + Send + Sync {
    /// Its kind, the function's name in a recipe.
    fn kind(&self) -> &'static str;

    /// What it makes, in a few words that begin with a capital: a heading of the report. Stages of one title are told apart
    /// by their parameters.
    fn title(&self) -> String {
        title_of(self.kind())
    }

    /// The beginning of its folder's name.
    fn label(&self) -> String {
        self.kind().to_owned()
    }

    /// One line on what it is to do, for `plan`.
    fn describe(&self) -> String;

    /// The version of its results: raised when the same input gives other numbers (CHANGELOG, *Results changed*).
    fn results_version(&self) -> u32 {
        1
    }

    /// What decides its results, besides the content of what it reads.
    fn parameters(&self) -> Value;

    /// Its parameters for a reader: compiled expressions by their texts.
    fn shown_parameters(&self) -> Value {
        self.parameters()
    }

    /// What only decides how far it goes and what it writes, for the ledger: outside the fingerprint.
    fn extent(&self) -> Value {
        Value::Null
    }

    /// Files from outside that it reads; their content is part of the fingerprint.
    fn files(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    /// What it reads of the stage at position `input` among its inputs.
    fn reads(&self, input: &StageResult) -> Result<Vec<Input>, PipelineError> {
        self.outputs().unwrap_or(&Selection::All).of(input)
    }

    /// The outputs of its input that it looks at, if it chooses among them.
    fn outputs(&self) -> Option<&Selection> {
        None
    }

    /// A result that is there already, without any work; `None` for all stages but [`saved`]. Files that the history does
    /// not vouch for are validated in a child process first; what is read is shown at `progress`.
    fn given(&self, _history: &History, _progress: &Progress) -> Option<Result<StageResult, PipelineError>> {
        None
    }

    /// Least memory needed, where the options decide it: more than the machine has is refused beforehand. `begun`: the
    /// snapshot from which a run resumes or starts.
    fn memory(&self, _device: &Device, _begun: Option<&SavedState>) -> Memory {
        Memory::default()
    }

    /// Whether all processes of MPI do it together and share what it needs.
    fn is_shared(&self) -> bool {
        self.as_run().is_some()
    }

    /// Bytes of the mesh that it makes, if it does.
    fn mesh_bytes(&self) -> f64 {
        0.0
    }

    /// Whether its history leaves nothing to do. A run whose outputs were extended is not done.
    fn is_done(&self, history: &StageHistory) -> bool {
        history.artefacts.is_some()
    }

    /// The snapshots of its history that are its results, oldest first: a run's folder may hold outputs that were asked for
    /// another time.
    fn snapshots(&self, _history: &StageHistory) -> Vec<SnapshotFile> {
        Vec::new()
    }

    /// Where the closures of the recipe begin that it calls.
    fn closures(&self) -> Vec<Place> {
        Vec::new()
    }

    /// The initial condition on a mesh, if it is one.
    fn as_initial(&self) -> Option<&initial::InitialCondition> {
        None
    }

    /// The species in its results, where it alone decides them and they are known before it is done.
    fn species(&self) -> Option<initial::SpeciesPresent> {
        None
    }

    /// The run, if it is one: it computes on a device, and runs that differ in where they end are done together.
    fn as_run(&self) -> Option<&evolve::run::Evolve> {
        None
    }

    /// The snapshots that it can go on from, the best first: of a run its own checkpoints before what it lacks, in
    /// `folder`, and what it starts from if that is a snapshot. The first that is whole is taken.
    fn goes_on_from(&self, _folder: &Path, _history: &StageHistory, _inputs: &[Vec<Input>]) -> Vec<Input> {
        Vec::new()
    }

    /// Does it, in the folder of `work`; returns the names of the files made there. A run's snapshots are not among
    /// them: they enter the ledger one by one.
    fn execute(&self, work: &mut Work<'_>) -> Result<Vec<String>, PipelineError>;
}

/// The title of a stage that is called as its function is: `Power spectrum` of `power_spectrum`.
pub(crate) fn title_of(function: &str) -> String {
    let mut words = function.replace('_', " ");
    words[..1].make_ascii_uppercase();
    words
}
