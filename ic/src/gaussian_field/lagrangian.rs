//! Displacements and velocities in Lagrangian perturbation theory of first to third order.

use super::third_order::ThirdOrder;
use super::{LinearModes, quarter_turn, square};
use comove_sim::Cosmology;
use rayon::prelude::*;
use std::sync::Arc;

/// Orders that are implemented.
pub const LPT_ORDERS: std::ops::RangeInclusive<u8> = 1..=3;

/// Factors of a term: in the displacement, and in the velocity over that of the growing mode.
type Factors = [f64; 2];

/// Terms beyond first order. Of third order are the longitudinal terms (3a), (3b) and the transverse one (3c) (docs/equations.md,
/// *Initial conditions*).
pub struct HigherOrders<'c> {
    /// Modes whose gradients are terms of the displacement.
    longitudinal: Vec<(LinearModes<'c>, Factors)>,
    /// Modes of a curl.
    transverse: Option<(Arc<[LinearModes<'c>; 3]>, Factors)>,
}

/// A displacement or a velocity: a gradient, and in third order a curl.
pub struct Flow<'c> {
    gradient: LinearModes<'c>,
    /// Modes of ∇ × (the flow), and their factor.
    curl: Option<(Arc<[LinearModes<'c>; 3]>, f64)>,
}

impl<'c> HigherOrders<'c> {
    /// Terms up to an order for the linear modes at a. Collective.
    ///
    /// # Panics
    /// For another order: the caller's bug.
    pub fn new(modes: &LinearModes<'c>, cosmology: &Cosmology, a: f64, order: u8) -> Self {
        let (growth, slope) = cosmology.second_order_growth(a);
        let slopes = |slope: f64| slope / cosmology.growth(a).1;
        match order {
            1 => Self { longitudinal: Vec::new(), transverse: None },
            2 => Self { longitudinal: vec![(modes.second_order(growth), [1.0, slopes(slope)])], transverse: None },
            3 => {
                let second = modes.second_order_source();
                let ThirdOrder { determinant, mixed, curl } = modes.third_order(&second);
                let [a, b, c] = cosmology.third_order_growth(a);
                let factors = |size: f64, slope: f64| [size, size * slopes(slope)];
                Self {
                    longitudinal: vec![
                        (second, factors(3.0 / 7.0 * growth, slope)),
                        (determinant, factors(-1.0 / 3.0 * a.0, a.1)),
                        (mixed, factors(5.0 / 21.0 * b.0, b.1)),
                    ],
                    transverse: Some((Arc::new(curl), factors(1.0 / 7.0 * c.0, c.1))),
                }
            }
            _ => panic!("order {order} of Lagrangian perturbation theory"),
        }
    }

    /// The displacement of first-order modes and these terms.
    pub fn displacement(&self, first: &LinearModes<'c>) -> Flow<'c> {
        self.flow(first, 0)
    }

    /// The velocity over the growing mode's rate.
    pub fn velocity(&self, first: &LinearModes<'c>) -> Flow<'c> {
        self.flow(first, 1)
    }

    fn flow(&self, first: &LinearModes<'c>, which: usize) -> Flow<'c> {
        let mut terms = self.longitudinal.iter();
        let combined = |modes: &LinearModes<'c>, (term, factors): &(LinearModes<'c>, Factors)| {
            modes.combined(1.0, term, factors[which])
        };
        let begun = terms.next().map_or_else(|| first.clone(), |term| combined(first, term));
        let gradient = terms.fold(begun, |modes, term| combined(&modes, term));
        let curl = self.transverse.as_ref().map(|(modes, factors)| (Arc::clone(modes), factors[which]));
        Flow { gradient, curl }
    }
}

impl Flow<'_> {
    /// [`LinearModes::velocity`] of this flow. Collective.
    pub fn velocity(&self, axis: usize, rate: f64) -> Vec<f64> {
        self.before_centres(axis, rate, 0.0)
    }

    /// [`LinearModes::velocity_at_corners`] of this flow. Collective.
    pub fn velocity_at_corners(&self, axis: usize, rate: f64) -> Vec<f64> {
        self.velocity_before_centres(axis, rate, self.gradient.cells[0])
    }

    /// [`LinearModes::velocity_before_centres`] of this flow. Collective.
    pub fn velocity_before_centres(&self, axis: usize, rate: f64, cells: usize) -> Vec<f64> {
        self.before_centres(axis, rate, self.gradient.half_a_cell(cells))
    }

    /// Modes i k_axis/k² of the gradient and i (k × w)_axis/k² of the curl w.
    fn before_centres(&self, axis: usize, rate: f64, before: f64) -> Vec<f64> {
        let mut modes = self.gradient.velocity_modes(axis, rate, before);
        if let Some((curl, factor)) = &self.curl {
            let [p, q] = [(axis + 1) % 3, (axis + 2) % 3];
            for (along, other, sign) in [(p, q, 1.0), (q, p, -1.0)] {
                let size = sign * factor * rate;
                let part = curl[other].multiplied(|k| quarter_turn(size * k[along] / square(k), k, before));
                modes.par_iter_mut().zip(part).for_each(|(mode, part)| *mode += part);
            }
        }
        self.gradient.in_cells(modes)
    }
}
