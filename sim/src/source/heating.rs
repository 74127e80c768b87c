//! Compton cooling and a constant heating rate (docs/equations.md, *Heating*).

use crate::clock::Clock;
use crate::error::SimError;
use crate::units::Units;
use comove_kernels::Real;
use comove_kernels::point::relaxation::Relaxation;
use serde::{Deserialize, Serialize};

/// The rate of Compton cooling for n_e/n = 1 over T⁴ of the background, 8 σ_T a_r/(3 m_e c), in 1/K⁴/s.
const COMPTON_PER_K4_S: f64 = 8.0 * 6.652_458_7e-25 * 7.565_733e-15 / (3.0 * 9.109_383_7e-28 * 2.997_924_58e10);
/// Mass fraction of hydrogen; the rest is helium.
const HYDROGEN: f64 = 0.76;

/// The largest relative difference between the mean molecular weights of gas and starting state.
const WEIGHT_TOLERANCE: f64 = 0.01;

/// Heating and cooling of the gas at rates that are the same everywhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Heating {
    /// Fraction of hydrogen and helium that is ionised, the same in space and time; its free electrons exchange heat with the cosmic
    /// microwave background (Compton cooling), in comoving coordinates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ionized_fraction: Option<f64>,
    /// Heating rate in erg/g/s; in non-comoving coordinates in code units.
    pub rate: f64,
}

impl Heating {
    /// # Errors
    /// [`SimError::Parameter`] for numbers that cannot be.
    pub(crate) fn check(&self, is_comoving: bool) -> Result<(), SimError> {
        let fits = self.rate >= 0.0 && self.rate.is_finite();
        SimError::require("heating.rate", &self.rate, fits, "must be 0 or positive")?;
        if let Some(fraction) = self.ionized_fraction {
            let check = |good, reason: &str| SimError::require("heating.ionized_fraction", &fraction, good, reason);
            check(fraction > 0.0 && fraction <= 1.0, "must lie in (0, 1]; without Compton cooling leave it out")?;
            check(is_comoving, "Compton cooling needs comoving coordinates; remove it")?;
        }
        let acts = self.ionized_fraction.is_some() || self.rate > 0.0;
        SimError::require(
            "heating.rate",
            &self.rate,
            acts,
            "has no effect; set it or ionized_fraction, or remove heating",
        )
    }

    /// Checks the mean molecular weight of the starting state's temperatures.
    ///
    /// # Errors
    /// [`SimError::Parameter`] where it is not that of the ionised fraction.
    pub(crate) fn check_weight(&self, of_start: f64) -> Result<(), SimError> {
        let Some(fraction) = self.ionized_fraction else { return Ok(()) };
        let (_, weight) = composition(fraction);
        let fits = (of_start / weight - 1.0).abs() <= WEIGHT_TOLERANCE;
        let reason = format!(
            "gas has a mean molecular weight of {weight:.3} with it, and the initial state {of_start}; set \
             mean_molecular_weight: {weight:.3} there"
        );
        SimError::require("heating.ionized_fraction", &fraction, fits, reason)
    }

    /// Compton cooling: part of the difference to the background's temperature that is lost in a code time, and the specific
    /// internal energy of gas at that temperature, code units.
    ///
    /// du/dt = −8 σ_T a_r T⁴/(3 m_e c) n_e/n (u − u_T) for γ = 5/3 (Weymann 1965; Seager, Sasselov & Scott 1999).
    fn compton(&self, clock: &Clock, a: f64) -> Option<(f64, f64)> {
        let cosmology = clock.cosmology()?;
        let units = Units::new(Some(*cosmology));
        let (electrons, weight) = composition(self.ionized_fraction?);
        let background = cosmology.t_cmb_k / a;
        let rate = COMPTON_PER_K4_S * electrons * background.powi(4);
        Some((rate * units.time_s(a), 1.5 * background / units.temperature_k(a, weight)))
    }

    /// The heating rate in code units.
    fn code_rate(&self, clock: &Clock, a: f64) -> f64 {
        let units = Units::new(clock.cosmology().copied());
        match clock.cosmology() {
            Some(_) => self.rate * units.time_s(a) / (units.velocity_km_s(a) * 1e5).powi(2),
            None => self.rate,
        }
    }

    /// The exact solution of du/dt = −k (u − u_T) + h over `dt`, with k, u_T and h at the scale factor `a` of its middle.
    pub(super) fn over<T: Real>(self, clock: &Clock, a: f64, dt: f64) -> Relaxation<T> {
        let heat = self.code_rate(clock, a) * dt;
        let (loss, gain) = match self.compton(clock, a) {
            Some((rate, equilibrium)) if rate * dt > 0.0 => {
                let loss = -f64::exp_m1(-rate * dt);
                (loss, loss * (equilibrium + heat / (rate * dt)))
            }
            _ => (0.0, heat),
        };
        Relaxation { loss: T::from_f64(loss), gain: T::from_f64(gain) }
    }
}

/// Free electrons for each particle of the gas, and its mean molecular weight.
fn composition(ionized_fraction: f64) -> (f64, f64) {
    let helium = (1.0 - HYDROGEN) / 4.0;
    let electrons = ionized_fraction * (HYDROGEN + 2.0 * helium);
    let particles = HYDROGEN + helium + electrons;
    (electrons / particles, 1.0 / particles)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cosmology::Cosmology;

    /// Gas cools in 3 m_e c/(8 σ_T a_r T⁴) n/n_e = 1.168·10¹² (1 + z)⁻⁴ n/n_e years.
    #[test]
    fn compton_cooling_time() {
        let clock = Clock::new(0.1, 0.0, Some(Cosmology::flat(0.7, 0.3, 0.045, 0.9, 1.0)));
        let heating = Heating { ionized_fraction: Some(1.0), ..Heating::default() };
        let units = Units::new(clock.cosmology().copied());
        let (electrons, weight) = composition(1.0);
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
        let heating = Heating { ionized_fraction: Some(1.0), rate: 1e-4 };
        let (rate, equilibrium) = heating.compton(&clock, 0.05).unwrap();
        let heat = heating.code_rate(&clock, 0.05);
        let at = |dt: f64| heating.over::<f64>(&clock, 0.05, dt);
        let long = at(100.0 / rate);
        assert!(long.loss == 1.0 && (long.gain / (equilibrium + heat / rate) - 1.0).abs() < 1e-14);
        let short = at(1e-9 / rate);
        assert!((short.loss / 1e-9 - 1.0).abs() < 1e-8);
        assert!((short.gain / (1e-9 * (equilibrium + heat / rate)) - 1.0).abs() < 1e-8);
        let without = Heating { ionized_fraction: None, ..heating }.over::<f64>(&clock, 0.05, 0.1);
        assert_eq!((without.loss, without.gain), (0.0, 0.1 * heat));
        let still = at(0.0);
        assert_eq!((still.loss, still.gain), (0.0, 0.0));
    }
}
