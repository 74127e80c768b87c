//! Operators and functions of an expression, by the kinds of their operands.

use super::walk::Walk;
use super::{Kind, Typed, Wrong};
use crate::recipe::error::hint;
use comove_sim::kernels::flag::program::{Op, Value};
use rhai::Position;

/// Functions with their number of arguments.
const FUNCTIONS: [(&str, usize, Op); 7] = [
    ("min", 2, Op::Minimum),
    ("max", 2, Op::Maximum),
    ("abs", 1, Op::Absolute),
    ("sqrt", 1, Op::SquareRoot),
    ("ln", 1, Op::Logarithm),
    ("exp", 1, Op::Exponential),
    ("pow", 2, Op::Power),
];

impl Kind {
    /// In a message.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Whole => "a whole number",
            Self::Real => "a real number",
            Self::Truth => "a truth value",
            Self::Unknown => "a value that is known later",
        }
    }

    /// Of a number made from both.
    fn with(self, other: Self) -> Self {
        if self == Self::Whole && other == Self::Whole { Self::Whole } else { Self::Real }
    }
}

impl Walk {
    /// A number or truth value made by an operation.
    fn make(&mut self, op: Op, operands: &[Value], kind: Kind) -> Typed {
        Typed { value: self.builder.push(op, operands), kind }
    }

    /// What a comparison gives.
    fn truth(&mut self, op: Op, operands: &[Value]) -> Typed {
        self.make(op, operands, Kind::Truth)
    }

    /// An operator between two values or before one.
    pub(super) fn operator(&mut self, name: &str, operands: &[Typed], position: Position) -> Result<Typed, Wrong> {
        if let Some(unknown) = operands.iter().find(|operand| operand.kind == Kind::Unknown) {
            return Ok(*unknown);
        }
        match operands {
            [x] => self.prefix(name, *x, position),
            [x, y] => self.infix(name, *x, *y, position),
            _ => Err(Wrong::at(position, format!("\"{name}\" cannot be used in a criterion"))),
        }
    }

    fn prefix(&mut self, name: &str, x: Typed, position: Position) -> Result<Typed, Wrong> {
        match (name, x.kind) {
            ("!", Kind::Truth) => Ok(self.truth(Op::Not, &[x.value])),
            ("-", Kind::Whole | Kind::Real) => Ok(self.make(Op::Negate, &[x.value], x.kind)),
            ("+", Kind::Whole | Kind::Real) => Ok(x),
            _ => Err(Wrong::at(position, format!("\"{name}\" cannot take {}", x.kind.name()))),
        }
    }

    fn infix(&mut self, name: &str, x: Typed, y: Typed, position: Position) -> Result<Typed, Wrong> {
        let numbers = x.kind != Kind::Truth && y.kind != Kind::Truth;
        let truths = x.kind == Kind::Truth && y.kind == Kind::Truth;
        let (values, swapped, kind) = ([x.value, y.value], [y.value, x.value], x.kind.with(y.kind));
        match name {
            "+" if numbers => Ok(self.make(Op::Add, &values, kind)),
            "-" if numbers => Ok(self.make(Op::Subtract, &values, kind)),
            "*" if numbers => Ok(self.make(Op::Multiply, &values, kind)),
            "/" | "%" if kind == Kind::Whole && self.builder.constant_of(y.value) == Some(0.0) => {
                Err(Wrong::at(position, "a whole number cannot be divided by zero"))
            }
            "/" if numbers => {
                let ratio = self.make(Op::Divide, &values, kind);
                // whole numbers lose the rest, as everywhere in a recipe: 5/3 is 1
                Ok(if kind == Kind::Whole { self.make(Op::Truncate, &[ratio.value], kind) } else { ratio })
            }
            "%" if numbers => Ok(self.make(Op::Remainder, &values, kind)),
            "**" if kind == Kind::Whole && self.builder.constant_of(y.value).is_some_and(|y| y < 0.0) => {
                Err(Wrong::at(position, "a whole number cannot have a negative exponent; write a real number, as 2.0"))
            }
            "**" if numbers => Ok(self.make(Op::Power, &values, kind)),
            "<" if numbers => Ok(self.truth(Op::Less, &values)),
            ">" if numbers => Ok(self.truth(Op::Less, &swapped)),
            "<=" if numbers => Ok(self.truth(Op::LessOrEqual, &values)),
            ">=" if numbers => Ok(self.truth(Op::LessOrEqual, &swapped)),
            "==" if numbers || truths => Ok(self.truth(Op::Equal, &values)),
            "!=" if numbers || truths => Ok(self.truth(Op::NotEqual, &values)),
            "&&" | "&" if truths => Ok(self.truth(Op::And, &values)),
            "||" | "|" if truths => Ok(self.truth(Op::Or, &values)),
            "^" if truths => Ok(self.truth(Op::NotEqual, &values)),
            "+" | "-" | "*" | "/" | "%" | "**" | "<" | ">" | "<=" | ">=" | "==" | "!=" | "&&" | "&" | "||" | "|"
            | "^" => {
                let message = format!("\"{name}\" cannot take {} and {}", x.kind.name(), y.kind.name());
                Err(Wrong::at(position, message))
            }
            _ => Err(Wrong::at(position, format!("\"{name}\" cannot be used in a criterion"))),
        }
    }

    /// A function of values, called as f(x, y) or x.f(y).
    pub(super) fn function(&mut self, name: &str, arguments: &[Typed], position: Position) -> Result<Typed, Wrong> {
        if let Some(truth) = arguments.iter().find(|argument| argument.kind == Kind::Truth) {
            return Err(Wrong::at(position, format!("\"{name}\" cannot take {}", truth.kind.name())));
        }
        let values: Vec<Value> = arguments.iter().map(|argument| argument.value).collect();
        let is_known =
            ["abs", "min", "max", "to_float", "log"].contains(&name) || FUNCTIONS.iter().any(|f| f.0 == name);
        if let Some(unknown) = arguments.iter().find(|argument| argument.kind == Kind::Unknown)
            && is_known
        {
            return Ok(*unknown);
        }
        match (name, arguments) {
            ("abs", [x]) => return Ok(self.make(Op::Absolute, &values, x.kind)),
            ("min" | "max", [x, y]) => {
                let op = if name == "min" { Op::Minimum } else { Op::Maximum };
                return Ok(self.make(op, &values, x.kind.with(y.kind)));
            }
            ("to_float", [_]) => return Ok(Typed { value: values[0], kind: Kind::Real }),
            // as in Rhai, the logarithm without a base is that to base ten
            ("log", [_]) => return Ok(self.logarithm(values[0], None)),
            ("log", [_, _]) => return Ok(self.logarithm(values[0], Some(values[1]))),
            _ => {}
        }
        let known = FUNCTIONS.iter().find(|(known, _, _)| *known == name);
        match known {
            Some((_, count, op)) if *count == values.len() => Ok(self.make(*op, &values, Kind::Real)),
            Some((_, count, _)) => {
                Err(Wrong::at(position, format!("\"{name}\" takes {count} numbers, not {}", values.len())))
            }
            None => Err(unknown_function(name, position)),
        }
    }

    fn logarithm(&mut self, of: Value, base: Option<Value>) -> Typed {
        let base = base.unwrap_or_else(|| self.builder.constant(10.0));
        let [of, base] = [of, base].map(|value| self.builder.push(Op::Logarithm, &[value]));
        self.make(Op::Divide, &[of, base], Kind::Real)
    }
}

/// No program has this function.
fn unknown_function(name: &str, position: Position) -> Wrong {
    let known: Vec<&str> = FUNCTIONS.iter().map(|(known, _, _)| *known).chain(["log", "to_float"]).collect();
    let hint = hint(name, &known, "a criterion has");
    Wrong::at(position, format!("unknown function \"{name}\", {hint}"))
}
