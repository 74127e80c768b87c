//! A moment of a run, in what its coordinates count time: redshift when comoving, code time otherwise.

use comove_sim::records::StepRecord;
use comove_sim::{Coordinates, SnapshotHeader};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Digits beyond those for a reader that are tried to tell moments apart: with them a number has 16 or more.
const MORE_DIGITS: usize = 12;

/// A redshift, or a time in non-comoving coordinates. Shown as `z = 9` or `t = 110`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Moment {
    Redshift(f64),
    Time(f64),
}

impl Moment {
    pub(crate) fn of(header: &SnapshotHeader) -> Self {
        match header.coordinates {
            Coordinates::Comoving => Self::Redshift(header.redshift()),
            Coordinates::Plain => Self::Time(header.time),
        }
    }

    /// The end of a recorded step.
    pub(crate) fn after(record: &StepRecord) -> Self {
        record.z.map_or(Self::Time(record.time), Self::Redshift)
    }

    /// Its coordinates, in the words of a message.
    pub(crate) fn coordinates_name(self) -> &'static str {
        match self {
            Self::Redshift(_) => "comoving",
            Self::Time(_) => "non-comoving",
        }
    }

    /// The coordinates that count so.
    pub(crate) fn coordinates(self) -> Coordinates {
        match self {
            Self::Redshift(_) => Coordinates::Comoving,
            Self::Time(_) => Coordinates::Plain,
        }
    }

    pub(crate) fn value(self) -> f64 {
        match self {
            Self::Redshift(value) | Self::Time(value) => value,
        }
    }

    /// What a simulation shows then and what grows while it runs: scale factor 1/(1 + z), or time.
    pub(crate) fn now(self) -> f64 {
        match self {
            Self::Redshift(z) => 1.0 / (1.0 + z),
            Self::Time(t) => t,
        }
    }

    /// The fraction of the way from `start` to `end` (both as [`Moment::now`] shows them) at `now`: expansion is counted
    /// in its logarithm.
    pub(crate) fn fraction(self, start: f64, now: f64) -> f64 {
        match self {
            Self::Redshift(_) => (now / start).ln() / (self.now() / start).ln(),
            Self::Time(end) => (now - start) / (end - start),
        }
    }

    /// Rounded for a reader: a redshift to four decimals, a time to six digits.
    pub(crate) fn rounded(self) -> Self {
        self.with_more_digits(0)
    }

    /// Rounded with as few more digits as tell it from all others.
    pub(crate) fn rounded_among(self, others: impl Iterator<Item = Self> + Clone) -> Self {
        let is_told = |n: &usize| {
            let mut others = others.clone().filter(|other| *other != self);
            others.all(|other| other.with_more_digits(*n) != self.with_more_digits(*n))
        };
        (0..MORE_DIGITS).find(is_told).map_or(self, |n| self.with_more_digits(n))
    }

    fn with_more_digits(self, more: usize) -> Self {
        match self {
            Self::Redshift(z) => {
                let scale = 10f64.powi(4 + more as i32);
                Self::Redshift((z * scale).round() / scale)
            }
            Self::Time(t) => Self::Time(format!("{t:.*e}", 5 + more).parse().unwrap_or(t)),
        }
    }

    /// Its part of a file's name: `z9` or `t110`.
    pub(crate) fn tag(self) -> String {
        format!("{}{}", self.symbol(), self.value())
    }

    /// The moment whose [`Moment::tag`] this is.
    pub(crate) fn from_tag(text: &str) -> Option<Self> {
        let (symbol, number) = text.split_at_checked(1)?;
        let is_number = number.starts_with(|c: char| c.is_ascii_digit() || c == '-');
        let value = number.parse().ok().filter(|_| is_number)?;
        match symbol {
            "z" => Some(Self::Redshift(value)),
            "t" => Some(Self::Time(value)),
            _ => None,
        }
    }

    /// In a narrow space: `z 9.123` or `t 12.5`.
    pub(crate) fn brief(self) -> String {
        match self {
            Self::Redshift(z) => format!("z {z:.3}"),
            Self::Time(_) => format!("t {}", self.rounded().value()),
        }
    }

    pub(crate) fn symbol(self) -> &'static str {
        match self {
            Self::Redshift(_) => "z",
            Self::Time(_) => "t",
        }
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {}", self.symbol(), self.value())
    }
}

/// Several moments in a few words: `z = 9, 4, 0`.
pub(crate) fn list(moments: &[Moment]) -> String {
    let Some(first) = moments.first() else { return "none".into() };
    let values: Vec<String> = moments.iter().map(|m| m.value().to_string()).collect();
    format!("{} = {}", first.symbol(), values.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_named_and_ordered_by_time() {
        let (z, t) = (Moment::Redshift(1.500_049), Moment::Time(1.234_567_8e-5));
        assert_eq!((z.rounded().to_string(), z.rounded().tag()), ("z = 1.5".into(), "z1.5".into()));
        assert_eq!(t.rounded().to_string(), "t = 0.0000123457");
        for moment in [z, t, Moment::Redshift(-0.25)] {
            assert_eq!(Moment::from_tag(&moment.tag()), Some(moment));
        }
        assert_eq!(["", "z", "zinf", "halo1", "é1"].map(Moment::from_tag), [None; 5]);
        let close = [1.000_04, 1.000_01, 0.9, 1.234_56, 1.0 - 1e-12].map(Moment::Redshift);
        let tags = close.map(|moment| moment.rounded_among(close.into_iter()).tag());
        assert_eq!(tags, ["z1.00004", "z1.00001", "z0.9", "z1.2346", "z1"]);
        let close = [1.000_001, 1.000_002, 1e9 + 1.0, 1e9, 1e-9 + 1e-15].map(Moment::Time);
        let tags = close.map(|moment| moment.rounded_among(close.into_iter()).tag());
        assert_eq!(tags, ["t1.000001", "t1.000002", "t1000000001", "t1000000000", "t0.000000001"]);
        let next = [1.0, 1.0 + f64::EPSILON].map(Moment::Redshift);
        assert_ne!(next[0].rounded_among(next.into_iter()), next[1].rounded_among(next.into_iter()));
        assert!(Moment::Redshift(1.0).now() > Moment::Redshift(2.0).now() && Moment::Time(2.0).now() == 2.0);
        assert!((Moment::Redshift(0.0).fraction(0.01, 0.1) - 0.5).abs() < 1e-14);
        assert_eq!(Moment::Time(4.0).fraction(2.0, 3.0), 0.5);
        assert_eq!(list(&[Moment::Time(1.0), Moment::Time(2.5)]), "t = 1, 2.5");
    }
}
