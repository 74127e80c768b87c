//! `cosmology`: the background and the shape of the initial spectrum; its distances, times and growth at a redshift.

use super::Bound;
use crate::recipe::error::Refusal;
use crate::recipe::options::decode;
use comove_sim::Cosmology;
use rhai::{Engine, Map};
use serde::Deserialize;

/// What a recipe says in `cosmology(#{ … })`: [`Cosmology`], where dark energy may be left out of a flat universe.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Options {
    h: f64,
    omega_m: f64,
    omega_b: f64,
    /// By default what makes the universe flat.
    omega_lambda: Option<f64>,
    #[serde(default)]
    omega_r: f64,
    w0: Option<f64>,
    wa: Option<f64>,
    sigma8: f64,
    n_s: f64,
    t_cmb_k: Option<f64>,
}

/// Registers `cosmology` and the properties of its result.
pub fn register(engine: &mut Engine) {
    engine.register_type_with_name::<Cosmology>("cosmology").register_fn("cosmology", cosmology);
    engine
        .register_get("h", |c: &mut Cosmology| c.h)
        .register_get("omega_m", |c: &mut Cosmology| c.omega_m)
        .register_get("omega_b", |c: &mut Cosmology| c.omega_b)
        .register_get("omega_lambda", |c: &mut Cosmology| c.omega_lambda)
        .register_get("sigma8", |c: &mut Cosmology| c.sigma8)
        .register_get("n_s", |c: &mut Cosmology| c.n_s);
    let functions: [(&'static str, AtRedshift); 11] = [
        ("comoving_distance_mpc_h", Cosmology::comoving_distance_mpc_h),
        ("transverse_distance_mpc_h", Cosmology::transverse_distance_mpc_h),
        ("angular_diameter_distance_mpc_h", Cosmology::angular_diameter_distance_mpc_h),
        ("luminosity_distance_mpc_h", Cosmology::luminosity_distance_mpc_h),
        ("lookback_time_gyr", Cosmology::lookback_time_gyr),
        ("age_gyr", Cosmology::age_gyr),
        ("growth_factor", |c, a| c.growth(a).0 / c.growth(1.0).0),
        ("growth_rate", |c, a| c.growth(a).1),
        ("sigma8", Cosmology::sigma8_at),
        ("hubble_km_s_mpc", Cosmology::hubble_km_s_mpc),
        ("critical_over_mean", Cosmology::critical_over_mean),
    ];
    for (name, function) in functions {
        engine
            .register_fn(name, move |c: Cosmology, z: f64| at_redshift(name, function, &c, z))
            .register_fn(name, move |c: Cosmology, z: i64| at_redshift(name, function, &c, z as f64));
    }
}

/// A function of the scale factor.
type AtRedshift = fn(&Cosmology, f64) -> f64;

/// The largest redshift at which the functions are known: growth is integrated from a = 10⁻⁶.
const FURTHEST: f64 = 1e5;

fn at_redshift(name: &str, function: AtRedshift, cosmology: &Cosmology, z: f64) -> Bound<f64> {
    if !(0.0..=FURTHEST).contains(&z) {
        return Err(Refusal::error(name, format!("z = {z}: must lie between 0 and {FURTHEST}"), None));
    }
    let value = function(cosmology, 1.0 / (1.0 + z));
    let turned = || Refusal::error(name, format!("z = {z}: the universe of this cosmology never was so small"), None);
    value.is_finite().then_some(value).ok_or_else(turned)
}

fn cosmology(options: Map) -> Bound<Cosmology> {
    let o: Options = decode("cosmology", options)?;
    let flat = Cosmology::flat(o.h, o.omega_m, o.omega_b, o.sigma8, o.n_s);
    let cosmology = Cosmology {
        omega_lambda: o.omega_lambda.unwrap_or(1.0 - o.omega_m - o.omega_r),
        omega_r: o.omega_r,
        w0: o.w0.unwrap_or(flat.w0),
        wa: o.wa.unwrap_or(flat.wa),
        t_cmb_k: o.t_cmb_k.unwrap_or(flat.t_cmb_k),
        ..flat
    };
    match cosmology.check() {
        Ok(()) => Ok(cosmology),
        Err(comove_sim::SimError::Parameter { name, value, reason }) => {
            Err(Refusal::error("cosmology", format!("{name} = {value}: {reason}"), Some(name)))
        }
        Err(other) => Err(Refusal::error("cosmology", other, None)),
    }
}
