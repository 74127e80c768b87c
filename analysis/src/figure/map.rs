//! A map as a figure: the field in colours, a colour bar, axes in Mpc/h and the patches.

use super::axis::{Scale, Tick};
use super::text::{width, wrap};
use super::{Align, Colour, Dash, FAINT, Figure, FigureSize, INK, LINE, Shape, outline};
use crate::cell_fields::{CellField, label, labelled};
use crate::error::AnalysisError;
use crate::map::Map;
use crate::table::{readable, readable_redshift};
use serde::{Deserialize, Serialize};

/// Longer side of the picture in points by default: the default number of pixels of a map, each a pixel of the PNG.
const SIDE: f64 = crate::map::PIXELS as f64 * 72.0 / super::render::RESOLUTION;
/// Height of the picture over the width of a figure of a given size, at most.
const TALLEST: f64 = 1.3;
/// Space around the picture and its colour bar in points.
const LEFT: f64 = 40.0;
const RIGHT: f64 = 5.0;
const BELOW: f64 = 32.0;
const BAR: f64 = 9.0;
const BAR_GAP: f64 = 6.0;
/// Distances of labelled ticks along the axes and the bar.
const TICK_SPACING: f64 = 43.0;
const BAR_TICK_SPACING: f64 = 38.0;
const AXIS_WIDTH: f64 = 0.6;

/// How a map is coloured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MapStyle {
    /// Values at the ends of the colour bar; by default those of the map (symmetric where they have both signs).
    pub range: Option<[f64; 2]>,
    /// Whether colours follow the logarithm; by default as the field's entry in the table says.
    pub logarithmic: Option<bool>,
    /// Width in print: a journal column of 86 mm, or a page of 178 mm; by default the longer side of the map is 98 mm.
    pub size: Option<FigureSize>,
}

/// The figure of a slice or projection.
///
/// Colours: inferno for logarithmic scales, viridis for linear ones, red and blue around zero; grey where there is no
/// value.
///
/// # Errors
/// [`AnalysisError::Option`] for a range that is empty or not positive on a
/// logarithmic scale; [`AnalysisError::Figure`] for a map without pixels.
pub fn map_figure(map: &Map, style: &MapStyle) -> Result<Figure, AnalysisError> {
    map_figure_of(map, style, &labelled(&map.field))
}

/// As [`map_figure`], of a field with this meaning and scale.
pub(super) fn map_figure_of(map: &Map, style: &MapStyle, field: &CellField) -> Result<Figure, AnalysisError> {
    let colours = Colours::new(map, field, style)?;
    let [columns, rows] = map.pixels();
    let title = title(map, field);
    if columns * rows == 0 {
        return Err(AnalysisError::Figure { title, reason: "the map has no pixels".into() });
    }
    let extent = [map.horizontal_mpc_h, map.vertical_mpc_h].map(|e| e[1] - e[0]);
    // beside the picture: the bar, its ticks, which depend on its height, and its label
    let beside = |ticks: &[Tick]| {
        let labels = ticks.iter().filter_map(|t| t.label.as_ref()).map(|label| width(label)).fold(0.0, f64::max);
        BAR_GAP + BAR + 6.0 + labels + LINE + RIGHT
    };
    let bar_ticks = |height: f64| colours.scale.ticks(wanted(height, BAR_TICK_SPACING));
    let scale = match style.size {
        None => SIDE / extent[0].max(extent[1]),
        Some(size) => {
            let room = size.width() - LEFT - beside(&bar_ticks(0.7 * size.width()));
            (room / extent[0]).min(TALLEST * size.width() / extent[1])
        }
    };
    let picture = [scale * extent[0], scale * extent[1]];
    let ticks = bar_ticks(picture[1]);
    let right = beside(&ticks);
    let headline = Headline::new(&title, map, picture[0] + BAR_GAP + BAR);
    let low = [LEFT, headline.height()];
    let high = [low[0] + picture[0], low[1] + picture[1]];
    let size = [high[0] + right, high[1] + BELOW];
    let mut figure = Figure { title, size, shapes: Vec::new() };
    let rgb = map.values.iter().rev().flatten().flat_map(|&v| colours.rgb(v)).collect();
    figure.shapes.push(Shape::Image { low, high, columns, rgb });
    patches(&mut figure, map, low, scale);
    figure.outline(low, high, INK, AXIS_WIDTH);
    axes(&mut figure, map, low, high);
    bar(&mut figure, &colours, ticks, [high[0] + BAR_GAP, low[1]], high[1]);
    let label = [label(&map.symbol, &map.unit)];
    figure.upright([size[0] - RIGHT - 0.5 * LINE, (low[1] + high[1]) / 2.0], &label, INK);
    headline.draw(&mut figure);
    Ok(figure)
}

fn title(map: &Map, field: &CellField) -> String {
    let across = ["x", "y", "z"][map.axis.frame()[2]];
    let meaning = &field.meaning;
    let outside = if map.values.iter().flatten().any(|v| v.is_nan()) { "; grey: outside the box" } else { "" };
    if map.is_slice() {
        format!("{meaning}, slice at {across} = {} Mpc/h{outside}", length(map.depth_mpc_h[0]))
    } else {
        let depth = length(map.depth_mpc_h[1] - map.depth_mpc_h[0]);
        format!("{meaning}, mean over {depth} Mpc/h along {across}{outside}")
    }
}

/// A length without superfluous zeros.
fn length(value: f64) -> String {
    let text = readable(value);
    if text.contains('.') && !text.contains('×') {
        text.trim_end_matches('0').trim_end_matches('.').into()
    } else {
        text
    }
}

/// The title, capitalised, in as many lines as it takes, and the redshift at their right end.
struct Headline {
    lines: Vec<String>,
    redshift: Option<String>,
    /// Width of the title and the redshift.
    room: f64,
}

impl Headline {
    fn new(title: &str, map: &Map, room: f64) -> Self {
        let mut letters = title.chars();
        let text: String = letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect();
        let shown = |z: f64| format!("redshift {}", readable_redshift(z));
        let redshift = map.redshift.map(shown);
        let mut lines = wrap(&text, room);
        let taken = |line: &String| width(line) + 8.0 + redshift.as_deref().map_or(0.0, width);
        if lines.last().is_some_and(|last| taken(last) > room) {
            lines.push(String::new());
        }
        Self { lines, redshift, room }
    }

    fn height(&self) -> f64 {
        6.0 + LINE * self.lines.len() as f64
    }

    fn draw(self, figure: &mut Figure) {
        let y = |n: usize| 7.5 + LINE * n as f64;
        if let Some(redshift) = self.redshift {
            let last = self.lines.len().saturating_sub(1);
            figure.text([LEFT + self.room, y(last)], redshift, FAINT, Align::Right);
        }
        for (n, line) in self.lines.into_iter().enumerate().filter(|(_, line)| !line.is_empty()) {
            figure.text([LEFT, y(n)], line, INK, Align::Left);
        }
    }
}

fn axes(figure: &mut Figure, map: &Map, low: [f64; 2], high: [f64; 2]) {
    let [right, up, _] = map.axis.frame().map(|a| ["x", "y", "z"][a]);
    let x = Scale::new(map.horizontal_mpc_h[0], map.horizontal_mpc_h[1], false);
    let y = Scale::new(map.vertical_mpc_h[0], map.vertical_mpc_h[1], false);
    let (mut lines, bottom) = (Vec::new(), high[1] + 9.5);
    for tick in x.ticks(wanted(high[0] - low[0], TICK_SPACING)) {
        let at = low[0] + (high[0] - low[0]) * x.place(tick.value);
        lines.push(vec![[at, high[1]], [at, high[1] + 3.0]]);
        figure.text([at, bottom], tick.label.unwrap_or_default(), INK, Align::Centre);
    }
    let mut widest = 0.0f64;
    for tick in y.ticks(wanted(high[1] - low[1], TICK_SPACING)) {
        let at = high[1] - (high[1] - low[1]) * y.place(tick.value);
        lines.push(vec![[low[0], at], [low[0] - 3.0, at]]);
        let label = tick.label.unwrap_or_default();
        widest = widest.max(width(&label));
        figure.text([low[0] - 5.5, at], label, INK, Align::Right);
    }
    figure.lines(lines, INK, AXIS_WIDTH, Dash::Solid);
    let middle = [(low[0] + high[0]) / 2.0, (low[1] + high[1]) / 2.0];
    figure.text([middle[0], high[1] + 22.0], format!("{right} [Mpc/h]"), INK, Align::Centre);
    figure.upright([(low[0] - widest - 12.5).max(6.0), middle[1]], &[format!("{up} [Mpc/h]")], INK);
}

/// Thin outlines, those of finer levels stronger.
fn patches(figure: &mut Figure, map: &Map, corner: [f64; 2], scale: f64) {
    let x = |v: f64| {
        corner[0] + scale * (v.clamp(map.horizontal_mpc_h[0], map.horizontal_mpc_h[1]) - map.horizontal_mpc_h[0])
    };
    let y =
        |v: f64| corner[1] + scale * (map.vertical_mpc_h[1] - v.clamp(map.vertical_mpc_h[0], map.vertical_mpc_h[1]));
    let finest = map.patches.iter().map(|patch| patch.level).max().unwrap_or(0);
    for level in 0..=finest {
        let of_level = map.patches.iter().filter(|patch| patch.level == level);
        let outlines = of_level.map(|p| outline([x(p.low[0]), y(p.high[1])], [x(p.high[0]), y(p.low[1])]));
        let strength = (0.30 + 0.08 * level as f64).min(0.7);
        figure.lines(outlines.collect(), Colour(235, 240, 250, strength), 0.3, Dash::Solid);
    }
}

/// Ticks along a side, about one every `each` points.
fn wanted(length: f64, each: f64) -> usize {
    ((length / each).round() as usize).clamp(2, 7)
}

fn bar(figure: &mut Figure, colours: &Colours, ticks: Vec<Tick>, corner: [f64; 2], bottom: f64) {
    let steps = 256;
    let at = |n: usize| colours.colour((n as f64 + 0.5) / steps as f64);
    let rgb = (0..steps).rev().flat_map(at).collect();
    let high = [corner[0] + BAR, bottom];
    figure.shapes.push(Shape::Image { low: corner, high, columns: 1, rgb });
    figure.outline(corner, high, INK, AXIS_WIDTH);
    let y = |tick: &Tick| bottom - (bottom - corner[1]) * colours.scale.place(tick.value);
    let length = |tick: &Tick| if tick.label.is_some() { 3.0 } else { 1.8 };
    let lines = ticks.iter().map(|tick| vec![[high[0], y(tick)], [high[0] + length(tick), y(tick)]]);
    figure.lines(lines.collect(), INK, AXIS_WIDTH, Dash::Solid);
    for tick in &ticks {
        if let Some(text) = &tick.label {
            figure.text([high[0] + 5.0, y(tick)], text, INK, Align::Left);
        }
    }
}

/// Values to colours.
struct Colours {
    scale: Scale,
    gradient: colorous::Gradient,
    reversed: bool,
}

impl Colours {
    fn new(map: &Map, field: &CellField, style: &MapStyle) -> Result<Self, AnalysisError> {
        let logarithmic = style.logarithmic.unwrap_or(field.logarithmic);
        let values = || map.values.iter().flatten().copied().filter(|v| v.is_finite() && (!logarithmic || *v > 0.0));
        let (low, high) = values().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
        let signed = !logarithmic && low < 0.0 && high > 0.0;
        let [low, high] = match style.range {
            Some([low, high]) if low < high && high.is_finite() && (!logarithmic || low > 0.0) => [low, high],
            Some(range) => {
                let reason = "must be two increasing values, positive on a logarithmic scale";
                return Err(AnalysisError::option("range", format!("{range:?}"), reason));
            }
            None if signed => [-high.max(-low), high.max(-low)],
            None => [low, high],
        };
        // a map of one value, or of none, still gets a scale around it
        let scale = if low < high { Scale::new(low, high, logarithmic) } else { Scale::around([low], logarithmic) };
        let (gradient, reversed) = match (logarithmic, signed) {
            (true, _) => (colorous::INFERNO, false),
            (false, false) => (colorous::VIRIDIS, false),
            (false, true) => (colorous::RED_BLUE, true),
        };
        Ok(Self { scale, gradient, reversed })
    }

    fn rgb(&self, value: f64) -> [u8; 3] {
        if value.is_nan() {
            return [150; 3];
        }
        // a value that a logarithm cannot show lies below every other
        let place = if self.scale.logarithmic && value <= 0.0 { 0.0 } else { self.scale.place(value) };
        self.colour(place.clamp(0.0, 1.0))
    }

    fn colour(&self, place: f64) -> [u8; 3] {
        let colour = self.gradient.eval_continuous(if self.reversed { 1.0 - place } else { place });
        [colour.r, colour.g, colour.b]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Fixture;
    use crate::map::{MapOptions, slice};

    #[test]
    fn colours_follow_the_values() {
        let snapshot = Fixture::blob().build();
        let options =
            MapOptions { center: Some([0.3, 0.4, 0.55]), pixels: Some(32), patches: true, ..MapOptions::default() };
        let map = slice(&snapshot, &options).unwrap();
        let figure = map_figure(&map, &MapStyle::default()).unwrap();
        let Shape::Image { rgb, columns, .. } = &figure.shapes[0] else { panic!("the picture comes first") };
        assert_eq!((*columns, rgb.len()), (32, 32 * 32 * 3));
        let brightness =
            |i: usize, j: usize| rgb[3 * ((31 - j) * 32 + i)..][..3].iter().map(|&c| u32::from(c)).sum::<u32>();
        assert!(brightness(16, 16) > 500 && brightness(0, 0) < 20, "{} {}", brightness(16, 16), brightness(0, 0));
        let narrow = MapStyle { range: Some([1e3, 1e2]), ..MapStyle::default() };
        assert!(map_figure(&map, &narrow).is_err());
    }

    #[test]
    fn one_value_and_no_value_are_drawn() {
        let map =
            slice(&Fixture::uniform(1.0).build(), &MapOptions { pixels: Some(16), ..MapOptions::default() }).unwrap();
        let figure = map_figure(&map, &MapStyle::default()).unwrap();
        assert!(figure.png().is_ok() && !figure.title().contains("grey"), "{}", figure.title());
        let empty = Map { values: vec![vec![f64::NAN; 4]; 4], ..map };
        let figure = map_figure(&empty, &MapStyle::default()).unwrap();
        assert!(figure.png().is_ok() && figure.title().ends_with("; grey: outside the box"), "{}", figure.title());
        let Shape::Image { rgb, .. } = &figure.shapes[0] else { panic!("the picture comes first") };
        assert!(rgb.iter().all(|&c| c == rgb[0]), "grey");
    }
}
