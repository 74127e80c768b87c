//! Linear theory of a run's universe, with the modes that its box and its initial mesh hold.

use comove_ic::LinearPower;
use comove_sim::Cosmology;
use serde::Deserialize;
use serde_json::Value;
use std::f64::consts::PI;

/// Universe of a run.
#[derive(Clone, Debug)]
pub(crate) struct Universe {
    pub cosmology: Cosmology,
    /// Length of the box in Mpc/h, the cube root of its volume.
    pub box_mpc_h: f64,
    /// Width of a cell of the initial mesh, Mpc/h.
    pub mesh_mpc_h: f64,
    /// Whether the run has gas.
    pub gas: bool,
    /// Particles of dark matter.
    pub particles: f64,
}

impl Universe {
    /// Universe of an initial condition with these parameters, as the ledger keeps them.
    pub(super) fn of_initial(parameters: &Value) -> Option<Self> {
        let cells = parameters["cells"].as_array()?.iter().map(Value::as_f64).collect::<Option<Vec<f64>>>()?;
        let length = parameters["box_mpc_h"].as_f64()?;
        let dark_matter = parameters["dark_matter"].as_bool().unwrap_or(false);
        let volume: f64 = cells.iter().product();
        Some(Self {
            cosmology: Cosmology::deserialize(&parameters["cosmology"]).ok()?,
            box_mpc_h: length / cells.first()? * volume.cbrt(),
            mesh_mpc_h: length / cells.first()?,
            gas: parameters["gas"].as_bool().unwrap_or(true),
            particles: if dark_matter { volume } else { 0.0 },
        })
    }
}

/// Wavenumbers of the integrals, and radii at which σ is tabulated.
const WAVENUMBERS: usize = 400;
const RADII: usize = 96;
/// Radii in box lengths and initial cells.
const SMALLEST: f64 = 0.05;
const LARGEST: f64 = 1.0;
/// Scale factors at which the growth is tabulated: ln a.
const PLACES: (f64, f64) = (-7.0, 1.0);
const GROWTH_STEP: f64 = 0.25;

/// σ of spheres, displacements and growth.
#[derive(Clone, Debug)]
pub(super) struct Theory {
    /// ln R and ln σ(R) today, R in Mpc/h.
    sigma: Vec<(f64, f64)>,
    /// RMS displacement along an axis today, Mpc/h.
    pub displacement: f64,
    /// ln a and ln D(a)/D(1).
    growth: Vec<(f64, f64)>,
}

impl Theory {
    /// `None` for numbers out of range.
    pub(super) fn new(universe: &Universe) -> Option<Self> {
        let Universe { cosmology, box_mpc_h, mesh_mpc_h, .. } = universe;
        // the cube of modes along the axes has the volume of a sphere of 1.24 times its half width
        let sphere = (6.0 / PI).cbrt();
        let (from, to) = (2.0 * PI / box_mpc_h / sphere, sphere * PI / mesh_mpc_h);
        if !(from > 0.0 && to > 1.01 * from && to < 1e6) {
            return None;
        }
        let power = LinearPower::estimate(cosmology).ok()?;
        let d_ln_k = (to / from).ln() / WAVENUMBERS as f64;
        let wavenumbers = (0..WAVENUMBERS).map(|n| from * ((n as f64 + 0.5) * d_ln_k).exp());
        let modes: Vec<(f64, f64)> =
            wavenumbers.map(|k| (k, k.powi(3) * power.at(k) / (2.0 * PI * PI) * d_ln_k)).collect();
        let radii = (SMALLEST * mesh_mpc_h, LARGEST * box_mpc_h);
        let radius = |n: usize| radii.0.ln() + (radii.1 / radii.0).ln() * n as f64 / (RADII - 1) as f64;
        let sigma = |ln_radius: f64| {
            let variance: f64 = modes.iter().map(|(k, part)| part * top_hat(k * ln_radius.exp()).powi(2)).sum();
            0.5 * variance.max(f64::MIN_POSITIVE).ln()
        };
        let (today, _) = cosmology.growth(1.0);
        let growth = |n: usize| {
            let place = PLACES.0 + GROWTH_STEP * n as f64;
            (place, (cosmology.growth(place.exp()).0 / today).ln())
        };
        let theory = Self {
            sigma: (0..RADII).map(|n| (radius(n), sigma(radius(n)))).collect(),
            displacement: modes.iter().map(|(k, part)| part / (3.0 * k * k)).sum::<f64>().sqrt(),
            growth: (0..=((PLACES.1 - PLACES.0) / GROWTH_STEP) as usize).map(growth).collect(),
        };
        theory.is_finite().then_some(theory)
    }

    fn is_finite(&self) -> bool {
        let tables = self.sigma.iter().chain(&self.growth);
        self.displacement.is_finite() && tables.into_iter().all(|(x, y)| x.is_finite() && y.is_finite())
    }

    /// Linear growth since today at ln a: D(a)/D(1).
    pub(super) fn growth(&self, place: f64) -> f64 {
        interpolate(&self.growth, place).exp()
    }

    /// RMS of the linear density today in spheres of this radius in Mpc/h.
    pub(super) fn sigma(&self, radius: f64) -> f64 {
        interpolate(&self.sigma, radius.ln()).exp()
    }
}

/// Linear interpolation in a sorted table; the first and last values beyond its ends.
fn interpolate(table: &[(f64, f64)], x: f64) -> f64 {
    let next = table.partition_point(|row| row.0 < x).clamp(1, table.len() - 1);
    let [(before, from), (after, to)] = [table[next - 1], table[next]];
    let part = ((x - before) / (after - before)).clamp(0.0, 1.0);
    from + part * (to - from)
}

/// Fourier transform of a sphere: 3 (sin x − x cos x)/x³, by its series near 0.
fn top_hat(x: f64) -> f64 {
    if x < 1e-2 { 1.0 - x * x / 10.0 } else { 3.0 * (x.sin() - x * x.cos()) / x.powi(3) }
}
