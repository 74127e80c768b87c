//! The gas before the first structures: temperature and internal energy.

use comove_sim::{Cosmology, Units};

/// 1 + z at which the gas decouples thermally from the microwave background: 137 (Ω_b h²/0.022)^0.4.
pub fn decoupling_redshift_plus_one(cosmology: &Cosmology) -> f64 {
    137.0 * (cosmology.omega_b * cosmology.h * cosmology.h / 0.022).powf(0.4)
}

/// Mean gas temperature in K at redshift z: T_CMB (1+z) before decoupling, T_CMB (1+z)²/(1+z_dec) after it, when the
/// gas cools adiabatically.
pub fn gas_temperature_k(cosmology: &Cosmology, z: f64) -> f64 {
    let since_decoupling = (1.0 + z) / decoupling_redshift_plus_one(cosmology);
    cosmology.t_cmb_k * (1.0 + z) * since_decoupling.min(1.0)
}

/// Internal energy per mass in code units, (100 km/s)², of gas at `temperature_k` at scale factor a:
/// ε̃ = P̃/ρ̃/(γ−1), where P̃/ρ̃ is the temperature in units of [`Units::temperature_k`].
pub fn specific_internal_energy(
    cosmology: &Cosmology,
    a: f64,
    temperature_k: f64,
    mean_molecular_weight: f64,
    gamma: f64,
) -> f64 {
    let unit_k = Units::new(Some(*cosmology)).temperature_k(a, mean_molecular_weight);
    temperature_k / unit_k / (gamma - 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ω_b h² = 0.022 decouples at 1+z = 137; there both laws meet.
    #[test]
    fn temperature_joins_the_background_at_decoupling() {
        let cosmology = Cosmology::flat(0.7, 0.3, 0.022 / 0.49, 0.9, 1.0);
        assert!((gas_temperature_k(&cosmology, 136.0) - 2.7255 * 137.0).abs() < 1e-9);
        assert!((gas_temperature_k(&cosmology, 99.0) - 2.7255 * 1e4 / 137.0).abs() < 1e-9);
        assert!((gas_temperature_k(&cosmology, 999.0) - 2725.5).abs() < 1e-9);
    }

    /// k_B T/((γ−1) μ m_H) in (km/s)², written out: at 10⁴ K, μ = 1.22, γ = 5/3 it is 101.43 (km/s)² proper, and the
    /// code value is a² times that in (100 km/s)².
    #[test]
    fn internal_energy_in_proper_units() {
        let cosmology = Cosmology::flat(0.7, 0.3, 0.045, 0.9, 1.0);
        let expected_km_s_squared = 1.5 * 1.380_649e-16 * 1e4 / (1.22 * 1.673_557_5e-24) / 1e10;
        let found = specific_internal_energy(&cosmology, 0.1, 1e4, 1.22, 5.0 / 3.0);
        assert!((found / (expected_km_s_squared * 0.01 / 1e4) - 1.0).abs() < 1e-12, "{found}");
        assert!((expected_km_s_squared - 101.43).abs() < 0.01);
    }
}
