use super::*;
use crate::layout::{GROUP, PATCH, cell_coordinate};
use crate::level::level_topology::NONE;
use crate::point::particle::{WHOLE, class_of, drifted, id_of_class, marked, mass_of_class};
use crate::testing::{Mesh, Noise, with_gpu};

const LEVELS: usize = 3;

/// A periodic root, two groups of which are refined in part, one of these again; groups meet across the box's ends.
fn mesh() -> Mesh {
    mesh_with((0..27).map(|n| [n % 3, n / 3 % 3, n / 9]))
}

/// The same with these groups of the finest level.
fn mesh_with(finest: impl Iterator<Item = [i32; 3]>) -> Mesh {
    let finer = (0..32).map(|n| [n % 4, n / 4 % 4, n / 16]).filter(|c| c[0] + c[1] < 6).collect();
    Mesh::new([3, 2, 2], true).with_level(finer).with_level(finest.collect())
}

/// Particles all over the box, many of them in its first corner, and some exactly between cells.
fn particles(count: usize, noise: &mut Noise) -> [Vec<u32>; COLUMNS] {
    let mut random = || (2f64.powi(31) * (noise.next() + 1.0)) as u32;
    let mut columns: [Vec<u32>; COLUMNS] = Default::default();
    for n in 0..count as u32 {
        for column in &mut columns[..3] {
            let x = if n % 3 == 0 { random() } else { random() >> 2 };
            column.push(if n % 7 == 0 { x & 0xFE00_0000 } else { x });
        }
        for column in &mut columns[3..6] {
            column.push(((f64::from(random()) - 2f64.powi(31)) as f32 * 1e-8).to_bits());
        }
        columns[6].push(n);
        columns[7].push(3 * n);
    }
    columns
}

/// The same with classes up to the heaviest, and a mark on every second particle. Most particles are light.
fn with_classes(mut columns: [Vec<u32>; COLUMNS], heaviest: usize) -> [Vec<u32>; COLUMNS] {
    for (n, upper_half) in columns[7].iter_mut().enumerate() {
        let class = if n % 3 == 0 { n / 3 % (heaviest + 1) } else { 0 };
        let id = id_of_class(class, u64::from(*upper_half) << 32).unwrap();
        *upper_half = (if n % 2 == 0 { marked(id) } else { id } >> 32) as u32;
    }
    columns
}

/// The weights of particles in the cells of a level, in key order, by the textbook.
fn expected_mass(mesh: &Mesh, level: usize, columns: &[Vec<u32>; COLUMNS], factors: [f64; 3]) -> Vec<f64> {
    let mut mass = vec![0.0; mesh.levels[level].len() * GROUP_CELLS];
    let cells = mesh.root.map(|n| (n << level) * GROUP as i32);
    for n in 0..columns[0].len() {
        let x: [f64; 3] = std::array::from_fn(|a| {
            let moved = drifted(columns[a][n], f32::from_bits(columns[3 + a][n]), factors[a]);
            f64::from(moved) * 2f64.powi(-32) * f64::from(cells[a]) - 0.5
        });
        for corner in 0..8 {
            let at: [i32; 3] = std::array::from_fn(|a| x[a].floor() as i32 + (corner >> a & 1));
            let weight: f64 = (0..3).map(|a| 1.0 - (x[a] - f64::from(at[a])).abs()).product();
            let at: [i32; 3] = std::array::from_fn(|a| at[a].rem_euclid(cells[a]));
            let group = at.map(|c| c / GROUP as i32);
            if let Some(g) = mesh.levels[level].iter().position(|c| *c == group) {
                let [i, j, k] = at.map(|c| c as usize % GROUP);
                mass[g * GROUP_CELLS + crate::layout::cell(i, j, k)] += weight;
            }
        }
    }
    mass
}

#[test]
fn mass_in_cells_is_that_of_clouds() {
    let device = Device::cpu(2).unwrap();
    let (mesh, mut noise) = (mesh(), Noise::new(3));
    let (locator, columns) = (mesh.locator(), particles(20_000, &mut noise));
    let mut on_device = Particles::from_host(&device, columns.clone()).unwrap();
    let (unit, mut overflow) = (WeightUnit::default(), Overflow::none(&device, u128::MAX).unwrap());
    let factors = [3e7, 1e7, 2e7];
    for level in 0..LEVELS {
        let tables = mesh.tables(level);
        let expected = expected_mass(&mesh, level, &columns, factors);
        // long runs and short ones, in several parts
        for sorted in [false, true] {
            if sorted {
                sort(&device, &locator, &mut on_device, 0, 0);
            }
            let mut mass = Buffer::from_host(&device, vec![7; mesh.group_count() * GROUP_CELLS]).unwrap();
            let parts = [0..5_000, 5_000..20_000].map(|range| Part { range, level, factors });
            deposit(&device, &locator, (level, &tables), &on_device, &parts, unit, (&mut mass, &mut overflow));
            let found = |g: usize| &mass.host()[tables.slots[g] as usize * GROUP_CELLS..][..GROUP_CELLS];
            for (g, expected) in expected.chunks_exact(GROUP_CELLS).enumerate() {
                for (found, expected) in found(g).iter().zip(expected) {
                    // weights have 14 bits an axis, and a cell has few particles
                    let found = *found as f64 / WHOLE as f64;
                    assert!((found - expected).abs() < 1e-4 * (1.0 + expected), "level {level}: {found} {expected}");
                }
            }
            if level == 0 {
                let all: u64 = (0..tables.len()).flat_map(found).sum();
                assert_eq!(all, 20_000 * WHOLE, "mass is exact");
            }
        }
    }
}

#[test]
fn leaf_cells_have_all_mass() {
    leaves_have_all_mass(0);
    leaves_have_all_mass(5);
}

/// * `heaviest`: class of the heaviest particles
fn leaves_have_all_mass(heaviest: usize) {
    let device = Device::cpu(2).unwrap();
    let (unit, mut overflow) = (WeightUnit::for_heaviest(heaviest), Overflow::none(&device, u128::MAX).unwrap());
    // none of the finest beside the root
    let (mesh, mut noise) = (mesh_with((0..12).map(|n| [1 + n % 2, n / 2 % 3, 1 + n / 6])), Noise::new(5));
    let locator = mesh.locator();
    // few and many in a group
    for count in [3_000, 60_000] {
        let columns = with_classes(particles(count, &mut noise), heaviest);
        let mut on_device = Particles::from_host(&device, columns).unwrap();
        let firsts = sort(&device, &locator, &mut on_device, 0, 0);
        let part = |level: usize| Part { range: firsts[level]..firsts[level + 1], level, factors: [0.0; 3] };
        let mut mass = Buffer::from_host(&device, vec![7; mesh.group_count() * GROUP_CELLS]).unwrap();
        for level in 0..LEVELS {
            let parts: Vec<Part> = (level.saturating_sub(1)..LEVELS).map(part).collect();
            let to = (&mut mass, &mut overflow);
            deposit(&device, &locator, (level, &mesh.tables(level)), &on_device, &parts, unit, to);
        }
        let mut in_leaves = 0;
        for (level, group) in (0..LEVELS).flat_map(|level| mesh.levels[level].iter().map(move |group| (level, group))) {
            let slot = locator.slot(level, group.map(|c| c as u32)) as usize;
            for c in 0..GROUP_CELLS {
                let at = cell_coordinate(c);
                let patch = std::array::from_fn(|a| 2 * group[a] as u32 + (at[a] / PATCH) as u32);
                if level + 1 == LEVELS || locator.slot(level + 1, patch) == NONE {
                    in_leaves += mass.host()[slot * GROUP_CELLS + c];
                }
            }
        }
        let all = (0..count).map(|n| unit.of(of_upper_half(on_device.columns[7].host()[n]))).sum::<u64>();
        assert_eq!(in_leaves, all * unit.whole());
    }
}

/// What particles of level `own` leave in the cells of another, and where these overflow.
fn left_in_cells(
    device: &Device,
    (level, own): (usize, usize),
    columns: &[Vec<u32>; COLUMNS],
    unit: WeightUnit,
) -> (Vec<u64>, Option<usize>) {
    let mesh = mesh();
    let particles = Particles::from_host(device, columns.clone()).unwrap();
    let mut mass = Buffer::zeros(device, mesh.group_count() * GROUP_CELLS).unwrap();
    let all: u64 = columns[7].iter().map(|&upper_half| unit.of(of_upper_half(upper_half))).sum();
    let mut overflow = Overflow::none(device, u128::from(all) * u128::from(unit.whole())).unwrap();
    let part = Part { range: 0..particles.len(), level: own, factors: [0.0; 3] };
    let to = (&mut mass, &mut overflow);
    deposit(device, &mesh.locator(), (level, &mesh.tables(level)), &particles, &[part], unit, to);
    (mass.to_host(), overflow.cell())
}

/// A particle of class c leaves the bits of 8ᶜ of class 0 at its place, marked or not. Where followed ones alone count, it leaves
/// nothing, nor does one of class 0 with the mark.
#[test]
fn a_heavy_particle_is_as_many_light_ones() {
    let device = Device::cpu(2).unwrap();
    let some = particles(600, &mut Noise::new(21));
    for heaviest in [1, 2, 3] {
        let heavy = with_classes(some.clone(), heaviest);
        let class = |n: usize| class_of(of_upper_half(heavy[7][n]));
        let copies = |of: &dyn Fn(usize) -> usize| {
            some.each_ref().map(|column| (0..600).flat_map(|n| vec![column[n]; of(n)]).collect::<Vec<u32>>())
        };
        let light = copies(&|n| mass_of_class(class(n)) as usize);
        let followed = copies(&|n| usize::from(class(n) == 0 && n % 2 != 0));
        let lightest = copies(&|n| usize::from(class(n) == 0));
        assert!(light[0].len() > 600 && followed[0].len() < lightest[0].len() && lightest[0].len() < 600);
        for levels in [(0, 0), (1, 1), (1, 2), (2, 1)] {
            let left = |columns, unit| left_in_cells(&device, levels, columns, unit);
            let unit = WeightUnit::for_heaviest(heaviest);
            assert!(left(&heavy, unit) == left(&light, unit), "class {heaviest}, levels {levels:?}");
            let alone = left(&followed, unit);
            assert!(left(&heavy, unit.followed_alone()) == alone, "followed, levels {levels:?}");
        }
    }
}

/// 2¹⁶ particles of class 7 in one cell are one too many for it. Returns what it sees, for comparison between devices.
fn overflow_of(device: &Device) -> Vec<Option<usize>> {
    let mesh = mesh();
    let heavy = (id_of_class(7, 0).unwrap() >> 32) as u32;
    // the centre of a cell, in a run and each before a particle elsewhere
    let centre = [7 << 27, 7 << 26, 7 << 26];
    let cases = [(65_535, 1), (65_536, 1), (65_535, 2), (65_536, 2)];
    cases
        .map(|(count, every)| {
            let mut columns: [Vec<u32>; COLUMNS] =
                std::array::from_fn(|c| vec![if c < 3 { 1 << 31 } else { 0 }; every * count]);
            for n in (0..every * count).step_by(every) {
                (0..3).for_each(|axis| columns[axis][n] = centre[axis]);
                columns[7][n] = heavy;
            }
            let unit = WeightUnit::for_heaviest(7);
            let (mass, cell) = left_in_cells(device, (0, 0), &columns, unit);
            let full = mass.iter().position(|&mass| mass > 65_000 << 48);
            assert_eq!(cell.is_some(), count == 65_536, "{count} {every}");
            assert!(full.is_some() == cell.is_none() && mass.len() == mesh.group_count() * GROUP_CELLS);
            cell.or(full)
        })
        .to_vec()
}

#[test]
fn a_cell_that_overflows_is_found() {
    let found = overflow_of(&Device::cpu(2).unwrap());
    assert!(found.iter().all(|cell| *cell == found[0] && cell.is_some()), "{found:?}");
    with_gpu(|gpu| assert_eq!(overflow_of(gpu), found));
}

#[test]
fn particles_near_edges_are_counted() {
    let device = Device::cpu(2).unwrap();
    let mut columns: [Vec<u32>; COLUMNS] = std::array::from_fn(|_| vec![1 << 31; 6]);
    columns[0][..4].copy_from_slice(&[0, 99, 100, u32::MAX]);
    columns[1][3..6].copy_from_slice(&[0, 0, u32::MAX - 99]);
    let particles = Particles::from_host(&device, columns).unwrap();
    let counts = [[0; 3], [100, 0, 0], [101, 0, 0], [0, 99, 0], [0, 100, 0], [100, 1, 0]];
    assert_eq!(counts.map(|edges| near_edges(&device, &particles, edges)), [0, 3, 4, 2, 3, 4]);
}

/// Values of every level's cells at their centres, `[slots, 16, 16, 16]`.
fn potential<T: Real>(mesh: &Mesh, value: impl Fn([f64; 3]) -> f64) -> Vec<T> {
    let mut values = Vec::new();
    for (level, groups) in mesh.levels.iter().enumerate() {
        for group in groups {
            values.extend((0..GROUP_CELLS).map(|c| {
                let at = crate::layout::cell_coordinate(c);
                let x = std::array::from_fn(|a| {
                    (f64::from(group[a]) * GROUP as f64 + at[a] as f64 + 0.5)
                        / f64::from(mesh.root[a] << level)
                        / GROUP as f64
                });
                T::from_f64(value(x))
            }));
        }
    }
    values
}

#[test]
fn a_kick_is_the_gradient_on_every_level() {
    use std::f64::consts::TAU;
    let device = Device::cpu(2).unwrap();
    let (mesh, mut noise) = (mesh(), Noise::new(4));
    let locator = mesh.locator();
    let phi: Vec<f64> = potential(&mesh, |x| (TAU * x[0]).sin() + 2.0 * (TAU * x[1]).cos() - (TAU * x[2]).sin());
    let phi = Buffer::from_host(&device, phi).unwrap();
    let mut columns = particles(5_000, &mut noise);
    columns[3..6].iter_mut().for_each(|column| column.fill(0));
    let mut on_device = Particles::from_host(&device, columns).unwrap();
    let firsts = sort(&device, &locator, &mut on_device, 0, 0);
    for level in 0..LEVELS {
        // of cells one apart along x
        let factor = 0.5 * f64::from(mesh.root[0] << level) * GROUP as f64;
        let range = firsts[level]..firsts[level + 1];
        assert!(range.len() > 100);
        kick(&device, &locator, level, &mut on_device, range.clone(), &phi, None, factor);
        for n in range {
            let of = |column: usize| on_device.columns[column].host()[n];
            let x = [0, 1, 2].map(|a| f64::from(of(a)) * 2f64.powi(-32));
            let expected = [TAU * (TAU * x[0]).cos(), -2.0 * TAU * (TAU * x[1]).sin(), -TAU * (TAU * x[2]).cos()];
            for axis in 0..3 {
                let scale = f64::from(mesh.root[axis]) / f64::from(mesh.root[0]);
                let found = f64::from(f32::from_bits(of(3 + axis))) * scale;
                // differences over two cells of a 32nd, and means of such cells
                assert!((found - expected[axis]).abs() < 0.15, "level {level} {x:?}: {found} {}", expected[axis]);
            }
        }
    }
}

/// A wave along x, felt at the centres of cells: differences of it have sin θ of its gradient, with the second cells
/// sin θ (1 + b (1 − cos θ)).
#[test]
fn second_cells_count_where_all_are_there() {
    use std::f64::consts::TAU;
    let device = Device::cpu(2).unwrap();
    let mesh = mesh();
    let locator = mesh.locator();
    let phi = Buffer::from_host(&device, potential::<f64>(&mesh, |x| (TAU * x[0]).sin())).unwrap();
    for level in 0..LEVELS {
        let cells = locator.cells(level);
        let mut columns: [Vec<u32>; COLUMNS] = Default::default();
        for group in &mesh.levels[level] {
            for i in 0..GROUP as u32 {
                let at = [group[0] as u32 * GROUP as u32 + i, group[1] as u32 * 16 + 8, group[2] as u32 * 16 + 8];
                for axis in 0..3 {
                    let centre = (f64::from(at[axis]) + 0.5) / f64::from(cells[axis]);
                    columns[axis].push((centre * 2f64.powi(32)).round() as u32);
                }
            }
        }
        let count = columns[0].len();
        columns[3..].iter_mut().for_each(|column| column.resize(count, 0));
        let mut particles = Particles::from_host(&device, columns).unwrap();
        kick(&device, &locator, level, &mut particles, 0..count, &phi, None, 1.0);
        let theta = TAU / f64::from(cells[0]);
        let (mut with, mut without, mut all) = (0, 0, 0);
        for n in 0..count {
            let x = f64::from(particles.columns[0].host()[n]) * 2f64.powi(-32);
            let found = f64::from(f32::from_bits(particles.columns[3].host()[n]));
            let is = |b: f64| {
                let expected = 2.0 * (TAU * x).cos() * theta.sin() * (1.0 + b * (1.0 - theta.cos()));
                // a position is exact to some 2⁻²⁶ of a cell
                (found - expected).abs() < 1e-5 * theta
            };
            if (TAU * x).cos().abs() < 0.1 {
                continue; // one is like the other
            }
            all += 1;
            with += usize::from(is(SECOND_CELLS));
            without += usize::from(is(0.0));
        }
        match level {
            0 => assert_eq!((with, without), (0, all)),
            _ => assert!(with > all / 4 && without > 0 && with + without <= all, "{level}: {with}, {without} of {all}"),
        }
    }
}

/// What cells receive from all particles, and the bits of their velocities by identity after a kick.
fn received<T: Real>(
    mesh: &Mesh,
    (level, own): (usize, usize),
    columns: &[Vec<u32>; COLUMNS],
    drift: [f64; 3],
) -> (Vec<u64>, Vec<[u32; 4]>) {
    let device = Device::cpu(2).unwrap();
    let (locator, slots, count) = (mesh.locator(), mesh.group_count(), columns[0].len());
    let mut noise = Noise::new(11);
    let [now, from, to] = [(); 3].map(|()| {
        let values: Vec<T> = (0..slots * GROUP_CELLS).map(|_| T::from_f64(noise.next())).collect();
        Buffer::from_host(&device, values).unwrap()
    });
    let places: crate::DeviceTable<u32> =
        (0..slots as u32).map(|slot| if slot % 5 == 0 { NONE } else { slot }).collect();
    let timed = TimedPotential { from: &from, to: &to, places: &places, weight: T::from_f64(0.3) };
    let mut particles = Particles::from_host(&device, columns.clone()).unwrap();
    let mut mass = Buffer::zeros(&device, slots * GROUP_CELLS).unwrap();
    deposit(
        &device,
        &locator,
        (level, &mesh.tables(level)),
        &particles,
        &[Part { range: 0..count, level: own, factors: drift }],
        WeightUnit::for_heaviest(5),
        (&mut mass, &mut Overflow::none(&device, u128::MAX).unwrap()),
    );
    kick(&device, &locator, level, &mut particles, 0..count, &now, Some(&timed), 0.1);
    let mut kicked: Vec<_> =
        (0..count).map(|n| [6, 3, 4, 5].map(|column| particles.columns[column].host()[n])).collect();
    kicked.sort_unstable();
    (mass.host().to_vec(), kicked)
}

/// Particles that are many in a group take a tile of it; in any other order each is on its own.
#[test]
fn particles_get_the_same_together_and_alone() {
    let device = Device::cpu(2).unwrap();
    let (mesh, mut noise) = (mesh(), Noise::new(12));
    let alone = with_classes(particles(20_000, &mut noise), 5);
    let mut sorted = Particles::from_host(&device, alone.clone()).unwrap();
    // some have left their group since
    sort(&device, &mesh.locator(), &mut sorted, 0, 0);
    drift(&device, &mut sorted, 0..20_000, [2e6; 3]);
    let together = sorted.columns.map(|column| column.host().to_vec());
    let mut alone = together.clone();
    for n in 0..20_000 {
        for column in 0..COLUMNS {
            alone[column][n] = together[column][n * 7_919 % 20_000];
        }
    }
    for level in 0..LEVELS {
        for (drift, own) in [([0.0; 3], level), ([1e6, -2e6, 1e6], level + 1)] {
            let [a, b] = [&together, &alone].map(|columns| received::<f32>(&mesh, (level, own), columns, drift));
            assert!(a == b, "level {level}, single precision");
            let [a, b] = [&together, &alone].map(|columns| received::<f64>(&mesh, (level, own), columns, drift));
            assert!(a == b, "level {level}, double precision");
        }
    }
}

#[test]
fn sorted_particles_are_at_home_and_whole() {
    let device = Device::cpu(2).unwrap();
    let (mesh, mut noise) = (mesh(), Noise::new(5));
    let (locator, columns) = (mesh.locator(), particles(20_000, &mut noise));
    let mut on_device = Particles::from_host(&device, columns).unwrap();
    let mut firsts = Vec::new();
    // of no order at first; then most stay where they are, and at last few
    for factor in [1e7, 1e5, 1e8] {
        drift(&device, &mut on_device, 0..20_000, [factor; 3]);
        let before = on_device.columns.each_ref().map(|column| column.host().to_vec());
        let in_place = |on_device: &Particles| {
            let identities = on_device.columns[6].host().iter().zip(&before[6]);
            identities.filter(|(now, before)| now == before).count()
        };
        firsts = sort(&device, &locator, &mut on_device, 0, 0);
        assert_eq!(in_place(&on_device) > 15_000, factor == 1e5);
        let number = |n: usize| {
            let position = [0, 1, 2].map(|a| on_device.columns[a].host()[n]);
            locator.numbers[locator.home(position).0 as usize]
        };
        assert!((1..20_000).all(|n| number(n - 1) <= number(n)));
        for level in 0..LEVELS {
            let groups = locator.first[level]..locator.first[level + 1];
            assert!((firsts[level]..firsts[level + 1]).all(|n| groups.contains(&number(n))));
        }
        let mut place = vec![0; 20_000];
        (0..20_000).for_each(|n| place[before[6][n] as usize] = n);
        for n in 0..20_000 {
            let was = place[on_device.columns[6].host()[n] as usize];
            assert!((0..COLUMNS).all(|c| on_device.columns[c].host()[n] == before[c][was]));
        }
    }
    // finer levels alone: what has left them stays with the coarsest of them
    let first = firsts[1];
    drift(&device, &mut on_device, first..20_000, [1e8; 3]);
    let again = sort(&device, &locator, &mut on_device, first, 1);
    assert_eq!((again.len(), again[0], again[2]), (3, first, 20_000));
    let level = |n: usize| {
        let position = [0, 1, 2].map(|a| on_device.columns[a].host()[n]);
        locator.home(position).1
    };
    assert!((again[0]..again[1]).all(|n| level(n) <= 1) && (again[1]..again[2]).all(|n| level(n) == 2));
    assert!((again[0]..again[1]).any(|n| level(n) == 0));
}

#[test]
fn no_particles_are_sorted() {
    let device = Device::cpu(2).unwrap();
    let mut none = Particles::from_host(&device, Default::default()).unwrap();
    assert_eq!(sort(&device, &mesh().locator(), &mut none, 0, 0), [0; LEVELS + 1]);
}

#[test]
fn sums_are_those_of_the_velocities() {
    let device = Device::cpu(2).unwrap();
    let mut columns = particles(10_000, &mut Noise::new(6));
    columns[4][77] = f32::NAN.to_bits();
    columns[5][9_999] = 1e9f32.to_bits();
    let on_device = Particles::from_host(&device, columns.clone()).unwrap();
    let found = sums(&device, &on_device, 5..10_000, 1).wait()[0];
    assert_eq!(found.invalid, 2);
    let velocity = |n: usize, axis: usize| f64::from(f32::from_bits(columns[3 + axis][n]));
    let valid = || (5..9_999).filter(|n| *n != 77);
    for axis in 0..3 {
        let sum: f64 = valid().map(|n| velocity(n, axis)).sum();
        assert!((found.momentum()[axis] - sum).abs() < 1e-3);
    }
    let square: f64 = valid().map(|n| (0..3).map(|axis| velocity(n, axis).powi(2)).sum::<f64>()).sum();
    assert!((found.square() / square - 1.0).abs() < 1e-6);
    let fastest = valid().flat_map(|n| [0, 1, 2].map(|axis| velocity(n, axis).abs())).fold(0.0, f64::max);
    assert_eq!(f64::from(found.fastest), fastest);
}

/// Everything of both devices, one operation after another.
fn devices_agree<T: Real>(gpu: &Device) {
    let cpu = Device::cpu(2).unwrap();
    let (mesh, mut noise) = (mesh(), Noise::new(8));
    let (locator, columns) = (mesh.locator(), with_classes(particles(3_000, &mut noise), 4));
    let slots = mesh.group_count();
    let [early, late, now]: [Vec<T>; 3] =
        [(); 3].map(|()| (0..slots * GROUP_CELLS).map(|_| T::from_f64(noise.next())).collect());
    let fluid: Vec<T> = (0..slots * GROUP_VALUES).map(|_| T::from_f64(noise.next())).collect();
    let places: crate::DeviceTable<u32> =
        (0..slots as u32).map(|slot| if slot % 5 == 0 { NONE } else { slot }).collect();
    let [expected, found] = [&cpu, gpu].map(|device| {
        let mut particles = Particles::from_host(device, columns.clone()).unwrap();
        let mut seen = Vec::new();
        let firsts = sort(device, &locator, &mut particles, 0, 0);
        drift(device, &mut particles, firsts[1]..3_000, [3e7, 1e7, -2e7]);
        let again = sort(device, &locator, &mut particles, firsts[1], 1);
        seen.extend(firsts.iter().chain(&again).map(|&n| n as u64));
        let [from, to, pool] = [&early, &late, &now].map(|values| Buffer::from_host(device, values.clone()).unwrap());
        let timed = TimedPotential { from: &from, to: &to, places: &places, weight: T::from_f64(0.3) };
        let mut mass = Buffer::zeros(device, slots * GROUP_CELLS).unwrap();
        // no sum can exceed 64 bits
        let mut overflow = Overflow::none(device, 0).unwrap();
        let gas = Buffer::from_host(device, fluid.clone()).unwrap();
        let mut density = Buffer::<T>::zeros(device, slots * GROUP_CELLS).unwrap();
        for level in 0..LEVELS {
            let tables = mesh.tables(level);
            // ranges of groups: their order differs from device to device
            let parts = [
                Part { range: 0..again[0], level: level.saturating_sub(1), factors: [0.0; 3] },
                Part { range: again[0]..3_000, level: 2, factors: [1e6, -1e6, 3e6] },
            ];
            let to = (&mut mass, &mut overflow);
            deposit(device, &locator, (level, &tables), &particles, &parts, WeightUnit::for_heaviest(4), to);
            matter_density(device, &tables, &mass, 1e-12, Some(&gas), &mut density);
            let first = if level == 0 { 0 } else { again[level - 1] };
            let end = again[level];
            let coarse = (level == 2).then_some(&timed);
            kick(device, &locator, level, &mut particles, first..end, &pool, coarse, 0.1);
        }
        seen.extend(mass.to_host());
        seen.extend(density.to_host().into_iter().map(T::bits));
        seen.push(hash(device, &particles));
        seen.push(near_edges(device, &particles, [1 << 28, 0, 1 << 30]));
        for sums in sums(device, &particles, again[0]..3_000, 5).wait() {
            seen.extend(sums.momentum.map(|sum| sum as u64));
            seen.extend([sums.square as u64, u64::from(sums.fastest.to_bits()), sums.invalid]);
        }
        assert_eq!(overflow.cell(), None);
        seen
    });
    let differs = (0..expected.len()).filter(|&n| expected[n] != found[n]).collect::<Vec<_>>();
    assert!(
        differs.is_empty(),
        "{} of {} numbers differ, the first {:?}",
        differs.len(),
        expected.len(),
        differs.first()
    );
}

/// Particles of much finer levels, most of them in a few cells, of which some are beyond the faces of a group; also where a sum
/// exceeds 64 bits.
#[test]
fn a_gpu_adds_particles_in_few_cells_alike() {
    with_gpu(|gpu| {
        let mesh = mesh();
        let locator = mesh.locator();
        let mut columns = with_classes(particles(3_001, &mut Noise::new(21)), 7);
        for column in &mut columns[..3] {
            // a group is a third of the box along x, half of it along y and z
            let centre = |n: usize| if n % 5 < 3 { 0x5555_5555 } else { 0x8000_0000u32 };
            column.iter_mut().enumerate().filter(|(n, _)| n % 9 != 0).for_each(|(n, x)| *x = centre(n) + (*x >> 7));
        }
        let units = [2, 7].map(WeightUnit::for_heaviest);
        for (level, unit) in [(0, units[0]), (0, units[1]), (1, units[1]), (0, units[0].followed_alone())] {
            let tables = mesh.tables(level);
            let [expected, found] = [&Device::cpu(2).unwrap(), gpu].map(|device| {
                let particles = Particles::from_host(device, columns.clone()).unwrap();
                let mut mass = Buffer::zeros(device, mesh.group_count() * GROUP_CELLS).unwrap();
                let mut overflow = Overflow::none(device, u128::MAX).unwrap();
                let parts = [
                    Part { range: 0..2_000, level: level + 4, factors: [0.0; 3] },
                    Part { range: 2_000..3_001, level: level + 5, factors: [1e6, -1e6, 3e6] },
                ];
                deposit(device, &locator, (level, &tables), &particles, &parts, unit, (&mut mass, &mut overflow));
                (mass.to_host(), overflow.cell())
            });
            assert_eq!(found.1.is_some(), expected.1.is_some(), "level {level}, {unit:?}");
            assert!(found.0 == expected.0, "level {level}, {unit:?}");
        }
    });
}

#[test]
fn a_gpu_moves_particles_alike() {
    with_gpu(|gpu| {
        devices_agree::<f32>(gpu);
        devices_agree::<f64>(gpu);
    });
}
