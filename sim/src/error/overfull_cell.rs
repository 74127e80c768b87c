//! A cell whose dark matter exceeds the range of its integer.

use comove_kernels::point::particle::{WeightUnit, mass_of_class};
use serde::{Deserialize, Serialize};

/// A cell whose deposits have exceeded 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct OverfullCell {
    /// Level of the cell.
    pub level: u8,
    /// Centre of the cell, code length.
    pub place: [f64; 3],
    /// Heaviest mass class of the run.
    pub class: usize,
}

impl std::fmt::Display for OverfullCell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { level, place: [x, y, z], class } = self;
        let unit = WeightUnit::for_heaviest(*class);
        let most = (1u128 << 64) / (u128::from(unit.whole()) * u128::from(mass_of_class(*class)));
        write!(f, "dark matter of a cell = more than {most} particles of mass class {class}")?;
        write!(f, ", at ({x}, {y}, {z}) on level {level}: use more root cells, or lighter particles in this region")
    }
}
