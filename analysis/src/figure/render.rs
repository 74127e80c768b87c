//! Shapes to PNG and SVG through plotters.
//!
//! A PNG is drawn at three times the logical size and averaged over 2×2 pixels, so that every edge is smooth.

use super::text::cover_text;
use super::{Align, Colour, Figure, Shape};
use crate::error::AnalysisError;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

const FONT: &str = "DejaVu Sans";

/// Drawn pixels a logical pixel, and drawn pixels averaged along each axis of a PNG.
const PNG_SCALE: f64 = 3.0;
const PNG_AVERAGE: usize = 2;
/// SVG coordinates are integers: so many a logical pixel.
const SVG_SCALE: f64 = 8.0;

pub(super) fn png(figure: &Figure) -> Result<Vec<u8>, AnalysisError> {
    // even numbers of drawn pixels, so that the averages come out even
    let [width, height] = figure.size.map(|s| (s * PNG_SCALE / PNG_AVERAGE as f64).round() as usize * PNG_AVERAGE);
    let mut pixels = vec![255u8; width * height * 3];
    {
        let backend = BitMapBackend::with_buffer(&mut pixels, (width as u32, height as u32));
        let canvas = Canvas { figure, scale: PNG_SCALE, target: Target::Png };
        canvas.draw(&backend.into_drawing_area())?;
    }
    let small = average(&pixels, width, height);
    let mut file = Vec::new();
    let (columns, rows) = ((width / PNG_AVERAGE) as u32, (height / PNG_AVERAGE) as u32);
    let mut encoder = png::Encoder::new(&mut file, columns, rows);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let written = encoder.write_header().and_then(|mut writer| writer.write_image_data(&small));
    written.map_err(|error| failure(figure, error))?;
    Ok(file)
}

pub(super) fn svg(figure: &Figure) -> Result<String, AnalysisError> {
    if figure.shapes.iter().any(|shape| matches!(shape, Shape::Image { .. })) {
        return Err(failure(figure, "a map is made of pixels; write it as PNG"));
    }
    let [width, height] = figure.size.map(|s| (s * SVG_SCALE) as u32);
    let mut text = String::new();
    {
        let backend = SVGBackend::with_string(&mut text, (width, height));
        let canvas = Canvas { figure, scale: SVG_SCALE, target: Target::Svg };
        canvas.draw(&backend.into_drawing_area())?;
    }
    let drawn = format!("width=\"{width}\" height=\"{height}\"");
    let shown = format!("width=\"{}\" height=\"{}\"", figure.size[0], figure.size[1]);
    let fonts = format!("font-family=\"{FONT}\"");
    Ok(text.replacen(&drawn, &shown, 1).replace(&fonts, &format!("font-family=\"{FONT}, sans-serif\"")))
}

fn average(pixels: &[u8], width: usize, height: usize) -> Vec<u8> {
    let n = PNG_AVERAGE;
    let mut small = Vec::with_capacity(pixels.len() / (n * n));
    for row in 0..height / n {
        for column in 0..width / n {
            for colour in 0..3 {
                let sample =
                    |s: usize| usize::from(pixels[((row * n + s / n) * width + column * n + s % n) * 3 + colour]);
                small.push(((0..n * n).map(sample).sum::<usize>() / (n * n)) as u8);
            }
        }
    }
    small
}

fn failure(figure: &Figure, reason: impl ToString) -> AnalysisError {
    AnalysisError::Figure { title: figure.title.clone(), reason: reason.to_string() }
}

/// The kind of file.
#[derive(Clone, Copy, PartialEq)]
enum Target {
    /// Pixels: text is drawn here.
    Png,
    /// Shapes and words, which the reader's program draws.
    Svg,
}

struct Canvas<'a> {
    figure: &'a Figure,
    /// Drawn pixels a logical pixel.
    scale: f64,
    target: Target,
}

impl Canvas<'_> {
    fn draw<DB: DrawingBackend>(&self, area: &DrawingArea<DB, Shift>) -> Result<(), AnalysisError> {
        area.fill(&WHITE).map_err(|error| failure(self.figure, error))?;
        for shape in &self.figure.shapes {
            self.shape(area, shape).map_err(|error| failure(self.figure, error))?;
        }
        area.present().map_err(|error| failure(self.figure, error))
    }

    fn place(&self, point: [f64; 2]) -> (i32, i32) {
        ((point[0] * self.scale).round() as i32, (point[1] * self.scale).round() as i32)
    }

    fn shape<DB: DrawingBackend>(
        &self,
        area: &DrawingArea<DB, Shift>,
        shape: &Shape,
    ) -> Result<(), DrawingAreaErrorKind<DB::ErrorType>> {
        match shape {
            Shape::Line { points, colour, width } => self.line(area, points, *colour, *width),
            Shape::Rectangle { low, high, colour } => {
                area.draw(&Rectangle::new([self.place(*low), self.place(*high)], rgba(*colour).filled()))
            }
            Shape::Disc { centre, radius, colour } => {
                let radius = (radius * self.scale).round() as i32;
                area.draw(&Circle::new(self.place(*centre), radius, rgba(*colour).filled()))
            }
            Shape::Text { at, text, size, colour, align, upright } => {
                self.text(area, *at, text, *size, *colour, *align, *upright)
            }
            Shape::Image { low, high, columns, rgb } => self.image(area, *low, *high, *columns, rgb),
        }
    }

    /// Thick lines are drawn one by one with round joints in a PNG: rounded to whole pixels as one polygon, a level
    /// line would not stay level.
    fn line<DB: DrawingBackend>(
        &self,
        area: &DrawingArea<DB, Shift>,
        points: &[[f64; 2]],
        colour: Colour,
        width: f64,
    ) -> Result<(), DrawingAreaErrorKind<DB::ErrorType>> {
        let stroke_width = (width * self.scale).round().max(1.0) as u32;
        let style = ShapeStyle { color: rgba(colour), filled: false, stroke_width };
        let points: Vec<(i32, i32)> = points.iter().map(|&p| self.place(p)).collect();
        if self.target == Target::Svg || stroke_width < 3 || colour.3 < 1.0 {
            return area.draw(&PathElement::new(points, style));
        }
        for pair in points.windows(2) {
            area.draw(&PathElement::new(pair.to_vec(), style))?;
        }
        let joints = points.iter().skip(1).take(points.len().saturating_sub(2));
        for &joint in joints {
            area.draw(&Circle::new(joint, stroke_width as i32 / 2, style.filled()))?;
        }
        Ok(())
    }

    fn text<DB: DrawingBackend>(
        &self,
        area: &DrawingArea<DB, Shift>,
        at: [f64; 2],
        text: &str,
        size: f64,
        colour: Colour,
        align: Align,
        upright: bool,
    ) -> Result<(), DrawingAreaErrorKind<DB::ErrorType>> {
        if self.target == Target::Png {
            let at = at.map(|c| c * self.scale);
            let draw = |x, y, coverage| area.draw_pixel((x, y), &rgba(colour).mix(coverage));
            return cover_text(at, text, size * self.scale, align, upright, draw);
        }
        // plotters writes a font size of size/1.24 and puts the baseline 0.76 em below the anchor; it belongs half the
        // height of a digit, 0.365 em, below
        let rise = (0.76 - 0.365) * size;
        let top = if upright { [at[0] - rise, at[1]] } else { [at[0], at[1] - rise] };
        let horizontal = match align {
            Align::Left => HPos::Left,
            Align::Centre => HPos::Center,
            Align::Right => HPos::Right,
        };
        let transform = if upright { FontTransform::Rotate270 } else { FontTransform::None };
        let font = (FONT, 1.24 * size * self.scale).into_font().transform(transform);
        let ink = rgba(colour);
        let style = TextStyle::from(font).color(&ink).pos(Pos::new(horizontal, VPos::Top));
        area.draw(&Text::new(text.to_string(), self.place(top), style))
    }

    /// Each drawn pixel shows the image pixel under its centre.
    fn image<DB: DrawingBackend>(
        &self,
        area: &DrawingArea<DB, Shift>,
        low: [f64; 2],
        high: [f64; 2],
        columns: usize,
        rgb: &[u8],
    ) -> Result<(), DrawingAreaErrorKind<DB::ErrorType>> {
        let rows = rgb.len() / (3 * columns);
        let ((left, top), (right, bottom)) = (self.place(low), self.place(high));
        for y in top..bottom {
            for x in left..right {
                let inside = |p: i32, from: i32, to: i32, n: usize| {
                    (((f64::from(p - from) + 0.5) / f64::from(to - from) * n as f64) as usize).min(n - 1)
                };
                let start = 3 * (inside(y, top, bottom, rows) * columns + inside(x, left, right, columns));
                area.draw_pixel((x, y), &RGBColor(rgb[start], rgb[start + 1], rgb[start + 2]))?;
            }
        }
        Ok(())
    }
}

fn rgba(colour: Colour) -> RGBAColor {
    RGBAColor(colour.0, colour.1, colour.2, colour.3)
}

#[cfg(test)]
mod tests {
    use super::super::INK;
    use super::*;

    /// A PNG has 1.5 pixels to the logical pixel, white paper and the shapes where they belong.
    #[test]
    fn a_png_shows_the_shapes() {
        let mut figure = Figure { title: "x".into(), size: [20.0, 10.0], shapes: Vec::new() };
        figure.rectangle([10.0, 0.0], [20.0, 10.0], Colour(0, 0, 255, 1.0));
        let file = figure.png().unwrap();
        let mut reader = png::Decoder::new(file.as_slice()).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size()];
        let shape = reader.next_frame(&mut pixels).unwrap();
        assert_eq!((shape.width, shape.height), (30, 15));
        assert_eq!((&pixels[3 * 13..3 * 14], &pixels[3 * 17..3 * 18]), (&[255; 3][..], &[0, 0, 255][..]));
    }

    #[test]
    fn an_svg_has_its_logical_size() {
        let mut figure = Figure { title: "x".into(), size: [80.0, 40.0], shapes: Vec::new() };
        figure.text([10.0, 10.0], "10⁻³ < 1", 12.0, INK, Align::Left);
        let text = svg(&figure).unwrap();
        assert!(text.contains("width=\"80\" height=\"40\" viewBox=\"0 0 640 320\"") && text.contains("10⁻³ &lt; 1"));
        figure.shapes.push(Shape::Image { low: [0.0; 2], high: [1.0; 2], columns: 1, rgb: vec![0; 3] });
        assert!(svg(&figure).is_err());
    }
}
