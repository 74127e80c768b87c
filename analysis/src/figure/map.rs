//! A map as a figure: the field in colours, a colour bar, axes in Mpc/h and the patches.

use super::axis::{Scale, Tick};
use super::{Align, Colour, FAINT, Figure, INK, Shape};
use crate::cell_fields::{CellField, labelled};
use crate::error::AnalysisError;
use crate::map::Map;
use crate::table::readable;
use serde::{Deserialize, Serialize};

/// Longer side of the picture in logical pixels, and the space around it.
const SIDE: f64 = 640.0;
const LEFT: f64 = 84.0;
const ABOVE: f64 = 50.0;
const BELOW: f64 = 64.0;
const BAR: f64 = 22.0;
const BAR_GAP: f64 = 16.0;
/// Width of a character of a tick label.
const LETTER: f64 = 8.3;

/// How a map is coloured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MapStyle {
    /// Values at the ends of the colour bar; by default those of the map (symmetric where they have both signs).
    pub range: Option<[f64; 2]>,
    /// Whether colours follow the logarithm; by default as the field's entry in the table says.
    pub logarithmic: Option<bool>,
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
    let field = labelled(&map.field);
    let colours = Colours::new(map, &field, style)?;
    let [columns, rows] = map.pixels();
    let title = title(map, &field);
    if columns * rows == 0 {
        return Err(AnalysisError::Figure { title, reason: "the map has no pixels".into() });
    }
    let extent = [map.horizontal_mpc_h, map.vertical_mpc_h].map(|e| e[1] - e[0]);
    let scale = SIDE / extent[0].max(extent[1]);
    let low = [LEFT, ABOVE];
    let high = [LEFT + scale * extent[0], ABOVE + scale * extent[1]];
    let ticks = colours.scale.ticks(wanted(high[1] - low[1], 90.0));
    let letters = ticks.iter().filter_map(|t| t.label.as_ref()).map(|l| l.chars().count()).max().unwrap_or(0);
    let label_at = high[0] + BAR_GAP + BAR + 32.0 + LETTER * letters as f64;
    let size = [label_at + 20.0, high[1] + BELOW];
    let mut figure = Figure { title, size, shapes: Vec::new() };
    let rgb = map.values.iter().rev().flatten().flat_map(|&v| colours.rgb(v)).collect();
    figure.shapes.push(Shape::Image { low, high, columns, rgb });
    patches(&mut figure, map, low, scale);
    figure.outline(low, high, INK, 1.0);
    axes(&mut figure, map, low, high);
    bar(&mut figure, &colours, ticks, [high[0] + BAR_GAP, low[1]], high[1]);
    figure.upright([label_at, (low[1] + high[1]) / 2.0], field.label(), 15.0, INK);
    headline(&mut figure, map, low, high);
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

/// The title, capitalised, and the redshift; in two lines where the picture is narrow.
fn headline(figure: &mut Figure, map: &Map, low: [f64; 2], high: [f64; 2]) {
    let mut letters = figure.title.chars();
    let text: String = letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect();
    // a map much taller than wide leaves the title less room than its frame
    let size = (15.0f64).min((high[0] - low[0] + BAR_GAP + BAR) / (0.62 * text.chars().count() as f64 + 8.0));
    figure.text([low[0], low[1] - 19.0], text, size, INK, Align::Left);
    if let Some(z) = map.redshift {
        let shown = format!("redshift {}", if z.abs() < 5e-4 { "0".into() } else { readable(z) });
        figure.text([figure.size[0] - 14.0, low[1] - 19.0], shown, size.max(11.0), FAINT, Align::Right);
    }
}

fn axes(figure: &mut Figure, map: &Map, low: [f64; 2], high: [f64; 2]) {
    let [right, up, _] = map.axis.frame().map(|a| ["x", "y", "z"][a]);
    let x = Scale::new(map.horizontal_mpc_h[0], map.horizontal_mpc_h[1], false);
    let y = Scale::new(map.vertical_mpc_h[0], map.vertical_mpc_h[1], false);
    for tick in x.ticks(wanted(high[0] - low[0], 100.0)) {
        let at = low[0] + (high[0] - low[0]) * x.place(tick.value);
        figure.line(vec![[at, high[1]], [at, high[1] + 6.0]], INK, 1.0);
        figure.text([at, high[1] + 18.0], tick.label.unwrap_or_default(), 13.0, INK, Align::Centre);
    }
    for tick in y.ticks(wanted(high[1] - low[1], 100.0)) {
        let at = high[1] - (high[1] - low[1]) * y.place(tick.value);
        figure.line(vec![[low[0], at], [low[0] - 6.0, at]], INK, 1.0);
        figure.text([low[0] - 10.0, at], tick.label.unwrap_or_default(), 13.0, INK, Align::Right);
    }
    let middle = [(low[0] + high[0]) / 2.0, (low[1] + high[1]) / 2.0];
    figure.text([middle[0], high[1] + 44.0], format!("{right} [Mpc/h]"), 15.0, INK, Align::Centre);
    figure.upright([low[0] - 62.0, middle[1]], format!("{up} [Mpc/h]"), 15.0, INK);
}

/// Thin outlines, those of finer levels stronger.
fn patches(figure: &mut Figure, map: &Map, corner: [f64; 2], scale: f64) {
    let x = |v: f64| {
        corner[0] + scale * (v.clamp(map.horizontal_mpc_h[0], map.horizontal_mpc_h[1]) - map.horizontal_mpc_h[0])
    };
    let y =
        |v: f64| corner[1] + scale * (map.vertical_mpc_h[1] - v.clamp(map.vertical_mpc_h[0], map.vertical_mpc_h[1]));
    for patch in &map.patches {
        let strength = (0.30 + 0.08 * patch.level as f64).min(0.7);
        let colour = Colour(235, 240, 250, strength);
        figure.outline([x(patch.low[0]), y(patch.high[1])], [x(patch.high[0]), y(patch.low[1])], colour, 0.5);
    }
}

/// Ticks along a side, about one every `each` pixels.
fn wanted(length: f64, each: f64) -> usize {
    ((length / each).round() as usize).clamp(2, 7)
}

fn bar(figure: &mut Figure, colours: &Colours, ticks: Vec<Tick>, corner: [f64; 2], bottom: f64) {
    let steps = 256;
    let at = |n: usize| colours.colour((n as f64 + 0.5) / steps as f64);
    let rgb = (0..steps).rev().flat_map(at).collect();
    let high = [corner[0] + BAR, bottom];
    figure.shapes.push(Shape::Image { low: corner, high, columns: 1, rgb });
    figure.outline(corner, high, INK, 1.0);
    for tick in ticks {
        let y = bottom - (bottom - corner[1]) * colours.scale.place(tick.value);
        let length = if tick.label.is_some() { 6.0 } else { 3.5 };
        figure.line(vec![[high[0], y], [high[0] + length, y]], INK, 1.0);
        if let Some(text) = tick.label {
            figure.text([high[0] + 10.0, y], text, 13.0, INK, Align::Left);
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
                let reason = "two rising values, positive on a logarithmic scale";
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
        let options = MapOptions { center: Some([0.3, 0.4, 0.55]), pixels: 32, patches: true, ..MapOptions::default() };
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
        let map = slice(&Fixture::uniform(1.0).build(), &MapOptions { pixels: 16, ..MapOptions::default() }).unwrap();
        let figure = map_figure(&map, &MapStyle::default()).unwrap();
        assert!(figure.png().is_ok() && !figure.title().contains("grey"), "{}", figure.title());
        let empty = Map { values: vec![vec![f64::NAN; 4]; 4], ..map };
        let figure = map_figure(&empty, &MapStyle::default()).unwrap();
        assert!(figure.png().is_ok() && figure.title().ends_with("; grey: outside the box"), "{}", figure.title());
        let Shape::Image { rgb, .. } = &figure.shapes[0] else { panic!("the picture comes first") };
        assert!(rgb.iter().all(|&c| c == rgb[0]), "grey");
    }
}
