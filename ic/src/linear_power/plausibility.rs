//! Whether a tabulated spectrum can be what it is taken for: its own σ8 and its shape beside those of the recipe's cosmology.

use super::LinearPower;
use super::spline::LogSpline;
use comove_sim::Cosmology;
use std::f64::consts::PI;

/// Another meaning that numbers of a table may have.
pub(super) struct Reading {
    /// What the table holds.
    text: &'static str,
    /// k in h/Mpc and P of a row that is read in this way, from those of one that is read as it stands, h and n_s.
    convert: fn(f64, f64, f64, f64) -> (f64, f64),
    /// Whether P has a unit.
    has_amplitude: bool,
}

/// Readings of a row of k and P.
pub(super) const OF_POWER: &[Reading] = &[
    Reading {
        text: "k in 1/Mpc and P in Mpc³ instead of h/Mpc and (Mpc/h)³",
        convert: |k, p, h, _| (k / h, p * h.powi(3)),
        has_amplitude: true,
    },
    Reading {
        text: "units that were converted twice to h/Mpc and (Mpc/h)³",
        convert: |k, p, h, _| (k * h, p / h.powi(3)),
        has_amplitude: true,
    },
    Reading { text: "k in 1/Mpc instead of h/Mpc", convert: |k, p, h, _| (k / h, p), has_amplitude: true },
    Reading { text: "P in Mpc³ instead of (Mpc/h)³", convert: |k, p, h, _| (k, p * h.powi(3)), has_amplitude: true },
    Reading {
        text: "Δ² = k³P/(2π²) instead of P",
        convert: |k, p, _, _| (k, 2.0 * PI * PI * p / k.powi(3)),
        has_amplitude: true,
    },
    Reading {
        text: "Δ² = k³P/(2π²) instead of P, with k in 1/Mpc instead of h/Mpc",
        convert: |k, p, h, _| (k / h, 2.0 * PI * PI * p / (k / h).powi(3)),
        has_amplitude: true,
    },
    Reading { text: "k³P instead of P", convert: |k, p, _, _| (k, p / k.powi(3)), has_amplitude: true },
    Reading { text: "P/(2π)³ instead of P", convert: |k, p, _, _| (k, p * (2.0 * PI).powi(3)), has_amplitude: true },
    Reading {
        text: "the transfer function T instead of P",
        convert: |k, t, _, n_s| (k, k.powf(n_s) * t * t),
        has_amplitude: false,
    },
];

/// Readings of a row of k and Δ/k², of which k^n_s T² is made.
pub(super) const OF_TRANSFER: &[Reading] = &[
    Reading { text: "k in 1/Mpc instead of h/Mpc", convert: |k, p, h, _| (k / h, p), has_amplitude: false },
    Reading {
        text: "Δ instead of Δ/k² (CLASS's own format, without its header)",
        convert: |k, p, _, _| (k, p / k.powi(4)),
        has_amplitude: false,
    },
    Reading {
        text: "Δ instead of Δ/k², with k in 1/Mpc instead of h/Mpc",
        convert: |k, p, h, _| (k / h, p / k.powi(4)),
        has_amplitude: false,
    },
];

/// How far σ8 of a table may be from the recipe's.
const SIGMA8: f64 = 0.02;

/// Scatter of ln P about a spectrum of the recipe's cosmology, of any amplitude, that a table of it may have: that of Eisenstein &
/// Hu about CAMB is 0.01, that of k read in units wrong by h = 0.7 is 0.1 to 0.4.
const SCATTER: f64 = 0.08;

/// Scatter that no spectrum of matter has.
const ABSURD: f64 = 0.5;

/// Wave numbers over which shapes are compared, in h/Mpc.
const COMPARED: (f64, f64) = (0.005, 5.0);

/// A table read in one way.
struct Appearance {
    sigma8: f64,
    scatter: f64,
}

/// A remark on a spectrum that is probably another than it is taken for.
///
/// # Errors
/// The reason why it cannot be a spectrum, where another reading of the table is one.
pub(super) fn examine(
    points: &[(f64, f64)],
    readings: &[Reading],
    cosmology: &Cosmology,
) -> Result<Option<String>, String> {
    // fits without baryons' suppression, as of Bardeen et al. 1986, are used as tables too
    let expected = [cosmology.omega_b, 0.0].map(|omega_b| LinearPower::estimate(&Cosmology { omega_b, ..*cosmology }));
    let [with_baryons, without] = expected;
    let expected = [with_baryons.map_err(|error| error.to_string())?, without.map_err(|error| error.to_string())?];
    let has_amplitude = readings.iter().any(|reading| reading.has_amplitude);
    let fits = |sigma8: f64| (sigma8 / cosmology.sigma8 - 1.0).abs() <= SIGMA8;
    let stands = Appearance::of(points.to_vec(), &expected, cosmology.n_s);
    let has_shape = stands.scatter < SCATTER;
    if has_shape && (!has_amplitude || fits(stands.sigma8)) {
        return Ok(None);
    }
    let read = |reading: &Reading| {
        let convert = |&(k, p): &(f64, f64)| (reading.convert)(k, p, cosmology.h, cosmology.n_s);
        Appearance::of(points.iter().map(convert).collect(), &expected, cosmology.n_s)
    };
    // by the amplitude, then by the shape
    let misfit = |reading: &Reading, read: &Appearance| (reading.has_amplitude && !fits(read.sigma8), read.scatter);
    let explains = |(reading, read): &(&Reading, Appearance)| match has_shape {
        true => read.scatter < SCATTER && reading.has_amplitude && fits(read.sigma8),
        false => {
            let by_amplitude = reading.has_amplitude && fits(read.sigma8) && !fits(stands.sigma8);
            read.scatter < 0.5 * stands.scatter || by_amplitude && read.scatter < 1.1 * stands.scatter
        }
    };
    let best =
        readings.iter().map(|reading| (reading, read(reading))).filter(explains).min_by(|(x, x_read), (y, y_read)| {
            let (x, y) = (misfit(x, x_read), misfit(y, y_read));
            x.0.cmp(&y.0).then(x.1.total_cmp(&y.1))
        });

    let sigma8 = || format!("σ8 of the table is {:.3}, that of the recipe {}", stands.sigma8, cosmology.sigma8);
    let shape = |read: &Appearance| format!("{:.0}% (rms) off that of Eisenstein & Hu", 100.0 * read.scatter);
    let found = match has_amplitude {
        true => format!("{}; its shape is {}", sigma8(), shape(&stands)),
        false => format!("the shape of the table is {}", shape(&stands)),
    };
    let Some((reading, read)) = best else {
        let epoch = if has_shape { epoch_of(stands.sigma8, cosmology) } else { None };
        let why = epoch.map_or("a table of another cosmology?".into(), |z| format!("a table at z = {z:.3}?"));
        return Ok(Some(format!("{found}: {why} {AMPLITUDE}")));
    };
    let sigma8 = if reading.has_amplitude { format!("σ8 is {:.3} and ", read.sigma8) } else { String::new() };
    let message =
        format!("{found}; is it {}? Then {sigma8}the shape is {}: {HEADER}. {AMPLITUDE}", reading.text, shape(&read));
    if stands.scatter > ABSURD && read.scatter < SCATTER { Err(message) } else { Ok(Some(message)) }
}

/// The remedy for a table in other units.
const HEADER: &str =
    "state the units in a header line (# k [1/Mpc] P [Mpc^3], or # k [h/Mpc] Delta^2), or convert the table";

const AMPLITUDE: &str = "(Initial conditions always have the amplitude of the recipe's σ8.)";

impl Appearance {
    fn of(points: Vec<(f64, f64)>, expected: &[LinearPower], n_s: f64) -> Self {
        let usable = points.iter().all(|(k, p)| k.is_finite() && *p > 0.0 && p.is_finite());
        if !usable {
            return Self { sigma8: f64::NAN, scatter: f64::INFINITY };
        }
        let power = LinearPower::of_table(LogSpline::new(&points), n_s);
        const POINTS: usize = 100;
        let step = (COMPARED.1 / COMPARED.0).ln() / POINTS as f64;
        let (from, to) = power.range();
        let k = (0..=POINTS).map(|n| COMPARED.0 * (step * n as f64).exp()).filter(|k| (from..=to).contains(k));
        let k: Vec<f64> = k.collect();
        let scatter = |expected: &LinearPower| {
            let off: Vec<f64> = k.iter().map(|&k| (power.at(k) / expected.at(k)).ln()).collect();
            let mean = off.iter().sum::<f64>() / off.len() as f64;
            (off.iter().map(|off| (off - mean).powi(2)).sum::<f64>() / off.len() as f64).sqrt()
        };
        // `min` skips the NaN of no points
        let scatter = expected.iter().map(scatter).fold(f64::INFINITY, f64::min);
        Self { sigma8: power.sigma8(), scatter }
    }
}

/// The redshift at which linear theory has this σ8, if one before today does.
fn epoch_of(sigma8: f64, cosmology: &Cosmology) -> Option<f64> {
    let (mut early, mut late) = (1e-4_f64, 1.0_f64);
    if !(cosmology.sigma8_at(early)..cosmology.sigma8_at(late)).contains(&sigma8) {
        return None;
    }
    for _ in 0..60 {
        let middle = (early * late).sqrt();
        if cosmology.sigma8_at(middle) < sigma8 { early = middle } else { late = middle }
    }
    Some(1.0 / early - 1.0)
}
