//! Refinement criteria as a run's parameters hold them, and their conditions on the cells of one level.

use crate::error::SimError;
use comove_kernels::Real;
use comove_kernels::flag::program::{Op, ProgramError};
use comove_kernels::flag::{self, Combination, FlagCriterion, FlagLevel, Region};
use comove_kernels::point::particle::WeightUnit;
use serde::{Deserialize, Serialize};

/// Combinations within each other at most.
const MAX_NESTING: usize = 12;

/// A refinement criterion: a patch of level ℓ is refined where one of its cells meets it.
///
/// `thresholds` has one entry per level that may be refined; on levels beyond the list the criterion is met nowhere. A value
/// that is not a number meets no criterion. Density, pressure and velocity are those of the code, comoving or plain.
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
        /// The expression as the recipe has it, for messages: not part of a run's parameters.
        #[serde(default, skip_serializing)]
        source: String,
    },
    /// Where a cell meets all of these.
    All(Vec<Criterion>),
    /// Where a cell meets at least one of these.
    Any(Vec<Criterion>),
    /// Where a cell does not meet this.
    Not(Box<Criterion>),
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

/// How the particles in a cell are counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ParticleCount {
    /// By the density of dark matter: all have this mass, code units.
    OfMass(f64),
    /// Where refinement does not follow all, by the deposits of those that it follows, in this unit.
    Followed(WeightUnit),
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
    /// Its condition on cells of a level; `None` where no cell can meet it.
    ///
    /// * `particles`: how they are counted, if there are some
    /// * `factor`: by which thresholds are raised: above 1 no more cells meet it than before. So within `not`, whose
    ///   criterion is to be met by no fewer cells, thresholds are divided by it.
    pub fn on<T: Real>(
        &self,
        level: &FlagLevel<T>,
        particles: Option<ParticleCount>,
        factor: f64,
    ) -> Option<Combination<T>> {
        let of_level = |thresholds: &[f64]| thresholds.get(level.level).copied();
        let criterion = match self {
            Self::All(all) => {
                let all: Option<Vec<_>> = all.iter().map(|one| one.on(level, particles, factor)).collect();
                return Combination::all(all?);
            }
            Self::Any(any) => {
                return Combination::any(any.iter().filter_map(|one| one.on(level, particles, factor)));
            }
            Self::Not(other) => {
                let other = other.on(level, particles, 1.0 / factor);
                return Some(other.map_or_else(Combination::everywhere, Combination::complement));
            }
            Self::DensityAbove { thresholds } => {
                of_level(thresholds).map(|t| FlagCriterion::DensityAbove(T::from_f64(t)))
            }
            Self::OverdensityAbove { thresholds } => {
                of_level(thresholds).map(|t| FlagCriterion::DensityAbove(T::from_f64(t * level.mean_density)))
            }
            Self::ParticlesAbove { thresholds } => {
                let particles = particles?;
                of_level(thresholds).map(|t| match particles {
                    ParticleCount::OfMass(mass) => {
                        let of_one = mass / level.cell_width.powi(3);
                        FlagCriterion::DarkMatterAbove(T::from_f64(t * of_one))
                    }
                    ParticleCount::Followed(unit) => FlagCriterion::FollowedAbove(T::from_f64(t * unit.whole() as f64)),
                })
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
            Self::Where { program, .. } => Some(FlagCriterion::Where(program.0.clone())),
        };
        criterion.map(|criterion| criterion.raised(factor).into())
    }

    /// The criteria that a combination joins; none of a criterion on its own.
    fn joined(&self) -> &[Self] {
        match self {
            Self::All(all) => all,
            Self::Any(any) => any,
            Self::Not(other) => std::slice::from_ref(&**other),
            _ => &[],
        }
    }

    fn joined_mut(&mut self) -> &mut [Self] {
        match self {
            Self::All(all) => all,
            Self::Any(any) => any,
            Self::Not(other) => std::slice::from_mut(&mut **other),
            _ => &mut [],
        }
    }

    /// Calls `each` with the criterion, or with each that it joins, and its place: a JSON pointer that begins with `place`.
    pub fn for_each<'a>(&'a self, place: &str, each: &mut dyn FnMut(&str, &'a Self)) {
        match self {
            Self::All(several) | Self::Any(several) => {
                let name = if matches!(self, Self::All(_)) { "all" } else { "any" };
                several.iter().enumerate().for_each(|(n, one)| one.for_each(&format!("{place}/{name}/{n}"), each));
            }
            Self::Not(other) => other.for_each(&format!("{place}/not"), each),
            one => each(place, one),
        }
    }

    /// Whether it reads the number of particles.
    pub fn counts_particles(&self) -> bool {
        matches!(self, Self::ParticlesAbove { .. }) || self.joined().iter().any(Self::counts_particles)
    }

    /// True if the number of particles is all that it reads of the state.
    pub(crate) fn only_counts_particles(&self) -> bool {
        let alone = matches!(self, Self::ParticlesAbove { .. } | Self::InsideBox { .. } | Self::InsideBall { .. });
        let joined = self.joined();
        alone || !joined.is_empty() && joined.iter().all(Self::only_counts_particles)
    }

    /// Checks that each criterion can be met by gas, dark matter or both, whichever there are.
    ///
    /// # Errors
    /// [`SimError::Parameter`] naming `refine` and the criterion.
    pub(crate) fn check_species(&self, gas: bool, dark_matter: bool) -> Result<(), SimError> {
        self.joined().iter().try_for_each(|one| one.check_species(gas, dark_matter))?;
        let needs_gas = match self {
            Self::GradientAbove { .. } | Self::LohnerAbove { .. } | Self::JeansCellsBelow { .. } => true,
            Self::Where { program, .. } => program.0.reads(Op::is_of_gas),
            _ => false,
        };
        let needs_dark_matter = match self {
            Self::ParticlesAbove { .. } => true,
            Self::Where { program, .. } => program.0.reads(|op| op == Op::DarkMatterDensity),
            _ => false,
        };
        let reason = match self {
            Self::Where { .. } => {
                "needs gas, and the run has none; use c.matter_density (all matter) or c.dark_matter_density"
            }
            _ => "needs gas, and the run has none; use overdensity_above, density_above, particles_above or a region",
        };
        SimError::require("refine", &self.name(), gas || !needs_gas, reason)?;
        let reason = match self {
            Self::Where { .. } => {
                "needs dark matter, and the run has none; use c.matter_density (all matter), or set dark_matter: \
                 true in the initial condition"
            }
            _ => {
                "needs dark matter, and the run has none; use overdensity_above or mass_above, or set dark_matter: \
                 true in the initial condition"
            }
        };
        SimError::require("refine", &self.name(), dark_matter || !needs_dark_matter, reason)
    }

    /// Its name in a run's parameters; of a region, and of an expression whose text is known, the call in a recipe.
    fn name(&self) -> String {
        match self {
            Self::Where { source, .. } if !source.is_empty() => format!("refine_where({source})"),
            Self::InsideBox { min, max, level } => {
                format!("region(#{{ min: {min:?}, max: {max:?}, level: {level} }})")
            }
            Self::InsideBall { center, radius, level } => {
                format!("region(#{{ center: {center:?}, radius: {radius}, level: {level} }})")
            }
            _ => {
                let json = serde_json::to_value(self).expect("numbers and names");
                json.as_object().and_then(|criterion| criterion.keys().next().cloned()).unwrap_or_default()
            }
        }
    }

    /// Checks that regions share volume with a box, or with its nearest images along periodic axes, which [`Region`] counts.
    ///
    /// * `lengths`: of the box along x, y, z, code length
    /// * `periodic`: axes along which it is periodic
    ///
    /// # Errors
    /// [`SimError::Parameter`] naming `refine`, the region and the axis along which it is farthest from the box.
    pub(crate) fn check_places(&self, lengths: [f64; 3], periodic: [bool; 3]) -> Result<(), SimError> {
        self.joined().iter().try_for_each(|one| one.check_places(lengths, periodic))?;
        let (min, max) = match self {
            Self::InsideBox { min, max, .. } => (*min, *max),
            Self::InsideBall { center, .. } => (*center, *center),
            _ => return Ok(()),
        };
        // negative where the region, or the centre of a ball, reaches into the box
        let gaps: [f64; 3] = std::array::from_fn(|axis| {
            let length = lengths[axis];
            let images = if periodic[axis] { -1..=1 } else { 0..=0 };
            let gap = |image: i32| {
                let shift = f64::from(image) * length;
                (min[axis] + shift - length).max(-(max[axis] + shift))
            };
            images.map(gap).fold(f64::INFINITY, f64::min)
        });
        let farthest = (0..3).max_by(|&x, &y| gaps[x].total_cmp(&gaps[y])).expect("three axes");
        let (along, length) = (["x", "y", "z"][farthest], lengths[farthest]);
        let allowed = match periodic[farthest] {
            true => format!("[{}, {}] (the box and its periodic images)", -length, 2.0 * length),
            false => format!("[0, {length}]"),
        };
        let (fits, reason) = match self {
            Self::InsideBall { radius, .. } => {
                let distance = gaps.iter().map(|gap| gap.max(0.0).powi(2)).sum::<f64>().sqrt();
                let remedy =
                    if periodic[farthest] { format!("take {along} % {length}") } else { "move it there".into() };
                let reason = format!(
                    "lies outside the box by its radius or more: its center along {along} should be in {allowed}; {remedy}"
                );
                (distance < *radius, reason)
            }
            _ => {
                let remedy = match periodic[farthest] {
                    true => format!("shift both corners until the lower one is at {along} % {length}"),
                    false => "move it there".into(),
                };
                let reason = format!("lies outside the box: along {along} it must overlap {allowed}; {remedy}");
                (gaps.iter().all(|gap| *gap < 0.0), reason)
            }
        };
        SimError::require("refine", &self.name(), fits, reason)
    }

    /// Lets expressions on all matter look at the gas, which is all matter.
    pub fn for_gas_alone(&mut self) {
        self.joined_mut().iter_mut().for_each(Self::for_gas_alone);
        if let Self::Where { program, .. } = self {
            program.0 = program.0.clone().of_gas_alone();
        }
    }

    /// Forgets what concerns levels from `max_level` on, which are never refined: it decides nothing and must not count
    /// in a fingerprint.
    pub fn truncate(&mut self, max_level: u8) {
        self.joined_mut().iter_mut().for_each(|one| one.truncate(max_level));
        match self {
            Self::DensityAbove { thresholds }
            | Self::OverdensityAbove { thresholds }
            | Self::ParticlesAbove { thresholds }
            | Self::GradientAbove { thresholds, .. }
            | Self::LohnerAbove { thresholds, .. }
            | Self::JeansCellsBelow { thresholds } => thresholds.truncate(usize::from(max_level)),
            Self::InsideBox { level, .. } | Self::InsideBall { level, .. } => *level = (*level).min(max_level),
            Self::Where { .. } | Self::All(_) | Self::Any(_) | Self::Not(_) => {}
        }
    }

    /// Raises its thresholds by a factor, within `not` by its inverse: less is refined, or more where it is below 1.
    pub fn raise(&mut self, factor: f64) {
        match self {
            Self::DensityAbove { thresholds }
            | Self::OverdensityAbove { thresholds }
            | Self::ParticlesAbove { thresholds }
            | Self::GradientAbove { thresholds, .. }
            | Self::LohnerAbove { thresholds, .. } => thresholds.iter_mut().for_each(|t| *t *= factor),
            Self::JeansCellsBelow { thresholds } => thresholds.iter_mut().for_each(|t| *t /= factor),
            Self::InsideBox { .. } | Self::InsideBall { .. } | Self::Where { .. } => {}
            Self::All(several) | Self::Any(several) => several.iter_mut().for_each(|one| one.raise(factor)),
            Self::Not(other) => other.raise(1.0 / factor),
        }
    }

    /// Checks the numbers; `gravity`: whether the run has any.
    ///
    /// # Errors
    /// [`SimError::Parameter`] naming `refine`, the criterion and the number.
    pub fn check(&self, gravity: bool) -> Result<(), SimError> {
        self.check_within(gravity, MAX_NESTING)
    }

    fn check_within(&self, gravity: bool, nesting: usize) -> Result<(), SimError> {
        let deep = !self.joined().is_empty();
        let reason = format!("all, any and not may be nested up to {MAX_NESTING} times");
        SimError::require("refine", &self.name(), !deep || nesting > 0, reason)?;
        self.joined().iter().try_for_each(|one| one.check_within(gravity, nesting.saturating_sub(1)))?;
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
                all(thresholds, &|t| t > 0.0 && t < 1.0, "Löhner's estimator must lie between 0 and 1")?;
                let reason = "filter must not be negative; 0.01 is usual";
                require(*filter, *filter >= 0.0 && filter.is_finite(), reason)
            }
            Self::JeansCellsBelow { thresholds } => {
                let reason = "needs the gravity of the gas; set gravity: true";
                SimError::require("refine", &"jeans_cells_below", gravity, reason)?;
                all(thresholds, &|t| t > 0.0, "a number of cells must be positive")
            }
            Self::InsideBox { min, max, .. } => {
                box_of_points(&[*min, *max].concat(), "a region's corners must be finite")?;
                (0..3).try_for_each(|a| {
                    require(max[a], max[a] > min[a], "a region's max must exceed its min along every axis")
                })
            }
            Self::InsideBall { center, radius, .. } => {
                box_of_points(center, "a region's center must be finite")?;
                require(*radius, *radius > 0.0 && radius.is_finite(), "a region's radius must be positive")
            }
            Self::All(several) | Self::Any(several) => {
                SimError::require("refine", &self.name(), !several.is_empty(), "has no criteria; name at least one")
            }
            Self::Where { .. } | Self::Not(_) => Ok(()),
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
            Criterion::Where { program: program.try_into().unwrap(), source: String::new() },
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
        let joined = |criteria: Vec<Criterion>| Criterion::Not(Box::new(Criterion::All(criteria)));
        let (mut all, mut each) = (joined(every_kind()), every_kind());
        all.truncate(1);
        each.iter_mut().for_each(|one| one.truncate(1));
        assert_eq!(all, joined(each));
    }

    #[test]
    fn particles_alone_are_counted_by_few() {
        let found: Vec<usize> =
            (0..).zip(every_kind()).filter(|(_, one)| one.only_counts_particles()).map(|(n, _)| n).collect();
        assert_eq!(found, [2, 6, 7]);
        let joined = |kinds: &[usize]| {
            let some: Vec<Criterion> = kinds.iter().map(|&n| every_kind().swap_remove(n)).collect();
            [Criterion::All(some.clone()), Criterion::Not(Box::new(Criterion::Any(some)))]
                .map(|one| one.only_counts_particles())
        };
        assert_eq!((joined(&[2, 7]), joined(&[2, 1])), ([true; 2], [false; 2]));
    }

    fn level(number: usize) -> FlagLevel<f64> {
        FlagLevel {
            level: number,
            cells: [16; 3],
            periodic: [true; 3],
            cell_width: 1.0,
            a: 1.0,
            four_pi_g: 1.0,
            mean_density: 1.0,
            mean_gas_density: 1.0,
            eos: comove_kernels::Eos::new(5.0 / 3.0),
        }
    }

    /// Beyond its list a criterion is met nowhere, and `not` of it everywhere.
    #[test]
    fn combinations_beyond_the_lists_of_their_criteria() {
        let dense = || Criterion::DensityAbove { thresholds: vec![8.0] };
        let ball = || Criterion::InsideBall { center: [0.5; 3], radius: 0.1, level: 3 };
        let on = |criterion: Criterion, number| criterion.on(&level(number), None, 1.0);
        assert_eq!(on(Criterion::All(vec![dense(), ball()]), 1), None);
        assert_eq!(on(Criterion::Any(vec![dense(), ball()]), 1), on(ball(), 1));
        assert_eq!(on(Criterion::Any(vec![dense(), ball()]), 3), None);
        assert_eq!(on(Criterion::Not(Box::new(dense())), 1), Some(Combination::everywhere()));
        let inside = [dense(), ball()].map(|one| on(one, 0).unwrap());
        assert_eq!(on(Criterion::All(vec![dense(), ball()]), 0), Combination::all(inside));
    }

    /// A raised combination is that of raised criteria, those within `not` lowered.
    #[test]
    fn within_not_thresholds_are_lowered() {
        let dense = |t: f64| Criterion::DensityAbove { thresholds: vec![t] };
        let unstable = |cells: f64| Criterion::JeansCellsBelow { thresholds: vec![cells] };
        let joined = |a: f64, b: f64, c: f64| {
            let inner = Criterion::Any(vec![dense(b), Criterion::Not(Box::new(unstable(c)))]);
            Criterion::All(vec![dense(a), Criterion::Not(Box::new(inner))])
        };
        let mut raised = joined(8.0, 32.0, 4.0);
        raised.raise(2.0);
        assert_eq!(raised, joined(16.0, 16.0, 2.0));
        assert_eq!(joined(8.0, 32.0, 4.0).on(&level(0), None, 2.0), raised.on(&level(0), None, 1.0));
    }

    #[test]
    fn criteria_need_their_species() {
        let program = |line: &str| vec![line.to_owned()].try_into().unwrap();
        let expression = |line| Criterion::Where { program: program(line), source: "|c| …".into() };
        let within = |one: Criterion| Criterion::All(vec![Criterion::Not(Box::new(one))]);
        let (gas, both, dark_matter) = ((true, false), (true, true), (false, true));
        for (criterion, fits) in [
            (expression("r0 = density"), [true, true, false]),
            (expression("r0 = matter_density"), [true; 3]),
            (expression("r0 = dark_matter_density"), [false, true, true]),
            (Criterion::ParticlesAbove { thresholds: vec![8.0] }, [false, true, true]),
            (Criterion::JeansCellsBelow { thresholds: vec![8.0] }, [true, true, false]),
            (Criterion::DensityAbove { thresholds: vec![8.0] }, [true; 3]),
        ] {
            let found = |one: &Criterion| [gas, both, dark_matter].map(|(g, d)| one.check_species(g, d).is_ok());
            assert_eq!(found(&criterion), fits, "{criterion:?}");
            assert_eq!(found(&within(criterion)), fits);
        }
        let error = expression("r0 = density").check_species(false, true).unwrap_err().to_string();
        let message = "refine = refine_where(|c| …): needs gas, and the run has none; use c.matter_density";
        assert!(error.starts_with(message), "{error}");
        let error = expression("r0 = dark_matter_density").check_species(true, false).unwrap_err().to_string();
        let message = "refine = refine_where(|c| …): needs dark matter, and the run has none; use c.matter_density";
        assert!(error.starts_with(message), "{error}");
    }

    /// A region is refused where it shares no volume with the box, the images of which count along x and z.
    #[test]
    fn regions_have_their_places_in_the_box() {
        let ball = |center: [f64; 3]| Criterion::InsideBall { center, radius: 0.5, level: 1 };
        let along = |axis: usize, low: f64, high: f64| {
            let (mut min, mut max) = ([0.25; 3], [0.75; 3]);
            (min[axis], max[axis]) = (low, high);
            Criterion::InsideBox { min, max, level: 1 }
        };
        let found = |one: Criterion| {
            one.check_places([2.0, 2.0, 4.0], [true, false, true]).err().map(|error| error.to_string())
        };
        for inside in [
            // periodic
            ball([-0.5, 1.0, 1.0]),
            ball([-2.4, 1.0, 1.0]),
            ball([4.3, 1.0, 8.3]),
            along(2, -3.0, -1.0),
            along(2, -4.5, -3.9),
            along(2, 4.0, 5.0),
            along(2, 7.9, 9.0),
            along(2, -100.0, 100.0),
            // isolated
            ball([1.0, -0.4, 1.0]),
            ball([1.0, 2.4, 1.0]),
            ball([-2.3, 2.3, 1.0]),
            along(1, -1.0, 0.5),
            along(1, 1.5, 2.5),
        ] {
            assert_eq!(found(inside.clone()), None, "{inside:?}");
        }
        for (outside, message) in [
            (
                ball([1.0, 1.0, 9.0]),
                "refine = region(#{ center: [1.0, 1.0, 9.0], radius: 0.5, level: 1 }): lies outside the box by its radius \
                 or more: its center along z should be in [-4, 8] (the box and its periodic images); take z % 4",
            ),
            (
                ball([-2.5, 1.0, 1.0]),
                "its center along x should be in [-2, 4] (the box and its periodic images); take x % 2",
            ),
            (ball([1.0, -0.5, 1.0]), "its center along y should be in [0, 2]; move it there"),
            // either axis alone would do
            (ball([-2.4, 2.45, 1.0]), "its center along y should be in [0, 2]; move it there"),
            (
                along(0, -4.0, -2.0),
                "refine = region(#{ min: [-4.0, 0.25, 0.25], max: [-2.0, 0.75, 0.75], level: 1 }): lies outside the box: \
                 along x it must overlap [-2, 4] (the box and its periodic images); shift both corners until the \
                 lower one is at x % 2",
            ),
            (along(2, 8.0, 9.0), "along z it must overlap [-4, 8] (the box"),
            (along(1, -1.0, 0.0), "lies outside the box: along y it must overlap [0, 2]; move it there"),
            (along(1, 2.0, 2.5), "lies outside the box: along y it must overlap [0, 2]; move it there"),
        ] {
            for refused in [outside.clone(), Criterion::Not(Box::new(outside))] {
                let error = found(refused).unwrap_or_default();
                assert!(error.contains(message), "{error}");
            }
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
            (Criterion::All(Vec::new()), "refine = all: has no criteria"),
            (
                Criterion::Not(Box::new(Criterion::DensityAbove { thresholds: vec![-1.0] })),
                "refine = -1: a density must not",
            ),
            (
                (0..13).fold(every_kind().remove(0), |inner, _| Criterion::Not(Box::new(inner))),
                "refine = not: all, any and not may be nested up to 12 times",
            ),
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
