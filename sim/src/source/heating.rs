//! Compton cooling and a constant heating rate (docs/equations.md, *Heating*).

use super::Span;
use crate::clock::Clock;
use crate::constants::{COMPTON_PER_K4_S, VELOCITY_KM_S};
use crate::error::SimError;
use crate::parameters::Coordinates;
use crate::units::Units;
use comove_kernels::Real;
use comove_kernels::point::relaxation::Relaxation;
use serde::{Deserialize, Serialize};

/// Mass fraction of hydrogen; the rest is helium.
const HYDROGEN: f64 = 0.76;

/// Heating and cooling of the gas at rates that are the same everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Heating {
    /// Whether free electrons exchange heat with the cosmic microwave background (Compton cooling).
    pub compton: bool,
    /// Fraction of hydrogen and helium that is ionised, 1 by default.
    pub ionized_fraction: f64,
    /// Heat in erg/g/s; in non-comoving coordinates in code units.
    pub rate: f64,
}

impl Default for Heating {
    fn default() -> Self {
        Self { compton: false, ionized_fraction: 1.0, rate: 0.0 }
    }
}

impl Heating {
    /// # Errors
    /// [`SimError::Parameter`] for numbers that cannot be.
    pub(crate) fn check(&self, coordinates: Coordinates) -> Result<(), SimError> {
        let Self { compton, ionized_fraction, rate } = *self;
        let check = |value: String, good, reason: &str| SimError::require("heating", &value, good, reason.to_owned());
        let fits = (0.0..=1.0).contains(&ionized_fraction);
        check(format!("ionized_fraction: {ionized_fraction}"), fits, "must lie in [0, 1]")?;
        let fits = rate >= 0.0 && rate.is_finite();
        check(format!("rate: {rate}"), fits, "must be 0 or positive, in erg/g/s")?;
        let fits = !compton || coordinates == Coordinates::Comoving;
        check("compton: true".into(), fits, "needs comoving coordinates: the background's temperature follows from z")?;
        let acts = compton && ionized_fraction > 0.0 || rate > 0.0;
        check(format!("{self:?}"), acts, "does nothing: set compton: true or rate, or leave heating out")
    }

    /// Free electrons for each particle of the gas, and the gas's mean molecular weight.
    fn composition(&self) -> (f64, f64) {
        let helium = (1.0 - HYDROGEN) / 4.0;
        let electrons = self.ionized_fraction * (HYDROGEN + 2.0 * helium);
        let particles = HYDROGEN + helium + electrons;
        (electrons / particles, 1.0 / particles)
    }

    /// Compton cooling: part of the difference to the background's temperature that is lost in a code time, and the specific
    /// internal energy of gas at that temperature, code units.
    ///
    /// du/dt = −8 σ_T a_r T⁴/(3 m_e c) n_e/n (u − u_T) for γ = 5/3 (Weymann 1965; Seager, Sasselov & Scott 1999).
    fn compton(&self, clock: &Clock, a: f64) -> Option<(f64, f64)> {
        let cosmology = clock.cosmology().filter(|_| self.compton)?;
        let units = Units::new(Some(*cosmology));
        let (electrons, weight) = self.composition();
        let background = cosmology.t_cmb_k / a;
        let rate = COMPTON_PER_K4_S * electrons * background.powi(4);
        Some((rate * units.time_s(a), 1.5 * background / units.temperature_k(a, weight)))
    }

    /// The heating rate in code units.
    fn code_rate(&self, clock: &Clock, a: f64) -> f64 {
        let Some(cosmology) = clock.cosmology() else { return self.rate };
        let velocity_cm_s = VELOCITY_KM_S * 1e5 / a;
        self.rate * Units::new(Some(*cosmology)).time_s(a) / (velocity_cm_s * velocity_cm_s)
    }

    /// The exact solution of du/dt = −k (u − u_T) + h over a span, with k, u_T and h of its middle.
    pub(super) fn over<T: Real>(self, Span { clock, a, dt }: Span<'_>) -> Relaxation<T> {
        let heat = self.code_rate(clock, a) * dt;
        let (loss, gain) = match self.compton(clock, a) {
            Some((rate, equilibrium)) if rate > 0.0 => {
                let loss = -f64::exp_m1(-rate * dt);
                (loss, loss * (equilibrium + heat / (rate * dt)))
            }
            _ => (0.0, heat),
        };
        Relaxation { loss: T::from_f64(loss), gain: T::from_f64(gain) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cosmology::Cosmology;

    /// Gas cools in 3 m_e c/(8 σ_T a_r T⁴) n/n_e = 1.168·10¹² (1 + z)⁻⁴ n/n_e years.
    #[test]
    fn compton_cooling_time() {
        let clock = Clock::new(0.1, 0.0, Some(Cosmology::flat(0.7, 0.3, 0.045, 0.9, 1.0)));
        let heating = Heating { compton: true, ..Heating::default() };
        let units = Units::new(clock.cosmology().copied());
        let (electrons, weight) = heating.composition();
        assert!((weight - 0.588).abs() < 1e-3 && (electrons - 0.518).abs() < 1e-3);
        let (rate, equilibrium) = heating.compton(&clock, 0.1).unwrap();
        let years = units.time_s(0.1) / rate / 3.155_76e7 * electrons;
        assert!((years / 1.168e8 - 1.0).abs() < 1e-3, "{years:e}");
        assert!((equilibrium / 1.5 * units.temperature_k(0.1, weight) - 27.255).abs() < 1e-12);
    }

    /// Over long times gas goes to the background's temperature and what the heat adds to it; over short ones each rate counts alone.
    #[test]
    fn limits_of_the_solution() {
        let clock = Clock::new(0.05, 0.0, Some(Cosmology::flat(0.7, 0.3, 0.045, 0.9, 1.0)));
        let heating = Heating { compton: true, rate: 1e-4, ..Heating::default() };
        let (rate, equilibrium) = heating.compton(&clock, 0.05).unwrap();
        let heat = heating.code_rate(&clock, 0.05);
        let at = |dt: f64| heating.over::<f64>(Span { clock: &clock, a: 0.05, dt });
        let long = at(100.0 / rate);
        assert!(long.loss == 1.0 && (long.gain / (equilibrium + heat / rate) - 1.0).abs() < 1e-14);
        let short = at(1e-9 / rate);
        assert!((short.loss / 1e-9 - 1.0).abs() < 1e-8);
        assert!((short.gain / (1e-9 * (equilibrium + heat / rate)) - 1.0).abs() < 1e-8);
        let without = Heating { compton: false, ..heating }.over::<f64>(Span { clock: &clock, a: 0.05, dt: 0.1 });
        assert_eq!((without.loss, without.gain), (0.0, 0.1 * heat));
    }
}
