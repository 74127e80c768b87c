//! Scripts: they look at what a campaign has left, long after it was run or while it is, and write tables and plots. They
//! make no stages.
//!
//! A script has the engine of recipes and what closures see, and its campaign as a constant. Somebody waits for it: it is
//! bounded in memory and not in time, and a signal ends it where it is.

use super::api::campaign_view::{CampaignView, NAME};
use super::api::register_for_scripts;
use super::engine::names_exist;
use super::error::{RecipeError, nearest};
use super::explain::{of_parser, of_script};
use super::interpreter::{CLOSURE_SIZE, Session, bare};
use super::parameters::Parameters;
use super::sandbox::{Budget, Limits, within};
use super::source::Source;
use crate::error::PipelineError;
use crate::terminal::streams::{message, print};
use rhai::{Engine, Module, ParseErrorType, Scope};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Evaluates a script of a campaign with the values that the command line gives its parameters. What it writes goes to
/// `folder`, which is made with the first file.
pub(crate) fn run(
    source: Source,
    given: BTreeMap<String, String>,
    campaign: &CampaignView,
    folder: &Path,
) -> Result<(), PipelineError> {
    let session = Arc::new(Session::new(source, Parameters { given, ..Parameters::default() }));
    let lost = Lost::default();
    let ended = within(Limits::script(), |budget| {
        evaluate(&engine(&session, budget, campaign, folder, &lost), &session.source, campaign)
    });
    let source = &session.source;
    ended.unwrap_or_else(|message| Err(RecipeError::at(source, source.last_place(), message)))?;
    session.parameters.lock().expect("no binding panics").check().map_err(PipelineError::Usage)?;
    let lost = lost.lock().unwrap_or_else(PoisonError::into_inner).take();
    lost.map_or(Ok(()), Err)
}

/// Why a line that the script printed was lost, if one was.
type Lost = Arc<Mutex<Option<PipelineError>>>;

/// An engine for scripts, which know their campaign as a constant, in their functions too.
fn engine(session: &Arc<Session>, budget: &Arc<Budget>, campaign: &CampaignView, folder: &Path, lost: &Lost) -> Engine {
    let mut engine = bare(budget);
    engine.set_max_operations(0).set_max_array_size(CLOSURE_SIZE).set_max_map_size(CLOSURE_SIZE);
    let lost = Arc::clone(lost);
    engine.on_print(move |text| {
        if let Err(error) = print(text) {
            lost.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        }
    });
    engine.on_debug(|text, _, position| message(&format!("{position:?}: {text}")));
    register_for_scripts(&mut engine, session, folder);
    let mut constants = Module::new();
    constants.set_var(NAME, campaign.clone());
    engine.register_global_module(constants.into());
    engine
}

fn evaluate(engine: &Engine, source: &Source, campaign: &CampaignView) -> Result<(), Box<RecipeError>> {
    // the parser looks for names here
    let mut scope = Scope::new();
    scope.push_constant(NAME, campaign.clone());
    let ast = engine.compile_with_scope(&scope, &source.text).map_err(|error| {
        let mut told = of_parser(source, &error);
        if let ParseErrorType::VariableUndefined(name) = error.err_type() {
            let hint = match nearest(&name.to_uppercase(), [NAME]) {
                Some(near) => format!("did you mean \"{near}\"?"),
                None => format!("a script reads its campaign by {NAME}"),
            };
            told.message = format!("unknown name \"{name}\", {hint}");
        }
        told
    })?;
    names_exist(engine, source, &ast)?;
    engine.run_ast_with_scope(&mut scope, &ast).map_err(|error| of_script(source, &error))
}
