//! The operations of a program.

use crate::point::elementary;

/// Declares the operations with their names in a program's text and the number of their operands.
macro_rules! operations {
    ($($(#[$doc:meta])* $op:ident $name:literal $operands:literal,)*) => {
        /// What an instruction does.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Op {
            $($(#[$doc])* $op,)*
        }

        impl Op {
            /// Every operation.
            pub const ALL: [Self; [$($operands),*].len()] = [$(Self::$op),*];

            /// Its name in a program's text.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$op => $name,)* }
            }

            /// Registers that it reads.
            pub const fn operands(self) -> usize {
                match self { $(Self::$op => $operands,)* }
            }
        }
    };
}

operations! {
    /// Density of the gas, code units.
    Density "density" 0,
    /// Density of the gas over its box mean.
    Overdensity "overdensity" 0,
    /// Density of all matter, code units.
    MatterDensity "matter_density" 0,
    /// Density of all matter over its box mean.
    MatterOverdensity "matter_overdensity" 0,
    /// Density of dark matter, code units; 0 without.
    DarkMatterDensity "dark_matter_density" 0,
    /// Thermal pressure, code units.
    Pressure "pressure" 0,
    /// Velocity along x, code units.
    VelocityX "vx" 0,
    /// Velocity along y.
    VelocityY "vy" 0,
    /// Velocity along z.
    VelocityZ "vz" 0,
    /// Magnitude of the velocity, code units.
    Speed "speed" 0,
    /// Total energy density, kinetic included, code units.
    Energy "energy" 0,
    /// Entropy scalar P/ρ^(γ−1), code units.
    Entropy "entropy" 0,
    /// √(γP/ρ), code units.
    SoundSpeed "sound_speed" 0,
    /// ∂v_x/∂x + ∂v_y/∂y + ∂v_z/∂z by central differences, in code velocity over code length.
    DivergenceOfVelocity "div_v" 0,
    /// Refinement level.
    Level "level" 0,
    /// Scale factor; 1 in non-comoving coordinates.
    ScaleFactor "a" 0,
    /// Centre of the cell along x, code length.
    PositionX "x" 0,
    /// Centre of the cell along y.
    PositionY "y" 0,
    /// Centre of the cell along z.
    PositionZ "z" 0,
    /// Width of the cell, code length.
    CellWidth "h" 0,
    /// A number.
    Constant "constant" 0,
    /// −x.
    Negate "negate" 1,
    /// 1 − x: the opposite of a truth value.
    Not "not" 1,
    /// |x|.
    Absolute "abs" 1,
    /// √x; not a number for negative x.
    SquareRoot "sqrt" 1,
    /// Natural logarithm.
    Logarithm "ln" 1,
    /// e^x.
    Exponential "exp" 1,
    /// The whole number next to x on the side of zero.
    Truncate "truncate" 1,
    /// x + y.
    Add "add" 2,
    /// x − y.
    Subtract "subtract" 2,
    /// x y.
    Multiply "multiply" 2,
    /// x / y.
    Divide "divide" 2,
    /// What is left of x divided by y, with the sign of x.
    Remainder "remainder" 2,
    /// x^y.
    Power "power" 2,
    /// The smaller number.
    Minimum "min" 2,
    /// The larger number.
    Maximum "max" 2,
    /// x < y.
    Less "less" 2,
    /// x ≤ y.
    LessOrEqual "less_or_equal" 2,
    /// x = y.
    Equal "equal" 2,
    /// x ≠ y.
    NotEqual "not_equal" 2,
    /// Both truth values.
    And "and" 2,
    /// Either truth value.
    Or "or" 2,
    /// y where the truth value x holds, else z.
    Select "select" 3,
}

impl Op {
    /// Whether it reads the cell.
    pub const fn is_field(self) -> bool {
        self.operands() == 0 && !matches!(self, Self::Constant)
    }

    /// Whether it is a field of the gas.
    pub const fn is_of_gas(self) -> bool {
        matches!(
            self,
            Self::Density
                | Self::Overdensity
                | Self::Pressure
                | Self::VelocityX
                | Self::VelocityY
                | Self::VelocityZ
                | Self::Speed
                | Self::Energy
                | Self::Entropy
                | Self::SoundSpeed
                | Self::DivergenceOfVelocity
        )
    }

    /// Whether it is a field of all matter, or of dark matter, which is all matter less the gas.
    pub const fn is_of_matter(self) -> bool {
        matches!(self, Self::MatterDensity | Self::MatterOverdensity | Self::DarkMatterDensity)
    }

    /// Whether the order of the two operands does not matter, to the last bit.
    pub const fn is_commutative(self) -> bool {
        matches!(self, Self::Add | Self::Multiply | Self::Equal | Self::NotEqual | Self::And | Self::Or)
    }

    /// The result for one cell of an operation that is neither a field nor a constant (those give zero here).
    ///
    /// No comparison with what is not a number holds, [`Op::NotEqual`] among them, as in Rhai.
    #[inline(always)]
    pub fn apply(self, x: f64, y: f64, z: f64) -> f64 {
        let truth = |holds: bool| if holds { 1.0 } else { 0.0 };
        match self {
            Self::Negate => -x,
            Self::Not => 1.0 - x,
            Self::Absolute => x.abs(),
            Self::SquareRoot => x.sqrt(),
            Self::Logarithm => elementary::ln(x),
            Self::Exponential => elementary::exp(x),
            Self::Truncate => x.trunc(),
            Self::Add => x + y,
            Self::Subtract => x - y,
            Self::Multiply => x * y,
            Self::Divide => x / y,
            Self::Remainder => x % y,
            Self::Power => elementary::pow(x, y),
            Self::Minimum => {
                if x <= y {
                    x
                } else {
                    y
                }
            }
            Self::Maximum => {
                if x >= y {
                    x
                } else {
                    y
                }
            }
            Self::Less => truth(x < y),
            Self::LessOrEqual => truth(x <= y),
            Self::Equal => truth(x == y),
            Self::NotEqual => truth((x < y) | (x > y)),
            Self::And => x * y,
            Self::Or => {
                if x > y {
                    x
                } else {
                    y
                }
            }
            Self::Select => {
                if x > 0.0 {
                    y
                } else {
                    z
                }
            }
            _ => 0.0,
        }
    }
}
