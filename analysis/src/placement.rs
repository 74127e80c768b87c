//! Where positions and regions may lie: in the box, from 0 to its length along each axis.
//!
//! The upper face of a periodic axis is its lower face; other boxes end with their last cells. A position beyond the faces is
//! an error on either: a recipe that means the periodic image says so (`x % box`).

use crate::error::AnalysisError;

/// Checks that a position is in a box of these lengths, and gives it: on an upper face that is no periodic one it is moved
/// into the last cells.
///
/// # Errors
/// [`AnalysisError::Option`] naming the option, the position and the axis.
pub fn position_in_box(
    name: &'static str,
    position: [f64; 3],
    lengths: [f64; 3],
    periodic: [bool; 3],
) -> Result<[f64; 3], AnalysisError> {
    let mut inside = position;
    for axis in 0..3 {
        let (x, length) = (position[axis], lengths[axis]);
        // the length may be off by its rounding
        if !(x >= 0.0 && x <= length * (1.0 + 1e-12)) {
            let reason = format!("{} must lie in the box, [0, {length}]", ["x", "y", "z"][axis]);
            return Err(AnalysisError::option(name, format!("{position:?}"), reason));
        }
        if x >= length {
            inside[axis] = if periodic[axis] { 0.0 } else { length.next_down() };
        }
    }
    Ok(inside)
}

/// Checks that a box-shaped region shares volume with a box of these lengths.
///
/// # Errors
/// [`AnalysisError::Option`] naming the corner and the axis.
pub(crate) fn overlaps_box(min: [f64; 3], max: [f64; 3], lengths: [f64; 3]) -> Result<(), AnalysisError> {
    for axis in 0..3 {
        let along = ["x", "y", "z"][axis];
        let (low, high, length) = (min[axis], max[axis], lengths[axis]);
        if !(high > low && low.is_finite() && high.is_finite()) {
            let reason = format!("must lie beyond min = {min:?} along {along}");
            return Err(AnalysisError::option("max", format!("{max:?}"), reason));
        }
        if low >= length {
            let reason = format!("the region lies outside the box along {along}: must be below {length}");
            return Err(AnalysisError::option("min", format!("{min:?}"), reason));
        }
        if high <= 0.0 {
            let reason = format!("the region lies outside the box along {along}: must be above 0");
            return Err(AnalysisError::option("max", format!("{max:?}"), reason));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_in_the_box_or_refused() {
        let (lengths, periodic) = ([25.0, 25.0, 50.0], [true, false, false]);
        let found = |position| position_in_box("center", position, lengths, periodic).map_err(|e| e.to_string());
        assert_eq!(found([0.0, 12.0, 50.0]), Ok([0.0, 12.0, 50f64.next_down()]));
        assert_eq!(found([25.0, 25.0, 1.0]), Ok([0.0, 25f64.next_down(), 1.0]));
        let wrong = [([30.0, 1.0, 1.0], "x", 25), ([1.0, -0.5, 1.0], "y", 25), ([1.0, 1.0, f64::NAN], "z", 50)];
        for (position, axis, length) in wrong {
            let message = format!("center = {position:?}: {axis} must lie in the box, [0, {length}]");
            assert_eq!(found(position), Err(message));
        }
    }
}
