//! Ordinary differential equations: an explicit Runge–Kutta pair of orders 5 and 4 with error control (Dormand & Prince
//! 1980, J. Comput. Appl. Math. 6, 19), and curves that remember a solution.

/// Nodes of the stages.
const NODES: [f64; 7] = [0.0, 0.2, 0.3, 0.8, 8.0 / 9.0, 1.0, 1.0];
/// Weights of the earlier stages in each stage; the last row is the solution of order 5.
const STAGES: [[f64; 6]; 7] = [
    [0.0; 6],
    [0.2, 0.0, 0.0, 0.0, 0.0, 0.0],
    [3.0 / 40.0, 9.0 / 40.0, 0.0, 0.0, 0.0, 0.0],
    [44.0 / 45.0, -56.0 / 15.0, 32.0 / 9.0, 0.0, 0.0, 0.0],
    [19372.0 / 6561.0, -25360.0 / 2187.0, 64448.0 / 6561.0, -212.0 / 729.0, 0.0, 0.0],
    [9017.0 / 3168.0, -355.0 / 33.0, 46732.0 / 5247.0, 49.0 / 176.0, -5103.0 / 18656.0, 0.0],
    [35.0 / 384.0, 0.0, 500.0 / 1113.0, 125.0 / 192.0, -2187.0 / 6784.0, 11.0 / 84.0],
];
/// Weights of the difference between the solutions of order 5 and 4.
const ERROR: [f64; 7] =
    [71.0 / 57600.0, 0.0, -71.0 / 16695.0, 71.0 / 1920.0, -17253.0 / 339200.0, 22.0 / 525.0, -1.0 / 40.0];

/// y at `to`, of y' = `slope(x, y)` from y at `from`, in either direction.
///
/// Each step keeps the estimated error of every component below `tolerance` · (1 + |y|), so components are best scaled
/// to order one (logarithms of what spans decades).
///
/// # Panics
/// If the step becomes too small to move x: the slope is singular on the way, the caller's bug.
pub(crate) fn solve<const N: usize>(
    slope: &impl Fn(f64, &[f64; N]) -> [f64; N],
    from: f64,
    mut y: [f64; N],
    to: f64,
    tolerance: f64,
) -> [f64; N] {
    let mut x = from;
    let mut h = to - from;
    while x != to {
        let last = (to - x).abs() <= h.abs();
        if last {
            h = to - x;
        }
        let (next, error) = step(slope, x, &y, h, tolerance);
        if error <= 1.0 {
            x = if last { to } else { x + h };
            y = next;
        }
        // order 5: the error of a step falls as h⁵; NaN, from a stage that left the solution's domain, shortens the step
        h *= if error.is_nan() { 0.1 } else { (0.9 * error.powf(-0.2)).clamp(0.1, 5.0) };
        assert!(x == to || x + h != x, "the slope is singular at {x}");
    }
    y
}

/// A step of length `h`: y there, and the largest error estimate in units of what is tolerated.
fn step<const N: usize>(
    slope: &impl Fn(f64, &[f64; N]) -> [f64; N],
    x: f64,
    y: &[f64; N],
    h: f64,
    tolerance: f64,
) -> ([f64; N], f64) {
    let mut slopes = [[0.0; N]; 7];
    let mut at = *y;
    for stage in 0..7 {
        for n in 0..N {
            let sum: f64 = (0..stage).map(|s| STAGES[stage][s] * slopes[s][n]).sum();
            at[n] = y[n] + h * sum;
        }
        slopes[stage] = slope(x + NODES[stage] * h, &at);
    }
    let mut error = 0.0;
    for n in 0..N {
        let difference: f64 = (0..7).map(|s| ERROR[s] * slopes[s][n]).sum();
        let relative = (h * difference).abs() / (tolerance * (1.0 + y[n].abs().max(at[n].abs())));
        // `max` would drop a NaN
        error = if relative > error || relative.is_nan() { relative } else { error };
    }
    (at, error)
}

/// A solution at equidistant points, cubic between them from values and slopes.
#[derive(Clone, Debug)]
pub(crate) struct Curve<const N: usize> {
    first: f64,
    spacing: f64,
    /// y and y' at each point.
    points: Vec<[[f64; N]; 2]>,
}

impl<const N: usize> Curve<N> {
    /// The solution of y' = `slope(x, y)` from y at `from` to `to`, remembered at `intervals` + 1 points.
    ///
    /// # Panics
    /// As [`solve`].
    pub(crate) fn solve(
        slope: &impl Fn(f64, &[f64; N]) -> [f64; N],
        from: f64,
        mut y: [f64; N],
        to: f64,
        intervals: usize,
        tolerance: f64,
    ) -> Self {
        let spacing = (to - from) / intervals as f64;
        let at = |n: usize| from + spacing * n as f64;
        let mut points = vec![[y, slope(from, &y)]];
        for n in 1..=intervals {
            y = solve(slope, at(n - 1), y, at(n), tolerance);
            points.push([y, slope(at(n), &y)]);
        }
        Self { first: from, spacing, points }
    }

    /// y at x; beyond the ends that of the nearer end.
    pub(crate) fn at(&self, x: f64) -> [f64; N] {
        let last = self.points.len() - 1;
        let place = ((x - self.first) / self.spacing).clamp(0.0, last as f64);
        let n = (place as usize).min(last - 1);
        let (u, [[y0, s0], [y1, s1]]) = (place - n as f64, [self.points[n], self.points[n + 1]]);
        let v = 1.0 - u;
        std::array::from_fn(|i| {
            let values = v * v * (1.0 + 2.0 * u) * y0[i] + u * u * (1.0 + 2.0 * v) * y1[i];
            values + self.spacing * u * v * (v * s0[i] - u * s1[i])
        })
    }

    /// y at the end of the curve.
    pub(crate) fn end(&self) -> [f64; N] {
        self.points[self.points.len() - 1][0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A harmonic oscillator over ten turns, forward and back again.
    #[test]
    fn an_oscillator_comes_back() {
        let slope = |_: f64, y: &[f64; 2]| [y[1], -y[0]];
        let end = 20.0 * std::f64::consts::PI;
        let there = solve(&slope, 0.0, [0.0, 1.0], end, 1e-12);
        assert!(there[0].abs() < 1e-9 && (there[1] - 1.0).abs() < 1e-9, "{there:?}");
        let back = solve(&slope, end, there, 1.0, 1e-12);
        assert!((back[0] - 1f64.sin()).abs() < 1e-9 && (back[1] - 1f64.cos()).abs() < 1e-9, "{back:?}");
    }

    /// The error falls with the tolerance, and stays near it.
    #[test]
    fn errors_follow_the_tolerance() {
        let error = |tolerance| {
            (solve(&|x, y: &[f64; 1]| [y[0] * x.cos()], 0.0, [1.0], 8.0, tolerance)[0] - 8f64.sin().exp()).abs()
        };
        assert!(error(1e-6) < 1e-4 && error(1e-12) < 1e-10 && error(1e-12) < 1e-3 * error(1e-6));
    }

    /// A curve towards smaller x, between its points and at its ends: cubics have an error of h⁴/384 times the fourth
    /// derivative.
    #[test]
    fn curves_interpolate() {
        let curve = Curve::solve(&|_, y: &[f64; 1]| [y[0]], 0.0, [1.0], -2.0, 20, 1e-13);
        for x in [0.0f64, -0.03, -0.55, -1.21, -1.99, -2.0] {
            assert!((curve.at(x)[0] - x.exp()).abs() < 0.1f64.powi(4) / 384.0, "{x}");
        }
        assert_eq!(curve.at(1.0), [1.0]);
        assert_eq!(curve.at(-3.0), curve.end());
    }
}
