//! A point explosion in a uniform cold gas (paper, section 4.3; the solution is that of `blast_wave.rs`).
//!
//! Lengths are in finest cells and the density is 1, so a smaller box is the same explosion cut off earlier: the shock
//! radius grows as t^(2/5), and by default a run ends when it is the fraction of the box that it is at t = 2000 in a box
//! of 2048.

use super::blast_wave::BlastWave;
use super::{Gas, Problem, Setup, View, options_of, plain_gas, require};
use comove_sim::Criterion;
use comove_sim::TimeSteps;
use comove_sim::criterion::Quantity;
use comove_sim::{Precision, RunParameters};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::OnceLock;

/// Energy released in a small ball of a gas at rest.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Sedov {
    /// Root cells along each axis.
    pub root: usize,
    /// Refinement levels.
    pub levels: u8,
    /// Precision of the state.
    pub precision: Precision,
    /// Ratio of specific heats.
    pub gamma: f64,
    /// Energy released, E_0.
    pub energy: f64,
    /// Radius of the ball that it fills, finest cells.
    pub radius: f64,
    /// Internal energy density of the gas around, E_1.
    pub background: f64,
    /// End of the run; by default 2000 in a box of 2048 and as its length to the power 5/2.
    pub end: Option<f64>,
    #[serde(skip)]
    wave: OnceLock<BlastWave>,
    #[serde(skip)]
    ball: OnceLock<Ball>,
}

/// The part of the energy in each finest cell of a cube around the explosion, x fastest.
#[derive(Clone, Debug)]
struct Ball {
    /// Cells from the centre to a side of the cube.
    half: usize,
    parts: Vec<f64>,
}

/// Points along each axis of a cell at which a ball is asked whether it contains them.
const POINTS: usize = 16;

impl Ball {
    /// A cell has the part of the energy that it has of the points inside the ball.
    fn new(radius: f64) -> Self {
        let half = radius.ceil() as usize;
        let middles: Vec<f64> = (0..POINTS).map(|n| (n as f64 + 0.5) / POINTS as f64).collect();
        let squares = |cell: usize| middles.iter().map(move |x| (cell as f64 - half as f64 + x).powi(2));
        let points = |[i, j, k]: [usize; 3]| {
            let row = |z2: f64, y2: f64| squares(i).filter(move |x2| x2 + y2 + z2 < radius * radius).count();
            squares(k).map(|z2| squares(j).map(|y2| row(z2, y2)).sum::<usize>()).sum::<usize>()
        };
        let side = 2 * half;
        let inside: Vec<usize> =
            (0..side.pow(3)).map(|c| points([c % side, c / side % side, c / side.pow(2)])).collect();
        let all = inside.iter().sum::<usize>() as f64;
        Self { half, parts: inside.iter().map(|&points| points as f64 / all).collect() }
    }

    /// The part of the energy in a cell of width `h` at `offset` from the explosion.
    fn part(&self, offset: [f64; 3], h: f64) -> f64 {
        let side = 2 * self.half;
        let cells = offset.map(|x| {
            let place = |x: f64| (x + self.half as f64).round().clamp(0.0, side as f64) as usize;
            place(x - 0.5 * h)..place(x + 0.5 * h)
        });
        let [x, y, z] = cells;
        let row = |j: usize, k: usize| self.parts[(k * side + j) * side..][x.clone()].iter().sum::<f64>();
        z.map(|k| y.clone().map(|j| row(j, k)).sum::<f64>()).sum()
    }
}

impl Default for Sedov {
    fn default() -> Self {
        Self {
            root: 64,
            levels: 5,
            precision: Precision::Single,
            gamma: 5.0 / 3.0,
            energy: 8e5,
            radius: 3.5,
            background: 1e-5,
            end: None,
            wave: OnceLock::new(),
            ball: OnceLock::new(),
        }
    }
}

impl Sedov {
    /// Finest cells along each axis.
    fn box_length(&self) -> f64 {
        (self.root << self.levels) as f64
    }

    /// Offset from the explosion, at the box's centre.
    fn offset(&self, x: [f64; 3]) -> [f64; 3] {
        x.map(|x| x - 0.5 * self.box_length())
    }

    fn end(&self) -> f64 {
        self.end.unwrap_or_else(|| 2000.0 * (self.box_length() / 2048.0).powf(2.5))
    }

    fn wave(&self) -> &BlastWave {
        self.wave.get_or_init(|| BlastWave::new(self.gamma))
    }

    /// r_s = β (E t²)^(1/5), finest cells.
    pub fn shock_radius(&self, t: f64) -> f64 {
        self.wave().beta() * (self.energy * t * t).powf(0.2)
    }

    fn gas(&self, energy_density: f64) -> Gas {
        Gas { density: 1.0, velocity: [0.0; 3], pressure: (self.gamma - 1.0) * energy_density }
    }
}

impl Problem for Sedov {
    fn name(&self) -> &'static str {
        "sedov"
    }

    fn options(&self) -> Value {
        options_of(self)
    }

    fn setup(&self) -> Setup {
        let parameters = RunParameters {
            max_level: self.levels,
            refine: vec![Criterion::GradientAbove {
                of: Quantity::Pressure,
                thresholds: vec![1.0; self.levels.into()],
            }],
            flag_buffer: 8,
            time_steps: TimeSteps::Individual,
            ..plain_gas(self.precision, self.gamma)
        };
        let box_length = self.box_length();
        Setup { box_length, root: [self.root; 3], cosmology: None, start: 0.0, end: self.end(), parameters }
    }

    /// The energy fills a ball, of which finest cells have fractions; coarser cells hold means.
    fn initial(&self, x: [f64; 3], h: f64) -> Gas {
        let ball = self.ball.get_or_init(|| Ball::new(self.radius));
        self.gas(self.background + self.energy * ball.part(self.offset(x), h) / h.powi(3))
    }

    fn exact(&self, x: [f64; 3], t: f64) -> Option<Gas> {
        if t == 0.0 {
            return Some(self.initial(x, 1.0));
        }
        let offset = self.offset(x);
        let r = offset.iter().map(|x| x * x).sum::<f64>().sqrt();
        let shock = self.shock_radius(t);
        if r > shock {
            return Some(self.gas(self.background));
        }
        let speed = 0.4 * shock / t;
        let flow = self.wave().at(r / shock);
        let velocity = offset.map(|x| if r > 0.0 { x / r * flow.velocity * speed } else { 0.0 });
        Some(Gas { density: flow.density, velocity, pressure: flow.pressure * speed * speed })
    }

    /// To a fifth beyond the shock.
    fn view(&self) -> View {
        View::Shells { center: [0.5 * self.box_length(); 3], radius: 1.2 * self.shock_radius(self.end()) }
    }

    fn check(&self) -> Result<(), (&'static str, String)> {
        let gamma = self.gamma > 1.0 && self.gamma < 2.0;
        require("gamma", self.gamma, gamma, "must lie between 1 and 2")?;
        require("energy", self.energy, self.energy > 0.0, "must be positive")?;
        let radius = self.radius > 0.0 && self.radius <= 0.25 * self.box_length().min(64.0);
        require("radius", self.radius, radius, "must be positive, and at most 16 cells and a quarter of the box")?;
        require("background", self.background, self.background > 0.0, "must be positive")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A box of 2048 at t = 2000: β = 1.1517 gives 365.1 finest cells (the paper's β ≈ 1.15 gives 364.5), in smaller
    /// boxes the same fraction.
    #[test]
    fn shock_radius_of_the_paper() {
        let paper = Sedov::default();
        assert_eq!(paper.setup().end, 2000.0);
        assert!((paper.shock_radius(2000.0) - 365.1).abs() < 0.1);
        let small = Sedov { root: 32, levels: 2, ..Sedov::default() };
        let fraction = small.shock_radius(small.setup().end) / 128.0;
        assert!((fraction * 2048.0 / paper.shock_radius(2000.0) - 1.0).abs() < 1e-12);
    }

    /// The same energy on every level, within the ball and as even as it.
    #[test]
    fn coarse_cells_hold_means() {
        let sedov = Sedov { root: 16, levels: 3, ..Sedov::default() };
        let volume = 4.0 / 3.0 * std::f64::consts::PI * 3.5f64.powi(3);
        for (h, hot_cells) in [(1.0, 304), (2.0, 56), (4.0, 8), (8.0, 8)] {
            let half = (4.0f64 / h).ceil() as usize + 1;
            let middle = (64.0 / h) as usize;
            let (mut energy, mut hot, mut hottest) = (0.0, 0, 0.0f64);
            for c in 0..(2 * half).pow(3) {
                let cell = [0, 1, 2].map(|axis| middle - half + c / (2 * half).pow(axis) % (2 * half));
                let gas = sedov.initial(cell.map(|i| (i as f64 + 0.5) * h), h);
                energy += gas.pressure / (sedov.gamma - 1.0) * h.powi(3);
                hot += usize::from(gas.pressure > 1.0);
                hottest = hottest.max(gas.pressure / (sedov.gamma - 1.0));
            }
            let background = sedov.background * (2.0 * half as f64 * h).powi(3);
            assert!((energy / (sedov.energy + background) - 1.0).abs() < 1e-12, "{h}: {energy}");
            assert_eq!(hot, hot_cells, "cells of {h}");
            if h == 1.0 {
                assert!((hottest * volume / sedov.energy - 1.0).abs() < 2e-3, "{hottest}");
            }
        }
    }

    /// Behind a strong shock: ρ₂ = 4ρ₁, v₂ = ¾ v_s, P₂ = ¾ ρ₁ v_s² (paper, eqs. after v_s).
    #[test]
    fn jump_at_the_shock() {
        let sedov = Sedov::default();
        let shock = sedov.shock_radius(2000.0);
        let speed = 0.4 * shock / 2000.0;
        let gas = sedov.exact([1024.0, 1024.0 - shock * (1.0 - 1e-12), 1024.0], 2000.0).unwrap();
        assert!((gas.density - 4.0).abs() < 1e-9 && (gas.velocity[1] + 0.75 * speed).abs() < 1e-9, "{gas:?}");
        assert!((gas.pressure - 0.75 * speed * speed).abs() < 1e-9, "{gas:?}");
        let ahead = sedov.exact([1024.0 + shock * 1.001, 1024.0, 1024.0], 2000.0).unwrap();
        assert_eq!(ahead, sedov.gas(1e-5));
    }
}
