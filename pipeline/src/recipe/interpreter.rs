//! Rhai without the bindings: a strict engine, the limits of scripts, and a compiled recipe whose closures can be called.

use super::error::{RecipeError, Refusal};
use super::parameters::Parameters;
use super::sandbox::{Budget, Excess, Limits, within};
use super::source::{Place, Source};
use rhai::packages::{
    BasicArrayPackage, BasicMapPackage, BasicMathPackage, CorePackage, LogicPackage, MoreStringPackage, Package,
};
use rhai::{AST, Dynamic, Engine, EvalAltResult, FnPtr, FuncArgs, ImmutableString, OptimizationLevel};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Operations (about 10⁻⁸ s each) after which a recipe, or a closure for a cell, is stopped: the same on any machine. What
/// they do not count ends by the clock.
const OPERATIONS: u64 = 10_000_000;

/// Entries of a list or map, those of lists and maps in it included.
pub(crate) const SIZE: usize = 1 << 17;
/// The same in a script and in a closure of `measure` or `combine`, which has a limit of time and of memory. A list so deep
/// that freeing it overflows the stack takes longer than that: each list around it is counted through.
pub(crate) const CLOSURE_SIZE: usize = 1 << 22;
/// The same in a closure for a cell.
pub(crate) const CELL_SIZE: usize = 1 << 10;
/// Bytes of a text, or of the texts in a list or map.
pub(crate) const TEXT: usize = 1 << 20;

/// What a closure of the recipe needs to be called later.
pub(crate) struct Program {
    pub session: Arc<Session>,
    pub ast: AST,
    /// What it is written in.
    pub language: Language,
    /// Drops what its closures print and the session's warnings.
    pub silence: Option<Silence>,
}

/// A session drops its warnings while this lives, also those of calls that its stages hold.
pub(crate) struct Silence(Arc<Session>);

impl Silence {
    fn of(session: &Arc<Session>) -> Self {
        session.warnings.kept().silences += 1;
        Self(Arc::clone(session))
    }
}

impl Drop for Silence {
    fn drop(&mut self) {
        self.0.warnings.kept().silences -= 1;
    }
}

/// What recipes are written in: the bindings, which this part does not know, and how their errors are explained.
#[derive(Clone, Copy)]
pub(crate) struct Language {
    pub register: fn(&mut Engine, &Arc<Session>),
    /// What an error says, at the innermost position, or if there is none at the given place.
    pub explain: fn(&Source, &EvalAltResult, Place) -> Box<RecipeError>,
}

impl Program {
    pub(crate) fn source(&self) -> &Source {
        &self.session.source
    }

    /// What an error of an evaluation says, at the innermost position, or if there is none at `otherwise`.
    pub(crate) fn explain(&self, error: &EvalAltResult, otherwise: Place) -> Box<RecipeError> {
        (self.language.explain)(self.source(), error, otherwise)
    }

    /// The same program, whose closures print nothing. While it lives, nobody is warned: a warning in a rehearsal is neither
    /// shown nor counted as known in the run.
    pub(crate) fn silent(&self) -> Self {
        let (session, ast, language) = (Arc::clone(&self.session), self.ast.clone(), self.language);
        Self { silence: Some(Silence::of(&session)), session, ast, language }
    }

    fn engine(&self, budget: &Arc<Budget>) -> Engine {
        if self.silence.is_some() {
            budget.mute();
        }
        let mut engine = bare(budget);
        (self.language.register)(&mut engine, &self.session);
        engine
    }

    /// An engine for closures that are called once a cell, many at a time: what each may take is counted in operations.
    pub(crate) fn engine_for_cells(&self) -> Engine {
        let mut engine = self.engine(&Arc::default());
        // no deeper than the stacks of the threads that compute
        engine.set_max_array_size(CELL_SIZE).set_max_map_size(CELL_SIZE);
        engine
    }

    /// Calls a closure, which stands at `place`, within limits and reads its value, both on the script's own thread. Where
    /// somebody asked to stop, that is the inner error.
    pub(crate) fn call<T: Send>(
        &self,
        limits: Limits<'_>,
        closure: &FnPtr,
        place: Place,
        arguments: impl FuncArgs + Send,
        read: impl FnOnce(Dynamic) -> T + Send,
    ) -> Result<Result<T, String>, Box<RecipeError>> {
        let source = self.source();
        let called = within(limits, |budget| {
            let mut engine = self.engine(budget);
            engine.set_max_operations(0); // it has a time
            engine.set_max_array_size(CLOSURE_SIZE).set_max_map_size(CLOSURE_SIZE);
            let value = closure.call(&engine, &self.ast, arguments);
            match (value, budget.excess()) {
                (Err(_), Some(Excess::Stop(by))) => Ok(Err(by.clone())),
                (Ok(value), _) => Ok(Ok(read(value))),
                (Err(error), excess) => {
                    let mut error = self.explain(&error, place);
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

/// What bindings share while a recipe is evaluated.
pub(crate) struct Session {
    pub source: Source,
    pub parameters: Mutex<Parameters>,
    pub warnings: Warnings,
    /// Where its closures begin, by the names that Rhai gives them, once it is compiled. Those that are written alike have
    /// one.
    pub closures: OnceLock<BTreeMap<String, Place>>,
}

impl Session {
    /// One that is about to evaluate `source`.
    pub(crate) fn new(source: Source, parameters: Parameters) -> Self {
        Self { source, parameters: Mutex::new(parameters), warnings: Warnings::default(), closures: OnceLock::new() }
    }

    /// Warns of a call of `function` at a place of the recipe, which is right but probably not meant so.
    pub(crate) fn warn(&self, function: &str, place: Place, message: impl std::fmt::Display) {
        self.warnings.add(RecipeError::at(&self.source, place, format!("{function}: {message}")).to_string());
    }

    /// Where a closure begins; `None` for `Fn("name")`.
    pub(crate) fn place_of(&self, closure: &FnPtr) -> Option<Place> {
        self.closures.get()?.get(closure.fn_name()).copied()
    }
}

/// Warnings of bindings, each kept once. Those of a recipe's evaluation are collected for the command that evaluates it; later
/// ones, of calls whose options were known late, go to the log.
#[derive(Default)]
pub(crate) struct Warnings(Mutex<KeptWarnings>);

#[derive(Default)]
struct KeptWarnings {
    known: Vec<String>,
    is_evaluated: bool,
    /// Values of [`Silence`] that live.
    silences: usize,
}

impl Warnings {
    fn kept(&self) -> MutexGuard<'_, KeptWarnings> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, warning: String) {
        let mut kept = self.kept();
        if kept.silences > 0 || kept.known.contains(&warning) {
            return;
        }
        if kept.is_evaluated {
            tracing::warn!("{warning}");
        }
        kept.known.push(warning);
    }

    /// Those of an evaluation that has ended.
    pub(super) fn collect(&self) -> Vec<String> {
        let mut kept = self.kept();
        kept.is_evaluated = true;
        kept.known.clone()
    }
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
        .set_fast_operators(false) // those of Rhai would come before `refuse_orders_of_text`
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
    refuse_orders_of_text(&mut engine);
    // Rhai's own sleeps where nothing can wake it
    engine.register_fn("sleep", |_: f64| sleep()).register_fn("sleep", |_: i64| sleep());
    engine
}

/// Between a number and a text every order is an error; Rhai finds it false, and `step.a > "0.5"` would never be true.
fn refuse_orders_of_text(engine: &mut Engine) {
    for operator in ["<", "<=", ">", ">="] {
        let refuse = move |number: String, text: &str| -> Result<bool, Box<EvalAltResult>> {
            let remedy = format!(
                "the number {number} and the text \"{text}\" cannot be compared; write a number without quotes"
            );
            Err(Refusal::error(operator, remedy, None))
        };
        engine
            .register_fn(operator, move |x: f64, y: ImmutableString| refuse(x.to_string(), &y))
            .register_fn(operator, move |x: i64, y: ImmutableString| refuse(x.to_string(), &y))
            .register_fn(operator, move |x: ImmutableString, y: f64| refuse(y.to_string(), &x))
            .register_fn(operator, move |x: ImmutableString, y: i64| refuse(y.to_string(), &x));
    }
}

fn sleep() -> Result<(), Box<EvalAltResult>> {
    Err(Refusal::error("sleep", "recipes and scripts have no clock", None))
}
