//! Conversions between code units and the rest of the world; they happen only here.
//!
//! Code units: comoving Mpc/h, mean matter density, 1/H0 (supercomoving), hence velocity a v_pec/(100 km/s). Files
//! carry the units of the epoch (docs/snapshot-format.md, *Units*): length a Mpc/h, time a²/H0, mass constant, which turns every
//! code variable into its proper quantity.

use crate::cosmology::Cosmology;

pub use crate::constants::*;

/// Code units of a run: of its cosmology, or plain (all factors 1) without one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Units {
    cosmology: Option<Cosmology>,
}

impl Units {
    /// The units of a cosmology, or of non-comoving coordinates.
    pub fn new(cosmology: Option<Cosmology>) -> Self {
        Self { cosmology }
    }

    /// Proper centimetres of a code length at a: a Mpc/h.
    pub fn length_cm(&self, a: f64) -> f64 {
        self.cosmology.map_or(1.0, |c| a * MPC_CM / c.h)
    }

    /// Seconds of a code time at a: a²/H0.
    pub fn time_s(&self, a: f64) -> f64 {
        self.cosmology.map_or(1.0, |c| a * a * MPC_CM / (1e7 * c.h))
    }

    /// Grams of a code mass: the mean density of the matter in the box, without neutrinos, times (Mpc/h)³.
    pub fn mass_g(&self) -> f64 {
        self.cosmology.map_or(1.0, |c| {
            let h0 = 1e7 * c.h / MPC_CM;
            let mean_density = c.omega_cb() * 3.0 * h0 * h0 / (8.0 * std::f64::consts::PI * NEWTON);
            mean_density * (MPC_CM / c.h).powi(3)
        })
    }

    /// Solar masses/h of a code mass.
    pub fn mass_msun_h(&self) -> f64 {
        self.cosmology.map_or(1.0, |c| self.mass_g() / 1.988_409_87e33 * c.h)
    }

    /// Proper peculiar velocity in km/s of a code velocity at a: 100/a.
    pub fn velocity_km_s(&self, a: f64) -> f64 {
        self.cosmology.map_or(1.0, |_| VELOCITY_KM_S / a)
    }

    /// Temperature in K of P̃/ρ̃ = 1 at a: μ m_H (100 km/s/a)²/k_B.
    pub fn temperature_k(&self, a: f64, mean_molecular_weight: f64) -> f64 {
        let velocity_cm_s = self.cosmology.map_or(1.0, |_| VELOCITY_KM_S * 1e5 / a);
        mean_molecular_weight * HYDROGEN_G * velocity_cm_s * velocity_cm_s / BOLTZMANN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mean density in proper units: Ω_m ρ_c0 (1+z)³ = 1.767e-28 g/cm³ at z = 3, Ω_m = 0.3, h = 0.7.
    #[test]
    fn mean_density_at_redshift_three() {
        let units = Units::new(Some(Cosmology::flat(0.7, 0.3, 0.045, 0.9, 1.0)));
        let density = units.mass_g() / units.length_cm(0.25).powi(3);
        assert!((density / 1.767e-28 - 1.0).abs() < 5e-4, "{density:e}");
        // a velocity is length over time, and 4πG follows: G m / (l v²) = 3/2 Ω_m a/(4π)
        assert!((units.length_cm(0.25) / units.time_s(0.25) / (units.velocity_km_s(0.25) * 1e5) - 1.0).abs() < 1e-12);
        let g = NEWTON * units.mass_g() * units.time_s(0.25).powi(2) / units.length_cm(0.25).powi(3);
        assert!((4.0 * std::f64::consts::PI * g / (1.5 * 0.3 * 0.25) - 1.0).abs() < 1e-12);
    }
}
