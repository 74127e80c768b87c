//! Masses of particles: 8ᶜ times the lightest one's, c = 0 to 7, as on lattices whose spacing doubles from one to the next.

use super::Section;
use super::input::{Column, Input};
use super::quantity::Quantity;
use crate::error::IcError;
use crate::format::hdf5_input::pieces;
use comove_sim::kernels::point::particle::{CLASSES, mass_of_class};
use std::ops::Range;

/// Relative difference that is accepted of masses of one class.
const SAME_MASS: f64 = 1e-5;

/// Powers of 8 between the mass of the first particle and that of another, −7 to 7.
const POWERS: usize = 2 * CLASSES - 1;

/// Numbers of particles by power of 8 of their mass over the first particle's.
pub(super) type Counts = [u64; POWERS];

/// Masses of all particles, in the unit of the file.
pub(super) struct Masses {
    first: f64,
    /// Mass of the first particle over that of the lightest, as a power of 8.
    above_lightest: usize,
    /// Mass of all particles over that of the lightest.
    pub total: u64,
}

/// Mass classes of a section's particles.
pub(super) enum Classes<'i> {
    Same(usize),
    Each(Column<'i>),
}

impl Masses {
    /// Takes the mass of the first particle as the unit of [`Masses::count`].
    pub(super) fn of_first(sections: &[Section]) -> Result<Self, IcError> {
        let section = sections.iter().find(|section| section.count > 0).expect("there are particles");
        let first = match section.table_mass {
            Some(mass) => mass,
            None => {
                let input = Input::open(&section.path)?;
                section.masses(&input)?.reals(0..1)?[0]
            }
        };
        if !(first > 0.0 && first.is_finite()) {
            let input = Input::open(&section.path)?;
            return Err(input.content(format!("{}: must be positive", section.with_mass(&input, first, 0))));
        }
        Ok(Self { first, above_lightest: 0, total: 0 })
    }

    /// Adds rows of a section.
    pub(super) fn count(&self, counts: &mut Counts, section: &Section, rows: Range<usize>) -> Result<(), IcError> {
        let input = Input::open(&section.path)?;
        if let Some(mass) = section.table_mass {
            counts[self.power(&input, section, mass, 0)?] += rows.len() as u64;
            return Ok(());
        }
        let masses = section.masses(&input)?;
        for piece in pieces(rows) {
            for (row, mass) in piece.clone().zip(masses.reals(piece)?) {
                counts[self.power(&input, section, mass, row)?] += 1;
            }
        }
        Ok(())
    }

    /// Finds the lightest class.
    ///
    /// # Errors
    /// The reason why there is none.
    pub(super) fn settle(&mut self, counts: &Counts) -> Result<(), String> {
        let used = || (0..POWERS).filter(|&n| counts[n] > 0);
        let (lightest, heaviest) = (used().min().unwrap_or(0), used().max().unwrap_or(0));
        if heaviest - lightest >= CLASSES {
            let mass = |n: usize| self.first * 8f64.powi(n as i32 - (CLASSES as i32 - 1));
            return Err(format!(
                "masses of particles are {:e} to {:e}, 8^{} apart: expected at most 8⁷ apart; leave out levels of particles",
                mass(lightest),
                mass(heaviest),
                heaviest - lightest
            ));
        }
        self.above_lightest = (CLASSES - 1).saturating_sub(lightest);
        self.total = used().map(|n| counts[n].saturating_mul(mass_of_class(n - lightest).into())).sum();
        Ok(())
    }

    /// Mass of the lightest particle.
    pub(super) fn lightest(&self) -> f64 {
        self.first / f64::from(mass_of_class(self.above_lightest))
    }

    /// Mass classes of a section.
    pub(super) fn classes<'i>(&self, input: &'i Input, section: &Section) -> Result<Classes<'i>, IcError> {
        Ok(match section.table_mass {
            Some(mass) => Classes::Same(self.class(input, section, mass, 0)?),
            None => Classes::Each(section.masses(input)?),
        })
    }

    /// Mass classes of rows of a section.
    pub(super) fn of_rows(
        &self,
        input: &Input,
        section: &Section,
        classes: &Classes<'_>,
        rows: Range<usize>,
    ) -> Result<Vec<usize>, IcError> {
        match classes {
            Classes::Same(class) => Ok(vec![*class; rows.len()]),
            Classes::Each(masses) => {
                let found = masses.reals(rows.clone())?;
                rows.zip(found).map(|(row, mass)| self.class(input, section, mass, row)).collect()
            }
        }
    }

    fn class(&self, input: &Input, section: &Section, mass: f64, row: usize) -> Result<usize, IcError> {
        Ok(self.power(input, section, mass, row)? + self.above_lightest - (CLASSES - 1))
    }

    /// log₈ of a mass over the first particle's, plus 7.
    fn power(&self, input: &Input, section: &Section, mass: f64, row: usize) -> Result<usize, IcError> {
        let ratio = mass / self.first;
        let power = (ratio.log2() / 3.0).round();
        let most = (CLASSES - 1) as f64;
        // a mass that is no number differs as well
        if power.abs() <= most && (ratio / 8f64.powf(power) - 1.0).abs() <= SAME_MASS {
            return Ok((power + most) as usize);
        }
        Err(input.content(format!(
            "{}, {ratio:.6} times the {:e} of the first: expected masses 8ᶜ times the lightest, c = 0 to 7, to 10⁻⁵; \
             write levels of particles whose spacing doubles from one to the next",
            section.with_mass(input, mass, row),
            self.first
        )))
    }
}

impl Section {
    fn masses<'i>(&self, input: &'i Input) -> Result<Column<'i>, IcError> {
        input.column(Quantity::Masses, self.kind, self.count)
    }

    /// The statement or array that has the mass of a row, and the mass.
    fn with_mass(&self, input: &Input, mass: f64, row: usize) -> String {
        match self.table_mass {
            Some(_) => format!("{} is {mass:e}", input.table_entry(self.kind)),
            None => {
                format!("{} has {mass:e} for particle {row} (from 0)", input.name(Quantity::Masses, self.kind))
            }
        }
    }
}
