//! Tests: results of several ranks, threads of this process, have the bits of those of one.

use crate::density_pdf::density_pdf_by;
use crate::error::AnalysisError;
use crate::fixture::{Fixture, Random, gas, norm, particles_at, random_particles, separation, with_particles};
use crate::halos::fof::{FofOptions, find_fof_halos_by};
use crate::halos::mass_function::{HaloMasses, MassFunction, MassFunctionOptions, mass_function};
use crate::halos::overdensity::MassDefinition;
use crate::halos::peaks::{Centre, HaloOptions, find_halos, find_halos_by};
use crate::halos::profile::{ProfileOptions, halo_profiles_by};
use crate::map::{Axis, MapOptions, projection_by, slice_by};
use crate::matter::OneFluid;
use crate::part::Part;
use crate::power_spectrum::{Bins, PowerOptions, Species, power_spectrum_by};
use comove_sim::fields::FieldSet;
use comove_sim::kernels::layout::{DENSITY, GROUP_CELLS, GROUP_VALUES};
use comove_sim::kernels::point::particle::id_of_class;
use comove_sim::parallel::Communicator;
use comove_sim::snapshot::{Pieces, SnapshotPart};
use comove_sim::{HostParticles, HostState, Key, Octree, Snapshot};
use serde::Serialize;

/// What each of so many ranks, which share a snapshot, comes to.
pub(crate) fn on_ranks<R: Send>(
    snapshot: &Snapshot,
    ranks: usize,
    work: impl Fn(&Communicator, &Part) -> R + Sync,
) -> Vec<R> {
    let pieces = std::sync::Arc::new(Pieces::even(&snapshot.state.tree, ranks));
    comove_sim::parallel::on_ranks(ranks, |communicator| {
        let part = part_of(snapshot, &pieces, communicator.rank());
        work(&communicator, &(&part).into())
    })
}

/// What a rank has of a snapshot.
fn part_of(snapshot: &Snapshot, pieces: &std::sync::Arc<Pieces>, rank: usize) -> SnapshotPart {
    let Snapshot { header, state } = snapshot;
    let tree = state.tree.clone();
    let range = |level: usize| pieces.range(rank, level);
    let keys = (0..tree.level_count()).map(|level| tree.level(level)[range(level)].to_vec()).collect();
    let mut own = HostState::without_fields(Octree::share(tree.root_groups(), tree.periodic(), keys));
    for group in (0..tree.level_count()).flat_map(|level| range(level).map(move |n| (level, n))) {
        let group = tree.first_of_level(group.0) + group.1;
        let values = |array: &[f64], of_group: usize| {
            array.get(group * of_group..(group + 1) * of_group).map_or(Vec::new(), <[f64]>::to_vec)
        };
        own.fluid.extend(values(&state.fluid, GROUP_VALUES));
        own.potential.extend(values(&state.potential, GROUP_CELLS));
        own.dark_matter.extend(values(&state.dark_matter, GROUP_CELLS));
    }
    let is_own = |particles: &HostParticles, n: usize| {
        let root = |a: usize| (u64::from(particles.position[a][n]) * u64::from(tree.root_groups()[a])) >> 32;
        let key = Key::new(0, std::array::from_fn(|a| root(a) as u32));
        pieces.rank_of(tree.find(key).expect("level 0 covers the box")) == rank
    };
    own.particles = state.particles.as_ref().map(|all| {
        let of_rank: Vec<usize> = (0..all.len()).filter(|&n| is_own(all, n)).collect();
        HostParticles {
            particle_mass: all.particle_mass,
            position: all.position.each_ref().map(|column| of_rank.iter().map(|&n| column[n]).collect()),
            velocity: all.velocity.each_ref().map(|column| of_rank.iter().map(|&n| column[n]).collect()),
            id: of_rank.iter().map(|&n| all.id[n]).collect(),
        }
    });
    let snapshot = Snapshot { header: header.clone(), state: own };
    SnapshotPart { snapshot, tree, pieces: pieces.clone(), rank }
}

/// Gas and dark matter in halos, most of which straddle parts or faces of the box.
fn with_dark_matter(fixture: &Fixture) -> Snapshot {
    let mut snapshot = fixture.build();
    let (lengths, mut random) = (snapshot.box_lengths(), Random::new(5));
    let mut halos =
        vec![([0.3, 0.4, 0.55], 900), ([0.0, 0.0, 0.0], 500), ([0.5, 0.02, 0.99], 400), ([0.75, 0.5, 0.5], 60)];
    halos.extend((0..12).map(|n| ([0.08 * f64::from(n), 0.5, 0.25], 40)));
    let mut places = Vec::new();
    for (centre, count) in halos {
        for _ in 0..count {
            let (r, direction) = (0.02 * random.unit().powi(2), random.direction());
            let place = std::array::from_fn(|a| (centre[a] + r * direction[a]) * lengths[a]);
            places.push((place, std::array::from_fn(|_| random.normal())));
        }
    }
    places
        .extend((0..6000).map(|_| (lengths.map(|length| length * random.unit()), [0, 1, 2].map(|_| random.normal()))));
    let mass = 0.84 * lengths.iter().product::<f64>() / places.len() as f64;
    let mut particles = particles_at(places, lengths, mass);
    // a few of eight times the mass
    particles.id.iter_mut().step_by(50).for_each(|id| *id = id_of_class(1, *id).expect("a small number"));
    let particles = particles.in_file_order(&snapshot.state.tree);
    // denser where the gas is, and nowhere equally dense
    let fluid = snapshot.state.fluid.chunks_exact(GROUP_VALUES);
    let density = fluid.flat_map(|group| &group[DENSITY * GROUP_CELLS..][..GROUP_CELLS]);
    snapshot.state.dark_matter = density.map(|gas| gas * (4.0 + random.unit())).collect();
    with_particles(snapshot, particles)
}

/// Drops the gas of a snapshot.
fn without_gas(mut snapshot: Snapshot) -> Snapshot {
    snapshot.header.fields = FieldSet::without_gas();
    snapshot.state.fluid.clear();
    snapshot
}

/// Compares results of several ranks with those of one for snapshots with dark matter, with gas and, unless `needs_gas`,
/// without.
fn compare_dark_matter<R: Serialize>(
    needs_gas: bool,
    work: impl Fn(&Communicator, &Part) -> Result<Option<R>, AnalysisError> + Sync,
) {
    for (name, fixture) in [("blob", Fixture::blob()), ("long", Fixture::long()), ("clumps", clumps())] {
        let snapshot = with_dark_matter(&fixture);
        let alone = if needs_gas { None } else { Some(without_gas(snapshot.clone())) };
        for snapshot in [Some(snapshot), alone].into_iter().flatten() {
            same_on_ranks(name, &snapshot, &[2, 3, 4, 11], &work);
        }
    }
}

/// Compares results of several ranks with those of one.
fn same_on_ranks<R: Serialize>(
    name: &str,
    snapshot: &Snapshot,
    ranks: &[usize],
    work: impl Fn(&Communicator, &Part) -> Result<Option<R>, AnalysisError> + Sync,
) {
    let text = |communicator: &Communicator, part: &Part| {
        let found = work(communicator, part).unwrap();
        assert_eq!(found.is_some(), communicator.rank() == 0);
        serde_json::to_string(&found).unwrap()
    };
    let alone = text(&Communicator::alone(), &snapshot.into());
    for &ranks in ranks {
        let found = on_ranks(snapshot, ranks, text);
        assert!(found[0] == alone, "{name} on {ranks} ranks: {} {}", found[0], alone);
    }
}

/// Compares what ranks find of every fixture with what one finds: more ranks than root groups too.
fn compare<R: Serialize>(work: impl Fn(&Communicator, &Part) -> Result<Option<R>, AnalysisError> + Sync) {
    for (name, fixture) in [("blob", Fixture::blob()), ("long", Fixture::long()), ("clumps", clumps())] {
        let ranks = if name == "clumps" { &[2, 3, 5, 11][..] } else { &[2, 3, 5, 11, 67] };
        same_on_ranks(name, &fixture.build(), ranks, &work);
    }
}

#[test]
fn power_spectra() {
    for (level, bins) in [(0, Bins::Linear), (1, Bins::PerDecade(7)), (2, Bins::Linear)] {
        let options = PowerOptions { level, bins, deconvolve: level == 0, ..PowerOptions::default() };
        compare(|communicator, part| power_spectrum_by(communicator, part, &options, 1000));
    }
}

#[test]
fn power_spectra_of_dark_matter() {
    for (level, species) in [(0, Species::Matter), (1, Species::DarkMatter), (1, Species::Cross)] {
        let options = PowerOptions { level, species, ..PowerOptions::default() };
        compare_dark_matter(species == Species::Cross, |communicator, part| {
            power_spectrum_by(communicator, part, &options, 1000)
        });
    }
}

/// The memory limit is that of a rank.
#[test]
fn a_grid_has_room_on_several_ranks() {
    let snapshot = Fixture::blob().build();
    let options = PowerOptions { level: 2, ..PowerOptions::default() };
    for (ranks, fits) in [(1, false), (2, true)] {
        let found =
            on_ranks(&snapshot, ranks, |communicator, part| power_spectrum_by(communicator, part, &options, 8).is_ok());
        assert_eq!(found, vec![fits; ranks]);
    }
}

#[test]
fn density_pdfs() {
    for bins in [3, 40] {
        compare(|communicator, part| density_pdf_by(communicator, part, bins));
    }
}

#[test]
fn slices_and_projections() {
    for (axis, field) in [(Axis::X, "temperature"), (Axis::Y, "overdensity"), (Axis::Z, "density")] {
        for center in [None, Some([0.9, 0.01, 0.13])] {
            let width_mpc_h = center.map(|_| 0.24);
            let options = MapOptions {
                field: field.into(),
                axis,
                pixels: Some(50),
                center,
                width_mpc_h,
                depth_mpc_h: width_mpc_h,
                patches: true,
            };
            compare(|communicator, part| slice_by(communicator, part, &options));
            compare(|communicator, part| projection_by(communicator, part, &options));
        }
    }
}

/// The mass function without predictions, on the rank that has the halos.
fn counts(masses: Option<HaloMasses>) -> Result<Option<MassFunction>, AnalysisError> {
    masses.map(|masses| mass_function(&masses, &MassFunctionOptions::default(), &|_| None)).transpose()
}

/// Friends of friends across parts and faces of the box, with spherical masses, profiles and mass function.
#[test]
fn friends_of_friends() {
    let options = FofOptions { linking_length: 0.2, min_particles: 20 };
    compare_dark_matter(false, |communicator, part| {
        let matter = OneFluid::by(communicator, part);
        let found = find_fof_halos_by(communicator, part, &options)?;
        let sizes: Vec<usize> = found.iter().flat_map(|found| &found.halos).map(|halo| halo.particles).collect();
        assert!(communicator.rank() > 0 || sizes.len() > 8 && sizes[0] > 400, "{sizes:?}");
        let halos: Vec<_> = found.iter().flat_map(|found| &found.halos).map(Into::into).collect();
        let profiles = halo_profiles_by(communicator, part, &matter, &halos, &ProfileOptions::default())?;
        let masses = found.as_ref().map(|found| HaloMasses::of_friends(found, MassDefinition::Fof)).transpose()?;
        Ok(found.zip(profiles).zip(counts(masses)?))
    });
}

/// One group that spans all parts of the box.
#[test]
fn a_group_on_all_ranks() {
    let mut snapshot = clumps().build();
    let place = |n: u32| [f64::from(n) / 640.0 + 0.0004, (f64::from(n) / 160.0).fract(), (f64::from(n) / 40.0).fract()];
    let field = (0..8000).map(|n| [n % 20, n / 20 % 20, n / 400].map(|c| (f64::from(c) + 0.5) / 20.0));
    let chain = (0..640).flat_map(|n| (0..40).map(move |m| place(n).map(|x| x + 1e-5 * f64::from(m))));
    let places: Vec<_> = chain.chain(field).map(|x| (x, x.map(|x| x.sin()))).collect();
    let particles = particles_at(places, [1.0; 3], 0.84 / 33600.0).in_file_order(&snapshot.state.tree);
    snapshot.state.dark_matter = vec![5.0; snapshot.state.tree.group_count() * GROUP_CELLS];
    let snapshot = with_particles(snapshot, particles);
    let options = FofOptions { linking_length: 0.99, min_particles: 8 };
    same_on_ranks("chain", &snapshot, &[2, 3, 4, 8], |communicator, part| {
        let found = find_fof_halos_by(communicator, part, &options)?;
        assert!(found.iter().all(|found| found.halos[0].particles >= 25_600), "{found:?}");
        Ok(found)
    });
}

/// Projections of the whole box and of a window across its faces; many particles have neighbours on other ranks.
#[test]
fn projections_of_particles() {
    for (axis, field, center) in
        [(Axis::X, "matter_density", None), (Axis::Z, "dark_matter_density", Some([0.9, 0.01, 0.13]))]
    {
        let width_mpc_h = center.map(|_| 0.24);
        let options = MapOptions {
            field: field.into(),
            axis,
            pixels: Some(50),
            center,
            width_mpc_h,
            depth_mpc_h: width_mpc_h,
            patches: false,
        };
        compare_dark_matter(false, |communicator, part| projection_by(communicator, part, &options));
        compare_dark_matter(false, |communicator, part| slice_by(communicator, part, &options));
    }
    // fewer particles on a rank than a cloud holds; faces that are not periodic
    let options = MapOptions { field: "dark_matter_density".into(), pixels: Some(30), ..MapOptions::default() };
    for (count, periodic) in [(40, true), (500, false)] {
        let mut snapshot = Fixture::uniform(1.0).build();
        snapshot.state.tree = Octree::new([2; 3], [periodic; 3]);
        snapshot.state.dark_matter = vec![0.0; snapshot.state.tree.group_count() * GROUP_CELLS];
        let particles = random_particles(count, [1.0; 3], 8).in_file_order(&snapshot.state.tree);
        let snapshot = with_particles(snapshot, particles);
        same_on_ranks("few", &snapshot, &[2, 5, 8], |communicator, part| projection_by(communicator, part, &options));
    }
}

/// Density peaks of all matter with spherical masses, gas fractions, profiles and mass function.
#[test]
fn density_peaks_of_all_matter() {
    let options = HaloOptions { delta: 20.0, ..HaloOptions::default() };
    compare_dark_matter(true, |communicator, part| {
        let matter = OneFluid::by(communicator, part);
        let found = find_halos_by(communicator, part, &matter, &options)?;
        let halos: Vec<_> = found.iter().flat_map(|found| &found.halos).map(Into::into).collect();
        let profiles = halo_profiles_by(communicator, part, &matter, &halos, &ProfileOptions::default())?;
        let masses = found.as_ref().map(|found| HaloMasses::of_peaks(found, MassDefinition::M200m)).transpose()?;
        Ok(found.zip(profiles).zip(counts(masses)?))
    });
}

/// With their profiles, which are those of the halos that the first rank has.
#[test]
fn halos_and_profiles() {
    let cases = [(Centre::Peak, 20.0, 32), (Centre::DensityWeighted, 8.0, 8), (Centre::Peak, 1.5, 1)];
    for (centre, delta, min_cells) in cases {
        let options = HaloOptions { delta, centre, min_cells, ..HaloOptions::default() };
        compare(|communicator, part| {
            let matter = OneFluid::by(communicator, part);
            let found = find_halos_by(communicator, part, &matter, &options)?;
            let halos: Vec<_> = found.iter().flat_map(|found| &found.halos).map(Into::into).collect();
            let profiles = halo_profiles_by(communicator, part, &matter, &halos, &ProfileOptions::default())?;
            Ok(found.zip(profiles))
        });
    }
}

/// A weak peak between two clumps, whose sphere covers both, is a sub-peak: all ranks measure how much of it they claim.
#[test]
fn a_saddle_is_a_sub_peak() {
    let snapshot = saddle().build();
    let options = HaloOptions { delta: 20.0, ..HaloOptions::default() };
    let text = |communicator: &Communicator, part: &Part| {
        let matter = OneFluid::by(communicator, part);
        serde_json::to_string(&find_halos_by(communicator, part, &matter, &options).unwrap()).unwrap()
    };
    let found = find_halos(&snapshot, &options).unwrap();
    let sub_peaks: usize = found.halos.iter().map(|halo| halo.sub_peaks).sum();
    assert_eq!((found.halos.len(), found.peaks, sub_peaks), (2, 3, 1), "{found:?}");
    // it is in neither halo, so that its own sphere decides
    let to_middle = |x: [f64; 3]| norm(separation(x, [24.5 / 48.0; 3], 1.0));
    assert!(found.halos.iter().all(|halo| to_middle(halo.position_mpc_h) > halo.radius_mpc_h), "{found:?}");
    let alone = serde_json::to_string(&found).unwrap();
    for ranks in [1, 2, 4] {
        let of_ranks = on_ranks(&snapshot, ranks, text);
        assert!(of_ranks[0] == alone, "{ranks} ranks: {} {alone}", of_ranks[0]);
        assert!(of_ranks[1..].iter().all(|other| other == "null"), "{of_ranks:?}");
    }
}

/// A profile wider than the box is refused by all ranks.
#[test]
fn a_profile_out_of_range_ends_on_all_ranks() {
    let snapshot = Fixture::blob().build();
    let halos = find_halos(&snapshot, &HaloOptions { delta: 20.0, ..HaloOptions::default() }).unwrap().halos;
    let options = ProfileOptions { r_max_mpc_h: Some(0.6), ..ProfileOptions::default() };
    let halos: Vec<_> = halos.iter().map(Into::into).collect();
    let found = on_ranks(&snapshot, 3, |communicator, part| {
        let matter = OneFluid::by(communicator, part);
        halo_profiles_by(communicator, part, &matter, &halos, &options).is_err()
    });
    assert_eq!(found, [true; 3]);
}

/// A field that is not there is refused by all ranks, whatever each has.
#[test]
fn what_is_missing_is_missing_on_all_ranks() {
    let mut snapshot = Fixture::long().build();
    let options = MapOptions { field: "potential".into(), pixels: Some(16), ..MapOptions::default() };
    let is_found = |snapshot: &Snapshot| {
        on_ranks(snapshot, 11, |communicator, part| slice_by(communicator, part, &options).is_ok())
    };
    assert_eq!(is_found(&snapshot), [false; 11]);
    snapshot.state.potential = vec![1.0; snapshot.state.fluid.len() / 6];
    assert_eq!(is_found(&snapshot), [true; 11]);
}

/// Two clumps along the middle of a box of 48³ cells, and between them a weak peak on broad wings.
fn saddle() -> Fixture {
    let clumps: [(usize, f64, f64); 4] = [(17, 400.0, 0.04), (31, 320.0, 0.04), (24, 20.0, 0.03), (24, 35.0, 0.11)];
    let at = |cell: usize| (cell as f64 + 0.5) / 48.0;
    let mut fixture = Fixture::new(move |x| {
        let density = |&(cell, height, width): &(usize, f64, f64)| {
            let r = norm(separation(x, [at(cell), at(24), at(24)], 1.0));
            height * (-(r / width).powi(2)).exp()
        };
        gas(0.5 + clumps.iter().map(density).sum::<f64>(), [0.0; 3], 1.0)
    });
    fixture.root = [3; 3];
    fixture
}

/// Clumps that straddle parts and the boundary of a box of 4³ root groups, with three levels.
fn clumps() -> Fixture {
    let clumps = [
        ([0.02, 0.98, 0.5], 0.05, 80.0),
        ([0.5, 0.5, 0.5], 0.04, 120.0),
        ([0.62, 0.5, 0.5], 0.03, 60.0),
        ([0.25, 0.75, 0.01], 0.05, 70.0),
        ([0.75, 0.25, 0.3], 0.03, 90.0),
    ];
    let nearest = move |x: [f64; 3]| clumps.iter().map(|c| norm(separation(x, c.0, 1.0)) / c.1).fold(9.0, f64::min);
    let mut fixture = Fixture::new(move |x| {
        let density = |c: &([f64; 3], f64, f64)| {
            let r = norm(separation(x, c.0, 1.0)) / c.1;
            c.2 / (0.05 + r * r) * (-0.3 * r).exp()
        };
        let ripple = (40.0 * x[0]).sin() * (31.0 * x[1]).cos() * (37.0 * x[2]).sin();
        let rho = 0.5 + clumps.iter().map(density).sum::<f64>() * (1.0 + 0.3 * ripple);
        gas(rho, [x[1] - 0.3, (7.0 * x[0]).sin(), x[2] * x[0]], 1.0 + rho.sqrt())
    });
    fixture.root = [4; 3];
    fixture.max_level = 2;
    fixture.refine = Box::new(move |level, x, half| nearest(x) < 2.0 / (level + 1) as f64 + half / 0.05);
    fixture
}
