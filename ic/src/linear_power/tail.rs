//! A tabulated spectrum beyond the last k of its table.

use super::spline::LogSpline;

/// P ∝ k^(n_s − 4) ln²(ck), which cold dark matter has on small scales (Meszaros growth of what entered the horizon under
/// radiation), with the table's slope at its end; where that is steeper than k^(n_s − 4), a power law.
#[derive(Clone, Debug)]
pub(super) struct Tail {
    /// k and P of the table's end.
    end: (f64, f64),
    n_s: f64,
    /// dlnP/dlnk − (n_s − 4) at the end: 2/ln(ck).
    excess: f64,
}

/// The largest excess of slope that cold dark matter has beyond k = 5 h/Mpc: a linear spectrum has 0.5 there, one after shell
/// crossing about 1.5.
const LARGEST_EXCESS: f64 = 1.0;

/// Factor in k over which the slope at the end is taken, so that digits and noise of the last rows do not count.
const BASE: f64 = 2.0;

impl Tail {
    /// The tail of a table.
    pub(super) fn of(spline: &LogSpline, n_s: f64) -> Self {
        let (_, k) = spline.range();
        let p = spline.at(k);
        let slope = (p / spline.at(k / BASE)).ln() / BASE.ln();
        let at_middle = slope - (n_s - 4.0);
        // 2/L of the middle of the base, L being ln(ck)
        let excess = if at_middle > 0.0 { 1.0 / (1.0 / at_middle + 0.25 * BASE.ln()) } else { at_middle };
        Self { end: (k, p), n_s, excess }
    }

    /// The last k of the table.
    pub(super) fn from(&self) -> f64 {
        self.end.0
    }

    /// Whether the table ends with a slope that cold dark matter has: else the tail is a guess.
    pub(super) fn is_of_cold_dark_matter(&self) -> bool {
        self.excess <= LARGEST_EXCESS
    }

    /// P at a k beyond the table.
    pub(super) fn at(&self, k: f64) -> f64 {
        let (end, p) = self.end;
        let x = k / end;
        let growth = match self.excess > 0.0 {
            true => (1.0 + 0.5 * self.excess * x.ln()).powi(2),
            false => x.powf(self.excess),
        };
        p * x.powf(self.n_s - 4.0) * growth
    }
}
