//! Factors that explain a ratio: mistakes in units, conventions and epochs.

use super::Subject;
use crate::format::LoadFormat;

/// A mistake and the ratio that it makes.
pub(super) struct Cause {
    pub ratio: f64,
    pub text: String,
    /// Mistakes that it takes: a unit and a power of a are two.
    pub mistakes: usize,
}

/// Convention of a format's velocities: a^`power` v_pec in units of `km_s`.
#[derive(Clone, Copy)]
pub(super) struct Convention {
    pub power: f64,
    km_s: f64,
    text: &'static str,
}

impl Convention {
    pub(super) fn of(format: LoadFormat) -> Self {
        match format {
            LoadFormat::Gadget => Self { power: -0.5, km_s: 1.0, text: "v_pec/√a in km/s" },
            LoadFormat::Enzo => Self { power: 0.0, km_s: 1.0, text: "v_pec in 122.475 km/s · L √(Ω_m (1 + z))" },
            LoadFormat::Grafic => Self { power: 0.0, km_s: 1.0, text: "v_pec in km/s" },
            LoadFormat::Monofonic | LoadFormat::Music => {
                Self { power: 0.0, km_s: 1.0, text: "v_pec in km/s over the box length in Mpc/h" }
            }
            LoadFormat::Swift => Self { power: 0.0, km_s: 1.0, text: "v_pec in the file's units" },
            LoadFormat::ComoveIc | LoadFormat::UmIc { .. } => {
                Self { power: 1.0, km_s: 100.0, text: "a v_pec/(100 km/s)" }
            }
        }
    }
}

/// The texts of the simplest causes of a ratio, if there are some.
pub(super) fn explained(ratio: f64, causes: &[Cause], tolerance: f64) -> Option<String> {
    let near = |cause: &&Cause| (ratio / cause.ratio).ln().abs() <= tolerance;
    let fewest = causes.iter().filter(near).map(|cause| cause.mistakes).min()?;
    let mut texts: Vec<&str> = Vec::new();
    for cause in causes.iter().filter(near).filter(|cause| cause.mistakes == fewest) {
        if !texts.contains(&cause.text.as_str()) {
            texts.push(&cause.text);
        }
    }
    Some(texts.join(", or "))
}

/// Causes of velocities that are a factor off.
pub(super) fn of_velocities(subject: &Subject<'_>, rate: f64) -> Vec<Cause> {
    let convention = Convention::of(subject.format);
    let (a, h) = (subject.a, subject.cosmology.h);
    let powers = [
        (1.0, "a v_pec"),
        (0.0, "v_pec"),
        (-0.5, "v_pec/√a, Gadget's convention"),
        (-1.0, "dx/dt = v_pec/a"),
        (0.5, "√a v_pec"),
        (-1.5, "v_pec/(a√a)"),
        (2.0, "a² v_pec"),
    ];
    let units = [(1.0, "km/s"), (100.0, "100 km/s"), (1e-3, "m/s"), (1e-5, "cm/s")];
    let little_h = [(1.0, ""), (h, ", multiplied by h"), (1.0 / h, ", divided by h")];
    let mut causes = Vec::new();
    for (power, name) in powers {
        for (km_s, unit) in units {
            for (factor, of_h) in little_h {
                let wrong = [power != convention.power, km_s != convention.km_s, factor != 1.0];
                let mistakes = wrong.into_iter().filter(|wrong| *wrong).count();
                if mistakes == 0 {
                    continue;
                }
                let text = format!("they look like {name} in {unit}{of_h}; expected {}", convention.text);
                let ratio = a.powf(power - convention.power) * convention.km_s / km_s * factor;
                causes.push(Cause { ratio, text, mistakes });
            }
        }
    }
    if matches!(subject.format, LoadFormat::Monofonic | LoadFormat::Music) {
        let text = format!("they look like v_pec in km/s; expected {}", convention.text);
        causes.push(Cause { ratio: subject.box_mpc_h, text, mistakes: 1 });
    }
    let text = format!("they look like displacements in Mpc/h; expected {}", convention.text);
    causes.push(Cause { ratio: 1.0 / rate, text, mistakes: 2 });
    causes
}

/// Causes of a density contrast that is a factor off while velocities are right.
pub(super) fn of_displacements(subject: &Subject<'_>, spacing: f64) -> Vec<Cause> {
    let (a, h) = (subject.a, subject.cosmology.h);
    let one = |ratio: f64, text: &str| Cause { ratio, text: text.into(), mistakes: 1 };
    vec![
        one(1e3, "displacements look like kpc/h in place of Mpc/h"),
        one(1e-3, "displacements look divided by 10³: Gpc/h in place of Mpc/h?"),
        one(1.0 / h, "displacements look like Mpc in place of Mpc/h, multiply them by h"),
        one(h, "displacements look multiplied by h twice"),
        one(a, "displacements look proper, divide them by a"),
        one(1.0 / a, "displacements look divided by a twice"),
        one(1.0 / spacing, "displacements look like cells, multiply them by the cell's width"),
        one(1.0 / subject.box_mpc_h, "displacements look like fractions of the box, multiply them by its length"),
    ]
}

/// Causes of an amplitude that is a factor off, of density contrast and velocity or of the first alone.
///
/// * `growth`: D(a)/D(1)
pub(super) fn of_amplitudes(subject: &Subject<'_>, growth: f64) -> Vec<Cause> {
    let h = subject.cosmology.h;
    let one = |ratio: f64, text: &str| Cause { ratio, text: text.into(), mistakes: 1 };
    vec![
        one(1.0 / growth, "it is that of z = 0: scale it back by D(a)/D(1)"),
        one(growth, "it looks scaled back by D(a)/D(1) twice"),
        one(growth.sqrt(), "the power, not the amplitude, was scaled by D²: √(D(a)/D(1)) too much"),
        one(subject.a / growth, "it looks scaled by a in place of D(a)/D(1)"),
        one(std::f64::consts::TAU.powf(1.5), "P(k) looks (2π)³ too large: another convention of Fourier transforms"),
        one(std::f64::consts::TAU.powf(-1.5), "P(k) looks (2π)³ too small: another convention of Fourier transforms"),
        one(h.powf(1.5), "P(k) looks h³ too small: multiplied by h³ twice?"),
        one(h.powf(-1.5), "P(k) looks like Mpc³ in place of (Mpc/h)³"),
        one(2f64.sqrt(), "P(k) looks 2 too large: real and imaginary parts of variance 1?"),
        one(0.5f64.sqrt(), "P(k) looks 2 too small: real and imaginary parts of variance ¼?"),
    ]
}

/// Causes of a mean density of the gas that is a factor off.
pub(super) fn of_mean_density(subject: &Subject<'_>, expected: f64) -> Vec<Cause> {
    let (c, a, omega_cb) = (subject.cosmology, subject.a, subject.cosmology.omega_cb_name());
    let divide = format!("divide density, momentum and energy by {omega_cb}");
    let critical_g_cm3 = 1.878_34e-29 * c.h * c.h;
    let one = |mean: f64, text: &str| Cause { ratio: mean / expected, text: text.into(), mistakes: 1 };
    let mut causes = vec![
        one(
            1.0,
            &format!(
                "it is in units of the gas's own mean; multiply density, momentum and energy by omega_b/{omega_cb}"
            ),
        ),
        one(c.omega_cb(), &format!("it is in units of the critical density; {divide}")),
        one(c.omega_b, &format!("it is omega_b, in units of the critical density; {divide}")),
        one(
            1.0 - c.baryon_fraction(),
            &format!("it is the share of dark matter, 1 - omega_b/{omega_cb}: are the species swapped?"),
        ),
        one(c.baryon_fraction(), "it is the share of baryons: is the dark matter missing?"),
        one(expected / a.powi(3), "it is proper; multiply density, momentum and energy by a³"),
        one(expected / a, "it is 1/a too large"),
        one(expected * c.h * c.h, "it is h² too small"),
        one(expected / c.h / c.h, "it is 1/h² too large"),
    ];
    for (share, of) in [(1.0, "all matter"), (c.baryon_fraction(), "baryons")] {
        for (factor, frame) in [(1.0, "comoving"), (a.powi(-3), "proper")] {
            let matter = c.omega_cb() * share * factor;
            let unit = |value: f64, unit: &str| {
                one(matter * value, &format!("it is that of {of} in {frame} {unit}; divide by the mean matter density"))
            };
            causes.push(unit(critical_g_cm3, "g/cm³"));
            causes.push(unit(2.775_366_27e11 * c.h * c.h, "M☉/Mpc³"));
            causes.push(unit(2.775_366_27e11, "M☉ h²/Mpc³"));
            causes.push(unit(2.775_366_27e-8, "10¹⁰ M☉ h²/kpc³"));
            causes.push(unit(2.775_366_27e1, "10¹⁰ M☉ h²/Mpc³"));
        }
    }
    causes.retain(|cause| (cause.ratio - 1.0).abs() > 1e-3);
    causes
}

/// Causes of a temperature that is a factor off.
pub(super) fn of_temperature(subject: &Subject<'_>, expected_k: f64, share: f64) -> Vec<Cause> {
    let (a, gamma, mu) = (subject.a, subject.gamma, subject.mean_molecular_weight);
    let cosmology = subject.cosmology;
    // code energy of 1 K
    let kelvin = crate::temperature::specific_internal_energy(cosmology, a, 1.0, mu, gamma);
    let background = cosmology.t_cmb_k / a / expected_k;
    let specific = [
        (1.0 / (a * a), "energies look like (100 km/s)² without a²; multiply them by a²"),
        (1e4 / (a * a), "energies look like (km/s)² of proper velocities; multiply them by a²/10⁴"),
        (1e4, "energies look like (km/s)²; divide them by 10⁴"),
        (a * a, "energies look multiplied by a² twice"),
        (1e14 / (a * a), "energies look like (cm/s)²; multiply them by a²/10¹⁴"),
        (1.0 / kelvin, "energies look like temperatures in K"),
        (gamma - 1.0, "energies look like pressures; divide them by γ - 1"),
        (background, "the gas has the temperature of the background radiation; it is colder after decoupling"),
    ];
    let mut causes = Vec::new();
    for (ratio, text) in specific {
        causes.push(Cause { ratio, text: text.into(), mistakes: 1 });
        if (share - 1.0).abs() > 1e-3 {
            let text = format!("{text}, and by the density, of which they are densities");
            causes.push(Cause { ratio: ratio / share, text, mistakes: 2 });
        }
    }
    if (share - 1.0).abs() > 1e-3 {
        let text = "energies look like those of mass; multiply them by the density".into();
        causes.push(Cause { ratio: 1.0 / share, text, mistakes: 1 });
    }
    causes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_simplest_cause_is_named() {
        let cause = |ratio: f64, text: &str, mistakes| Cause { ratio, text: text.into(), mistakes };
        let causes =
            [cause(2.0, "two", 1), cause(2.02, "as well", 1), cause(2.0, "complicated", 2), cause(9.0, "nine", 2)];
        assert_eq!(explained(2.01, &causes, 0.02).as_deref(), Some("two, or as well"));
        assert_eq!(explained(9.1, &causes, 0.02).as_deref(), Some("nine"));
        assert_eq!(explained(4.0, &causes, 0.02), None);
    }
}
