//! A plane wave that collapses into a pancake in an Einstein–de Sitter universe (Zel'dovich 1970, A&A 5, 84).
//!
//! Cold matter of Lagrangian phase φ_q = k·q sits at φ = φ_q − b sin φ_q, phases counted from the pancake's plane, with
//! b = a/a_c: exact in one dimension until the caustic at b = 1. The density is 1/(1 − b cos φ_q) and the code velocity
//! −(db/dt̃) sin φ_q/|k| along k, with da/dt̃ = a^(3/2). Gas stays on its adiabat, P̃ ∝ ρ̃^(5/3), which in supercomoving
//! variables does not move.

use super::{Gas, Problem, Setup, View, options_of, require};
use comove_sim::Criterion;
use comove_sim::{Cosmology, Precision, RunParameters, Units};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::f64::consts::{PI, TAU};

/// The wave, its plane through the box's centre.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Pancake {
    /// Root cells along x, y, z; 16 across are enough for a wave along x.
    pub root: [usize; 3],
    /// Refinement levels.
    pub levels: u8,
    /// Precision of the state.
    pub precision: Precision,
    /// Box length along x in comoving Mpc/h.
    pub box_mpc_h: f64,
    /// H0/(100 km/s/Mpc).
    pub h: f64,
    /// Wavelengths along each edge of the box.
    pub wave_numbers: [i32; 3],
    /// Redshift at which a run starts.
    pub z_start: f64,
    /// Redshift of the caustic.
    pub z_caustic: f64,
    /// Temperature of the gas at mean density at the start in K.
    pub temperature_k: f64,
    /// Mean molecular weight.
    pub mean_molecular_weight: f64,
    /// Density in the mean above which a cell of the root level is refined; twice that on every finer level, which keeps
    /// the surface density of a cell.
    pub refine_above: f64,
}

impl Default for Pancake {
    /// As in Springel 2010, MNRAS 401, 791: 64 Mpc/h, 100 K at z = 100, caustic at z = 1.
    fn default() -> Self {
        Self {
            root: [64, 16, 16],
            levels: 2,
            precision: Precision::Single,
            box_mpc_h: 64.0,
            h: 0.5,
            wave_numbers: [1, 0, 0],
            z_start: 100.0,
            z_caustic: 1.0,
            temperature_k: 100.0,
            mean_molecular_weight: 1.22,
            refine_above: 2.0,
        }
    }
}

impl Pancake {
    /// a_c.
    pub fn caustic(&self) -> f64 {
        1.0 / (1.0 + self.z_caustic)
    }

    fn start(&self) -> f64 {
        1.0 / (1.0 + self.z_start)
    }

    fn cosmology(&self) -> Cosmology {
        Cosmology::flat(self.h, 1.0, 0.0, 1.0, 1.0)
    }

    /// P̃/ρ̃^(5/3): constant until a shock.
    pub fn adiabat(&self) -> f64 {
        self.temperature_k / Units::new(Some(self.cosmology())).temperature_k(self.start(), self.mean_molecular_weight)
    }

    /// Box along y, z follows from cubic cells.
    fn box_lengths(&self) -> [f64; 3] {
        self.root.map(|n| self.box_mpc_h * n as f64 / self.root[0] as f64)
    }

    /// k.
    fn wave_vector(&self) -> [f64; 3] {
        let lengths = self.box_lengths();
        std::array::from_fn(|axis| TAU * f64::from(self.wave_numbers[axis]) / lengths[axis])
    }

    /// The gas at x at scale factor `a` up to the caustic.
    fn wave(&self, x: [f64; 3], a: f64) -> Gas {
        let (k, lengths) = (self.wave_vector(), self.box_lengths());
        let k_norm = k.iter().map(|k| k * k).sum::<f64>().sqrt();
        let phase: f64 = (0..3).map(|axis| k[axis] * (x[axis] - 0.5 * lengths[axis])).sum();
        let b = a / self.caustic();
        let (sin, cos) = lagrangian_phase(phase, b).sin_cos();
        let density = 1.0 / (1.0 - b * cos);
        let speed = -a.powf(1.5) / self.caustic() * sin / k_norm;
        let pressure = self.adiabat() * density.powf(5.0 / 3.0);
        Gas { density, velocity: k.map(|k| k / k_norm * speed), pressure }
    }
}

/// φ_q of φ = φ_q − b sin φ_q, 0 ≤ b ≤ 1, with φ brought to (−π, π]: increasing, so bisection cannot fail.
fn lagrangian_phase(phase: f64, b: f64) -> f64 {
    let phase = phase - TAU * (phase / TAU).round();
    let (mut low, mut high) = (-PI, PI);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if middle - b * middle.sin() < phase { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

impl Problem for Pancake {
    fn name(&self) -> &'static str {
        "pancake"
    }

    fn options(&self) -> Value {
        options_of(self)
    }

    /// Ends at twice the caustic's scale factor.
    fn setup(&self) -> Setup {
        let thresholds = (0..self.levels).map(|level| self.refine_above * f64::from(1u32 << level)).collect();
        let parameters = RunParameters {
            precision: self.precision,
            max_level: self.levels,
            refine: vec![Criterion::DensityAbove { thresholds }],
            ..RunParameters::default()
        };
        Setup {
            box_length: self.box_mpc_h,
            root: self.root,
            cosmology: Some(self.cosmology()),
            start: self.start(),
            end: 2.0 * self.caustic(),
            parameters,
        }
    }

    fn initial(&self, x: [f64; 3], _h: f64) -> Gas {
        self.wave(x, self.start())
    }

    fn exact(&self, x: [f64; 3], a: f64) -> Option<Gas> {
        (a < self.caustic()).then(|| self.wave(x, a))
    }

    fn view(&self) -> View {
        let [_, y, z] = self.box_lengths();
        View::Line { axis: 0, through: [0.0, 0.5 * y, 0.5 * z] }
    }

    fn check(&self) -> Result<(), (&'static str, String)> {
        self.cosmology().check().map_err(|error| ("h", error.to_string()))?;
        for (name, value) in [
            ("box_mpc_h", self.box_mpc_h),
            ("temperature_k", self.temperature_k),
            ("mean_molecular_weight", self.mean_molecular_weight),
        ] {
            require(name, value, value > 0.0, "must be positive")?;
        }
        if self.wave_numbers == [0; 3] {
            return Err(("wave_numbers", "one of them must differ from 0".into()));
        }
        require("z_caustic", self.z_caustic, self.z_caustic > -1.0, "must lie above -1")?;
        let reason = format!("must lie above z_caustic = {}", self.z_caustic);
        require("z_start", self.z_start, self.z_start > self.z_caustic, &reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Continuity, the equation of motion and Poisson's along an oblique wave, by central differences in x and a
    /// (dt̃ = a^(−3/2) da); the gas is too cold for its pressure to show. The caustic is near enough that b changes by
    /// 10⁻³ of 1 − b over a difference, whose error is the square of that.
    #[test]
    fn the_wave_solves_the_comoving_equations() {
        let pancake = Pancake { root: [32; 3], wave_numbers: [1, 2, -1], temperature_k: 1e-6, ..Pancake::default() };
        let (x, a) = ([33.0, 30.5, 29.0], 0.4f64);
        let d = 1e-4;
        let gas = |axis: usize, dx: f64, da: f64| {
            let mut y = x;
            y[axis] += dx;
            pancake.exact(y, a + da).unwrap()
        };
        let along = |axis, f: &dyn Fn(Gas) -> f64| (f(gas(axis, d, 0.0)) - f(gas(axis, -d, 0.0))) / (2.0 * d);
        let rate = |f: &dyn Fn(Gas) -> f64| (f(gas(0, 0.0, d)) - f(gas(0, 0.0, -d))) / (2.0 * d) * a.powf(1.5);
        let here = gas(0, 0.0, 0.0);
        let divergence: f64 = (0..3).map(|axis| along(axis, &|g| g.density * g.velocity[axis])).sum();
        let change = rate(&|g| g.density);
        assert!((change + divergence).abs() < 1e-5 * change.abs(), "{change} {divergence}");
        // the acceleration that a parcel feels; its divergence is that of gravity: −(3/2) a (ρ̃ − 1)
        let felt = |x: [f64; 3], axis: usize| {
            let gas = |other: usize, dx: f64, da: f64| {
                let mut y = x;
                y[other] += dx;
                pancake.exact(y, a + da).unwrap().velocity[axis]
            };
            let v = pancake.exact(x, a).unwrap().velocity;
            let advected: f64 = (0..3).map(|o| v[o] * (gas(o, d, 0.0) - gas(o, -d, 0.0)) / (2.0 * d)).sum();
            (gas(0, 0.0, d) - gas(0, 0.0, -d)) / (2.0 * d) * a.powf(1.5) + advected
        };
        let e = 1e-2;
        let divergence: f64 = (0..3)
            .map(|axis| {
                let shifted = |by: f64| {
                    let mut y = x;
                    y[axis] += by;
                    felt(y, axis)
                };
                (shifted(e) - shifted(-e)) / (2.0 * e)
            })
            .sum();
        let gravity = -1.5 * a * (here.density - 1.0);
        assert!((divergence / gravity - 1.0).abs() < 1e-3, "{divergence} {gravity}");
    }

    /// The box keeps its mass, at the density of the plane 1/(1 − b), and the temperature follows ρ^(2/3).
    #[test]
    fn mass_peak_and_adiabat() {
        let pancake = Pancake::default();
        let n = 4096;
        let gas = |i: i32| pancake.exact([(f64::from(i) + 0.5) * 64.0 / f64::from(n), 8.0, 8.0], 0.45).unwrap();
        let mean = (0..n).map(|i| gas(i).density).sum::<f64>() / f64::from(n);
        assert!((mean - 1.0).abs() < 1e-6, "{mean}");
        let plane = pancake.exact([32.0, 1.0, 2.0], 0.45).unwrap();
        assert!((plane.density - 10.0).abs() < 1e-9 && plane.velocity[0].abs() < 1e-12, "{plane:?}");
        let start = pancake.initial([16.0, 8.0, 8.0], 1.0);
        let kelvin = |gas: Gas, a: f64| {
            gas.pressure / gas.density * Units::new(Some(pancake.cosmology())).temperature_k(a, 1.22)
        };
        let expected = 100.0 * start.density.powf(2.0 / 3.0);
        assert!((kelvin(start, pancake.start()) / expected - 1.0).abs() < 1e-12);
        let late = 100.0 * 10f64.powf(2.0 / 3.0) * (pancake.start() / 0.45).powi(2);
        assert!((kelvin(plane, 0.45) / late - 1.0).abs() < 1e-9);
        assert!(pancake.exact([0.0; 3], 0.5).is_none());
    }
}
