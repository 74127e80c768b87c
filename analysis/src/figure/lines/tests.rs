use super::*;
use crate::figure::Shape;

/// Corners of all lines and areas, and centres of discs.
fn places(figure: &Figure) -> Vec<[f64; 2]> {
    let of = |shape: &Shape| match shape {
        Shape::Line { pieces, .. } => pieces.concat(),
        Shape::Area { corners, .. } => corners.clone(),
        Shape::Discs { centres, .. } => centres.clone(),
        Shape::Text { at, .. } => vec![*at],
        Shape::Image { .. } => Vec::new(),
    };
    figure.shapes.iter().flat_map(of).collect()
}

fn text_of(shape: &Shape) -> Option<&str> {
    if let Shape::Text { text, .. } = shape { Some(text) } else { None }
}

fn texts(figure: &Figure) -> Vec<&str> {
    figure.shapes.iter().filter_map(text_of).collect()
}

fn line_of(shape: &Shape, wanted: Colour) -> Option<(&Vec<Vec<[f64; 2]>>, Dash)> {
    match shape {
        Shape::Line { pieces, colour, dash, .. } if *colour == wanted => Some((pieces, *dash)),
        _ => None,
    }
}

/// Lines of a colour: their pieces and dashes.
fn lines(figure: &Figure, wanted: Colour) -> Vec<(&Vec<Vec<[f64; 2]>>, Dash)> {
    figure.shapes.iter().filter_map(|shape| line_of(shape, wanted)).collect()
}

fn straight(name: &str) -> Curve {
    Curve { name: name.into(), points: vec![[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]], ..Curve::default() }
}

/// Error bars and bands count for the scale: those that a logarithmic axis can show.
#[test]
fn error_bars_and_bands_fit_into_the_frame() {
    for (y_logarithmic, low) in [(false, -8.0), (true, 0.9)] {
        let points = vec![[1.0, 1.0], [2.0, 2.0]];
        let bars = Curve { points: points.clone(), bars: vec![0.1, 10.0], ..Curve::default() };
        let band = Curve { points, band: vec![[0.9, 1.1], [-8.0, 12.0]], ..Curve::default() };
        for curve in [bars, band] {
            let panel = Panel { y_logarithmic, curves: vec![curve], ..Panel::default() };
            let y = Frame::new(&panel, [0.0; 2], [100.0; 2]).y();
            assert!(y.low < low && y.high >= 12.0, "{y:?}");
        }
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
    // two pieces a panel, and the line of each legend
    let pieces: usize = lines(&figure, CURVES[0]).iter().map(|(pieces, _)| pieces.len()).sum();
    assert_eq!(pieces, 6);
    assert!(!texts(&figure).contains(&"outside"));
    for place in places(&figure) {
        assert!((0..2).all(|a| (0.0..=figure.size[a]).contains(&place[a])), "{place:?}");
    }
}

/// An axis with one label tells no scale.
#[test]
fn low_frames_have_two_labels() {
    let curve = Curve { points: vec![[1.0, 0.0], [2.0, 4.8]], ..Curve::default() };
    let frame = Frame::new(&Panel { curves: vec![curve], ..Panel::default() }, [0.0; 2], [100.0, 60.0]);
    let mut figure = Figure { title: String::new(), size: [100.0; 2], shapes: Vec::new() };
    frame.draw(&mut figure, &Panel::default(), false);
    assert!(texts(&figure).len() > 1, "{:?}", texts(&figure));
}

/// Ranges set the axes, and what is outside is cut: lines, bands, bars and points.
#[test]
fn curves_are_cut_at_the_ranges() {
    let points: Vec<[f64; 2]> = (0..40).map(|n| [f64::from(n), f64::from(n * n) - 500.0]).collect();
    let curve = Curve {
        band: points.iter().map(|p| [p[1] - 300.0, p[1] + 300.0]).collect(),
        bars: vec![900.0; points.len()],
        points,
        style: Style::Marked,
        ..Curve::default()
    };
    let panel =
        Panel { x_range: Some([10.0, 30.0]), y_range: Some([-100.0, 100.0]), curves: vec![curve], ..Panel::default() };
    let figure = line_figure("", std::slice::from_ref(&panel), 1);
    let (pieces, _) = lines(&figure, CURVES[0])[0];
    // x = 20 to 24.5
    let xs: Vec<f64> = pieces.iter().flatten().map(|p| p[0]).collect();
    let width = xs.iter().copied().fold(0.0, f64::max) - xs.iter().copied().fold(f64::MAX, f64::min);
    let frame = lines(&figure, INK).last().unwrap().0[0].clone();
    let frame_width = frame[2][0] - frame[0][0];
    assert!((width / frame_width - 4.5 / 20.0).abs() < 0.01, "{width} of {frame_width}");
    for shape in figure.shapes.iter().filter(|s| matches!(s, Shape::Area { .. } | Shape::Discs { .. })) {
        let inside = |p: &[f64; 2]| (0..2).all(|a| (frame[0][a] - 1e-5..=frame[2][a] + 1e-5).contains(&p[a]));
        let only = Figure { shapes: vec![shape.clone()], ..figure.clone() };
        assert!(places(&only).iter().all(inside), "{shape:?}");
    }
    // the left axis follows what the lower axis shows
    let free = Panel { y_range: None, ..panel };
    let y = Frame::new(&free, [0.0; 2], [100.0; 2]).y();
    assert!((-1500.0..-1290.0).contains(&y.low) && (1290.0..1500.0).contains(&y.high), "{y:?}");
}

/// More than seven curves differ in their dashes where colours recur, in the legend too; a curve may choose both.
#[test]
fn many_curves_have_dashes() {
    let curves = (0..10).map(|n| straight(&format!("curve {n}"))).collect();
    let figure = line_figure("", &[Panel { curves, ..Panel::default() }], 1);
    let dashes: Vec<Dash> = lines(&figure, CURVES[2]).iter().map(|(_, dash)| *dash).collect();
    assert_eq!(dashes, [Dash::Solid, Dash::Dashed, Dash::Solid, Dash::Dashed]);
    assert!(figure.svg().unwrap().contains("stroke-dasharray=\"4.4 2.2\""));
    let chosen = Curve { color: Some(1), dash: Some(Dash::Dotted), ..straight("") };
    let figure = line_figure("", &[Panel { curves: vec![straight(""), chosen], ..Panel::default() }], 1);
    assert_eq!(lines(&figure, CURVES[1])[0].1, Dash::Dotted);
}

#[test]
fn the_legend_stands_where_it_should() {
    let at = |legend: LegendPlace| {
        let figure = line_figure("", &[Panel { curves: vec![straight("name")], legend, ..Panel::default() }], 1);
        let size = figure.size;
        let found = figure.shapes.into_iter().find_map(|shape| match shape {
            Shape::Text { text, at, .. } if text == "name" => Some(at),
            _ => None,
        });
        found.map(|at| [at[0] > 0.5 * size[0], at[1] > 0.45 * size[1]])
    };
    assert_eq!(at(LegendPlace::UpperRight), Some([true, false]));
    assert_eq!(at(LegendPlace::LowerLeft), Some([false, true]));
    assert_eq!(at(LegendPlace::None), None);
    // the curve rises
    assert!([Some([false, false]), Some([true, true])].contains(&at(LegendPlace::Auto)));
}

/// A legend of many curves has columns, and room above them where no corner is free; a range that was asked for stays.
#[test]
fn a_legend_covers_no_curve() {
    // curves from corner to corner, as spectra of six redshifts
    let curve = |n: i32| Curve {
        name: format!("z = {n}"),
        points: (0..60)
            .map(|k| [1.1f64.powi(k), 10f64.powf(4.0 - 0.35 * f64::from(n)) / 1.1f64.powi(k).powf(1.3)])
            .collect(),
        ..Curve::default()
    };
    let crossing = Curve { name: "crossing".into(), points: vec![[1.0, 5.0], [200.0, 9e3]], ..Curve::default() };
    let flat = Curve { name: "flat".into(), points: vec![[1.0, 900.0], [200.0, 900.0]], ..Curve::default() };
    let panel = Panel {
        x_logarithmic: true,
        y_logarithmic: true,
        curves: (0..6).map(curve).chain([crossing, flat]).collect(),
        ..Panel::default()
    };
    let covered = |panel: &Panel| {
        let figure = line_figure("", std::slice::from_ref(panel), 1);
        let is_paper = |colour: &Colour| (colour.0, colour.1, colour.2) == (255, 255, 255);
        let legends = figure.shapes.iter().filter_map(|shape| match shape {
            Shape::Area { corners, colour } if is_paper(colour) => Some([corners[0], corners[2]]),
            _ => None,
        });
        let [low, high] = legends.collect::<Vec<_>>().pop().expect("a legend");
        let pieces = (0..CURVES.len()).flat_map(|n| lines(&figure, CURVES[n])).flat_map(|(pieces, _)| pieces);
        // samples of curves are lines of two points in the legend
        let curves: Vec<&Vec<[f64; 2]>> =
            pieces.filter(|piece| piece.len() > 2 || piece[0][1] != piece[1][1]).collect();
        assert!(curves.len() >= 7, "{}", curves.len());
        let legend = crate::figure::clip::Clip { low, high };
        curves.into_iter().filter(|curve| !legend.polyline(curve).is_empty()).count()
    };
    assert_eq!(covered(&panel), 0);
    let [low, high] = [1.0, 2e4];
    let fixed = Panel { y_range: Some([low, high]), ..panel.clone() };
    assert!(covered(&fixed) > 0);
    let y = |panel: &Panel| Frame::new(panel, [0.0; 2], [200.0, 140.0]).y();
    assert_eq!((y(&fixed).low, y(&fixed).high), (low, high));
    let bare = Panel { legend: LegendPlace::None, ..panel.clone() };
    assert!(y(&panel).high > 1.1 * y(&bare).high && y(&panel).low == y(&bare).low);
    // nothing changes where a corner is free
    let free = Panel { curves: vec![panel.curves[0].clone()], ..panel };
    assert_eq!(y(&free), y(&Panel { legend: LegendPlace::None, ..free.clone() }));
}

/// Ratios are taken to the interpolated reference, in logarithms along logarithmic axes, and end with it.
#[test]
fn ratios_follow_the_reference() {
    let power = |x: f64| x.powi(-2);
    let reference = Curve { points: [1.0, 10.0, 100.0].map(|x| [x, power(x)]).into(), ..Curve::default() };
    let other = Curve {
        points: [0.5, 2.0, 30.0].map(|x| [x, 3.0 * power(x)]).into(),
        bars: vec![0.0, power(2.0), 0.0],
        ..Curve::default()
    };
    let panel = Panel {
        x_logarithmic: true,
        y_logarithmic: true,
        curves: vec![other, reference],
        ratio: Some(Ratio { to: 1, ..Ratio::default() }),
        ..Panel::default()
    };
    let ratios = panel.ratios().unwrap();
    let found = &ratios.curves[0];
    assert!(found.points[0][1].is_nan() && (found.bars[1] - 1.0).abs() < 1e-12);
    assert!(found.points[1..].iter().all(|p| (p[1] - 3.0).abs() < 1e-12), "{found:?}");
    assert!(ratios.curves[1].points.iter().all(|p| (p[1] - 1.0).abs() < 1e-12));
    let plain = Panel { ratio: None, ..panel.clone() };
    let [with, without] = [panel, plain].map(|panel| line_figure("x", &[panel], 1));
    assert!(with.size[1] > without.size[1] + 50.0 && with.size[0] == without.size[0]);
    assert!(texts(&with).contains(&"ratio"));
}
