//! The statements and expressions of a closure, from its syntax tree.

use super::{Kind, NotKnown, Typed, Wrong, fields};
use crate::recipe::error::{hint, plain};
use comove_sim::kernels::flag::program::{Op, ProgramBuilder};
use rhai::{ASTFlags, Array, Dynamic, Expr, FnCallExpr, ImmutableString, Map, Position, Stmt};

/// Whole numbers beyond this have no place in a program's real numbers.
const LARGEST_WHOLE: i64 = 1 << 53;

#[derive(Clone, Debug)]
pub(super) enum Binding {
    /// The closure's parameter.
    Cell,
    /// A number or truth value.
    Value(Typed),
    /// A captured list or map, whose entries may be numbers.
    Data(Dynamic),
    /// Something captured that no program can hold, in a recipe's words.
    Other(String),
}

impl Binding {
    /// In a message.
    fn words(&self) -> String {
        match self {
            Self::Cell => "the cell".into(),
            Self::Value(value) => value.kind.name().into(),
            Self::Data(data) => plain(data.type_name()),
            Self::Other(what) => what.clone(),
        }
    }
}

/// A link of a chain, `.name`, `.call(…)` or `[index]`.
enum Link<'a> {
    Member(&'a Expr),
    Index(&'a Expr),
}

/// The first part of a chain, and its links.
fn chain(expression: &Expr) -> Option<(&Expr, Vec<Link<'_>>)> {
    let (Expr::Dot(parts, ..) | Expr::Index(parts, ..)) = expression else { return None };
    let mut links = Vec::new();
    let mut at = expression;
    // each part holds its link and the rest of the chain, unless it ends there
    while let Expr::Dot(here, flags, _) | Expr::Index(here, flags, _) = at {
        let is_index = matches!(at, Expr::Index(..));
        let goes_on = !flags.contains(ASTFlags::BREAK);
        let link = match &here.rhs {
            Expr::Dot(next, ..) | Expr::Index(next, ..) if goes_on => &next.lhs,
            last => last,
        };
        links.push(if is_index { Link::Index(link) } else { Link::Member(link) });
        if !goes_on {
            break;
        }
        at = &here.rhs;
    }
    Some((&parts.lhs, links))
}

/// Whether a chain has `?.` or `?[`, and where.
fn elvis(expression: &Expr) -> Option<Position> {
    match expression {
        Expr::Dot(parts, flags, _) | Expr::Index(parts, flags, _) => match flags.contains(ASTFlags::NEGATED) {
            true => Some(parts.rhs.start_position()),
            false => elvis(&parts.rhs),
        },
        _ => None,
    }
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
            return Err(Wrong::at(start, "the block is empty, but must return a value"));
        };
        for statement in before {
            match statement {
                Stmt::Var(definition, _, _) => {
                    let (name, expression, _) = &**definition;
                    let binding = match self.bound(expression)? {
                        data @ Binding::Data(_) => data,
                        other => Binding::Value(self.value(other, expression)?),
                    };
                    self.names.push((name.name.clone(), binding));
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
                Err(Wrong::at(*position, "the last statement must return a value; remove its semicolon"))
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
        if !matches!(chosen.kind, Kind::Truth | Kind::Unknown) {
            let message = format!("\"if\" needs a truth value, not {}", chosen.kind.name());
            return Err(Wrong::at(condition.start_position(), message));
        }
        if otherwise.is_empty() {
            return Err(Wrong::at(position, "\"if\" needs an \"else\" here, because it must return a value"));
        }
        let x = self.block(then.statements(), then.position())?;
        let y = self.block(otherwise.statements(), otherwise.position())?;
        if let Some(unknown) = [chosen, x, y].into_iter().find(|value| value.kind == Kind::Unknown) {
            return Ok(unknown);
        }
        if x.kind != y.kind {
            let message = format!("\"if\" returns {} or {}; make both the same type", x.kind.name(), y.kind.name());
            return Err(Wrong::at(position, message));
        }
        Ok(Typed { value: self.builder.push(Op::Select, &[chosen.value, x.value, y.value]), kind: x.kind })
    }

    fn expression(&mut self, expression: &Expr) -> Result<Typed, Wrong> {
        let place = expression.position();
        match expression {
            Expr::IntegerConstant(number, _) if number.abs() > LARGEST_WHOLE => {
                Err(Wrong::at(place, format!("{number} is too large for a whole number; write {number}.0")))
            }
            Expr::IntegerConstant(number, _) => Ok(self.number(*number as f64, Kind::Whole)),
            Expr::FloatConstant(number, _) => Ok(self.number(**number, Kind::Real)),
            Expr::BoolConstant(truth, _) => Ok(self.number(f64::from(u8::from(*truth)), Kind::Truth)),
            Expr::Variable(..) | Expr::Dot(..) | Expr::Index(..) => {
                let bound = self.bound(expression)?;
                self.value(bound, expression)
            }
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

    /// A captured value: a number or truth value as a constant.
    pub(super) fn captured(&mut self, value: &Dynamic) -> Binding {
        if let Ok(whole) = value.as_int() {
            Binding::Value(self.number(whole as f64, Kind::Whole))
        } else if let Ok(real) = value.as_float() {
            Binding::Value(self.number(real, Kind::Real))
        } else if let Ok(truth) = value.as_bool() {
            Binding::Value(self.number(f64::from(u8::from(truth)), Kind::Truth))
        } else if value.is::<NotKnown>() {
            Binding::Value(self.number(0.0, Kind::Unknown))
        } else if value.is_array() || value.is_map() {
            Binding::Data(value.clone())
        } else {
            Binding::Other(plain(value.type_name()))
        }
    }

    /// The value of an expression that is bound to something.
    fn value(&self, binding: Binding, expression: &Expr) -> Result<Typed, Wrong> {
        let (name, position) = match (expression, chain(expression)) {
            (Expr::Variable(variable, _, _), _) => (variable.1.to_string(), expression.start_position()),
            (_, Some((_, links))) => match links.last() {
                Some(Link::Member(Expr::Property(property, position))) => (property.2.to_string(), *position),
                _ => ("this entry".into(), expression.start_position()),
            },
            _ => (String::new(), expression.start_position()),
        };
        match binding {
            Binding::Value(value) => Ok(value),
            Binding::Cell => {
                let message = format!("\"{name}\" is the cell; use one of its fields, as in {name}.density");
                Err(Wrong::at(position, message))
            }
            other => {
                let what = other.words();
                let message = format!("\"{name}\" is {what}; a criterion can use only numbers and truth values");
                Err(Wrong::at(position, message))
            }
        }
    }

    /// The binding of a name, of a member or entry of one, or the value of any other expression.
    fn bound(&mut self, expression: &Expr) -> Result<Binding, Wrong> {
        if let Expr::Variable(variable, _, _) = expression {
            let name = &variable.1;
            let known = self.names.iter().rev().find(|(known, _)| known == name);
            return known
                .map(|(_, binding)| binding.clone())
                .ok_or_else(|| Wrong::at(expression.start_position(), format!("unknown name \"{name}\"")));
        }
        let Some((first, links)) = chain(expression) else { return self.expression(expression).map(Binding::Value) };
        if let Some(position) = elvis(expression) {
            return Err(Wrong::at(position, "\"?.\" cannot be used in a criterion"));
        }
        let mut binding = self.bound(first)?;
        for link in links {
            binding = self.follow(binding, first, link)?;
        }
        Ok(binding)
    }

    /// The next link of a chain that begins with `first`.
    fn follow(&mut self, binding: Binding, first: &Expr, link: Link<'_>) -> Result<Binding, Wrong> {
        match (binding, link) {
            (Binding::Cell, Link::Member(Expr::Property(property, place))) => {
                self.field(&property.2, *place).map(Binding::Value)
            }
            (Binding::Value(unknown), Link::Member(Expr::Property(..)) | Link::Index(_))
                if unknown.kind == Kind::Unknown =>
            {
                Ok(Binding::Value(unknown))
            }
            (Binding::Data(data), Link::Member(Expr::Property(property, place))) => {
                self.entry(&data, &property.2, *place)
            }
            (Binding::Data(data), Link::Index(Expr::StringConstant(name, place))) => self.entry(&data, name, *place),
            (Binding::Data(data), Link::Index(index)) => self.indexed(&data, index),
            (receiver, Link::Member(Expr::MethodCall(call, position))) => {
                let mut arguments = vec![self.value(receiver, first)?];
                for argument in &call.args {
                    arguments.push(self.expression(argument)?);
                }
                self.function(&call.name, &arguments, *position).map(Binding::Value)
            }
            (receiver, Link::Member(Expr::Property(property, position))) => {
                Err(Wrong::at(*position, format!("{} has no field \"{}\"", receiver.words(), property.2)))
            }
            (_, Link::Index(index)) => {
                Err(Wrong::at(index.start_position(), "an entry of a list cannot be used in a criterion"))
            }
            (_, Link::Member(other)) => {
                Err(Wrong::at(other.start_position(), format!("{} cannot be used in a criterion", thing(other))))
            }
        }
    }

    /// An entry of a captured map.
    fn entry(&mut self, data: &Dynamic, name: &str, position: Position) -> Result<Binding, Wrong> {
        let Some(map) = data.read_lock::<Map>() else {
            return Err(Wrong::at(position, format!("{} has no member \"{name}\"", plain(data.type_name()))));
        };
        match map.get(name) {
            Some(value) => Ok(self.captured(value)),
            None => {
                let known: Vec<&str> = map.keys().map(|key| key.as_str()).collect();
                let hint = hint(name, &known, "there are");
                Err(Wrong::at(position, format!("the map has no member \"{name}\", {hint}")))
            }
        }
    }

    /// An entry of a captured list, counted from the end if the index is negative.
    fn indexed(&mut self, data: &Dynamic, index: &Expr) -> Result<Binding, Wrong> {
        let position = index.start_position();
        let typed = self.expression(index)?;
        if typed.kind == Kind::Unknown {
            return Ok(Binding::Value(typed));
        }
        let number = self.builder.constant_of(typed.value).filter(|_| typed.kind == Kind::Whole);
        let number = number
            .ok_or_else(|| Wrong::at(position, "an index must be a whole number that is the same in all cells"))?;
        let Some(list) = data.read_lock::<Array>() else {
            return Err(Wrong::at(position, format!("{} has no entry {number}", plain(data.type_name()))));
        };
        let from_start = if number < 0.0 { number + list.len() as f64 } else { number };
        let entry = Some(from_start).filter(|n| *n >= 0.0).and_then(|n| list.get(n as usize));
        let value = entry.ok_or_else(|| {
            Wrong::at(position, format!("the list has no entry {number}; it has {}, counted from 0", list.len()))
        })?;
        Ok(self.captured(value))
    }

    fn field(&mut self, name: &str, position: Position) -> Result<Typed, Wrong> {
        match fields().find(|(known, _)| *known == name) {
            Some((_, op)) => {
                let kind = if op == Op::Level { Kind::Whole } else { Kind::Real };
                Ok(Typed { value: self.builder.push(op, &[]), kind })
            }
            None => {
                let known: Vec<&str> = fields().map(|(known, _)| known).collect();
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
        "only the last statement may return a value"
    } else {
        "use let and end with a comparison"
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
