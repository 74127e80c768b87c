//! SVG to PNG and PDF with the embedded font alone.

use super::text::{FAMILY, FONT_FILE};
use super::{Figure, svg};
use crate::error::AnalysisError;
use resvg::tiny_skia::{Color, Pixmap, Transform};
use resvg::usvg::fontdb::Database;
use resvg::usvg::{Options, Tree};
use std::sync::{Arc, LazyLock};

/// Pixels per inch of a PNG.
pub(super) const RESOLUTION: f64 = 250.0;
/// Units of a tree per inch.
const TREE_UNITS: f32 = 96.0;

static FONTS: LazyLock<Arc<Database>> = LazyLock::new(|| {
    let mut fonts = Database::new();
    fonts.load_font_data(FONT_FILE.to_vec());
    fonts.set_sans_serif_family(FAMILY);
    Arc::new(fonts)
});

impl Figure {
    pub(super) fn failure(&self, reason: impl ToString) -> AnalysisError {
        AnalysisError::Figure { title: self.title.clone(), reason: reason.to_string() }
    }
}

/// The parsed SVG of a figure.
pub(super) fn tree(figure: &Figure, svg: &str) -> Result<Tree, AnalysisError> {
    let options =
        Options { dpi: TREE_UNITS, font_family: FAMILY.into(), fontdb: Arc::clone(&FONTS), ..Options::default() };
    Tree::from_str(svg, &options).map_err(|error| figure.failure(error))
}

pub(super) fn png(figure: &Figure, tree: &Tree) -> Result<Vec<u8>, AnalysisError> {
    let [width, height] = figure.size.map(|points| (points / 72.0 * RESOLUTION).round().max(1.0) as u32);
    let too_large = || figure.failure(format!("{width}×{height} pixels are too many"));
    let mut pixels = Pixmap::new(width, height).ok_or_else(too_large)?;
    pixels.fill(Color::WHITE);
    let scale = |pixels: u32, units: f32| pixels as f32 / units;
    let scale = Transform::from_scale(scale(width, tree.size().width()), scale(height, tree.size().height()));
    resvg::render(tree, scale, &mut pixels.as_mut());
    // opaque on white paper
    let rgb: Vec<u8> = pixels.pixels().iter().flat_map(|p| [p.red(), p.green(), p.blue()]).collect();
    let per_metre = (RESOLUTION / 0.0254).round() as u32;
    svg::png(width as usize, height as usize, &rgb, Some(per_metre)).map_err(|error| figure.failure(error))
}

pub(super) fn pdf(figure: &Figure, tree: &Tree) -> Result<Vec<u8>, AnalysisError> {
    let page = svg2pdf::PageOptions { dpi: TREE_UNITS };
    svg2pdf::to_pdf(tree, svg2pdf::ConversionOptions::default(), page).map_err(|error| figure.failure(error))
}
