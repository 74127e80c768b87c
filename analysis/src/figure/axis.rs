//! Scales and their ticks.

use crate::table::superscript;

/// A tick; minor ones have no label.
#[derive(Clone, Debug, PartialEq)]
pub struct Tick {
    /// Where on the axis.
    pub value: f64,
    /// What it says.
    pub label: Option<String>,
}

/// A linear or logarithmic scale.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Whether equal distances are equal factors.
    pub logarithmic: bool,
}

impl Scale {
    /// The scale of given ends.
    pub fn new(low: f64, high: f64, logarithmic: bool) -> Self {
        Self { low, high, logarithmic }
    }

    /// A scale that holds the values (positive ones, if logarithmic) with a margin; of a unit interval if there are
    /// none.
    pub fn around(values: impl IntoIterator<Item = f64>, logarithmic: bool) -> Self {
        let usable = values.into_iter().filter(|v| v.is_finite() && (!logarithmic || *v >= f64::MIN_POSITIVE));
        let (low, high) = usable.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
        match (low <= high, logarithmic) {
            (false, true) => Self::new(0.1, 1.0, true),
            (false, false) => Self::new(0.0, 1.0, false),
            (true, true) => {
                // in logarithms, as high/low may overflow
                let margin = (0.05 * (high.ln() - low.ln())).max(1.15f64.ln());
                let end = |logarithm: f64| logarithm.exp().clamp(f64::MIN_POSITIVE, f64::MAX);
                Self::new(end(low.ln() - margin), end(high.ln() + margin), true)
            }
            (true, false) => {
                let margin = if high > low { 0.06 * (high - low) } else { 0.5 * high.abs().max(1e-30) };
                Self::new((low - margin).max(f64::MIN), (high + margin).min(f64::MAX), false)
            }
        }
    }

    /// The scale with room above its upper end, over its length; the same where numbers end.
    pub fn with_room_above(self, room: f64) -> Self {
        let high = match self.logarithmic {
            true => (self.high.ln() + room * (self.high.ln() - self.low.ln())).exp(),
            false => self.high + room * (self.high - self.low),
        };
        // without room not a bit changes
        if room > 0.0 && high.is_finite() { Self { high, ..self } } else { self }
    }

    /// Where a value lies, 0 at the lower end and 1 at the upper; not finite where a logarithmic scale cannot show it.
    pub fn place(&self, value: f64) -> f64 {
        if self.logarithmic {
            let shown = if value < f64::MIN_POSITIVE { f64::NAN } else { value };
            (shown.ln() - self.low.ln()) / (self.high.ln() - self.low.ln())
        } else {
            (value - self.low) / (self.high - self.low)
        }
    }

    /// Ticks at round values, about `wanted` of them with labels.
    pub fn ticks(&self, wanted: usize) -> Vec<Tick> {
        let ticks = if self.logarithmic { self.decades(wanted) } else { self.steps(wanted) };
        let end = 1e-9;
        ticks.into_iter().filter(|t| (-end..=1.0 + end).contains(&self.place(t.value))).collect()
    }

    fn steps(&self, wanted: usize) -> Vec<Tick> {
        let rough = (self.high - self.low) / wanted.max(1) as f64;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].into_iter().find(|s| s * power >= rough * 0.999).unwrap_or(10.0) * power;
        if !(step.is_normal() && step > 0.0) {
            return Vec::new();
        }
        let (first, last) = ((self.low / step).ceil() as i64, (self.high / step).floor() as i64);
        let largest = self.low.abs().max(self.high.abs());
        (first..=last)
            .map(|n| Tick { value: n as f64 * step, label: Some(number(n as f64 * step, step, largest)) })
            .collect()
    }

    fn decades(&self, wanted: usize) -> Vec<Tick> {
        let (first, last) = (self.low.log10().floor() as i32, self.high.log10().floor() as i32);
        let decades = self.high.log10() - self.low.log10();
        if decades < 0.4 {
            return Scale { logarithmic: false, ..*self }.steps(wanted);
        }
        let labelled: &[i32] = match decades {
            d if d < 1.0 => &[1, 2, 3, 5, 7],
            d if d < 2.0 => &[1, 2, 5],
            _ => &[1],
        };
        let stride = (decades / wanted.max(1) as f64).ceil().max(1.0) as i32;
        let plain = first >= -3 && last <= 4;
        let mut ticks = Vec::new();
        // beyond ten decades a label the minor ticks would run together
        for power in (first..=last).filter(|power| stride <= 10 || power.rem_euclid(stride) == 0) {
            for digit in 1..10 {
                let value = f64::from(digit) * 10f64.powi(power);
                let shown = labelled.contains(&digit) && power.rem_euclid(stride) == 0;
                if stride > 1 && digit > 1 {
                    continue;
                }
                let text = match (plain, digit) {
                    (true, _) => number(value, 10f64.powi(power), value),
                    (false, 1) => format!("10{}", superscript(power)),
                    (false, _) => format!("{digit}×10{}", superscript(power)),
                };
                ticks.push(Tick { value, label: shown.then_some(text) });
            }
        }
        ticks
    }
}

/// A number to the digits of `step`, as a power of ten where `largest` is far from 1.
fn number(value: f64, step: f64, largest: f64) -> String {
    if value == 0.0 {
        return "0".into();
    }
    if !(1e-3..1e5).contains(&largest) {
        let power = largest.log10().floor() as i32;
        let mantissa = number(value / 10f64.powi(power), step / 10f64.powi(power), 1.0);
        return format!("{mantissa}×10{}", superscript(power));
    }
    let digits = (-step.log10() - 1e-9).ceil().max(0.0) as usize;
    format!("{value:.digits$}").replace('-', "−")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(scale: Scale, wanted: usize) -> Vec<String> {
        scale.ticks(wanted).into_iter().filter_map(|t| t.label).collect()
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(labels(Scale::new(-0.3, 1.1, false), 5), ["0", "0.5", "1.0"]);
        assert_eq!(labels(Scale::new(-400.0, 200.0, false), 6), ["−400", "−300", "−200", "−100", "0", "100", "200"]);
        assert_eq!(labels(Scale::new(1e9, 3.1e9, false), 2), ["2×10⁹"]);
        assert_eq!(
            labels(Scale::new(2e-6, 3e2, true), 9),
            ["10⁻⁵", "10⁻⁴", "10⁻³", "10⁻²", "10⁻¹", "10⁰", "10¹", "10²"]
        );
        assert_eq!(labels(Scale::new(0.09, 1100.0, true), 6), ["0.1", "1", "10", "100", "1000"]);
        assert_eq!(labels(Scale::new(0.15, 8.0, true), 6), ["0.2", "0.5", "1", "2", "5"]);
        assert_eq!(labels(Scale::new(1e-20, 1.0, true), 7).len(), 7);
        assert_eq!(labels(Scale::new(100.0, 110.0, true), 2), ["100", "105", "110"]);
    }

    #[test]
    fn scales_hold_their_values() {
        let log = Scale::around([1.0, 100.0, 0.0, f64::NAN, -3.0], true);
        assert!(log.low > 0.5 && log.low < 1.0 && log.high > 100.0);
        assert!((log.place(10.0) - 0.5).abs() < 1e-12);
        let flat = Scale::around([2.0, 2.0], false);
        assert!((flat.place(2.0) - 0.5).abs() < 1e-12);
        assert_eq!(Scale::around([], false), Scale::new(0.0, 1.0, false));
    }

    /// Whatever the range, the ends are finite and ticks few.
    #[test]
    fn scales_of_extreme_values_end() {
        let extremes = [0.0, 5e-324, f64::MIN_POSITIVE, 1e-300, 1.0, 1e10, f64::MAX, -1e300, f64::MIN];
        for (low, high) in extremes.into_iter().flat_map(|low| extremes.map(|high| (low, high))) {
            for logarithmic in [false, true] {
                let scale = Scale::around([low, high], logarithmic);
                assert!(scale.low.is_finite() && scale.high.is_finite() && scale.low < scale.high, "{scale:?}");
                assert!(scale.ticks(6).len() <= 100, "{scale:?}");
            }
        }
        let wide = Scale::around([1e10, 1e-300], true);
        assert!((0.4..0.6).contains(&wide.place(1e-145)) && wide.low < 1e-300 && wide.high > 1e10, "{wide:?}");
        assert!(labels(wide, 6).len() >= 4);
    }
}
