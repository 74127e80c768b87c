//! The statements and expressions of a closure, from its syntax tree.

use super::{Kind, Typed, Wrong, fields};
use crate::recipe::error::hint;
use comove_sim::kernels::flag::program::{Op, ProgramBuilder};
use rhai::{ASTFlags, Expr, FnCallExpr, ImmutableString, Position, Stmt};

/// Whole numbers beyond this have no place in a program's real numbers.
const LARGEST_WHOLE: i64 = 1 << 53;

#[derive(Clone, Debug)]
pub(super) enum Binding {
    /// The closure's parameter.
    Cell,
    /// A number or truth value.
    Value(Typed),
    /// Something captured that no program can hold, in a recipe's words.
    Other(String),
}

#[derive(Debug, Default)]
pub(super) struct Walk {
    pub(super) builder: ProgramBuilder,
    /// Names that are visible, the innermost last.
    pub(super) names: Vec<(ImmutableString, Binding)>,
}

/// Where a statement's first token stands.
pub(super) fn position(statement: &Stmt) -> Position {
    match statement {
        Stmt::Expr(expression) => expression.start_position(),
        other => other.position(),
    }
}

impl Walk {
    /// The value of a block that starts at `start`: that of its last statement; those before it give names to values.
    pub(super) fn block(&mut self, statements: &[Stmt], start: Position) -> Result<Typed, Wrong> {
        let visible = self.names.len();
        let Some((last, before)) = statements.split_last() else {
            return Err(Wrong::at(start, "the block is empty: it must give a value"));
        };
        for statement in before {
            match statement {
                Stmt::Var(definition, _, _) => {
                    let (name, expression, _) = &**definition;
                    let value = self.expression(expression)?;
                    self.names.push((name.name.clone(), Binding::Value(value)));
                }
                Stmt::Noop(_) => {}
                other => return Err(not_in_a_criterion(other)),
            }
        }
        let value = self.last_statement(last)?;
        self.names.truncate(visible);
        Ok(value)
    }

    fn last_statement(&mut self, statement: &Stmt) -> Result<Typed, Wrong> {
        match statement {
            Stmt::Expr(expression) => self.expression(expression),
            Stmt::FnCall(call, position) => self.call(call, *position),
            Stmt::Block(block) => self.block(block.statements(), block.position()),
            Stmt::If(parts, position) => self.choice(&parts.expr, &parts.body, &parts.branch, *position),
            Stmt::Return(Some(expression), flags, _) if !flags.contains(ASTFlags::BREAK) => self.expression(expression),
            Stmt::Var(_, _, position) | Stmt::Noop(position) => {
                Err(Wrong::at(*position, "the last statement must give a value, without a semicolon"))
            }
            other => Err(not_in_a_criterion(other)),
        }
    }

    /// if … else …: both are computed, one is taken.
    fn choice(
        &mut self,
        condition: &Expr,
        then: &rhai::StmtBlock,
        otherwise: &rhai::StmtBlock,
        position: Position,
    ) -> Result<Typed, Wrong> {
        let chosen = self.expression(condition)?;
        if chosen.kind != Kind::Truth {
            let message = format!("\"if\" needs a truth value, not {}", chosen.kind.name());
            return Err(Wrong::at(condition.start_position(), message));
        }
        if otherwise.is_empty() {
            return Err(Wrong::at(position, "\"if\" needs an \"else\" here: it must give a value either way"));
        }
        let x = self.block(then.statements(), then.position())?;
        let y = self.block(otherwise.statements(), otherwise.position())?;
        if x.kind != y.kind {
            let message = format!("\"if\" gives {} or {}: it must be one of them", x.kind.name(), y.kind.name());
            return Err(Wrong::at(position, message));
        }
        Ok(Typed { value: self.builder.push(Op::Select, &[chosen.value, x.value, y.value]), kind: x.kind })
    }

    fn expression(&mut self, expression: &Expr) -> Result<Typed, Wrong> {
        let place = expression.position();
        match expression {
            Expr::IntegerConstant(number, _) if number.abs() > LARGEST_WHOLE => {
                Err(Wrong::at(place, format!("{number} is too large for a whole number: write {number}.0")))
            }
            Expr::IntegerConstant(number, _) => Ok(self.number(*number as f64, Kind::Whole)),
            Expr::FloatConstant(number, _) => Ok(self.number(**number, Kind::Real)),
            Expr::BoolConstant(truth, _) => Ok(self.number(f64::from(u8::from(*truth)), Kind::Truth)),
            Expr::Variable(variable, _, _) => self.variable(&variable.1, expression.start_position()),
            Expr::Dot(link, flags, _) if flags.contains(ASTFlags::NEGATED) => {
                Err(Wrong::at(link.rhs.start_position(), "\"?.\" cannot be used in a criterion"))
            }
            Expr::Dot(link, _, _) => self.chain(&link.lhs, &link.rhs),
            Expr::FnCall(call, _) => self.call(call, place),
            Expr::And(operands, _) => self.logic("&&", operands, place),
            Expr::Or(operands, _) => self.logic("||", operands, place),
            Expr::Stmt(block) => self.block(block.statements(), block.position()),
            other => Err(Wrong::at(other.start_position(), format!("{} cannot be used in a criterion", thing(other)))),
        }
    }

    fn number(&mut self, number: f64, kind: Kind) -> Typed {
        Typed { value: self.builder.constant(number), kind }
    }

    fn variable(&mut self, name: &str, position: Position) -> Result<Typed, Wrong> {
        match self.names.iter().rev().find(|(known, _)| known == name).map(|(_, binding)| binding) {
            Some(Binding::Value(value)) => Ok(*value),
            Some(Binding::Cell) => {
                let message = format!("\"{name}\" is the cell: name one of its fields, as in {name}.density");
                Err(Wrong::at(position, message))
            }
            Some(Binding::Other(what)) => {
                let message = format!("\"{name}\" is {what}: only numbers and truth values can be used in a criterion");
                Err(Wrong::at(position, message))
            }
            None => Err(Wrong::at(position, format!("unknown name \"{name}\""))),
        }
    }

    /// first.rest: a field of the cell or a call, and what follows it.
    fn chain(&mut self, first: &Expr, rest: &Expr) -> Result<Typed, Wrong> {
        let (link, further) = match rest {
            Expr::Dot(link, flags, _) if !flags.contains(ASTFlags::NEGATED) => (&link.lhs, Some(&link.rhs)),
            link => (link, None),
        };
        let of_cell = matches!(first, Expr::Variable(variable, _, _)
            if matches!(self.names.iter().rev().find(|(name, _)| *name == variable.1), Some((_, Binding::Cell))));
        let mut value = match link {
            Expr::Property(property, place) if of_cell => self.field(&property.2, *place)?,
            link => {
                let receiver = self.expression(first)?;
                self.linked(receiver, link)?
            }
        };
        let mut further = further;
        while let Some(rest) = further {
            let (link, next) = match rest {
                Expr::Dot(link, flags, _) if !flags.contains(ASTFlags::NEGATED) => (&link.lhs, Some(&link.rhs)),
                link => (link, None),
            };
            value = self.linked(value, link)?;
            further = next;
        }
        Ok(value)
    }

    /// .f(y) after a value.
    fn linked(&mut self, receiver: Typed, link: &Expr) -> Result<Typed, Wrong> {
        match link {
            Expr::MethodCall(call, position) => {
                let mut arguments = vec![receiver];
                for argument in &call.args {
                    arguments.push(self.expression(argument)?);
                }
                self.function(&call.name, &arguments, *position)
            }
            Expr::Property(property, position) => {
                let message = format!("{} has no field \"{}\"", receiver.kind.name(), property.2);
                Err(Wrong::at(*position, message))
            }
            other => Err(Wrong::at(other.start_position(), format!("{} cannot be used in a criterion", thing(other)))),
        }
    }

    fn field(&mut self, name: &str, position: Position) -> Result<Typed, Wrong> {
        match fields().find(|op| op.name() == name) {
            Some(op) => {
                let kind = if op == Op::Level { Kind::Whole } else { Kind::Real };
                Ok(Typed { value: self.builder.push(op, &[]), kind })
            }
            None => {
                let known: Vec<&str> = fields().map(Op::name).collect();
                let hint = hint(name, &known, "a cell has");
                Err(Wrong::at(position, format!("unknown field \"{name}\", {hint}")))
            }
        }
    }

    fn call(&mut self, call: &FnCallExpr, position: Position) -> Result<Typed, Wrong> {
        if call.is_qualified() {
            return Err(Wrong::at(position, format!("\"{}\" cannot be used in a criterion", call.name)));
        }
        let mut arguments = Vec::new();
        for argument in &call.args {
            arguments.push(self.expression(argument)?);
        }
        if call.is_operator_call() {
            self.operator(&call.name, &arguments, position)
        } else {
            self.function(&call.name, &arguments, position)
        }
    }

    /// x && y && z: Rhai keeps them in one list.
    fn logic(&mut self, name: &str, operands: &[Expr], position: Position) -> Result<Typed, Wrong> {
        let (first, rest) = operands.split_first().expect("an operator has operands");
        let mut value = self.expression(first)?;
        for operand in rest {
            let operand = self.expression(operand)?;
            value = self.operator(name, &[value, operand], position)?;
        }
        Ok(value)
    }
}

fn not_in_a_criterion(statement: &Stmt) -> Wrong {
    let what = match statement {
        Stmt::Assignment(_) => "an assignment",
        Stmt::While(..) | Stmt::Do(..) | Stmt::For(..) => "a loop",
        Stmt::Switch(..) => "\"switch\"",
        Stmt::Return(_, flags, _) if flags.contains(ASTFlags::BREAK) => "\"throw\"",
        Stmt::TryCatch(..) => "\"try\"",
        Stmt::Share(_) => "a closure",
        _ => "this statement",
    };
    let hint = if matches!(statement, Stmt::Expr(_) | Stmt::FnCall(..) | Stmt::If(..) | Stmt::Block(_)) {
        "only the last statement gives a value"
    } else {
        "give names to values with let and end with a comparison"
    };
    Wrong::at(position(statement), format!("{what} cannot be used in a criterion: {hint}"))
}

/// An expression that no program has, in a recipe's words.
fn thing(expression: &Expr) -> &'static str {
    match expression {
        Expr::StringConstant(..) | Expr::CharConstant(..) | Expr::InterpolatedString(..) => "a text",
        Expr::Array(..) => "a list",
        Expr::Map(..) => "a map",
        Expr::Index(..) => "an entry of a list",
        Expr::Coalesce(..) => "\"??\"",
        Expr::Unit(_) => "()",
        Expr::ThisPtr(_) => "this",
        Expr::DynamicConstant(..) => "a closure",
        _ => "this",
    }
}
