//! A source of internal energy: pointwise, over a time that its numbers already hold.
//!
//! A cell has two estimates of its internal energy, that of its energy and that of its entropy scalar, and the next sweep decides between
//! them ([`mod@crate::point::dual_energy`]). A source acts on each as if it were the right one, so it needs no decision.

use crate::layout::{DENSITY, ENERGY};
use crate::point::dual_energy::{Cell, is_cold, kinetic};
use crate::point::eos::Eos;
use crate::real::Real;

/// What changes the internal energy of gas in a time.
pub trait PointSource<T: Real>: Copy + Send + Sync {
    /// Name of the kernel, whose first parameters are those of [`mod@crate::source`], then `Self`.
    const KERNEL: &'static str;

    /// The change of a cell's internal energy per volume.
    fn change(&self, density: T, internal: T) -> T;
}

/// A cell after a source has acted, and the relative change, of the larger internal energy before and after.
#[inline(always)]
pub(crate) fn after<T: Real, S: PointSource<T>>(u: &Cell<T>, source: &S, eos: &Eos<T>) -> (Cell<T>, T) {
    let gamma_1 = eos.gamma - T::one();
    let density_power = u[DENSITY].power(gamma_1);
    let by_energy = u[ENERGY] - kinetic(u);
    let by_entropy = u[5] * density_power / gamma_1;
    let energy_change = source.change(u[DENSITY], by_energy);
    let entropy_change = source.change(u[DENSITY], by_entropy);
    let cell = [u[0], u[1], u[2], u[3], u[4] + energy_change, u[5] + gamma_1 * entropy_change / density_power];
    let cold = is_cold(by_energy, u[ENERGY], T::zero(), eos);
    let (internal, change) = if cold { (by_entropy, entropy_change) } else { (by_energy, energy_change) };
    let largest = if change > T::zero() { internal + change } else { internal };
    (cell, change.abs() / largest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::point::relaxation::Relaxation;
    use crate::testing::conserved;

    /// Gas that is heated and cooled has the internal energy that follows by hand, in both of its estimates; its motion stays.
    #[test]
    fn energy_and_entropy_scalar_change_together() {
        let eos = Eos::<f64>::new(5.0 / 3.0);
        let u = conserved(2.0, [3.0, -1.0, 0.5], 0.6, 5.0 / 3.0);
        let (v, part) = after(&u, &Relaxation { loss: 0.25, gain: 0.1 }, &eos);
        // 3/2 P = 0.9; less a quarter, and 2 times 0.1 more
        let internal: f64 = 0.9 * 0.75 + 0.2;
        assert!((v[ENERGY] - kinetic(&v) - internal).abs() < 1e-14 && v[..4] == u[..4]);
        assert!((eos.entropy_pressure(v[0], v[5]) - internal / 1.5).abs() < 1e-14);
        assert!((part - 0.025 / 0.9).abs() < 1e-14);
        // cold gas: the scalar's pressure counts, and an energy that lies below the motion's is heated alike
        let cold = [1.0, 20.0, 0.0, 0.0, 199.0, 1e-3];
        let (v, part) = after(&cold, &Relaxation { loss: 0.0, gain: 0.5 }, &eos);
        assert!((v[ENERGY] - 199.5).abs() < 1e-12 && (v[5] - 1e-3 - 1.0 / 3.0).abs() < 1e-14);
        assert!((part - 0.5 / 0.5015).abs() < 1e-12);
    }
}
