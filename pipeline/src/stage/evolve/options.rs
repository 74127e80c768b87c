//! What a recipe may say in `evolve(IC, #{ … })` besides the run's own parameters.

use crate::moment::Moment;
use comove_sim::{RunParameters, SimError, StartFacts};
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;
use std::marker::PhantomData;
use std::num::NonZeroU32;

/// The options that only decide how long a run goes and what it writes: outside the fingerprint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Extent {
    /// Redshift at which a comoving run ends; there is always an output there.
    pub z_end: Option<f64>,
    /// Time at which a run in non-comoving coordinates ends; there is always an output there.
    pub t_end: Option<f64>,
    /// Outputs on the way.
    #[serde(default)]
    #[serde(deserialize_with = "from_map")]
    pub outputs: Outputs,
    /// Checkpoints on the way; there is always one before the last step.
    #[serde(default)]
    #[serde(deserialize_with = "from_map")]
    pub checkpoints: Checkpoints,
    /// For a run from a snapshot: start another trajectory there. A checkpoint is else continued bit for bit.
    #[serde(default)]
    pub branch: bool,
}

/// A structure of a map. A list is refused, which serde takes for the members in their order.
fn from_map<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<T, D::Error> {
    struct Members<T>(PhantomData<T>);
    impl<'de, T: Deserialize<'de>> Visitor<'de> for Members<T> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a map")
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
            T::deserialize(MapAccessDeserializer::new(map))
        }
    }
    deserializer.deserialize_map(Members(PhantomData))
}

/// The names of [`Extent`]'s options.
pub(crate) const EXTENT: [&str; 5] = ["z_end", "t_end", "outputs", "checkpoints", "branch"];

/// When outputs are written.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Outputs {
    /// At these redshifts, exactly.
    pub at_z: Vec<f64>,
    /// At these times, exactly.
    pub at_t: Vec<f64>,
}

/// When checkpoints are written, and how many stay.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Checkpoints {
    /// After so many minutes of computing.
    pub every_minutes: f64,
    /// Also at the end of every root step whose number is a multiple of this.
    pub every_steps: Option<NonZeroU32>,
    /// At the end of the first step past each of these redshifts; these stay for good.
    pub at_z: Vec<f64>,
    /// The same of times.
    pub at_t: Vec<f64>,
    /// How many of the others stay, the newest; while a run steps again to an output that was added, also as many of that
    /// way.
    pub keep: usize,
}

impl Default for Checkpoints {
    fn default() -> Self {
        Self { every_minutes: 10.0, every_steps: None, at_z: Vec::new(), at_t: Vec::new(), keep: 2 }
    }
}

impl Checkpoints {
    /// All that any of these ask for.
    pub(crate) fn joined<'a>(all: impl Iterator<Item = &'a Self> + Clone) -> Self {
        let every_minutes = all.clone().map(|one| one.every_minutes).fold(f64::INFINITY, f64::min);
        let every_steps = all.clone().filter_map(|one| one.every_steps).min();
        let moments = |of: fn(&Self) -> &[f64]| all.clone().flat_map(of).copied().collect();
        let (at_z, at_t) = (moments(|one| &one.at_z), moments(|one| &one.at_t));
        Self { every_minutes, every_steps, at_z, at_t, keep: all.map(|one| one.keep).max().unwrap_or(1) }
    }

    /// Whether one is due at the end of this root step, whatever time it is.
    pub(crate) fn at_step(&self, step: u64) -> bool {
        self.every_steps.is_some_and(|every| step.is_multiple_of(u64::from(every.get())))
    }

    /// The moments past which one is written that stays.
    pub(crate) fn moments(&self) -> impl Iterator<Item = Moment> + '_ {
        moments(&self.at_z, &self.at_t)
    }
}

fn moments<'a>(at_z: &'a [f64], at_t: &'a [f64]) -> impl Iterator<Item = Moment> + 'a {
    at_z.iter().copied().map(Moment::Redshift).chain(at_t.iter().copied().map(Moment::Time))
}

impl Extent {
    /// All outputs in the order of time, the end of the run last. `start` is where the run begins, if that is known
    /// before it runs; `end` where it ends if nothing is said.
    pub(crate) fn outputs(
        &self,
        start: Option<Moment>,
        end: Option<Moment>,
    ) -> Result<Vec<Moment>, (&'static str, String)> {
        let said = self.z_end.map(|z| ("z_end", z)).into_iter().map(|(name, z)| (name, Moment::Redshift(z)));
        let said: Vec<_> = said.chain(self.t_end.map(|t| ("t_end", Moment::Time(t)))).collect();
        let outputs: Vec<Moment> = moments(&self.outputs.at_z, &self.outputs.at_t).collect();
        let all = said.iter().copied();
        let all = all.chain(outputs.iter().map(|m| ("outputs", *m)));
        let all: Vec<_> = all.chain(self.checkpoints.moments().map(|m| ("checkpoints", m))).collect();
        let counts = start.or(end).or(all.first().map(|(_, m)| *m));
        for (name, moment) in &all {
            Self::check(name, *moment, start, counts)?;
        }
        let Some(end) = said.first().map(|(_, m)| *m).or(end) else {
            let name = counts.map_or("z", Moment::symbol);
            return Err(("", format!("the option \"{name}_end\" is missing")));
        };
        if let Some(late) = outputs.iter().find(|m| m.now() > end.now()) {
            let what = format!("an output at {late} is after {}_end = {}", end.symbol(), end.value());
            return Err(("outputs", what));
        }
        if self.checkpoints.keep == 0 {
            return Err(("checkpoints", "keep = 0: must be at least 1".into()));
        }
        if self.checkpoints.every_minutes.is_nan() || self.checkpoints.every_minutes < 0.0 {
            return Err((
                "checkpoints",
                format!("every_minutes = {}: must be positive", self.checkpoints.every_minutes),
            ));
        }
        let mut outputs = outputs;
        outputs.push(end);
        outputs.sort_by(|x, y| x.now().total_cmp(&y.now()));
        outputs.dedup();
        Ok(outputs)
    }

    /// Whether a moment of a recipe can be: it lies after the start, and is counted as `counts` is.
    fn check(
        name: &'static str,
        moment: Moment,
        start: Option<Moment>,
        counts: Option<Moment>,
    ) -> Result<(), (&'static str, String)> {
        if let Some(other) = counts.filter(|other| other.coordinates() != moment.coordinates()) {
            let of = if start.is_some() { "the start is" } else { "other options are" };
            let coordinates = other.coordinates_name();
            let (is, not) = (other.symbol(), moment.symbol());
            let what = format!(
                "{moment}, but {of} in {coordinates} coordinates; use {is}_end and at_{is} instead of {not}_end and \
                 at_{not}"
            );
            return Err((name, what));
        }
        if !(moment.value().is_finite() && (moment.value() > -1.0 || matches!(moment, Moment::Time(_)))) {
            return Err((name, format!("{moment} is not a redshift or time")));
        }
        match start {
            Some(start) if moment.now() <= start.now() => {
                Err((name, format!("{moment} is not after the start at {}", start.rounded())))
            }
            _ => Ok(()),
        }
    }
}

/// What can be refused before anything is computed, in the words of a recipe.
///
/// * `start`: facts of the starting state, if they are known
pub(crate) fn check(p: &RunParameters, start: Option<&StartFacts>) -> Result<(), (&'static str, String)> {
    if let Err(error) = p.check().and_then(|()| start.map_or(Ok(()), |start| p.check_start(start))) {
        let SimError::Parameter { name, value, reason } = error else { return Err(("", error.to_string())) };
        return Err((name, format!("{name} = {value}: {reason}")));
    }
    if p.max_level > 0 && p.refine.is_empty() {
        let what = format!(
            "max_level = {} has no effect without a criterion; add refine: density_above(…) or another",
            p.max_level
        );
        return Err(("max_level", what));
    }
    Ok(())
}
