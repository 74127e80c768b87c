//! The strict Rhai engine, and the evaluation of a recipe to a campaign.

use super::api;
use super::docs::{self, Callers};
use super::error::{RecipeError, Refusal, plain, unknown_name};
use super::parameters::Parameters;
use super::sandbox::{Budget, Excess, Limits, within};
use super::source::{Place, Source};
use crate::campaign::Campaign;
use crate::error::PipelineError;
use rhai::packages::{
    BasicArrayPackage, BasicMapPackage, BasicMathPackage, CorePackage, LogicPackage, MoreStringPackage, Package,
};
use rhai::{AST, ASTNode, Dynamic, Engine, EvalAltResult, Expr, FnPtr, FuncArgs, OptimizationLevel, Scope, Stmt};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};

/// An evaluated recipe.
#[derive(Debug)]
pub struct Recipe {
    /// Its text and file.
    pub source: Source,
    /// What it evaluates to.
    pub campaign: Campaign,
    /// Its parameters, as declared and given.
    pub parameters: Parameters,
    /// What it has printed before there was a log.
    pub printed: Vec<String>,
}

/// What a closure of the recipe needs to be called later.
pub struct Program {
    session: Arc<Session>,
    /// The compiled recipe.
    pub ast: AST,
}

impl Program {
    /// The recipe's text.
    pub fn source(&self) -> &Source {
        &self.session.source
    }

    /// An engine for closures that are called once a cell, many at a time: what each may take is counted in operations.
    pub fn engine_for_cells(&self) -> Engine {
        let mut engine = engine(&self.session, &Arc::default());
        // no deeper than the stacks of the threads that compute
        engine.set_max_array_size(CELL_SIZE).set_max_map_size(CELL_SIZE);
        engine
    }

    /// Calls a closure, which stands at `place`, within limits and reads its value, both on the script's own thread. Where
    /// somebody asked to stop, that is the inner error.
    ///
    /// # Errors
    /// [`RecipeError`], at the place in the recipe.
    pub fn call<T: Send>(
        &self,
        limits: Limits<'_>,
        closure: &FnPtr,
        place: Place,
        arguments: impl FuncArgs + Send,
        read: impl FnOnce(Dynamic) -> T + Send,
    ) -> Result<Result<T, String>, Box<RecipeError>> {
        let source = self.source();
        let called = within(limits, |budget| {
            let mut engine = engine(&self.session, budget);
            engine.set_max_operations(0); // it has a time
            engine.set_max_array_size(CLOSURE_SIZE).set_max_map_size(CLOSURE_SIZE);
            let value = closure.call(&engine, &self.ast, arguments);
            match (value, budget.excess()) {
                (Err(_), Some(Excess::Stop(by))) => Ok(Err(by.clone())),
                (Ok(value), _) => Ok(Ok(read(value))),
                (Err(error), excess) => {
                    let mut error = RecipeError::from_evaluation(source, &error, place);
                    if matches!(excess, Some(Excess::Time(_) | Excess::Clock(_))) {
                        if !limits.option.is_empty() {
                            error.message += &format!(" If not, raise {}", limits.option);
                        }
                        error.is_late = true;
                    }
                    Err(error)
                }
            }
        });
        called.unwrap_or_else(|message| Err(RecipeError::at(source, place, message)))
    }
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
    /// Where its closures begin, by the names that Rhai gives them, once it is compiled. Those that are written alike have
    /// one.
    pub closures: OnceLock<BTreeMap<String, Place>>,
}

impl Session {
    /// One that is about to evaluate `source`.
    pub fn new(source: Source, parameters: Parameters) -> Self {
        Self { source, parameters: Mutex::new(parameters), closures: OnceLock::new() }
    }

    /// Where a closure begins; `None` for `Fn("name")`.
    pub fn place_of(&self, closure: &FnPtr) -> Option<Place> {
        self.closures.get()?.get(closure.fn_name()).copied()
    }
}

/// Operations (about 10⁻⁸ s each) after which a recipe, or a closure for a cell, is stopped: the same on any machine. What
/// they do not count ends by the clock.
const OPERATIONS: u64 = 10_000_000;

/// Entries of a list or map, those of lists and maps in it included.
pub const SIZE: usize = 1 << 17;
/// The same in a script and in a closure of `measure` or `combine`, which has a limit of time and of memory. A list so deep
/// that freeing it overflows the stack takes longer than that: each list around it is counted through.
pub const CLOSURE_SIZE: usize = 1 << 22;
/// The same in a closure for a cell.
pub const CELL_SIZE: usize = 1 << 10;
/// Bytes of a text, or of the texts in a list or map.
pub const TEXT: usize = 1 << 20;

/// Evaluates a recipe with the values that the command line gives its parameters.
///
/// # Errors
/// [`PipelineError::Recipe`], also if the recipe's value is not a campaign; [`PipelineError::Usage`] if a given
/// parameter is not declared.
pub fn evaluate(source: Source, given: BTreeMap<String, String>) -> Result<Recipe, PipelineError> {
    let (session, result, printed) = attempt(source, given);
    let campaign = result?;
    let parameters = session.parameters.lock().expect("no binding panics").clone();
    parameters.check().map_err(PipelineError::Usage)?;
    Ok(Recipe { source: session.source.clone(), campaign, parameters, printed })
}

/// The parameters that a recipe declares, as far as it could be evaluated, and its error if it has one.
pub fn parameters_of(source: Source, given: BTreeMap<String, String>) -> (Parameters, Option<Box<RecipeError>>) {
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
    let ast = engine.compile(&source.text).map_err(|e| RecipeError::from_parse(source, &e))?;
    session.closures.get_or_init(|| closures_of(&ast));
    let mut scope = Scope::new();
    let value = engine
        .eval_ast_with_scope::<rhai::Dynamic>(&mut scope, &ast)
        .map_err(|e| RecipeError::from_evaluation(source, &e, source.last_place()))?;
    names_exist(&engine, source, &ast)?;
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
    campaign.program = Some(Arc::new(Program { session: Arc::clone(session), ast }));
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

/// An engine with Rhai's own functions and nothing that could make two evaluations differ: no clock, no random number, no
/// file, no `eval`. It stops when the budget says so.
pub(super) fn bare(budget: &Arc<Budget>) -> Engine {
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
        .set_max_string_size(TEXT)
        .set_max_array_size(SIZE)
        .set_max_map_size(SIZE)
        .disable_symbol("eval")
        .disable_symbol("import")
        .disable_symbol("export");
    let (shared, log) = (Arc::clone(budget), Arc::clone(budget));
    engine.on_progress(move |_| shared.step().map(|excess| excess.to_string().into()));
    engine.on_print(move |text| log.print(text));
    let log = Arc::clone(budget);
    engine.on_debug(move |text, _, position| log.print(&format!("{position:?}: {text}")));
    // Rhai's own sleeps where nothing can wake it
    engine.register_fn("sleep", |_: f64| sleep()).register_fn("sleep", |_: i64| sleep());
    engine
}

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

/// Functions that are part of Rhai's language.
const LANGUAGE: [&str; 9] =
    ["Fn", "call", "curry", "debug", "is_def_fn", "is_def_var", "is_shared", "print", "type_of"];

/// The names of all functions that recipes and scripts may call: those of an engine, Rhai's own included, and those of the
/// others.
pub(super) fn names_of(engine: &Engine) -> BTreeSet<String> {
    let name = |signature: String| signature.split('(').next().unwrap_or_default().trim().to_owned();
    let described = [Callers::Recipes, Callers::Scripts].into_iter().flat_map(docs::functions).chain(docs::methods());
    let described = described.map(|function| function.name.to_owned());
    engine.gen_fn_signatures(true).into_iter().map(name).chain(described).collect()
}

/// The signatures of everything that [`api`] registers, for recipes and for scripts.
pub fn registered() -> Vec<String> {
    let source = Source { path: "recipe.rhai".into(), text: String::new() };
    let session = Arc::new(Session::new(source, Parameters::default()));
    let mut scripts = Engine::new_raw();
    api::register_for_scripts(&mut scripts, &session, Path::new(""));
    [engine(&session, &Arc::default()), scripts].iter().flat_map(|engine| engine.gen_fn_signatures(false)).collect()
}

fn sleep() -> Result<(), Box<EvalAltResult>> {
    Err(Refusal::error("sleep", "recipes and scripts have no clock", None))
}
