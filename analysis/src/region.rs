//! A field over a part of the box: statistics and histograms of its leaf cells.

use crate::cell_fields::{Average, CellField, Gas, field_of};
use crate::cells::{LeafCell, fold_leaves};
use crate::error::AnalysisError;
use crate::placement::{overlaps_box, position_in_box};
use crate::sphere::separation;
use comove_sim::Snapshot;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A box or a ball, in Mpc/h, in non-comoving coordinates in code units; all of the box by default. Cells are in it by their
/// centres, particles by their positions, across periodic faces too.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RegionOptions {
    /// Of a box: its lower corner.
    pub min: Option<[f64; 3]>,
    /// Its upper corner.
    pub max: Option<[f64; 3]>,
    /// Of a ball: its centre.
    pub center: Option<[f64; 3]>,
    /// Its radius.
    pub radius: Option<f64>,
}

/// How a histogram is binned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HistogramOptions {
    /// Bins of the same width.
    pub bins: usize,
    /// Lower end of the first and upper end of the last bin; by default the least and the largest value.
    pub range: Option<[f64; 2]>,
    /// Whether the widths are those of the logarithm; by default as the field's pictures are coloured.
    pub logarithmic: Option<bool>,
}

impl Default for HistogramOptions {
    fn default() -> Self {
        Self { bins: 40, range: None, logarithmic: None }
    }
}

/// A field over a region.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Statistics {
    /// Leaf cells.
    pub cells: u64,
    /// Their volume in code length³.
    pub volume: f64,
    /// The mass in them in code units, of the field's [component](crate::cell_fields::Component).
    pub mass: f64,
    /// The least value.
    pub min: f64,
    /// The largest value.
    pub max: f64,
    /// The mean value, by volume or by mass as the field is averaged.
    pub mean: f64,
    /// The mean square of what differs from it.
    pub variance: f64,
}

/// A bin of a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct HistogramBin {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Leaf cells.
    pub cells: u64,
    /// Their volume in code length³.
    pub volume: f64,
    /// The mass in them in code units, of the field's [component](crate::cell_fields::Component).
    pub mass: f64,
}

/// A region of a snapshot, checked.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Region {
    All,
    /// Centre and half widths.
    Box([f64; 3], [f64; 3]),
    /// Centre and radius.
    Ball([f64; 3], f64),
}

impl Region {
    /// # Errors
    /// [`AnalysisError::Option`] for half a region, or one that is empty or outside the snapshot's box.
    pub(crate) fn new(options: &RegionOptions, snapshot: &Snapshot) -> Result<Self, AnalysisError> {
        let (lengths, periodic) = (snapshot.box_lengths(), snapshot.state.tree.periodic());
        match (options.min, options.max, options.center, options.radius) {
            (None, None, None, None) => Ok(Self::All),
            (Some(min), Some(max), None, None) => {
                overlaps_box(min, max, lengths)?;
                let half: [f64; 3] = std::array::from_fn(|a| 0.5 * (max[a] - min[a]));
                Ok(Self::Box(std::array::from_fn(|a| min[a] + half[a]), half))
            }
            (None, None, Some(center), Some(radius)) => {
                if !(radius > 0.0 && radius.is_finite()) {
                    return Err(AnalysisError::option("radius", radius, "must be positive"));
                }
                Ok(Self::Ball(position_in_box("center", center, lengths, periodic)?, radius))
            }
            _ => Err(AnalysisError::option("region", "half said", "give min and max, or center and radius")),
        }
    }

    /// Whether a position is in it, across periodic faces too.
    pub(crate) fn holds(&self, snapshot: &Snapshot, position: [f64; 3]) -> bool {
        match self {
            Self::All => true,
            Self::Box(center, half) => {
                let offset = separation(snapshot, *center, position);
                (0..3).all(|a| offset[a].abs() <= half[a])
            }
            Self::Ball(center, radius) => {
                let offset = separation(snapshot, *center, position);
                offset.iter().map(|d| d * d).sum::<f64>() <= radius * radius
            }
        }
    }
}

/// What is read of a snapshot: a field in the cells of a region.
struct Reader<'a> {
    snapshot: &'a Snapshot,
    field: CellField,
    gas: Gas,
    region: Region,
}

impl<'a> Reader<'a> {
    fn new(snapshot: &'a Snapshot, field: &str, region: &RegionOptions) -> Result<Self, AnalysisError> {
        let (field, region) = (field_of(snapshot, field)?, Region::new(region, snapshot)?);
        Ok(Self { snapshot, field, gas: Gas::new(snapshot), region })
    }

    /// Sums over the region ([`fold_leaves`]).
    fn sum<T: Send>(
        &self,
        empty: impl Fn() -> T + Sync,
        add_cell: impl Fn(&mut T, &LeafCell, f64) + Sync,
        add: impl Fn(&mut T, T),
    ) -> T {
        let add_if_inside = |sums: &mut T, cell: &LeafCell| {
            if self.region.holds(self.snapshot, cell.position) {
                add_cell(sums, cell, self.field.value(&self.gas, cell));
            }
        };
        fold_leaves(self.snapshot, empty, add_if_inside, add)
    }

    fn weight(&self, cell: &LeafCell) -> f64 {
        match self.field.average {
            Average::Volume => cell.volume(),
            Average::Mass => self.mass(cell),
        }
    }

    /// The error of a region between the centres of cells.
    fn holds_none(&self) -> AnalysisError {
        match &self.region {
            Region::Ball(center, radius) => {
                let reason = format!("the ball about {center:?} contains no cell centre; enlarge it");
                AnalysisError::option("radius", radius, reason)
            }
            Region::Box(center, half) => {
                let [min, max] = [-1.0, 1.0].map(|s| [0, 1, 2].map(|a| center[a] + s * half[a]));
                let reason = format!("the box from {min:?} contains no cell centre; enlarge it");
                AnalysisError::option("max", format!("{max:?}"), reason)
            }
            Region::All => unreachable!("a snapshot has cells"),
        }
    }

    /// The mass of the field's component in a cell.
    fn mass(&self, cell: &LeafCell) -> f64 {
        self.field.density(cell) * cell.volume()
    }

    fn statistics(&self) -> Result<Statistics, AnalysisError> {
        let empty = || {
            (
                Statistics {
                    cells: 0,
                    volume: 0.0,
                    mass: 0.0,
                    min: f64::INFINITY,
                    max: f64::NEG_INFINITY,
                    mean: 0.0,
                    variance: 0.0,
                },
                0.0,
            )
        };
        let (sums, weight) = self.sum(
            empty,
            |(sums, weight), cell, value| {
                *weight += self.weight(cell);
                sums.mean += self.weight(cell) * value;
                sums.add(1, cell.volume(), self.mass(cell), [value; 2]);
            },
            |(sums, weight), (part, more)| {
                *weight += more;
                sums.mean += part.mean;
                sums.add(part.cells, part.volume, part.mass, [part.min, part.max]);
            },
        );
        if sums.cells == 0 {
            return Err(self.holds_none());
        }
        let mean = sums.mean / weight;
        let square = |sum: &mut f64, cell: &LeafCell, value: f64| *sum += self.weight(cell) * (value - mean).powi(2);
        let squares = self.sum(|| 0.0, square, |sum, part| *sum += part);
        Ok(Statistics { mean, variance: squares / weight, ..sums })
    }
}

impl Statistics {
    fn add(&mut self, cells: u64, volume: f64, mass: f64, [min, max]: [f64; 2]) {
        self.cells += cells;
        self.volume += volume;
        self.mass += mass;
        self.min = self.min.min(min);
        self.max = self.max.max(max);
    }
}

/// A field over a region.
///
/// # Errors
/// [`AnalysisError::UnknownField`], [`AnalysisError::MissingField`]; [`AnalysisError::Option`] for a region that is none or
/// holds no cell.
pub fn statistics(snapshot: &Snapshot, field: &str, region: &RegionOptions) -> Result<Statistics, AnalysisError> {
    Reader::new(snapshot, field, region)?.statistics()
}

/// How cells, volume and mass of a region are distributed over the values of a field; what lies outside the range is not
/// counted.
pub fn histogram(
    snapshot: &Snapshot,
    field: &str,
    region: &RegionOptions,
    options: &HistogramOptions,
) -> Result<Vec<HistogramBin>, AnalysisError> {
    let reader = Reader::new(snapshot, field, region)?;
    if !(1..=10_000).contains(&options.bins) {
        return Err(AnalysisError::option("bins", options.bins, "must lie between 1 and 10000"));
    }
    let [low, high] = match options.range {
        Some(range) => range,
        None => reader.statistics().map(|of_all| [of_all.min, of_all.max])?,
    };
    // a field that is zero everywhere has no logarithm
    let logarithmic = options.logarithmic.unwrap_or(reader.field.logarithmic && high > 0.0);
    // the one value of a uniform field has a bin about it
    let [low, high] = if low == high && options.range.is_none() { widened(low, logarithmic) } else { [low, high] };
    let scale = |value: f64| if logarithmic { value.ln() } else { value };
    let (first, width) = (scale(low), (scale(high) - scale(low)) / options.bins as f64);
    if !(width > 0.0 && width.is_finite()) {
        let reason = "must increase, and be positive unless logarithmic: false is set";
        return Err(AnalysisError::option("range", format!("[{low}, {high}]"), reason));
    }
    let edge = |n: usize| match n {
        0 => low,
        n if n == options.bins => high,
        n if logarithmic => (first + width * n as f64).exp(),
        n => first + width * n as f64,
    };
    let bin = |n| HistogramBin { low: edge(n), high: edge(n + 1), cells: 0, volume: 0.0, mass: 0.0 };
    // a patch fills few of many bins, so the sums of all patches take no more memory than their cells
    let add_cell = |bins: &mut BTreeMap<usize, HistogramBin>, cell: &LeafCell, value: f64| {
        if (low..=high).contains(&value) {
            let n = (((scale(value) - first) / width) as usize).min(options.bins - 1);
            bins.entry(n).or_insert_with(|| bin(n)).add(1, cell.volume(), reader.mass(cell));
        }
    };
    let add = |bins: &mut BTreeMap<usize, HistogramBin>, part: BTreeMap<usize, HistogramBin>| {
        for (n, part) in part {
            bins.entry(n).or_insert_with(|| bin(n)).add(part.cells, part.volume, part.mass);
        }
    };
    let mut filled = reader.sum(BTreeMap::new, add_cell, add);
    // a range may hold no cell, a region must
    if filled.is_empty() && reader.sum(|| 0u64, |cells, _, _| *cells += 1, |cells, part| *cells += part) == 0 {
        return Err(reader.holds_none());
    }
    Ok((0..options.bins).map(|n| filled.remove(&n).unwrap_or_else(|| bin(n))).collect())
}

impl HistogramBin {
    fn add(&mut self, cells: u64, volume: f64, mass: f64) {
        self.cells += cells;
        self.volume += volume;
        self.mass += mass;
    }
}

fn widened(value: f64, logarithmic: bool) -> [f64; 2] {
    // half a unit, or as much as a large value takes note of
    let half = 0.5f64.max(1e-6 * value.abs());
    if logarithmic { [0.5 * value, 2.0 * value] } else { [value - half, value + half] }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::densest;
    use crate::fixture::Fixture;
    use crate::fixture::{leaf_cells, mean_density};

    fn ball(center: [f64; 3], radius: f64) -> RegionOptions {
        RegionOptions { center: Some(center), radius: Some(radius), ..RegionOptions::default() }
    }

    /// The whole box, against the sums over its cells one by one.
    #[test]
    fn the_whole_box_is_the_sum_of_its_cells() {
        let snapshot = Fixture::blob().build();
        let all = statistics(&snapshot, "density", &RegionOptions::default()).unwrap();
        let density = |cell: &LeafCell| cell.fluid[0];
        assert_eq!(all.cells, leaf_cells(&snapshot).count() as u64);
        let volume = snapshot.header.box_length.powi(3);
        assert!((all.volume / volume - 1.0).abs() < 1e-12 && (all.mean / mean_density(&snapshot) - 1.0).abs() < 1e-12);
        assert!((all.mass / (all.mean * volume) - 1.0).abs() < 1e-12);
        assert_eq!(all.max, densest(&snapshot).fluid[0]);
        assert_eq!(all.min, leaf_cells(&snapshot).map(|c| density(&c)).fold(f64::INFINITY, f64::min));
        let squares: f64 = leaf_cells(&snapshot).map(|c| c.volume() * (density(&c) - all.mean).powi(2)).sum();
        assert!((all.variance / (squares / volume) - 1.0).abs() < 1e-10);
        let gas = Gas::new(&snapshot);
        let weighted: f64 = leaf_cells(&snapshot).map(|c| c.fluid[0] * c.volume() * gas.velocity_km_s(&c, 0)).sum();
        let velocity = statistics(&snapshot, "velocity_x", &RegionOptions::default()).unwrap();
        assert!((velocity.mean / (weighted / all.mass) - 1.0).abs() < 1e-10);
    }

    /// A ball about a corner has the cells of all eight, a box across a face those of both sides.
    #[test]
    fn regions_go_through_periodic_faces() {
        let snapshot = Fixture::uniform(2.0).build();
        let length = snapshot.header.box_length;
        let inside = statistics(&snapshot, "density", &ball([0.5 * length; 3], 0.2 * length)).unwrap();
        let corner = statistics(&snapshot, "density", &ball([0.0; 3], 0.2 * length)).unwrap();
        assert_eq!(corner.cells, inside.cells);
        let exact = 4.0 / 3.0 * std::f64::consts::PI * (0.2 * length).powi(3);
        assert!((inside.volume / exact - 1.0).abs() < 0.1 && inside.mass == 2.0 * inside.volume, "{inside:?}");
        let across = RegionOptions {
            min: Some([-0.25 * length, 0.0, 0.0]),
            max: Some([0.25 * length, length, length]),
            ..RegionOptions::default()
        };
        let half = statistics(&snapshot, "density", &across).unwrap();
        assert!((half.volume / length.powi(3) - 0.5).abs() < 1e-12, "{half:?}");
    }

    /// Every cell is in one bin, at whichever end; a range leaves out the rest.
    #[test]
    fn histograms_count_every_cell_once() {
        let snapshot = Fixture::blob().build();
        let all = statistics(&snapshot, "density", &RegionOptions::default()).unwrap();
        let of =
            |options: &HistogramOptions| histogram(&snapshot, "density", &RegionOptions::default(), options).unwrap();
        for logarithmic in [true, false] {
            let bins = of(&HistogramOptions { bins: 7, logarithmic: Some(logarithmic), ..HistogramOptions::default() });
            assert_eq!(bins.iter().map(|bin| bin.cells).sum::<u64>(), all.cells);
            assert!((bins.iter().map(|bin| bin.mass).sum::<f64>() / all.mass - 1.0).abs() < 1e-12);
            assert_eq!((bins.len(), bins[0].low, bins[6].high), (7, all.min, all.max));
            let ratio = |n: usize| if logarithmic { bins[n].high / bins[n].low } else { bins[n].high - bins[n].low };
            assert!((ratio(0) / ratio(5) - 1.0).abs() < 1e-9);
        }
        let above = all.mean;
        let some = of(&HistogramOptions { range: Some([above, all.max]), ..HistogramOptions::default() });
        let expected = leaf_cells(&snapshot).filter(|cell| cell.fluid[0] >= above).count() as u64;
        assert_eq!(some.iter().map(|bin| bin.cells).sum::<u64>(), expected);
        let uniform = histogram(
            &Fixture::uniform(1.0).build(),
            "density",
            &RegionOptions::default(),
            &HistogramOptions::default(),
        );
        assert_eq!(uniform.unwrap().iter().filter(|bin| bin.cells > 0).count(), 1);
    }

    /// A field that is zero everywhere has one bin that is filled, though its pictures are logarithmic; so has one whose
    /// value is so large that half a unit is nothing.
    #[test]
    fn a_field_of_one_value_is_in_one_bin() {
        for value in [0.0, 1e30] {
            let snapshot = Fixture::uniform(value).build();
            for logarithmic in [None, Some(false)] {
                let options = HistogramOptions { bins: 5, logarithmic, ..HistogramOptions::default() };
                let bins = histogram(&snapshot, "density", &RegionOptions::default(), &options).unwrap();
                let filled: Vec<_> = bins.iter().filter(|bin| bin.cells > 0).collect();
                assert!(filled.len() == 1 && filled[0].low <= value && value <= filled[0].high, "{bins:?}");
            }
        }
        let negative = HistogramOptions { logarithmic: Some(true), range: Some([-1.0, 1.0]), ..Default::default() };
        let snapshot = Fixture::blob().build();
        assert!(histogram(&snapshot, "density", &RegionOptions::default(), &negative).is_err());
    }

    /// As many bins as there may be hold what fewer hold.
    #[test]
    fn fine_bins_add_up_to_coarse_ones() {
        let snapshot = Fixture::blob().build();
        let of = |bins: usize| {
            let options = HistogramOptions { bins, range: Some([0.125, 1024.0]), logarithmic: Some(true) };
            histogram(&snapshot, "density", &RegionOptions::default(), &options).unwrap()
        };
        let (coarse, fine) = (of(10), of(10_000));
        assert!(coarse.iter().filter(|bin| bin.cells > 0).count() > 1, "{coarse:?}");
        for (bin, parts) in coarse.iter().zip(fine.chunks(1000)) {
            let mass: f64 = parts.iter().map(|part| part.mass).sum();
            assert_eq!(parts.iter().map(|part| part.cells).sum::<u64>(), bin.cells);
            assert!((mass - bin.mass).abs() <= 1e-12 * bin.mass, "{mass} {bin:?}");
        }
    }

    #[test]
    fn what_is_no_region_is_refused() {
        let snapshot = Fixture::uniform(1.0).build();
        let refused = |region: &RegionOptions| statistics(&snapshot, "density", region).unwrap_err().to_string();
        let half = RegionOptions { radius: Some(1.0), ..RegionOptions::default() };
        assert!(refused(&half).contains("give min and max, or center and radius"));
        assert!(refused(&ball([0.0; 3], 1e-9)).contains("no cell"));
        for radius in [-1.0, 0.0, f64::NAN] {
            assert!(refused(&ball([0.0; 3], radius)).contains("must be positive"));
        }
        let length = snapshot.header.box_length;
        let outside = format!("center = [0.0, {:?}, 0.0]: y must lie in the box, [0, {length}]", 1.2 * length);
        assert_eq!(refused(&ball([0.0, 1.2 * length, 0.0], length)), outside);
        let slab = |low: f64, high: f64| RegionOptions {
            min: Some([low, 0.0, 0.0]),
            max: Some([high, length, length]),
            ..RegionOptions::default()
        };
        assert!(refused(&slab(length, 1.5 * length)).contains("lies outside the box along x: must be below"));
        assert!(refused(&slab(-length, 0.0)).contains("lies outside the box along x: must be above 0"));
        assert!(refused(&slab(0.5 * length, 0.5 * length)).contains("must lie beyond min"));
        // the upper face of a periodic axis is the lower one
        let faces = [0.0, length].map(|x| statistics(&snapshot, "density", &ball([x; 3], 0.2 * length)).unwrap());
        assert_eq!(faces[0], faces[1]);
        let options = HistogramOptions { range: Some([0.5, 2.0]), ..HistogramOptions::default() };
        let empty = histogram(&snapshot, "density", &ball([0.0; 3], 1e-9), &options).unwrap_err().to_string();
        assert!(empty.contains("contains no cell centre"), "{empty}");
        let options = HistogramOptions { range: Some([-1.0, 1.0]), ..HistogramOptions::default() };
        let error = histogram(&snapshot, "density", &RegionOptions::default(), &options).unwrap_err().to_string();
        assert!(error.contains("logarithmic: false"), "{error}");
        assert!(statistics(&snapshot, "densty", &RegionOptions::default()).is_err());
    }
}
