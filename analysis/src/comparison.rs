//! A snapshot against the solution of its problem: errors over the leaf cells and along a path, and what a figure draws.
//!
//! Compared are the density, the velocity along the path and the pressure, at cell centres; in shells the means of both.

use crate::cell_fields::Gas;
use crate::cells::{LeafCell, leaf_at, patch_cells};
use crate::error::AnalysisError;
use crate::refinement_ratio::{LevelShare, RefinementRow};
use crate::sphere::{norm, separation, visit_sphere};
use crate::table::{Record, Table};
use comove_sim::kernels::layout::{DENSITY, MOMENTUM};
use comove_sim::mesh::LeafPatch;
use comove_sim::{Coordinates, Snapshot};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// Density, velocity along the path, pressure; code units.
pub type Values = [f64; 3];

/// The names of [`Values`].
pub const QUANTITIES: [&str; 3] = ["density", "velocity", "pressure"];

/// The solution at a point (code length): density, velocity vector, pressure; `None` where there is none.
pub type Exact<'a> = &'a (dyn Fn([f64; 3]) -> Option<(f64, [f64; 3], f64)> + Sync);

/// Where solution and snapshot are looked at one by one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Path {
    /// The leaf cells along an axis through a point.
    Line {
        /// 0 x, 1 y, 2 z.
        axis: usize,
        /// A point of the line, code length.
        through: [f64; 3],
    },
    /// The leaf cells from the origin to the opposite corner of the box.
    Diagonal,
    /// Means over shells of the finest cells' width.
    Shells {
        /// The centre, code length.
        center: [f64; 3],
        /// Radius of the largest shell, code length.
        radius: f64,
    },
}

/// How far one quantity is from its solution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Norms {
    /// Mean of |q − q_exact|.
    pub l1: f64,
    /// Root of the mean of (q − q_exact)².
    pub l2: f64,
    /// Largest |q − q_exact|.
    pub max: f64,
    /// Where that is, code length; along the path its position in the first entry.
    pub max_at: [f64; 3],
    /// Largest |q_exact|: what the others are compared to.
    pub scale: f64,
}

/// The norms of every quantity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Errors {
    /// Of the density.
    pub density: Norms,
    /// Of the velocity along the path.
    pub velocity: Norms,
    /// Of the pressure.
    pub pressure: Norms,
}

/// A cell or shell of the path.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Position along the path, code length; a shell's mean radius.
    pub position: f64,
    /// Level of the cell; of a shell the mean by volume.
    pub level: f64,
    /// What the snapshot holds.
    pub values: Values,
    /// What the solution says there.
    pub exact: Option<Values>,
    /// Standard deviation by volume in a shell, from the straight line in radius that fits it best; 0 for a cell.
    pub scatter: Values,
}

/// A snapshot against its solution.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Code time.
    pub time: f64,
    /// Redshift; `None` in non-comoving coordinates.
    pub redshift: Option<f64>,
    /// Root steps taken.
    pub step: u64,
    /// Root cells along x, y, z.
    pub root_cells: [usize; 3],
    /// Width of the finest cells there are, code length.
    pub finest_width: f64,
    /// Over all leaf cells, by volume; `None` where there is no solution.
    pub in_box: Option<Errors>,
    /// Over the points of the path, each the same; `None` where there is no solution.
    pub on_path: Option<Errors>,
    /// From the root to the finest level that has cells.
    pub levels: Vec<LevelShare>,
    /// What the positions are: the path.
    pub path: Path,
    /// Along the path.
    pub points: Vec<Point>,
    /// With shells, how far a front has come along axes, diagonals of faces, and diagonals of the box: the mean radius, code
    /// length, at which the density along such rays is last halfway from its largest value to that at their ends.
    #[serde(default)]
    pub front: Option<[f64; 3]>,
    /// The solution on a finer grid of positions, for a curve.
    pub curve: Vec<(f64, Values)>,
}

/// Points of [`Comparison::curve`].
const CURVE: usize = 800;

/// Shells beyond which a path is refused.
const SHELLS: f64 = 1e5;

/// Compares a snapshot with a solution.
///
/// # Errors
/// [`AnalysisError::Option`] for a path that lies nowhere in the box.
pub fn compare(snapshot: &Snapshot, path: Path, exact: Exact<'_>) -> Result<Comparison, AnalysisError> {
    let finest_width = snapshot.cell_width(snapshot.state.tree.level_count() - 1);
    let view = View { snapshot, gas: Gas::new(snapshot), path, exact, finest_width };
    view.check()?;
    let (points, front) = match path {
        Path::Shells { center, radius } => (view.shells(center, radius), Some(view.front(center, radius))),
        _ => (view.cells(), None),
    };
    let row = RefinementRow::new(snapshot);
    let header = &snapshot.header;
    Ok(Comparison {
        time: header.time,
        redshift: (header.coordinates == Coordinates::Comoving).then(|| header.redshift()),
        step: header.step,
        root_cells: snapshot.state.tree.cells(0),
        finest_width,
        in_box: view.in_box(),
        on_path: on_path(&points),
        levels: row.levels,
        path,
        points,
        front,
        curve: view.curve(),
    })
}

struct View<'a> {
    snapshot: &'a Snapshot,
    gas: Gas,
    path: Path,
    exact: Exact<'a>,
    finest_width: f64,
}

impl View<'_> {
    fn check(&self) -> Result<(), AnalysisError> {
        match self.path {
            Path::Line { axis, .. } if axis > 2 => Err(AnalysisError::option("axis", axis, "must be 0, 1 or 2")),
            Path::Shells { radius, .. } if !(radius > 0.0 && radius / self.finest_width < SHELLS) => {
                Err(AnalysisError::option("radius", radius, "must be positive and within the box"))
            }
            _ => Ok(()),
        }
    }

    /// The direction of the path at a point: the unit vector along it, away from the centre of shells.
    fn direction(&self, x: [f64; 3]) -> [f64; 3] {
        let along = match self.path {
            Path::Line { axis, .. } => return std::array::from_fn(|a| f64::from(u8::from(a == axis))),
            Path::Diagonal => self.snapshot.box_lengths(),
            Path::Shells { center, .. } => separation(self.snapshot, center, x),
        };
        let length = norm(along).max(f64::MIN_POSITIVE);
        along.map(|d| d / length)
    }

    fn values(&self, cell: &LeafCell) -> Values {
        let density = cell.fluid[DENSITY];
        let along = self.direction(cell.position);
        let momentum: f64 = (0..3).map(|a| along[a] * cell.fluid[MOMENTUM + a]).sum();
        [density, momentum / density, self.gas.pressure(cell)]
    }

    fn solution(&self, x: [f64; 3]) -> Option<Values> {
        let (density, velocity, pressure) = (self.exact)(x)?;
        let along = self.direction(x);
        Some([density, (0..3).map(|a| along[a] * velocity[a]).sum(), pressure])
    }

    /// The leaf cells that a straight path meets, in its order.
    fn cells(&self) -> Vec<Point> {
        let lengths = self.snapshot.box_lengths();
        let widest = lengths.into_iter().fold(0.0, f64::max);
        // half a cell at a time, and never on the border of one
        let steps = (2.0 * widest / self.finest_width).round() as usize;
        let mut points: Vec<Point> = Vec::new();
        for n in 0..steps {
            let way = (n as f64 + 0.5) / steps as f64;
            let cell = leaf_at(self.snapshot, self.at(way, lengths));
            let along = self.direction(cell.position);
            let position = (0..3).map(|a| along[a] * cell.position[a]).sum();
            if points.last().is_none_or(|last| last.position < position - 0.25 * self.finest_width) {
                let (values, exact) = (self.values(&cell), self.solution(cell.position));
                points.push(Point { position, level: cell.level as f64, values, exact, scatter: [0.0; 3] });
            }
        }
        points
    }

    /// The point of the path at a fraction of its way.
    fn at(&self, way: f64, lengths: [f64; 3]) -> [f64; 3] {
        match self.path {
            Path::Line { axis, through } => {
                std::array::from_fn(|a| if a == axis { way * lengths[a] } else { through[a] })
            }
            Path::Diagonal => lengths.map(|length| way * length),
            Path::Shells { center, radius } => [center[0] + way * radius, center[1], center[2]],
        }
    }

    /// Means over the cells with their centres in each shell; shells without any are left out.
    fn shells(&self, center: [f64; 3], radius: f64) -> Vec<Point> {
        let count = (radius / self.finest_width).ceil() as usize;
        let mut shells = vec![Shell::default(); count];
        visit_sphere(self.snapshot, center, radius, |cell, offset| {
            let distance = norm(offset);
            let n = (distance / self.finest_width) as usize;
            if let Some(shell) = shells.get_mut(n) {
                let away = distance - (n as f64 + 0.5) * self.finest_width;
                shell.add(cell, [distance, away], self.values(cell), self.solution(cell.position));
            }
        });
        shells.iter().filter(|shell| shell.volume > 0.0).map(Shell::point).collect()
    }

    /// See [`Comparison::front`].
    fn front(&self, center: [f64; 3], radius: f64) -> [f64; 3] {
        let (mut sums, mut rays) = ([0.0; 3], [0.0; 3]);
        for d in (0..27).filter(|&d| d != 13) {
            let step = [d % 3, d / 3 % 3, d / 9].map(|c| f64::from(c) - 1.0);
            let kind = step.iter().filter(|c| **c != 0.0).count() - 1;
            sums[kind] += self.front_along(center, step.map(|c| c / norm(step)), radius);
            rays[kind] += 1.0;
        }
        std::array::from_fn(|kind| sums[kind] / rays[kind])
    }

    /// Along one ray, between the cells that it meets.
    fn front_along(&self, center: [f64; 3], along: [f64; 3], radius: f64) -> f64 {
        let steps = (2.0 * radius / self.finest_width) as usize;
        let lengths = self.snapshot.box_lengths();
        let met = (0..steps).map(|n| {
            let way = (n as f64 + 0.5) / steps as f64 * radius;
            let at = std::array::from_fn(|a| (center[a] + way * along[a]).rem_euclid(lengths[a]));
            let cell = leaf_at(self.snapshot, at);
            let offset = separation(self.snapshot, center, cell.position);
            ((0..3).map(|a| offset[a] * along[a]).sum::<f64>(), cell.fluid[DENSITY])
        });
        let mut cells: Vec<(f64, f64)> = met.collect();
        cells.dedup_by_key(|(position, _)| *position);
        let Some(&(end, outside)) = cells.last() else { return 0.0 };
        let half = 0.5 * (outside + cells.iter().map(|cell| cell.1).fold(outside, f64::max));
        let Some(last) = cells.iter().rposition(|cell| cell.1 > half) else { return end };
        let [(x, inner), (next, outer)] = [cells[last], cells[last + 1]];
        x + (next - x) * (inner - half) / (inner - outer)
    }

    fn curve(&self) -> Vec<(f64, Values)> {
        let lengths = self.snapshot.box_lengths();
        let points = (0..CURVE).filter_map(|n| {
            let x = self.at((n as f64 + 0.5) / CURVE as f64, lengths);
            let position = match self.path {
                Path::Shells { center, .. } => x[0] - center[0],
                _ => {
                    let along = self.direction(x);
                    (0..3).map(|a| along[a] * x[a]).sum()
                }
            };
            Some((position, self.solution(x)?))
        });
        points.collect()
    }

    /// Over the leaf cells: patches in parallel, added in key order.
    fn in_box(&self) -> Option<Errors> {
        let patches: Vec<LeafPatch> = self.snapshot.state.tree.leaf_patches().collect();
        let sums: Vec<Option<Sums>> = patches
            .par_iter()
            .map(|&patch| {
                patch_cells(self.snapshot, patch).try_fold(Sums::default(), |mut sums, cell| {
                    sums.add(cell.volume(), cell.position, self.values(&cell), self.solution(cell.position)?);
                    Some(sums)
                })
            })
            .collect();
        let sums = sums.into_iter().try_fold(Sums::default(), |all, sums| Some(all.with(&sums?)))?;
        Some(sums.errors())
    }
}

fn on_path(points: &[Point]) -> Option<Errors> {
    let sums = points.iter().try_fold(Sums::default(), |mut sums, point| {
        sums.add(1.0, [point.position, 0.0, 0.0], point.values, point.exact?);
        Some(sums)
    })?;
    (sums.weight > 0.0).then(|| sums.errors())
}

/// Norms in the making: sums with weights.
#[derive(Clone, Copy, Default)]
struct Sums {
    weight: f64,
    norms: [Norms; 3],
}

impl Sums {
    fn add(&mut self, weight: f64, at: [f64; 3], values: Values, exact: Values) {
        self.weight += weight;
        for ((norms, value), exact) in self.norms.iter_mut().zip(values).zip(exact) {
            let error = (value - exact).abs();
            norms.l1 += weight * error;
            norms.l2 += weight * error * error;
            if error > norms.max {
                (norms.max, norms.max_at) = (error, at);
            }
            norms.scale = norms.scale.max(exact.abs());
        }
    }

    fn with(mut self, other: &Self) -> Self {
        self.weight += other.weight;
        for (mine, norms) in self.norms.iter_mut().zip(&other.norms) {
            mine.l1 += norms.l1;
            mine.l2 += norms.l2;
            if norms.max > mine.max {
                (mine.max, mine.max_at) = (norms.max, norms.max_at);
            }
            mine.scale = mine.scale.max(norms.scale);
        }
        self
    }

    fn errors(&self) -> Errors {
        let mean = |norms: Norms| Norms { l1: norms.l1 / self.weight, l2: (norms.l2 / self.weight).sqrt(), ..norms };
        let [density, velocity, pressure] = self.norms.map(mean);
        Errors { density, velocity, pressure }
    }
}

/// A shell in the making: sums by volume.
#[derive(Clone, Copy)]
struct Shell {
    volume: f64,
    radius: f64,
    level: f64,
    values: Values,
    squares: Values,
    /// Of radii from the shell's middle: sum, squares, products with the values.
    away: f64,
    away_squares: f64,
    products: Values,
    exact: Option<Values>,
}

impl Default for Shell {
    fn default() -> Self {
        let none = [0.0; 3];
        Self {
            volume: 0.0,
            radius: 0.0,
            level: 0.0,
            values: none,
            squares: none,
            away: 0.0,
            away_squares: 0.0,
            products: none,
            exact: Some(none),
        }
    }
}

impl Shell {
    /// * `away`: from the shell's middle
    fn add(&mut self, cell: &LeafCell, [distance, away]: [f64; 2], values: Values, exact: Option<Values>) {
        let volume = cell.volume();
        self.away += volume * away;
        self.away_squares += volume * away * away;
        self.volume += volume;
        self.radius += volume * distance;
        self.level += volume * cell.level as f64;
        for (q, value) in values.into_iter().enumerate() {
            self.values[q] += volume * value;
            self.squares[q] += volume * value * value;
            self.products[q] += volume * value * away;
        }
        self.exact = self.exact.zip(exact).map(|(sum, exact)| std::array::from_fn(|q| sum[q] + volume * exact[q]));
    }

    fn point(&self) -> Point {
        let values = self.values.map(|sum| sum / self.volume);
        let away = self.away / self.volume;
        let spread = self.away_squares / self.volume - away * away;
        let explained = |q: usize| {
            let covariance = self.products[q] / self.volume - values[q] * away;
            if spread > 0.0 { covariance * covariance / spread } else { 0.0 }
        };
        let variance = |q: usize| (self.squares[q] / self.volume - values[q] * values[q] - explained(q)).max(0.0);
        Point {
            position: self.radius / self.volume,
            level: self.level / self.volume,
            values,
            exact: self.exact.map(|sums| sums.map(|sum| sum / self.volume)),
            scatter: std::array::from_fn(|q| variance(q).sqrt()),
        }
    }
}

impl Errors {
    /// The norms by name.
    pub fn each(&self) -> [(&'static str, Norms); 3] {
        [(QUANTITIES[0], self.density), (QUANTITIES[1], self.velocity), (QUANTITIES[2], self.pressure)]
    }
}

impl Comparison {
    /// One row a quantity and place: the norms.
    pub fn norms(&self) -> Table {
        let mut table = Table::new(["quantity", "over", "L1", "L2", "max", "largest exact value"]);
        for (place, errors) in [("all leaf cells", &self.in_box), ("the path", &self.on_path)] {
            for (name, norms) in errors.iter().flat_map(Errors::each) {
                let numbers = [norms.l1, norms.l2, norms.max, norms.scale].map(Into::into);
                table.push([name.into(), place.into()].into_iter().chain(numbers).collect());
            }
        }
        table
    }
}

impl Record for Comparison {
    /// The points of the path.
    fn table(&self) -> Table {
        let with = |end: &str| QUANTITIES.map(|name| format!("{name}{end}"));
        let columns = ["position".to_owned(), "level".to_owned()].into_iter();
        let mut table = Table::new(columns.chain(with("")).chain(with("_exact")).chain(with("_scatter")));
        for point in &self.points {
            let exact = point.exact.unwrap_or([f64::NAN; 3]);
            let numbers = [point.position, point.level].into_iter();
            table.push(numbers.chain(point.values).chain(exact).chain(point.scatter).map(Into::into).collect());
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Fixture, gas};

    /// ρ = 2 + x + 2y + 4z, at rest with pressure 3, refined in part.
    fn tilted() -> Snapshot {
        let mut fixture = Fixture::new(|x| gas(2.0 + x[0] + 2.0 * x[1] + 4.0 * x[2], [0.5, 0.0, 0.0], 3.0));
        fixture.max_level = 1;
        fixture.refine = Box::new(|_, x, _| x[0] < 0.5);
        fixture.build()
    }

    fn solution(x: [f64; 3]) -> (f64, [f64; 3], f64) {
        (2.0 + x[0] + 2.0 * x[1] + 4.0 * x[2], [0.5, 0.0, 0.0], 3.0)
    }

    /// An offset that grows along x: its mean, root mean square and largest value over the box in closed form.
    #[test]
    fn norms_in_closed_form() {
        let snapshot = tilted();
        let off = |x: [f64; 3]| {
            let (density, v, pressure) = solution(x);
            Some((density - x[0], v, pressure + 0.25))
        };
        let path = Path::Line { axis: 0, through: [0.0, 0.51, 0.51] };
        let comparison = compare(&snapshot, path, &off).unwrap();
        let errors = comparison.in_box.unwrap();
        assert!((errors.density.l1 - 0.5).abs() < 1e-12 && (errors.pressure.l2 - 0.25).abs() < 1e-12);
        // midpoint rule on 32 fine and 16 coarse cells: 1/3 less h²/12
        let square = 1.0 / 3.0 - (0.5 / 64f64.powi(2) + 0.5 / 32f64.powi(2)) / 12.0;
        assert!((errors.density.l2 - square.sqrt()).abs() < 1e-12, "{}", errors.density.l2);
        assert!((errors.density.max - (1.0 - 0.5 / 32.0)).abs() < 1e-12 && errors.density.max_at[0] > 0.98);
        assert!(errors.velocity.max < 1e-14 && errors.velocity.scale == 0.5);
        let positions: Vec<f64> = comparison.points.iter().map(|p| p.position).collect();
        assert_eq!(positions.len(), 32 + 16);
        assert!(positions.windows(2).all(|pair| pair[0] < pair[1]) && positions[0] == 0.5 / 64.0);
        assert_eq!((comparison.points[0].level, comparison.points[40].level), (1.0, 0.0));
        assert_eq!((comparison.curve.len(), comparison.table().rows.len()), (CURVE, 48));
        assert!(compare(&snapshot, path, &|_| None).unwrap().in_box.is_none());
    }

    /// Along the diagonal the cells lie on it, and the velocity is its part along it.
    #[test]
    fn the_diagonal_goes_from_corner_to_corner() {
        let comparison = compare(&tilted(), Path::Diagonal, &|x| Some(solution(x))).unwrap();
        assert_eq!(comparison.points.len(), 48);
        assert!(comparison.on_path.unwrap().density.max < 1e-13);
        let root = 3f64.sqrt();
        assert!((comparison.points[47].position - root * (1.0 - 0.5 / 32.0)).abs() < 1e-12);
        assert!((comparison.points[0].values[1] - 0.5 / root).abs() < 1e-14);
    }

    /// Shells hold every cell within the radius once: their volumes add up to that of the sphere, and a density that
    /// depends on the radius alone does not scatter about its slope.
    #[test]
    fn shells_are_means_by_volume() {
        let center = [0.5; 3];
        let snapshot = Fixture::new(move |x| gas(1.0 + norm(separation_plain(x, center)), [0.0; 3], 1.0)).build();
        let exact = |x| Some((1.0 + norm(separation_plain(x, center)), [0.0; 3], 1.0));
        let comparison = compare(&snapshot, Path::Shells { center, radius: 0.4 }, &exact).unwrap();
        assert!(comparison.on_path.unwrap().density.max < 1e-13);
        for point in &comparison.points {
            assert!((point.values[0] - 1.0 - point.position).abs() < 1e-12);
            // the root of a difference of squares
            assert!(point.scatter[0] < 1e-6, "{point:?}");
        }
        assert!(comparison.points.len() > 10);
        assert!(compare(&snapshot, Path::Shells { center, radius: 0.0 }, &exact).is_err());
    }

    /// An ellipsoid twice as dense as what is around it: half-axes 0.3, 0.24 and 0.27.
    #[test]
    fn fronts_along_axes_and_diagonals() {
        let squares = |x: [f64; 3]| [0, 1, 2].map(|a| ((x[a] - 0.5) / [0.3, 0.24, 0.27][a]).powi(2));
        let inside = move |x| f64::from(u8::from(squares(x).iter().sum::<f64>() < 1.0));
        let snapshot = Fixture::new(move |x| gas(1.0 + inside(x), [0.0; 3], 1.0)).build();
        let path = Path::Shells { center: [0.5; 3], radius: 0.4 };
        let front = compare(&snapshot, path, &|_| None).unwrap().front.unwrap();
        let inverse = [0.3, 0.24, 0.27].map(|axis: f64| axis.powi(-2));
        let of_pair = |[a, b]: [usize; 2]| (2.0 / (inverse[a] + inverse[b])).sqrt();
        let expected = [
            0.27,
            [[0, 1], [1, 2], [2, 0]].map(of_pair).iter().sum::<f64>() / 3.0,
            (3.0 / inverse.iter().sum::<f64>()).sqrt(),
        ];
        for (found, expected) in front.into_iter().zip(expected) {
            assert!((found - expected).abs() < 0.5 / 32.0, "{front:?} {expected}");
        }
        let line = Path::Line { axis: 0, through: [0.0, 0.51, 0.51] };
        assert!(compare(&snapshot, line, &|_| None).unwrap().front.is_none());
    }

    fn separation_plain(x: [f64; 3], y: [f64; 3]) -> [f64; 3] {
        std::array::from_fn(|a| x[a] - y[a])
    }
}
