//! Group solves on the host processor: one task a group, in place in its slot.

use super::problem::Problem;
use super::{FACE_GRADIENTS, sine};
use crate::device::buffer::SlotWriter;
use crate::device::isa::Isa;
use crate::layout::GROUP_CELLS;
use crate::level::level_topology::LevelTopology;
use crate::operations::poisson_source::PoissonSource;
use crate::operations::potential_ghosts::GHOST_CELLS;
use crate::real::Real;
use rayon::prelude::*;

pub(super) fn group_poisson<T: Real>(
    isa: Isa,
    tables: &LevelTopology,
    sine: &sine::SineTables<T>,
    source: &PoissonSource<T>,
    ghosts: &[T],
    h: f64,
    potential: &mut [T],
    gradients: Option<&mut [T]>,
) {
    let potential = SlotWriter::new(potential, GROUP_CELLS);
    let gradients = gradients.map(|gradients| SlotWriter::new(gradients, FACE_GRADIENTS));
    tables.places(None).for_each(|g| {
        let slot = tables.slots[g];
        // SAFETY: the slots of a level are distinct.
        let potential = unsafe { potential.slot(slot) };
        let gradients = gradients.as_ref().map(|gradients| unsafe { gradients.slot(slot) });
        let ghosts = &ghosts[g * GHOST_CELLS..][..GHOST_CELLS];
        isa.run(sine::Solve { tables: sine, problem: Problem { source, slot, ghosts, h, potential, gradients } });
    });
}
