//! The passive scalars of a run from those of the state that it starts from.

use crate::error::SimError;
use crate::gas::fields::FieldSet;
use crate::mesh::host_state::HostState;
use crate::parameters::ScalarParameters;
use comove_kernels::layout::{DENSITY, GROUP_CELLS, GROUP_VALUES};
use std::borrow::Cow;

/// Where each scalar of a run comes from.
pub(super) struct StartScalars(Vec<Source>);

enum Source {
    /// From the starting state, where it has this place.
    Stored(usize),
    /// A uniform mass fraction.
    Uniform(f64),
}

impl StartScalars {
    /// Of a run that starts from a state with these fields.
    ///
    /// # Errors
    /// [`SimError::Parameter`] where the state lacks a scalar that has no fraction to start with, or has one that the run
    /// does not name.
    pub(super) fn new(given: &FieldSet, wanted: &ScalarParameters) -> Result<Self, SimError> {
        let refuse = |name: &str, reason: String| {
            Err(SimError::Parameter { name: "scalars", value: format!("{name:?}"), reason })
        };
        if let Some(lost) = given.scalars().iter().find(|given| !wanted.names().any(|name| name == *given)) {
            let all: Vec<String> = given.scalars().iter().map(|name| format!("{name:?}")).collect();
            return refuse(lost, format!("the starting snapshot has this scalar; write scalars: [{}]", all.join(", ")));
        }
        let mut sources = Vec::new();
        for (name, initial) in wanted.names().zip(wanted.initial()) {
            match (given.scalar(name), initial) {
                (Some(index), _) => sources.push(Source::Stored(index)),
                (None, Some(fraction)) => sources.push(Source::Uniform(fraction)),
                (None, None) => {
                    let reason = format!(
                        "the starting state lacks it; give its initial mass fraction, as in scalars: #{{ {name}: \
                         0.02 }}"
                    );
                    return refuse(name, reason);
                }
            }
        }
        Ok(Self(sources))
    }

    /// The state with the scalars of the run, or with none where all start uniform.
    pub(super) fn of<'a>(&self, state: Cow<'a, HostState>) -> Cow<'a, HostState> {
        let in_place = |(n, source): (usize, &Source)| matches!(source, Source::Stored(index) if *index == n);
        if self.0.iter().all(|source| matches!(source, Source::Uniform(_))) || self.0.iter().enumerate().all(in_place) {
            return state;
        }
        let scalar = |source: &Source| match source {
            Source::Stored(index) => state.scalars[*index].clone(),
            Source::Uniform(fraction) => {
                let groups = state.fluid.chunks_exact(GROUP_VALUES);
                groups.flat_map(|group| &group[DENSITY * GROUP_CELLS..][..GROUP_CELLS]).map(|d| fraction * d).collect()
            }
        };
        let scalars = self.0.iter().map(scalar).collect();
        Cow::Owned(HostState { scalars, ..state.into_owned() })
    }
}
