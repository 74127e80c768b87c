//! The strict Rhai engine, and the evaluation of a recipe to a campaign.

use super::api;
use super::error::{RecipeError, plain};
use super::parameters::Parameters;
use super::source::Source;
use crate::campaign::Campaign;
use crate::error::PipelineError;
use rhai::packages::{
    BasicArrayPackage, BasicMapPackage, BasicMathPackage, CorePackage, LogicPackage, MoreStringPackage, Package,
};
use rhai::{AST, Engine, OptimizationLevel, Scope};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// An evaluated recipe.
#[derive(Debug)]
pub struct Recipe {
    /// Its text and file.
    pub source: Source,
    /// What it evaluates to.
    pub campaign: Campaign,
    /// Its parameters, as declared and given.
    pub parameters: Parameters,
}

/// What a closure of the recipe needs to be called later.
pub struct Program {
    /// The engine the recipe was evaluated with.
    pub engine: Engine,
    /// The compiled recipe.
    pub ast: AST,
}

impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Program")
    }
}

/// What bindings share while a recipe is evaluated.
#[derive(Debug)]
pub struct Session {
    /// The recipe.
    pub source: Source,
    /// Its parameters.
    pub parameters: Mutex<Parameters>,
}

/// Operations (about 10⁻⁸ s each) after which a recipe is stopped; measured in a second, not in minutes.
const OPERATIONS: u64 = 50_000_000;

/// Evaluates a recipe with the values that the command line gives its parameters.
///
/// # Errors
/// [`PipelineError::Recipe`], also if the recipe's value is not a campaign; [`PipelineError::Usage`] if a given
/// parameter is not declared.
pub fn evaluate(source: Source, given: BTreeMap<String, String>) -> Result<Recipe, PipelineError> {
    let (session, result) = attempt(source, given);
    let campaign = result?;
    let parameters = session.parameters.lock().expect("no binding panics").clone();
    parameters.check().map_err(PipelineError::Usage)?;
    Ok(Recipe { source: session.source.clone(), campaign, parameters })
}

/// The parameters that a recipe declares, as far as it could be evaluated, and its error if it has one.
pub fn parameters_of(source: Source, given: BTreeMap<String, String>) -> (Parameters, Option<Box<RecipeError>>) {
    let (session, result) = attempt(source, given);
    let parameters = session.parameters.lock().expect("no binding panics").clone();
    (parameters, result.err())
}

fn attempt(source: Source, given: BTreeMap<String, String>) -> (Arc<Session>, Result<Campaign, Box<RecipeError>>) {
    let parameters = Mutex::new(Parameters { given, ..Parameters::default() });
    let session = Arc::new(Session { source, parameters });
    let result = campaign_of(&session);
    (session, result)
}

fn campaign_of(session: &Arc<Session>) -> Result<Campaign, Box<RecipeError>> {
    let source = &session.source;
    let engine = engine(session);
    let ast = engine.compile(&source.text).map_err(|e| RecipeError::from_parse(source, &e))?;
    let mut scope = Scope::new();
    let value = engine
        .eval_ast_with_scope::<rhai::Dynamic>(&mut scope, &ast)
        .map_err(|e| RecipeError::from_evaluation(source, &e, api::USAGE))?;
    let what = value.type_name().to_owned();
    let mut campaign = value.try_cast::<Campaign>().ok_or_else(|| {
        let mut stages: Vec<&str> =
            scope.iter_raw().filter(|(_, _, v)| api::node_of(v).is_some()).map(|(name, _, _)| name).collect();
        stages.reverse(); // a scope lists its newest name first
        let name = source.path.file_stem().map_or_else(|| "name".into(), |s| s.to_string_lossy().into_owned());
        let line = format!("campaign(\"{name}\", [{}])", stages.join(", "));
        let message = format!("the recipe's value is {}, not a campaign; end it with: {line}", plain(&what));
        RecipeError::at(source, source.last_place(), message)
    })?;
    campaign.program = Some(Arc::new(Program { engine, ast }));
    Ok(campaign)
}

/// An engine with the bindings of [`api`] and nothing that could make two evaluations differ: no clock, no random
/// number, no file, no `eval`.
fn engine(session: &Arc<Session>) -> Engine {
    let mut engine = Engine::new_raw();
    CorePackage::new().register_into_engine(&mut engine);
    LogicPackage::new().register_into_engine(&mut engine);
    BasicMathPackage::new().register_into_engine(&mut engine);
    BasicArrayPackage::new().register_into_engine(&mut engine);
    BasicMapPackage::new().register_into_engine(&mut engine);
    MoreStringPackage::new().register_into_engine(&mut engine);
    engine
        .set_optimization_level(OptimizationLevel::None) // positions stay those of the text
        .set_strict_variables(true)
        .set_fail_on_invalid_map_property(true)
        .set_allow_shadowing(false)
        .set_max_operations(OPERATIONS)
        .set_max_call_levels(64)
        .set_max_expr_depths(128, 64)
        .set_max_string_size(1 << 20)
        .set_max_array_size(1 << 20)
        .set_max_map_size(1 << 16)
        .disable_symbol("eval")
        .disable_symbol("import")
        .disable_symbol("export");
    engine.on_print(|text| tracing::info!("{text}"));
    engine.on_debug(|text, _, position| tracing::info!("{position:?}: {text}"));
    api::register(&mut engine, session);
    engine
}
