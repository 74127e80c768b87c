//! Cold shells that fall onto an overdensity in an Einstein–de Sitter universe, in the units of `secondary_infall.rs`:
//! exact before they are shocked, also in a periodic box.
//!
//! A shell within which the mean excess is Δ − ε, where ε is the box's own, follows the cycloid r = r_max sin²(θ/2),
//! t = t_max (θ − sinθ)/π, and Δ ∝ 1/m. With Δ_ta the excess that turns around now and η = ε/Δ_ta, the shell of age
//! T = t/t_max has Δ/Δ_ta = T^(2/3) + η, so that M = (3π/4)²/(T^(2/3) + η) and
//!
//! λ = sin²(θ/2) T^(−2/3) (T^(2/3) + η)^(−1/3).

use super::infall::Infall;
use std::f64::consts::PI;

/// A shell at λ, in units of the turnaround radius in infinite space.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shell {
    pub(super) lambda: f64,
    /// U = V/λ.
    pub(super) u: f64,
    /// T^(2/3).
    grown: f64,
    held_back: f64,
}

impl Shell {
    /// A shell at phase θ in (0, 2π); θ = π at turnaround.
    ///
    /// * `held_back`: η, 0 in infinite space.
    pub(super) fn at_phase(theta: f64, held_back: f64) -> Self {
        // θ − sinθ by its series where the difference would lose digits
        let lag = if theta < 0.1 {
            theta.powi(3) / 6.0
                * (1.0 - theta.powi(2) / 20.0 * (1.0 - theta.powi(2) / 42.0 * (1.0 - theta.powi(2) / 72.0)))
        } else {
            theta - theta.sin()
        };
        let grown = (lag / PI).powf(2.0 / 3.0);
        let half = (0.5 * theta).sin().powi(2);
        let lambda = half / (grown * (grown + held_back).cbrt());
        Self { lambda, u: theta.sin() * lag / (4.0 * half * half), grown, held_back }
    }

    /// The shell at λ: λ falls with θ.
    pub(super) fn at(lambda: f64, held_back: f64) -> Self {
        let (mut low, mut high) = (0.0, 2.0 * PI);
        for _ in 0..100 {
            let middle = 0.5 * (low + high);
            if Self::at_phase(middle, held_back).lambda > lambda { low = middle } else { high = middle }
        }
        Self { lambda, ..Self::at_phase(0.5 * (low + high), held_back) }
    }

    /// D = dM/dλ / (3λ²) at this time, of dlnT = dθ (1 − cosθ)/(θ − sinθ).
    pub(super) fn gas(&self) -> Infall {
        let mass = (0.75 * PI).powi(2) / (self.grown + self.held_back);
        // dlnΔ/dlnT^(2/3)
        let share = self.grown / (self.grown + self.held_back);
        let density = 2.0 / 9.0 * mass * share / ((2.0 / 3.0 + 2.0 / 9.0 * share - self.u) * self.lambda.powi(3));
        Infall { density, velocity: self.u * self.lambda, pressure: 0.0, mass }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At turnaround V = 0 and M = (3π/4)²; far out the gas follows the background.
    #[test]
    fn shells_turn_around_at_one() {
        let gas = Shell::at(1.0, 0.0).gas();
        assert!(gas.velocity.abs() < 1e-12 && (gas.mass - (0.75 * PI).powi(2)).abs() < 1e-12, "{gas:?}");
        let far = Shell::at(1e3, 0.0).gas();
        // a mass excess Δ slows shells by Δ/3 and compresses them by Δ, Δ ∝ λ^(−9/4): all below 10⁻³ there
        assert!((far.density - 1.0).abs() < 1e-3 && (far.velocity / 1e3 - 2.0 / 3.0).abs() < 1e-3, "{far:?}");
    }

    /// In a box too dM/dλ = 3λ² D, and mass moves with the gas: (2/3) M + (2/3) η ∂M/∂η = −3λ³ D (U − 8/9).
    #[test]
    fn held_back_shells_keep_their_mass() {
        let eta = 0.1;
        for lambda in [0.2, 0.5, 1.0, 1.5] {
            let mass = |lambda: f64, eta: f64| Shell::at(lambda, eta).gas().mass;
            let shell = Shell::at(lambda, eta);
            let gas = shell.gas();
            let along = (mass(lambda + 1e-4, eta) - mass(lambda - 1e-4, eta)) / 2e-4;
            assert!((along / (3.0 * lambda * lambda * gas.density) - 1.0).abs() < 1e-6, "{lambda}: {along}");
            let rate = gas.mass + eta * (mass(lambda, eta + 1e-4) - mass(lambda, eta - 1e-4)) / 2e-4;
            let flow = 4.5 * lambda.powi(3) * gas.density * (8.0 / 9.0 - shell.u);
            assert!((rate / flow - 1.0).abs() < 1e-6, "{lambda}: {rate} {flow}");
        }
    }
}
