//! The transfer function of cold dark matter and baryons: the fitting formula of Eisenstein & Hu 1998 (ApJ 496, 605),
//! with acoustic oscillations. Equation numbers are those of that paper.

use comove_sim::Cosmology;
use std::f64::consts::E;

/// The fit for one cosmology; wave numbers in 1/Mpc, without h.
#[derive(Clone, Debug)]
pub struct EisensteinHu {
    baryon_fraction: f64,
    /// k at matter–radiation equality in 1/Mpc.
    k_equality: f64,
    alpha_c: f64,
    beta_c: f64,
    /// `None` without baryons: cold dark matter alone.
    baryons: Option<Baryons>,
}

#[derive(Clone, Debug)]
struct Baryons {
    /// Sound horizon in Mpc.
    sound_horizon: f64,
    /// Silk damping scale in 1/Mpc.
    k_silk: f64,
    alpha: f64,
    beta: f64,
    /// Where the phase shift of the oscillations sets in, in units of ks.
    node: f64,
}

impl EisensteinHu {
    /// The fit's coefficients from Ω_m h², Ω_b h² and T_CMB.
    pub fn new(cosmology: &Cosmology) -> Self {
        let om = cosmology.omega_m * cosmology.h.powi(2);
        let ob = cosmology.omega_b * cosmology.h.powi(2);
        let fb = ob / om;
        let theta = cosmology.t_cmb_k / 2.7;
        let z_equality = 2.50e4 * om * theta.powi(-4); // eq. 2
        let k_equality = 7.46e-2 * om * theta.powi(-2); // eq. 3

        // eqs. 11, 12: suppression of cold dark matter
        let a1 = (46.9 * om).powf(0.670) * (1.0 + (32.1 * om).powf(-0.532));
        let a2 = (12.0 * om).powf(0.424) * (1.0 + (45.0 * om).powf(-0.582));
        let alpha_c = a1.powf(-fb) * a2.powf(-fb.powi(3));
        let b1 = 0.944 / (1.0 + (458.0 * om).powf(-0.708));
        let b2 = (0.395 * om).powf(-0.0266);
        let beta_c = 1.0 / (1.0 + b1 * ((1.0 - fb).powf(b2) - 1.0));

        let baryons = (ob > 0.0).then(|| Baryons::new(om, ob, theta, z_equality, k_equality));
        Self { baryon_fraction: fb, k_equality, alpha_c, beta_c, baryons }
    }

    /// T(k), k in 1/Mpc: eq. 16, normalised to 1 for k → 0.
    pub fn at(&self, k: f64) -> f64 {
        let q = k / (13.41 * self.k_equality); // eq. 10
        let Some(baryons) = &self.baryons else {
            return pressureless(q, self.alpha_c, self.beta_c);
        };
        let ks = k * baryons.sound_horizon;
        // eqs. 17, 18: cold dark matter
        let f = 1.0 / (1.0 + (ks / 5.4).powi(4));
        let cold = f * pressureless(q, 1.0, self.beta_c) + (1.0 - f) * pressureless(q, self.alpha_c, self.beta_c);
        // eqs. 21, 22: baryons
        let shifted = ks / (1.0 + (baryons.node / ks).powi(3)).cbrt();
        let oscillation = if shifted < 1e-4 { 1.0 } else { shifted.sin() / shifted };
        let smooth = pressureless(q, 1.0, 1.0) / (1.0 + (ks / 5.2).powi(2));
        let damped = baryons.alpha / (1.0 + (baryons.beta / ks).powi(3)) * (-(k / baryons.k_silk).powf(1.4)).exp();
        self.baryon_fraction * (smooth + damped) * oscillation + (1.0 - self.baryon_fraction) * cold
    }
}

impl Baryons {
    fn new(om: f64, ob: f64, theta: f64, z_equality: f64, k_equality: f64) -> Self {
        let fb = ob / om;
        // eq. 4: redshift of the drag epoch
        let b1 = 0.313 * om.powf(-0.419) * (1.0 + 0.607 * om.powf(0.674));
        let b2 = 0.238 * om.powf(0.223);
        let z_drag = 1291.0 * om.powf(0.251) / (1.0 + 0.659 * om.powf(0.828)) * (1.0 + b1 * ob.powf(b2));
        // eqs. 5, 6: baryon–photon momentum ratio and sound horizon
        let ratio = |z: f64| 31.5 * ob * theta.powi(-4) * (1e3 / z);
        let (r_drag, r_equality) = (ratio(z_drag), ratio(z_equality));
        let sound_horizon = 2.0 / (3.0 * k_equality)
            * (6.0 / r_equality).sqrt()
            * (((1.0 + r_drag).sqrt() + (r_drag + r_equality).sqrt()) / (1.0 + r_equality.sqrt())).ln();
        // eq. 7
        let k_silk = 1.6 * ob.powf(0.52) * om.powf(0.73) * (1.0 + (10.4 * om).powf(-0.95));
        // eqs. 14, 15
        let y = (1.0 + z_equality) / (1.0 + z_drag);
        let root = (1.0 + y).sqrt();
        let g = y * (-6.0 * root + (2.0 + 3.0 * y) * ((root + 1.0) / (root - 1.0)).ln());
        let alpha = 2.07 * k_equality * sound_horizon * (1.0 + r_drag).powf(-0.75) * g;
        // eqs. 23, 24
        let node = 8.41 * om.powf(0.435);
        let beta = 0.5 + fb + (3.0 - 2.0 * fb) * ((17.2 * om).powi(2) + 1.0).sqrt();
        Self { sound_horizon, k_silk, alpha, beta, node }
    }
}

/// Eqs. 19, 20: the pressureless transfer function T̃0.
fn pressureless(q: f64, alpha: f64, beta: f64) -> f64 {
    let c = 14.2 / alpha + 386.0 / (1.0 + 69.9 * q.powf(1.08));
    let l = (E + 1.8 * beta * q).ln();
    l / (l + c * q * q)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sound horizon against the paper's own approximation, eq. 26, good to 2% for Ω_b h² > 0.0125:
    /// s = 44.5 ln(9.83/Ω_m h²)/√(1 + 10 (Ω_b h²)^(3/4)) Mpc.
    #[test]
    fn sound_horizon_agrees_with_its_approximation() {
        for (omega_m, omega_b) in [(0.3, 0.045), (0.25, 0.04), (0.5, 0.06)] {
            let cosmology = Cosmology { t_cmb_k: 2.728, ..Cosmology::flat(0.7, omega_m, omega_b, 0.9, 1.0) };
            let (om, ob) = (omega_m * 0.49, omega_b * 0.49);
            let approximation = 44.5 * (9.83f64 / om).ln() / (1.0 + 10.0 * f64::powf(ob, 0.75)).sqrt();
            let s = EisensteinHu::new(&cosmology).baryons.unwrap().sound_horizon;
            assert!((s / approximation - 1.0).abs() < 0.02, "{s} {approximation}");
        }
        assert!((EisensteinHu::new(&Cosmology::flat(0.7, 0.3, 0.045, 0.9, 1.0)).at(1e-6) - 1.0).abs() < 1e-5);
    }
}
