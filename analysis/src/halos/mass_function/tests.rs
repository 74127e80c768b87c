//! Formulae against numbers of colossus 1.4 (Diemer 2018, ApJS 239, 35), and bins against catalogues that were made up.

use super::*;
use crate::fixture::Fixture;
use crate::halos::fof::{FofHalo, FofOptions};
use crate::halos::overdensity::{MassDefinition::*, Overdensities, Overdensity};

fn planck() -> Cosmology {
    Cosmology::flat(0.6766, 0.3111, 0.04897, 0.8102, 0.9665)
}

/// Definition, redshift, σ; f of `modelTinker08` (none below its table) and `modelDespali16` of colossus.
#[rustfmt::skip]
const COLOSSUS: [(MassDefinition, f64, f64, Option<f64>, f64); 36] = [
    (M200m, 0.0, 0.6, Some(0.064718), 0.066490),
    (M200m, 0.0, 1.0, Some(0.283208), 0.273820),
    (M200m, 0.0, 2.0, Some(0.337846), 0.338975),
    (M200c, 0.0, 0.6, Some(0.026977), 0.031531),
    (M200c, 0.0, 1.0, Some(0.188742), 0.187357),
    (M200c, 0.0, 2.0, Some(0.286442), 0.288468),
    (M500c, 0.0, 0.6, Some(0.009489), 0.009954),
    (M500c, 0.0, 1.0, Some(0.122592), 0.113585),
    (M500c, 0.0, 2.0, Some(0.235718), 0.235299),
    (Virial, 0.0, 0.6, Some(0.046641), 0.053036),
    (Virial, 0.0, 1.0, Some(0.242054), 0.239928),
    (Virial, 0.0, 2.0, Some(0.316868), 0.318993),
    (M200m, 1.0, 0.6, Some(0.053850), 0.051925),
    (M200m, 1.0, 1.0, Some(0.243697), 0.238896),
    (M200m, 1.0, 2.0, Some(0.302047), 0.319676),
    (M200c, 1.0, 0.6, Some(0.046099), 0.044218),
    (M200c, 1.0, 1.0, Some(0.225104), 0.220419),
    (M200c, 1.0, 2.0, Some(0.291259), 0.309138),
    (M500c, 1.0, 0.6, Some(0.019727), 0.017657),
    (M500c, 1.0, 1.0, Some(0.146221), 0.145892),
    (M500c, 1.0, 2.0, Some(0.240443), 0.261838),
    (Virial, 1.0, 0.6, Some(0.053563), 0.051653),
    (Virial, 1.0, 1.0, Some(0.243058), 0.238243),
    (Virial, 1.0, 2.0, Some(0.301698), 0.319303),
    (M200m, 2.5, 0.6, Some(0.046586), 0.048530),
    (M200m, 2.5, 1.0, Some(0.216363), 0.231076),
    (M200m, 2.5, 2.0, Some(0.276135), 0.315481),
    (M200c, 2.5, 0.6, Some(0.045273), 0.046942),
    (M200c, 2.5, 1.0, Some(0.213213), 0.227263),
    (M200c, 2.5, 2.0, Some(0.274247), 0.313305),
    (M500c, 2.5, 0.6, Some(0.019442), 0.019711),
    (M500c, 2.5, 1.0, Some(0.135452), 0.153172),
    (M500c, 2.5, 2.0, Some(0.221642), 0.267270),
    (Virial, 2.5, 0.6, None, 0.051365),
    (Virial, 2.5, 1.0, None, 0.237887),
    (Virial, 2.5, 2.0, None, 0.319367),
];

/// Despali et al. agree to the digits that are printed. Tinker's parameters are interpolated in log Δ here and in Δ there: 2%.
#[test]
fn formulae_agree_with_colossus() {
    let mut worst: f64 = 0.0;
    for (definition, z, sigma, tinker, despali) in COLOSSUS {
        let of = |model: Model| model.multiplicity(definition, &planck(), 1.0 / (1.0 + z)).unwrap()(sigma);
        let off = of(Model::Despali2016) / despali - 1.0;
        assert!(off.abs() < 1e-4, "{definition:?} {z} {sigma}: {off}");
        if let Some(tinker) = tinker {
            let off = of(Model::Tinker2008) / tinker - 1.0;
            assert!(off.abs() < 0.02, "{definition:?} {z} {sigma}: {off}");
            worst = worst.max(off.abs());
        }
    }
    println!("Tinker et al. within {worst}");
}

/// Overdensities in the table are met exactly, those beyond it have no prediction.
#[test]
fn predictions_end_with_their_tables() {
    let eds = Cosmology::flat(0.7, 1.0, 0.0, 0.8, 1.0);
    let f = Model::Tinker2008.multiplicity(M200m, &eds, 1.0).unwrap()(1.0);
    assert!((f - 0.186 * (2.57f64.powf(1.47) + 1.0) * (-1.19f64).exp()).abs() < 1e-12);
    let thin = Cosmology::flat(0.7, 0.1, 0.02, 0.8, 1.0);
    assert!(Model::Tinker2008.multiplicity(M500c, &thin, 1.0).is_none());
    assert!(Model::Despali2016.multiplicity(M500c, &thin, 1.0).is_some());
    assert!(Model::Despali2016.multiplicity(Fof, &thin, 1.0).is_none());
}

/// σ = (R/8 Mpc/h)^(−1/2): slope and mean over a bin in closed form.
#[test]
fn a_power_law_is_averaged_over_bins() {
    let power_law = |radius: f64| 0.8 * (radius / 8.0).powf(-0.5);
    let width = std::f64::consts::LN_10 / 5.0;
    let density = Units::new(Some(planck())).mass_msun_h();
    let multiplicity = Model::Despali2016.multiplicity(M200m, &planck(), 1.0).unwrap();
    let sigma = |radius: f64| Some(power_law(radius));
    let found = Linear::new(&planck(), 1.0, &sigma, (1e13, width, 3)).predicted(&*multiplicity);
    for (bin, found) in found.into_iter().enumerate() {
        let found = found.unwrap();
        let at = |x: f64| {
            let mass = 1e13 * ((bin as f64 + x) * width).exp();
            // σ ∝ M^(−1/6)
            multiplicity(power_law((mass / (density * 4.0 / 3.0 * PI)).cbrt())) * density / mass / 6.0
        };
        let mean = (0..2000).map(|n| at((f64::from(n) + 0.5) / 2000.0)).sum::<f64>() / 2000.0;
        assert!((found / mean - 1.0).abs() < 1e-4, "{found:e} {mean:e}");
    }
}

/// Halos of these masses in a row, 5 Mpc/h apart; the second lies within the first's R200c.
fn catalogue(masses: &[f64]) -> FofCatalogue {
    let halo = |(n, &mass): (usize, &f64)| {
        let sphere = Overdensity {
            mass_msun_h: mass,
            radius_mpc_h: 1.0,
            gas_fraction: 0.1,
            dispersion_km_s: None,
            heavy_fraction: None,
        };
        let place = if n == 1 { 0.5 } else { 5.0 * n as f64 };
        FofHalo {
            id: n,
            particles: 100,
            mass_msun_h: 1.1 * mass,
            position_mpc_h: [place, 1.0, 2.0],
            radius_mpc_h: 1.0,
            velocity_km_s: [0.0; 3],
            dispersion_km_s: 100.0,
            spheres: Overdensities {
                overdensities: [(M200c, Some(sphere)), (M500c, None)].into_iter().collect(),
                concentration_200c: None,
                heavy_distance_mpc_h: None,
            },
            parent: None,
        }
    };
    FofCatalogue {
        redshift: 0.0,
        options: FofOptions::default(),
        box_mpc_h: [100.0; 3],
        cosmology: Some(planck()),
        particle_mass_msun_h: 1e10,
        linking_length_mpc_h: 0.1,
        fraction_in_halos: 0.5,
        halos: masses.iter().enumerate().map(halo).collect(),
    }
}

fn sigma(radius: f64) -> Option<f64> {
    Some(0.81 * (radius / 8.0).powf(-0.6))
}

/// Counts, Poisson errors, edges at powers of ten, and the halo within another left out.
#[test]
fn halos_are_counted_in_bins() {
    let masses = [1.0001e14, 9.9999e13, 5e13, 4e13, 2.1e12, 1.0e12, 9e11];
    let count = |definition, options: MassFunctionOptions| {
        let halos = HaloMasses::of_friends(&catalogue(&masses), definition).unwrap();
        mass_function(&halos, &MassFunctionOptions { definition, ..options }, &sigma).unwrap()
    };
    let options = MassFunctionOptions { bins_per_decade: 1, ..MassFunctionOptions::default() };
    let found = count(M200c, options.clone());
    assert_eq!((found.halos, found.within_others, found.below_bins, found.without_mass), (5, 1, 1, 0));
    let halos: Vec<usize> = found.bins.iter().map(|bin| bin.halos).collect();
    assert_eq!(halos[..3], [2, 2, 1], "{found:?}");
    let bin = found.bins[0];
    assert!((bin.low_msun_h / 1e12 - 1.0).abs() < 1e-12 && (bin.high_msun_h / 1e13 - 1.0).abs() < 1e-12);
    let expected = 2.0 / (1e6 * std::f64::consts::LN_10);
    assert!((bin.dn_dlnm_h3_mpc3 / expected - 1.0).abs() < 1e-12);
    assert!((bin.error_h3_mpc3 / expected - 1.0 / 2f64.sqrt()).abs() < 1e-12);
    assert!((bin.mass_msun_h - 1.55e12).abs() < 1e3);
    // all groups count by their own masses, from another mass on
    let of_groups = count(Fof, MassFunctionOptions { min_mass_msun_h: Some(2e12), bins_per_decade: 10, ..options });
    assert_eq!((of_groups.halos, of_groups.within_others, of_groups.below_bins), (4, 0, 3));
    assert_eq!(of_groups.bins[0].centre_msun_h, (of_groups.bins[0].low_msun_h * of_groups.bins[0].high_msun_h).sqrt());
    assert!(of_groups.bins[0].low_msun_h >= 2e12 && of_groups.bins[0].despali16_h3_mpc3.is_none());
    assert_eq!(of_groups.table().rows.len(), of_groups.bins.len());
    let without = count(M500c, MassFunctionOptions::default());
    assert_eq!((without.halos, without.without_mass), (0, 7));
}

/// Without a halo there are bins as far as a prediction expects one.
#[test]
fn an_empty_catalogue_shows_what_is_expected() {
    let halos = HaloMasses::of_friends(&catalogue(&[]), M200m).unwrap();
    let found = mass_function(&halos, &MassFunctionOptions::default(), &sigma).unwrap();
    let last = found.bins[found.bins.len() - 1];
    let halos = |bin: &MassBin| {
        let most = bin.tinker08_h3_mpc3.unwrap().max(bin.despali16_h3_mpc3.unwrap());
        most * 1e6 * std::f64::consts::LN_10 / 5.0
    };
    assert!(found.bins.len() > 5 && halos(&last) >= 1.0 && halos(&last) < 10.0, "{last:?}");
}

/// Masses whose σ is not known have bins without predictions.
#[test]
fn predictions_begin_where_sigma_is_known() {
    let halos = HaloMasses::of_friends(&catalogue(&[2e13, 1e10, 2e11]), M200c).unwrap();
    let options = MassFunctionOptions {
        definition: M200c,
        bins_per_decade: 1,
        min_mass_msun_h: Some(1e11),
        ..MassFunctionOptions::default()
    };
    let all = mass_function(&halos, &options, &sigma).unwrap();
    // 1.5 Mpc/h: 1.1e12 Msun/h
    let found = mass_function(&halos, &options, &|radius| sigma(radius).filter(|_| radius > 1.5)).unwrap();
    let without: Vec<bool> = found.bins.iter().map(|bin| bin.tinker08_h3_mpc3.is_none()).collect();
    assert_eq!(without[..3], [true, true, false], "{found:?}");
    assert_eq!(found.bins[0].halos, 1);
    assert_eq!(found.bins[2], all.bins[2]);
    assert_eq!(found.bins[1].despali16_h3_mpc3, None);
}

#[test]
fn what_cannot_be_counted_is_refused() {
    let refused = |options: MassFunctionOptions| options.check().unwrap_err().to_string();
    let some = MassFunctionOptions::default();
    assert!(refused(MassFunctionOptions { bins_per_decade: 0, ..some.clone() }).contains("bins_per_decade = 0"));
    assert!(refused(MassFunctionOptions { min_mass_msun_h: Some(-1.0), ..some.clone() }).contains("min_mass_msun_h"));
    assert!(refused(MassFunctionOptions { min_particles: 0, ..some.clone() }).contains("min_particles = 0"));
    let plain = FofCatalogue { cosmology: None, ..catalogue(&[]) };
    assert!(HaloMasses::of_friends(&plain, M200m).unwrap_err().to_string().contains("need comoving coordinates"));
    let gas = Fixture::blob().build();
    let peaks = crate::halos::peaks::find_halos(&gas, &crate::halos::peaks::HaloOptions::default()).unwrap();
    assert!(HaloMasses::of_peaks(&peaks, Fof).unwrap_err().to_string().contains("finder: \"fof\""));
}

/// Gas without halos and without a least mass: the columns without a row.
#[test]
fn nothing_to_begin_with_leaves_no_bins() {
    let gas = Fixture::uniform(1.0).build();
    let peaks = crate::halos::peaks::find_halos(&gas, &crate::halos::peaks::HaloOptions::default()).unwrap();
    let none = HaloMasses::of_peaks(&peaks, M200m).unwrap();
    let found = mass_function(&none, &MassFunctionOptions::default(), &sigma).unwrap();
    assert_eq!((found.halos, found.bins.len(), found.table().columns.len()), (0, 0, 9));
}
