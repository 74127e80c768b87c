//! Constants of nature and of units.

/// Centimetres of a megaparsec.
pub(crate) const MPC_CM: f64 = 3.085_677_581_491_367e24;
/// Boltzmann's constant in erg/K.
pub(crate) const BOLTZMANN: f64 = 1.380_649e-16;
/// Mass of the hydrogen atom in g.
pub(crate) const HYDROGEN_G: f64 = 1.673_557_5e-24;
/// Newton's constant in cm³/g/s².
pub(crate) const NEWTON: f64 = 6.674_3e-8;
/// Radiation constant in erg/cm³/K⁴.
pub(crate) const RADIATION_ERG_CM3_K4: f64 = 7.565_733_25e-15;
/// Speed of light in cm/s.
pub(crate) const LIGHT_CM_S: f64 = 2.997_924_58e10;
/// The code velocity unit in km/s.
pub const VELOCITY_KM_S: f64 = 100.0;
/// Seconds of a gigayear (Julian years).
pub(crate) const GYR_S: f64 = 3.155_76e16;
/// c/H0 in Mpc for h = 1, or in Mpc/h.
pub(crate) const HUBBLE_LENGTH_MPC_H: f64 = 2_997.924_58;
/// 1/H0 in Gyr for h = 1.
pub(crate) const HUBBLE_TIME_GYR_H: f64 = MPC_CM / 1e7 / GYR_S;
