//! Refinement flags with their buffer (paper, section 2.1).

mod cpu;

use crate::buffer::Buffer;
use crate::device::Device;
use crate::isa::Isa;
use crate::layout::{GROUP_VALUES, OCTANTS};
use crate::real::Real;
use crate::tables::LevelTables;

/// What flags a cell of one level; one criterion that is met is enough.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlagCriteria<T> {
    /// Density above this.
    pub density_above: T,
}

/// Flags the patches of a level.
///
/// * `fluid`: conserved, comoving, `[slots, 6, 16, 16, 16]`.
/// * `buffer`: cells around a flagged cell that are flagged with it; at most a patch (8).
/// * `masks`: `[groups, 8]`; bit [`crate::layout::direction`] of a patch's mask says that the patch in that direction
///   contains a flagged or buffer cell because of this patch (the centre bit: the patch itself).
///
/// # Panics
/// If a shape is wrong or the buffer exceeds a patch.
pub fn flag<T: Real>(
    device: &Device,
    tables: &LevelTables,
    fluid: &Buffer<T>,
    criteria: &FlagCriteria<T>,
    buffer: usize,
    masks: &mut [u32],
) {
    assert_eq!(fluid.len() % GROUP_VALUES, 0, "a fluid pool holds whole groups");
    assert_eq!(masks.len(), tables.len() * OCTANTS, "one mask per patch");
    assert!(buffer <= crate::layout::PATCH, "a flag buffer of {buffer} cells is wider than a patch");
    match device {
        Device::Cpu(cpu) => cpu.install(|| {
            cpu::flag(Isa::best(), tables, fluid.host(), criteria, buffer, masks);
        }),
    }
}
