//! A field averaged along the line of sight.
//!
//! Each leaf cell counts in a pixel with the volume that the two share, exactly; fields that are averaged by mass (see
//! [`crate::cell_fields`]) with its mass. So the mean of a density map over its pixels is the mean density of the
//! window. Densities of particles are those of their clouds (`clouds.rs`), not of cells.

use super::{BAND, Map, MapOptions, PIXELS, Window, clouds, patches};
use crate::cell_fields::{Average, CellField, Gas, field_by, symbol_in};
use crate::cells::{PATCH_CELLS, patch_cells};
use crate::error::AnalysisError;
use crate::messages::{exchange, gather};
use crate::part::{Part, alone};
use comove_sim::Snapshot;
use comove_sim::kernels::layout::PATCH;
use comove_sim::mesh::LeafPatch;
use comove_sim::parallel::Communicator;
use rayon::prelude::*;
use std::ops::Range;

/// The mean of a field along lines of sight of length `options.depth_mpc_h` around `options.center`.
pub fn projection(snapshot: &Snapshot, options: &MapOptions) -> Result<Map, AnalysisError> {
    alone(snapshot, |communicator, part| projection_by(communicator, part, options))
}

/// The projection of a snapshot in parts, on the first rank: collective. Every rank makes some rows of pixels from the
/// patches and particles of all ranks.
pub fn projection_by(
    communicator: &Communicator,
    part: &Part,
    options: &MapOptions,
) -> Result<Option<Map>, AnalysisError> {
    let field = field_by(communicator, part, &options.field)?;
    let window = Window::new(part, options, options.pixels.unwrap_or(PIXELS))?;
    let with_particles = field.is_density_of_particles() && part.header().dark_matter.is_some();
    let of_cells = if with_particles { field.without_particles() } else { field.clone() };
    let gas = Gas::by(communicator, part);
    let [columns, rows] = window.pixels;
    let images = window.images(part);
    let cuts = cuts(part, &window, &images, communicator.size());
    let row = |band: usize| rows.min(BAND * band);
    let rows_of = |rank: usize| row(cuts[rank])..row(cuts[rank + 1]);
    let own = rows_of(communicator.rank());
    let footprints = footprints_in(communicator, part, &window, &images, (&of_cells, &gas), &cuts);
    let mut sums = vec![[0.0; 2]; columns * own.len()];
    // every pixel takes the patches in key order, however rows are shared among threads and ranks
    sums.par_chunks_mut(BAND * columns).enumerate().for_each(|(n, sums)| {
        let mut band = Band { window, first: own.start + n * BAND, sums };
        footprints.iter().for_each(|footprint| band.add(footprint));
    });
    if with_particles {
        let masses = clouds::masses_by(communicator, part, &window, rows_of)?;
        sums.iter_mut().zip(masses).for_each(|([sum, _], mass)| *sum += mass);
    }
    // by rank, so from below
    let Some(sums) = gather(communicator, sums) else { return Ok(None) };
    let sums = sums.concat();
    let means: Vec<f64> = sums.into_iter().map(|[sum, weight]| sum / weight).collect();
    Ok(Some(Map {
        redshift: part.header().cosmology.map(|_| part.header().redshift()),
        field: field.name.to_string(),
        symbol: symbol_in(&field, part.header()),
        unit: field.unit.into(),
        axis: options.axis,
        horizontal_mpc_h: [window.low[0], window.high[0]],
        vertical_mpc_h: [window.low[1], window.high[1]],
        depth_mpc_h: [window.low[2], window.high[2]],
        values: means.chunks_exact(columns).map(<[f64]>::to_vec).collect(),
        patches: if options.patches { patches::outlines(part, &window) } else { Vec::new() },
        cells: Vec::new(),
    }))
}

/// The pixels along the width that a projection needs to resolve every cell, if that are fewer than it has: its table need
/// not hold more.
pub fn resolving_pixels(part: &Part, options: &MapOptions) -> Result<Option<usize>, AnalysisError> {
    let most = options.pixels.unwrap_or(PIXELS);
    let window = Window::new(part, options, most)?;
    let finest = part.snapshot.cell_width(part.tree.level_count() - 1);
    let cells = ((window.high[0] - window.low[0]) / finest - 1e-9).ceil() as usize;
    Ok(Some(cells.max(16)).filter(|pixels| *pixels < most))
}

/// Where bands of rows are cut for the ranks, so that each has about as many patches to add: the same on all ranks.
fn cuts(part: &Part, window: &Window, images: &[[f64; 3]], ranks: usize) -> Vec<usize> {
    let bands = window.pixels[1].div_ceil(BAND);
    if ranks == 1 {
        return vec![0, bands];
    }
    let mut patches_before = vec![0; bands + 1];
    for patch in part.tree.leaf_patches() {
        let side = PATCH as f64 * part.snapshot.cell_width(patch.level);
        for low in met(part, window, images, &patch) {
            let bands = bands_of(window, low[1], side);
            patches_before[bands.start + 1..bands.end + 1].iter_mut().for_each(|patches| *patches += 1);
        }
    }
    (0..bands).for_each(|n| patches_before[n + 1] += patches_before[n]);
    let all = patches_before[bands];
    (0..=ranks).map(|rank| patches_before.partition_point(|&patches| patches * ranks < all * rank)).collect()
}

/// The bands that a patch may meet.
fn bands_of(window: &Window, low: f64, side: f64) -> Range<usize> {
    let rows = window.reached(1, low, side);
    // a row more on either side: the edges of the last cell and of the patch differ by round-off
    rows.start.saturating_sub(1) / BAND..(rows.end + 1).min(window.pixels[1]).div_ceil(BAND)
}

/// The lower corners of a patch, along the frame's axes, in the images of the box in which it meets the window.
fn met(part: &Part, window: &Window, images: &[[f64; 3]], patch: &LeafPatch) -> Vec<[f64; 3]> {
    let width = part.snapshot.cell_width(patch.level);
    let corner: [f64; 3] = std::array::from_fn(|a| patch.first_cell[window.frame[a]] as f64 * width);
    let met = images.iter().map(|shift| std::array::from_fn(|a| corner[a] + shift[a]));
    met.filter(|low| window.meets(*low, PATCH as f64 * width)).collect()
}

/// The footprints of all patches in this rank's bands, in key order: collective.
fn footprints_in(
    communicator: &Communicator,
    part: &Part,
    window: &Window,
    images: &[[f64; 3]],
    (field, gas): (&CellField, &Gas),
    cuts: &[usize],
) -> Vec<Footprint> {
    let patches: Vec<LeafPatch> = part.leaf_patches().collect();
    let seen = |patch: &LeafPatch| Footprint::of(part, window, images, (field, gas), *patch);
    let own: Vec<Footprint> = patches.par_iter().flat_map_iter(seen).collect();
    if communicator.size() == 1 {
        return own;
    }
    let bands = |footprint: &Footprint| bands_of(window, footprint.low[1], PATCH as f64 * footprint.width);
    let goes_to = |footprint: &Footprint, rank: usize| {
        let bands = bands(footprint);
        bands.start < cuts[rank + 1] && cuts[rank] < bands.end
    };
    let to =
        |rank: usize| own.iter().filter(|footprint| goes_to(footprint, rank)).flat_map(Footprint::numbers).collect();
    let to = (0..communicator.size()).map(to).collect();
    drop(own);
    let came = exchange(communicator, to);
    let mut all: Vec<Footprint> =
        came.iter().flat_map(|came| came.chunks_exact(NUMBERS)).map(Footprint::read).collect();
    // the order of ranks is that of keys on each level, and widths are those of levels
    all.sort_by(|x, y| y.width.total_cmp(&x.width));
    all
}

/// Numbers of a footprint that is sent.
const NUMBERS: usize = 3 + 2 * PATCH * PATCH;

/// A leaf patch as the window sees it: weight × value and weight, integrated along each line of its cells.
struct Footprint {
    /// Its lower left corner, code length.
    low: [f64; 2],
    /// Width of its cells.
    width: f64,
    /// One line of sight a cell of its face, to the right fastest.
    lines: [[f64; 2]; PATCH * PATCH],
}

impl Footprint {
    /// The footprints of a patch, one for each image of the box in which it meets the window.
    fn of(
        part: &Part,
        window: &Window,
        images: &[[f64; 3]],
        (field, gas): (&CellField, &Gas),
        patch: LeafPatch,
    ) -> Vec<Self> {
        let met = met(part, window, images, &patch);
        if met.is_empty() {
            return Vec::new();
        }
        let width = part.snapshot.cell_width(patch.level);
        // weight × value and weight of every cell, in the order of the frame
        let mut cells = [[0.0; 2]; PATCH_CELLS];
        for (n, cell) in patch_cells(part.snapshot, patch).enumerate() {
            let inside = [n % PATCH, n / PATCH % PATCH, n / (PATCH * PATCH)];
            let [u, v, w] = window.frame.map(|a| inside[a]);
            let weight = if field.average == Average::Mass { field.density(&cell) } else { 1.0 };
            cells[(v * PATCH + u) * PATCH + w] = [weight * field.value(gas, &cell), weight];
        }
        let depth = [window.low[2], window.high[2]];
        let seen = |low: [f64; 3]| {
            let line = |n: usize| {
                let line = cells[n * PATCH..(n + 1) * PATCH].iter().enumerate();
                line.fold([0.0; 2], |sum, (w, cell)| {
                    let near = low[2] + w as f64 * width;
                    let length = overlap([near, near + width], depth);
                    [sum[0] + length * cell[0], sum[1] + length * cell[1]]
                })
            };
            Self { low: [low[0], low[1]], width, lines: std::array::from_fn(line) }
        };
        met.into_iter().map(seen).collect()
    }

    /// As it is sent.
    fn numbers(&self) -> impl Iterator<Item = f64> {
        let [x, y] = self.low;
        [x, y, self.width].into_iter().chain(self.lines.as_flattened().iter().copied())
    }

    fn read(numbers: &[f64]) -> Self {
        let lines = std::array::from_fn(|n| [numbers[3 + 2 * n], numbers[4 + 2 * n]]);
        Self { low: [numbers[0], numbers[1]], width: numbers[2], lines }
    }
}

/// Some rows of pixels, which collect weight × value and weight.
struct Band<'a> {
    window: Window,
    /// The first of the rows.
    first: usize,
    sums: &'a mut [[f64; 2]],
}

impl Band<'_> {
    /// Adds each line of sight of a patch by the area that its cell's face shares with each pixel.
    fn add(&mut self, footprint: &Footprint) {
        let Self { window, first, ref mut sums } = *self;
        let (columns, width) = (window.pixels[0], footprint.width);
        let rows = first..first + sums.len() / columns;
        let patch = window.reached(1, footprint.low[1], PATCH as f64 * width);
        // a row more on either side: the edges of the last cell and of the patch differ by round-off
        if patch.end + 1 < rows.start || rows.end < patch.start {
            return;
        }
        let low = |axis: usize, n: usize| footprint.low[axis] + n as f64 * width;
        let shares = |u: usize| {
            let pixels = window.reached(0, low(0, u), width);
            (pixels.start, pixels.map(|n| window.share(0, n, low(0, u), width)).collect())
        };
        let across: [(usize, Vec<f64>); PATCH] = std::array::from_fn(shares);
        for v in 0..PATCH {
            let reached = window.reached(1, low(1, v), width);
            for row in reached.start.max(rows.start)..reached.end.min(rows.end) {
                let height = window.share(1, row, low(1, v), width);
                let pixels = &mut sums[(row - rows.start) * columns..][..columns];
                for ((first, shares), sum) in across.iter().zip(&footprint.lines[v * PATCH..]) {
                    for (target, width) in pixels[*first..].iter_mut().zip(shares) {
                        let area = height * width;
                        *target = [target[0] + area * sum[0], target[1] + area * sum[1]];
                    }
                }
            }
        }
    }
}

impl Window {
    /// The pixels along an axis of the plane that an interval from `low` on meets.
    fn reached(&self, axis: usize, low: f64, width: f64) -> Range<usize> {
        let pixel = self.pixel()[axis];
        let place = |x: f64| ((x - self.low[axis]) / pixel).clamp(0.0, self.pixels[axis] as f64);
        place(low).floor() as usize..place(low + width).ceil() as usize
    }

    /// The length that such an interval shares with pixel `n`.
    fn share(&self, axis: usize, n: usize, low: f64, width: f64) -> f64 {
        let pixel = self.pixel()[axis];
        let edge = self.low[axis] + n as f64 * pixel;
        overlap([low, low + width], [edge, edge + pixel])
    }
}

/// The length that two intervals share.
fn overlap(x: [f64; 2], y: [f64; 2]) -> f64 {
    (x[1].min(y[1]) - x[0].max(y[0])).max(0.0)
}
