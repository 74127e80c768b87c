//! A criterion as a small program: what an expression of a recipe over a cell's fields is compiled to.
//!
//! A program is a list of instructions over a file of [`REGISTERS`] registers, without branches: truth values are the
//! numbers 0 and 1, and a choice is an instruction. Each cell is evaluated in `f64` on its own, so a row of cells goes
//! through every instruction together, and a device with a thread for each cell runs the same instructions as they are.
//!
//! Its text has one instruction a line, `r2 = less r0 r1`; it is what a run's parameters and fingerprint hold, and
//! reads back to the same program. In what [`ProgramBuilder`] makes, a value that is computed twice appears once,
//! constants are computed beforehand and names are gone, so such differences of spelling do not count.

mod builder;
mod evaluate;
mod op;

pub use builder::{ProgramBuilder, Value};
pub(super) use evaluate::{Cells, evaluate};
pub use op::Op;

use std::fmt::{Display, Formatter};
use std::str::FromStr;

/// Registers of a program.
pub const REGISTERS: usize = 32;

/// One instruction: `to` becomes what `op` makes of its operands.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
pub struct Instruction {
    /// What it does.
    pub op: Op,
    /// The register that it writes.
    pub to: u8,
    /// The registers that it reads: the first [`Op::operands`] of these, the others 0.
    pub from: [u8; 3],
    /// The number that [`Op::Constant`] writes, else 0.
    pub constant: f64,
}

/// A program. It flags a cell where its last instruction gives a number above zero.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    instructions: Vec<Instruction>,
}

/// Why instructions are no program.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ProgramError {
    /// No instruction at all.
    #[error("the program has no instruction")]
    Empty,
    /// More values at once than there are registers.
    #[error("the expression needs more than {REGISTERS} values at a time: split it into several criteria")]
    TooManyValues,
    /// A line that is no instruction.
    #[error("\"{line}\" is no instruction: {reason}")]
    Line {
        /// The line.
        line: String,
        /// What is wrong with it.
        reason: &'static str,
    },
}

impl Program {
    /// Its instructions in order.
    pub fn instructions(&self) -> &[Instruction] {
        &self.instructions
    }

    /// Whether it reads a field of this kind.
    pub fn reads(&self, field: impl Fn(Op) -> bool) -> bool {
        self.instructions.iter().any(|instruction| field(instruction.op))
    }

    /// The program where gas is all matter.
    #[must_use]
    pub fn of_gas_alone(mut self) -> Self {
        for instruction in &mut self.instructions {
            instruction.op = match instruction.op {
                Op::MatterDensity => Op::Density,
                Op::MatterOverdensity => Op::Overdensity,
                op => op,
            };
        }
        self
    }

    /// Its result for one cell with these fields: what every device must give for that cell, to the last bit.
    pub fn result(&self, field: impl Fn(Op) -> f64) -> f64 {
        let mut registers = [0.0; REGISTERS];
        let mut result = 0.0;
        for instruction in &self.instructions {
            let [x, y, z] = instruction.from.map(|register| registers[usize::from(register)]);
            result = match instruction.op {
                Op::Constant => instruction.constant,
                op if op.is_field() => field(op),
                op => op.apply(x, y, z),
            };
            registers[usize::from(instruction.to)] = result;
        }
        result
    }

    /// Its lines.
    pub fn lines(&self) -> Vec<String> {
        self.instructions.iter().map(ToString::to_string).collect()
    }

    /// The program of these lines.
    ///
    /// # Errors
    /// [`ProgramError`] for a line that is no instruction or reads a register that nothing has written.
    pub fn from_lines<S: AsRef<str>>(lines: &[S]) -> Result<Self, ProgramError> {
        let mut written = [false; REGISTERS];
        let mut instructions = Vec::with_capacity(lines.len());
        for line in lines.iter().map(AsRef::as_ref) {
            let instruction: Instruction = line.parse()?;
            let read = &instruction.from[..instruction.op.operands()];
            if read.iter().any(|&register| !written[usize::from(register)]) {
                return Err(ProgramError::Line { line: line.into(), reason: "it reads what no line before it writes" });
            }
            written[usize::from(instruction.to)] = true;
            instructions.push(instruction);
        }
        if instructions.is_empty() { Err(ProgramError::Empty) } else { Ok(Self { instructions }) }
    }
}

impl Display for Instruction {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "r{} = {}", self.to, self.op.name())?;
        if self.op == Op::Constant {
            // the shortest text that reads back to the same number
            write!(f, " {:?}", self.constant)?;
        }
        self.from[..self.op.operands()].iter().try_for_each(|register| write!(f, " r{register}"))
    }
}

impl FromStr for Instruction {
    type Err = ProgramError;

    fn from_str(line: &str) -> Result<Self, ProgramError> {
        let wrong = |reason| ProgramError::Line { line: line.into(), reason };
        let register = |word: Option<&str>| {
            word.and_then(|word| word.strip_prefix('r'))
                .and_then(|number| number.parse::<u8>().ok())
                .filter(|&n| usize::from(n) < REGISTERS)
                .ok_or_else(|| wrong("a register is written r0 … r31"))
        };
        let mut words = line.split_whitespace();
        let to = register(words.next())?;
        if words.next() != Some("=") {
            return Err(wrong("after its register comes ="));
        }
        let name = words.next().unwrap_or_default();
        let op = Op::ALL.into_iter().find(|op| op.name() == name).ok_or_else(|| wrong("no such operation"))?;
        let mut instruction = Self { op, to, from: [0; 3], constant: 0.0 };
        if op == Op::Constant {
            let number = words.next().and_then(|word| word.parse().ok());
            instruction.constant = number.ok_or_else(|| wrong("a constant needs a number"))?;
        }
        for from in &mut instruction.from[..op.operands()] {
            *from = register(words.next())?;
        }
        if words.next().is_some() { Err(wrong("it has too many operands")) } else { Ok(instruction) }
    }
}

#[cfg(test)]
mod tests;
