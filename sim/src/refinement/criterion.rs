//! Refinement criteria as a run's parameters hold them, and what they ask of one level.

use crate::error::SimError;
use comove_kernels::Real;
use comove_kernels::flag::program::ProgramError;
use comove_kernels::flag::{self, FlagCriterion, FlagLevel, Region};
use serde::{Deserialize, Serialize};

/// A refinement criterion: a patch of level ℓ is refined where one of its cells meets it.
///
/// `thresholds` has one entry per level that may be refined; levels beyond the list are not. What is not a number meets
/// no criterion. Density, pressure and velocity are those of the code, comoving or plain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Criterion {
    /// Density above `thresholds[ℓ]` (in the mean density when comoving).
    DensityAbove {
        /// Per level.
        thresholds: Vec<f64>,
    },
    /// Density over the mean density of the box above `thresholds[ℓ]`.
    OverdensityAbove {
        /// Per level.
        thresholds: Vec<f64>,
    },
    /// More dark-matter particles in a cell than `thresholds[ℓ]`: by their mass there, as clouds in cells have it, over that
    /// of one.
    ParticlesAbove {
        /// Per level.
        thresholds: Vec<f64>,
    },
    /// Relative change across a cell at least `thresholds[ℓ]` (paper, section 4.2).
    GradientAbove {
        /// Of which quantity.
        of: Quantity,
        /// Per level.
        thresholds: Vec<f64>,
    },
    /// Löhner's estimator above `thresholds[ℓ]`.
    LohnerAbove {
        /// Of which quantity.
        of: Quantity,
        /// Per level, between 0 and 1.
        thresholds: Vec<f64>,
        /// Weight of the filter against ripples.
        filter: f64,
    },
    /// Jeans length shorter than `thresholds[ℓ]` cells.
    JeansCellsBelow {
        /// Per level.
        thresholds: Vec<f64>,
    },
    /// Inside a box, on the levels below `level`.
    InsideBox {
        /// Lower corner, code length.
        min: [f64; 3],
        /// Upper corner, code length.
        max: [f64; 3],
        /// The level that the box is refined to.
        level: u8,
    },
    /// Inside a ball, on the levels below `level`.
    InsideBall {
        /// Its centre, code length.
        center: [f64; 3],
        /// Code length.
        radius: f64,
        /// The level that the ball is refined to.
        level: u8,
    },
    /// An expression over the cell's fields holds.
    Where {
        /// The expression, compiled.
        program: Program,
    },
}

/// What a gradient or Löhner's estimator looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Quantity {
    /// Mass density.
    Density,
    /// Thermal pressure.
    Pressure,
    /// Each velocity component, compared to |v| + c_s.
    Velocity,
}

/// A compiled expression; serialised as its lines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(into = "Vec<String>", try_from = "Vec<String>")]
pub struct Program(pub flag::Program);

impl From<Program> for Vec<String> {
    fn from(program: Program) -> Self {
        program.0.lines()
    }
}

impl TryFrom<Vec<String>> for Program {
    type Error = ProgramError;

    fn try_from(lines: Vec<String>) -> Result<Self, ProgramError> {
        flag::Program::from_lines(&lines).map(Self)
    }
}

impl From<Quantity> for flag::Quantity {
    fn from(quantity: Quantity) -> Self {
        match quantity {
            Quantity::Density => Self::Density,
            Quantity::Pressure => Self::Pressure,
            Quantity::Velocity => Self::Velocity,
        }
    }
}

impl Criterion {
    /// What it requires of cells of a level; `None` where it requires nothing.
    ///
    /// * `particle_mass`: of dark matter, code units
    pub fn on<T: Real>(&self, level: &FlagLevel<T>, particle_mass: f64) -> Option<FlagCriterion<T>> {
        let of_level = |thresholds: &[f64]| thresholds.get(level.level).copied();
        match self {
            Self::DensityAbove { thresholds } => {
                of_level(thresholds).map(|t| FlagCriterion::DensityAbove(T::from_f64(t)))
            }
            Self::OverdensityAbove { thresholds } => {
                of_level(thresholds).map(|t| FlagCriterion::DensityAbove(T::from_f64(t * level.mean_density)))
            }
            Self::ParticlesAbove { thresholds } => {
                let of_one = particle_mass / level.cell_width.powi(3);
                of_level(thresholds).map(|t| FlagCriterion::DarkMatterAbove(T::from_f64(t * of_one)))
            }
            Self::GradientAbove { of, thresholds } => of_level(thresholds)
                .map(|t| FlagCriterion::GradientAbove { of: (*of).into(), threshold: T::from_f64(t) }),
            Self::LohnerAbove { of, thresholds, filter } => of_level(thresholds).map(|t| FlagCriterion::LohnerAbove {
                of: (*of).into(),
                threshold: T::from_f64(t),
                filter: T::from_f64(*filter),
            }),
            Self::JeansCellsBelow { thresholds } => of_level(thresholds).map(FlagCriterion::JeansCellsBelow),
            Self::InsideBox { min, max, level: finest } => {
                let region = Region { min: *min, max: *max, radius: 0.0 };
                (level.level < usize::from(*finest)).then_some(FlagCriterion::Inside(region))
            }
            Self::InsideBall { center, radius, level: finest } => {
                let region = Region { min: *center, max: *center, radius: *radius };
                (level.level < usize::from(*finest)).then_some(FlagCriterion::Inside(region))
            }
            Self::Where { program } => Some(FlagCriterion::Where(program.0.clone())),
        }
    }

    /// Whether it looks at gas alone, and not at all matter or at a place.
    fn is_on_gas(&self) -> bool {
        match self {
            Self::GradientAbove { .. }
            | Self::LohnerAbove { .. }
            | Self::JeansCellsBelow { .. }
            | Self::Where { .. } => true,
            Self::DensityAbove { .. }
            | Self::OverdensityAbove { .. }
            | Self::ParticlesAbove { .. }
            | Self::InsideBox { .. }
            | Self::InsideBall { .. } => false,
        }
    }

    /// Checks that it can be met where there is no gas.
    ///
    /// # Errors
    /// [`SimError::Parameter`] naming `refine` and the criterion.
    pub(crate) fn check_without_gas(&self) -> Result<(), SimError> {
        let json = serde_json::to_value(self).expect("numbers and names");
        let name = json.as_object().and_then(|criterion| criterion.keys().next().cloned()).unwrap_or_default();
        let reason = "looks at gas, of which there is none: take overdensity_above, density_above or a region";
        SimError::require("refine", &name, !self.is_on_gas(), reason)
    }

    /// Whether it needs dark matter.
    pub fn counts_particles(&self) -> bool {
        matches!(self, Self::ParticlesAbove { .. })
    }

    /// Forgets what concerns levels from `max_level` on, which are never refined: it decides nothing and must not count
    /// in a fingerprint.
    pub fn truncate(&mut self, max_level: u8) {
        match self {
            Self::DensityAbove { thresholds }
            | Self::OverdensityAbove { thresholds }
            | Self::ParticlesAbove { thresholds }
            | Self::GradientAbove { thresholds, .. }
            | Self::LohnerAbove { thresholds, .. }
            | Self::JeansCellsBelow { thresholds } => thresholds.truncate(usize::from(max_level)),
            Self::InsideBox { level, .. } | Self::InsideBall { level, .. } => *level = (*level).min(max_level),
            Self::Where { .. } => {}
        }
    }

    /// Raises its thresholds by a factor: less is refined, or more where it is below 1.
    pub fn raise(&mut self, factor: f64) {
        match self {
            Self::DensityAbove { thresholds }
            | Self::OverdensityAbove { thresholds }
            | Self::ParticlesAbove { thresholds }
            | Self::GradientAbove { thresholds, .. }
            | Self::LohnerAbove { thresholds, .. } => thresholds.iter_mut().for_each(|t| *t *= factor),
            Self::JeansCellsBelow { thresholds } => thresholds.iter_mut().for_each(|t| *t /= factor),
            Self::InsideBox { .. } | Self::InsideBall { .. } | Self::Where { .. } => {}
        }
    }

    /// Checks the numbers; `gravity`: whether the run has any.
    ///
    /// # Errors
    /// [`SimError::Parameter`] naming `refine`, the criterion and the number.
    pub fn check(&self, gravity: bool) -> Result<(), SimError> {
        let require = |value: f64, good: bool, reason: &str| SimError::require("refine", &value, good, reason);
        let all = |thresholds: &[f64], good: &dyn Fn(f64) -> bool, reason: &str| {
            thresholds.iter().try_for_each(|&t| require(t, t.is_finite() && good(t), reason))
        };
        let box_of_points =
            |points: &[f64], reason: &str| points.iter().try_for_each(|&x| require(x, x.is_finite(), reason));
        match self {
            // a threshold of 0 refines everything
            Self::DensityAbove { thresholds } => all(thresholds, &|t| t >= 0.0, "a density must not be negative"),
            Self::OverdensityAbove { thresholds } => {
                all(thresholds, &|t| t >= 0.0, "an overdensity must not be negative")
            }
            Self::ParticlesAbove { thresholds } => {
                all(thresholds, &|t| t >= 0.0, "a number of particles must not be negative")
            }
            Self::GradientAbove { thresholds, .. } => {
                all(thresholds, &|t| t > 0.0, "a relative change across a cell must be positive")
            }
            Self::LohnerAbove { thresholds, filter, .. } => {
                all(thresholds, &|t| t > 0.0 && t < 1.0, "Löhner's estimator lies between 0 and 1")?;
                let reason = "the filter of Löhner's estimator must not be negative (0.01 is usual)";
                require(*filter, *filter >= 0.0 && filter.is_finite(), reason)
            }
            Self::JeansCellsBelow { thresholds } => {
                let reason = "needs gas that attracts itself: set gravity: true";
                SimError::require("refine", &"jeans_cells_below", gravity, reason)?;
                all(thresholds, &|t| t > 0.0, "a number of cells must be positive")
            }
            Self::InsideBox { min, max, .. } => {
                box_of_points(&[*min, *max].concat(), "a region's corners must be finite")?;
                (0..3).try_for_each(|a| require(max[a], max[a] > min[a], "a region's max must lie beyond its min"))
            }
            Self::InsideBall { center, radius, .. } => {
                box_of_points(center, "a region's center must be finite")?;
                require(*radius, *radius > 0.0 && radius.is_finite(), "a region's radius must be positive")
            }
            Self::Where { .. } => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters::RunParameters;

    fn every_kind() -> Vec<Criterion> {
        let program = ["r0 = density", "r1 = constant 8.0", "r0 = less r1 r0"].map(String::from).to_vec();
        vec![
            Criterion::DensityAbove { thresholds: vec![8.0, 64.0, 512.0] },
            Criterion::OverdensityAbove { thresholds: vec![8.0, 64.0, 512.0] },
            Criterion::ParticlesAbove { thresholds: vec![8.0, 8.0, 16.0] },
            Criterion::GradientAbove { of: Quantity::Pressure, thresholds: vec![1.0, 0.5, 0.25] },
            Criterion::LohnerAbove { of: Quantity::Velocity, thresholds: vec![0.8, 0.8, 0.1], filter: 0.01 },
            Criterion::JeansCellsBelow { thresholds: vec![4.0, 8.0, 16.0] },
            Criterion::InsideBox { min: [0.0, 0.1, -1.0], max: [0.5, 0.25, 2.0], level: 3 },
            Criterion::InsideBall { center: [0.5; 3], radius: 0.1, level: 3 },
            Criterion::Where { program: program.try_into().unwrap() },
        ]
    }

    #[test]
    fn criteria_read_back_from_json_bit_for_bit() {
        let criteria = every_kind();
        let text = serde_json::to_string(&criteria).unwrap();
        assert!(text.contains(r#"{"density_above":{"thresholds":[8.0,64.0,512.0]}}"#), "{text}");
        assert!(text.contains(r#"{"where":{"program":["r0 = density","r1 = constant 8.0","r0 = less r1 r0"]}}"#));
        assert_eq!(serde_json::from_str::<Vec<Criterion>>(&text).unwrap(), criteria);
        let broken = r#"{"where":{"program":["r0 = less r1 r0"]}}"#;
        assert!(serde_json::from_str::<Criterion>(broken).unwrap_err().to_string().contains("r0 = less r1 r0"));
    }

    #[test]
    fn levels_that_are_never_refined_do_not_count() {
        for (full, shorter) in every_kind().into_iter().zip(every_kind()) {
            let mut full = full;
            full.truncate(3);
            assert_eq!(full, shorter);
            full.truncate(1);
            assert_eq!(full == shorter, matches!(full, Criterion::Where { .. }));
        }
    }

    #[test]
    fn numbers_that_no_run_can_use_are_refused_by_name() {
        let good = RunParameters { max_level: 3, refine: every_kind(), ..RunParameters::default() };
        assert!(good.check().is_ok());
        let refused = [
            (Criterion::DensityAbove { thresholds: vec![8.0, f64::NAN] }, "refine = NaN: a density"),
            (
                Criterion::GradientAbove { of: Quantity::Density, thresholds: vec![0.0] },
                "refine = 0: a relative change",
            ),
            (Criterion::LohnerAbove { of: Quantity::Density, thresholds: vec![1.5], filter: 0.01 }, "refine = 1.5: L"),
            (Criterion::InsideBall { center: [0.5; 3], radius: -1.0, level: 1 }, "refine = -1: a region's radius"),
            (Criterion::InsideBox { min: [0.0; 3], max: [1.0, 0.0, 1.0], level: 1 }, "refine = 0: a region's max"),
        ];
        for (criterion, message) in refused {
            let parameters = RunParameters { refine: vec![criterion], ..good.clone() };
            let error = parameters.check().unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
        let weightless = RunParameters { gravity: false, ..good };
        assert!(weightless.check().unwrap_err().to_string().contains("set gravity: true"));
    }
}
