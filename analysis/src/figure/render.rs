//! SVG to PNG and PDF with the embedded font alone.

use super::text::{FAMILY, FONT_FILE};
use super::{Figure, Shape, svg};
use crate::error::AnalysisError;
use resvg::tiny_skia::{Color, Pixmap, Transform};
use resvg::usvg::fontdb::Database;
use resvg::usvg::{Options, Tree};
use std::sync::{Arc, LazyLock};

/// Pixels per inch of a PNG, at least.
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

/// Pixels per inch that show every pixel of the figure's images.
fn resolution(figure: &Figure) -> f64 {
    let needed = |shape: &Shape| match shape {
        Shape::Image { low, high, columns, rgb } => {
            let rows = rgb.len() / (3 * columns);
            (*columns as f64 / (high[0] - low[0])).max(rows as f64 / (high[1] - low[1])) * 72.0
        }
        _ => 0.0,
    };
    figure.shapes.iter().map(needed).fold(RESOLUTION, f64::max)
}

pub(super) fn png(figure: &Figure, tree: &Tree) -> Result<Vec<u8>, AnalysisError> {
    let resolution = resolution(figure);
    let [width, height] = figure.size.map(|points| (points / 72.0 * resolution).round().max(1.0) as u32);
    let too_large = || figure.failure(format!("{width}×{height} pixels exceed the limit"));
    let mut pixels = Pixmap::new(width, height).ok_or_else(too_large)?;
    pixels.fill(Color::WHITE);
    let scale = |pixels: u32, units: f32| pixels as f32 / units;
    let scale = Transform::from_scale(scale(width, tree.size().width()), scale(height, tree.size().height()));
    resvg::render(tree, scale, &mut pixels.as_mut());
    // opaque on white paper
    let rgb: Vec<u8> = pixels.pixels().iter().flat_map(|p| [p.red(), p.green(), p.blue()]).collect();
    let per_metre = (resolution / 0.0254).round() as u32;
    svg::png(width as usize, height as usize, &rgb, Some(per_metre)).map_err(|error| figure.failure(error))
}

pub(super) fn pdf(figure: &Figure, tree: &Tree) -> Result<Vec<u8>, AnalysisError> {
    let page = svg2pdf::PageOptions { dpi: TREE_UNITS };
    let pdf =
        svg2pdf::to_pdf(tree, svg2pdf::ConversionOptions::default(), page).map_err(|error| figure.failure(error))?;
    Ok(resources_in_order(&pdf))
}

/// Sorts resources, `/xo0 7 0 R` a line, which svg2pdf writes in the order of a hash map: a figure has the same bits always.
fn resources_in_order(pdf: &[u8]) -> Vec<u8> {
    let is_resource = |line: &[u8]| {
        let words: Vec<&[u8]> = line.trim_ascii().split(|byte| *byte == b' ').collect();
        line.is_ascii() && matches!(words[..], [name, _, b"0", b"R"] if name.starts_with(b"/"))
    };
    let mut lines: Vec<&[u8]> = pdf.split_inclusive(|byte| *byte == b'\n').collect();
    lines.chunk_by_mut(|x, y| is_resource(x) && is_resource(y)).for_each(<[&[u8]]>::sort_unstable);
    lines.concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_have_an_order() {
        let [some, other] = [["/xo1 10", "/xo0 7"], ["/xo0 7", "/xo1 10"]]
            .map(|[x, y]| resources_in_order(format!("<<\n  {x} 0 R\n  {y} 0 R\n>>\n  /fo0 1 0 R\n").as_bytes()));
        assert_eq!(some, other);
        assert_eq!(some, b"<<\n  /xo0 7 0 R\n  /xo1 10 0 R\n>>\n  /fo0 1 0 R\n");
    }
}
