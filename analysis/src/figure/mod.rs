//! Figures: a list of shapes in logical pixels, drawn as PNG or SVG.
//!
//! | module | what it holds |
//! |---|---|
//! | [`axis`] | scales and ticks |
//! | [`lines`] | panels of curves with legends |
//! | [`map`] | a field with its colour bar and patches |
//! | [`results`] | the figure of each result |
//! | `render`, `text` | shapes to PNG and SVG, with the embedded font |

pub mod axis;
pub mod lines;
pub mod map;
mod render;
pub mod results;
mod text;

use crate::error::AnalysisError;
use crate::table::write_file;
use std::path::Path;

/// Red, green, blue and opacity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Colour(pub u8, pub u8, pub u8, pub f64);

/// Of text and frames.
pub(crate) const INK: Colour = Colour(32, 36, 44, 1.0);
/// Of what is less important.
pub(crate) const FAINT: Colour = Colour(110, 116, 126, 1.0);
/// Of grid lines.
pub(crate) const GRID: Colour = Colour(226, 229, 234, 1.0);
/// Colours of curves that stay apart for all kinds of colour vision (Okabe & Ito 2008).
pub(crate) const CURVES: [Colour; 7] = [
    Colour(0, 114, 178, 1.0),
    Colour(213, 94, 0, 1.0),
    Colour(0, 158, 115, 1.0),
    Colour(204, 121, 167, 1.0),
    Colour(230, 159, 0, 1.0),
    Colour(86, 180, 233, 1.0),
    Colour(60, 60, 60, 1.0),
];

/// Where a text stands against its anchor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Centre,
    Right,
}

/// Something drawn; y grows downwards.
#[derive(Clone, Debug)]
pub(crate) enum Shape {
    /// An open polyline.
    Line { points: Vec<[f64; 2]>, colour: Colour, width: f64 },
    /// A filled rectangle.
    Rectangle { low: [f64; 2], high: [f64; 2], colour: Colour },
    /// A filled circle.
    Disc { centre: [f64; 2], radius: f64, colour: Colour },
    /// One line of text, its baseline's middle height centred on the anchor; upright ones read from below.
    Text { at: [f64; 2], text: String, size: f64, colour: Colour, align: Align, upright: bool },
    /// Square pixels stretched over a rectangle; RGB rows from above.
    Image { low: [f64; 2], high: [f64; 2], columns: usize, rgb: Vec<u8> },
}

/// A drawing, ready to be written.
#[derive(Clone, Debug)]
pub struct Figure {
    pub(crate) title: String,
    pub(crate) size: [f64; 2],
    pub(crate) shapes: Vec<Shape>,
}

impl Figure {
    /// Its title.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// The figure as a PNG file, 1.5 pixels to the logical pixel.
    pub fn png(&self) -> Result<Vec<u8>, AnalysisError> {
        render::png(self)
    }

    /// Writes the figure as PNG.
    pub fn write_png(&self, path: &Path) -> Result<(), AnalysisError> {
        write_file(path, &self.png()?)
    }

    /// Writes the figure as SVG; its text asks for DejaVu Sans or any sans-serif font.
    ///
    /// # Errors
    /// [`AnalysisError::Figure`] for a map, whose pixels are no vectors; [`AnalysisError::Io`].
    pub fn write_svg(&self, path: &Path) -> Result<(), AnalysisError> {
        write_file(path, render::svg(self)?.as_bytes())
    }

    pub(crate) fn line(&mut self, points: Vec<[f64; 2]>, colour: Colour, width: f64) {
        self.shapes.push(Shape::Line { points, colour, width });
    }

    pub(crate) fn outline(&mut self, low: [f64; 2], high: [f64; 2], colour: Colour, width: f64) {
        let corners = vec![low, [high[0], low[1]], high, [low[0], high[1]], low];
        self.line(corners, colour, width);
    }

    pub(crate) fn rectangle(&mut self, low: [f64; 2], high: [f64; 2], colour: Colour) {
        self.shapes.push(Shape::Rectangle { low, high, colour });
    }

    pub(crate) fn text(&mut self, at: [f64; 2], text: impl Into<String>, size: f64, colour: Colour, align: Align) {
        self.shapes.push(Shape::Text { at, text: text.into(), size, colour, align, upright: false });
    }

    pub(crate) fn upright(&mut self, at: [f64; 2], text: impl Into<String>, size: f64, colour: Colour) {
        self.shapes.push(Shape::Text { at, text: text.into(), size, colour, align: Align::Centre, upright: true });
    }
}
