//! A campaign: stages and what each needs from others. A value, built by a recipe; nothing has run yet. Some of its stages
//! may be known once others are done ([`deferred`]): a [`CampaignResolver`] over it finds them.

pub(crate) mod deferred;
pub(crate) mod fingerprint;
pub(crate) mod names;
pub(crate) mod resolver;
pub(crate) mod select;

use crate::recipe::Program;
use crate::stage::Stage;
use deferred::{Deferred, Undecided};
pub(crate) use resolver::{CampaignResolver, Resolved, StageStatus};
use std::sync::Arc;

/// A stage in the graph: shared, so that two analyses of one run name the same node.
#[derive(Clone)]
pub(crate) struct Node(Arc<Inner>);

struct Inner {
    stage: Box<dyn Stage>,
    inputs: Vec<Node>,
    name: Option<String>,
    deferred: Option<(Undecided, Deferred)>,
}

impl Node {
    /// A stage that reads the results of `inputs`.
    pub(crate) fn new(stage: impl Stage + 'static, inputs: Vec<Self>) -> Self {
        Self(Arc::new(Inner { stage: Box::new(stage), inputs, name: None, deferred: None }))
    }

    /// What is decided once the results of `inputs` are there.
    pub(crate) fn deferred(undecided: Undecided, inputs: Vec<Self>, deferred: Deferred) -> Self {
        let stage = Box::new(undecided.clone());
        Self(Arc::new(Inner { stage, inputs, name: None, deferred: Some((undecided, deferred)) }))
    }

    /// The same with the name that the recipe gives it, if it does. A name decides nothing.
    #[must_use]
    pub(crate) fn named(self, name: Option<String>) -> Self {
        let inner = Arc::into_inner(self.0).expect("a stage is named when it is made");
        Self(Arc::new(Inner { name, ..inner }))
    }

    /// What the recipe calls it, if it does; a [`CampaignResolver`] has a name for every stage.
    pub(crate) fn name(&self) -> Option<&str> {
        self.0.name.as_deref()
    }

    /// How it is decided, if its stage is not known yet.
    pub(crate) fn decision(&self) -> Option<&(Undecided, Deferred)> {
        self.0.deferred.as_ref()
    }

    /// What is to be done.
    pub(crate) fn stage(&self) -> &dyn Stage {
        &*self.0.stage
    }

    pub(crate) fn inputs(&self) -> &[Self] {
        &self.0.inputs
    }

    /// Whether two handles mean the same stage of the recipe.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Whether two stages, and all that they read, have equal options and files, and so equal results.
    fn equals(&self, other: &Self) -> bool {
        let inputs_equal = || {
            self.inputs().len() == other.inputs().len()
                && self.inputs().iter().zip(other.inputs()).all(|(one, other)| one.equals(other))
        };
        self.is(other)
            || has_equal_options(self.stage(), other.stage())
                && self.stage().files() == other.stage().files()
                && inputs_equal()
    }
}

/// A campaign: its name and its stages, each after everything it needs.
#[derive(Clone)]
pub(crate) struct Campaign {
    pub name: String,
    /// Its stages in the order in which they run.
    pub stages: Vec<Node>,
    /// The positions in `stages` of those that the recipe lists, in its order.
    pub listed: Vec<usize>,
    /// How often a stage is tried that fails for what may pass: disk, device, memory.
    pub attempts: u32,
    /// The compiled recipe, for closures.
    pub program: Option<Arc<Program>>,
}

impl Campaign {
    /// A campaign of these stages and everything they need.
    pub(crate) fn new(name: impl Into<String>, wanted: &[Node]) -> Self {
        let mut stages = Vec::new();
        for node in wanted {
            visit(node, &mut stages);
        }
        let mut listed = Vec::new();
        for node in wanted {
            let position = stages.iter().position(|stage: &Node| stage.is(node)).expect("visited");
            if !listed.contains(&position) {
                listed.push(position);
            }
        }
        Self { name: name.into(), stages, listed, attempts: 1, program: None }
    }

    /// A name that the recipe gives to two different runs.
    pub(crate) fn repeated_run_name(&self) -> Option<&str> {
        let named = |stage: &&Node| stage.stage().as_run().is_some() && stage.name().is_some();
        let runs: Vec<&Node> = self.stages.iter().filter(named).collect();
        let is_repeated = |(n, run): &(usize, &&Node)| {
            runs[..*n].iter().any(|other| other.name() == run.name() && !other.equals(run))
        };
        runs.iter().enumerate().find(is_repeated).and_then(|(_, run)| run.name())
    }
}

/// Whether two stages have equal kinds, labels and parameters, so that only their inputs can differ.
fn has_equal_options(one: &dyn Stage, other: &dyn Stage) -> bool {
    let options = |stage: &dyn Stage| (stage.kind(), stage.label(), stage.parameters());
    options(one) == options(other)
}

/// Appends what `node` needs, then `node`, each once. A graph built from values cannot have cycles.
pub(crate) fn visit(node: &Node, stages: &mut Vec<Node>) {
    if stages.iter().any(|s| s.is(node)) {
        return;
    }
    for input in node.inputs() {
        visit(input, stages);
    }
    stages.push(node.clone());
}
