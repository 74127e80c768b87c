//! Groups against a search over all pairs, and halos against clusters that were planted.

use super::*;
use crate::fixture::{
    Fixture, Random, heavy_and_light, norm, particles_at, random_particles, separation, with_particles,
};
use std::collections::BTreeSet;

/// Groups by comparing all pairs: sets of identities.
fn by_all_pairs(particles: &HostParticles, lengths: [f64; 3], linking_length: f64) -> BTreeSet<BTreeSet<u64>> {
    let count = particles.len();
    let at = |n: usize| -> [f64; 3] { std::array::from_fn(|a| particles.coordinate(n, a, lengths[a])) };
    let mut group: Vec<usize> = (0..count).collect();
    for n in 0..count {
        for m in 0..n {
            let (x, y) = (at(n), at(m));
            let offset = |a: usize| (x[a] - y[a]) - lengths[a] * ((x[a] - y[a]) / lengths[a]).round();
            if norm([offset(0), offset(1), offset(2)]) <= linking_length && group[n] != group[m] {
                let (from, to) = (group[n], group[m]);
                group.iter_mut().filter(|g| **g == from).for_each(|g| *g = to);
            }
        }
    }
    (0..count)
        .map(|g| (0..count).filter(|&n| group[n] == g).map(|n| particles.id[n]).collect::<BTreeSet<u64>>())
        .filter(|group| !group.is_empty())
        .collect()
}

/// Random particles at several densities, in boxes of several shapes: the same groups, the largest first.
#[test]
fn groups_are_those_of_all_pairs() {
    for (lengths, count, b) in [([1.0, 1.0, 1.0], 1500, 0.8), ([2.0, 1.0, 0.5], 1200, 0.6), ([1.0; 3], 400, 0.25)] {
        let mut particles = random_particles(count, lengths, count as u64);
        // a third of them close together, across a corner
        for n in (0..count).step_by(3) {
            for axis in 0..3 {
                particles.position[axis][n] = ((particles.position[axis][n] as i32) / 6) as u32;
            }
        }
        let linking_length = b * mean_spacing(particles.len() as u64, lengths);
        let found = groups::groups_by(&Communicator::alone(), &particles, lengths, linking_length, 1, &|_| Vec::new());
        let ids = |group: &groups::Group| group.members(&particles).iter().map(|member| member.id).collect();
        let sets: BTreeSet<BTreeSet<u64>> = found.iter().map(ids).collect();
        let expected = by_all_pairs(&particles, lengths, linking_length);
        assert!(sets == expected, "{} groups, not {}", sets.len(), expected.len());
        let largest = sets.iter().map(BTreeSet::len).max().unwrap();
        assert!((3..count).contains(&sets.len()) && largest > 20, "{}", sets.len());
    }
}

/// Two clusters in 10 Mpc/h, one of them across a corner, and particles too far apart to be friends of any.
fn clusters() -> HostParticles {
    let mut random = Random::new(1);
    let mut places = Vec::new();
    for (centre, count, velocity) in [([0.02, 9.95, 10.0], 600, [1.0, -2.0, 0.5]), ([4.0, 5.0, 6.0], 300, [0.0; 3])] {
        for _ in 0..count {
            let r = 0.3 * random.unit();
            let place = random.direction().map(|d| r * d);
            let stirred = velocity.map(|v| v + 0.3 * random.normal());
            places.push((std::array::from_fn(|a| centre[a] + place[a]), stirred));
        }
    }
    for n in 0..512 {
        places.push(([n % 8, n / 8 % 8, n / 64].map(|c| 1.25 * f64::from(c) + 0.6), [0.0; 3]));
    }
    particles_at(places, [10.0; 3], 0.84 * 1000.0 / 1412.0)
}

fn snapshot(particles: HostParticles) -> Snapshot {
    let mut fixture = Fixture::uniform(0.16);
    fixture.box_length = 10.0;
    with_particles(fixture.build(), particles)
}

/// The clusters come back with their numbers, masses, centres and motions.
#[test]
fn two_clusters_across_the_boundary() {
    let catalogue = find_fof_halos(&snapshot(clusters()), &FofOptions::default()).unwrap();
    let numbers: Vec<usize> = catalogue.halos.iter().map(|halo| halo.particles).collect();
    assert_eq!(numbers, [600, 300], "{catalogue:?}");
    assert!((catalogue.fraction_in_halos - 900.0 / 1412.0).abs() < 1e-12);
    let mass = 1000.0 / 1412.0 * snapshot(clusters()).header.units().mass_msun_h();
    assert!((catalogue.particle_mass_msun_h / mass - 1.0).abs() < 1e-12);
    for (halo, centre) in catalogue.halos.iter().zip([[0.02, 9.95, 0.0], [4.0, 5.0, 6.0]]) {
        assert!((halo.mass_msun_h / (halo.particles as f64 * mass) - 1.0).abs() < 1e-12);
        let off = norm(separation(halo.position_mpc_h, centre, 10.0));
        assert!(off < 0.03 && halo.position_mpc_h.iter().all(|x| (0.0..10.0).contains(x)), "{halo:?}");
        // σ = 0.3 · 100 km/s/a with a = 1/2, to 2/√(6N)
        assert!((halo.dispersion_km_s / 60.0 - 1.0).abs() < 0.05, "{halo:?}");
    }
    let [x, y, z] = catalogue.halos[0].velocity_km_s;
    assert!((x - 200.0).abs() < 10.0 && (y + 400.0).abs() < 10.0 && (z - 100.0).abs() < 10.0, "{x} {y} {z}");
    let table = catalogue.table();
    assert_eq!((table.rows.len(), table.columns.len()), (2, table.rows[0].len()));
    let text = serde_json::to_string(&catalogue).unwrap();
    let read: FofCatalogue = serde_json::from_str(&text).unwrap();
    assert_eq!(read, catalogue);
}

/// A third of the particles eight times as heavy: masses, order and motions are those of eight light ones at each place.
#[test]
fn heavy_particles_count_by_their_mass() {
    let mut both = heavy_and_light(clusters());
    both.iter_mut()
        .for_each(|particles| particles.particle_mass = 0.84 * 1000.0 / particles.header().mass_in_class_0() as f64);
    let [heavy, light] = both.map(|particles| find_fof_halos(&snapshot(particles), &FofOptions::default()).unwrap());
    assert_eq!((heavy.halos.len(), heavy.linking_length_mpc_h), (2, light.linking_length_mpc_h));
    assert_eq!(heavy.particle_mass_msun_h, light.particle_mass_msun_h);
    assert_eq!(heavy.fraction_in_halos, light.fraction_in_halos);
    for (heavy, light) in heavy.halos.iter().zip(&light.halos) {
        assert!(heavy.particles < light.particles && heavy.mass_msun_h == light.mass_msun_h);
        assert!((heavy.dispersion_km_s / light.dispersion_km_s - 1.0).abs() < 1e-12);
        for axis in 0..3 {
            assert!((heavy.velocity_km_s[axis] - light.velocity_km_s[axis]).abs() < 1e-9 * light.dispersion_km_s);
        }
    }
}

/// Two equal clumps and a bridge between them: the centre is that of one, not the saddle. A dense satellite with 1% of the
/// particles is no centre.
#[test]
fn centres_are_density_maxima() {
    let mut random = Random::new(2);
    let mut ball = |centre: [f64; 3], radius: f64, count: usize| -> Vec<[f64; 3]> {
        let mut place = || {
            let r = radius * random.unit();
            random.direction().map(|d| r * d)
        };
        (0..count).map(|_| place()).map(|x| std::array::from_fn(|a| centre[a] + x[a])).collect()
    };
    let clumps = [[0.2, 9.9, 5.0], [0.9, 9.9, 5.0]];
    let mut twins = clumps.map(|centre| ball(centre, 0.2, 400)).concat();
    twins.extend((1..20).map(|n| [0.2 + 0.035 * f64::from(n), 9.9, 5.0]));
    let satellite = [ball([5.0; 3], 0.8, 2000), ball([5.6, 5.0, 5.0], 0.01, 24)].concat();
    let from_satellite = |x: &[f64; 3]| norm(separation(*x, [5.6, 5.0, 5.0], 10.0));
    let nearest = satellite[..2000].iter().map(from_satellite).fold(f64::INFINITY, f64::min);
    assert!(nearest < 0.1, "the satellite is linked: {nearest}");
    for (places, centres) in [(twins, &clumps[..]), (satellite, &[[5.0; 3]])] {
        let count = places.len();
        let field = (0..512).map(|n| [n % 8, n / 8 % 8, n / 64].map(|c| 1.25 * f64::from(c) + 0.6));
        let places = places.into_iter().chain(field).map(|x| (x, [0.0; 3]));
        let particles = particles_at(places, [10.0; 3], 0.84 * 1000.0 / (count + 512) as f64);
        let found = find_fof_halos(&snapshot(particles), &FofOptions::default()).unwrap();
        assert!(found.halos[0].particles >= count - count / 20, "{found:?}"); // some lie alone at the edge
        let off = centres.iter().map(|&centre| norm(separation(found.halos[0].position_mpc_h, centre, 10.0)));
        let off = off.fold(f64::INFINITY, f64::min);
        assert!(off < 0.06, "{off} {found:?}");
    }
}

/// The columns of a table do not depend on its rows.
#[test]
fn columns_are_those_of_an_empty_catalogue() {
    let [some, none] = [32, 1000].map(|min_particles| {
        let options = FofOptions { min_particles, ..FofOptions::default() };
        find_fof_halos(&snapshot(clusters()), &options).unwrap()
    });
    assert_eq!((some.halos.len(), none.halos.len()), (2, 0));
    assert_eq!((none.table().columns.len(), none.table().columns), (29, some.table().columns));
}

/// Every bit is the same for particles in another order and for any number of threads.
#[test]
fn neither_order_nor_threads_decide() {
    let particles = clusters();
    let on_threads = |particles: HostParticles, threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| serde_json::to_string(&find_fof_halos(&snapshot(particles), &FofOptions::default()).unwrap()))
            .unwrap()
    };
    let mut order: Vec<usize> = (0..particles.len()).collect();
    let mut random = Random::new(9);
    order.sort_by_cached_key(|_| random.bits());
    let mut shuffled = particles.clone();
    for axis in 0..3 {
        shuffled.position[axis] = order.iter().map(|&n| particles.position[axis][n]).collect();
        shuffled.velocity[axis] = order.iter().map(|&n| particles.velocity[axis][n]).collect();
    }
    shuffled.id = order.iter().map(|&n| particles.id[n]).collect();
    let expected = on_threads(particles.clone(), 1);
    assert_eq!(on_threads(particles, 3), expected);
    assert_eq!(on_threads(shuffled, 2), expected);
}

#[test]
fn what_cannot_be_linked_is_refused() {
    let refused =
        |snapshot: &Snapshot, options: FofOptions| find_fof_halos(snapshot, &options).unwrap_err().to_string();
    let gas = Fixture::uniform(1.0).build();
    let message = refused(&gas, FofOptions::default());
    assert!(message.contains("the snapshot has none") && message.contains("finder: \"peaks\""), "{message}");
    let with = snapshot(clusters());
    for (options, word) in [
        (FofOptions { linking_length: 0.0, ..FofOptions::default() }, "linking_length = 0"),
        (FofOptions { linking_length: f64::NAN, ..FofOptions::default() }, "linking_length = NaN"),
        (FofOptions { min_particles: 3, ..FofOptions::default() }, "min_particles = 3"),
    ] {
        assert!(refused(&with, options).contains(word), "{word}");
    }
    let few = snapshot(random_particles(8, [10.0; 3], 1));
    let options = FofOptions { linking_length: 0.9, ..FofOptions::default() };
    assert!(refused(&few, options).contains("linking lengths"));
}

/// 256³ particles, half of them in clumps: `COMOVE_SLOW_TESTS=1` prints how long it takes.
#[test]
fn large_snapshots_take_seconds() {
    if std::env::var_os("COMOVE_SLOW_TESTS").is_none() {
        return;
    }
    let count = 1 << 24;
    let (lengths, mut random) = ([100.0; 3], Random::new(3));
    let mut particles = HostParticles { particle_mass: 0.84 * 1e6 / count as f64, ..HostParticles::default() };
    let mut centre = [0.0; 3];
    let mut left = 0;
    for n in 0..count {
        if left == 0 && n % 2 == 0 {
            centre = lengths.map(|length| length * random.unit());
            left = (32.0 / random.unit().max(1e-4)) as usize;
        }
        let x = if n % 2 == 0 {
            left -= 1;
            let r = 0.05 * (left as f64).cbrt() * random.unit().powf(1.5);
            let direction = random.direction();
            std::array::from_fn(|a| (centre[a] + r * direction[a]).rem_euclid(lengths[a]))
        } else {
            lengths.map(|length| length * random.unit())
        };
        for axis in 0..3 {
            particles.position[axis].push(HostParticles::fraction(x[axis], lengths[axis]).unwrap());
            particles.velocity[axis].push(random.normal() as f32);
        }
        particles.id.push(n as u64);
    }
    let linking_length = 0.2 * mean_spacing(particles.len() as u64, lengths);
    let start = std::time::Instant::now();
    let groups = groups::groups_by(&Communicator::alone(), &particles, lengths, linking_length, 32, &|_| Vec::new());
    println!("{} groups {:?}", groups.len(), start.elapsed());
    drop(groups);
    let mut fixture = Fixture::uniform(0.16);
    (fixture.box_length, fixture.root) = (100.0, [4; 3]);
    let snapshot = with_particles(fixture.build(), particles);
    let start = std::time::Instant::now();
    let catalogue = find_fof_halos(&snapshot, &FofOptions::default()).unwrap();
    println!("all of {} halos {:?}", catalogue.halos.len(), start.elapsed());
}
