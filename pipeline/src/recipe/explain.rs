//! What is wrong with a recipe or a script, from what its evaluation says: names the functions and types that it may have
//! meant.

use super::docs::{self, Callers, Function, functions, methods, types};
use super::error::{Cause, RecipeError, Refusal, WRONG, nearest, place, plain};
use super::interpreter::{CELL_SIZE, CLOSURE_SIZE, SIZE, TEXT, bare};
use super::source::{Place, Source};
use rhai::{Engine, EvalAltResult, LexError, ParseError, ParseErrorType, Position};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What the evaluation of a recipe or one of its closures says, at the innermost position, or if there is none at
/// `otherwise`.
pub(crate) fn of_recipe(source: &Source, error: &EvalAltResult, otherwise: Place) -> Box<RecipeError> {
    explained(Callers::Recipes, source, error, otherwise)
}

/// The same of a script.
pub(crate) fn of_script(source: &Source, error: &EvalAltResult) -> Box<RecipeError> {
    explained(Callers::Scripts, source, error, source.last_place())
}

/// The error of a text that does not parse.
pub(super) fn of_parser(source: &Source, error: &ParseError) -> Box<RecipeError> {
    let at = place(error.position()).unwrap_or_else(|| source.last_place());
    RecipeError::at(source, at, in_words(error.err_type()))
}

fn explained(caller: Callers, source: &Source, error: &EvalAltResult, otherwise: Place) -> Box<RecipeError> {
    let (innermost, position) = innermost(error);
    let mut at = place(position).unwrap_or(otherwise);
    let mut exit_code = WRONG;
    let mut cause = cause_of(innermost, source, at, otherwise);
    let message = match innermost {
        EvalAltResult::ErrorRuntime(value, _) => match value.clone().try_cast::<Refusal>() {
            Some(refusal) => {
                cause = refusal.cause;
                let found = refusal.key.and_then(|key| source.find_key(at, &key));
                if cause == Cause::Option {
                    let is_literal = found.is_some_and(|key| source.is_literal_option(key));
                    cause = if is_literal { Cause::Text } else { Cause::Data };
                }
                at = found.unwrap_or(at);
                exit_code = refusal.exit_code;
                refusal.message
            }
            None => value.to_string(),
        },
        EvalAltResult::ErrorFunctionNotFound(signature, _) => unknown_function(caller, source, signature),
        EvalAltResult::ErrorVariableNotFound(name, _) => format!("unknown name \"{name}\""),
        EvalAltResult::ErrorPropertyNotFound(name, _) => format!("no property \"{name}\""),
        EvalAltResult::ErrorTooManyOperations(_) => "the recipe exceeds its limit of operations; check it for an \
                                                     endless loop"
            .into(),
        EvalAltResult::ErrorDataTooLarge(what, _) => too_large(what),
        EvalAltResult::ErrorDotExpr(what, _) => unknown_property(what),
        EvalAltResult::ErrorDataRace(what, _) => used_by_its_closure(what),
        EvalAltResult::ErrorTerminated(why, _) => why.to_string(),
        EvalAltResult::ErrorStackOverflow(_) => "function calls are nested too deeply; check for a recursion without \
                                                 end"
        .into(),
        EvalAltResult::ErrorArrayBounds(count, index, _) => {
            format!("the list has no entry {index}; it has {count}, counted from 0")
        }
        EvalAltResult::ErrorStringBounds(count, index, _) => {
            format!("the text has no character {index}; it has {count}, counted from 0")
        }
        EvalAltResult::ErrorMismatchDataType(expected, found, _)
        | EvalAltResult::ErrorMismatchOutputType(expected, found, _)
            if !expected.is_empty() && !found.is_empty() =>
        {
            format!("expected {}, found {}", plain(expected), plain(found))
        }
        EvalAltResult::ErrorAssignmentToConstant(name, _) => constant(name),
        EvalAltResult::ErrorNonPureMethodCallOnConstant(name, _) if !name.contains('$') => {
            format!("\"{name}\" cannot change a constant; call it on a copy (let copy = …)")
        }
        EvalAltResult::ErrorFor(_) => "for needs a list, a text or a range, as in 0..3".into(),
        other => {
            let mut bare = other.to_string();
            if let Some(end) = bare.rfind(" (line ") {
                bare.truncate(end);
            }
            bare
        }
    };
    Box::new(RecipeError { exit_code, cause, ..*RecipeError::at(source, at, message) })
}

/// The cause of an error at `at` that no binding has raised, in the closure that begins at `closure`. Errors about `()` count
/// as data: it stands for a value that other data may have. So do members that the closure gives its own maps.
fn cause_of(error: &EvalAltResult, source: &Source, at: Place, closure: Place) -> Cause {
    // a computed key of a map is not written in the line
    if let EvalAltResult::ErrorPropertyNotFound(name, _) = error {
        let is_written = source.line(at.line).contains(name.as_str());
        return if is_written && !source.makes_member(closure, name) { Cause::Members } else { Cause::Data };
    }
    let is_of_the_text = match error {
        EvalAltResult::ErrorFunctionNotFound(signature, _) => {
            !signature.split_once('(').is_some_and(|(_, arguments)| arguments.contains("()"))
        }
        EvalAltResult::ErrorDotExpr(what, _) | EvalAltResult::ErrorIndexingType(what, _) => !what.contains("()"),
        EvalAltResult::ErrorMismatchDataType(_, found, _) | EvalAltResult::ErrorMismatchOutputType(_, found, _) => {
            found != "()"
        }
        EvalAltResult::ErrorVariableNotFound(..)
        | EvalAltResult::ErrorAssignmentToConstant(..)
        | EvalAltResult::ErrorNonPureMethodCallOnConstant(..)
        | EvalAltResult::ErrorUnboundThis(..)
        | EvalAltResult::ErrorDataRace(..) => true,
        _ => false,
    };
    if is_of_the_text { Cause::Text } else { Cause::Data }
}

/// A message of the parser in plain words, for mistakes that are frequent in recipes.
fn in_words(error: &ParseErrorType) -> String {
    let text = match error {
        ParseErrorType::BadInput(LexError::UnterminatedString) => "the text has no closing quote".into(),
        ParseErrorType::VariableExists(name) => format!("\"{name}\" is already defined; choose another name"),
        ParseErrorType::VariableUndefined(name) => format!("unknown name \"{name}\""),
        ParseErrorType::DuplicatedProperty(name) => format!("the map has the key \"{name}\" twice; remove one"),
        ParseErrorType::AssignmentToConstant(name) if !name.is_empty() => constant(name),
        ParseErrorType::MismatchedType(expected, found) => format!("expected {expected}, found {found}"),
        ParseErrorType::MissingToken(token, purpose) => format!("\"{token}\" is missing {purpose}"),
        ParseErrorType::UnexpectedEOF => "the text ends too early; complete the last expression or bracket".into(),
        other => other.to_string(),
    };
    let terms = [
        ("Expecting name", "expected the name"),
        ("Expecting ", "expected "),
        ("boolean expression", "truth value"),
        ("a boolean", "a truth value"),
        ("an iterable value", "a list, a text or a range"),
        ("array literal", "list"),
        ("object map literal", "map"),
        ("Array, string or bit-field expects numeric index", "a list or text needs a number as index"),
        ("Object map expects string index", "a map needs a text as index"),
        ("a string", "a text"),
    ];
    terms.iter().fold(text, |text, (of_rhai, of_recipes)| text.replace(of_rhai, of_recipes))
}

fn constant(name: &str) -> String {
    format!("the constant \"{name}\" cannot be changed; declare it with let")
}

/// The error that started it, below the calls it passed through, and the innermost position that is known.
fn innermost(error: &EvalAltResult) -> (&EvalAltResult, Position) {
    let (mut error, mut position) = (error, error.position());
    while let EvalAltResult::ErrorInFunctionCall(_, _, inner, _) | EvalAltResult::ErrorInModule(_, inner, _) = error {
        error = inner;
        position = inner.position().or_else(position);
    }
    (error, position)
}

/// The names of all functions that recipes and scripts may call: those of an engine, Rhai's own included, and those of the
/// others.
pub(super) fn names_of(engine: &Engine) -> BTreeSet<String> {
    let name = |signature: String| signature.split('(').next().unwrap_or_default().trim().to_owned();
    let described = [Callers::Recipes, Callers::Scripts].into_iter().flat_map(docs::functions).chain(docs::methods());
    let described = described.map(|function| function.name.to_owned());
    engine.gen_fn_signatures(true).into_iter().map(name).chain(described).collect()
}

/// A call that no binding accepts: the usage where the name is known, else the nearest name.
fn unknown_function(caller: Callers, source: &Source, signature: &str) -> String {
    let name = signature.split([' ', '(']).next().unwrap_or(signature);
    let arguments: Vec<String> =
        signature[name.len()..].trim().trim_matches(['(', ')']).split(", ").map(plain).collect();
    let arguments = arguments.join(" and ");
    if name.starts_with(CLOSURE) {
        return format!("the closure has other parameters than {arguments}, with which it is called");
    }
    // a method has precedence where it is called on its type
    let on = arguments.split(" and ").next().unwrap_or_default().rsplit(' ').next().unwrap_or_default();
    let of_type = types().filter(|kind| kind.name.to_lowercase() == on).flat_map(|kind| kind.methods);
    let is_method =
        |of: &str| types().any(|kind| of == kind.name.to_lowercase() && kind.methods.iter().any(|m| m.name == name));
    if !is_method(on)
        && let Some(message) = of_others(caller, name, is_method("snapshot"))
    {
        return message;
    }
    // a list's own functions are Rhai's
    let others = functions(caller).chain(methods().filter(|_| on != "list"));
    if let Some(function) = of_type.chain(others).find(|function| function.name == name) {
        let usage = match function {
            Function { usage: "", signatures: [], text, .. } => (*text).to_owned(),
            Function { usage: "", signatures, .. } => signatures.join(" or "),
            Function { usage, .. } => (*usage).to_owned(),
        };
        return format!("{name}: cannot take {arguments}; use {usage}");
    }
    if arguments.contains("a measured value") {
        return format!(
            "{name}: the measured value is not known yet, and can only be an option; compute with it in the closure \
             of measure, or in then(MEASUREMENT, |result| …)"
        );
    }
    if name == "+" && arguments.contains("a list") {
        return format!("no function \"+\" takes {arguments}; write the list [A, B] instead of A + B");
    }
    let names = names_of(&bare(&Arc::default()));
    if on == "list" && name == "sum" {
        return "a list has no function \"sum\"; use list.reduce(|sum, x| sum + x, 0.0)".into();
    }
    if names.contains(name) || source.text.contains(&format!("fn {name}")) {
        return format!("no function \"{name}\" takes {arguments}");
    }
    unknown_name(name, &names)
}

/// How Rhai's names of closures begin.
pub(crate) const CLOSURE: &str = "anon$";

/// The name of a function that there is not, with the nearest of those that there are.
pub(crate) fn unknown_name(name: &str, names: &BTreeSet<String>) -> String {
    match nearest(name, names.iter().map(String::as_str)) {
        Some(near) => format!("unknown function \"{name}\", did you mean \"{near}\"?"),
        None => format!("unknown function \"{name}\""),
    }
}

/// What is said of a function that only scripts have to a recipe, and the other way round.
fn of_others(caller: Callers, name: &str, is_of_snapshots: bool) -> Option<String> {
    let has = |callers: Callers| functions(callers).any(|function| function.name == name);
    match caller {
        Callers::Scripts if has(Callers::Recipes) && !has(Callers::Scripts) => {
            let instead = if is_of_snapshots {
                format!(", or use CAMPAIGN.run(\"NAME\").snapshot().{name}(…)")
            } else {
                String::new()
            };
            Some(format!("{name}: a script cannot make stages; write it in a recipe (comove run){instead}"))
        }
        Callers::Recipes if has(Callers::Scripts) && !has(Callers::Recipes) => Some(format!(
            "{name}: available only in scripts (comove script); in a recipe return #{{ {name}: … }} from a closure \
             of measure or combine"
        )),
        _ => None,
    }
}

/// What Rhai calls a data race, on `argument #1 of function 'map'`.
fn used_by_its_closure(what: &str) -> String {
    let function = what.split('\'').nth(1).map_or_else(String::new, |name| format!("{name}: "));
    format!("{function}the closure uses the value that it is called on; use a copy in it (let copy = list)")
}

/// A text, list or map that grows beyond its limit.
fn too_large(what: &str) -> String {
    if what.contains("string") {
        return format!("a text, or all texts of a list or map together, exceed {TEXT} bytes");
    }
    format!(
        "a list or map has too many entries, including nested ones; the limit is {SIZE} in a recipe, {CLOSURE_SIZE} \
         in a script or a closure of measure or combine, {CELL_SIZE} in a closure for a cell"
    )
}

/// A property that a value has not: with the nearest name of any type's.
fn unknown_property(what: &str) -> String {
    let mut quoted = what.split('\'').skip(1).step_by(2);
    let (Some(name), Some(of)) = (quoted.next(), quoted.next()) else { return what.to_owned() };
    let properties = || types().flat_map(|kind| kind.properties).map(|(name, ..)| *name);
    // what the results of combine call z
    let wanted = if (name, of) == ("z", "snapshot") { "redshift" } else { name };
    let others = properties().chain(methods().map(|method| method.name)).filter(|other| *other != name);
    let hint = match nearest(wanted, others) {
        Some(near) if properties().all(|name| name != near) => format!(", did you mean \"{near}(…)\"?"),
        Some(near) => format!(", did you mean \"{near}\"?"),
        None => String::new(),
    };
    format!("{} has no property \"{name}\"{hint}", plain(of))
}
