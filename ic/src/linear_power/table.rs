//! CAMB's tables (docs/equations.md, *Initial conditions*) and splines through them.

use crate::error::IcError;
use std::path::Path;

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

/// Reads a CAMB transfer table: k in h/Mpc in column 1, total matter Δ/k² in column 7. Returns k^n_s T², which is P(k)
/// up to a factor.
///
/// # Errors
/// [`IcError::Io`], [`IcError::TableLine`], [`IcError::Content`].
pub fn read_transfer(path: &Path, n_s: f64) -> Result<LogSpline, IcError> {
    let rows = read_rows(path)?;
    if ![7, 13].contains(&rows[0].len()) {
        let reason = format!(
            "{} columns; a CAMB transfer table has 7 or 13 (a table of k and P(k) is a power table)",
            rows[0].len()
        );
        return Err(IcError::Content { path: path.into(), reason });
    }
    spline(path, rows.iter().map(|row| (row[0], row[0].powf(n_s) * row[6] * row[6])).collect())
}

/// Reads a CAMB matter power table: k in h/Mpc in column 1, P in (Mpc/h)³ in column 2.
///
/// # Errors
/// [`IcError::Io`], [`IcError::TableLine`], [`IcError::Content`].
pub fn read_power(path: &Path) -> Result<LogSpline, IcError> {
    let rows = read_rows(path)?;
    if [1, 7, 13].contains(&rows[0].len()) {
        let reason = format!(
            "{} columns; a matter power table has k and P(k) (7 or 13 columns make a transfer table)",
            rows[0].len()
        );
        return Err(IcError::Content { path: path.into(), reason });
    }
    spline(path, rows.iter().map(|row| (row[0], row[1])).collect())
}

/// The numbers of a table, row by row, all rows of one length; at least three rows.
fn read_rows(path: &Path) -> Result<Vec<Vec<f64>>, IcError> {
    Ok(numbered_rows(path, &read_text(path)?)?.into_iter().map(|(_, row)| row).collect())
}

pub(super) fn read_text(path: &Path) -> Result<String, IcError> {
    std::fs::read_to_string(path).map_err(|source| IcError::Io { path: path.into(), source })
}

/// The same of a table's text, each row with its line in the file, from 1.
pub(super) fn numbered_rows(path: &Path, text: &str) -> Result<Vec<(usize, Vec<f64>)>, IcError> {
    let mut rows: Vec<(usize, Vec<f64>)> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if line.contains('#') || line.trim().is_empty() {
            continue;
        }
        let wrong = |reason: String| IcError::TableLine { path: path.into(), line: number + 1, reason };
        let row = line
            .split_whitespace()
            .map(|word| word.parse().map_err(|_| wrong(format!("\"{word}\" is not a number"))))
            .collect::<Result<Vec<f64>, IcError>>()?;
        if let Some((_, first)) = rows.first()
            && first.len() != row.len()
        {
            return Err(wrong(format!("{} columns, {} before", row.len(), first.len())));
        }
        rows.push((number + 1, row));
    }
    if rows.len() < 3 {
        let reason = format!("{} rows of numbers; a spectrum needs at least 3", rows.len());
        return Err(IcError::Content { path: path.into(), reason });
    }
    Ok(rows)
}

fn spline(path: &Path, points: Vec<(f64, f64)>) -> Result<LogSpline, IcError> {
    let positive = points.iter().all(|(k, p)| *k > 0.0 && *p > 0.0 && k.is_finite() && p.is_finite());
    if !positive || points.windows(2).any(|pair| pair[1].0 <= pair[0].0) {
        let reason = "k must increase from row to row, and k and the spectrum be positive and finite".into();
        return Err(IcError::Content { path: path.into(), reason });
    }
    // σ8 needs what a sphere of 8 Mpc/h sees; beyond these limits lies less than 10⁻⁴ of its variance.
    let (first, last) = (points[0].0, points[points.len() - 1].0);
    if first > 1e-3 || last < 5.0 {
        let reason = format!("k from {first:e} to {last:e} h/Mpc; σ8 needs a table from 1e-3 or less to 5 or more");
        return Err(IcError::Content { path: path.into(), reason });
    }
    Ok(LogSpline::new(&points))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

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

    #[test]
    fn unusable_tables_say_why() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| -> PathBuf {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let message = |result: Result<LogSpline, IcError>| result.unwrap_err().to_string();
        let short = write("short", "# k P\n1e-4 1\n1 2\n");
        assert!(message(read_power(&short)).contains("2 rows"));
        let word = write("word", "# k P\n1e-4 1\n1 two\n10 3\n");
        assert!(message(read_power(&word)).contains("line 3: \"two\" is not a number"));
        let ragged = write("ragged", "1e-4 1\n1 2 3\n");
        assert!(message(read_power(&ragged)).contains("line 2: 3 columns, 2 before"));
        let narrow = write("narrow", "1e-4 1\n1e-2 2\n1 2\n");
        assert!(message(read_power(&narrow)).contains("σ8 needs"));
        assert!(message(read_transfer(&narrow, 1.0)).contains("2 columns"));
        let falling = write("falling", "1e-4 1\n10 2\n1 2\n");
        assert!(message(read_power(&falling)).contains("must increase"));
        assert!(message(read_power(&folder.path().join("absent"))).contains("absent"));
    }
}
