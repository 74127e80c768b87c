//! Fitting formulae of the mass function: f(σ) = (M/ρ_m) dn/dlnσ⁻¹, in the mean matter density ρ_m.

use crate::halos::overdensity::{MassDefinition, virial_overdensity};
use comove_sim::Cosmology;
use std::f64::consts::PI;

/// A prediction that a mass function is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// Tinker et al. 2008 (ApJ 688, 709), eqs. 3 and 5–8, the parameters of table 2 interpolated in log Δ.
    Tinker2008,
    /// Despali et al. 2016 (MNRAS 456, 2486), eqs. 7 and 12: of spheres, for all redshifts and overdensities.
    Despali2016,
}

/// Tinker et al. 2008, table 2: Δ in the mean density, A, a, b, c at z = 0.
const TINKER: [(f64, [f64; 4]); 9] = [
    (200.0, [0.186, 1.47, 2.57, 1.19]),
    (300.0, [0.200, 1.52, 2.25, 1.27]),
    (400.0, [0.212, 1.56, 2.05, 1.34]),
    (600.0, [0.218, 1.61, 1.87, 1.45]),
    (800.0, [0.248, 1.87, 1.59, 1.58]),
    (1200.0, [0.255, 2.13, 1.51, 1.80]),
    (1600.0, [0.260, 2.30, 1.46, 1.97]),
    (2400.0, [0.260, 2.53, 1.44, 2.24]),
    (3200.0, [0.260, 2.66, 1.41, 2.44]),
];

/// Redshift beyond which the parameters of Tinker et al. stay as they are (their section 4).
const TINKER_LAST: f64 = 3.0;

impl Model {
    /// f as a function of σ(M, a), if the model has one for a definition. The mass of friends of friends is compared with
    /// Tinker's for 200m, and with nothing else.
    pub fn multiplicity(
        self,
        definition: MassDefinition,
        cosmology: &Cosmology,
        a: f64,
    ) -> Option<Box<dyn Fn(f64) -> f64 + Send + Sync>> {
        match self {
            Self::Tinker2008 => {
                let [norm, slope, scale, cut] = tinker(definition.density(cosmology, a).unwrap_or(200.0), a)?;
                Some(Box::new(move |sigma| {
                    norm * ((sigma / scale).powf(-slope) + 1.0) * (-cut / (sigma * sigma)).exp()
                }))
            }
            Self::Despali2016 => {
                let critical = cosmology.critical_over_mean(a);
                let x = (definition.density(cosmology, a)? / critical / virial_overdensity(cosmology, a)).log10();
                let norm = -0.1362 * x + 0.3292;
                let scale = 0.4332 * x * x + 0.2263 * x + 0.7665;
                let power = -0.1151 * x * x + 0.2554 * x + 0.2488;
                let barrier = collapse_threshold(cosmology, a);
                Some(Box::new(move |sigma| {
                    let nu = scale * (barrier / sigma).powi(2);
                    2.0 * norm * (1.0 + nu.powf(-power)) * (nu / (2.0 * PI)).sqrt() * (-0.5 * nu).exp()
                }))
            }
        }
    }
}

/// A, a, b, c at an overdensity in the mean density; none outside the table.
fn tinker(delta: f64, a: f64) -> Option<[f64; 4]> {
    // Δ_m of the virial density falls to 178 at high redshift
    let delta = if (177.0..200.0).contains(&delta) { 200.0 } else { delta };
    let above = TINKER.iter().position(|(other, _)| *other >= delta)?.max(1);
    let ((low, before), (high, after)) = (TINKER[above - 1], TINKER[above]);
    let weight = (delta / low).ln() / (high / low).ln();
    if weight < 0.0 {
        return None;
    }
    let [norm, slope, scale, cut] = std::array::from_fn(|n| before[n] + weight * (after[n] - before[n]));
    let stretch = (1.0 / a).min(1.0 + TINKER_LAST);
    let alpha = 10f64.powf(-(0.75 / (delta / 75.0).log10()).powf(1.2));
    Some([norm * stretch.powf(-0.14), slope * stretch.powf(-0.06), scale * stretch.powf(-alpha), cut])
}

/// δ_c of linear theory at collapse: 3/20 (12π)^⅔ Ω_m(a)^0.0055 of a flat universe (Kitayama & Suto 1996, as Despali et al.
/// take it), Ω_m(a)^0.0185 of one without dark energy.
fn collapse_threshold(cosmology: &Cosmology, a: f64) -> f64 {
    let omega = 1.0 / cosmology.critical_over_mean(a);
    let power = if cosmology.omega_lambda == 0.0 { 0.0185 } else { 0.0055 };
    0.15 * (12.0 * PI).powf(2.0 / 3.0) * omega.powf(power)
}
