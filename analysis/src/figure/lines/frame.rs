//! A frame: axes, curves and legend of a panel.

use super::{Curve, LegendPlace, Mark, Panel, Style};
use crate::figure::axis::{Scale, Tick};
use crate::figure::clip::Clip;
use crate::figure::text::{width, wrap};
use crate::figure::{Align, Colour, Dash, FAINT, Figure, GRID, INK, LINE, Shape, WHITE, outline};

/// Labelled ticks of a frame as wide or high as this many points.
const TICK_SPACING: f64 = 27.0;
/// Lengths of ticks with and without a label.
const TICKS: [f64; 2] = [3.0, 1.8];
const CURVE_WIDTH: f64 = 1.1;
const AXIS_WIDTH: f64 = 0.6;
const GRID_WIDTH: f64 = 0.4;
const BAR_WIDTH: f64 = 0.8;
/// Radius of a marked point, of a few and of many.
const RADIUS: [f64; 2] = [1.7, 1.0];
const MANY: usize = 60;
/// Opacity of bands and of error bars.
const BAND: f64 = 0.22;
const BARS: f64 = 0.45;
/// Entries of a legend on top of each other.
const LEGEND_ROWS: usize = 9;
/// Columns of a legend, at most.
const LEGEND_COLUMNS: usize = 3;
/// Room that a legend may take above the curves, in steps, over the height of the axis without it.
const ROOM_STEP: f64 = 0.04;
const ROOM_STEPS: u32 = 20;
/// Distance of a legend from curves that it must not cover.
const LEGEND_MARGIN: f64 = 1.5;
/// Length of a legend's lines, and space beside names.
const SAMPLE: f64 = 16.0;
const PADDING: f64 = 4.0;

#[derive(Clone, Copy)]
pub(super) struct Frame {
    clip: Clip,
    x: Scale,
    y: Scale,
    reversed: bool,
    y_whole: bool,
}

/// A scale from half below the least to half above the largest value.
fn whole(values: impl Iterator<Item = f64>) -> Scale {
    let (least, most) = values.fold((0.0, 0.0), |(l, h): (f64, f64), v| (l.min(v.floor()), h.max(v.ceil())));
    Scale::new(least - 0.5, most + 0.5, false)
}

/// Space that the left axis takes: labels of ticks, and its own label beside a frame of this height.
pub(super) fn label_room(panel: &Panel, height: f64) -> f64 {
    let frame = Frame::new(panel, [0.0; 2], [height; 2]);
    let labels = if panel.y_label.is_empty() { 0.0 } else { LINE * wrap(&panel.y_label, height).len() as f64 };
    frame.tick_room() + labels + 6.0
}

fn wanted(length: f64, spacing: f64) -> usize {
    ((length / spacing).round() as usize).clamp(2, 8)
}

impl Frame {
    pub(super) fn new(panel: &Panel, low: [f64; 2], high: [f64; 2]) -> Self {
        let points = || panel.curves.iter().flat_map(|c| &c.points);
        let good = |v: f64, log: bool| v.is_finite() && (!log || v > 0.0);
        let shown = |p: &[f64; 2]| good(p[0], panel.x_logarithmic) && good(p[1], panel.y_logarithmic);
        let x = match panel.x_range {
            Some([low, high]) => Scale::new(low, high, panel.x_logarithmic),
            None => Scale::around(points().filter(|p| shown(p)).map(|p| p[0]), panel.x_logarithmic),
        };
        let in_range = |p: &[f64; 2]| panel.x_range.is_none() || (0.0..=1.0).contains(&x.place(p[0]));
        let reach = |curve: &Curve, n: usize| {
            let p = curve.points[n];
            let half = curve.bars.get(n).copied().unwrap_or(0.0);
            let [lower, upper] = curve.band.get(n).copied().unwrap_or([p[1]; 2]);
            [p[1], p[1] - half, p[1] + half, lower, upper]
        };
        let heights = panel.curves.iter().flat_map(|curve| {
            let seen = |n: &usize| shown(&curve.points[*n]) && in_range(&curve.points[*n]);
            (0..curve.points.len()).filter(seen).flat_map(|n| reach(curve, n))
        });
        let y = match panel.y_range {
            Some([low, high]) => Scale::new(low, high, panel.y_logarithmic),
            None if panel.y_whole => whole(points().filter(|p| in_range(p)).map(|p| p[1])),
            None => Scale::around(heights, panel.y_logarithmic),
        };
        let frame = Self { clip: Clip { low, high }, x, y, reversed: panel.x_reversed, y_whole: panel.y_whole };
        if panel.y_range.is_some() || panel.legend != LegendPlace::Auto {
            return frame;
        }
        // the least room above the curves with which the legend covers nothing
        let with_room = |n: u32| Self { y: y.with_room_above(ROOM_STEP * f64::from(n)), ..frame };
        (0..=ROOM_STEPS)
            .map(with_room)
            .find(|frame| frame.legend_spot(panel).is_none_or(|spot| spot.covered == 0))
            .unwrap_or(frame)
    }

    /// Gives two frames one lower axis that holds the curves of both.
    pub(super) fn share_x(&mut self, other: &mut Self) {
        self.x.low = self.x.low.min(other.x.low);
        self.x.high = self.x.high.max(other.x.high);
        other.x = self.x;
    }

    #[cfg(test)]
    pub(super) fn y(&self) -> Scale {
        self.y
    }

    fn at_x(&self, value: f64) -> f64 {
        let place = self.x.place(value);
        let Clip { low, high } = self.clip;
        low[0] + (high[0] - low[0]) * if self.reversed { 1.0 - place } else { place }
    }

    fn at_y(&self, value: f64) -> f64 {
        let Clip { low, high } = self.clip;
        low[1] + (high[1] - low[1]) * (1.0 - self.y.place(value))
    }

    fn at(&self, point: [f64; 2]) -> [f64; 2] {
        [self.at_x(point[0]), self.at_y(point[1])]
    }

    /// Ticks of the lower axis; their labels do not overlap.
    fn x_ticks(&self) -> Vec<Tick> {
        let length = self.clip.high[0] - self.clip.low[0];
        let crowded = |ticks: &[Tick]| {
            let mut labels: Vec<[f64; 2]> =
                ticks.iter().filter_map(|t| Some([self.at_x(t.value), 0.5 * width(t.label.as_ref()?)])).collect();
            labels.sort_by(|p, q| p[0].total_cmp(&q[0]));
            labels.windows(2).any(|pair| pair[0][0] + pair[0][1] + 4.0 > pair[1][0] - pair[1][1])
        };
        let most = wanted(length, TICK_SPACING);
        (2..=most).rev().map(|n| self.x.ticks(n)).find(|t| !crowded(t)).unwrap_or_else(|| self.x.ticks(1))
    }

    fn y_ticks(&self) -> Vec<Tick> {
        let length = self.clip.high[1] - self.clip.low[1];
        if !self.y_whole {
            // a label alone tells no scale: of a low frame more ticks are asked for
            let labelled = |ticks: &Vec<Tick>| ticks.iter().filter(|tick| tick.label.is_some()).count() > 1;
            let first = wanted(length, TICK_SPACING);
            return (first..=8).map(|n| self.y.ticks(n)).find(labelled).unwrap_or_else(|| self.y.ticks(first));
        }
        let (first, last) = (self.y.low.ceil() as i64, self.y.high.floor() as i64);
        let every = ((last - first) as f64 * LINE / length).ceil().max(1.0) as i64;
        let label = |n: i64| (n.rem_euclid(every) == 0).then(|| n.to_string().replace('-', "−"));
        (first..=last).map(|n| Tick { value: n as f64, label: label(n) }).collect()
    }

    /// Space that ticks of the left axis and their labels take.
    fn tick_room(&self) -> f64 {
        let labels = self.y_ticks().into_iter().filter_map(|t| t.label).map(|label| width(&label));
        TICKS[0] + 5.0 + labels.fold(0.0, f64::max)
    }

    /// Draws the panel; `x_labels`: whether the lower axis has labels.
    pub(super) fn draw(&self, figure: &mut Figure, panel: &Panel, x_labels: bool) {
        let Clip { low, high } = self.clip;
        self.axes(figure, x_labels);
        for mark in self.marks(panel) {
            let x = self.at_x(mark.x);
            figure.lines(vec![vec![[x, low[1]], [x, high[1]]]], FAINT, AXIS_WIDTH, Dash::Dashed);
        }
        for (n, curve) in panel.curves.iter().enumerate() {
            self.band(figure, curve, panel.look(n).0);
        }
        for (n, curve) in panel.curves.iter().enumerate() {
            let (colour, dash) = panel.look(n);
            self.curve(figure, curve, colour, dash);
        }
        self.mark_labels(figure, panel);
        figure.outline(low, high, INK, AXIS_WIDTH);
        self.legend(figure, panel);
        if x_labels && !panel.x_label.is_empty() {
            figure.text([(low[0] + high[0]) / 2.0, high[1] + 22.0], &panel.x_label, INK, Align::Centre);
        }
        if !panel.y_label.is_empty() {
            let lines = wrap(&panel.y_label, high[1] - low[1]);
            figure.upright([low[0] - self.tick_room() - 4.5, (low[1] + high[1]) / 2.0], &lines, INK);
        }
    }

    /// The marks between the ends of the lower axis.
    fn marks<'a>(&self, panel: &'a Panel) -> impl Iterator<Item = &'a Mark> {
        panel.marks.iter().filter(|mark| (0.0..=1.0).contains(&self.x.place(mark.x)))
    }

    /// The labels of the marks, readable over curves.
    fn mark_labels(&self, figure: &mut Figure, panel: &Panel) {
        let high = self.clip.high;
        for mark in self.marks(panel).filter(|mark| !mark.label.is_empty()) {
            let (x, y, length) = (self.at_x(mark.x), high[1] - 7.0, width(&mark.label));
            let left = if x + 5.0 + length < high[0] { x + 3.0 } else { x - 3.0 - length };
            let corners = [[left - 1.0, y - 0.5 * LINE], [left + length + 1.0, y + 0.5 * LINE]];
            figure.rectangle(corners[0], corners[1], WHITE.opacity(0.85));
            figure.text([left, y], &mark.label, FAINT, Align::Left);
        }
    }

    fn axes(&self, figure: &mut Figure, x_labels: bool) {
        let Clip { low, high } = self.clip;
        let length = |label: &Option<String>| if label.is_some() { TICKS[0] } else { TICKS[1] };
        let (x_ticks, y_ticks) = (self.x_ticks(), self.y_ticks());
        let labelled = |ticks: &[Tick]| ticks.iter().filter(|t| t.label.is_some()).map(|t| t.value).collect::<Vec<_>>();
        let across = labelled(&x_ticks).into_iter().map(|v| vec![[self.at_x(v), low[1]], [self.at_x(v), high[1]]]);
        let along = labelled(&y_ticks).into_iter().map(|v| vec![[low[0], self.at_y(v)], [high[0], self.at_y(v)]]);
        figure.lines(across.chain(along).collect(), GRID, GRID_WIDTH, Dash::Solid);
        let x_lines = x_ticks.iter().map(|t| {
            let x = self.at_x(t.value);
            vec![[x, high[1]], [x, high[1] + length(&t.label)]]
        });
        let y_lines = y_ticks.iter().map(|t| {
            let y = self.at_y(t.value);
            vec![[low[0], y], [low[0] - length(&t.label), y]]
        });
        figure.lines(x_lines.chain(y_lines).collect(), INK, AXIS_WIDTH, Dash::Solid);
        for tick in x_ticks.into_iter().filter(|_| x_labels) {
            if let Some(label) = tick.label {
                figure.text([self.at_x(tick.value), high[1] + 9.5], label, INK, Align::Centre);
            }
        }
        for tick in y_ticks {
            if let Some(label) = tick.label {
                figure.text([low[0] - TICKS[0] - 2.5, self.at_y(tick.value)], label, INK, Align::Right);
            }
        }
    }

    fn band(&self, figure: &mut Figure, curve: &Curve, colour: Colour) {
        let ends: Vec<[[f64; 2]; 2]> = curve
            .points
            .iter()
            .zip(&curve.band)
            // a logarithmic axis has no lower end of a band that reaches zero
            .map(|(p, &[lower, upper])| {
                let shown = if self.y.logarithmic && lower <= 0.0 { self.y.low } else { lower };
                [self.at([p[0], shown]), self.at([p[0], upper])]
            })
            .collect();
        for run in ends.split(|ends| !ends.iter().flatten().all(|c| c.is_finite())) {
            let corners: Vec<[f64; 2]> = run.iter().map(|e| e[0]).chain(run.iter().rev().map(|e| e[1])).collect();
            let corners = self.clip.polygon(&corners);
            if corners.len() > 2 {
                figure.shapes.push(Shape::Area { corners, colour: colour.opacity(BAND) });
            }
        }
    }

    fn curve(&self, figure: &mut Figure, curve: &Curve, colour: Colour, dash: Dash) {
        let visible = |p: &[f64; 2]| self.at(*p).iter().all(|c| c.is_finite());
        let bars = curve.points.iter().zip(&curve.bars).filter(|(p, half)| visible(p) && **half > 0.0);
        let bars = bars.filter_map(|(p, half)| {
            let end = |value: f64| [self.at_x(p[0]), self.at_y(value.clamp(self.y.low, self.y.high))];
            let ends = [end(p[1] - half), end(p[1] + half)];
            (self.clip.holds(ends[0]) && ends[0] != ends[1]).then(|| ends.to_vec())
        });
        figure.lines(bars.collect(), colour.opacity(BARS), BAR_WIDTH, Dash::Solid);
        let (mut pieces, mut centres) = (Vec::new(), Vec::new());
        for run in curve.points.split(|p| !visible(p)) {
            let points: Vec<[f64; 2]> = run.iter().map(|p| self.at(*p)).collect();
            if curve.style != Style::Line || points.len() == 1 {
                centres.extend(points.iter().copied().filter(|p| self.clip.holds(*p)));
            }
            if curve.style != Style::Points {
                pieces.extend(self.clip.polyline(&points));
            }
        }
        figure.lines(pieces, colour, CURVE_WIDTH, dash);
        discs(figure, centres, colour, dash);
    }

    /// Names of curves beside samples of them.
    fn legend(&self, figure: &mut Figure, panel: &Panel) {
        let Some(Spot { corner, size, rows, .. }) = self.legend_spot(panel) else { return };
        let named = named(panel);
        let widths = column_widths(panel, &named, rows);
        figure.rectangle(corner, [corner[0] + size[0], corner[1] + size[1]], WHITE.opacity(0.85));
        for (entry, n) in named.into_iter().enumerate() {
            let (curve, (colour, dash)) = (&panel.curves[n], panel.look(n));
            let x = corner[0] + PADDING + widths[..entry / rows].iter().sum::<f64>();
            let y = corner[1] + 7.0 + LINE * (entry % rows) as f64;
            if !curve.band.is_empty() {
                let corners = outline([x, y - 3.0], [x + SAMPLE, y + 3.0])[..4].to_vec();
                figure.shapes.push(Shape::Area { corners, colour: colour.opacity(BAND) });
            }
            if curve.style != Style::Points {
                figure.lines(vec![vec![[x, y], [x + SAMPLE, y]]], colour, CURVE_WIDTH, dash);
            }
            if curve.style != Style::Line {
                discs(figure, vec![[x + 0.5 * SAMPLE, y]], colour, dash);
            }
            figure.text([x + SAMPLE + PADDING, y], &curve.name, INK, Align::Left);
        }
    }

    /// Where the legend stands: in the chosen corner, or in the one where it covers the least, of few columns rather than
    /// of many. `None` without a legend.
    fn legend_spot(&self, panel: &Panel) -> Option<Spot> {
        let named = named(panel);
        if named.is_empty() || panel.legend == LegendPlace::None {
            return None;
        }
        let Clip { low, high } = self.clip;
        let spot = |columns: usize, [right, lower]: [bool; 2]| {
            let rows = named.len().div_ceil(columns);
            let size = [column_widths(panel, &named, rows).iter().sum(), 3.0 + LINE * rows as f64];
            let along = |a: usize, far: bool| if far { high[a] - size[a] - 4.0 } else { low[a] + 4.0 };
            Spot { corner: [along(0, right), along(1, lower)], size, rows, covered: 0 }
        };
        let fewest = named.len().div_ceil(LEGEND_ROWS);
        let place = match panel.legend {
            LegendPlace::UpperRight => Some([true, false]),
            LegendPlace::UpperLeft => Some([false, false]),
            LegendPlace::LowerLeft => Some([false, true]),
            LegendPlace::LowerRight => Some([true, true]),
            LegendPlace::Auto | LegendPlace::None => None,
        };
        if let Some(place) = place {
            return Some(spot(fewest, place));
        }
        let places = |curve: &Curve| curve.points.iter().map(|p| self.at(*p)).collect();
        let drawn: Vec<Vec<[f64; 2]>> = panel.curves.iter().map(places).collect();
        let bar_ends = |curve: &Curve| -> Vec<[f64; 2]> {
            let bars = curve.points.iter().zip(&curve.bars);
            bars.flat_map(|([x, y], bar)| [[*x, y - bar], [*x, y + bar]]).map(|end| self.at(end)).collect()
        };
        let bar_ends: Vec<Vec<[f64; 2]>> = panel.curves.iter().map(bar_ends).collect();
        let counted = |spot: Spot| {
            let end = |a: usize| spot.corner[a] + spot.size[a] + LEGEND_MARGIN;
            let clip = Clip { low: spot.corner.map(|c| c - LEGEND_MARGIN), high: [end(0), end(1)] };
            let covered = |n: usize| {
                let (curve, points) = (&panel.curves[n], &drawn[n]);
                let points_inside = points.iter().chain(&bar_ends[n]).filter(|p| clip.holds(**p)).count();
                let is_line = curve.style != Style::Points && points_inside == 0;
                points_inside + if is_line { clip.polyline(points).len() } else { 0 }
            };
            Spot { covered: (0..drawn.len()).map(covered).sum(), ..spot }
        };
        let fits = |columns: &usize| *columns == fewest || spot(*columns, [false; 2]).size[0] < high[0] - low[0] - 8.0;
        let corners = [[true, false], [false, false], [false, true], [true, true]];
        let all = (fewest..=fewest.max(LEGEND_COLUMNS)).filter(fits);
        let all = all.flat_map(|columns| corners.map(|corner| counted(spot(columns, corner))));
        all.min_by_key(|spot| spot.covered)
    }
}

/// Place of a legend.
#[derive(Clone, Copy)]
struct Spot {
    /// Upper left corner.
    corner: [f64; 2],
    size: [f64; 2],
    rows: usize,
    /// How much of the curves it covers: points, and pieces without points.
    covered: usize,
}

/// Widths of a legend's columns of so many rows.
fn column_widths(panel: &Panel, named: &[usize], rows: usize) -> Vec<f64> {
    let widest = |names: &[usize]| names.iter().map(|n| width(&panel.curves[*n].name)).fold(0.0, f64::max);
    named.chunks(rows).map(|names| SAMPLE + 3.0 * PADDING + widest(names)).collect()
}

/// The curves that a legend lists.
fn named(panel: &Panel) -> Vec<usize> {
    (0..panel.curves.len()).filter(|n| !panel.curves[*n].name.is_empty()).collect()
}

/// Discs, or rings where colours recur.
fn discs(figure: &mut Figure, centres: Vec<[f64; 2]>, colour: Colour, dash: Dash) {
    if centres.is_empty() {
        return;
    }
    let radius = RADIUS[usize::from(centres.len() > MANY)];
    let inside = (dash != Dash::Solid).then(|| centres.clone());
    figure.shapes.push(Shape::Discs { centres, radius, colour });
    if let Some(centres) = inside {
        figure.shapes.push(Shape::Discs { centres, radius: 0.55 * radius, colour: WHITE });
    }
}
