//! Values at the faces of a cell half a step later, from its profile: Hancock's predictor (van Leer 1984; Toro 2009, section
//! 14.4), for parabolas.
//!
//! Averaged over a step, a parabola that moves by the linearised equations passes a face with
//! w_face − H (½Δ ∓ ½w₆ + ⅓H w₆), where H = Δt/Δx A(w): the average over the domain of dependence of Colella & Woodward
//! (1984, equation 1.12) with a matrix in place of one wave speed. Nothing is divided by the sound speed, so gas may be as cold
//! as it likes; waves that do not reach the face are left to the Riemann solver.

use crate::point::eos::Eos;
use crate::point::primitive::{Primitive, quasi_linear};
use crate::real::Real;

/// The values at the low and the high face of a cell, averaged over a step. A cell that would have no density or pressure
/// there keeps its mean.
///
/// * `below`, `above`: the cell's profile ([`mod@crate::point::ppm`])
#[inline(always)]
pub fn face_values<T: Real>(
    w: &Primitive<T>,
    below: &Primitive<T>,
    above: &Primitive<T>,
    dt_over_dx: T,
    eos: &Eos<T>,
) -> [Primitive<T>; 2] {
    let inverse = T::one() / w[0];
    let two = T::from_f64(2.0);
    let mut curvature = [T::zero(); 6];
    for f in 0..6 {
        curvature[f] = dt_over_dx * (below[f] - above[f]);
    }
    let curved = quasi_linear(w, inverse, eos, &curvature);
    let (mut to_low, mut to_high) = ([T::zero(); 6], [T::zero(); 6]);
    for f in 0..6 {
        to_low[f] = (two * below[f] - above[f]) + curved[f];
        to_high[f] = (two * above[f] - below[f]) + curved[f];
    }
    let (change_low, change_high) = (quasi_linear(w, inverse, eos, &to_low), quasi_linear(w, inverse, eos, &to_high));
    let (mut low, mut high) = ([T::zero(); 6], [T::zero(); 6]);
    for f in 0..6 {
        low[f] = (w[f] - below[f]) - dt_over_dx * change_low[f];
        high[f] = (w[f] + above[f]) - dt_over_dx * change_high[f];
    }
    let positive = (low[0] > T::zero()) & (high[0] > T::zero()) & (low[4] > T::zero()) & (high[4] > T::zero());
    for f in 0..6 {
        low[f] = if positive { low[f] } else { w[f] };
        high[f] = if positive { high[f] } else { w[f] };
    }
    [low, high]
}
