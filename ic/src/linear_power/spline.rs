//! Splines through the rows of a table.

/// A function of a positive variable: natural cubic spline in its logarithm.
#[derive(Clone, Debug)]
pub struct Spline {
    x: Vec<f64>,
    y: Vec<f64>,
    /// Second derivatives at the nodes.
    curvature: Vec<f64>,
}

impl Spline {
    /// The spline through points with positive, increasing abscissa, at least three of them.
    pub fn new(points: &[(f64, f64)]) -> Self {
        let x: Vec<f64> = points.iter().map(|p| p.0.ln()).collect();
        let y: Vec<f64> = points.iter().map(|p| p.1).collect();
        let n = x.len();
        let mut curvature = vec![0.0; n];
        // Tridiagonal system of the continuous slope; forward elimination, then back substitution.
        let mut ratio = vec![0.0; n];
        for i in 1..n - 1 {
            let (left, right) = (x[i] - x[i - 1], x[i + 1] - x[i]);
            let source = 6.0 * ((y[i + 1] - y[i]) / right - (y[i] - y[i - 1]) / left);
            let pivot = 2.0 * (left + right) - left * ratio[i - 1];
            ratio[i] = right / pivot;
            curvature[i] = (source - left * curvature[i - 1]) / pivot;
        }
        for i in (1..n - 1).rev() {
            curvature[i] -= ratio[i] * curvature[i + 1];
        }
        Self { x, y, curvature }
    }

    /// First and last abscissa.
    pub fn range(&self) -> (f64, f64) {
        (self.x[0].exp(), self.x[self.x.len() - 1].exp())
    }

    /// The value at a positive argument; beyond the ends the end pieces continue.
    pub fn at(&self, argument: f64) -> f64 {
        let t = argument.ln();
        let i = self.x.partition_point(|x| *x <= t).clamp(1, self.x.len() - 1);
        let width = self.x[i] - self.x[i - 1];
        let (a, b) = ((self.x[i] - t) / width, (t - self.x[i - 1]) / width);
        let bend = (a * a * a - a) * self.curvature[i - 1] + (b * b * b - b) * self.curvature[i];
        a * self.y[i - 1] + b * self.y[i] + bend * width * width / 6.0
    }
}

/// A positive function of a positive variable: natural cubic spline in ln–ln.
#[derive(Clone, Debug)]
pub struct LogSpline(Spline);

impl LogSpline {
    /// The spline through positive points with increasing abscissa, at least three of them.
    pub fn new(points: &[(f64, f64)]) -> Self {
        Self(Spline::new(&points.iter().map(|&(x, y)| (x, y.ln())).collect::<Vec<_>>()))
    }

    /// First and last abscissa.
    pub fn range(&self) -> (f64, f64) {
        self.0.range()
    }

    /// The value at a positive argument; beyond the ends the end pieces continue.
    pub fn at(&self, argument: f64) -> f64 {
        self.0.at(argument).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_power_law_is_reproduced_and_a_curve_converges() {
        let points = |n: i32| -> Vec<(f64, f64)> {
            (0..=n).map(|i| f64::from(i) / f64::from(n)).map(|t| ((4.0 * t).exp(), (5.0 * t).sin().exp())).collect()
        };
        let law: Vec<(f64, f64)> = points(10).iter().map(|(k, _)| (*k, 3.0 * k.powf(-2.7))).collect();
        assert!((LogSpline::new(&law).at(7.7) / (3.0 * 7.7f64.powf(-2.7)) - 1.0).abs() < 1e-13);
        // fourth order away from the ends: 16 times smaller at twice the points
        let error = |n| {
            let spline = LogSpline::new(&points(n));
            let at = |t: f64| (spline.at((4.0 * t).exp()).ln() - (5.0 * t).sin()).abs();
            (0..200).map(|i| at(0.3 + 0.002 * f64::from(i))).fold(0.0, f64::max)
        };
        assert!(error(80) < error(40) / 14.0 && error(40) < 1e-5, "{} {}", error(40), error(80));
    }
}
