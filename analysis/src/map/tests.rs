//! Slices and projections against the leaf cells.

use super::projection::resolving_pixels;
use super::*;
use crate::cell_fields::{Gas, field_by_name};
use crate::cells::leaf_at;
use crate::fixture::{
    Fixture, heavy_and_light, leaf_cells, mean_density, particles_at, random_particles, with_particles,
};
use crate::ranks::on_ranks;
use comove_sim::snapshot::SnapshotPart;
use comove_sim::{HostParticles, Snapshot};

#[test]
fn a_slice_shows_the_leaf_at_each_pixel() {
    let snapshot = Fixture::blob().build();
    for (axis, frame) in [(Axis::X, [1, 2, 0]), (Axis::Y, [0, 2, 1]), (Axis::Z, [0, 1, 2])] {
        let options = MapOptions {
            field: "temperature".into(),
            axis,
            center: Some([0.02, 0.4, 0.55]),
            width_mpc_h: Some(0.4),
            pixels: Some(40),
            ..MapOptions::default()
        };
        let map = slice(&snapshot, &options).unwrap();
        assert_eq!(map.pixels(), [40, 40]);
        let gas = Gas::new(&snapshot);
        for (i, j) in [(0, 0), (39, 3), (17, 22)] {
            let mut x = [0.02, 0.4, 0.55];
            x[frame[0]] += 0.01 * (i as f64 + 0.5) - 0.2;
            x[frame[1]] += 0.01 * (j as f64 + 0.5) - 0.2;
            let leaf = leaf_at(&snapshot, x);
            assert_eq!(
                map.values[j][i],
                field_by_name("temperature", &snapshot.header.fields).unwrap().value(&gas, &leaf)
            );
        }
    }
}

/// A density map keeps the mass of its window, at any resolution and depth and across the boundary.
#[test]
fn a_projection_keeps_the_mass() {
    let snapshot = Fixture::blob().build();
    let mean = |options: &MapOptions| {
        let map = projection(&snapshot, options).unwrap();
        let [columns, rows] = map.pixels();
        map.values.iter().flatten().sum::<f64>() / (columns * rows) as f64
    };
    let whole = MapOptions { pixels: Some(37), axis: Axis::Y, ..MapOptions::default() };
    let expected = mean_density(&snapshot);
    assert!((mean(&whole) / expected - 1.0).abs() < 1e-12);
    let long = Fixture::long().build();
    for (axis, rows) in [(Axis::X, 32), (Axis::Y, 16), (Axis::Z, 32)] {
        let map = projection(&long, &MapOptions { pixels: Some(64), axis, ..MapOptions::default() }).unwrap();
        assert_eq!(map.pixels(), [64, rows], "a box of 1 × ½ × ¼");
        let mean = map.values.iter().flatten().sum::<f64>() / (64 * rows) as f64;
        assert!((mean / mean_density(&long) - 1.0).abs() < 1e-12);
    }
    let moved = MapOptions { center: Some([0.9, 0.1, 0.77]), pixels: Some(50), ..MapOptions::default() };
    assert!((mean(&moved) / expected - 1.0).abs() < 1e-12);
    // a window of whole finest cells: the mass of the cells inside
    let part = MapOptions {
        center: Some([0.25, 0.375, 0.5]),
        width_mpc_h: Some(0.25),
        depth_mpc_h: Some(0.125),
        pixels: Some(33),
        ..MapOptions::default()
    };
    let inside = |c: &&crate::cells::LeafCell| {
        let [x, y, z] = c.position;
        (0.125..0.375).contains(&x) && (0.25..0.5).contains(&y) && (0.4375..0.5625).contains(&z)
    };
    let cells: Vec<_> = leaf_cells(&snapshot).collect();
    let mass: f64 = cells.iter().filter(inside).map(|c| c.matter_density() * c.volume()).sum();
    assert!((mean(&part) * 0.25 * 0.25 * 0.125 / mass - 1.0).abs() < 1e-12);
}

/// The outlines of a slice tile the window once; a slice between two patches shows those above it.
#[test]
fn outlines_tile_the_window() {
    let snapshot = Fixture::blob().build();
    for center in [None, Some([0.0, 0.97, 0.55])] {
        let map =
            slice(&snapshot, &MapOptions { center, patches: true, pixels: Some(16), ..MapOptions::default() }).unwrap();
        let clip = |low: f64, high: f64, edge: [f64; 2]| high.min(edge[1]) - low.max(edge[0]);
        let area = |p: &PatchOutline| {
            clip(p.low[0], p.high[0], map.horizontal_mpc_h) * clip(p.low[1], p.high[1], map.vertical_mpc_h)
        };
        let covered: f64 = map.patches.iter().map(area).sum();
        assert!((covered - 1.0).abs() < 1e-12, "{covered}");
        assert_eq!(map.patches.iter().map(|p| p.level).max(), Some(2));
    }
}

/// The upper faces of a periodic box are the lower ones.
#[test]
fn a_plane_on_the_upper_face_is_that_on_the_lower_one() {
    let snapshot = Fixture::blob().build();
    let at = |z: f64| {
        let options = MapOptions { center: Some([0.5, z, z]), pixels: Some(64), ..MapOptions::default() };
        let map = slice(&snapshot, &options).unwrap();
        (map.values, map.cells)
    };
    assert_eq!(at(1.0), at(0.0));
    assert!(at(1.0).0.iter().flatten().all(|value| value.is_finite()) && !at(1.0).1.is_empty());
}

#[test]
fn windows_are_checked_and_the_table_of_a_projection_is_its_grid() {
    let snapshot = Fixture::blob().build();
    for options in [
        MapOptions { width_mpc_h: Some(1.5), ..MapOptions::default() },
        MapOptions { pixels: Some(3), ..MapOptions::default() },
        MapOptions { center: Some([0.5, 1.2, 0.5]), ..MapOptions::default() },
        MapOptions { center: Some([0.5, f64::NAN, 0.5]), ..MapOptions::default() },
        MapOptions { width_mpc_h: Some(0.0), ..MapOptions::default() },
        MapOptions { field: "velocity".into(), ..MapOptions::default() },
    ] {
        assert!(slice(&snapshot, &options).is_err());
    }
    let map = projection(&snapshot, &MapOptions { pixels: Some(16), ..MapOptions::default() }).unwrap();
    let table = map.table();
    assert_eq!((table.columns.len(), table.rows.len()), (17, 16));
    assert_eq!(table.columns[0], "y_mpc_h \\ x_mpc_h");
    assert_eq!(table.rows[0][0], Entry::Real(1.0 / 32.0));
    // two levels above 16 root cells: 64 cells a side resolve the box, 32 half of it
    let pixels = |width_mpc_h, pixels: usize| {
        let options = MapOptions { width_mpc_h, pixels: Some(pixels), ..MapOptions::default() };
        resolving_pixels(&(&snapshot).into(), &options).unwrap()
    };
    let finest = (1.0 / snapshot.cell_width(2)).round() as usize;
    assert_eq!([pixels(None, 960), pixels(Some(0.5), 960), pixels(None, 20)], [Some(finest), Some(finest / 2), None]);
}

/// The cells of a slice tile its window, each with the value that the pixels inside it show.
#[test]
fn a_slice_lists_the_cells_it_cuts() {
    let snapshot = Fixture::blob().build();
    for (axis, center) in [(Axis::Z, None), (Axis::X, Some([0.3, 0.97, 0.0])), (Axis::Y, Some([0.5, 0.375, 0.6]))] {
        let map = slice(&snapshot, &MapOptions { axis, center, pixels: Some(64), ..MapOptions::default() }).unwrap();
        let [right, up, depth] = axis.frame();
        let ends =
            |c: &CutCell, a: usize| [c.center_mpc_h[a] - 0.5 * c.width_mpc_h, c.center_mpc_h[a] + 0.5 * c.width_mpc_h];
        let clip = |[low, high]: [f64; 2], edge: [f64; 2]| high.min(edge[1]) - low.max(edge[0]);
        let area = |c: &CutCell| clip(ends(c, right), map.horizontal_mpc_h) * clip(ends(c, up), map.vertical_mpc_h);
        let covered: f64 = map.cells.iter().map(area).sum();
        assert!((covered - 1.0).abs() < 1e-12, "{covered}");
        let holds = |[low, high]: [f64; 2], x: f64| low <= x && x < high;
        assert!(map.cells.iter().all(|c| holds(ends(c, depth), map.depth_mpc_h[0])));
        for (i, j) in [(0, 0), (20, 25), (63, 31)] {
            let x = map.horizontal_mpc_h[0] + (i as f64 + 0.5) / 64.0;
            let y = map.vertical_mpc_h[0] + (j as f64 + 0.5) / 64.0;
            let mut found = map.cells.iter().filter(|c| holds(ends(c, right), x) && holds(ends(c, up), y));
            assert_eq!(found.next().map(|c| c.value), Some(map.values[j][i]));
            assert!(found.next().is_none());
        }
        let table = map.table();
        assert_eq!((table.columns.len(), table.rows.len()), (6, map.cells.len()));
    }
}

/// A slice chooses its pixels so that the finest cells that it cuts are whole ones, also of a part of the box, and shows
/// cells that are smaller than the pixels asked for.
#[test]
fn slices_show_the_finest_cells() {
    let snapshot = Fixture::blob().build();
    let finest = (1.0 / snapshot.cell_width(2)).round() as usize;
    assert_eq!(finest, 128);
    let through = |center: [f64; 3], width_mpc_h: Option<f64>, pixels: Option<usize>| {
        let options = MapOptions { center: Some(center), width_mpc_h, pixels, ..MapOptions::default() };
        slice(&snapshot, &options).unwrap()
    };
    let centre = [0.3, 0.4, 0.55];
    // a plane of the root level alone needs no more than a picture has
    assert_eq!(through([0.3, 0.4, 0.05], None, None).pixels(), [960, 960]);
    let whole = through([0.5, 0.5, 0.55], None, None);
    assert_eq!(whole.pixels(), [1024, 1024]);
    for cell in whole.cells.iter().filter(|cell| cell.level == 2) {
        let edge =
            |a: usize, sign: f64| ((cell.center_mpc_h[a] + sign * 0.5 * cell.width_mpc_h) * 1024.0).round() as usize;
        let shown = (edge(1, -1.0)..edge(1, 1.0)).flat_map(|j| &whole.values[j][edge(0, -1.0)..edge(0, 1.0)]);
        assert_eq!((shown.clone().count(), shown.filter(|value| **value == cell.value).count()), (64, 64));
    }
    let zoomed = through(centre, Some(0.25), None);
    assert!(zoomed.pixels()[0] >= 960 && zoomed.values.iter().flatten().all(|value| value.is_finite()));
    // four finest cells a pixel along each axis: every pixel above one shows one, and all others what is at their centres
    let coarse = through([0.5, 0.5, 0.55], None, Some(32));
    let pixel = |x: f64| (x * 32.0).floor() as usize;
    for cell in coarse.cells.iter().filter(|cell| cell.level == 2) {
        let [i, j] = [0, 1].map(|a| pixel(cell.center_mpc_h[a]));
        let same = |other: &&CutCell| other.level == 2 && [0, 1].map(|a| pixel(other.center_mpc_h[a])) == [i, j];
        assert!(coarse.cells.iter().filter(same).any(|other| other.value == coarse.values[j][i]), "{cell:?}");
    }
    let leaf = leaf_at(&snapshot, [0.9 + 1e-3, 0.9, 0.55]);
    assert_eq!(coarse.values[pixel(0.9)][pixel(0.9)], leaf.fluid[0]);
}

/// A finer cell between the centres of pixels is shown, and nothing beside it.
#[test]
fn a_cell_between_the_centres_of_pixels_is_shown() {
    let cell = |x: f64, y: f64, width_mpc_h: f64, level: usize, value: f64| CutCell {
        center_mpc_h: [x, y, 0.0],
        width_mpc_h,
        level,
        value,
    };
    let window = Window { frame: [0, 1, 2], low: [0.0; 3], high: [4.0, 4.0, 0.0], pixels: [4, 4] };
    let cells = [cell(2.0, 2.0, 4.0, 0, 1.0), cell(1.9, 2.95, 0.1, 3, 7.0), cell(1.5, 0.5, 0.125, 3, 8.0)];
    let values = slice::painted(&window, &cells);
    let expected = |i: usize, j: usize| match (i, j) {
        (1, 2) => 7.0,
        (1, 0) => 8.0,
        _ => 1.0,
    };
    for (j, row) in values.iter().enumerate() {
        assert!(row.iter().enumerate().all(|(i, value)| *value == expected(i, j)), "{values:?}");
    }
}

/// The snapshot with particles and the densities that they leave in cells, which projections do not use.
fn with_dark_matter(snapshot: Snapshot, particles: HostParticles) -> Snapshot {
    let mut snapshot = with_particles(snapshot, particles);
    snapshot.state.dark_matter = vec![1e3; snapshot.state.fluid.len() / 6];
    snapshot
}

/// Particles of a box of 1 × ½ × ¼, most of them in a small clump across a corner.
fn clump(lengths: [f64; 3]) -> HostParticles {
    let spread = random_particles(400, lengths, 21);
    let clump = random_particles(300, [1.0; 3], 22);
    let place = |of: &HostParticles, n: usize, scale: [f64; 3]| std::array::from_fn(|a| of.coordinate(n, a, scale[a]));
    let wide = (0..400).map(|n| place(&spread, n, lengths));
    let narrow = (0..300).map(|n| place(&clump, n, [0.02; 3]).map(|x: f64| x - 0.01));
    particles_at(wide.chain(narrow).map(|x| (x, [0.0; 3])), lengths, 3e-4)
}

/// Projections keep the mass of particles to round-off: of the box and of its halves, along every axis, beside gas too.
#[test]
fn clouds_keep_the_mass() {
    let lengths = [1.0, 0.5, 0.25];
    let [particles, _] = heavy_and_light(clump(lengths));
    let mass = particles.header().mass();
    assert!(mass > 2.0 * particles.len() as f64 * particles.particle_mass);
    let snapshot = with_dark_matter(Fixture::long().build(), particles);
    let of_gas = mean_density(&snapshot) * 0.125;
    let sum = |options: &MapOptions| {
        let map = projection(&snapshot, options).unwrap();
        let [columns, rows] = map.pixels();
        let volume: f64 =
            [map.horizontal_mpc_h, map.vertical_mpc_h, map.depth_mpc_h].iter().map(|e| e[1] - e[0]).product();
        map.values.iter().flatten().sum::<f64>() * volume / (columns * rows) as f64
    };
    for (axis, depth) in [(Axis::X, 1.0), (Axis::Y, 0.5), (Axis::Z, 0.25)] {
        for pixels in [64, 83] {
            let of =
                |field: &str| MapOptions { field: field.into(), axis, pixels: Some(pixels), ..MapOptions::default() };
            let found = sum(&of("dark_matter_density"));
            assert!((found / mass - 1.0).abs() < 1e-12, "{axis:?}: {found} {mass}");
            assert!((sum(&of("matter_density")) / (mass + of_gas) - 1.0).abs() < 1e-12);
            // of a box in two slabs, of which one ends at a clump
            let slab = |place: f64| {
                let mut center = lengths.map(|length| 0.5 * length);
                center[axis.frame()[2]] = place * depth;
                let slab =
                    MapOptions { center: Some(center), depth_mpc_h: Some(0.5 * depth), ..of("dark_matter_density") };
                sum(&slab)
            };
            let halves = slab(0.25) + slab(0.75);
            assert!((halves / mass - 1.0).abs() < 1e-12, "{axis:?}: {halves} {mass}");
        }
    }
    // a window that the clump's corner is in the middle of
    let near = MapOptions {
        field: "dark_matter_density".into(),
        center: Some([0.0; 3]),
        width_mpc_h: Some(0.2),
        pixels: Some(40),
        ..MapOptions::default()
    };
    let clump = (200.0 + 100.0 * 8.0) * 3e-4;
    let found = sum(&near) / clump;
    assert!((1.0..1.4).contains(&found), "the clump and a tenth of the others: {found}");
    assert!(matches!(projection(&Fixture::blob().build(), &near), Err(AnalysisError::MissingField { .. })));
}

/// The bits do not depend on threads, ranks or the order of particles.
#[test]
fn clouds_have_the_same_bits() {
    let lengths = [1.0, 0.5, 0.25];
    let snapshot = with_dark_matter(Fixture::long().build(), clump(lengths));
    let options =
        MapOptions { field: "matter_density".into(), pixels: Some(80), patches: true, ..MapOptions::default() };
    let on_threads = |threads: usize, snapshot: &Snapshot| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| projection(snapshot, &options).unwrap())
    };
    let alone = on_threads(1, &snapshot);
    assert_eq!(on_threads(2, &snapshot), alone);
    let mut shuffled = snapshot.clone();
    let particles = shuffled.state.particles.as_mut().unwrap();
    particles.position.iter_mut().for_each(|column| column.reverse());
    assert_eq!(on_threads(2, &shuffled), alone);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("output.h5");
    let tree = &snapshot.state.tree;
    let particles = snapshot.state.particles.clone().map(|particles| particles.in_file_order(tree));
    let stored = Snapshot { state: comove_sim::HostState { particles, ..snapshot.state.clone() }, ..snapshot.clone() };
    stored.write(&path).unwrap();
    let found = comove_sim::parallel::on_ranks(2, |communicator| {
        let part = SnapshotPart::read(&communicator, &path, &|_| ()).unwrap();
        projection_by(&communicator, &(&part).into(), &options).unwrap()
    });
    assert!(found[0].as_ref() == Some(&alone) && found[1].is_none());
    let found = on_ranks(&stored, 3, |communicator, part| projection_by(communicator, part, &options).unwrap());
    assert!(found[0].as_ref() == Some(&alone));
}

/// Sparse particles show no speckle, and a clump keeps the size that cells can show.
#[test]
fn sparse_particles_are_smooth_and_clumps_are_sharp() {
    let mut fixture = Fixture::uniform(1.0);
    (fixture.root, fixture.max_level) = ([2; 3], 1);
    fixture.refine = Box::new(|_, x, _| x[0] < 0.5);
    let options = MapOptions { field: "dark_matter_density".into(), pixels: Some(64), ..MapOptions::default() };
    // a particle each 1/12: one on twenty root cells, or on 150 of those that are finer
    let count = 1728;
    let random =
        HostParticles { particle_mass: 1.0 / f64::from(count), ..random_particles(count as usize, [1.0; 3], 8) };
    let map = projection(&with_dark_matter(fixture.build(), random), &options).unwrap();
    let values: Vec<f64> = map.values.into_iter().flatten().collect();
    let scatter = (values.iter().map(|v| (v - 1.0).powi(2)).sum::<f64>() / values.len() as f64).sqrt();
    // Poisson: 12 particles in a column of 1/12; of the root's cells 1.7, a scatter of 0.77
    assert!(scatter < 0.25 && values.iter().all(|v| (0.3..2.2).contains(v)), "{scatter}");
    let sparse = random_particles(64, [1.0; 3], 4);
    let tight = (0..64).map(|n| std::array::from_fn(|a| 0.7 + 0.004 * sparse.coordinate(n, a, 1.0)));
    let tight = particles_at(tight.map(|x| (x, [0.0; 3])), [1.0; 3], 1.0 / 64.0);
    let map = projection(&with_dark_matter(fixture.build(), tight), &options).unwrap();
    let inside = |i: usize, j: usize| [i, j].iter().all(|n| (n.abs_diff(45)) <= 5);
    let (mut near, mut all) = (0.0, 0.0);
    for (j, i, value) in
        map.values.iter().enumerate().flat_map(|(j, row)| row.iter().enumerate().map(move |(i, v)| (j, i, v)))
    {
        all += value;
        near += if inside(i, j) { *value } else { 0.0 };
    }
    // a cloud of three root cells is six pixels wide
    assert!(near / all > 0.999 && (all / 4096.0 - 1.0).abs() < 1e-12, "{near} {all}");
}

/// Where faces are not periodic no mass leaves the box.
#[test]
fn clouds_stay_inside_faces() {
    let mut fixture = Fixture::uniform(1.0).build();
    let tree = comove_sim::Octree::new([2; 3], [false; 3]);
    fixture.state.tree = tree;
    let near_faces = [[1e-3, 0.5, 0.999], [0.01, 0.02, 0.03], [0.5; 3]].map(|x| (x, [0.0; 3]));
    let snapshot = with_dark_matter(fixture, particles_at(near_faces, [1.0; 3], 0.25));
    let options = MapOptions { field: "dark_matter_density".into(), pixels: Some(48), ..MapOptions::default() };
    let map = projection(&snapshot, &options).unwrap();
    let mean = map.values.iter().flatten().sum::<f64>() / (48.0 * 48.0);
    assert!((mean / 0.75 - 1.0).abs() < 1e-12, "{mean}");
    // outside of the box there is nothing to divide by
    let beyond = MapOptions { center: Some([0.9, 0.5, 0.5]), width_mpc_h: Some(0.5), ..options };
    let map = projection(&snapshot, &beyond).unwrap();
    assert!(map.values[20][0].is_finite() && map.values[20][47].is_nan());
}

/// Beside dark matter the density of the gas says whose it is.
#[test]
fn labels_name_the_species_where_there_are_two() {
    let alone = Fixture::blob().build();
    let both = with_dark_matter(alone.clone(), random_particles(10, [1.0; 3], 1));
    let symbol = |snapshot: &Snapshot, field: &str| {
        slice(snapshot, &MapOptions { field: field.into(), pixels: Some(16), ..MapOptions::default() }).unwrap().symbol
    };
    let symbols = |snapshot| ["density", "overdensity", "temperature"].map(|field| symbol(snapshot, field));
    assert_eq!(symbols(&alone), ["ρ", "δ", "T"]);
    assert_eq!(symbols(&both), ["ρ(gas)", "δ(gas)", "T"]);
    assert_eq!(symbol(&both, "matter_density"), "ρ(matter)");
}
