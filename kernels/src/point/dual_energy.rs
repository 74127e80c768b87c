//! Energy and entropy scalar kept in agreement (DESIGN.md, *State and time*).
//!
//! Written with selects instead of branches, so that a loop over cells vectorizes.

use crate::point::eos::Eos;
use crate::point::symmetric_sum;
use crate::real::Real;

/// A cell's six conserved values: density, three momenta, energy, entropy.
pub type Cell<T> = [T; 6];

/// ½ρv².
#[inline(always)]
pub fn kinetic<T: Real>(u: &Cell<T>) -> T {
    T::of(0.5) * symmetric_sum::of_three(u[1] * u[1], u[2] * u[2], u[3] * u[3]) / u[0]
}

/// Thermal pressure: from the entropy scalar where the internal energy is less than η of the total, else from the
/// energy.
#[inline(always)]
pub fn pressure<T: Real>(u: &Cell<T>, eos: &Eos<T>) -> T {
    let internal = u[4] - kinetic(u);
    let cold = eos.entropy_pressure(u[0], u[5]);
    if internal < eos.eta * u[4].abs() { cold } else { (eos.gamma - T::one()) * internal }
}

/// What [`synchronise`] did to a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Synchronised<T> {
    /// The cell afterwards: energy and entropy scalar agree.
    pub cell: Cell<T>,
    /// Density or pressure was below its floor and has been raised to it.
    pub floored: bool,
    /// The entropy scalar decided.
    pub cold: bool,
    /// The total energy did not exceed the kinetic one.
    pub negative: bool,
}

/// Makes energy and entropy scalar agree: the scalar decides where the internal energy is less than η of the total, the
/// energy elsewhere. Density and pressure below their floors are raised to them (a raised density keeps the momentum).
///
/// A cell that is not finite stays so; see [`is_valid`].
#[inline(always)]
pub fn synchronise<T: Real>(u: &Cell<T>, eos: &Eos<T>) -> Synchronised<T> {
    let gamma_1 = eos.gamma - T::one();
    let thin = u[0] < eos.density_floor;
    let density = if thin { eos.density_floor } else { u[0] };
    let kinetic = T::of(0.5) * symmetric_sum::of_three(u[1] * u[1], u[2] * u[2], u[3] * u[3]) / density;
    let internal = u[4] - kinetic;
    let cold = internal < eos.eta * u[4].abs();
    let density_power = density.power(gamma_1);
    let own = if cold { u[5] * density_power } else { gamma_1 * internal };
    let low = own < eos.pressure_floor;
    let pressure = if low { eos.pressure_floor } else { own };
    let energy = if cold | low { kinetic + pressure / gamma_1 } else { u[4] };
    let entropy = if cold & !low { u[5] } else { pressure / density_power };
    let cell = [density, u[1], u[2], u[3], energy, entropy];
    Synchronised { cell, floored: thin | low, cold, negative: internal <= T::zero() }
}

/// Whether all values are finite and density and energy positive.
#[inline(always)]
pub fn is_valid<T: Real>(u: &Cell<T>) -> bool {
    let sum = u[0] + u[1] + u[2] + u[3] + u[4] + u[5];
    (sum * T::zero() == T::zero()) & (u[0] > T::zero()) & (u[4] > T::zero())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hot_gas_keeps_its_energy_and_cold_gas_its_entropy() {
        let eos = Eos::<f64>::new(5.0 / 3.0);
        let hot = synchronise(&[2.0, 0.2, 0.0, 0.0, 3.0, 0.0], &eos);
        assert_eq!(hot.cell[4], 3.0);
        assert!((pressure(&hot.cell, &eos) - 2.0 / 3.0 * (3.0 - 0.01)).abs() < 1e-14);
        let cold = synchronise(&[2.0, 20.0, 0.0, 0.0, 100.0, 1e-3], &eos);
        assert!(cold.cold && cold.cell[5] == 1e-3);
        assert!((cold.cell[4] - 100.0 - 1.5e-3 * 2f64.powf(2.0 / 3.0)).abs() < 1e-12);
        // doing it twice changes nothing
        assert_eq!(synchronise(&cold.cell, &eos).cell, cold.cell);
        let floored = synchronise(&[-1.0, 0.0, 0.0, 0.0, 1e-8, 0.0], &eos);
        assert!(floored.floored && floored.cell[0] == eos.density_floor);
        // without the scalar gas is never cold, whatever the energies, and falls to the floor instead
        let eos = Eos { eta: Eos::<f64>::SCALAR_OFF, ..eos };
        let off = synchronise(&[2.0, 20.0, 0.0, 0.0, 99.0, 1e-3], &eos);
        assert!(off.floored && off.negative && !off.cold && (off.cell[4] - 100.0).abs() < 1e-13);
        assert!(pressure(&[2.0, 20.0, 0.0, 0.0, 99.0, 1e-3], &eos) < 0.0);
        assert!(!is_valid(&[f64::NAN, 0.0, 0.0, 0.0, 1.0, 1.0]) && is_valid(&cold.cell));
    }
}
