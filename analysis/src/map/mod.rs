//! Pictures of the box as numbers: a field on a rectangle of pixels, with the patches behind it.
//!
//! A window is centred in the box; across a periodic boundary its coordinates run on beyond the box instead of jumping.

mod clouds;
mod neighbours;
pub mod patches;
pub mod projection;
pub mod slice;

use crate::cell_fields::field_by_name;
use crate::error::AnalysisError;
use crate::part::Part;
use crate::placement::position_in_box;
use crate::table::{Entry, Record, Table};
use comove_sim::fields::FieldSet;
use serde::{Deserialize, Serialize};

pub use patches::PatchOutline;
pub use projection::{projection, projection_by};
pub use slice::{slice, slice_by};

/// Rows of pixels of a projection that one thread fills.
const BAND: usize = 16;
/// Pixels along the width of a map by default.
pub(crate) const PIXELS: usize = 960;
/// Pixels along the width, and rows of them, that a map may have.
const PIXEL_LIMITS: std::ops::RangeInclusive<usize> = 16..=8192;

fn too_many_or_few(pixels: usize) -> AnalysisError {
    AnalysisError::option("pixels", pixels, "must lie between 16 and 8192 along each side")
}

/// The direction looked along.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Axis {
    /// Shows y to the right and z upwards.
    X,
    /// Shows x to the right and z upwards.
    Y,
    /// Shows x to the right and y upwards.
    #[default]
    Z,
}

impl Axis {
    /// Indices of the axes to the right, upwards and along the line of sight.
    pub fn frame(self) -> [usize; 3] {
        match self {
            Self::X => [1, 2, 0],
            Self::Y => [0, 2, 1],
            Self::Z => [0, 1, 2],
        }
    }
}

/// What a slice or a projection shows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MapOptions {
    /// Field, by its name ([`crate::cell_fields`]); by default the gas's density, without gas that of matter.
    pub field: String,
    /// Direction looked along.
    pub axis: Axis,
    /// Centre of the window in Mpc/h, in the box; by default that of the box. A slice goes through it.
    pub center: Option<[f64; 3]>,
    /// Width of the window in Mpc/h; by default that of the box.
    pub width_mpc_h: Option<f64>,
    /// Depth of a projection in Mpc/h; by default that of the box.
    pub depth_mpc_h: Option<f64>,
    /// Pixels along the width. By default a projection has 960; a slice has 960 to 2048, enough to resolve the finest cells
    /// that it cuts. A smaller cell fills one pixel of a slice.
    pub pixels: Option<usize>,
    /// Whether the outlines of the leaf patches are collected, and drawn.
    pub patches: bool,
}

impl MapOptions {
    /// What can be refused without a snapshot.
    ///
    /// * `fields`, `box_lengths`: of the snapshots, if they are known
    ///
    /// # Errors
    /// [`AnalysisError`] for a field that there is not, or an option out of its range.
    pub fn check(&self, fields: Option<&FieldSet>, box_lengths: Option<[f64; 3]>) -> Result<(), AnalysisError> {
        if let Some(fields) = fields {
            field_by_name(&self.field, fields)?;
        }
        for (name, length) in [("width_mpc_h", self.width_mpc_h), ("depth_mpc_h", self.depth_mpc_h)] {
            if let Some(length) = length.filter(|length| !(*length > 0.0 && length.is_finite())) {
                return Err(AnalysisError::option(name, length, "must be positive and fit into the box"));
            }
        }
        if let Some(pixels) = self.pixels.filter(|pixels| !PIXEL_LIMITS.contains(pixels)) {
            return Err(too_many_or_few(pixels));
        }
        match box_lengths {
            Some(lengths) => self.sides(lengths, [true; 3]).map(|_| ()),
            None => Ok(()),
        }
    }

    /// Width, height and depth of the window in a box of these lengths, and its centre.
    fn sides(&self, lengths: [f64; 3], periodic: [bool; 3]) -> Result<([f64; 3], [f64; 3]), AnalysisError> {
        let [right, up, depth] = self.axis.frame().map(|a| lengths[a]);
        let within = |name: &'static str, value: f64, limit: f64| {
            if value > 0.0 && value <= limit * (1.0 + 1e-12) {
                Ok(value)
            } else {
                Err(AnalysisError::option(name, value, format!("must be positive and fit into the box, {limit}")))
            }
        };
        let width = within("width_mpc_h", self.width_mpc_h.unwrap_or(right), right)?;
        let depth = within("depth_mpc_h", self.depth_mpc_h.unwrap_or(depth), depth)?;
        let height = if self.width_mpc_h.is_none() { up } else { width.min(up) };
        let center = match self.center {
            Some(center) => position_in_box("center", center, lengths, periodic)?,
            None => lengths.map(|length| 0.5 * length),
        };
        Ok(([width, height, depth], center))
    }
}

impl Default for MapOptions {
    fn default() -> Self {
        Self {
            field: "density".into(),
            axis: Axis::Z,
            center: None,
            width_mpc_h: None,
            depth_mpc_h: None,
            pixels: None,
            patches: false,
        }
    }
}

/// A field on a rectangle of pixels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Map {
    /// Redshift; `None` in non-comoving coordinates.
    pub redshift: Option<f64>,
    /// Field name.
    pub field: String,
    /// Symbol of the field, as a label shows it; of gas beside dark matter with its species.
    pub symbol: String,
    /// Unit of the values, as a label shows it.
    pub unit: String,
    /// Direction looked along.
    pub axis: Axis,
    /// Left and right edge in comoving Mpc/h.
    pub horizontal_mpc_h: [f64; 2],
    /// Lower and upper edge in comoving Mpc/h.
    pub vertical_mpc_h: [f64; 2],
    /// Near and far end of the line of sight in comoving Mpc/h; equal for a slice.
    pub depth_mpc_h: [f64; 2],
    /// Rows of pixels from below, pixels from the left; NaN outside a box that is not periodic.
    pub values: Vec<Vec<f64>>,
    /// Leaf patches in the window, coarse ones first; empty if not asked for.
    pub patches: Vec<PatchOutline>,
    /// Of a slice the leaf cells that the plane cuts in the window, level by level in key order: what the pixels show.
    pub cells: Vec<CutCell>,
}

/// A leaf cell that a slice cuts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CutCell {
    /// Its centre in comoving Mpc/h, x, y, z; across a periodic boundary it runs on as the window does.
    pub center_mpc_h: [f64; 3],
    /// Its width in comoving Mpc/h.
    pub width_mpc_h: f64,
    /// Its level.
    pub level: usize,
    /// The field in it.
    pub value: f64,
}

impl Map {
    /// Pixels along the width and the height.
    pub fn pixels(&self) -> [usize; 2] {
        [self.values.first().map_or(0, Vec::len), self.values.len()]
    }

    /// Whether it is a slice, not a projection.
    pub fn is_slice(&self) -> bool {
        self.depth_mpc_h[0] == self.depth_mpc_h[1]
    }
}

/// The part of space that a map shows, in code length.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    /// Indices of the axes to the right, upwards and along the line of sight.
    pub(crate) frame: [usize; 3],
    /// Lower ends along the frame's axes.
    pub(crate) low: [f64; 3],
    /// Upper ends.
    pub(crate) high: [f64; 3],
    /// Pixels to the right and upwards.
    pub(crate) pixels: [usize; 2],
}

impl Window {
    /// The window that options ask for; its height is its width or the box, whichever is less, its depth as given.
    ///
    /// * `pixels`: along its width
    pub(crate) fn new(part: &Part, options: &MapOptions, pixels: usize) -> Result<Self, AnalysisError> {
        let lengths = part.snapshot.box_lengths();
        let frame = options.axis.frame();
        let ([width, height, depth], center) = options.sides(lengths, part.tree.periodic())?;
        let rows = (pixels as f64 * height / width).round();
        if !PIXEL_LIMITS.contains(&pixels) || !(1.0..=*PIXEL_LIMITS.end() as f64).contains(&rows) {
            return Err(too_many_or_few(pixels));
        }
        let half = [width, height, depth].map(|l| 0.5 * l);
        let low = std::array::from_fn(|a| center[frame[a]] - half[a]);
        let high = std::array::from_fn(|a| center[frame[a]] + half[a]);
        Ok(Self { frame, low, high, pixels: [pixels, rows as usize] })
    }

    /// Side of a pixel.
    pub(crate) fn pixel(&self) -> [f64; 2] {
        std::array::from_fn(|a| (self.high[a] - self.low[a]) / self.pixels[a] as f64)
    }

    /// Moves of the box, in box lengths along the frame's axes, in which it can meet the window.
    pub(crate) fn images(&self, part: &Part) -> Vec<[f64; 3]> {
        let lengths = part.snapshot.box_lengths();
        let range = |a: usize| {
            let periodic = part.tree.periodic()[self.frame[a]];
            let length = lengths[self.frame[a]];
            let first = if periodic { (self.low[a] / length).floor() as i32 } else { 0 };
            let last = if periodic { (self.high[a] / length).floor() as i32 } else { 0 };
            (first..=last).map(move |n| f64::from(n) * length)
        };
        range(2).flat_map(|z| range(1).flat_map(move |y| range(0).map(move |x| [x, y, z]))).collect()
    }
}

impl Record for Map {
    /// Of a slice the cells that it cuts, one a row; of a projection its pixels: the first column holds a row's height,
    /// the names of the others their places to the right.
    fn table(&self) -> Table {
        if self.is_slice() { self.cut_cells() } else { self.grid() }
    }
}

impl Map {
    fn cut_cells(&self) -> Table {
        let value = if self.unit.is_empty() { self.field.clone() } else { format!("{} [{}]", self.field, self.unit) };
        let places = ["x_mpc_h", "y_mpc_h", "z_mpc_h", "width_mpc_h", "level"].map(String::from);
        let mut table = Table::new(places.into_iter().chain([value]));
        for cell in &self.cells {
            let [x, y, z] = cell.center_mpc_h.map(Entry::from);
            table.push(vec![x, y, z, cell.width_mpc_h.into(), cell.level.into(), cell.value.into()]);
        }
        table
    }

    fn grid(&self) -> Table {
        let centre =
            |edge: [f64; 2], n: usize, count: usize| edge[0] + (edge[1] - edge[0]) * (n as f64 + 0.5) / count as f64;
        let [columns, rows] = self.pixels();
        let names = ["x", "y", "z"];
        let [right, up, _] = self.axis.frame().map(|a| names[a]);
        let first = format!("{up}_mpc_h \\ {right}_mpc_h");
        let places = (0..columns).map(|n| centre(self.horizontal_mpc_h, n, columns).to_string());
        let mut table = Table::new(std::iter::once(first).chain(places));
        for (n, row) in self.values.iter().enumerate() {
            let height = centre(self.vertical_mpc_h, n, rows);
            // a mean over cells in single precision has no more digits than they
            table.push(std::iter::once(height.into()).chain(row.iter().map(|&v| Entry::from(v as f32))).collect());
        }
        table
    }
}

#[cfg(test)]
mod tests;
