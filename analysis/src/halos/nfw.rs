//! The concentration of an NFW profile (Navarro, Frenk & White 1997) by maximum likelihood.
//!
//! Of particles at radii r between r_min and R, the profile ρ ∝ 1/((r/r_s)(1 + r/r_s)²) gives
//!
//! ```text
//! p(r) dr = r/(r_s + r)² dr / (μ(R/r_s) − μ(r_min/r_s)),    μ(x) = ln(1 + x) − x/(1 + x)
//! ```
//!
//! and c = R/r_s is where Σ ln p is largest. There is no binning to choose (bins in ln r below only save time) and each
//! particle counts by its mass. Radii below r_min, where forces are softened, are left out.

/// Particles that a fit needs.
const LEAST: usize = 100;
/// Concentrations between which the best is looked for; at either end there is none.
const RANGE: [f64; 2] = [0.5, 100.0];
/// Bins in ln r.
const BINS: usize = 512;

/// c of particles with these radii and masses, of which those between `r_min` and `radius` count; none with fewer than 100 of them, with
/// `r_min` above a quarter of `radius`, or where no profile fits best.
pub(crate) fn concentration(particles: impl Iterator<Item = (f64, f64)>, r_min: f64, radius: f64) -> Option<f64> {
    if r_min.is_nan() || r_min > 0.25 * radius {
        return None;
    }
    // without softening a thousandth of the radius keeps the logarithm
    let r_min = r_min.max(1e-3 * radius);
    let width = (radius / r_min).ln() / BINS as f64;
    let (mut masses, mut number) = ([0.0; BINS], 0);
    for (r, mass) in particles.filter(|(r, _)| (r_min..radius).contains(r)) {
        masses[(((r / r_min).ln() / width) as usize).min(BINS - 1)] += mass;
        number += 1;
    }
    if number < LEAST {
        return None;
    }
    let all: f64 = masses.iter().sum();
    // in units of the radius
    let bins: Vec<(f64, f64)> = masses
        .iter()
        .enumerate()
        .filter(|(_, mass)| **mass > 0.0)
        .map(|(n, mass)| (r_min / radius * ((n as f64 + 0.5) * width).exp(), *mass / all))
        .collect();
    let mu = |x: f64| x.ln_1p() - x / (1.0 + x);
    let likelihood = |ln_c: f64| {
        let c = ln_c.exp();
        let scale = 1.0 / c;
        let of_bins: f64 = bins.iter().map(|(r, share)| share * (r / (scale + r).powi(2)).ln()).sum();
        of_bins - (mu(c) - mu(c * r_min / radius)).ln()
    };
    let [low, high] = RANGE.map(f64::ln);
    let best = maximum(likelihood, low, high);
    let margin = 1e-3 * (high - low);
    (low + margin..high - margin).contains(&best).then(|| best.exp())
}

/// Where a function with one maximum between two points has it: golden sections.
fn maximum(f: impl Fn(f64) -> f64, mut low: f64, mut high: f64) -> f64 {
    let golden = 0.5 * (5f64.sqrt() - 1.0);
    let (mut left, mut right) = (high - golden * (high - low), low + golden * (high - low));
    let (mut at_left, mut at_right) = (f(left), f(right));
    while high - low > 1e-5 {
        if at_left > at_right {
            (high, right, at_right) = (right, left, at_left);
            left = high - golden * (high - low);
            at_left = f(left);
        } else {
            (low, left, at_left) = (left, right, at_right);
            right = low + golden * (high - low);
            at_right = f(right);
        }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of particles of mass 1.
    fn of_radii(radii: impl Iterator<Item = f64>, r_min: f64) -> Option<f64> {
        concentration(radii.map(|r| (r, 1.0)), r_min, 1.0)
    }

    /// Radii that follow the profile exactly give its concentration back, with the core cut out and without.
    #[test]
    fn radii_of_a_profile_give_its_concentration() {
        let mu = |x: f64| x.ln_1p() - x / (1.0 + x);
        for c in [2.0, 7.0, 25.0] {
            let count = 20_000;
            let radii: Vec<f64> = (0..count)
                .map(|n| {
                    let wanted = (f64::from(n) + 0.5) / f64::from(count) * mu(c);
                    let (mut low, mut high) = (0.0, c);
                    for _ in 0..60 {
                        let middle = 0.5 * (low + high);
                        if mu(middle) < wanted { low = middle } else { high = middle }
                    }
                    low / c
                })
                .collect();
            for r_min in [0.0, 0.05, 0.2] {
                let found = of_radii(radii.iter().copied(), r_min).unwrap();
                assert!((found / c - 1.0).abs() < 0.01, "{c} {r_min}: {found}");
            }
        }
    }

    /// Too few particles, cells too wide for the core, and a uniform ball have none.
    #[test]
    fn what_cannot_be_fitted_has_none() {
        let ball: Vec<f64> = (1..2000).map(|n| (f64::from(n) / 2000.0).cbrt()).collect();
        assert_eq!(of_radii(ball.iter().copied(), 0.05), None);
        assert_eq!(of_radii(ball.iter().copied(), 0.3), None);
        assert_eq!(of_radii((1..90).map(|n| f64::from(n) / 90.0), 0.01), None);
    }
}
