//! Figures: a list of shapes in points (1/72 inch), written as SVG, and from that as PNG and PDF.
//!
//! | module | content |
//! |---|---|
//! | [`axis`] | scales and ticks |
//! | [`lines`] | panels of curves: options and layout; drawn in `lines/frame.rs` |
//! | [`map`] | a field with its colour bar and patches |
//! | [`initial_condition`] | slices, spectra and velocities of an initial condition |
//! | [`results`] | the figure of each result |
//! | `clip` | curves and areas cut at a frame |
//! | `svg`, `render` | shapes to SVG; SVG to PNG and PDF |
//! | `text` | the embedded font: width of text, line breaks |

pub mod axis;
mod clip;
pub mod initial_condition;
pub mod lines;
pub mod map;
mod render;
pub mod results;
mod svg;
mod text;

use crate::error::AnalysisError;
use crate::table::write_file;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Points in a millimetre.
const MM: f64 = 72.0 / 25.4;
/// Size of all text.
const TEXT: f64 = 8.0;
/// Distance of lines of text.
const LINE: f64 = 10.5;

/// Red, green, blue and opacity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Colour(pub u8, pub u8, pub u8, pub f64);

impl Colour {
    /// The colour with another opacity.
    fn opacity(self, opacity: f64) -> Self {
        Self(self.0, self.1, self.2, opacity)
    }
}

/// Text and frames.
pub(crate) const INK: Colour = Colour(32, 36, 44, 1.0);
/// Marks and secondary text.
pub(crate) const FAINT: Colour = Colour(110, 116, 126, 1.0);
/// Grid lines.
pub(crate) const GRID: Colour = Colour(226, 229, 234, 1.0);
/// Paper.
pub(crate) const WHITE: Colour = Colour(255, 255, 255, 1.0);
/// Colours of curves, distinguishable with all kinds of colour vision (Okabe & Ito 2008).
pub const CURVES: [Colour; 7] = [
    Colour(0, 114, 178, 1.0),
    Colour(213, 94, 0, 1.0),
    Colour(0, 158, 115, 1.0),
    Colour(204, 121, 167, 1.0),
    Colour(230, 159, 0, 1.0),
    Colour(86, 180, 233, 1.0),
    Colour(60, 60, 60, 1.0),
];

/// Width of a figure in print.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FigureSize {
    /// A journal column, 86 mm.
    Column,
    /// A journal page, 178 mm.
    Page,
}

impl FigureSize {
    /// Width in points.
    fn width(self) -> f64 {
        match self {
            Self::Column => 86.0 * MM,
            Self::Page => 178.0 * MM,
        }
    }
}

/// Dashes of a curve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dash {
    /// None.
    #[default]
    Solid,
    /// Long dashes.
    Dashed,
    /// Dots.
    Dotted,
    /// Long dashes and dots in turn.
    Dashdot,
}

impl Dash {
    /// Every pattern, in the order in which curves of one colour take them.
    pub(crate) const ALL: [Self; 4] = [Self::Solid, Self::Dashed, Self::Dotted, Self::Dashdot];
}

/// Horizontal position of a text relative to its anchor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Centre,
    Right,
}

/// A shape; y grows downwards.
#[derive(Clone, Debug)]
pub(crate) enum Shape {
    /// Open polylines.
    Line { pieces: Vec<Vec<[f64; 2]>>, colour: Colour, width: f64, dash: Dash },
    /// A filled polygon.
    Area { corners: Vec<[f64; 2]>, colour: Colour },
    /// Filled circles.
    Discs { centres: Vec<[f64; 2]>, radius: f64, colour: Colour },
    /// One line of text, the middle of its digits at the height of the anchor; upright text reads from below.
    Text { at: [f64; 2], text: String, colour: Colour, align: Align, upright: bool },
    /// Square pixels stretched over a rectangle; RGB rows from above.
    Image { low: [f64; 2], high: [f64; 2], columns: usize, rgb: Vec<u8> },
}

impl Shape {
    fn moved(mut self, by: [f64; 2]) -> Self {
        let shift = |at: &mut [f64; 2]| (0..2).for_each(|axis| at[axis] += by[axis]);
        match &mut self {
            Self::Line { pieces, .. } => pieces.iter_mut().flatten().for_each(shift),
            Self::Area { corners: points, .. } | Self::Discs { centres: points, .. } => {
                points.iter_mut().for_each(shift)
            }
            Self::Text { at, .. } => shift(at),
            Self::Image { low, high, .. } => [low, high].into_iter().for_each(shift),
        }
        self
    }
}

/// A drawing, ready to be written.
#[derive(Clone, Debug)]
pub struct Figure {
    pub(crate) title: String,
    pub(crate) size: [f64; 2],
    pub(crate) shapes: Vec<Shape>,
}

impl Figure {
    /// Ends of the names of the files that [`Figure::write`] writes; the first is that of the PNG.
    pub const ENDS: [&str; 3] = ["png", "svg", "pdf"];

    /// Title.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// The figure as SVG. Its text is text in DejaVu Sans, or in any sans-serif font where that is missing.
    pub fn svg(&self) -> Result<String, AnalysisError> {
        svg::svg(self)
    }

    /// The figure as PNG with 250 pixels per inch, or as many as show every pixel of its images.
    pub fn png(&self) -> Result<Vec<u8>, AnalysisError> {
        render::png(self, &render::tree(self, &self.svg()?)?)
    }

    /// The figure as PDF of one page, with text as text in an embedded font.
    pub fn pdf(&self) -> Result<Vec<u8>, AnalysisError> {
        render::pdf(self, &render::tree(self, &self.svg()?)?)
    }

    /// Figures in rows of `columns`.
    pub(crate) fn grid(title: &str, figures: Vec<Self>, columns: usize) -> Self {
        let width = figures.iter().map(|figure| figure.size[0]).fold(0.0, f64::max);
        let (mut all, mut top, mut row) =
            (Self { title: title.into(), size: [0.0; 2], shapes: Vec::new() }, 0.0, 0.0f64);
        for (n, figure) in figures.into_iter().enumerate() {
            if n % columns == 0 {
                (top, row) = (top + row, 0.0);
            }
            row = row.max(figure.size[1]);
            let by = [(n % columns) as f64 * width, top];
            all.size = [all.size[0].max(by[0] + width), all.size[1].max(top + row)];
            all.shapes.extend(figure.shapes.into_iter().map(|shape| shape.moved(by)));
        }
        all
    }

    /// Names of the files of a figure, in the order of [`Figure::ENDS`].
    pub fn files(name: &str) -> [String; 3] {
        Self::ENDS.map(|end| format!("{name}.{end}"))
    }

    /// Writes `name.png`, `name.svg` and `name.pdf`, each complete or absent.
    ///
    /// # Errors
    /// [`AnalysisError::Figure`]; [`AnalysisError::Io`].
    pub fn write(&self, folder: &Path, name: &str) -> Result<(), AnalysisError> {
        let svg = self.svg()?;
        let tree = render::tree(self, &svg)?;
        let [png_file, svg_file, pdf_file] = Self::files(name).map(|file| folder.join(file));
        write_file(&svg_file, svg.as_bytes())?;
        write_file(&pdf_file, &render::pdf(self, &tree)?)?;
        write_file(&png_file, &render::png(self, &tree)?)
    }

    pub(crate) fn line(&mut self, points: Vec<[f64; 2]>, colour: Colour, width: f64) {
        self.lines(vec![points], colour, width, Dash::Solid);
    }

    pub(crate) fn lines(&mut self, pieces: Vec<Vec<[f64; 2]>>, colour: Colour, width: f64, dash: Dash) {
        if !pieces.is_empty() {
            self.shapes.push(Shape::Line { pieces, colour, width, dash });
        }
    }

    pub(crate) fn outline(&mut self, low: [f64; 2], high: [f64; 2], colour: Colour, width: f64) {
        self.line(outline(low, high), colour, width);
    }

    pub(crate) fn rectangle(&mut self, low: [f64; 2], high: [f64; 2], colour: Colour) {
        let corners = outline(low, high)[..4].to_vec();
        self.shapes.push(Shape::Area { corners, colour });
    }

    pub(crate) fn text(&mut self, at: [f64; 2], text: impl Into<String>, colour: Colour, align: Align) {
        self.shapes.push(Shape::Text { at, text: text.into(), colour, align, upright: false });
    }

    /// Lines of upright text, the last one at the anchor.
    pub(crate) fn upright(&mut self, at: [f64; 2], lines: &[String], colour: Colour) {
        for (n, text) in lines.iter().rev().enumerate() {
            let at = [at[0] - LINE * n as f64, at[1]];
            self.shapes.push(Shape::Text { at, text: text.clone(), colour, align: Align::Centre, upright: true });
        }
    }
}

/// The closed outline of a rectangle.
fn outline(low: [f64; 2], high: [f64; 2]) -> Vec<[f64; 2]> {
    vec![low, [high[0], low[1]], high, [low[0], high[1]], low]
}

#[cfg(test)]
mod tests;
