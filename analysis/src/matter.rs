//! A snapshot of gas and dark matter as one fluid: what finds halos and their profiles then sees all matter.

use crate::error::AnalysisError;
use crate::part::Part;
use comove_sim::kernels::layout::{DENSITY, ENTROPY, FIELDS, GROUP_CELLS, GROUP_VALUES};
use comove_sim::parallel::Communicator;
use comove_sim::{HostState, Snapshot, SnapshotHeader};
use rayon::prelude::*;

/// All matter of a snapshot: the snapshot with the density of all matter in place of the gas's, and the gas's velocity and
/// temperature (zeros where there is no gas). Nothing of its own where there is no dark matter.
#[derive(Clone, Debug)]
pub struct OneFluid(Option<Snapshot>);

impl OneFluid {
    /// Of a whole snapshot.
    pub fn new(snapshot: &Snapshot) -> Self {
        let alone = as_one_fluid(&Communicator::alone(), &snapshot.into());
        Self(alone.expect("one rank has all of the dark matter"))
    }

    /// Of a snapshot in parts: collective.
    ///
    /// # Errors
    /// [`AnalysisError::Option`] where several ranks share a snapshot with dark matter.
    pub fn by(communicator: &Communicator, part: &Part) -> Result<Self, AnalysisError> {
        as_one_fluid(communicator, part).map(Self)
    }

    /// What stands for the part that it was made of.
    pub(crate) fn part<'a>(&'a self, part: &Part<'a>) -> Part<'a> {
        self.0.as_ref().map_or_else(|| part.clone(), |matter| part.of(matter))
    }
}

/// # Errors
/// [`AnalysisError::Option`] where several ranks share a snapshot whose dark matter is wanted.
pub(crate) fn require_one_process(communicator: &Communicator) -> Result<(), AnalysisError> {
    match communicator.size() {
        1 => Ok(()),
        ranks => Err(AnalysisError::option("ranks", ranks, "dark matter is analysed by one process as yet")),
    }
}

/// # Errors
/// [`AnalysisError::MissingField`] where there is dark matter alone.
pub(crate) fn require_gas(part: &Part, reason: &'static str) -> Result<(), AnalysisError> {
    match part.header().fields.has_gas() {
        true => Ok(()),
        false => Err(AnalysisError::MissingField { name: "density", reason }),
    }
}

fn as_one_fluid(communicator: &Communicator, part: &Part) -> Result<Option<Snapshot>, AnalysisError> {
    if !communicator.any(!part.snapshot.state.dark_matter.is_empty()) {
        return Ok(None);
    }
    require_one_process(communicator)?;
    let HostState { tree, fluid, dark_matter, .. } = &part.snapshot.state;
    let has_gas = part.header().fields.has_gas();
    let fluid = if has_gas { fluid.clone() } else { vec![0.0; tree.group_count() * GROUP_VALUES] };
    let dark_matter = dark_matter.clone();
    let mut state = HostState { fluid, dark_matter, ..HostState::without_fields(tree.clone()) };
    let header = SnapshotHeader { dark_matter: None, ..part.header().clone() };
    // P/ρ stays: S = P/ρ^(γ−1)
    let exponent = 2.0 - header.gamma;
    let groups = state.fluid.par_chunks_exact_mut(GROUP_VALUES).zip(state.dark_matter.par_chunks_exact(GROUP_CELLS));
    groups.for_each(|(fluid, dark_matter)| {
        if !has_gas {
            fluid[DENSITY * GROUP_CELLS..][..GROUP_CELLS].copy_from_slice(dark_matter);
            return;
        }
        for (c, dark_matter) in dark_matter.iter().enumerate() {
            let factor = 1.0 + dark_matter / fluid[DENSITY * GROUP_CELLS + c];
            for field in 0..FIELDS {
                let factor = if field == ENTROPY { factor.powf(exponent) } else { factor };
                fluid[field * GROUP_CELLS + c] *= factor;
            }
        }
    });
    Ok(Some(Snapshot { header, state }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell_fields::{Gas, field_by_name};
    use crate::fixture::Fixture;
    use comove_sim::fields::FieldSet;

    #[test]
    fn only_the_density_is_another() {
        let mut snapshot = Fixture::blob().build();
        assert!(as_one_fluid(&Communicator::alone(), &(&snapshot).into()).unwrap().is_none());
        let cells = snapshot.state.fluid.len() / FIELDS;
        snapshot.state.dark_matter = (0..cells).map(|n| (n % 7) as f64).collect();
        let both = as_one_fluid(&Communicator::alone(), &(&snapshot).into()).unwrap().unwrap();
        let at = |snapshot: &Snapshot, name: &str, position| {
            let cell = crate::cells::leaf_at(snapshot, position);
            field_by_name(name, &FieldSet::default()).unwrap().value(&Gas::new(snapshot), &cell)
        };
        for position in [[0.3, 0.4, 0.55], [0.1, 0.9, 0.2], [0.77, 0.31, 0.42]] {
            for name in ["temperature", "velocity_x", "mach"] {
                let [one, other] = [at(&snapshot, name, position), at(&both, name, position)];
                assert!((one - other).abs() <= 1e-12 * one.abs(), "{name}: {one} {other}");
            }
            let matter = at(&snapshot, "matter_density", position);
            assert!((at(&both, "density", position) / matter - 1.0).abs() < 1e-14);
        }
    }
}
