//! Text from the embedded font, glyph by glyph: figures look the same on machines without any font.

use super::Align;
use ab_glyph::{Font, FontRef, GlyphId, PxScale, ScaleFont, point};

static FONT_FILE: &[u8] = include_bytes!("../../fonts/DejaVuSans.ttf");

/// Calls `cover(x, y, coverage)` for the pixels of one line of text of `size` pixels an em.
///
/// The anchor stands at half the height of a digit; an upright text reads from below.
pub(super) fn cover_text<E>(
    at: [f64; 2],
    text: &str,
    size: f64,
    align: Align,
    upright: bool,
    mut cover: impl FnMut(i32, i32, f64) -> Result<(), E>,
) -> Result<(), E> {
    let font = FontRef::try_from_slice(FONT_FILE).expect("the embedded file is a font");
    let em = f64::from(font.units_per_em().expect("a scalable font"));
    let scaled = font.as_scaled(PxScale::from((size * f64::from(font.height_unscaled()) / em) as f32));
    let mut advance = 0.0;
    let mut previous: Option<GlyphId> = None;
    let mut glyphs = Vec::new();
    for letter in text.chars() {
        let id = scaled.glyph_id(letter);
        advance += previous.map_or(0.0, |before| scaled.kern(before, id));
        glyphs.push((id, advance));
        advance += scaled.h_advance(id);
        previous = Some(id);
    }
    let start = match align {
        Align::Left => 0.0,
        Align::Centre => -0.5 * advance,
        Align::Right => -advance,
    };
    // a digit is 0.73 em high
    let baseline = (0.365 * size) as f32;
    let origin = at.map(|c| c.round() as i32);
    for (id, x) in glyphs {
        let glyph = id.with_scale_and_position(scaled.scale(), point(start + x, baseline));
        let Some(outline) = font.outline_glyph(glyph) else { continue };
        let corner = outline.px_bounds().min;
        let mut failure = Ok(());
        outline.draw(|x, y, coverage| {
            let (x, y) = (corner.x as i32 + x as i32, corner.y as i32 + y as i32);
            let (x, y) = if upright { (y, -x) } else { (x, y) };
            if failure.is_ok() && coverage > 0.0 {
                failure = cover(origin[0] + x, origin[1] + y, f64::from(coverage));
            }
        });
        failure?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(text: &str, align: Align, upright: bool) -> ([i32; 2], [i32; 2]) {
        let (mut low, mut high) = ([i32::MAX; 2], [i32::MIN; 2]);
        let outcome: Result<(), ()> = cover_text([50.0, 80.0], text, 40.0, align, upright, |x, y, coverage| {
            if coverage > 0.5 {
                low = [low[0].min(x), low[1].min(y)];
                high = [high[0].max(x), high[1].max(y)];
            }
            Ok(())
        });
        outcome.unwrap();
        (low, high)
    }

    /// Symmetric text lies symmetrically about its anchor, in both directions, with digits 0.73 em high.
    #[test]
    fn text_is_centred_on_its_anchor() {
        let (low, high) = extent("H0H", Align::Centre, false);
        assert!((low[0] + high[0] + 1 - 100).abs() <= 2 && (low[1] + high[1] + 1 - 160).abs() <= 2, "{low:?} {high:?}");
        assert!((high[1] - low[1] + 1 - 30).abs() <= 2 && high[0] - low[0] > 70);
        let (low, high) = extent("H0H", Align::Centre, true);
        assert!((low[0] + high[0] + 1 - 100).abs() <= 2 && (low[1] + high[1] + 1 - 160).abs() <= 2, "{low:?} {high:?}");
        assert!(high[1] - low[1] > 70);
        assert!(extent("H0H", Align::Left, false).0[0] >= 50 && extent("H0H", Align::Right, false).1[0] < 50);
    }

    /// Every sign that labels use is in the font: none is drawn as the box that stands for a missing glyph.
    #[test]
    fn the_font_has_every_sign() {
        let font = FontRef::try_from_slice(FONT_FILE).unwrap();
        for letter in "0123456789⁰¹²³⁴⁵⁶⁷⁸⁹⁻−×ρδφγγ⁻²·½⊙ₛ–[]()/|∝".chars() {
            assert_ne!(font.glyph_id(letter), font.glyph_id('\u{10ffff}'), "{letter}");
        }
    }
}
