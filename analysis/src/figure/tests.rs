use super::lines::{Curve, Panel, line_figure, line_figure_of_size};
use super::*;
use resvg::usvg::roxmltree::Document;

/// A figure with every shape, and signs that XML treats specially.
fn sample() -> Figure {
    let mut figure = Figure { title: "a < b & \"c\"\u{1}".into(), size: [72.0, 36.0], shapes: Vec::new() };
    figure.rectangle([36.0, 0.0], [72.0, 36.0], Colour(0, 0, 255, 1.0));
    figure.lines(vec![vec![[1.0, 1.0], [30.0, 1.0]]], INK, 1.0, Dash::Dashdot);
    figure.shapes.push(Shape::Discs { centres: vec![[9.0, 9.0]], radius: 3.0, colour: CURVES[1] });
    figure.text([2.0, 20.0], "P(k) < 10⁻³ & more", INK, Align::Left);
    figure.upright([34.0, 18.0], &["up".into()], INK);
    let rgb = vec![255, 0, 0, 0, 255, 0];
    figure.shapes.push(Shape::Image { low: [60.0, 12.0], high: [72.0, 24.0], columns: 2, rgb });
    figure
}

fn pixels(file: &[u8]) -> ([u32; 2], Vec<u8>) {
    let mut reader = png::Decoder::new(file).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size()];
    let shape = reader.next_frame(&mut pixels).unwrap();
    ([shape.width, shape.height], pixels)
}

/// SVG is well-formed, has its size in points, and text as text.
#[test]
fn an_svg_is_xml_with_text() {
    let svg = sample().svg().unwrap();
    let document = Document::parse(&svg).unwrap();
    let root = document.root_element();
    assert_eq!((root.attribute("width"), root.attribute("viewBox")), (Some("72pt"), Some("0 0 72 36")));
    let texts: Vec<&str> = document.descendants().filter(|n| n.has_tag_name("text")).filter_map(|n| n.text()).collect();
    assert_eq!(texts, ["P(k) < 10⁻³ & more", "up"]);
    let title = document.descendants().find(|n| n.has_tag_name("title")).unwrap();
    assert_eq!(title.text(), Some("a < b & \"c\" "));
    assert!(svg.contains("xlink:href=\"data:image/png;base64,iVBORw0KGgo"));
}

/// A PNG has 250 pixels to the inch, white paper and the shapes where they belong; square pixels stay square.
#[test]
fn a_png_shows_the_shapes() {
    let (size, pixels) = pixels(&sample().png().unwrap());
    assert_eq!(size, [250, 125]);
    let at = |x: f64, y: f64| {
        let [column, row] = [x, y].map(|c| (c / 72.0 * 250.0) as usize);
        &pixels[3 * (row * 250 + column)..][..3]
    };
    assert_eq!((at(20.0, 33.0), at(50.0, 33.0), at(9.0, 9.0)), (&[255; 3][..], &[0, 0, 255][..], &[213, 94, 0][..]));
    assert_eq!((at(65.5, 18.0), at(66.5, 18.0)), (&[255, 0, 0][..], &[0, 255, 0][..]));
    // text and its strokes: something is dark there
    let dark = (10..120).any(|column| (60..80).any(|row| pixels[3 * (row * 250 + column)] < 60));
    assert!(dark);
}

/// Figures have the width of a journal column or page, whatever they show.
#[test]
fn sizes_are_those_of_journals() {
    let panel = Panel { curves: vec![Curve { points: vec![[1.0, 2.0]], ..Curve::default() }], ..Panel::default() };
    for (figure, mm) in [
        (line_figure("x", std::slice::from_ref(&panel), 1), 86.0),
        (line_figure("x", &[panel.clone(), panel.clone()], 2), 172.0),
        (line_figure_of_size("x", std::slice::from_ref(&panel), 1, FigureSize::Page), 178.0),
        (line_figure_of_size("x", &[panel.clone(), panel], 2, FigureSize::Column), 86.0),
    ] {
        let ([width, _], _) = pixels(&figure.png().unwrap());
        assert_eq!(width, (mm / 25.4 * 250.0f64).round() as u32);
        assert!(figure.size[1] > 0.3 * figure.size[0] && figure.size[1] < figure.size[0], "{:?}", figure.size);
    }
}

/// A PDF is of one page with an embedded font; files of a figure do not depend on when they are made.
#[test]
fn all_files_are_written_and_reproducible() {
    let folder = tempfile::tempdir().unwrap();
    let figure = sample();
    figure.write(folder.path(), "figure").unwrap();
    let [png, svg, pdf] = Figure::files("figure").map(|file| std::fs::read(folder.path().join(file)).unwrap());
    assert!(png.starts_with(b"\x89PNG") && svg.starts_with(b"<svg") && pdf.starts_with(b"%PDF"));
    let text = String::from_utf8_lossy(&pdf);
    assert!(text.contains("DejaVuSans") && text.contains("/MediaBox [0 0 72 36]"), "{text}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3);
    assert_eq!((figure.png().unwrap(), figure.svg().unwrap().into_bytes(), figure.pdf().unwrap()), (png, svg, pdf));
    assert!(figure.write(&folder.path().join("missing"), "figure").is_err());
}
