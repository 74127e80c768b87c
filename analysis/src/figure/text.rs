//! The embedded font: figures look equal on machines without any font.

use super::TEXT;
use std::sync::LazyLock;
use ttf_parser::Face;

/// Family name of the font.
pub(super) const FAMILY: &str = "DejaVu Sans";

pub(super) static FONT_FILE: &[u8] = include_bytes!("../../fonts/DejaVuSans.ttf");

static FACE: LazyLock<Face<'static>> =
    LazyLock::new(|| Face::parse(FONT_FILE, 0).expect("the embedded file is a font"));

/// Width of a line of text in points.
pub(super) fn width(text: &str) -> f64 {
    let advance = |letter: char| {
        // a missing glyph is drawn as a box, glyph 0
        let glyph = FACE.glyph_index(letter).unwrap_or_default();
        f64::from(FACE.glyph_hor_advance(glyph).unwrap_or_default())
    };
    TEXT * text.chars().map(advance).sum::<f64>() / f64::from(FACE.units_per_em())
}

/// Breaks text between words into lines of at most `room` points; a longer word has a line of its own.
pub(super) fn wrap(text: &str, room: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if width(line) + width(" ") + width(word) <= room => *line += &format!(" {word}"),
            _ => lines.push(word.into()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No sign of a label is drawn as the box for a missing glyph.
    #[test]
    fn the_font_has_every_sign() {
        for letter in "0123456789⁰¹²³⁴⁵⁶⁷⁸⁹⁻−×ρδφγ·½⊙ₛ–[]()/|∝".chars() {
            assert!(FACE.glyph_index(letter).is_some(), "{letter}");
        }
    }

    #[test]
    fn text_is_wrapped_at_its_width() {
        // a digit of DejaVu Sans is 0.636 em wide
        assert!((width("0123456789") - 10.0 * 0.636 * TEXT).abs() < 0.05, "{}", width("0123456789"));
        let text = "Density of all matter over its mean";
        assert_eq!(wrap(text, 1e3), [text]);
        let lines = wrap(text, 80.0);
        assert!(
            lines.len() > 1 && lines.join(" ") == text && lines.iter().all(|line| width(line) <= 80.0),
            "{lines:?}"
        );
        assert!(wrap("", 80.0).is_empty());
    }
}
