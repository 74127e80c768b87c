//! Slices and projections against the leaf cells.

use super::projection::resolving_pixels;
use super::*;
use crate::cell_fields::{Gas, field_by_name};
use crate::cells::leaf_at;
use crate::fixture::Fixture;
use crate::fixture::{leaf_cells, mean_density};

#[test]
fn a_slice_shows_the_leaf_at_each_pixel() {
    let snapshot = Fixture::blob().build();
    for (axis, frame) in [(Axis::X, [1, 2, 0]), (Axis::Y, [0, 2, 1]), (Axis::Z, [0, 1, 2])] {
        let options = MapOptions {
            field: "temperature".into(),
            axis,
            center: Some([0.02, 0.4, 0.55]),
            width_mpc_h: Some(0.4),
            pixels: 40,
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
    let whole = MapOptions { pixels: 37, axis: Axis::Y, ..MapOptions::default() };
    let expected = mean_density(&snapshot);
    assert!((mean(&whole) / expected - 1.0).abs() < 1e-12);
    let long = Fixture::long().build();
    for (axis, rows) in [(Axis::X, 32), (Axis::Y, 16), (Axis::Z, 32)] {
        let map = projection(&long, &MapOptions { pixels: 64, axis, ..MapOptions::default() }).unwrap();
        assert_eq!(map.pixels(), [64, rows], "a box of 1 × ½ × ¼");
        let mean = map.values.iter().flatten().sum::<f64>() / (64 * rows) as f64;
        assert!((mean / mean_density(&long) - 1.0).abs() < 1e-12);
    }
    let moved = MapOptions { center: Some([0.9, 0.1, 0.77]), pixels: 50, ..MapOptions::default() };
    assert!((mean(&moved) / expected - 1.0).abs() < 1e-12);
    // a window of whole finest cells: the mass of the cells inside
    let part = MapOptions {
        center: Some([0.25, 0.375, 0.5]),
        width_mpc_h: Some(0.25),
        depth_mpc_h: Some(0.125),
        pixels: 33,
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
        let map = slice(&snapshot, &MapOptions { center, patches: true, pixels: 16, ..MapOptions::default() }).unwrap();
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
        let options = MapOptions { center: Some([0.5, z, z]), pixels: 64, ..MapOptions::default() };
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
        MapOptions { pixels: 3, ..MapOptions::default() },
        MapOptions { center: Some([0.5, 1.2, 0.5]), ..MapOptions::default() },
        MapOptions { center: Some([0.5, f64::NAN, 0.5]), ..MapOptions::default() },
        MapOptions { width_mpc_h: Some(0.0), ..MapOptions::default() },
        MapOptions { field: "velocity".into(), ..MapOptions::default() },
    ] {
        assert!(slice(&snapshot, &options).is_err());
    }
    let map = projection(&snapshot, &MapOptions { pixels: 16, ..MapOptions::default() }).unwrap();
    let table = map.table();
    assert_eq!((table.columns.len(), table.rows.len()), (17, 16));
    assert_eq!(table.columns[0], "y_mpc_h \\ x_mpc_h");
    assert_eq!(table.rows[0][0], Entry::Real(1.0 / 32.0));
    // two levels above 16 root cells: 64 cells a side resolve the box, 32 half of it
    let pixels = |width_mpc_h, pixels| {
        resolving_pixels(&(&snapshot).into(), &MapOptions { width_mpc_h, pixels, ..MapOptions::default() }).unwrap()
    };
    let finest = (1.0 / snapshot.cell_width(2)).round() as usize;
    assert_eq!([pixels(None, 960), pixels(Some(0.5), 960), pixels(None, 20)], [finest, finest / 2, 20]);
}

/// The cells of a slice tile its window, each with the value that the pixels inside it show.
#[test]
fn a_slice_lists_the_cells_it_cuts() {
    let snapshot = Fixture::blob().build();
    for (axis, center) in [(Axis::Z, None), (Axis::X, Some([0.3, 0.97, 0.0])), (Axis::Y, Some([0.5, 0.375, 0.6]))] {
        let map = slice(&snapshot, &MapOptions { axis, center, pixels: 64, ..MapOptions::default() }).unwrap();
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
