//! Panels of curves: logarithmic or linear axes, ticks, legends, marks, bands, ratios to one of the curves.

mod frame;

use super::text::wrap;
use super::{Align, CURVES, Colour, Dash, Figure, FigureSize, INK, LINE};
use frame::{Frame, label_room};
use serde::{Deserialize, Serialize};

/// Space around frames in points.
const RIGHT: f64 = 11.0;
const ABOVE: f64 = 6.0;
const BELOW: f64 = 32.0;
/// Space between a frame and that of its ratios.
const GAP: f64 = 5.0;
/// Height of a frame per width: in a column, across a page.
const ASPECT: [f64; 2] = [0.72, 0.5];
/// Height of the frame of ratios over that of the frame above.
const RATIO_HEIGHT: f64 = 0.45;

/// A curve.
#[derive(Clone, Debug, Default)]
pub struct Curve {
    /// Name in the legend; a curve without a name is not listed.
    pub name: String,
    /// Points; one that an axis cannot show (not finite, or not positive on a logarithmic axis) interrupts the curve.
    pub points: Vec<[f64; 2]>,
    /// Line, points or both.
    pub style: Style,
    /// Half heights of error bars, one a point; none if empty.
    pub bars: Vec<f64>,
    /// Lower and upper ends of a band, one a point; none if empty.
    pub band: Vec<[f64; 2]>,
    /// Number of the colour, from 0 on; by default the curve's number.
    pub color: Option<usize>,
    /// Dashes; by default each seven curves have their own, as colours recur.
    pub dash: Option<Dash>,
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

/// Place of a legend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LegendPlace {
    /// The corner where it covers the least of the curves.
    #[default]
    Auto,
    /// Upper right corner.
    UpperRight,
    /// Upper left corner.
    UpperLeft,
    /// Lower left corner.
    LowerLeft,
    /// Lower right corner.
    LowerRight,
    /// No legend.
    None,
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

/// A frame of ratios below a panel.
#[derive(Clone, Debug, Default)]
pub struct Ratio {
    /// Number of the curve that all are divided by, from 0 on; between its points it is interpolated.
    pub to: usize,
    /// Label of its left axis.
    pub label: String,
    /// Ends of its left axis; by default those of the ratios.
    pub range: Option<[f64; 2]>,
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
    /// Ends of the lower axis, rising; by default those of the curves.
    pub x_range: Option<[f64; 2]>,
    /// Ends of the left axis, rising; by default those of the curves between the ends of the lower axis.
    pub y_range: Option<[f64; 2]>,
    /// The curves.
    pub curves: Vec<Curve>,
    /// Vertical marks.
    pub marks: Vec<Mark>,
    /// Place of the legend.
    pub legend: LegendPlace,
    /// Ratios to one of the curves, below.
    pub ratio: Option<Ratio>,
}

impl Panel {
    /// A panel over 1 + z, early times on the left, or in non-comoving coordinates over time.
    pub fn over_time(comoving: bool, y_label: &str) -> Self {
        Self {
            x_label: if comoving { "1 + z" } else { "t" }.into(),
            y_label: y_label.into(),
            x_logarithmic: comoving,
            x_reversed: comoving,
            ..Self::default()
        }
    }

    /// Colour and dashes of a curve.
    pub(super) fn look(&self, n: usize) -> (Colour, Dash) {
        let curve = &self.curves[n];
        let colour = CURVES[curve.color.unwrap_or(n) % CURVES.len()];
        (colour, curve.dash.unwrap_or(Dash::ALL[n / CURVES.len() % Dash::ALL.len()]))
    }

    /// The panel of ratios.
    fn ratios(&self) -> Option<Panel> {
        let ratio = self.ratio.as_ref()?;
        let reference = Reference::new(self, self.curves.get(ratio.to)?);
        let over = |(n, curve): (usize, &Curve)| {
            let units: Vec<f64> = curve.points.iter().map(|p| reference.at(p[0])).collect();
            Curve {
                name: String::new(),
                points: curve.points.iter().zip(&units).map(|(p, unit)| [p[0], p[1] / unit]).collect(),
                style: curve.style,
                bars: curve.bars.iter().zip(&units).map(|(bar, unit)| bar / unit).collect(),
                band: curve.band.iter().zip(&units).map(|(band, unit)| band.map(|end| end / unit)).collect(),
                color: Some(curve.color.unwrap_or(n)),
                dash: Some(self.look(n).1),
            }
        };
        Some(Panel {
            x_label: self.x_label.clone(),
            y_label: if ratio.label.is_empty() { "ratio".into() } else { ratio.label.clone() },
            x_logarithmic: self.x_logarithmic,
            x_reversed: self.x_reversed,
            x_range: self.x_range,
            y_range: ratio.range,
            curves: self.curves.iter().enumerate().map(over).collect(),
            marks: self.marks.iter().map(|mark| Mark { x: mark.x, label: String::new() }).collect(),
            ..Panel::default()
        })
    }
}

/// The curve that others are divided by, in logarithms along logarithmic axes.
struct Reference {
    points: Vec<[f64; 2]>,
    logarithmic: [bool; 2],
}

impl Reference {
    fn new(panel: &Panel, curve: &Curve) -> Self {
        let logarithmic = [panel.x_logarithmic, panel.y_logarithmic];
        let scaled = |p: &[f64; 2]| std::array::from_fn(|a| if logarithmic[a] { p[a].ln() } else { p[a] });
        let mut points: Vec<[f64; 2]> = curve.points.iter().map(scaled).collect();
        points.retain(|p| p.iter().all(|c| c.is_finite()));
        points.sort_by(|p, q| p[0].total_cmp(&q[0]));
        Self { points, logarithmic }
    }

    /// Its value; NaN where it has none.
    fn at(&self, x: f64) -> f64 {
        let x = if self.logarithmic[0] { x.ln() } else { x };
        let after = self.points.partition_point(|p| p[0] < x);
        let y = match (after.checked_sub(1).map(|n| self.points[n]), self.points.get(after)) {
            (_, Some(&[there, y])) if there == x => y,
            (Some(from), Some(to)) => from[1] + (to[1] - from[1]) * (x - from[0]) / (to[0] - from[0]),
            _ => f64::NAN,
        };
        if self.logarithmic[1] { y.exp() } else { y }
    }
}

/// Panels side by side, `columns` in a row, under a title; each as wide as a journal column.
pub fn line_figure(title: &str, panels: &[Panel], columns: usize) -> Figure {
    let columns = columns.clamp(1, panels.len().max(1));
    lay_out(title, panels, columns, columns as f64 * FigureSize::Column.width(), ASPECT[0])
}

/// As [`line_figure`], as wide as a journal column or page.
pub fn line_figure_of_size(title: &str, panels: &[Panel], columns: usize, size: FigureSize) -> Figure {
    let columns = columns.clamp(1, panels.len().max(1));
    let aspect = if size == FigureSize::Page && columns == 1 { ASPECT[1] } else { ASPECT[0] };
    lay_out(title, panels, columns, size.width(), aspect)
}

fn lay_out(title: &str, panels: &[Panel], columns: usize, width: f64, aspect: f64) -> Figure {
    let ratios: Vec<Option<Panel>> = panels.iter().map(Panel::ratios).collect();
    let rows = panels.len().div_ceil(columns);
    let cell_width = width / columns as f64;
    // labels need room for their lines, whose number depends on the height: that of a frame with the least room beside it
    let height = aspect * (cell_width - RIGHT - 60.0);
    let left = |panel: &Panel, height: f64| label_room(panel, height);
    let lefts = panels.iter().map(|panel| left(panel, height));
    let lefts = lefts.chain(ratios.iter().flatten().map(|ratio| left(ratio, RATIO_HEIGHT * height)));
    let left = lefts.fold(40.0, f64::max).min(0.5 * cell_width);
    let frame_width = cell_width - left - RIGHT;
    let height = aspect * frame_width;
    let ratio_height = if ratios.iter().any(Option::is_some) { GAP + RATIO_HEIGHT * height } else { 0.0 };
    let cell_height = ABOVE + height + ratio_height + BELOW;
    let lines = wrap(title, width - left - RIGHT);
    let top = if lines.is_empty() { 0.0 } else { 4.0 + LINE * lines.len() as f64 };
    let mut figure = Figure { title: title.into(), size: [width, top + rows as f64 * cell_height], shapes: Vec::new() };
    for (n, line) in lines.into_iter().enumerate() {
        figure.text([left, 9.0 + LINE * n as f64], line, INK, Align::Left);
    }
    for (n, (panel, ratio)) in panels.iter().zip(&ratios).enumerate() {
        let low = [(n % columns) as f64 * cell_width + left, top + (n / columns) as f64 * cell_height + ABOVE];
        let high = [low[0] + frame_width, low[1] + height];
        match ratio {
            None => Frame::new(panel, low, high).draw(&mut figure, panel, true),
            Some(ratio) => {
                let mut above = Frame::new(panel, low, high);
                let low = [low[0], high[1] + GAP];
                let mut below = Frame::new(ratio, low, [high[0], low[1] + RATIO_HEIGHT * height]);
                above.share_x(&mut below);
                above.draw(&mut figure, panel, false);
                below.draw(&mut figure, ratio, true);
            }
        }
    }
    figure
}

#[cfg(test)]
mod tests;
