//! The background: every power of a, with its formula.
//!
//! Time inside a run is the supercomoving t̃ with dt̃ = H0 dt/a² (paper, eq. 12), lengths are comoving Mpc/h, code
//! velocities are a v_pec/(100 km/s).

use crate::constants::{HUBBLE_LENGTH_MPC_H, HUBBLE_TIME_GYR_H};
use crate::error::SimError;
use crate::neutrinos::Neutrinos;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// A Friedmann model with matter, massive neutrinos, curvature, radiation and dark energy w(a) = w0 + wa (1 − a), and the shape
/// of its initial spectrum.
///
/// Neutrinos are smooth: they enter H(a) alone. Matter that clusters is that of Ω_cb, cold dark matter and baryons.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cosmology {
    /// H0/(100 km/s/Mpc).
    pub h: f64,
    /// Matter today, in the critical density, massive neutrinos included.
    pub omega_m: f64,
    /// Baryons today; shapes the initial spectrum.
    pub omega_b: f64,
    /// Dark energy today. Curvature is what is missing to 1.
    pub omega_lambda: f64,
    /// Radiation today; in the background only. With massive neutrinos photons alone, 2.473·10⁻⁵/h².
    #[serde(default)]
    pub omega_r: f64,
    /// Sum of the neutrino masses in eV, three species of equal mass; 0 without massive neutrinos.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub m_nu_ev: f64,
    /// Dark energy equation of state today.
    #[serde(default = "minus_one")]
    pub w0: f64,
    /// Its change: w = w0 + wa (1 − a).
    #[serde(default)]
    pub wa: f64,
    /// RMS of the linear density in spheres of 8 Mpc/h today.
    pub sigma8: f64,
    /// Slope of the primordial spectrum.
    pub n_s: f64,
    /// Temperature of the microwave background today in K.
    #[serde(default = "t_cmb_k")]
    pub t_cmb_k: f64,
}

fn minus_one() -> f64 {
    -1.0
}

fn t_cmb_k() -> f64 {
    2.7255
}

fn is_zero(number: &f64) -> bool {
    *number == 0.0
}

/// Largest sum of neutrino masses in eV: beyond it neutrinos cluster too strongly to be smooth.
const MOST_M_NU_EV: f64 = 2.0;

/// Nodes and weights of the 8-point Gauss–Legendre rule on [−1, 1], positive half.
const GAUSS: [(f64, f64); 4] = [
    (0.183_434_642_495_649_8, 0.362_683_783_378_362),
    (0.525_532_409_916_329, 0.313_706_645_877_887_3),
    (0.796_666_477_413_626_7, 0.222_381_034_453_374_48),
    (0.960_289_856_497_536_3, 0.101_228_536_290_376_26),
];

/// ∫ f dx over [a, b] by `panels` 8-point Gauss–Legendre panels.
fn integrate(a: f64, b: f64, panels: usize, f: impl Fn(f64) -> f64) -> f64 {
    let half = (b - a) / (2 * panels) as f64;
    (0..panels)
        .map(|p| {
            let centre = a + half * (2 * p + 1) as f64;
            GAUSS.iter().map(|&(x, w)| w * (f(centre - half * x) + f(centre + half * x))).sum::<f64>() * half
        })
        .sum()
}

/// Panels of [`integrate`] that resolve what depends on lna between a and 1.
fn panels(a: f64) -> usize {
    1 + (4.0 * a.ln().abs()) as usize
}

impl Cosmology {
    /// A flat model without radiation and massive neutrinos, and with a cosmological constant.
    pub fn flat(h: f64, omega_m: f64, omega_b: f64, sigma8: f64, n_s: f64) -> Self {
        Self {
            h,
            omega_m,
            omega_b,
            omega_lambda: 1.0 - omega_m,
            omega_r: 0.0,
            m_nu_ev: 0.0,
            w0: -1.0,
            wa: 0.0,
            sigma8,
            n_s,
            t_cmb_k: t_cmb_k(),
        }
    }

    /// Checks ranges.
    ///
    /// # Errors
    /// [`SimError::Parameter`] naming the first number that is out of range.
    pub fn check(&self) -> Result<(), SimError> {
        let check = |name, value: f64, good: bool, reason: &str| {
            SimError::require(name, &value, good && value.is_finite(), reason)
        };
        check("h", self.h, self.h > 0.1 && self.h < 2.0, "must lie between 0.1 and 2, as H0/(100 km/s/Mpc)")?;
        check("omega_m", self.omega_m, self.omega_m > 0.0 && self.omega_m <= 2.0, "must lie in (0, 2]")?;
        let masses = (0.0..=MOST_M_NU_EV).contains(&self.m_nu_ev);
        check("m_nu_ev", self.m_nu_ev, masses, "must lie between 0 and 2, as the sum of neutrino masses in eV")?;
        check("t_cmb_k", self.t_cmb_k, self.t_cmb_k > 0.0 && self.t_cmb_k < 10.0, "must lie between 0 and 10 K")?;
        let (omega_nu, omega_cb) = (self.omega_nu(), self.omega_cb());
        let reason =
            format!("neutrinos have {omega_nu:.5} of the critical density, omega_m = {}; reduce m_nu_ev", self.omega_m);
        check("m_nu_ev", self.m_nu_ev, omega_cb > 0.0, &reason)?;
        let reason = match self.m_nu_ev {
            0.0 => "must lie between 0 and omega_m".into(),
            _ => format!("must lie between 0 and {omega_cb:.5}, omega_m without neutrinos"),
        };
        check("omega_b", self.omega_b, self.omega_b >= 0.0 && self.omega_b <= omega_cb, &reason)?;
        check("omega_lambda", self.omega_lambda, self.omega_lambda.abs() < 3.0, "must lie between -3 and 3")?;
        check("omega_r", self.omega_r, (0.0..0.1).contains(&self.omega_r), "must lie in [0, 0.1)")?;
        check("w0", self.w0, self.w0 > -5.0 && self.w0 < 0.0, "must lie between -5 and 0")?;
        check("wa", self.wa, self.wa.abs() < 5.0 && self.w0 + self.wa < 0.0, "w0 + wa must be negative")?;
        check("sigma8", self.sigma8, self.sigma8 > 0.0 && self.sigma8 < 5.0, "must lie between 0 and 5")?;
        check("n_s", self.n_s, self.n_s > 0.0 && self.n_s < 3.0, "must lie between 0 and 3")?;
        let mut epochs = (0..=6000).map(|n| 10f64.powf(-1e-3 * f64::from(n)));
        // also where it is no number
        let without = epochs.find(|&a| self.expansion_squared(a).partial_cmp(&0.0) != Some(Ordering::Greater));
        without.map_or(Ok(()), |a| {
            let reason = format!("(H/H0)² is not positive at a = {a:.3}; reduce omega_lambda");
            check("omega_lambda", self.omega_lambda, false, &reason)
        })
    }

    /// Curvature today: Ω_k = 1 − Ω_m − Ω_Λ − Ω_r.
    pub fn omega_k(&self) -> f64 {
        1.0 - self.omega_m - self.omega_lambda - self.omega_r
    }

    /// Massive neutrinos today, in the critical density.
    pub fn omega_nu(&self) -> f64 {
        self.neutrinos().map_or(0.0, |neutrinos| neutrinos.density(1.0))
    }

    /// Cold dark matter and baryons today, in the critical density: Ω_m − Ω_ν. The box holds this matter.
    pub fn omega_cb(&self) -> f64 {
        self.omega_m - self.omega_nu()
    }

    /// Name of Ω_cb in messages: `omega_m` without massive neutrinos.
    pub fn omega_cb_name(&self) -> &'static str {
        if self.has_neutrinos() { "omega_cb" } else { "omega_m" }
    }

    /// Share of baryons in the matter of the box: Ω_b/Ω_cb.
    pub fn baryon_fraction(&self) -> f64 {
        self.omega_b / self.omega_cb()
    }

    /// Share of massive neutrinos in all matter at a.
    pub fn neutrino_fraction(&self, a: f64) -> f64 {
        let neutrinos = self.neutrinos().map_or(0.0, |neutrinos| neutrinos.density(a));
        neutrinos / (neutrinos + self.omega_cb() / a.powi(3))
    }

    /// True for cosmologies with massive neutrinos.
    pub fn has_neutrinos(&self) -> bool {
        self.m_nu_ev > 0.0
    }

    fn neutrinos(&self) -> Option<Neutrinos> {
        self.has_neutrinos().then(|| Neutrinos::new(self.m_nu_ev, self.h, self.t_cmb_k))
    }

    /// (H/H0)² = Ω_r a⁻⁴ + Ω_cb a⁻³ + Ω_k a⁻² + Ω_Λ a^(−3(1+w0+wa)) e^(−3 wa (1−a)) + Ω_ν(a).
    fn expansion_squared(&self, a: f64) -> f64 {
        let dark_energy = a.powf(-3.0 * (1.0 + self.w0 + self.wa)) * (-3.0 * self.wa * (1.0 - a)).exp();
        self.omega_r / a.powi(4)
            + self.omega_cb() / a.powi(3)
            + self.omega_k() / a.powi(2)
            + self.omega_lambda * dark_energy
            + self.neutrinos().map_or(0.0, |neutrinos| neutrinos.density(a))
    }

    /// E(a) = H/H0.
    pub fn expansion(&self, a: f64) -> f64 {
        self.expansion_squared(a).sqrt()
    }

    /// dlnE/dlna.
    fn expansion_slope(&self, a: f64) -> f64 {
        let w = self.w0 + self.wa * (1.0 - a);
        let dark_energy = a.powf(-3.0 * (1.0 + self.w0 + self.wa)) * (-3.0 * self.wa * (1.0 - a)).exp();
        (-4.0 * self.omega_r / a.powi(4)
            - 3.0 * self.omega_cb() / a.powi(3)
            - 2.0 * self.omega_k() / a.powi(2)
            - 3.0 * (1.0 + w) * self.omega_lambda * dark_energy
            + self.neutrinos().map_or(0.0, |neutrinos| neutrinos.density_slope(a)))
            / (2.0 * self.expansion_squared(a))
    }

    /// Supercomoving time between two scale factors: t̃ = ∫ da/(a³E) = ∫ dlna/(a²E).
    pub fn code_time(&self, from_a: f64, to_a: f64) -> f64 {
        let panels = 1 + ((to_a / from_a).ln().abs() * 4.0) as usize;
        integrate(from_a.ln(), to_a.ln(), panels, |x| {
            let a = x.exp();
            1.0 / (a * a * self.expansion(a))
        })
    }

    /// The scale factor a code time `dt` after `a`: inverts [`Cosmology::code_time`] by Newton's method.
    pub fn scale_factor_after(&self, a: f64, dt: f64) -> f64 {
        let rate = |a: f64| a * a * self.expansion(a); // dlna/dt̃ = a²E
        let x0 = a.ln();
        let mut x = x0 + dt * rate((x0 + 0.5 * dt * rate(a)).exp());
        for _ in 0..20 {
            let step = (self.code_time(a, x.exp()) - dt) * rate(x.exp());
            x -= step;
            if step.abs() < 1e-16 * x.abs().max(1e-2) {
                break;
            }
        }
        x.exp()
    }

    /// Age of the universe in Gyr: ∫ dlna/(H0 E).
    pub fn age_gyr(&self, a: f64) -> f64 {
        integrate((1e-10f64).ln(), a.ln(), 96, |x| 1.0 / self.expansion(x.exp())) * HUBBLE_TIME_GYR_H / self.h
    }

    /// Time from a to today in Gyr: ∫ dlna/(H0 E).
    pub fn lookback_time_gyr(&self, a: f64) -> f64 {
        integrate(a.ln(), 0.0, panels(a), |x| 1.0 / self.expansion(x.exp())) * HUBBLE_TIME_GYR_H / self.h
    }

    /// Comoving distance along the line of sight to a in Mpc/h: (c/H0) ∫ dlna/(a E).
    pub fn comoving_distance_mpc_h(&self, a: f64) -> f64 {
        let inverse = |x: f64| 1.0 / (x.exp() * self.expansion(x.exp()));
        HUBBLE_LENGTH_MPC_H * integrate(a.ln(), 0.0, panels(a), inverse)
    }

    /// Comoving distance across the line of sight at a in Mpc/h, the length that a comoving angle of one radian spans:
    /// (c/H0) S(√|Ω_k| D H0/c)/√|Ω_k| of the distance D along it, S = sinh, sin or the identity as space is open, closed
    /// or flat (Hogg 1999, eq. 16).
    pub fn transverse_distance_mpc_h(&self, a: f64) -> f64 {
        let along = self.comoving_distance_mpc_h(a);
        let curvature = self.omega_k();
        let root = curvature.abs().sqrt() / HUBBLE_LENGTH_MPC_H;
        if root * along < 1e-4 {
            // both series, to the second term: the third is below round-off
            along * (1.0 + curvature.signum() * (root * along).powi(2) / 6.0)
        } else if curvature > 0.0 {
            (root * along).sinh() / root
        } else {
            // beyond the antipode lengths grow again
            (root * along).sin().abs() / root
        }
    }

    /// Angular diameter distance to a in proper Mpc/h: a times the distance across.
    pub fn angular_diameter_distance_mpc_h(&self, a: f64) -> f64 {
        self.transverse_distance_mpc_h(a) * a
    }

    /// Luminosity distance to a in Mpc/h: the distance across over a.
    pub fn luminosity_distance_mpc_h(&self, a: f64) -> f64 {
        self.transverse_distance_mpc_h(a) / a
    }

    /// H in km/s/Mpc: 100 h E.
    pub fn hubble_km_s_mpc(&self, a: f64) -> f64 {
        100.0 * self.h * self.expansion(a)
    }

    /// RMS of the linear density in spheres of 8 Mpc/h at a: σ8 D(a)/D(1). With neutrinos σ8 is that of all matter today.
    pub fn sigma8_at(&self, a: f64) -> f64 {
        self.sigma8 * self.growth(a).0 / self.growth(1.0).0
    }

    /// Linear growth from a to today of the matter in the box: D(a)/D(1).
    pub fn growth_factor(&self, a: f64) -> f64 {
        self.growth(a).0 / self.growth(1.0).0
    }

    /// Linear growth D(a) of the matter in the box and its slope f = dlnD/dlna, normalised to D = a deep in matter domination (with
    /// radiation: D = a + 2/3 a_eq, Mészáros 1974). With smooth neutrinos D falls behind a once they are cold, and is that of all
    /// wave numbers beyond their free streaming.
    ///
    /// Integrates D'' + (2 + dlnE/dlna) D' = (3/2) Ω_cb D/(a³E²) in lna by Runge–Kutta from a = 10⁻⁶.
    pub fn growth(&self, a: f64) -> (f64, f64) {
        let [d, v, ..] = self.growth_of_two_orders(a);
        (d, v / d)
    }

    /// Growth of second order in Lagrangian perturbation theory: −7/3 D₂/D², 1 where matter is all, and dlnD₂/dlna.
    ///
    /// D₂'' + (2 + dlnE/dlna) D₂' = (3/2) Ω_cb (D₂ − D²)/(a³E²) (Bouchet et al. 1995).
    pub fn second_order_growth(&self, a: f64) -> (f64, f64) {
        let [d, _, d2, v2] = self.growth_of_two_orders(a);
        (-7.0 / 3.0 * d2 / (d * d), v2 / d2)
    }

    /// Growth of third order in Lagrangian perturbation theory of the terms (3a), (3b) and (3c): −3 D₃ₐ/D³, 21/5 D₃ᵦ/D³ and
    /// −7 D₃꜀/D³, 1 where matter is all, each with its dlnD₃/dlna.
    ///
    /// With L D = D'' + (2 + dlnE/dlna) D' and s = (3/2) Ω_cb/(a³E²): L D₃ₐ = s (D₃ₐ − 2D³), L D₃ᵦ = s (D₃ᵦ + D³ − D D₂),
    /// L D₃꜀ = −s D³ (Bouchet et al. 1995; Catelan 1995).
    pub fn third_order_growth(&self, a: f64) -> [(f64, f64); 3] {
        // the same powers of D as where matter is all
        let third = [-1.0 / 3.0, 5.0 / 21.0, -1.0 / 7.0];
        let start = |d: f64, v: f64| {
            let [a, b, c] = third.map(|factor| [factor * d.powi(3), 3.0 * factor * d * d * v]);
            [d, v, -3.0 / 7.0 * d * d, -6.0 / 7.0 * d * v, a[0], a[1], b[0], b[1], c[0], c[1]]
        };
        let [d, .., a3, va, b3, vb, c3, vc] =
            self.growth_by(a, start, |source, drag, [d, v, d2, v2, a3, va, b3, vb, _, vc]| {
                let cube = d.powi(3);
                [
                    v,
                    source * d - drag * v,
                    v2,
                    source * (d2 - d * d) - drag * v2,
                    va,
                    source * (a3 - 2.0 * cube) - drag * va,
                    vb,
                    source * (b3 + cube - d * d2) - drag * vb,
                    vc,
                    -source * cube - drag * vc,
                ]
            });
        let terms = [(a3, va), (b3, vb), (c3, vc)];
        std::array::from_fn(|n| (terms[n].0 / (third[n] * d.powi(3)), terms[n].1 / terms[n].0))
    }

    /// D, D', D₂, D₂'.
    fn growth_of_two_orders(&self, a: f64) -> [f64; 4] {
        let start = |d: f64, v: f64| [d, v, -3.0 / 7.0 * d * d, -6.0 / 7.0 * d * v];
        self.growth_by(a, start, |source, drag, [d, v, d2, v2]| {
            [v, source * d - drag * v, v2, source * (d2 - d * d) - drag * v2]
        })
    }

    /// Growing modes at a, by Runge–Kutta in lna from a = 10⁻⁶.
    ///
    /// * `first`: their values at the start, of D and D'
    /// * `slope`: derivatives of the values, also of (3/2) Ω_cb/(a³E²) and 2 + dlnE/dlna
    fn growth_by<const N: usize>(
        &self,
        a: f64,
        first: impl Fn(f64, f64) -> [f64; N],
        slope: impl Fn(f64, f64, [f64; N]) -> [f64; N],
    ) -> [f64; N] {
        let start: f64 = 1e-6;
        let omega_cb = self.omega_cb();
        // of neutrinos that are relativistic at the start, all of Ω_ν
        let neutrinos = self.neutrinos().map_or(0.0, |neutrinos| neutrinos.density(start) * start.powi(4));
        let mut state = first(start + 2.0 / 3.0 * (self.omega_r + neutrinos) / omega_cb, start);
        let derivative = |x: f64, state: [f64; N]| {
            let a = x.exp();
            let source = 1.5 * omega_cb / (a.powi(3) * self.expansion_squared(a));
            slope(source, 2.0 + self.expansion_slope(a), state)
        };
        let steps = 2000;
        let dx = (a / start).ln() / f64::from(steps);
        for i in 0..steps {
            let x = start.ln() + dx * f64::from(i);
            let add = |s: [f64; N], k: [f64; N], f: f64| std::array::from_fn(|n| s[n] + f * k[n]);
            let k1 = derivative(x, state);
            let k2 = derivative(x + 0.5 * dx, add(state, k1, 0.5 * dx));
            let k3 = derivative(x + 0.5 * dx, add(state, k2, 0.5 * dx));
            let k4 = derivative(x + dx, add(state, k3, dx));
            for n in 0..N {
                state[n] += dx / 6.0 * (k1[n] + 2.0 * k2[n] + 2.0 * k3[n] + k4[n]);
            }
        }
        state
    }

    /// 4πG in code units at scale factor a: ∇̃²φ̃ = (3/2) Ω_cb a (ρ̃ − ⟨ρ̃⟩) (paper, eqs. 24–25).
    pub fn four_pi_g(&self, a: f64) -> f64 {
        1.5 * self.omega_cb() * a
    }

    /// Critical density over the mean density of the matter in the box at a: E²(a) a³/Ω_cb.
    pub fn critical_over_mean(&self, a: f64) -> f64 {
        self.expansion_squared(a) * a.powi(3) / self.omega_cb()
    }

    /// Comoving Hubble rate aH/c in h/Mpc: a E/(c/H0).
    pub fn comoving_hubble_h_mpc(&self, a: f64) -> f64 {
        a * self.expansion(a) / HUBBLE_LENGTH_MPC_H
    }

    /// Hubble flow per comoving Mpc/h in code velocity units: a·(a H r)/(100 km/s) = a² E(a).
    pub fn hubble_flow(&self, a: f64) -> f64 {
        a * a * self.expansion(a)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Einstein–de Sitter: t̃ = 2 (a₁^(−1/2) − a₂^(−1/2)), D = a.
    #[test]
    fn einstein_de_sitter_in_closed_form() {
        let c = Cosmology::flat(0.7, 1.0, 0.0, 0.8, 1.0);
        let t = c.code_time(0.02, 0.5);
        assert!((t - 2.0 * (0.02f64.powf(-0.5) - 0.5f64.powf(-0.5))).abs() < 1e-12 * t);
        assert!((c.scale_factor_after(0.02, t) - 0.5).abs() < 1e-13);
        let (d, f) = c.growth(0.3);
        assert!((d - 0.3).abs() < 1e-9 && (f - 1.0).abs() < 1e-9, "{d} {f}");
        let (size, slope) = c.second_order_growth(0.3);
        assert!((size - 1.0).abs() < 1e-7 && (slope - 2.0).abs() < 1e-7, "{size} {slope}");
        for (size, slope) in c.third_order_growth(0.3) {
            assert!((size - 1.0).abs() < 1e-7 && (slope - 3.0).abs() < 1e-7, "{size} {slope}");
        }
    }

    /// Flat ΛCDM: the closed forms of age, and of growth as an integral (Heath 1977).
    #[test]
    fn lambda_in_closed_form() {
        let c = Cosmology::flat(0.7, 0.3, 0.045, 0.9, 1.0);
        let x = (c.omega_lambda / c.omega_m).sqrt();
        let age = 2.0 / (3.0 * c.omega_lambda.sqrt()) * x.asinh() * HUBBLE_TIME_GYR_H / c.h;
        assert!((c.age_gyr(1.0) / age - 1.0).abs() < 1e-9, "{} {age}", c.age_gyr(1.0));
        let heath = |a: f64| {
            let integral =
                integrate((1e-8f64).ln(), a.ln(), 200, |x| (x.exp() * c.expansion(x.exp())).powi(-3) * x.exp());
            2.5 * c.omega_m * c.expansion(a) * integral
        };
        for a in [0.02, 0.1, 0.5, 1.0] {
            assert!((c.growth(a).0 / heath(a) - 1.0).abs() < 1e-7, "a = {a}: {} {}", c.growth(a).0, heath(a));
        }
    }

    fn model(h: f64, [omega_m, omega_lambda]: [f64; 2], [w0, wa]: [f64; 2]) -> Cosmology {
        Cosmology { omega_lambda, w0, wa, ..Cosmology::flat(h, omega_m, 0.0, 0.8, 1.0) }
    }

    fn close(value: f64, expected: f64, tolerance: f64, what: &str) {
        assert!((value / expected - 1.0).abs() < tolerance, "{what}: {value}, not {expected}");
    }

    /// Einstein–de Sitter: D = 2 c/H0 (1 − √a), t = 2/(3 H0) a^(3/2), σ8 ∝ a. A universe of matter alone with half the
    /// critical density: Mattig's (1958) distance 2 (Ω z + (Ω − 2)(√(1 + Ω z) − 1))/(Ω² (1 + z)) c/H0 across, and the
    /// growth of Peebles (1980, eq. 11.16).
    #[test]
    fn distances_and_growth_in_closed_form() {
        let c = model(0.7, [1.0, 0.0], [-1.0, 0.0]);
        let open = model(0.7, [0.5, 0.0], [-1.0, 0.0]);
        for z in [1e-4, 0.3, 2.0, 49.0, 1100.0] {
            let a: f64 = 1.0 / (1.0 + z);
            let distance = 2.0 * HUBBLE_LENGTH_MPC_H * z * a / (1.0 + a.sqrt()); // 1 − √a without cancellation
            // a alone is good to 1e-16, and z to 1e-16/z
            let tolerance = 1e-15 / z.min(1e-3);
            close(c.comoving_distance_mpc_h(a), distance, tolerance, "along");
            close(c.transverse_distance_mpc_h(a), distance, tolerance, "across");
            close(c.angular_diameter_distance_mpc_h(a), distance * a, tolerance, "angular");
            close(c.luminosity_distance_mpc_h(a), distance / a, tolerance, "luminosity");
            close(c.sigma8_at(a), 0.8 * a, 1e-9, "sigma8");
            let root = 0.5 * z / (1.0 + (1.0 + 0.5 * z).sqrt()); // √(1 + Ω z) − 1
            let mattig = 2.0 * (0.5 * z - 1.5 * root) * a / 0.25 * HUBBLE_LENGTH_MPC_H;
            close(open.transverse_distance_mpc_h(a), mattig, 1e-11, "Mattig");
        }
        let unit = HUBBLE_TIME_GYR_H / 0.7 * 2.0 / 3.0;
        close(c.lookback_time_gyr(0.25), unit * 0.875, 1e-12, "lookback time");
        close(c.lookback_time_gyr(0.25) + c.age_gyr(0.25), c.age_gyr(1.0), 1e-9, "age today");
        close(c.hubble_km_s_mpc(0.25), 560.0, 1e-14, "H");
        let peebles = |a: f64| {
            let x: f64 = a; // (1/Ω − 1) a
            1.0 + 3.0 / x + 3.0 * (1.0 + x).sqrt() / x.powf(1.5) * ((1.0 + x).sqrt() - x.sqrt()).ln()
        };
        for a in [0.1, 0.4] {
            close(open.sigma8_at(a), 0.8 * peebles(a) / peebles(1.0), 1e-7, "open growth");
        }
    }

    /// Against astropy 8.0.2 (`LambdaCDM`, `w0waCDM` with Tcmb0=0): comoving_distance, comoving_transverse_distance,
    /// angular_diameter_distance, luminosity_distance in Mpc, lookback_time, age in Gyr, H. Ages at z = 1100 in curved
    /// space, where astropy's quadrature is good to 2e-8 only, are mpmath's (∫ da/√(Ω_m/a + Ω_k + Ω_Λ a²), 30 digits).
    #[test]
    fn distances_and_times_of_astropy() {
        let constant = [-1.0, 0.0];
        let open = model(0.7, [0.3, 0.1], constant);
        let closed = model(0.7, [0.3, 0.9], constant);
        let dynamic = model(0.6774, [0.3089, 0.68], [-0.9, 0.2]);
        #[rustfmt::skip]
        let cases = [
            (model(0.7, [0.3, 0.7], constant), 0.5, [1888.62539593, 1888.62539593, 1259.08359729, 2832.9380939, 5.04063792931, 8.42634601775, 91.6037662981]),
            (model(0.7, [0.3, 0.7], constant), 1100.0, [13683.5105099, 13683.5105099, 12.428256594, 15065545.0714, 13.4665185585, 0.000465388527529, 1400682.31798]),
            (open, 3.0, [5303.7670045, 6155.42887745, 1538.85721936, 24621.7155098, 9.66413350634, 1.87025619224, 376.31104156]),
            (open, 1100.0, [12112.2867662, 24409.0615805, 22.1699015264, 26874376.8001, 11.5339245634, 0.000465135156435, 1401953.93073]),
            (closed, 3.0, [6904.77257907, 6321.88323979, 1580.47080995, 25287.5329591, 12.2187743272, 2.22193427746, 287.767267075]),
            (closed, 1100.0, [14456.3357059, 9558.56933146, 8.68171601404, 10523984.8339, 14.4402431316, 0.000465473094166, 1400258.19044]),
            (dynamic, 3.0, [6300.13664433, 6323.78271907, 1580.94567977, 25295.1308763, 11.2992107949, 2.12659102736, 313.783482557]),
        ];
        for (c, z, expected) in cases {
            let a = 1.0 / (1.0 + z);
            let lengths = [
                c.comoving_distance_mpc_h(a),
                c.transverse_distance_mpc_h(a),
                c.angular_diameter_distance_mpc_h(a),
                c.luminosity_distance_mpc_h(a),
            ];
            let lengths = lengths.map(|length| length / c.h);
            let others = [c.lookback_time_gyr(a), c.age_gyr(a), c.hubble_km_s_mpc(a)];
            for (n, (value, expected)) in lengths.into_iter().chain(others).zip(expected).enumerate() {
                close(value, expected, 1e-9, &format!("z = {z}, {c:?}, {n}"));
            }
        }
    }

    /// A universe that never was as small as a = 1e-6 is refused; one that is nearly so shows what lies beyond the
    /// antipode.
    #[test]
    fn closed_models() {
        let refused = model(0.7, [0.1, 2.8], [-1.0, 0.0]).check().unwrap_err().to_string();
        assert!(refused.contains("omega_lambda") && refused.contains("(H/H0)² is not positive"), "{refused}");
        let closed = model(0.7, [0.3, 1.7], [-1.0, 0.0]);
        closed.check().unwrap();
        let along = closed.comoving_distance_mpc_h(1e-3) / HUBBLE_LENGTH_MPC_H;
        assert!(along > std::f64::consts::PI && closed.transverse_distance_mpc_h(1e-3) > 0.0, "{along}");
    }

    /// Growth with curvature and changing dark energy, against the same equation solved by scipy 1.17.1's `solve_ivp`
    /// (DOP853, relative tolerance 1e-12, from a = 10⁻⁵): D(a)/D(1) and f.
    #[test]
    fn growth_with_dark_energy() {
        let c = model(0.6774, [0.3089, 0.68], [-0.9, 0.2]);
        for (z, ratio, slope) in [(0.5, 0.7765183225, 0.7224860642), (3.0, 0.3312861811, 0.9555076625)] {
            let a = 1.0 / (1.0 + z);
            close(c.sigma8_at(a), 0.8 * ratio, 1e-7, "sigma8");
            close(c.growth(a).1, slope, 1e-7, "f");
        }
    }

    /// Growth of second and third order against the same equations solved by mpmath 1.3.0's `odefun` (Taylor series, 20 digits,
    /// from a = 10⁻⁵). Today it is within 10⁻³ of Ω^(−1/143), Ω^(−4/275) and Ω^(−269/17875) of Bouchet et al. 1995.
    #[test]
    fn growth_of_higher_orders() {
        let c = Cosmology::flat(0.7, 0.3089, 0.0486, 0.8, 1.0);
        let expected = [
            (
                3.0,
                [
                    (1.00024064682, 1.9635584585),
                    (1.00050078719, 2.94575085829),
                    (1.00051810339, 2.94580191774),
                    (1.00048154254, 2.94569409731),
                ],
            ),
            (
                0.0,
                [
                    (1.00842179996, 1.05734138873),
                    (1.01782657386, 1.59534656954),
                    (1.01841991408, 1.59633014123),
                    (1.01716196749, 1.5942342245),
                ],
            ),
        ];
        for (z, expected) in expected {
            let a = 1.0 / (1.0 + z);
            let [first, second, third] = c.third_order_growth(a);
            for (found, expected) in [c.second_order_growth(a), first, second, third].into_iter().zip(expected) {
                close(found.0, expected.0, 1e-7, "size");
                close(found.1, expected.1, 1e-7, "slope");
            }
        }
    }

    /// Photons and neutrinos of Σm = 0.3 eV in a flat universe.
    fn with_neutrinos() -> Cosmology {
        let omega_r = 5.046_888_424e-5;
        Cosmology { omega_r, omega_lambda: 0.7 - omega_r, m_nu_ev: 0.3, ..Cosmology::flat(0.7, 0.3, 0.045, 0.8, 0.96) }
    }

    /// Against CAMB 2.0.5 (`get_background_densities`, `hubble_parameter`): H0 = 70, ombh2 = 0.02205, omch2 = 0.12172401931,
    /// mnu = 0.3, nnu = standard_neutrino_neff = 3.046, three degenerate massive species, TCMB = 2.7255, omk = 0. Densities at z are
    /// those of mpmath's quadrature, from which CAMB differs by up to 2·10⁻⁵.
    #[test]
    fn neutrinos_of_camb() {
        let c = with_neutrinos();
        c.check().unwrap();
        close(c.omega_nu(), 0.00658363405138679, 1e-6, "density today");
        close(c.m_nu_ev / (c.omega_nu() * c.h * c.h), 93.14, 2e-3, "eV over the density"); // Mangano et al. 2005
        for (z, neutrinos, expansion) in [
            (1.0, 0.0526719668407, 1.7608974779008122),
            (10.0, 8.782030854, 20.018943204808004),
            (49.0, 858.890686013, 194.55608537951997),
            (1100.0, 52326388.4103, 22761.56975967064),
            (1e4, 349356806693.0, 1071331.8930765288),
            (1e5, 3.49142897825e15, 93978425.44225168),
        ] {
            let a = 1.0 / (1.0 + z);
            close(c.neutrinos().unwrap().density(a), neutrinos, 5e-6, "neutrinos");
            close(c.expansion(a), expansion, 3e-6, "E");
            let step = 1e-4;
            let slope = (c.expansion(a * f64::exp(step)) / c.expansion(a * f64::exp(-step))).ln() / (2.0 * step);
            close(c.expansion_slope(a), slope, 1e-7, "dlnE/dlna");
        }
        // files of runs without neutrinos are as before
        assert!(!serde_json::to_string(&Cosmology { m_nu_ev: 0.0, ..c }).unwrap().contains("m_nu_ev"));
        assert_eq!(serde_json::from_str::<Cosmology>(&serde_json::to_string(&c).unwrap()).unwrap(), c);
    }

    /// Growth beside smooth, cold neutrinos: D ∝ a^p, p = (√(25 − 24 f_ν) − 1)/4 (Bond, Efstathiou & Silk 1980). The box has the
    /// density, the force and the mass of Ω_cb.
    #[test]
    fn growth_beside_smooth_neutrinos() {
        let c = Cosmology { m_nu_ev: 1.5, ..Cosmology::flat(0.7, 1.0, 0.1, 0.8, 1.0) };
        let p = ((25.0 - 24.0 * c.omega_nu()).sqrt() - 1.0) / 4.0;
        close(c.growth(1.0).1, p, 1e-4, "f");
        close(c.growth_factor(0.2), 0.2f64.powf(p), 1e-4, "D");
        assert!(p < 0.99, "{p}");
        assert_eq!(c.four_pi_g(1.0), 1.5 * c.omega_cb());
        assert_eq!(c.omega_cb() + c.omega_nu(), 1.0);
        close(c.critical_over_mean(1.0), 1.0 / c.omega_cb(), 1e-15, "critical density");
    }

    #[test]
    fn impossible_neutrinos_are_refused() {
        let says = |c: Cosmology, parts: &[&str]| {
            let found = c.check().unwrap_err().to_string();
            assert!(parts.iter().all(|part| found.contains(part)), "{found}");
        };
        let c = with_neutrinos();
        says(Cosmology { m_nu_ev: 3.0, ..c }, &["m_nu_ev = 3", "between 0 and 2"]);
        says(Cosmology { m_nu_ev: -0.1, ..c }, &["m_nu_ev = -0.1"]);
        says(
            Cosmology { m_nu_ev: 1.0, omega_m: 0.02, omega_b: 0.01, ..c },
            &["m_nu_ev = 1", "omega_m = 0.02", "reduce"],
        );
        says(Cosmology { omega_b: 0.295, ..c }, &["omega_b = 0.295", "0.29342", "omega_m without neutrinos"]);
    }
}
