//! A closure over a cell's fields, compiled to a program that the flag operation evaluates.
//!
//! The closure is never called: its syntax tree is walked once. A program gives what Rhai would, with these
//! differences: a function of real numbers takes whole ones too, whole numbers do not overflow but round beyond 2⁵³,
//! real numbers that differ in their last bit are not equal, and what Rhai would stop at (division by zero) gives what
//! is infinite or not a number, with which no comparison holds, `!=` among them.
//!
//! | module | what it holds |
//! |---|---|
//! | `walk` | statements and expressions |
//! | `operators` | operators and functions, by the kinds of their operands |

mod operators;
mod walk;

use super::closure_members;
use super::error::{Refusal, plain};
use comove_sim::kernels::flag::Program;
use comove_sim::kernels::flag::program::{Op, ProgramBuilder, Value};
use rhai::{ASTNode, Dynamic, EvalAltResult, FnPtr, ImmutableString, NativeCallContext, Position, Stmt};
use walk::{Binding, Walk};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Whole,
    Real,
    Truth,
}

/// A value of the program and what it is.
#[derive(Clone, Copy, Debug)]
struct Typed {
    value: Value,
    kind: Kind,
}

/// What cannot be compiled, and the token.
#[derive(Debug)]
struct Wrong {
    message: String,
    position: Position,
}

impl Wrong {
    fn at(position: Position, message: impl Into<String>) -> Self {
        Self { message: message.into(), position }
    }
}

/// Compiles `closure`, an argument of `function`: its one parameter is the cell, and its value is whether to refine.
pub(crate) fn compile(
    context: &NativeCallContext<'_>,
    function: &str,
    closure: &FnPtr,
) -> Result<Program, Box<EvalAltResult>> {
    let Some((parameters, body)) = definition(context, closure) else {
        let message = "the expression must be a closure of one cell, as in |c| c.density > 8";
        return Err(Refusal::error(function, message, None));
    };
    let refuse = |wrong: Wrong| Refusal::error_at(function, wrong.message, wrong.position);
    let (builder, result) = walk(&parameters, closure.curry(), &body).map_err(refuse)?;
    if result.kind != Kind::Truth {
        let message = format!("the closure gives {}: end it with a comparison", result.kind.name());
        let last = body.last().map_or(Position::NONE, walk::position);
        return Err(Refusal::error_at(function, message, last));
    }
    builder.finish(result.value).map_err(|error| Refusal::error(function, error, None))
}

/// The operations of a closure's body, and its value.
fn walk(parameters: &[ImmutableString], captured: &[Dynamic], body: &[Stmt]) -> Result<(ProgramBuilder, Typed), Wrong> {
    let mut walk = Walk::default();
    let (cell, names) = parameters.split_last().expect("a definition has the cell as its parameter");
    for (name, value) in names.iter().zip(captured) {
        let binding = captured_value(&mut walk.builder, &value.flatten_clone());
        walk.names.push((name.clone(), binding));
    }
    walk.names.push((cell.clone(), Binding::Cell));
    let start = body.first().map_or(Position::NONE, walk::position);
    let result = walk.block(body, start)?;
    Ok((walk.builder, result))
}

/// The fields of a cell as they are written after its dot.
fn fields() -> impl Iterator<Item = Op> {
    Op::ALL.into_iter().filter(|op| op.is_field())
}

/// The parameters of a closure, captured ones first, and its statements.
fn definition(context: &NativeCallContext<'_>, closure: &FnPtr) -> Option<(Vec<ImmutableString>, Vec<Stmt>)> {
    let (parameters, alone) = closure_members::definition(context, closure.fn_name(), closure.curry().len() + 1)?;
    // the body of a definition is not public, but walking a syntax tree of nothing else passes its statements
    let mut body = Vec::new();
    alone.walk(&mut |path: &[ASTNode<'_>]| {
        if let [ASTNode::Stmt(statement)] = path {
            body.push((*statement).clone());
        }
        true
    });
    Some((parameters, body))
}

/// A captured number or truth value as a constant.
fn captured_value(builder: &mut ProgramBuilder, value: &Dynamic) -> Binding {
    let typed = |value, kind| Binding::Value(Typed { value, kind });
    if let Ok(whole) = value.as_int() {
        typed(builder.constant(whole as f64), Kind::Whole)
    } else if let Ok(real) = value.as_float() {
        typed(builder.constant(real), Kind::Real)
    } else if let Ok(truth) = value.as_bool() {
        typed(builder.constant(f64::from(u8::from(truth))), Kind::Truth)
    } else {
        Binding::Other(plain(value.type_name()))
    }
}

#[cfg(test)]
mod tests;
