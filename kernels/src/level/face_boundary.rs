//! What is beyond the faces of the domain that are not periodic, and where a ghost cell there takes its value.
//!
//! Ghost cells beyond a face are made from the cells inside, axis by axis: beyond the faces across x first, then those
//! across y from what lies there by now, then those across z. So edges and corners are well defined for any mix of
//! boundaries, and depend on the place in the domain alone. A cell's value follows by reading that backwards: the last
//! axis along which it lies outside decides first.

use crate::layout::{FIELDS, GROUP, MOMENTUM};
use crate::real::Real;

/// What is beyond a face of the domain that is not periodic.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum FaceBoundary {
    /// Copies of the outermost cell.
    #[default]
    Outflow,
    /// The mirror image of the cells inside: the momentum across the face changes its sign.
    Reflecting,
    /// Gas in a given state, conserved values as in a cell.
    Fixed([f64; FIELDS]),
}

/// What is beyond the lower and the upper end of the cells along one axis; `None`: more of the domain.
pub(crate) type Ends = [Option<FaceBoundary>; 2];

/// Where a coordinate of a block of cells is found along one axis.
#[derive(Clone, Copy, Default)]
pub(crate) struct AxisPosition {
    /// −1, 0 or 1: in which group.
    pub(crate) step: i32,
    /// Which cell of that group.
    pub(crate) cell: usize,
    /// The coordinate; beyond a face, that of the cell inside which is copied or mirrored.
    pub(crate) inside: usize,
    /// The boundary that it is beyond.
    pub(crate) beyond: Option<FaceBoundary>,
}

/// Places of `N` cells along one axis, the first of which is cell `first` of the group.
#[inline(always)]
pub(crate) fn places<const N: usize>(first: i32, ends: Ends) -> [AxisPosition; N] {
    const WIDTH: i32 = GROUP as i32;
    let mut places = [AxisPosition::default(); N];
    for (n, place) in places.iter_mut().enumerate() {
        let mut cell = first + n as i32;
        let (outermost, beyond) = if cell < 0 { (0, ends[0]) } else { (WIDTH - 1, ends[1]) };
        let beyond = if (0..WIDTH).contains(&cell) { None } else { beyond };
        if let Some(boundary) = beyond {
            let mirrored = if cell < 0 { -1 - cell } else { 2 * WIDTH - 1 - cell };
            cell = if boundary == FaceBoundary::Reflecting { mirrored } else { outermost };
        }
        let step = cell.div_euclid(WIDTH);
        *place = AxisPosition { step, cell: cell.rem_euclid(WIDTH) as usize, inside: (cell - first) as usize, beyond };
    }
    places
}

/// Where a cell's value of one field comes from.
pub(crate) enum Origin<T> {
    /// From the cell at its places, as it is.
    Cell,
    /// From the cell at its places, with the other sign.
    Negated,
    /// This value.
    Fixed(T),
}

/// Where the value of `field` comes from for a cell at these places along these axes, axes in rising order.
#[inline(always)]
pub(crate) fn origin<T: Real>(places: &[(usize, &AxisPosition)], field: usize) -> Origin<T> {
    let mut negated = false;
    for &(axis, place) in places.iter().rev() {
        match place.beyond {
            Some(FaceBoundary::Reflecting) => negated ^= field == MOMENTUM + axis,
            Some(FaceBoundary::Fixed(state)) => {
                return Origin::Fixed(T::from_f64(if negated { -state[field] } else { state[field] }));
            }
            Some(FaceBoundary::Outflow) | None => {}
        }
    }
    if negated { Origin::Negated } else { Origin::Cell }
}

/// Fills the `depth` values at one end of a row along x, the upper with `upper`, beyond a face.
#[inline(always)]
pub(crate) fn fill_end<T: Real>(boundary: FaceBoundary, field: usize, depth: usize, upper: bool, row: &mut [T]) {
    let last = row.len() - 1;
    // the n-th cell inwards from the lower end of the row
    let at = |n: usize| if upper { last - n } else { n };
    for n in 0..depth {
        row[at(n)] = match boundary {
            FaceBoundary::Outflow => row[at(depth)],
            FaceBoundary::Reflecting if field == MOMENTUM => -row[at(2 * depth - 1 - n)],
            FaceBoundary::Reflecting => row[at(2 * depth - 1 - n)],
            FaceBoundary::Fixed(state) => T::from_f64(state[field]),
        };
    }
}
