//! The layout of every array, written once.
//!
//! A *group* is 16³ cells: eight sibling patches of 8³. Cell data is `[slot, field, k, j, i]`, i (x) fastest; the
//! potential and its relatives are `[slot, k, j, i]`. A slot is where a group's data sits in a pool, never part of its
//! identity.

/// Cells of a patch along one axis.
pub const PATCH: usize = 8;
/// Cells of a group along one axis.
pub const GROUP: usize = 16;
/// Cells of a group.
pub const GROUP_CELLS: usize = GROUP * GROUP * GROUP;
/// Cells of a face of a group.
pub const FACE_CELLS: usize = GROUP * GROUP;
/// Faces of a group or patch, in the order −x, +x, −y, +y, −z, +z.
pub const FACES: usize = 6;
/// Patches of a group, by octant: bit 0 is x, bit 1 is y, bit 2 is z.
pub const OCTANTS: usize = 8;

/// Fluid fields: density, three momenta, total energy, entropy scalar.
pub const FIELDS: usize = 6;
/// Mass density ρ̃.
pub const DENSITY: usize = 0;
/// Momentum density along x; y and z follow.
pub const MOMENTUM: usize = 1;
/// Total energy density, kinetic included.
pub const ENERGY: usize = 4;
/// Entropy scalar S = P/ρ^(γ−1), advected like a density.
pub const ENTROPY: usize = 5;

/// Fluid values of a group.
pub const GROUP_VALUES: usize = FIELDS * GROUP_CELLS;

/// Ghost cells that a hydro sweep reads on each side (paper, section 2.2).
pub const HYDRO_GHOSTS: usize = 3;
/// A group with its hydro ghost cells, along one axis.
pub const HYDRO_BLOCK: usize = GROUP + 2 * HYDRO_GHOSTS;
/// The group's own cells along an axis of that block.
pub const INTERIOR: std::ops::Range<usize> = HYDRO_GHOSTS..HYDRO_GHOSTS + GROUP;

/// Entries of a neighbour table row: direction (dx, dy, dz) at `13 + dx + 3 dy + 9 dz`.
pub const DIRECTIONS: usize = 27;
/// The direction (0, 0, 0).
pub const CENTRE: usize = 13;

/// The row entry of direction (dx, dy, dz), each −1, 0 or 1.
pub const fn direction(dx: i32, dy: i32, dz: i32) -> usize {
    (13 + dx + 3 * dy + 9 * dz) as usize
}

/// (dx, dy, dz) of a row entry: the inverse of [`direction`].
pub const fn offset(direction: usize) -> [i32; 3] {
    let d = direction as i32;
    [d % 3 - 1, d / 3 % 3 - 1, d / 9 - 1]
}

/// Offset of cell (i, j, k) in a group's field.
#[inline]
pub const fn cell(i: usize, j: usize, k: usize) -> usize {
    (k * GROUP + j) * GROUP + i
}

/// (i, j, k) of an offset in a group's field: the inverse of [`cell`].
pub const fn cell_coordinate(cell: usize) -> [usize; 3] {
    [cell % GROUP, cell / GROUP % GROUP, cell / (GROUP * GROUP)]
}

/// First cell of the patch at octant `o` of a group.
pub const fn octant_origin(o: usize) -> [usize; 3] {
    [(o & 1) * PATCH, (o >> 1 & 1) * PATCH, (o >> 2 & 1) * PATCH]
}

/// Planes per axis on which fluxes can be asked for: at cells 0, 8 and 16 of a group.
pub const FLUX_PLANES_PER_AXIS: usize = 3;
/// Flux planes of a group: `axis * 3 + plane`, plane 0, 1, 2 lying at cell 0, 8, 16.
pub const FLUX_PLANES: usize = 3 * FLUX_PLANES_PER_AXIS;
/// Values of a flux plane: `[field, b, a]`, where a, b are the other two axes in the order x, y, z (a fastest).
pub const FLUX_PLANE_VALUES: usize = FIELDS * FACE_CELLS;
