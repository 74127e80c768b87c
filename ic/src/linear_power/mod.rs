//! The linear matter power spectrum today, normalised to σ8, and what gas and dark matter differ from it.

pub mod eisenstein_hu;
mod label;
mod plausibility;
pub mod species_transfer;
mod spectrum_file;
pub mod spline;
mod table;
mod tail;
pub mod with_neutrinos;

use crate::error::IcError;
use comove_sim::Cosmology;
use eisenstein_hu::EisensteinHu;
use serde::{Deserialize, Serialize};
use spectrum_file::{read_power, read_transfer};
use spline::LogSpline;
use std::f64::consts::PI;
use std::path::{Path, PathBuf};
use tail::Tail;

/// Where the shape of the spectrum comes from. Its amplitude is always the cosmology's σ8.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PowerSource {
    /// The fitting formula of Eisenstein & Hu 1998 with baryon wiggles.
    #[default]
    EisensteinHu,
    /// A transfer table at z = 0: CAMB's of 7 or 13 columns, k in h/Mpc and in column 7 the total matter transfer Δ/k², or one of
    /// CLASS in its own format or CAMB's. Names and units of a header decide.
    CambTransfer(PathBuf),
    /// A matter power table at z = 0: k in h/Mpc and P in (Mpc/h)³, or in the units that a header states; further columns are
    /// ignored.
    CambPower(PathBuf),
}

impl PowerSource {
    /// Its name in recipes.
    pub fn name(&self) -> &'static str {
        match self {
            Self::EisensteinHu => "eisenstein_hu",
            Self::CambTransfer(_) => "camb_transfer",
            Self::CambPower(_) => "camb_power",
        }
    }

    /// The file that it reads, if it does.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::EisensteinHu => None,
            Self::CambTransfer(path) | Self::CambPower(path) => Some(path),
        }
    }
}

/// P(k) of matter today in linear theory.
#[derive(Clone, Debug)]
pub struct LinearPower {
    shape: Shape,
    amplitude: f64,
    remarks: Vec<String>,
}

#[derive(Clone, Debug)]
enum Shape {
    EisensteinHu { transfer: EisensteinHu, h: f64, n_s: f64 },
    Table { spline: LogSpline, tail: Tail },
}

impl Shape {
    /// P(k) up to a factor.
    fn at(&self, k: f64) -> f64 {
        match self {
            Shape::EisensteinHu { transfer, h, n_s } => k.powf(*n_s) * transfer.at(k * h).powi(2),
            // a table's end is met but for round-off
            Shape::Table { tail, .. } if k > tail.from() * (1.0 + 1e-12) => tail.at(k),
            Shape::Table { spline, .. } => spline.at(k),
        }
    }
}

/// Range of k in h/Mpc over which σ8 is integrated where no table limits it: the rest is below 10⁻⁷ of it.
const SIGMA8_RANGE: (f64, f64) = (1e-6, 1e2);

/// kR up to which σ(R) is integrated: the variance beyond is below 10⁻⁷ of it.
const WELL_INSIDE: f64 = 300.0;

impl LinearPower {
    /// The spectrum of all matter in a cosmology, its shape from `source`.
    ///
    /// # Errors
    /// [`IcError::Sim`] for a cosmology out of range; [`IcError::Parameter`] for the fit beside massive neutrinos, which it lacks;
    /// [`IcError::Io`], [`IcError::TableLine`] and [`IcError::Content`] for a table that cannot be used.
    pub fn new(source: &PowerSource, cosmology: &Cosmology) -> Result<Self, IcError> {
        cosmology.check()?;
        let table = match source {
            PowerSource::EisensteinHu if cosmology.has_neutrinos() => return Err(fit_without_neutrinos(cosmology)),
            PowerSource::EisensteinHu => return Self::estimate(cosmology),
            PowerSource::CambTransfer(path) => read_transfer(path, cosmology)?,
            PowerSource::CambPower(path) => read_power(path, cosmology)?,
        };
        let shape = Self { remarks: table.remarks, ..Self::of_table(table.spline, cosmology.n_s) };
        Ok(shape.normalised(cosmology))
    }

    /// The fit of Eisenstein & Hu; beside massive neutrinos, which it lacks, an estimate of the spectrum.
    ///
    /// # Errors
    /// [`IcError::Sim`] for a cosmology out of range.
    pub fn estimate(cosmology: &Cosmology) -> Result<Self, IcError> {
        cosmology.check()?;
        let transfer = EisensteinHu::new(cosmology);
        let shape = Shape::EisensteinHu { transfer, h: cosmology.h, n_s: cosmology.n_s };
        Ok(Self { shape, amplitude: 1.0, remarks: Vec::new() }.normalised(cosmology))
    }

    /// The spectrum with the cosmology's σ8; the amplitude was 1.
    fn normalised(self, cosmology: &Cosmology) -> Self {
        Self { amplitude: (cosmology.sigma8 / self.sigma8()).powi(2), ..self }
    }

    /// A tabulated spectrum with its own amplitude.
    fn of_table(spline: LogSpline, n_s: f64) -> Self {
        let tail = Tail::of(&spline, n_s);
        Self { shape: Shape::Table { spline, tail }, amplitude: 1.0, remarks: Vec::new() }
    }

    /// P(k) today in (Mpc/h)³, k in h/Mpc; beyond the upper end of [`LinearPower::range`] extrapolated.
    pub fn at(&self, k: f64) -> f64 {
        self.amplitude * self.shape.at(k)
    }

    /// The k in h/Mpc that the spectrum is known for.
    pub fn range(&self) -> (f64, f64) {
        match &self.shape {
            Shape::EisensteinHu { .. } => (0.0, f64::INFINITY),
            Shape::Table { spline, .. } => spline.range(),
        }
    }

    /// α(k) of the linear density δ = α Φ at a, k in h/Mpc: Φ is Bardeen's potential in matter domination, positive where matter
    /// gathers, and α = 2/3 (ck/H₀)² T(k) D(a)/Ω_m with T = 1 for k → 0 and D = a deep in matter domination. The first row of a
    /// table has the T of Eisenstein & Hu.
    pub fn density_per_potential<'s>(&'s self, cosmology: &Cosmology, a: f64) -> impl Fn(f64) -> f64 + Sync + use<'s> {
        const HUBBLE_LENGTH: f64 = 2997.92458; // c/H₀ in Mpc/h
        let Cosmology { h, n_s, omega_m, .. } = *cosmology;
        let fit = EisensteinHu::new(cosmology);
        // P = `primordial` kⁿ T²
        let primordial = match &self.shape {
            Shape::EisensteinHu { .. } => 1.0,
            Shape::Table { spline, .. } => {
                let k = spline.range().0;
                self.shape.at(k) / (k.powf(n_s) * fit.at(k * h).powi(2))
            }
        };
        let growth = cosmology.growth(a).0;
        move |k| {
            let transfer = (self.shape.at(k) / (primordial * k.powf(n_s))).sqrt();
            2.0 / 3.0 * (HUBBLE_LENGTH * k).powi(2) * transfer * growth / omega_m
        }
    }

    /// Remarks on a table: units that were converted, an amplitude or a shape that another reading of it explains.
    pub fn remarks(&self) -> &[String] {
        &self.remarks
    }

    /// RMS of the linear density today in spheres of `radius` Mpc/h. `None` where a table does not hold it: most of the
    /// variance, or a percent of it if the table's end has no slope of cold dark matter, comes from larger k.
    pub fn sigma(&self, radius: f64) -> Option<f64> {
        let (from, to) = self.range();
        let (from, all) = (from.max(SIGMA8_RANGE.0), SIGMA8_RANGE.1.max(WELL_INSIDE / radius));
        let within = self.variance(radius, (from, all.min(to)));
        let beyond = if to < all { self.variance(radius, (to, all)) } else { 0.0 };
        let most = match &self.shape {
            Shape::Table { tail, .. } if !tail.is_of_cold_dark_matter() => 0.01,
            _ => 0.5,
        };
        (beyond <= most * (within + beyond)).then(|| (within + beyond).sqrt())
    }

    /// σ in spheres of 8 Mpc/h, within the range of a table.
    fn sigma8(&self) -> f64 {
        let (from, to) = self.range();
        self.variance(8.0, (from.max(SIGMA8_RANGE.0), to.min(SIGMA8_RANGE.1))).sqrt()
    }

    /// σ² = ∫ dlnk k³ P(k) W²(kR)/(2π²), W(x) = 3 (sin x − x cos x)/x³, by Simpson's rule in lnk.
    fn variance(&self, radius: f64, (from, to): (f64, f64)) -> f64 {
        const STEPS: usize = 8192;
        let (from, to) = (from.ln(), to.ln());
        let dx = (to - from) / STEPS as f64;
        let integral: f64 = (0..=STEPS)
            .map(|i| {
                let k = (from + dx * i as f64).exp();
                let weight = if i == 0 || i == STEPS { 1.0 } else { 2.0 + 2.0 * (i % 2) as f64 };
                weight * k.powi(3) * self.at(k) * top_hat(k * radius).powi(2)
            })
            .sum();
        integral * dx / 3.0 / (2.0 * PI * PI)
    }
}

/// Refusal of the fit beside massive neutrinos.
fn fit_without_neutrinos(cosmology: &Cosmology) -> IcError {
    let reason = format!("the fit has no massive neutrinos, and m_nu_ev is {}; use a table of CAMB", cosmology.m_nu_ev);
    IcError::Parameter { name: "power", value: PowerSource::EisensteinHu.name().into(), reason }
}

/// Fourier transform of a sphere: 3 (sin x − x cos x)/x³, by its series near 0.
fn top_hat(x: f64) -> f64 {
    if x < 1e-2 { 1.0 - x * x / 10.0 } else { 3.0 * (x.sin() - x * x.cos()) / x.powi(3) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(name: &str) -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("data").join(name)
    }

    fn cosmology() -> Cosmology {
        Cosmology::flat(0.7, 0.3, 0.045, 0.9, 1.0)
    }

    fn table(file: &str) -> Vec<(f64, f64)> {
        let text = std::fs::read_to_string(data(file)).unwrap();
        let number = |text: &str| text.parse::<f64>().unwrap();
        text.lines()
            .filter(|line| !line.starts_with('#'))
            .map(|line| line.split_whitespace().map(number).collect::<Vec<f64>>())
            .map(|row| (row[0], row[1]))
            .collect()
    }

    /// The transfer table gives CAMB's own spectrum back: the same numbers by two ways. Both are printed to 9 digits,
    /// and CAMB normalised to σ8 with its own quadrature (0.89999 by ours).
    #[test]
    fn camb_transfer_gives_camb_power() {
        let power = LinearPower::new(&PowerSource::CambTransfer(data("camb_transfer_z0.dat")), &cosmology()).unwrap();
        let worst =
            table("camb_matterpower_z0.dat").iter().map(|&(k, p)| (power.at(k) / p - 1.0).abs()).fold(0.0, f64::max);
        assert!(worst < 1e-4, "{worst:e}");
        let other = LinearPower::new(&PowerSource::CambPower(data("camb_matterpower_z0.dat")), &cosmology()).unwrap();
        for k in [0.011, 0.1234, 1.77, 33.3] {
            assert!((power.at(k) / other.at(k) - 1.0).abs() < 1e-5, "k = {k}");
        }
    }

    /// Eisenstein & Hu state that their transfer function keeps within a few percent of a Boltzmann code.
    #[test]
    fn the_fit_keeps_within_its_accuracy() {
        let power = LinearPower::new(&PowerSource::EisensteinHu, &cosmology()).unwrap();
        let worst = table("camb_matterpower_z0.dat")
            .iter()
            .filter(|(k, _)| (1e-3..30.0).contains(k))
            .map(|&(k, p)| (power.at(k) / p - 1.0).abs())
            .fold(0.0, f64::max);
        println!("worst deviation of P: {worst}");
        assert!(worst < 0.05, "{worst}");
    }

    /// σ8 = 0.9 and A_s = 2.27028·10⁻⁹ are of one universe in the table's header; Φ is three fifths of the curvature perturbation.
    /// The fit has some percent. In matter domination Φ stays.
    #[test]
    fn the_potential_has_the_primordial_amplitude() {
        let camb = PowerSource::CambPower(data("camb_matterpower_z0.dat"));
        for (source, within) in [(camb, 0.01), (PowerSource::EisensteinHu, 0.05)] {
            let power = LinearPower::new(&source, &cosmology()).unwrap();
            let [alpha, earlier] = [1.0, 0.01].map(|a| power.density_per_potential(&cosmology(), a));
            for k in [1e-3f64, 0.1, 5.0] {
                let amplitude = 25.0 / 9.0 * k.powi(3) * power.at(k) / alpha(k).powi(2) / (2.0 * PI * PI);
                assert!((amplitude / 2.27028e-9 - 1.0).abs() < within, "{source:?}: {amplitude:e} at k = {k}");
                assert!((earlier(k) / alpha(k) / cosmology().growth_factor(0.01) - 1.0).abs() < 1e-12);
            }
        }
    }

    /// An independent quadrature (midpoint in k³, not Simpson in lnk) gives σ8 back.
    #[test]
    fn sigma8_integrates_back() {
        let camb = PowerSource::CambPower(data("camb_matterpower_z0.dat"));
        for source in [PowerSource::EisensteinHu, camb] {
            let power = LinearPower::new(&source, &cosmology()).unwrap();
            let n = 400_000;
            let (from, to) = (1e-5f64.cbrt(), 20f64.cbrt());
            let du = (to - from) / f64::from(n);
            let variance: f64 = (0..n)
                .map(|i| {
                    let u = from + du * (f64::from(i) + 0.5);
                    let (k, x) = (u.powi(3), 8.0 * u.powi(3));
                    let window = if x < 1e-3 { 1.0 } else { 3.0 * (x.sin() / x - x.cos()) / (x * x) };
                    power.at(k) * window * window * k * k * 3.0 * u * u * du
                })
                .sum::<f64>()
                / (2.0 * PI * PI);
            assert!((variance.sqrt() - 0.9).abs() < 1e-5, "{source:?}: {}", variance.sqrt());
        }
    }

    /// Without baryons the fit is that of cold dark matter alone, monotonic in k beyond the peak and finite.
    #[test]
    fn no_baryons_no_wiggles() {
        let power = LinearPower::new(&PowerSource::EisensteinHu, &Cosmology::flat(0.7, 0.3, 0.0, 0.8, 0.96)).unwrap();
        let values: Vec<f64> = (0..200).map(|i| power.at(0.03 * 1.04f64.powi(i))).collect();
        assert!(values.windows(2).all(|pair| pair[1] < pair[0] && pair[1] > 0.0));
    }
}
