//! The strict Rhai engine, and the evaluation of a recipe to a campaign.

use super::api;
use super::error::{RecipeError, plain};
use super::explain::{names_of, of_parser, of_recipe, unknown_name};
use super::interpreter::{Language, Program, Session, bare};
use super::parameters::Parameters;
use super::sandbox::{Budget, Limits, within};
use super::source::{Place, Source};
use crate::campaign::Campaign;
use crate::error::PipelineError;
use rhai::{AST, ASTNode, Engine, Expr, FnPtr, Scope, Stmt};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

pub(crate) struct Recipe {
    /// Its text and file.
    pub source: Source,
    pub campaign: Campaign,
    /// Its parameters, as declared and given.
    pub parameters: Parameters,
    /// What it has printed before there was a log.
    pub printed: Vec<String>,
    /// Warnings of its functions, with the lines of their calls.
    pub warnings: Vec<String>,
}

/// Evaluates a recipe with the values that the command line gives its parameters.
pub(crate) fn evaluate(source: Source, given: BTreeMap<String, String>) -> Result<Recipe, PipelineError> {
    let (session, result, printed) = attempt(source, given);
    let campaign = result?;
    let parameters = session.parameters.lock().expect("no binding panics").clone();
    parameters.check().map_err(PipelineError::Usage)?;
    let warnings = session.warnings.collect();
    Ok(Recipe { source: session.source.clone(), campaign, parameters, printed, warnings })
}

/// The parameters that a recipe declares, as far as it could be evaluated, and its error if it has one.
pub(crate) fn parameters_of(source: Source, given: BTreeMap<String, String>) -> (Parameters, Option<Box<RecipeError>>) {
    let (session, result, _) = attempt(source, given);
    let parameters = session.parameters.lock().expect("no binding panics").clone();
    (parameters, result.err())
}

/// Evaluates a recipe; with what it has printed before there was a log.
fn attempt(
    source: Source,
    given: BTreeMap<String, String>,
) -> (Arc<Session>, Result<Campaign, Box<RecipeError>>, Vec<String>) {
    let session = Arc::new(Session::new(source, Parameters { given, ..Parameters::default() }));
    let result = within(Limits::recipe(), |budget| (campaign_of(&session, budget), budget.unlogged()));
    let refused = |message| Err(RecipeError::at(&session.source, session.source.last_place(), message));
    let (result, printed) = result.unwrap_or_else(|message| (refused(message), Vec::new()));
    (session, result, printed)
}

fn campaign_of(session: &Arc<Session>, budget: &Arc<Budget>) -> Result<Campaign, Box<RecipeError>> {
    let source = &session.source;
    let engine = engine(session, budget);
    let ast = engine.compile(&source.text).map_err(|e| of_parser(source, &e))?;
    session.closures.get_or_init(|| closures_of(&ast));
    let mut scope = Scope::new();
    let value = engine
        .eval_ast_with_scope::<rhai::Dynamic>(&mut scope, &ast)
        .map_err(|e| of_recipe(source, &e, source.last_place()))?;
    names_exist(&engine, source, &ast)?;
    let what = value.type_name().to_owned();
    let mut campaign = value.try_cast::<Campaign>().ok_or_else(|| {
        let mut stages: Vec<&str> =
            scope.iter_raw().filter(|(_, _, v)| api::handles::node_of(v).is_some()).map(|(name, _, _)| name).collect();
        stages.reverse(); // a scope lists its newest name first
        let name = source.path.file_stem().map_or_else(|| "name".into(), |s| s.to_string_lossy().into_owned());
        let line = format!("campaign(\"{name}\", [{}])", stages.join(", "));
        let message = format!("the recipe ends with {}, not with a campaign; add the last line {line}", plain(&what));
        RecipeError::at(source, source.last_place(), message)
    })?;
    if let Some(name) = campaign.repeated_run_name() {
        let message = format!("two runs are named \"{name}\"; give each a name of its own, or none");
        return Err(RecipeError::at(source, source.last_place(), message));
    }
    let language = Language { register: api::register, explain: of_recipe };
    campaign.program = Some(Arc::new(Program { session: Arc::clone(session), ast, language, silence: None }));
    Ok(campaign)
}

/// Where the closures of a recipe begin.
fn closures_of(ast: &AST) -> BTreeMap<String, Place> {
    let mut places = BTreeMap::new();
    ast.walk(&mut |path: &[ASTNode<'_>]| {
        if let Some(ASTNode::Expr(Expr::DynamicConstant(value, position))) = path.last()
            && let Some(closure) = value.read_lock::<FnPtr>()
            && let (Some(line), Some(column)) = (position.line(), position.position())
        {
            places.entry(closure.fn_name().to_owned()).or_insert(Place { line, column });
        }
        true
    });
    places
}

/// An engine with the bindings of [`api`] for recipes.
fn engine(session: &Arc<Session>, budget: &Arc<Budget>) -> Engine {
    let mut engine = bare(budget);
    api::register(&mut engine, session);
    engine
}

/// Functions that are part of Rhai's language.
const LANGUAGE: [&str; 9] =
    ["Fn", "call", "curry", "debug", "is_def_fn", "is_def_var", "is_shared", "print", "type_of"];

/// Refuses calls of functions that nobody has, in closures too, which are called when their run is long done.
pub(super) fn names_exist(engine: &Engine, source: &Source, ast: &AST) -> Result<(), Box<RecipeError>> {
    let (mut calls, mut fields) = (Vec::new(), BTreeSet::new());
    ast.walk(&mut |path: &[ASTNode<'_>]| {
        match path.last() {
            Some(ASTNode::Expr(Expr::FnCall(call, at) | Expr::MethodCall(call, at))) => {
                calls.push((call.name.to_string(), *at));
            }
            Some(ASTNode::Stmt(Stmt::FnCall(call, at))) => calls.push((call.name.to_string(), *at)),
            // a closure that a map holds is called as a method of it
            Some(ASTNode::Expr(Expr::Map(map, _))) => {
                fields.extend(map.0.iter().map(|(field, _)| field.name.to_string()));
            }
            Some(ASTNode::Expr(Expr::Property(property, _))) => {
                fields.insert(property.2.to_string());
            }
            _ => {}
        }
        true
    });
    let names = names_of(engine);
    let defined: BTreeSet<&str> = ast.iter_functions().map(|function| function.name).collect();
    let is_name = |name: &str| name.chars().all(|c| c.is_alphanumeric() || c == '_');
    let is_known = |name: &str| {
        !is_name(name)
            || LANGUAGE.contains(&name)
            || names.contains(name)
            || defined.contains(name)
            || fields.contains(name)
    };
    match calls.iter().find(|(name, _)| !is_known(name)) {
        None => Ok(()),
        Some((name, at)) => {
            let at = Place { line: at.line().unwrap_or(1), column: at.position().unwrap_or(1) };
            Err(RecipeError::at(source, at, unknown_name(name, &names)))
        }
    }
}

/// The signatures of everything that `api` registers, for recipes and for scripts.
pub fn registered() -> Vec<String> {
    let source = Source { path: "recipe.rhai".into(), text: String::new() };
    let session = Arc::new(Session::new(source, Parameters::default()));
    let mut scripts = Engine::new_raw();
    api::register_for_scripts(&mut scripts, &session, Path::new(""));
    [engine(&session, &Arc::default()), scripts].iter().flat_map(|engine| engine.gen_fn_signatures(false)).collect()
}
