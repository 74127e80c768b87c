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
use super::error::{Bound, Refusal};
use comove_sim::kernels::flag::Program;
use comove_sim::kernels::flag::program::{Op, ProgramBuilder, Value};
use rhai::{ASTNode, Dynamic, EvalAltResult, FnPtr, ImmutableString, NativeCallContext, Position, Stmt};
use walk::{Binding, Walk};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Whole,
    Real,
    Truth,
    /// Of a value that is not known yet.
    Unknown,
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

/// A closure whose syntax tree has been found: values that it has captured may become known later.
#[derive(Clone)]
pub(crate) struct Expression {
    function: String,
    /// Names of the captured values, then that of the one argument.
    parameters: Vec<ImmutableString>,
    captured: Vec<Dynamic>,
    body: Vec<Stmt>,
}

/// Characters of a captured value that are shown.
const SHOWN: usize = 80;

/// A captured value that is not known yet.
#[derive(Clone)]
pub(crate) struct NotKnown;

impl Expression {
    /// That of `closure`, an argument of `function`, with one parameter of its own.
    pub(crate) fn of(context: &NativeCallContext<'_>, function: &str, closure: &FnPtr) -> Option<Self> {
        let (parameters, body) = definition(context, closure)?;
        let captured = closure.curry().iter().map(Dynamic::flatten_clone).collect();
        Some(Self { function: function.to_owned(), parameters, captured, body })
    }

    /// The values that the closure has captured.
    pub(crate) fn captured(&self) -> &[Dynamic] {
        &self.captured
    }

    /// The expression with other values in place of those that it has captured.
    pub(crate) fn with(&self, captured: Vec<Dynamic>) -> Self {
        Self { captured, ..self.clone() }
    }

    /// Its captured values by their names, long ones in part; empty without any.
    pub(crate) fn shown_values(&self) -> String {
        let shown = |(name, value): (&ImmutableString, &Dynamic)| {
            let text = value.to_string();
            let part: String = text.chars().take(SHOWN).collect();
            format!("{name} = {part}{}", if part.len() < text.len() { "…" } else { "" })
        };
        self.parameters.iter().zip(&self.captured).map(shown).collect::<Vec<_>>().join(", ")
    }

    /// The program of a criterion: the argument is the cell, and the value is whether to refine. `None` while a captured
    /// value is not known, if the rest is right.
    pub(crate) fn compile(&self) -> Bound<Option<Program>> {
        let (builder, result) = self.walk(Binding::Cell).map_err(|wrong| self.refuse(wrong))?;
        match result.kind {
            Kind::Truth if self.captured.iter().any(Dynamic::is::<NotKnown>) => Ok(None),
            Kind::Unknown => Ok(None),
            Kind::Truth => {
                builder.finish(result.value).map(Some).map_err(|error| Refusal::error(&self.function, error, None))
            }
            kind => {
                let message = format!("the closure returns {}; end it with a comparison", kind.name());
                let last = self.body.last().map_or(Position::NONE, walk::position);
                Err(Refusal::error_at(&self.function, message, last))
            }
        }
    }

    /// The number that the expression gives for a level; `None` while a captured value is not known.
    pub(crate) fn at_level(&self, level: i64) -> Bound<Option<f64>> {
        let (builder, result) = self.walk(Binding::Data(level.into())).map_err(|wrong| self.refuse(wrong))?;
        match (result.kind, builder.constant_of(result.value)) {
            (Kind::Whole | Kind::Real, Some(number)) => Ok(Some(number)),
            (Kind::Unknown, _) => Ok(None),
            _ => Err(Refusal::error(&self.function, "the closure returns no number", None)),
        }
    }

    fn refuse(&self, wrong: Wrong) -> Box<EvalAltResult> {
        Refusal::error_at(&self.function, wrong.message, wrong.position)
    }

    /// The operations of the closure's body, and its value.
    fn walk(&self, argument: Binding) -> Result<(ProgramBuilder, Typed), Wrong> {
        let mut walk = Walk::default();
        let (own, names) = self.parameters.split_last().expect("a definition has one parameter of its own");
        for (name, value) in names.iter().zip(&self.captured) {
            let binding = walk.captured(value);
            walk.names.push((name.clone(), binding));
        }
        let argument = match argument {
            Binding::Data(value) => walk.captured(&value),
            cell => cell,
        };
        walk.names.push((own.clone(), argument));
        let start = self.body.first().map_or(Position::NONE, walk::position);
        let result = walk.block(&self.body, start)?;
        Ok((walk.builder, result))
    }
}

/// The fields of a cell as they are written after its dot.
fn fields() -> impl Iterator<Item = (&'static str, Op)> {
    let of_matter = [
        ("density", Op::MatterDensity),
        ("matter_density", Op::MatterDensity),
        ("overdensity", Op::MatterOverdensity),
        ("dark_matter_density", Op::DarkMatterDensity),
        ("gas_density", Op::Density),
        ("gas_overdensity", Op::Overdensity),
    ];
    let named = |op: &Op| of_matter.iter().all(|(_, other)| other != op);
    let others = Op::ALL.into_iter().filter(|op| op.is_field()).filter(named).collect::<Vec<_>>();
    of_matter.into_iter().chain(others.into_iter().map(|op| (op.name(), op)))
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

#[cfg(test)]
mod tests;
