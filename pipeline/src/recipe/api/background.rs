//! `cosmology`: the background and the shape of the initial spectrum; its distances, times and growth at a redshift.

use super::failure::failure;
use crate::error::PipelineError;
use crate::recipe::error::{Bound, Refusal};
use crate::recipe::options::decode;
use crate::recipe::reference::{Function, Type};
use comove_ic::{LinearPower, PowerSource};
use comove_sim::Cosmology;
use rhai::{Engine, Map};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub(crate) const FUNCTIONS: &[Function] = &[Function::new(
    &["cosmology(options: Map) -> Cosmology"],
    "A Friedmann model, and the shape and amplitude of the linear spectrum today.",
)
.used_as("cosmology(#{ h, omega_m, omega_b, sigma8, n_s, … })")
.with_options(&["CosmologyOptions"])];

/// What it gives.
pub(crate) const COSMOLOGY: Type = Type {
    name: "Cosmology",
    text: "What `cosmology` gives. Its functions take a redshift between 0 and 100 000; lengths are in Mpc/h, \
           comoving where nothing else is said.",
    properties: &[
        ("h", "float", "H0/(100 km/s/Mpc)"),
        ("omega_m", "float", "matter today, in the critical density, massive neutrinos included"),
        ("omega_cb", "float", "cold dark matter and baryons today: omega_m without massive neutrinos"),
        ("omega_b", "float", "baryons today"),
        ("omega_lambda", "float", "dark energy today"),
        ("m_nu_ev", "float", "sum of the neutrino masses in eV"),
        ("sigma8", "float", "RMS of the linear density in spheres of 8 Mpc/h today"),
        ("n_s", "float", "slope of the primordial spectrum"),
    ],
    methods: &[
        Function::new(
            &["comoving_distance_mpc_h(cosmology: Cosmology, z: float) -> float"],
            "Comoving distance to z along the line of sight.",
        ),
        Function::new(
            &["transverse_distance_mpc_h(cosmology: Cosmology, z: float) -> float"],
            "Comoving distance across the line of sight at z: the comoving length that one radian spans. It differs \
             from that along it where space is curved.",
        ),
        Function::new(
            &["angular_diameter_distance_mpc_h(cosmology: Cosmology, z: float) -> float"],
            "Angular diameter distance to z: the proper length that one radian spans.",
        ),
        Function::new(
            &["luminosity_distance_mpc_h(cosmology: Cosmology, z: float) -> float"],
            "Luminosity distance to z.",
        ),
        Function::new(&["lookback_time_gyr(cosmology: Cosmology, z: float) -> float"], "Time from z to today in Gyr."),
        Function::new(&["age_gyr(cosmology: Cosmology, z: float) -> float"], "Age of the universe at z in Gyr."),
        Function::new(
            &["growth_factor(cosmology: Cosmology, z: float) -> float"],
            "Linear growth at z of the matter in the box, in that of today; massive neutrinos are smooth.",
        ),
        Function::new(&["growth_rate(cosmology: Cosmology, z: float) -> float"], "f = dlnD/dlna at z."),
        Function::new(
            &["sigma8(cosmology: Cosmology, z: float) -> float"],
            "RMS of the linear density in spheres of 8 Mpc/h at z.",
        ),
        Function::new(
            &["linear_power(cosmology: Cosmology, k: float, z: float) -> float"],
            "Linear P(k) of matter at z in (Mpc/h)³, k in h/Mpc: the spectrum of Eisenstein & Hu 1998 with the \
             amplitude `sigma8`; refused with `m_nu_ev`.",
        ),
        Function::new(&["hubble_km_s_mpc(cosmology: Cosmology, z: float) -> float"], "H at z in km/s/Mpc."),
        Function::new(
            &["critical_over_mean(cosmology: Cosmology, z: float) -> float"],
            "Critical density over the mean density of the matter in the box at z, which is without massive neutrinos.",
        ),
    ],
    members: &[],
};

/// What a recipe says in `cosmology(#{ … })`: [`Cosmology`], where dark energy may be left out of a flat universe.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CosmologyOptions {
    /// H0/(100 km/s/Mpc).
    h: f64,
    /// Matter today, in the critical density, massive neutrinos included; the box holds the rest of it.
    omega_m: f64,
    /// Baryons today; they shape the initial spectrum.
    omega_b: f64,
    /// Dark energy today; by default what makes the universe flat.
    omega_lambda: Option<f64>,
    /// Radiation today; in the background only. With `m_nu_ev` photons alone, 2.473·10⁻⁵/h²: H(a) counts massive neutrinos also
    /// while they are relativistic.
    #[serde(default)]
    omega_r: f64,
    /// Sum of the neutrino masses in eV, three species of equal mass, N_eff = 3.046; up to 2. They are smooth and enter H(a)
    /// alone; `ic_gaussian` then needs two tables of CAMB in `power` and `species_transfer`.
    #[serde(default)]
    m_nu_ev: f64,
    /// Dark energy equation of state today.
    #[serde(default = "minus_one")]
    w0: f64,
    /// Its change: w = w0 + wa (1 − a).
    #[serde(default)]
    wa: f64,
    /// RMS of the linear density in spheres of 8 Mpc/h today.
    sigma8: f64,
    /// Slope of the primordial spectrum.
    n_s: f64,
    /// Temperature of the microwave background today in K.
    #[serde(default = "t_cmb_k")]
    t_cmb_k: f64,
}

fn minus_one() -> f64 {
    -1.0
}

fn t_cmb_k() -> f64 {
    2.7255
}

/// Options that a cosmology cannot do without.
pub(crate) fn required() -> Value {
    json!({ "h": 0.7, "omega_m": 0.3, "omega_b": 0.045, "sigma8": 0.8, "n_s": 1.0 })
}

/// Registers `cosmology` and the properties of its result.
pub(crate) fn register(engine: &mut Engine) {
    engine.register_type_with_name::<Cosmology>("cosmology").register_fn("cosmology", cosmology);
    engine
        .register_get("h", |c: &mut Cosmology| c.h)
        .register_get("omega_m", |c: &mut Cosmology| c.omega_m)
        .register_get("omega_cb", |c: &mut Cosmology| c.omega_cb())
        .register_get("m_nu_ev", |c: &mut Cosmology| c.m_nu_ev)
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
        ("growth_factor", Cosmology::growth_factor),
        ("growth_rate", |c, a| c.growth(a).1),
        ("sigma8", Cosmology::sigma8_at),
        ("hubble_km_s_mpc", Cosmology::hubble_km_s_mpc),
        ("critical_over_mean", Cosmology::critical_over_mean),
    ];
    engine
        .register_fn("linear_power", |c: Cosmology, k: f64, z: f64| linear_power(&c, k, z))
        .register_fn("linear_power", |c: Cosmology, k: i64, z: f64| linear_power(&c, k as f64, z))
        .register_fn("linear_power", |c: Cosmology, k: f64, z: i64| linear_power(&c, k, z as f64))
        .register_fn("linear_power", |c: Cosmology, k: i64, z: i64| linear_power(&c, k as f64, z as f64));
    for (name, function) in functions {
        engine
            .register_fn(name, move |c: Cosmology, z: f64| at_redshift(name, function, &c, z))
            .register_fn(name, move |c: Cosmology, z: i64| at_redshift(name, function, &c, z as f64));
    }
}

/// Linear P(k) at z in (Mpc/h)³, k in h/Mpc.
fn linear_power(cosmology: &Cosmology, k: f64, z: f64) -> Bound<f64> {
    const NAME: &str = "linear_power";
    if !(k > 0.0 && k.is_finite()) {
        return Err(Refusal::error(NAME, format!("k = {k}: must be positive, in h/Mpc"), None));
    }
    let growth = at_redshift(NAME, Cosmology::growth_factor, cosmology, z)?;
    let power = LinearPower::new(&PowerSource::EisensteinHu, cosmology);
    let power = power.map_err(|error| failure(NAME, &PipelineError::Ic(error)))?;
    Ok(growth * growth * power.at(k))
}

type AtRedshift = fn(&Cosmology, f64) -> f64;

/// The largest redshift at which the functions are known: growth is integrated from a = 10⁻⁶.
const FURTHEST: f64 = 1e5;

fn at_redshift(name: &str, function: AtRedshift, cosmology: &Cosmology, z: f64) -> Bound<f64> {
    if !(0.0..=FURTHEST).contains(&z) {
        return Err(Refusal::error(name, format!("z = {z}: must lie between 0 and {FURTHEST}"), None));
    }
    let value = function(cosmology, 1.0 / (1.0 + z));
    let turned = || Refusal::error(name, format!("z = {z}: this cosmology has no such redshift"), None);
    value.is_finite().then_some(value).ok_or_else(turned)
}

fn cosmology(options: Map) -> Bound<Cosmology> {
    super::later::refuse("cosmology", &options)?;
    let o: CosmologyOptions = decode("cosmology", options)?;
    let flat = Cosmology::flat(o.h, o.omega_m, o.omega_b, o.sigma8, o.n_s);
    let cosmology = Cosmology {
        omega_lambda: o.omega_lambda.unwrap_or(1.0 - o.omega_m - o.omega_r),
        omega_r: o.omega_r,
        m_nu_ev: o.m_nu_ev,
        w0: o.w0,
        wa: o.wa,
        t_cmb_k: o.t_cmb_k,
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
