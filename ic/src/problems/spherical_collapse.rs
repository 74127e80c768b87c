//! Gas falls onto an overdense sphere in an Einstein–de Sitter universe and is shocked (paper, section 4.6; the solution
//! is that of `secondary_infall.rs`).
//!
//! The sphere, of contrast δ_i and radius R_i, starts without peculiar velocity at a_i, as does the gas around it, of
//! density ρ_b just below the mean. A shell within which the mean excess is Δ then turns around at
//! t = (3π/4) t_i Δ^(−3/2), at its first radius over Δ. (A linear analysis calls (3/5) Δ the growing mode; the rest
//! decays.) Outside the sphere Δ = δ_i (R_i/r_i)³, so the turnaround radius is, in comoving length,
//!
//! x_ta = (4/(3π))^(8/9) (a/a_i)^(1/3) δ_i^(1/3) R_i.
//!
//! This is the paper's equation over a. A periodic box holds no excess as a whole: with ε = δ_i (4π/3) R_i³/L³ the
//! excess within a shell is Δ − ε, so shells turn around at x_ta (1 + η)^(−1/3), where η = ε/Δ_ta and
//! Δ_ta = (3π/4)^(2/3) a_i/a. In the paper's box that takes 3% off at a = 0.09 and 9% at a = 0.3. The shock, in gas that
//! turned around when η was smaller, hardly notices: 0.8% at a = 0.09.

use super::secondary_infall::SecondaryInfall;
use super::{Gas, Problem, Setup, View, options_of, require};
use comove_sim::Criterion;
use comove_sim::{Cosmology, Precision, RunParameters};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::f64::consts::PI;
use std::sync::OnceLock;

/// The sphere at the centre of a box of 2048, finest cells of the paper, whatever the resolution.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SphericalCollapse {
    /// Root cells along each axis.
    pub root: usize,
    /// Refinement levels.
    pub levels: u8,
    /// Precision of the state.
    pub precision: Precision,
    /// Box length, comoving.
    pub box_length: f64,
    /// R_i, comoving.
    pub radius: f64,
    /// δ_i.
    pub overdensity: f64,
    /// a_i.
    pub a_start: f64,
    /// Where the run starts on the solution, after the collapse of the sphere itself; else it starts with the sphere.
    pub settled: Option<f64>,
    /// Where a run ends.
    pub a_end: f64,
    /// P̃ of the gas at mean density: too low to matter.
    pub background_pressure: f64,
    /// The solution is that of a sphere in infinite space, as the paper has it, in place of one in a periodic box.
    pub isolated: bool,
    #[serde(skip)]
    infall: OnceLock<SecondaryInfall>,
}

impl Default for SphericalCollapse {
    fn default() -> Self {
        Self {
            root: 128,
            levels: 4,
            precision: Precision::Single,
            box_length: 2048.0,
            radius: 160.0,
            overdensity: 0.01,
            a_start: 1e-5,
            settled: None,
            a_end: 0.09,
            background_pressure: 1e-10,
            isolated: false,
            infall: OnceLock::new(),
        }
    }
}

/// Points along each axis of a cell over which it is averaged.
const SAMPLES: usize = 8;
/// Radius in cells within which the settled cusp is averaged over cells.
const STEEP: f64 = 8.0;
/// Radius over the box length of a sphere of nearly the box's volume.
const REACH: f64 = 0.6;

fn norm(x: [f64; 3]) -> f64 {
    x.iter().map(|x| x * x).sum::<f64>().sqrt()
}

/// 8³ points of a cell, none of them its centre.
fn points_of(center: [f64; 3], h: f64) -> impl Iterator<Item = [f64; 3]> {
    let shift = move |n: usize| ((n as f64 + 0.5) / SAMPLES as f64 - 0.5) * h;
    (0..SAMPLES.pow(3)).map(move |n| {
        let at = [n % SAMPLES, n / SAMPLES % SAMPLES, n / (SAMPLES * SAMPLES)];
        std::array::from_fn(|axis| center[axis] + shift(at[axis]))
    })
}

impl SphericalCollapse {
    fn infall(&self) -> &SecondaryInfall {
        self.infall.get_or_init(SecondaryInfall::new)
    }

    /// ε: the excess of mass spread over the box.
    fn mean_excess(&self) -> f64 {
        self.overdensity * 4.0 * PI / 3.0 * (self.radius / self.box_length).powi(3)
    }

    /// ρ_b in the mean density.
    fn background(&self) -> f64 {
        1.0 / (1.0 + self.mean_excess())
    }

    /// Δ_ta of the shell that turns around at `a`: (3π/4)^(2/3) a_i/a.
    fn turnaround_excess(&self, a: f64) -> f64 {
        (0.75 * PI).powf(2.0 / 3.0) * self.a_start / a
    }

    /// Turnaround radius at `a`, comoving.
    pub fn turnaround_radius(&self, a: f64) -> f64 {
        self.unit(a) / (1.0 + self.held_back(a)).cbrt()
    }

    /// η.
    fn held_back(&self, a: f64) -> f64 {
        if self.isolated { 0.0 } else { self.mean_excess() / self.turnaround_excess(a) }
    }

    /// x_ta of infinite space, the length of the solution.
    fn unit(&self, a: f64) -> f64 {
        let excess = self.turnaround_excess(a);
        // the shell's first radius over its excess, in units that have grown by a/a_i
        self.radius * (self.overdensity / excess).cbrt() / excess * self.a_start / a
    }

    /// Radius of the shock at `a`, comoving.
    pub fn shock_radius(&self, a: f64) -> f64 {
        self.infall().shock(self.held_back(a)) * self.unit(a)
    }

    /// When the sphere itself has collapsed, at twice its turnaround time: the flow is self-similar from then on.
    fn collapse(&self) -> f64 {
        (1.5 * PI).powf(2.0 / 3.0) * self.a_start / self.overdensity
    }

    /// Density, radial code velocity and pressure at a comoving radius.
    ///
    /// With r = a x, t = (2/3) a^(3/2)/H0 and the Hubble flow a^(−1/2) x taken off, ṽ = a v_pec is
    /// √a x_ta (3/2 V − λ), and P̃/ρ̃ = a² P/ρ makes P̃ = (9/4) a x_ta² Π, with x_ta of infinite space.
    fn profile(&self, radius: f64, a: f64) -> (f64, f64, f64) {
        let unit = self.unit(a);
        let lambda = radius / unit;
        let gas = self.infall().at(lambda, self.held_back(a));
        let density = self.background() * gas.density;
        let velocity = a.sqrt() * unit * (1.5 * gas.velocity - lambda);
        let pressure = self.background() * 2.25 * a * unit * unit * gas.pressure;
        (density, velocity, pressure.max(self.cold(density)))
    }

    /// Pressure of gas that was never shocked.
    fn cold(&self, density: f64) -> f64 {
        self.background_pressure * density.powf(5.0 / 3.0)
    }

    /// Offset from the centre of the box.
    fn offset(&self, x: [f64; 3]) -> [f64; 3] {
        x.map(|x| x - 0.5 * self.box_length)
    }

    /// The part of a cell inside the sphere, from 8³ points where its surface may cross the cell.
    fn fraction_inside(&self, offset: [f64; 3], h: f64) -> f64 {
        let distance = norm(offset) - self.radius;
        if distance.abs() > h {
            return if distance < 0.0 { 1.0 } else { 0.0 };
        }
        let inside = points_of(offset, h).filter(|&x| norm(x) < self.radius).count();
        inside as f64 / SAMPLES.pow(3) as f64
    }

    /// The solution averaged over a cell: mass, momentum and heat of 8³ points where it is steep.
    ///
    /// A sphere of the box's volume holds no excess, so the gas beyond it, in the corners, is at rest.
    fn settled(&self, offset: [f64; 3], h: f64, a: f64) -> Gas {
        if norm(offset) > REACH * self.box_length {
            return Gas { density: self.background(), velocity: [0.0; 3], pressure: self.cold(self.background()) };
        }
        let smooth = norm(offset) > STEEP * h && (norm(offset) - self.shock_radius(a)).abs() > h;
        let points = if smooth { vec![offset] } else { points_of(offset, h).collect() };
        let share = 1.0 / points.len() as f64;
        let (mut mass, mut momentum, mut heat) = (0.0, [0.0; 3], 0.0);
        for x in points {
            let radius = norm(x);
            let (density, velocity, pressure) = self.profile(radius, a);
            mass += share * density;
            heat += share * pressure;
            for (sum, x) in momentum.iter_mut().zip(x) {
                *sum += share * density * velocity * x / radius;
            }
        }
        Gas { density: mass, velocity: momentum.map(|m| m / mass), pressure: heat }
    }
}

impl Problem for SphericalCollapse {
    fn name(&self) -> &'static str {
        "spherical_collapse"
    }

    fn options(&self) -> Value {
        options_of(self)
    }

    /// Refined where ρ > 8^ℓ: the sphere from the start, the gas around never.
    fn setup(&self) -> Setup {
        let parameters = RunParameters {
            precision: self.precision,
            max_level: self.levels,
            refine: vec![Criterion::DensityAbove {
                thresholds: (0..self.levels).map(|level| 8f64.powi(level.into())).collect(),
            }],
            flag_buffer: 8,
            ..RunParameters::default()
        };
        Setup {
            box_length: self.box_length,
            root: [self.root; 3],
            cosmology: Some(Cosmology::flat(0.7, 1.0, 0.0, 1.0, 1.0)),
            start: self.settled.unwrap_or(self.a_start),
            end: self.a_end,
            parameters,
        }
    }

    fn initial(&self, x: [f64; 3], h: f64) -> Gas {
        if let Some(a) = self.settled {
            return self.settled(self.offset(x), h, a);
        }
        let density = self.background() * (1.0 + self.overdensity * self.fraction_inside(self.offset(x), h));
        Gas { density, velocity: [0.0; 3], pressure: self.cold(density) }
    }

    /// From the collapse of the sphere itself on.
    fn exact(&self, x: [f64; 3], a: f64) -> Option<Gas> {
        if a < self.collapse() {
            return None;
        }
        let offset = self.offset(x);
        // the density diverges at the centre, where no cell's centre lies
        let radius = norm(offset).max(1e-9 * self.box_length);
        let (density, velocity, pressure) = self.profile(radius, a);
        Some(Gas { density, velocity: offset.map(|x| x / radius * velocity), pressure })
    }

    /// To twice the shock radius.
    fn view(&self) -> View {
        View::Shells { center: [0.5 * self.box_length; 3], radius: 2.0 * self.shock_radius(self.a_end) }
    }

    fn check(&self) -> Result<(), (&'static str, String)> {
        for (name, value) in [
            ("box_length", self.box_length),
            ("radius", self.radius),
            ("overdensity", self.overdensity),
            ("a_start", self.a_start),
            ("background_pressure", self.background_pressure),
        ] {
            require(name, value, value > 0.0, "must be positive")?;
        }
        let inside = self.radius <= 0.5 * self.box_length;
        require("radius", self.radius, inside, "must be at most half of box_length")?;
        if let Some(a) = self.settled {
            let reason = format!("must lie after the collapse of the sphere itself, at a = {}", self.collapse());
            require("settled", a, a > self.collapse(), &reason)?;
        }
        let start = self.settled.unwrap_or(self.a_start);
        let reason = format!("must lie above {start}, where the run starts");
        require("a_end", self.a_end, self.a_end > start, &reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn isolated() -> SphericalCollapse {
        SphericalCollapse { isolated: true, ..SphericalCollapse::default() }
    }

    /// The paper's set-up at a = 0.09: turnaround at 335, the shock at 113. The box moves the shock by 0.8% only.
    #[test]
    fn radii_of_the_paper() {
        let collapse = isolated();
        assert!((collapse.turnaround_radius(0.09) - 334.7).abs() < 0.1, "{}", collapse.turnaround_radius(0.09));
        assert!((collapse.shock_radius(0.09) - 113.5).abs() < 0.1, "{}", collapse.shock_radius(0.09));
        let equation = (4.0 / (3.0 * PI) * 9000f64.powf(1.5)).powf(8.0 / 9.0) * 0.01f64.cbrt() * 160.0 / 9000.0;
        assert!((collapse.turnaround_radius(0.09) / equation - 1.0).abs() < 1e-12);
        let boxed = SphericalCollapse::default();
        assert!((boxed.turnaround_radius(0.09) - 324.1).abs() < 0.1, "{}", boxed.turnaround_radius(0.09));
        assert!((boxed.shock_radius(0.09) - 112.6).abs() < 0.1, "{}", boxed.shock_radius(0.09));
    }

    /// Shells about the sphere, integrated as the code has it, d²x/dt̃² = −(3/2) a ∫(ρ̃ − 1) x² dx/x², from rest at a_i:
    /// the one at rest in space at a = 0.09 is at the turnaround radius. What is left is of the order of Δ_ta.
    #[test]
    fn shells_turn_around_where_the_formula_says() {
        for isolated in [true, false] {
            let collapse = SphericalCollapse { isolated, ..SphericalCollapse::default() };
            let (mean, background) = if isolated { (1.0, 1.0) } else { (1.0, collapse.background()) };
            // d(x, ṽ)/dlna, dt̃ = a^(−1/2) dlna; turned around where d(ax)/dt = 0: ṽ = −√a x
            let end = |first: f64| {
                let mass = background * (first.powi(3) + collapse.overdensity * collapse.radius.powi(3)) / 3.0;
                let slope = |lna: f64, y: &[f64; 2]| {
                    let a = lna.exp();
                    let pull = -1.5 * a * (mass - mean * y[0].powi(3) / 3.0) / (y[0] * y[0]);
                    [y[1] / a.sqrt(), pull / a.sqrt()]
                };
                crate::ode::solve(&slope, collapse.a_start.ln(), [first, 0.0], 0.09f64.ln(), 1e-12)
            };
            let (mut low, mut high) = (540.0, 700.0);
            for _ in 0..50 {
                let middle = 0.5 * (low + high);
                let [x, v] = end(middle);
                if v < -0.3 * x { low = middle } else { high = middle }
            }
            let found = end(low)[0];
            let expected = collapse.turnaround_radius(0.09);
            assert!((found / expected - 1.0).abs() < 1e-3, "isolated: {isolated}: {found} {expected}");
        }
    }

    /// Continuity, the equation of motion with gravity, and the entropy in code coordinates, by central differences
    /// behind the shock and ahead of it, in infinite space and in a box of η = 9·10⁻⁴: what is of second order in η is
    /// below 2·10⁻⁷ of each equation's terms.
    #[test]
    fn profiles_solve_the_comoving_equations() {
        let large_box = SphericalCollapse { box_length: 1e4, ..SphericalCollapse::default() };
        let a = 0.09f64;
        for collapse in [isolated(), large_box] {
            let (unit, held_back) = (collapse.unit(a), collapse.held_back(a));
            for lambda in [0.01, 0.03, 0.1, 0.2, 0.33, 0.4, 0.7, 1.0, 1.5] {
                let x = lambda * unit;
                let (dx, da) = (1e-4 * x, 1e-4 * a);
                type Profile = (f64, f64, f64);
                let at = |dx: f64, da: f64| collapse.profile(x + dx, a + da);
                let along =
                    |f: &dyn Fn(Profile, f64) -> f64| (f(at(dx, 0.0), x + dx) - f(at(-dx, 0.0), x - dx)) / (2.0 * dx);
                let rate = |f: &dyn Fn(Profile) -> f64| (f(at(0.0, da)) - f(at(0.0, -da))) / (2.0 * da) * a.powf(1.5);
                let (density, velocity, _) = at(0.0, 0.0);
                let flow = along(&|(density, velocity, _), x| x * x * density * velocity) / (x * x);
                let scale = density * velocity.abs() / x;
                let what = format!("η = {held_back:.1e}, λ = {lambda}");
                assert!((rate(&|g| g.0) + flow).abs() < 1e-6 * scale, "{what}: continuity");
                let gas = collapse.infall().at(lambda, held_back);
                let excess = gas.mass * unit.powi(3) - x.powi(3);
                let gravity = -1.5 * a * excess / (3.0 * x * x);
                let shocked = lambda < collapse.infall().shock(held_back);
                let push = if shocked { along(&|g, _| g.2) / density } else { 0.0 };
                let inertia = rate(&|g| g.1) + velocity * along(&|g, _| g.1);
                let missing = inertia + push - gravity;
                assert!(missing.abs() < 1e-6 * gravity.abs(), "{what}: {inertia} {push} {gravity}");
                let entropy = |(density, _, pressure): Profile| (pressure / density.powf(5.0 / 3.0)).ln();
                let change = rate(&entropy) + velocity * along(&|g, _| entropy(g));
                assert!(change.abs() < 1e-6 * velocity.abs() / x, "{what}: entropy changes by {change}");
            }
        }
    }

    /// Fine cells of the settled gas hold the mass of the cusp but for the innermost points' share, and are the solution
    /// where that is smooth. Cells of the whole box hold half a percent too much, because what has fallen in is missing in
    /// a sphere that the box is not; gravity takes the mean off.
    #[test]
    fn a_run_may_start_on_the_solution() {
        let a = 0.03;
        let collapse = SphericalCollapse { settled: Some(a), ..SphericalCollapse::default() };
        assert!(collapse.check().is_ok() && collapse.setup().start == a);
        let sum_over = |cells: i32, h: f64, share: &dyn Fn([f64; 3]) -> f64| -> f64 {
            let middle = 0.5 * collapse.box_length - 0.5 * f64::from(cells) * h;
            let at = |n: i32| [n % cells, n / cells % cells, n / cells / cells];
            let centers = (0..cells.pow(3)).map(|n| at(n).map(|i| middle + (f64::from(i) + 0.5) * h));
            centers.map(|x| share(x) * collapse.initial(x, h).density * h.powi(3)).sum()
        };
        let mean = sum_over(32, 64.0, &|_| 1.0) / collapse.box_length.powi(3);
        assert!((mean - 1.0).abs() < 1e-2, "{mean}");

        let (h, reach) = (2.0, 32.0);
        let inside = |x: [f64; 3]| points_of(collapse.offset(x), h).filter(|&x| norm(x) < reach).count();
        let mass = sum_over(32, h, &|x| inside(x) as f64 / SAMPLES.pow(3) as f64);
        let unit = collapse.unit(a);
        let gas = collapse.infall().at(reach / unit, collapse.held_back(a));
        let expected = 4.0 * PI / 3.0 * collapse.background() * unit.powi(3) * gas.mass;
        assert!((mass / expected - 1.0).abs() < 2e-2, "{mass} {expected}");

        let smooth = [1024.0 + 330.0, 1024.0, 1024.0];
        let (start, exact) = (collapse.initial(smooth, 32.0), collapse.exact(smooth, a).expect("after the collapse"));
        assert!(start.density == exact.density && start.velocity == exact.velocity);
        let early = SphericalCollapse { settled: Some(0.002), ..SphericalCollapse::default() };
        assert_eq!(early.check().expect_err("the sphere has not collapsed").0, "settled");
    }

    /// The sphere's mass at every resolution, the box's mean, and the threshold between sphere and background.
    #[test]
    fn the_box_starts_at_the_mean_density() {
        let collapse = SphericalCollapse::default();
        for (cells, tolerance) in [(32, 1e-2), (64, 2e-3)] {
            let h = collapse.box_length / f64::from(cells);
            let mut sum = 0.0;
            for n in 0..cells * cells * cells {
                let at = [n % cells, n / cells % cells, n / cells / cells];
                sum += collapse.initial(at.map(|i| (f64::from(i) + 0.5) * h), h).density - 1.0;
            }
            let mean = sum / f64::from(cells).powi(3);
            assert!(mean.abs() < tolerance * collapse.mean_excess(), "{cells}: {mean:e}");
        }
        assert!(collapse.initial([0.0; 3], 16.0).density < 1.0);
        assert!(collapse.initial([1024.0; 3], 16.0).density > 1.0);
        assert!(collapse.exact([1000.0; 3], 2e-5).is_none());
    }
}
