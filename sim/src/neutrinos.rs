//! Massive neutrinos of the background: three species of equal mass with a relativistic Fermi–Dirac distribution
//! (Lesgourgues & Pastor 2006, Phys. Rep. 429, 307).

use crate::constants::{LIGHT_CM_S, MPC_CM, NEWTON, RADIATION_ERG_CM3_K4};
use std::f64::consts::PI;

/// Number of species.
const SPECIES: f64 = 3.0;
/// Effective number of species while they are relativistic (Mangano et al. 2005, Nucl. Phys. B 729, 221).
const EFFECTIVE_SPECIES: f64 = 3.046;
/// Boltzmann's constant in eV/K.
const BOLTZMANN_EV_K: f64 = 8.617_333_262e-5;

/// Nodes q and weights of the Gauss rule for the weight q²/(e^q + 1) on [0, ∞), 16 points without those of weights below
/// 10⁻¹². Energies are good to 4·10⁻⁶ at any mass.
const FERMI_DIRAC: [(f64, f64); 13] = [
    (0.404_426_661_118_350_4, 0.034_435_826_535_661_906),
    (1.070_197_990_416_659_2, 0.235_209_990_616_983_8),
    (2.012_860_398_007_84, 0.517_052_627_948_656_5),
    (3.241_552_102_317_249_3, 0.544_942_475_144_195),
    (4.776_156_589_332_962, 0.323_047_403_994_726_03),
    (6.636_728_605_679_828, 0.117_097_104_899_660_56),
    (8.843_421_445_147_186, 0.026_943_961_124_215_716),
    (11.421_046_872_373_48, 0.003_965_514_104_311_83),
    (14.402_588_968_694_08, 0.000_368_706_187_932_616_7),
    (17.832_542_812_028_777, 2.103_050_905_875_632_3e-5),
    (21.772_161_186_019_49, 7.009_078_682_615_567e-7),
    (26.308_936_454_303_907, 1.265_581_425_091_335_2e-8),
    (31.575_176_945_130_77, 1.099_295_493_077_931_1e-10),
];

/// Energy density of neutrinos at any epoch.
#[derive(Clone, Copy)]
pub(crate) struct Neutrinos {
    /// Density today of massless neutrinos of this temperature, in the critical density.
    massless: f64,
    /// m c²/(k T) today.
    mass: f64,
}

impl Neutrinos {
    /// Neutrinos of three equal masses.
    ///
    /// * `m_nu_ev`: sum of the masses in eV
    /// * `t_cmb_k`: temperature of the photons today, of which neutrinos have (4/11)^(1/3) (3.046/3)^(1/4)
    pub(crate) fn new(m_nu_ev: f64, h: f64, t_cmb_k: f64) -> Self {
        let temperature_k = t_cmb_k * (4.0f64 / 11.0).cbrt() * (EFFECTIVE_SPECIES / SPECIES).powf(0.25);
        let hubble_s = 1e7 * h / MPC_CM;
        let critical = 3.0 * hubble_s * hubble_s / (8.0 * PI * NEWTON) * LIGHT_CM_S * LIGHT_CM_S;
        // a fermion has 7/8 of a photon's energy at one temperature
        let massless = SPECIES * 7.0 / 8.0 * RADIATION_ERG_CM3_K4 * temperature_k.powi(4) / critical;
        Self { massless, mass: m_nu_ev / SPECIES / (BOLTZMANN_EV_K * temperature_k) }
    }

    /// Density at a in the critical density of today: ∝ a⁻⁴ ∫ q² √(q² + (m a/T)²)/(e^q + 1) dq.
    pub(crate) fn density(&self, a: f64) -> f64 {
        self.massless / a.powi(4) * self.average(a, |_, energy| energy)
    }

    /// Derivative of [`Neutrinos::density`] by lna.
    pub(crate) fn density_slope(&self, a: f64) -> f64 {
        // −4 E + (m a/T)²/E of each energy E
        self.massless / a.powi(4) * self.average(a, |q, energy| -3.0 * energy - q * q / energy)
    }

    /// Mean of a function of q and energy, in units of T, over the mean energy of massless neutrinos.
    fn average(&self, a: f64, f: impl Fn(f64, f64) -> f64) -> f64 {
        let sum: f64 =
            FERMI_DIRAC.iter().map(|&(q, weight)| weight * f(q, (q * q + (self.mass * a).powi(2)).sqrt())).sum();
        sum / (7.0 * PI.powi(4) / 120.0)
    }
}
