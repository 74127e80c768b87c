//! Panels of curves: logarithmic or linear axes, ticks, legends, marks.

use super::axis::{Scale, Tick};
use super::{Align, CURVES, Colour, FAINT, Figure, GRID, INK, Shape};
use serde::{Deserialize, Serialize};

/// Size of a panel's frame in logical pixels, and the space around it.
const FRAME: [f64; 2] = [440.0, 320.0];
const LEFT: f64 = 98.0;
const RIGHT: f64 = 24.0;
const BELOW: f64 = 62.0;
const ABOVE: f64 = 18.0;
const TITLE: f64 = 40.0;
const SMALL: f64 = 12.5;
const LABEL: f64 = 14.5;

/// A curve.
#[derive(Clone, Debug, Default)]
pub struct Curve {
    /// Its name in the legend; without one it is not listed.
    pub name: String,
    /// Points; what an axis cannot show (not finite, or not positive on a logarithmic one) interrupts the curve.
    pub points: Vec<[f64; 2]>,
    /// How it is drawn.
    pub style: Style,
    /// Half heights of error bars, one a point; none if empty.
    pub bars: Vec<f64>,
}

/// How a curve is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Style {
    /// A line.
    #[default]
    Line,
    /// A line with its points marked.
    Marked,
    /// The points alone.
    Points,
}

/// A vertical mark at a value of the lower axis.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mark {
    /// Where on the lower axis.
    pub x: f64,
    /// What it says.
    #[serde(default)]
    pub label: String,
}

/// One pair of axes with curves.
#[derive(Clone, Debug, Default)]
pub struct Panel {
    /// Lower axis: quantity and unit.
    pub x_label: String,
    /// Left axis: quantity and unit.
    pub y_label: String,
    /// Whether the lower axis is logarithmic.
    pub x_logarithmic: bool,
    /// Whether the left axis is logarithmic.
    pub y_logarithmic: bool,
    /// Whether the left axis counts whole things: ticks at whole numbers, half a one beyond the ends.
    pub y_whole: bool,
    /// Whether the lower axis runs from large to small.
    pub x_reversed: bool,
    /// The curves.
    pub curves: Vec<Curve>,
    /// Vertical marks.
    pub marks: Vec<Mark>,
}

/// Panels side by side, `columns` in a row, under a title.
pub fn line_figure(title: &str, panels: &[Panel], columns: usize) -> Figure {
    let columns = columns.clamp(1, panels.len().max(1));
    let rows = panels.len().div_ceil(columns);
    let cell = [LEFT + FRAME[0] + RIGHT, ABOVE + FRAME[1] + BELOW];
    let size = [columns as f64 * cell[0], TITLE + rows as f64 * cell[1]];
    let mut figure = Figure { title: title.into(), size, shapes: Vec::new() };
    figure.text([LEFT, 26.0], title, 16.0, INK, Align::Left);
    for (n, panel) in panels.iter().enumerate() {
        let corner = [(n % columns) as f64 * cell[0] + LEFT, TITLE + (n / columns) as f64 * cell[1] + ABOVE];
        Frame::new(panel, corner).draw(&mut figure, panel);
    }
    figure
}

struct Frame {
    low: [f64; 2],
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

impl Frame {
    fn new(panel: &Panel, low: [f64; 2]) -> Self {
        let points = || panel.curves.iter().flat_map(|c| &c.points);
        let shown = |p: &&[f64; 2]| {
            let good = |v: f64, log: bool| v.is_finite() && (!log || v > 0.0);
            good(p[0], panel.x_logarithmic) && good(p[1], panel.y_logarithmic)
        };
        let x = Scale::around(points().filter(shown).map(|p| p[0]), panel.x_logarithmic);
        let reach = |(n, p): (usize, &[f64; 2]), bars: &[f64]| {
            let half = bars.get(n).copied().unwrap_or(0.0);
            [p[1], p[1] - half, p[1] + half]
        };
        let heights = panel.curves.iter().flat_map(|c| {
            c.points.iter().enumerate().filter(|(_, p)| shown(p)).flat_map(|point| reach(point, &c.bars))
        });
        let y = Scale::around(heights, panel.y_logarithmic);
        let y = if panel.y_whole { whole(points().map(|p| p[1])) } else { y };
        Self { low, x, y, reversed: panel.x_reversed, y_whole: panel.y_whole }
    }

    fn at_x(&self, value: f64) -> f64 {
        let place = self.x.place(value);
        self.low[0] + FRAME[0] * if self.reversed { 1.0 - place } else { place }
    }

    fn at_y(&self, value: f64) -> f64 {
        self.low[1] + FRAME[1] * (1.0 - self.y.place(value))
    }

    fn draw(&self, figure: &mut Figure, panel: &Panel) {
        let high = [self.low[0] + FRAME[0], self.low[1] + FRAME[1]];
        self.axes(figure, high);
        for mark in panel.marks.iter().filter(|m| (0.0..=1.0).contains(&self.x.place(m.x))) {
            let x = self.at_x(mark.x);
            let dashes = (0..(FRAME[1] / 8.0) as usize).map(|n| self.low[1] + 8.0 * n as f64);
            dashes.for_each(|y| figure.line(vec![[x, y], [x, y + 4.0]], FAINT, 1.0));
            let right = x + 60.0 < high[0];
            let (offset, align) = if right { (5.0, Align::Left) } else { (-5.0, Align::Right) };
            figure.text([x + offset, high[1] - 14.0], &mark.label, SMALL, FAINT, align);
        }
        for (curve, colour) in panel.curves.iter().zip(CURVES.iter().cycle()) {
            self.curve(figure, curve, *colour);
        }
        figure.outline(self.low, high, INK, 1.0);
        self.legend(figure, panel, high);
        figure.text([(self.low[0] + high[0]) / 2.0, high[1] + 44.0], &panel.x_label, LABEL, INK, Align::Centre);
        figure.upright([self.low[0] - 76.0, (self.low[1] + high[1]) / 2.0], &panel.y_label, LABEL, INK);
    }

    fn axes(&self, figure: &mut Figure, high: [f64; 2]) {
        let length = |label: &Option<String>| if label.is_some() { 6.0 } else { 3.5 };
        let x_ticks = self.x.ticks(6);
        let y_ticks: Vec<Tick> = if self.y_whole {
            let tick = |n: i64| Tick { value: n as f64, label: Some(n.to_string()) };
            (self.y.low.ceil() as i64..=self.y.high.floor() as i64).map(tick).collect()
        } else {
            self.y.ticks(6)
        };
        for tick in x_ticks.iter().filter(|t| t.label.is_some()) {
            figure.line(vec![[self.at_x(tick.value), self.low[1]], [self.at_x(tick.value), high[1]]], GRID, 0.8);
        }
        for tick in y_ticks.iter().filter(|t| t.label.is_some()) {
            figure.line(vec![[self.low[0], self.at_y(tick.value)], [high[0], self.at_y(tick.value)]], GRID, 0.8);
        }
        for tick in x_ticks {
            let x = self.at_x(tick.value);
            figure.line(vec![[x, high[1]], [x, high[1] + length(&tick.label)]], INK, 1.0);
            if let Some(label) = tick.label {
                figure.text([x, high[1] + 18.0], label, SMALL, INK, Align::Centre);
            }
        }
        for tick in y_ticks {
            let y = self.at_y(tick.value);
            figure.line(vec![[self.low[0], y], [self.low[0] - length(&tick.label), y]], INK, 1.0);
            if let Some(label) = tick.label {
                figure.text([self.low[0] - 10.0, y], label, SMALL, INK, Align::Right);
            }
        }
    }

    fn curve(&self, figure: &mut Figure, curve: &Curve, colour: Colour) {
        let visible = |p: &[f64; 2]| self.x.place(p[0]).is_finite() && self.y.place(p[1]).is_finite();
        let pale = Colour(colour.0, colour.1, colour.2, 0.35);
        for (p, half) in curve.points.iter().zip(&curve.bars).filter(|(p, half)| visible(p) && **half > 0.0) {
            let end = |value: f64| [self.at_x(p[0]), self.at_y(value.clamp(self.y.low, self.y.high))];
            figure.line(vec![end(p[1] - half), end(p[1] + half)], pale, 1.2);
        }
        for run in curve.points.split(|p| !visible(p)) {
            let points: Vec<[f64; 2]> = run.iter().map(|p| [self.at_x(p[0]), self.at_y(p[1])]).collect();
            if curve.style != Style::Line || points.len() == 1 {
                // many points lie close
                let radius = if points.len() > 60 { 1.8 } else { 3.0 };
                figure.shapes.extend(points.iter().map(|&centre| Shape::Disc { centre, radius, colour }));
            }
            if points.len() > 1 && curve.style != Style::Points {
                figure.line(points, colour, 1.8);
            }
        }
    }

    /// The legend, in the corner that the fewest points lie in.
    fn legend(&self, figure: &mut Figure, panel: &Panel, high: [f64; 2]) {
        let names: Vec<(&str, Colour)> = panel
            .curves
            .iter()
            .zip(CURVES.iter().cycle())
            .filter(|(curve, _)| !curve.name.is_empty())
            .map(|(curve, colour)| (curve.name.as_str(), *colour))
            .collect();
        if names.is_empty() {
            return;
        }
        let widest = names.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0) as f64;
        let size = [44.0 + 0.6 * SMALL * widest, 12.0 + 19.0 * names.len() as f64];
        let corners = [
            [high[0] - size[0] - 8.0, self.low[1] + 8.0],
            [self.low[0] + 8.0, self.low[1] + 8.0],
            [self.low[0] + 8.0, high[1] - size[1] - 8.0],
            [high[0] - size[0] - 8.0, high[1] - size[1] - 8.0],
        ];
        let covered = |corner: &[f64; 2]| {
            let points = panel.curves.iter().flat_map(|c| &c.points).map(|p| [self.at_x(p[0]), self.at_y(p[1])]);
            points.filter(|p| (0..2).all(|a| p[a] > corner[a] - 6.0 && p[a] < corner[a] + size[a] + 6.0)).count()
        };
        let corner = corners.into_iter().min_by_key(covered).expect("four corners");
        figure.rectangle(corner, [corner[0] + size[0], corner[1] + size[1]], Colour(255, 255, 255, 0.85));
        for (n, (name, colour)) in names.into_iter().enumerate() {
            let y = corner[1] + 15.5 + 19.0 * n as f64;
            figure.line(vec![[corner[0] + 8.0, y], [corner[0] + 30.0, y]], colour, 2.2);
            figure.text([corner[0] + 37.0, y], name, SMALL, INK, Align::Left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Error bars count for the scale: those that a logarithmic axis can show.
    #[test]
    fn error_bars_fit_into_the_frame() {
        for (y_logarithmic, low) in [(false, -8.0), (true, 0.9)] {
            let curve = Curve { points: vec![[1.0, 1.0], [2.0, 2.0]], bars: vec![0.1, 10.0], ..Curve::default() };
            let frame = Frame::new(&Panel { y_logarithmic, curves: vec![curve], ..Panel::default() }, [0.0; 2]);
            assert!(frame.y.low < low && frame.y.high > 12.0, "{:?}", frame.y);
        }
    }

    /// All that is drawn stays inside the figure, and points that a logarithmic axis cannot show interrupt the curve.
    #[test]
    fn curves_stay_inside_and_break_at_gaps() {
        let points = vec![[1.0, 1.0], [2.0, 10.0], [3.0, 0.0], [4.0, 1e4], [5.0, 1e5]];
        let panel = Panel {
            y_logarithmic: true,
            curves: vec![Curve { name: "x".into(), points, style: Style::Marked, ..Curve::default() }],
            marks: vec![Mark { x: 4.9, label: "edge".into() }, Mark { x: 77.0, label: "outside".into() }],
            ..Panel::default()
        };
        let figure = line_figure("two panels", &[panel.clone(), panel], 2);
        let thick = figure.shapes.iter().filter(|s| matches!(s, Shape::Line { width, .. } if *width == 1.8));
        assert_eq!(thick.count(), 4);
        for shape in &figure.shapes {
            let points = match shape {
                Shape::Line { points, .. } => points.clone(),
                Shape::Disc { centre, .. } => vec![*centre],
                Shape::Text { at, text, .. } => {
                    assert_ne!(text, "outside");
                    vec![*at]
                }
                _ => Vec::new(),
            };
            assert!(points.iter().all(|p| (0..2).all(|a| (0.0..=figure.size[a]).contains(&p[a]))), "{shape:?}");
        }
    }
}
