//! The figure of each result.

use super::lines::{Curve, Mark, Panel, Ratio, Style, line_figure};
use super::{CURVES, Dash, Figure};
use crate::comparison::{Comparison, Path};
use crate::density_pdf::DensityPdf;
use crate::halos::mass_function::{MassBin, MassFunction};
use crate::halos::profile::{HaloProfile, Shell};
use crate::power_spectrum::{PowerSpectrum, Species};
use crate::refinement_ratio::{LevelShare, RefinementRatio, RefinementRow};
use crate::table::{readable, readable_redshift};

/// Volume fraction and cells of every level against redshift, early times on the left; in non-comoving coordinates against
/// time.
pub fn refinement_figure(ratio: &RefinementRatio) -> Figure {
    let comoving = ratio.rows.iter().all(|row| row.redshift.is_some());
    let when = |row: &RefinementRow| row.redshift.map_or(row.time, |z| 1.0 + z);
    let levels = ratio.rows.iter().map(|row| row.levels.len()).max().unwrap_or(0);
    let curves = |value: fn(&LevelShare) -> f64| {
        let curve = |level: usize| Curve {
            name: format!("level {level}"),
            points: ratio.rows.iter().filter_map(|r| Some([when(r), value(r.levels.get(level)?)])).collect(),
            style: if ratio.rows.len() < 40 { Style::Marked } else { Style::Line },
            ..Curve::default()
        };
        (0..levels).map(curve).collect()
    };
    let panel = |y_label: &str, value| Panel {
        y_logarithmic: true,
        curves: curves(value),
        ..Panel::over_time(comoving, y_label)
    };
    let panels = [panel("volume fraction", |l| l.volume_fraction), panel("cells", |l| l.cells as f64)];
    line_figure(&format!("Refinement against {}", if comoving { "redshift" } else { "time" }), &panels, 2)
}

/// P(k) of one or more named spectra, up to their Nyquist wave numbers, linear theory where it is known, and the shot noise
/// where it is in sight.
pub fn power_figure(spectra: &[(String, &PowerSpectrum)]) -> Figure {
    let curves = spectra.iter().map(|(name, spectrum)| Curve {
        name: name.clone(),
        points: spectrum.bins.iter().map(|b| [b.k_h_mpc, b.power_mpc3_h3]).collect(),
        ..Curve::default()
    });
    let with_linear = spectra.iter().enumerate().filter(|(_, (_, spectrum))| !spectrum.linear_mpc3_h3.is_empty());
    let linear = with_linear.enumerate().map(|(listed, (n, (_, spectrum)))| Curve {
        // the curves differ by the colours of what they belong to
        name: if listed == 0 { "linear theory".into() } else { String::new() },
        points: spectrum.bins.iter().zip(&spectrum.linear_mpc3_h3).map(|(bin, power)| [bin.k_h_mpc, *power]).collect(),
        color: Some(n),
        dash: Some(Dash::Dashed),
        ..Curve::default()
    });
    let noises = shot_noises(spectra);
    // a mark for grids of different levels would belong to one of them only
    let nyquist = spectra.first().map(|(_, s)| s.k_nyquist_h_mpc);
    let shared = nyquist.filter(|k| spectra.iter().all(|(_, s)| s.k_nyquist_h_mpc == *k));
    let marks = shared.map(|k| Mark { x: k / 2.0, label: "½ k Nyquist".into() }).into_iter().collect();
    let panel = Panel {
        x_label: "k [h/Mpc]".into(),
        y_label: "P(k) [(Mpc/h)³]".into(),
        x_logarithmic: true,
        y_logarithmic: true,
        curves: curves.chain(linear).chain(noises).collect(),
        marks,
        ..Panel::default()
    };
    let title = |species: Species| match species {
        Species::Matter => "Power spectrum of all matter",
        Species::Gas => "Power spectrum of gas",
        Species::DarkMatter => "Power spectrum of dark matter",
        Species::Cross => "Cross spectrum of gas and dark matter",
    };
    // curves of several species name their own
    let species = spectra.first().map(|(_, spectrum)| spectrum.options.species);
    let shared = species.filter(|species| spectra.iter().all(|(_, other)| other.options.species == *species));
    let title = shared.map_or("Power spectra", title);
    line_figure(&format!("{title}{}", noise_note(spectra)), &[panel], 1)
}

/// The shot noise of spectra, one curve for all that have the same; none far below or above what is shown.
fn shot_noises(spectra: &[(String, &PowerSpectrum)]) -> Vec<Curve> {
    let values =
        spectra.iter().flat_map(|(_, s)| s.bins.iter().map(|bin| bin.power_mpc3_h3).chain(s.linear_mpc3_h3.clone()));
    let positive = values.filter(|power| *power > 0.0);
    let (low, high) = positive.fold((f64::INFINITY, 0.0f64), |(l, h), power| (l.min(power), h.max(power)));
    let mut curves: Vec<Curve> = Vec::new();
    for (n, (_, spectrum)) in spectra.iter().enumerate().filter(|(_, (_, s))| s.shot_noise_mpc3_h3.is_some()) {
        let points: Vec<[f64; 2]> = spectrum.bins.iter().map(|bin| [bin.k_h_mpc, bin.shot_noise_mpc3_h3]).collect();
        let in_sight = points.iter().any(|p| (low..=high).contains(&p[1]));
        if in_sight && !curves.iter().any(|curve| nearly_equal(&curve.points, &points)) {
            let name = if curves.is_empty() { "shot noise".into() } else { String::new() };
            curves.push(Curve { name, points, color: Some(n), dash: Some(Dash::Dotted), ..Curve::default() });
        }
    }
    if let [only] = &mut curves[..] {
        // not one spectrum's
        only.color = Some(GREY);
    }
    curves
}

/// Whether curves differ by less than a line shows: the mean density of a run changes by rounding.
fn nearly_equal(x: &[[f64; 2]], y: &[[f64; 2]]) -> bool {
    let close = |(p, q): (&[f64; 2], &[f64; 2])| (0..2).all(|a| (p[a] / q[a] - 1.0).abs() < 1e-3);
    x.len() == y.len() && x.iter().zip(y).all(close)
}

/// Grey, for a curve that belongs to no spectrum.
const GREY: usize = CURVES.len() - 1;

/// What the title says of the shot noise.
fn noise_note(spectra: &[(String, &PowerSpectrum)]) -> String {
    let mut noises: Vec<String> =
        spectra.iter().filter_map(|(_, spectrum)| spectrum.shot_noise_mpc3_h3).map(readable).collect();
    noises.dedup();
    // all are of one stage, with its options
    let is_subtracted = spectra.first().is_some_and(|(_, spectrum)| spectrum.options.subtract_shot_noise);
    let state = if is_subtracted { "subtracted" } else { "not subtracted" };
    match &noises[..] {
        [] => String::new(),
        [noise] => format!("; shot noise {noise} (Mpc/h)³, {state}"),
        _ => format!("; shot noise {state}"),
    }
}

/// What a model predicts in a bin.
type Prediction = fn(&MassBin) -> Option<f64>;

/// dn/dlnM with Poisson errors and predictions, and below the ratios to the first prediction.
pub fn mass_function_figure(found: &MassFunction) -> Figure {
    let definition = found.options.definition;
    let by_density = definition.density(&found.cosmology, 1.0).is_some();
    let tinker = if by_density { "Tinker et al. 2008" } else { "Tinker et al. 2008 (200m)" };
    let models: [(&str, Prediction); 2] =
        [(tinker, |bin| bin.tinker08_h3_mpc3), ("Despali et al. 2016", |bin| bin.despali16_h3_mpc3)];
    let models = || models.iter().filter(|(_, value)| found.bins.iter().any(|bin| value(bin).is_some()));
    let full = || found.bins.iter().filter(|bin| bin.halos > 0);
    let halos = Curve {
        name: "halos".into(),
        // a bin's mean is drawn at its middle, as predictions are
        points: full().map(|bin| [bin.centre_msun_h, bin.dn_dlnm_h3_mpc3]).collect(),
        style: Style::Points,
        bars: full().map(|bin| bin.error_h3_mpc3).collect(),
        ..Curve::default()
    };
    let curve = |(name, value): &(&str, Prediction)| Curve {
        name: (*name).into(),
        points: found.bins.iter().map(|bin| [bin.centre_msun_h, value(bin).unwrap_or(f64::NAN)]).collect(),
        ..Curve::default()
    };
    let panel = Panel {
        x_label: match definition.name() {
            "fof" => "M of friends of friends [M⊙/h]".into(),
            name => format!("M{name} [M⊙/h]"),
        },
        y_label: "dn/dlnM [(h/Mpc)³]".into(),
        x_logarithmic: true,
        y_logarithmic: true,
        curves: std::iter::once(halos).chain(models().map(curve)).collect(),
        ratio: models().next().map(|(name, _)| Ratio { to: 1, label: format!("over {name}"), range: None }),
        ..Panel::default()
    };
    line_figure(&format!("Mass function at z = {}", readable_redshift(found.redshift)), &[panel], 1)
}

/// Density, temperature and radial velocity of gas, if there is some, and enclosed mass of one or more named profiles.
pub fn profile_figure(profiles: &[(String, &HaloProfile)]) -> Figure {
    let panel = |y_label: &str, y_logarithmic: bool, point: fn(&Shell) -> Option<[f64; 2]>| Panel {
        x_label: "r [Mpc/h]".into(),
        y_label: y_label.into(),
        x_logarithmic: true,
        y_logarithmic,
        curves: profiles
            .iter()
            .map(|(name, profile)| Curve {
                name: name.clone(),
                points: profile.shells.iter().filter_map(point).collect(),
                style: if profiles.len() == 1 { Style::Marked } else { Style::Line },
                ..Curve::default()
            })
            .collect(),
        marks: match profiles {
            [(_, profile)] => vec![Mark { x: profile.radius_mpc_h, label: "R".into() }],
            _ => Vec::new(),
        },
        ..Panel::default()
    };
    let panels = [
        panel("ρ / mean density", true, |s| Some([s.r_mpc_h, s.density])),
        panel("T [K]", true, |s| Some([s.r_mpc_h, s.temperature_k?])),
        panel("radial velocity [km/s]", false, |s| Some([s.r_mpc_h, s.radial_velocity_km_s?])),
        panel("enclosed mass [M⊙/h]", true, |s| Some([s.r_outer_mpc_h, s.enclosed_mass_msun_h])),
    ];
    let has_points = |panel: &Panel| panel.curves.iter().any(|curve| !curve.points.is_empty());
    let panels: Vec<Panel> = panels.into_iter().filter(has_points).collect();
    let redshift =
        profiles.first().map_or(String::new(), |(_, p)| format!(" at z = {}", readable_redshift(p.redshift)));
    line_figure(&format!("Radial profiles{redshift}"), &panels, 2)
}

/// Density, velocity, pressure and level along the path, with the solution as a curve.
pub fn comparison_figure(title: &str, comparison: &Comparison) -> Figure {
    let x_label = match comparison.path {
        Path::Line { axis, .. } => ["x", "y", "z"][axis],
        Path::Diagonal => "distance along the diagonal",
        Path::Shells { .. } => "r",
    };
    let points = &comparison.points;
    let against = |q: usize, name: &str| {
        let solution = comparison.curve.iter().map(|(x, values)| [*x, values[q]]);
        let found = points.iter().map(|p| [p.position, p.values[q]]);
        let offset = common_part(solution.clone().chain(found.clone()).map(|p| p[1]));
        let from = |p: [f64; 2]| [p[0], p[1] - offset];
        let exact = Curve {
            name: if comparison.curve.is_empty() { String::new() } else { "exact".into() },
            points: solution.clone().map(from).collect(),
            ..Curve::default()
        };
        let run = Curve {
            name: "run".into(),
            points: found.clone().map(from).collect(),
            style: Style::Points,
            bars: points.iter().map(|p| p.scatter[q]).collect(),
            ..Curve::default()
        };
        let y_label = if offset == 0.0 { name.into() } else { format!("{name} − {offset}") };
        // a peak far above everything else leaves nothing to see on a linear axis
        let mut sorted: Vec<f64> = solution.clone().chain(found.clone()).map(|p| p[1]).collect();
        sorted.sort_by(f64::total_cmp);
        let y_logarithmic = sorted.first().is_some_and(|&least| least > 0.0)
            && sorted[sorted.len() - 1] > 1e3 * sorted[sorted.len() / 2];
        Panel { x_label: x_label.into(), y_label, y_logarithmic, curves: vec![exact, run], ..Panel::default() }
    };
    let levels = Curve {
        points: points.iter().map(|p| [p.position, p.level]).collect(),
        style: Style::Points,
        ..Curve::default()
    };
    let shells = matches!(comparison.path, Path::Shells { .. });
    let panels = [
        against(1, if shells { "radial velocity" } else { "velocity along the path" }),
        against(0, "density"),
        against(2, "pressure"),
        Panel {
            x_label: x_label.into(),
            y_label: "refinement level".into(),
            curves: vec![levels],
            y_whole: true,
            ..Panel::default()
        },
    ];
    line_figure(title, &panels, 2)
}

/// Ratios of forces against separation in cells, a curve each: name, and separation, mean and scatter.
pub fn force_figure(title: &str, curves: &[(&str, Vec<[f64; 3]>)]) -> Figure {
    let curves = curves.iter().map(|(name, points)| Curve {
        name: (*name).into(),
        points: points.iter().map(|&[separation, mean, _]| [separation, mean]).collect(),
        style: Style::Marked,
        bars: points.iter().map(|&[_, _, scatter]| scatter).collect(),
        ..Curve::default()
    });
    let panel = Panel {
        x_label: "separation [finest cells]".into(),
        y_label: "force over the root level's".into(),
        x_logarithmic: true,
        curves: curves.collect(),
        ..Panel::default()
    };
    line_figure(title, &[panel], 1)
}

/// What is better subtracted before values are drawn, to three digits: 0 unless they differ by less than a thousandth.
fn common_part(values: impl Iterator<Item = f64>) -> f64 {
    let (least, most) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
    let middle = 0.5 * (least + most);
    let common = most - least < 1e-3 * middle.abs();
    if common { format!("{middle:.2e}").parse().unwrap_or(0.0) } else { 0.0 }
}

/// Volume and mass against density.
pub fn density_pdf_figure(pdf: &DensityPdf) -> Figure {
    let curve = |name: &str, value: fn(&crate::density_pdf::PdfBin) -> f64| Curve {
        name: name.into(),
        points: pdf.bins.iter().map(|b| [10f64.powf(b.log10_density), value(b)]).collect(),
        ..Curve::default()
    };
    let panel = Panel {
        x_label: "ρ / mean density".into(),
        y_label: "fraction per factor of ten".into(),
        x_logarithmic: true,
        y_logarithmic: true,
        curves: vec![curve("volume", |b| b.volume_pdf), curve("mass", |b| b.mass_pdf)],
        ..Panel::default()
    };
    let redshift = pdf.redshift.map_or(String::new(), |z| format!(" at z = {}", readable_redshift(z)));
    line_figure(&format!("Density distribution{redshift}"), &[panel], 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::compare;
    use crate::figure::map::{MapStyle, map_figure};
    use crate::fixture::{self, Fixture, gas};
    use crate::halos::mass_function::{HaloMasses, MassFunctionOptions, mass_function};
    use crate::halos::overdensity::MassDefinition;
    use crate::halos::peaks::{HaloOptions, find_halos};
    use crate::halos::profile::{ProfileOptions, halo_profile};
    use crate::map::{MapOptions, projection, slice};
    use crate::power_spectrum::{Bins, PowerOptions, power_spectrum};
    use crate::table::Record;
    use std::f64::consts::PI;

    /// Filaments and three cusps in a box of 25 Mpc/h.
    fn web() -> Fixture {
        let cusps = [([9.0, 11.0, 12.0], 1.6), ([18.0, 14.5, 13.0], 0.9), ([22.0, 3.0, 12.5], 0.7)];
        let density = move |x: [f64; 3]| {
            let wave = |n: f64, a: usize, phase: f64| (2.0 * PI * n * x[a] / 25.0 + phase).sin();
            let sheets = wave(2.0, 0, 0.3 + wave(1.0, 1, 0.0))
                + wave(3.0, 1, wave(1.0, 2, 1.0))
                + wave(2.0, 2, wave(2.0, 0, 0.5));
            let cusp = |&(c, r0): &([f64; 3], f64)| {
                (r0 * 6.0 / fixture::norm(fixture::separation(x, c, 25.0)).max(0.05)).powi(2) / 1.5
            };
            (1.1 * sheets - 1.2).exp() + cusps.iter().map(cusp).sum::<f64>()
        };
        let mut fixture = Fixture::new(move |x| {
            let rho = density(x);
            gas(rho, [0.4 * (2.0 * PI * x[1] / 25.0).sin(), 0.3, -0.2 * rho.ln()], 1e-4 * rho.powf(5.0 / 3.0))
        });
        (fixture.box_length, fixture.a, fixture.max_level) = (25.0, 1.0, 3);
        fixture.refine = Box::new(move |level, x, half| {
            let corners = (0..8).map(|n| [n & 1, n >> 1 & 1, n >> 2 & 1].map(|c| f64::from(2 * c) - 1.0));
            let corners = corners.map(|d| std::array::from_fn(|a| x[a] + half * d[a]));
            let nearest = cusps.iter().map(|(c, _)| std::array::from_fn(|a| c[a].clamp(x[a] - half, x[a] + half)));
            corners.chain(nearest).any(|point| density(point) > 8f64.powi(level as i32 + 1))
        });
        fixture
    }

    /// A spectrum of particles states its shot noise in the title, and as a curve where that is in sight.
    #[test]
    fn spectra_state_their_shot_noise() {
        use crate::fixture::{random_particles, with_particles};
        let snapshot = with_particles(Fixture::uniform(1.0).build(), random_particles(1000, [1.0; 3], 3));
        let drawn = |options: &[PowerOptions]| {
            let spectra =
                options.iter().map(|options| (String::from("z = 1"), power_spectrum(&snapshot, options).unwrap()));
            let spectra: Vec<(String, PowerSpectrum)> = spectra.collect();
            let named: Vec<(String, &PowerSpectrum)> = spectra.iter().map(|(name, s)| (name.clone(), s)).collect();
            let figure = power_figure(&named);
            (figure.title().to_owned(), figure.svg().unwrap().matches(">shot noise</text>").count())
        };
        let options = PowerOptions { species: Species::DarkMatter, ..PowerOptions::default() };
        let (title, listed) = drawn(&[options.clone(), options.clone()]);
        assert_eq!(
            (&*title, listed),
            ("Power spectrum of dark matter; shot noise 0.001000 (Mpc/h)³, not subtracted", 1)
        );
        let subtracted = PowerOptions { subtract_shot_noise: true, ..options.clone() };
        assert!(drawn(std::slice::from_ref(&subtracted)).0.ends_with("(Mpc/h)³, subtracted"));
        let gas = PowerOptions { species: Species::Gas, ..options };
        assert_eq!(drawn(&[gas]), ("Power spectrum of gas".into(), 0));
    }

    /// Draws every figure; `COMOVE_GALLERY=folder` keeps them to be looked at.
    #[test]
    fn every_result_has_a_figure() {
        let kept = std::env::var_os("COMOVE_GALLERY").map(std::path::PathBuf::from);
        let temporary = tempfile::tempdir().unwrap();
        let folder = kept.as_deref().unwrap_or(temporary.path());
        let snapshot = web().build();
        let catalogue = find_halos(&snapshot, &HaloOptions::default()).unwrap();
        assert_eq!(catalogue.halos.len(), 3, "{:?}", catalogue.halos);
        let profile = halo_profile(&snapshot, &(&catalogue.halos[0]).into(), &ProfileOptions::default()).unwrap();
        let spectrum = power_spectrum(&snapshot, &PowerOptions { level: 1, ..PowerOptions::default() }).unwrap();
        let linear = spectrum.bins.iter().map(|bin| 0.5 * bin.power_mpc3_h3).collect();
        let spectrum = PowerSpectrum { linear_mpc3_h3: linear, ..spectrum };
        assert_eq!(spectrum.table().columns.last().map(String::as_str), Some("linear_mpc3_h3"));
        let log = PowerOptions { bins: Bins::PerDecade(12), deconvolve: false, ..PowerOptions::default() };
        let coarse = power_spectrum(&snapshot, &log).unwrap();
        let mut rows: Vec<RefinementRow> = Vec::new();
        for n in 1..=10 {
            let mut row = RefinementRow::new(&snapshot);
            row.a = f64::from(n) / 10.0;
            row.redshift = Some(1.0 / row.a - 1.0);
            row.levels.truncate(1 + n as usize / 3);
            row.levels.iter_mut().skip(1).for_each(|l| l.volume_fraction *= row.a.powi(2));
            rows.push(row);
        }
        let pdf = crate::density_pdf::density_pdf(&snapshot, 8).unwrap();
        let masses = HaloMasses::of_peaks(&catalogue, MassDefinition::M200m).unwrap();
        let options = MassFunctionOptions { min_mass_msun_h: Some(1e11), ..MassFunctionOptions::default() };
        let counted = mass_function(&masses, &options, &|radius| Some(0.8 * (radius / 8.0).powf(-0.6))).unwrap();
        assert_eq!(counted.halos, 3, "{counted:?}");
        let exact = |x: [f64; 3]| Some((1.0 + 2e-5 * (x[0] - 12.5), [3.0, 0.0, 0.0], x[0]));
        let path = Path::Line { axis: 0, through: [0.1, 12.4, 12.6] };
        let mut comparison = compare(&snapshot, path, &exact).unwrap();
        comparison.points.iter_mut().for_each(|p| p.values[0] = 1.0 + 1.9e-5 * (p.position - 12.5));
        let lines = [
            ("comparison", comparison_figure("A comparison", &comparison)),
            ("refinement", refinement_figure(&RefinementRatio::from_rows(rows))),
            ("power", power_figure(&[("level 1".into(), &spectrum), ("level 0, with window".into(), &coarse)])),
            ("profile", profile_figure(&[("halo 0".into(), &profile)])),
            ("pdf", density_pdf_figure(&pdf)),
            ("mass_function", mass_function_figure(&counted)),
        ];
        for (name, figure) in &lines {
            figure.write(folder, name).unwrap();
        }
        let pixels = kept.is_none().then_some(64);
        let plane = MapOptions { center: Some([12.5, 12.5, 12.2]), pixels, patches: true, ..MapOptions::default() };
        let near = MapOptions {
            center: Some([22.0, 3.0, 12.5]),
            width_mpc_h: Some(8.0),
            depth_mpc_h: Some(3.0),
            ..plane.clone()
        };
        let of = |field: &str, options: &MapOptions| MapOptions { field: field.into(), ..options.clone() };
        let bare = MapOptions { patches: false, ..plane.clone() };
        for (name, map) in [
            ("slice", slice(&snapshot, &plane)),
            ("slice_zoom", slice(&snapshot, &near)),
            ("slice_velocity", slice(&snapshot, &of("velocity_x", &bare))),
            ("projection", projection(&snapshot, &of("temperature", &bare))),
        ] {
            let figure = map_figure(&map.unwrap(), &MapStyle::default()).unwrap();
            figure.write(folder, name).unwrap();
            for file in Figure::files(name) {
                assert!(std::fs::metadata(folder.join(&file)).unwrap().len() > 2000, "{file}");
            }
        }
    }
}
