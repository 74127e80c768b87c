//! A program for a row of cells at a time.

use super::{Op, Program, REGISTERS};
use crate::layout::{DENSITY, ENERGY, ENTROPY, FIELDS, GROUP, GROUP_CELLS, MOMENTUM, cell};
use crate::operations::flag::FlagLevel;
use crate::operations::flag::stencil::{BlockFields, LANES, Lanes, dark_matter};
use crate::point::dual_energy::pressure;
use crate::real::Real;

/// The cells that a program looks at: one group.
pub(crate) struct Cells<'a, T> {
    /// `[6, 16, 16, 16]`, empty without gas
    pub(crate) group: &'a [T],
    /// Of all matter, `[16, 16, 16]`
    pub(crate) density: &'a [T],
    /// The group with its ghost cells, for programs that read neighbours.
    pub(crate) block: Option<&'a BlockFields<T>>,
    /// Of the group, in groups of its level.
    pub(crate) coordinate: [u32; 3],
    /// The level.
    pub(crate) level: &'a FlagLevel<T>,
}

/// The result of the program in row (j, k).
#[inline(always)]
pub(crate) fn evaluate<T: Real>(program: &Program, cells: &Cells<'_, T>, j: usize, k: usize) -> Lanes<f64> {
    let mut registers = [[0.0; LANES]; REGISTERS];
    let mut result = [0.0; LANES];
    for instruction in program.instructions() {
        let [x, y, z] = instruction.from.map(|register| registers[usize::from(register)]);
        // one loop for each operation, so that each vectorises
        macro_rules! by_operation {
            ($($op:ident)*) => {
                match instruction.op {
                    Op::Constant => [instruction.constant; LANES],
                    $(Op::$op => {
                        let mut out = [0.0; LANES];
                        for i in 0..LANES {
                            out[i] = Op::$op.apply(x[i], y[i], z[i]);
                        }
                        out
                    })*
                    field => cells.field(field, j, k),
                }
            };
        }
        result = by_operation!(
            Negate Not Absolute SquareRoot Logarithm Exponential Truncate Add Subtract Multiply Divide Remainder Power
            Minimum Maximum Less LessOrEqual Equal NotEqual And Or Select
        );
        registers[usize::from(instruction.to)] = result;
    }
    result
}

impl<T: Real> Cells<'_, T> {
    /// A field in row (j, k).
    #[inline(always)]
    fn field(&self, op: Op, j: usize, k: usize) -> Lanes<f64> {
        let value = |field: usize| {
            let row = &self.group[field * GROUP_CELLS + cell(0, j, k)..][..LANES];
            let mut wide = [0.0; LANES];
            for i in 0..LANES {
                wide[i] = row[i].as_f64();
            }
            wide
        };
        let velocity = |axis: usize| over(value(MOMENTUM + axis), value(DENSITY));
        let centre = |axis: usize, n: usize| {
            (f64::from(self.coordinate[axis]) * GROUP as f64 + n as f64 + 0.5) * self.level.cell_width
        };
        match op {
            Op::Density => value(DENSITY),
            Op::Overdensity => over(value(DENSITY), [self.level.mean_gas_density; LANES]),
            Op::MatterDensity => self.matter(j, k),
            Op::MatterOverdensity => over(self.matter(j, k), [self.level.mean_density; LANES]),
            Op::DarkMatterDensity => dark_matter(self.density, self.group, j, k).map(Real::as_f64),
            Op::Pressure => self.pressure(j, k),
            Op::VelocityX => velocity(0),
            Op::VelocityY => velocity(1),
            Op::VelocityZ => velocity(2),
            Op::Speed => {
                let [x, y, z] = [velocity(0), velocity(1), velocity(2)];
                let mut speed = [0.0; LANES];
                for i in 0..LANES {
                    speed[i] = (x[i] * x[i] + y[i] * y[i] + z[i] * z[i]).sqrt();
                }
                speed
            }
            Op::Energy => value(ENERGY),
            Op::Entropy => value(ENTROPY),
            Op::SoundSpeed => {
                let (pressure, density) = (self.pressure(j, k), value(DENSITY));
                let gamma = self.level.eos.gamma.as_f64();
                let mut speed = [0.0; LANES];
                for i in 0..LANES {
                    speed[i] = (gamma * pressure[i] / density[i]).sqrt();
                }
                speed
            }
            Op::DivergenceOfVelocity => {
                let block = self.block.expect("gathered for programs that read neighbours");
                block.divergence(j, k, self.level.cell_width)
            }
            Op::Level => [self.level.level as f64; LANES],
            Op::ScaleFactor => [self.level.a; LANES],
            Op::PositionX => std::array::from_fn(|i| centre(0, i)),
            Op::PositionY => [centre(1, j); LANES],
            Op::PositionZ => [centre(2, k); LANES],
            Op::CellWidth => [self.level.cell_width; LANES],
            _ => unreachable!("{op:?} is no field"),
        }
    }

    /// Density of all matter in row (j, k).
    #[inline(always)]
    fn matter(&self, j: usize, k: usize) -> Lanes<f64> {
        let row: &Lanes<T> = self.density[cell(0, j, k)..][..LANES].try_into().expect("a row");
        row.map(Real::as_f64)
    }

    /// Thermal pressure in row (j, k): what the solver takes, widened.
    #[inline(always)]
    fn pressure(&self, j: usize, k: usize) -> Lanes<f64> {
        let rows: [&[T]; FIELDS] = std::array::from_fn(|f| &self.group[f * GROUP_CELLS + cell(0, j, k)..][..LANES]);
        let mut out = [0.0; LANES];
        for i in 0..LANES {
            let u = [rows[0][i], rows[1][i], rows[2][i], rows[3][i], rows[4][i], rows[5][i]];
            out[i] = pressure(&u, &self.level.eos).as_f64();
        }
        out
    }
}

/// x / y, cell by cell.
#[inline(always)]
fn over(x: Lanes<f64>, y: Lanes<f64>) -> Lanes<f64> {
    let mut ratio = [0.0; LANES];
    for i in 0..LANES {
        ratio[i] = x[i] / y[i];
    }
    ratio
}
