//! Verdicts on a species: amplitude of its density contrast, and its velocity.

use super::causes::{Cause, Convention, explained, of_amplitudes, of_displacements, of_velocities};
use super::fields::{Grid, SpeciesModes};
use super::modes::{Amplitude, Motion};
use super::{Examination, Finding, Subject, Verdict, linear_displacement, shown};
use crate::format::LoadFormat;

/// Ratio of amplitudes without a remark; more where the modes are few.
const AMPLITUDE: f64 = 1.15;

/// Standard deviations that an amplitude may be off.
const SCATTER: f64 = 5.0;

/// Ratio of amplitudes, beyond which a known mistake is refused.
const GROSS_AMPLITUDE: f64 = 1.8;

/// Ratio of amplitudes of a random field that is refused without a known mistake.
const IMPOSSIBLE_AMPLITUDE: f64 = 3.0;

/// Share of modes with power, below which a field is not a Gaussian one but waves.
const PARTICIPATION: f64 = 0.15;

/// Tilt of P/P_linear, beyond which a spectrum is not linear theory's.
const TILT: f64 = 1.0;

/// Rms of the linear density contrast of compared modes, beyond which its amplitude is no longer linear.
const LINEAR: f64 = 0.5;

/// Rms density contrast beyond which velocities are no longer those of linear theory to some percent.
const WEAKLY_LINEAR: f64 = 0.15;

/// Smallest ratio of amplitudes without a remark of gas beside dark matter, which it follows only after decoupling.
const AMPLITUDE_OF_GAS: f64 = 0.4;

/// Ratio of velocities without a remark: of the matter, and of the gas beside dark matter, in whose potential it falls.
const VELOCITY: f64 = 1.08;
const VELOCITY_OF_GAS: f64 = 1.6;

/// Ratio of velocities of particles with noise without a remark, and of components to each other.
const VELOCITY_OF_NOISE: f64 = 1.25;

/// Ratio of velocities that is refused without a known mistake.
const IMPOSSIBLE_VELOCITY: f64 = 2.0;

/// Ratio of velocities that follow no density contrast, which is refused: within halos today it is 1 to 3.
const IMPOSSIBLE_MOTION: f64 = 10.0;

/// Correlation of velocities with the growing mode's that is a growing mode's.
const PARALLEL: f64 = 0.9;

/// Correlation below which they have nothing to do with the density.
const UNRELATED: f64 = 0.5;

/// Correlation above which places are compared.
const COHERENT: f64 = 0.8;

/// Scale of causes in ratios of velocities: modes of one field have one slope.
const NEAR: f64 = 0.04;

/// Scale of causes in ratios of rms velocities to linear theory.
const NEAR_RMS: f64 = 0.35;

/// Displacements of more cells than this, rms along an axis, are compared with linear theory.
const MANY_CELLS: f64 = 3.0;

/// Criteria of a species' verdicts.
pub(super) struct Judge<'a> {
    pub name: &'static str,
    pub subject: &'a Subject<'a>,
    pub grid: &'a Grid,
    /// a²E f.
    pub rate: f64,
    /// D(a)/D(1).
    pub growth: f64,
    pub linear: &'a dyn Fn(f64) -> f64,
    /// Rms density contrast of compared modes in linear theory.
    pub linear_rms: f64,
    pub is_set: bool,
    /// Particles have several masses.
    pub has_several_masses: bool,
    pub is_alone: bool,
    pub mesh_cells: [usize; 3],
}

/// A factor between 1/x and x.
fn within(ratio: f64, x: f64) -> bool {
    ratio > 0.0 && ratio.ln().abs() <= x.ln()
}

impl Judge<'_> {
    pub(super) fn species(&self, examination: &mut Examination, modes: &SpeciesModes) {
        let mut amplitude = self.grid.amplitude(&modes.delta, self.linear);
        let motion = self.grid.motion(modes, self.rate, self.linear);
        if !(amplitude.pairs >= 10.0 && amplitude.ratio.is_finite() && motion.amplitude.is_finite()) {
            return;
        }
        // particles scattered about their lattice, or of lattices side by side, have noise that their velocities lack
        let significance = motion.correlation.abs() * (2.0 * amplitude.pairs).sqrt();
        let is_noisy = self.has_several_masses || self.is_set && motion.correlation.abs() < 0.97;
        if is_noisy && significance > 5.0 {
            amplitude.ratio *= motion.correlation.abs();
        }
        let is_still = amplitude.ratio < 1e-7;
        let slope = match is_noisy && significance > 5.0 {
            true => motion.slope / motion.correlation.powi(2),
            false => motion.slope,
        };
        let is_compared = !is_still
            && self.is_linear()
            && amplitude.participation > PARTICIPATION
            && !(is_noisy && significance <= 5.0);
        if let Some(sentence) =
            self.other_box(modes, &amplitude, slope).filter(|_| is_compared && motion.correlation > PARALLEL)
        {
            examination.add("box of density and velocity", "", "").judge(Verdict::Wrong, sentence);
            return;
        }
        let (found, is_explained) = self.amplitude(examination, &amplitude, is_compared, (slope, motion.displacement));
        if motion.amplitude == 0.0 {
            let finding = examination.add(format!("velocity of {} over the growing mode's", self.name), "0", "1");
            if is_compared {
                let sentence = format!(
                    "{} is at rest, and its growing mode is not: write its velocities, unless a cold start is meant",
                    self.name
                );
                finding.judge(Verdict::Suspicious, sentence);
            }
            return;
        }
        if is_still {
            return;
        }
        if is_noisy && significance <= 5.0 {
            // noise would add to the power
            let is_field = within(amplitude.ratio, AMPLITUDE) && amplitude.tilt.abs() < TILT;
            if is_field && self.is_linear() && amplitude.participation > PARTICIPATION {
                self.correlation(examination, &motion).judge(Verdict::Wrong, self.unrelated());
            }
            self.rms(examination, &motion);
            return;
        }
        self.direction(examination, &motion, is_compared && found != Verdict::Wrong, is_noisy);
        if !is_explained {
            self.speed(examination, &motion, slope, is_noisy);
        }
    }

    fn correlation<'e>(&self, examination: &'e mut Examination, motion: &Motion) -> &'e mut Finding {
        let quantity = format!("correlation of θ = −∇·v/(aHf) and δ of {}", self.name);
        examination.add(quantity, shown(motion.correlation), "1")
    }

    fn unrelated(&self) -> String {
        format!(
            "velocities of {} are not those of its density: is either of another realisation, or are cells in another order?",
            self.name
        )
    }

    fn is_linear(&self) -> bool {
        self.linear_rms < LINEAR
    }

    /// The density contrast beside the linear spectrum: the verdict, and whether its cause is that of velocities too.
    fn amplitude(
        &self,
        examination: &mut Examination,
        found: &Amplitude,
        is_compared: bool,
        (slope, displacement): (f64, f64),
    ) -> (Verdict, bool) {
        let name = self.name;
        let finding =
            examination.add(format!("√(P/P_linear) of {name}"), shown(found.ratio), if is_compared { "1" } else { "" });
        let allowed = AMPLITUDE.max((SCATTER * 0.5 / found.pairs.sqrt()).exp());
        if !is_compared {
            let spacing = self.grid.lengths[0] / self.mesh_cells[0] as f64;
            let expected = linear_displacement(self.subject, self.mesh_cells);
            if name != "gas"
                && !self.is_set
                && displacement > MANY_CELLS * spacing
                && displacement > IMPOSSIBLE_AMPLITUDE * expected
            {
                finding.judge(
                    Verdict::Suspicious,
                    format!(
                        "displacements are {displacement:.4} Mpc/h (rms along an axis) or {:.1} cells, {:.1} times those of linear theory \
                         ({expected:.4} Mpc/h with the recipe's sigma8): are they in Mpc/h?",
                        displacement / spacing,
                        displacement / expected
                    ),
                );
            }
            return (finding.verdict, false);
        }
        let mut is_explained = false;
        if found.tilt.abs() > TILT && found.pairs > 50.0 {
            finding.judge(
                Verdict::Suspicious,
                format!(
                    "the spectrum of {name} is not linear theory's: P/P_linear goes as k^{:.2}{}",
                    found.tilt,
                    if found.tilt > 1.5 { ", as white noise does" } else { "" }
                ),
            );
        } else if self.subject.amplitude_is_known
            && !within(found.ratio, allowed)
            && !(self.is_second_gas() && (AMPLITUDE_OF_GAS..1.0).contains(&found.ratio))
        {
            is_explained = self.amplitude_cause(finding, found, slope);
        }
        let verdict = finding.verdict;
        if self.grid.averaged == 1 && !self.is_set && found.outermost.is_finite() {
            let finding =
                examination.add(format!("P/P_linear of {name} at ¾ to 1 of k_Nyquist"), shown(found.outermost), "1");
            if found.outermost > 4.0 * found.ratio.powi(2) && found.tilt.abs() <= TILT {
                let sentence = format!(
                    "{name} has {:.1} times the power of linear theory near the Nyquist wave number, {:.1} times below: noise of few digits or \
                     of interpolation?",
                    found.outermost,
                    found.ratio.powi(2)
                );
                finding.judge(Verdict::Suspicious, sentence);
            }
        }
        (verdict, is_explained)
    }

    /// Judges the amplitude; true if its cause explains the velocities too.
    fn amplitude_cause(&self, finding: &mut Finding, found: &Amplitude, slope: f64) -> bool {
        let (name, ratio) = (self.name, found.ratio);
        let near = 0.05f64.max(SCATTER * 0.5 / found.pairs.sqrt()).min(0.15);
        let text = format!(
            "the density contrast of {name} is {} times that of linear theory (rms of {:.0} modes, sigma8 = {})",
            shown(ratio),
            2.0 * found.pairs,
            self.subject.cosmology.sigma8
        );
        let spacing = self.grid.lengths[0] / self.mesh_cells[0] as f64;
        let displaced = || explained(ratio, &of_displacements(self.subject, spacing), near);
        let scaled = || explained(ratio, &of_amplitudes(self.subject, self.growth), near);
        let velocity_is_right = slope > 0.0 && (ratio * slope).ln().abs() < near + NEAR;
        let epoch = || self.other_epoch(ratio, slope, near);
        let (cause, is_explained) = if velocity_is_right {
            let in_units = if name == "gas" { None } else { displaced() };
            let velocities_right = || scaled().map(|cause| format!("{cause}; velocities are right"));
            (in_units.or_else(epoch).or_else(velocities_right), true)
        } else {
            let of_epoch = epoch();
            let is_explained = of_epoch.is_some();
            (of_epoch.or_else(scaled), is_explained)
        };
        let sigma8 = self.subject.cosmology.sigma8 * ratio;
        let possible = within(ratio, IMPOSSIBLE_VELOCITY) && !is_explained;
        let sigma8 = if possible { format!(", or sigma8 = {sigma8:.3}") } else { String::new() };
        let is_gross = !within(ratio, if cause.is_some() { GROSS_AMPLITUDE } else { IMPOSSIBLE_AMPLITUDE });
        let verdict = if is_gross { Verdict::Wrong } else { Verdict::Suspicious };
        let cause_is_known = cause.is_some();
        let cause = cause.unwrap_or_else(|| "another redshift".into());
        finding.judge(verdict, format!("{text}: {cause}{sigma8}"));
        is_explained && cause_is_known
    }

    /// Gas beside dark matter.
    fn is_second_gas(&self) -> bool {
        self.name == "gas" && !self.is_alone
    }

    fn has_header(&self) -> bool {
        !matches!(self.subject.format, LoadFormat::UmIc { .. })
    }

    /// Another epoch, whose growth and velocities are both found.
    fn other_epoch(&self, ratio: f64, slope: f64, near: f64) -> Option<String> {
        let Subject { cosmology, a, format, .. } = *self.subject;
        if slope <= 0.0 {
            return None;
        }
        let power = 1.0 - Convention::of(format).power;
        let speed =
            |other: f64| cosmology.hubble_flow(other) * cosmology.growth(other).1 / self.rate * (a / other).powf(power);
        // velocities have less scatter than the amplitude, and go nearly as √a in 100 km/s/a
        let mut other = a;
        for _ in 0..4 {
            other *= (slope / speed(other)).powf(1.0 / (0.5 - power));
            if !(1e-4..=1.0).contains(&other) {
                return None;
            }
        }
        let expected = cosmology.growth(other).0 / cosmology.growth(a).0;
        let is_it = (ratio / expected).ln().abs() < near + NEAR && (other / a).ln().abs() > near;
        is_it.then(|| {
            format!("density and velocities are those of z = {:.0} in place of {:.2}", 1.0 / other - 1.0, 1.0 / a - 1.0)
        })
    }

    /// Another length of the box, with which amplitude and velocities fit, for files that state none.
    fn other_box(&self, modes: &SpeciesModes, found: &Amplitude, slope: f64) -> Option<String> {
        if self.has_header() || slope <= 0.0 {
            return None;
        }
        let h = self.subject.cosmology.h;
        let causes =
            [(1.0 / h, "h"), (h, "1/h"), (1e3, "10⁻³"), (1e-3, "10³"), (1e3 / h, "h/10³"), (1e-3 * h, "10³/h")];
        let (factor, name) = causes.into_iter().find(|(factor, _)| (slope / factor).ln().abs() < NEAR)?;
        let other = Grid { lengths: self.grid.lengths.map(|length| length * factor), ..*self.grid };
        let amplitude = other.amplitude(&modes.delta, self.linear).ratio;
        let is_better = amplitude.ln().abs() < found.ratio.ln().abs() && within(amplitude, AMPLITUDE);
        let length = self.subject.box_mpc_h * factor;
        is_better.then(|| {
            format!("density and velocities of {} are those of a box of {length} Mpc/h: is box_mpc_h = {} a factor {name} off?",
                self.name, self.subject.box_mpc_h)
        })
    }

    /// Directions, axes and places of velocities.
    fn direction(&self, examination: &mut Examination, motion: &Motion, is_compared: bool, is_noisy: bool) {
        let name = self.name;
        let finding = self.correlation(examination, motion);
        let (axes, signs) = orientation(&motion.directions);
        let least = PARALLEL.min(if is_noisy { 0.7 * motion.correlation.abs().max(0.3) } else { PARALLEL });
        let is_clear = (0..3).all(|a| motion.directions[a][axes[a]].abs() > least);
        let is_straight = axes == [0, 1, 2];
        if is_clear && !(is_straight && signs == [1.0; 3]) {
            let component = |a: usize| format!("{}{}", if signs[a] < 0.0 { "-" } else { "" }, ["x", "y", "z"][axes[a]]);
            let order = [0, 1, 2].map(component).join(", ");
            finding.judge(
                Verdict::Wrong,
                if is_straight && signs == [-1.0; 3] {
                    format!("velocities of {name} are opposite to the growing mode's: change their sign, or that of displacements")
                } else if is_straight {
                    format!("components of the velocity of {name} have other signs than the growing mode's: [{order}] is right")
                } else {
                    format!("components of the velocity of {name} are in another order than the axes of the density: [{order}] is right")
                },
            );
            return;
        }
        let dead: Vec<&str> =
            (0..3).filter(|&a| motion.directions[a][a].abs() < 0.3).map(|a| ["x", "y", "z"][a]).collect();
        if (1..3).contains(&dead.len()) && (0..3).any(|a| motion.directions[a][a] > PARALLEL) {
            let sentence = format!(
                "the velocity of {name} along {} is not the growing mode's, while other components are: is the right field read?",
                dead.join(" and ")
            );
            finding.judge(Verdict::Wrong, sentence);
            return;
        }
        if let Some((order, correlation)) =
            motion.transposed.filter(|(_, r)| *r > PARALLEL && motion.correlation < UNRELATED)
        {
            let names = order.map(|a| ["x", "y", "z"][a]).join(", ");
            let sentence = format!(
                "axes of the density of {name} are in another order than those of the velocities: with [{names}] in place of [x, y, z] \
                 they correlate ({correlation:.3})"
            );
            finding.judge(Verdict::Wrong, sentence);
            return;
        }
        if is_compared && motion.correlation.abs() < UNRELATED && !is_noisy {
            finding.judge(Verdict::Wrong, self.unrelated());
            return;
        }
        let shift = motion.shift.map(|d| d * self.grid.averaged as f64);
        if motion.correlation > COHERENT && !self.is_set {
            let place = super::shown_shift(shift);
            let quantity = format!("place of velocities less that of density of {name}, cells");
            let finding = examination.add(quantity, place.clone(), "0");
            if shift.iter().any(|d| d.abs() > super::SHIFT) {
                let sentence = format!(
                    "velocities of {name} are displaced from its density by [{place}] cells along x, y, z: half a cell is a staggered mesh, \
                     velocities at faces or corners"
                );
                finding.judge(Verdict::Wrong, sentence);
            }
        }
    }

    /// The slope of velocities.
    fn speed(&self, examination: &mut Examination, motion: &Motion, slope: f64, is_noisy: bool) {
        let (name, rate) = (self.name, self.rate);
        let (axes, signs) = orientation(&motion.directions);
        let is_turned = axes != [0, 1, 2] || signs.iter().any(|sign| *sign < 0.0);
        // of particles among halos the momentum follows no growing mode
        let is_noise = is_noisy && motion.correlation > 0.0 && self.is_linear();
        let is_growing = motion.correlation > PARALLEL || is_noise;
        let ratio = if is_growing && !is_turned { slope } else { motion.speed };
        let finding = examination.add(format!("velocity of {name} over the growing mode's"), shown(ratio), "1");
        let growing = format!("those of the growing mode, f a²H/H0 times displacements with f a²H/H0 = {rate:.4}");
        let text = format!("velocities of {name} are {} times {growing}", shown(ratio));
        let cause = |near: f64| explained(ratio, &of_velocities(self.subject, rate), near);
        if !is_growing || is_turned {
            if ratio > IMPOSSIBLE_MOTION {
                let why = cause(NEAR_RMS).unwrap_or_else(|| "check their unit".into());
                finding.judge(Verdict::Wrong, format!("{text}: {why}"));
            }
            return;
        }
        let slopes = motion.slopes;
        let [least, most] = slopes.iter().fold([f64::INFINITY, 0.0f64], |[l, m], s| [l.min(*s), m.max(*s)]);
        if !is_noisy && least > 0.0 && most / least > VELOCITY_OF_NOISE.powi(2) {
            let [x, y, z] = slopes.map(shown);
            let sentence = format!(
                "components of the velocity of {name} are [{x}, {y}, {z}] times the growing mode's: have all one unit?"
            );
            finding.judge(Verdict::Wrong, sentence);
            return;
        }
        let matter = !self.is_second_gas();
        let allowed = match (matter, is_noisy) {
            _ if self.linear_rms > WEAKLY_LINEAR => IMPOSSIBLE_VELOCITY,
            (false, _) => VELOCITY_OF_GAS,
            (true, true) => VELOCITY_OF_NOISE,
            (true, false) => VELOCITY,
        };
        if within(slope, allowed) {
            return;
        }
        let share = if self.is_second_gas() { self.subject.cosmology.baryon_fraction() } else { 1.0 };
        let near = if matter { NEAR } else { 2.0 * NEAR };
        let mut causes = Vec::new();
        if share < 1.0 {
            let text = "momenta look like velocities; multiply them by the density".into();
            causes.push(Cause { ratio: 1.0 / share, text, mistakes: 1 });
        }
        causes.extend(of_velocities(self.subject, rate));
        let known = explained(slope, &causes, near);
        let is_possible = within(slope, IMPOSSIBLE_VELOCITY);
        let verdict = if is_possible { Verdict::Suspicious } else { Verdict::Wrong };
        match known {
            Some(why) => finding.judge(verdict, format!("{text}: {why}")),
            None if is_possible => {
                let omega_m = self.subject.cosmology.omega_m * slope * slope;
                let sentence = format!(
                    "{text}: omega_m = {omega_m:.4} in place of {}, or another redshift?",
                    self.subject.cosmology.omega_m
                );
                finding.judge(verdict, sentence);
            }
            None => finding.judge(verdict, format!("{text}: check their unit")),
        }
    }

    /// Velocities of particles whose density is noise, by their rms.
    fn rms(&self, examination: &mut Examination, motion: &Motion) {
        let ratio = motion.amplitude;
        let finding =
            examination.add(format!("velocity of {} over that of linear theory", self.name), shown(ratio), "1");
        if within(ratio, 3.0) {
            return;
        }
        let why = explained(ratio, &of_velocities(self.subject, self.rate), NEAR_RMS)
            .unwrap_or_else(|| "check their unit".into());
        let verdict = if ratio > IMPOSSIBLE_MOTION { Verdict::Wrong } else { Verdict::Suspicious };
        let text = format!("velocities of {} are {} times those of linear theory", self.name, shown(ratio));
        finding.judge(verdict, format!("{text}: {why}"));
    }
}

/// For each axis the component that follows the growing mode's along it, and its sign.
fn orientation(directions: &[[f64; 3]; 3]) -> ([usize; 3], [f64; 3]) {
    let axes = directions.map(|along| (0..3).max_by(|x, y| along[*x].abs().total_cmp(&along[*y].abs())).unwrap_or(0));
    let is_order = (0..3).all(|component| axes.contains(&component));
    let axes = if is_order { axes } else { [0, 1, 2] };
    (axes, std::array::from_fn(|a| directions[a][axes[a]].signum()))
}
