//! Constants of nature and of units.

/// Centimetres of a megaparsec.
pub(crate) const MPC_CM: f64 = 3.085_677_581_491_367e24;
/// Boltzmann's constant in erg/K.
pub(crate) const BOLTZMANN: f64 = 1.380_649e-16;
/// Mass of the hydrogen atom in g.
pub(crate) const HYDROGEN_G: f64 = 1.673_557_5e-24;
/// Newton's constant in cm³/g/s².
pub(crate) const NEWTON: f64 = 6.674_3e-8;
/// The rate of Compton cooling for n_e/n = 1 over T⁴ of the background, 8 σ_T a_r/(3 m_e c), in 1/K⁴/s.
pub(crate) const COMPTON_PER_K4_S: f64 =
    8.0 * 6.652_458_7e-25 * 7.565_733e-15 / (3.0 * 9.109_383_7e-28 * 2.997_924_58e10);
/// The code velocity unit in km/s.
pub const VELOCITY_KM_S: f64 = 100.0;
/// Seconds of a gigayear (Julian years).
pub(crate) const GYR_S: f64 = 3.155_76e16;
/// c/H0 in Mpc for h = 1, or in Mpc/h.
pub(crate) const HUBBLE_LENGTH_MPC_H: f64 = 2_997.924_58;
/// 1/H0 in Gyr for h = 1.
pub(crate) const HUBBLE_TIME_GYR_H: f64 = MPC_CM / 1e7 / GYR_S;
