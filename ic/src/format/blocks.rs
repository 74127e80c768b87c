//! A mesh that ranks share, field by field and block by block of planes on the first rank: it alone writes files.

use crate::agree::agree;
use crate::error::IcError;
use crate::uniform_mesh::UniformMesh;
use comove_sim::parallel::Communicator;
use comove_sim::parallel::scatter::FIRST;
use std::ops::Range;

/// Bytes of a block, if a plane has no more.
const BYTES: usize = 1 << 24;

/// Of messages.
const TAG: u32 = 5;

/// Brings all fields to the first rank, each in blocks of planes along z, in order. Collective.
///
/// * `take`: on the first rank, is given each block: number of the field in [`UniformMesh::fields`], planes, values
///
/// # Errors
/// What `take` said, on all ranks; then nothing more is sent.
pub(super) fn collect(
    communicator: &Communicator,
    mesh: &UniformMesh,
    mut take: impl FnMut(usize, Range<usize>, &[f64]) -> Result<(), IcError>,
) -> Result<(), IcError> {
    let plane = mesh.cells[0] * mesh.cells[1];
    let at_a_time = (BYTES / (plane * size_of::<f64>())).max(1);
    let (rank, slabs) = (communicator.rank(), communicator.gather_all_of(&mesh.planes));
    let mut received = Vec::new();
    for (field, values) in mesh.fields().into_iter().enumerate() {
        for (owner, slab) in slabs.iter().enumerate() {
            for first in slab.clone().step_by(at_a_time) {
                let block = first..slab.end.min(first + at_a_time);
                let own = |block: &Range<usize>| {
                    &values[(block.start - slab.start) * plane..(block.end - slab.start) * plane]
                };
                let taken = match (rank, owner) {
                    (FIRST, FIRST) => take(field, block.clone(), own(&block)),
                    (FIRST, owner) => {
                        received.resize(block.len() * plane, 0.0);
                        let place = bytemuck::cast_slice_mut(&mut received);
                        communicator.communicate(TAG, &[], &mut [(owner, place)], || ());
                        take(field, block, &received)
                    }
                    (rank, owner) if rank == owner => {
                        let block = bytemuck::cast_slice(own(&block));
                        communicator.communicate(TAG, &[(FIRST, block)], &mut [], || ());
                        Ok(())
                    }
                    _ => Ok(()),
                };
                agree(communicator, taken)?;
            }
        }
    }
    Ok(())
}
