//! From the values of an expression to a program.

use super::{Instruction, Op, Program, ProgramError, REGISTERS};

/// A value of the expression: what an operation of the builder gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Value(usize);

/// Takes an expression operation by operation, each value before those that are made of it.
#[derive(Debug, Default)]
pub struct ProgramBuilder {
    nodes: Vec<Node>,
}

/// An operation on earlier values.
#[derive(Clone, Copy, Debug)]
struct Node {
    op: Op,
    operands: [Value; 3],
    constant: f64,
}

impl Node {
    fn operands(&self) -> &[Value] {
        &self.operands[..self.op.operands()]
    }

    /// Whether both are the same, bit for bit.
    fn is(&self, other: &Self) -> bool {
        let same = self.op == other.op && self.operands() == other.operands();
        same && self.constant.to_bits() == other.constant.to_bits()
    }
}

impl ProgramBuilder {
    /// A number.
    pub fn constant(&mut self, number: f64) -> Value {
        self.add(Node { op: Op::Constant, operands: [Value(0); 3], constant: number })
    }

    /// The number of a value that is the same for every cell.
    pub fn constant_of(&self, value: Value) -> Option<f64> {
        let node = &self.nodes[value.0];
        (node.op == Op::Constant).then_some(node.constant)
    }

    /// A field of the cell, or an operation on values. One on constants alone is carried out at once.
    ///
    /// # Panics
    /// If the number of operands is not the operation's.
    pub fn push(&mut self, op: Op, operands: &[Value]) -> Value {
        assert_eq!(operands.len(), op.operands(), "operands of {op:?}");
        let mut all = [Value(0); 3];
        all[..operands.len()].copy_from_slice(operands);
        if op.is_commutative() {
            all[..2].sort_unstable();
        }
        let constants: Vec<f64> = operands.iter().filter_map(|&value| self.constant_of(value)).collect();
        if !operands.is_empty() && constants.len() == operands.len() {
            let at = |n: usize| constants.get(n).copied().unwrap_or(0.0);
            return self.constant(op.apply(at(0), at(1), at(2)));
        }
        self.add(Node { op, operands: all, constant: 0.0 })
    }

    fn add(&mut self, node: Node) -> Value {
        let known = self.nodes.iter().position(|other| other.is(&node));
        Value(known.unwrap_or_else(|| {
            self.nodes.push(node);
            self.nodes.len() - 1
        }))
    }

    /// The program that computes `result`: values that it does not need are left out, and a register serves again once
    /// its value has been read for the last time.
    ///
    /// # Errors
    /// [`ProgramError::TooManyValues`] if the registers do not suffice.
    pub fn finish(self, result: Value) -> Result<Program, ProgramError> {
        // the last value that reads each, itself for one that none reads
        let mut last_read: Vec<Option<usize>> = vec![None; self.nodes.len()];
        last_read[result.0] = Some(result.0);
        for n in (0..=result.0).rev() {
            if last_read[n].is_some() {
                for operand in self.nodes[n].operands() {
                    last_read[operand.0].get_or_insert(n);
                }
            }
        }
        let mut holds: [Option<usize>; REGISTERS] = [None; REGISTERS];
        let mut register = vec![0u8; self.nodes.len()];
        let mut instructions = Vec::new();
        for (n, node) in self.nodes.iter().enumerate().filter(|(n, _)| last_read[*n].is_some()) {
            let mut from = [0; 3];
            for (from, operand) in from.iter_mut().zip(node.operands()) {
                *from = register[operand.0];
            }
            for held in &mut holds {
                if held.is_some_and(|value| last_read[value] <= Some(n)) {
                    *held = None;
                }
            }
            let free = holds.iter().position(Option::is_none).ok_or(ProgramError::TooManyValues)?;
            holds[free] = Some(n);
            register[n] = free as u8;
            instructions.push(Instruction { op: node.op, to: free as u8, from, constant: node.constant });
        }
        Ok(Program { instructions })
    }
}
