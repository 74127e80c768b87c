//! Identities of particles that refinement is to follow.

use serde::{Deserialize, Serialize};

/// Identities in ascending order, each once; as text their ranges, "0-15 32 40-47".
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Identities(
    /// First and last of each range.
    Vec<[u64; 2]>,
);

impl Identities {
    /// Number of identities.
    pub fn len(&self) -> u64 {
        self.0.iter().map(|[first, last]| (last - first).saturating_add(1)).fold(0, u64::saturating_add)
    }

    /// True for an empty set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The largest identity.
    pub fn last(&self) -> Option<u64> {
        self.0.last().map(|[_, last]| *last)
    }

    /// The identities in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u64> {
        self.0.iter().flat_map(|&[first, last]| first..=last)
    }

    /// True if the set contains the identity.
    pub fn contains(&self, id: u64) -> bool {
        let after = self.0.partition_point(|[first, _]| *first <= id);
        after.checked_sub(1).is_some_and(|n| id <= self.0[n][1])
    }
}

impl FromIterator<u64> for Identities {
    fn from_iter<I: IntoIterator<Item = u64>>(ids: I) -> Self {
        let mut ids: Vec<u64> = ids.into_iter().collect();
        ids.sort_unstable();
        let mut ranges: Vec<[u64; 2]> = Vec::new();
        for id in ids {
            match ranges.last_mut() {
                Some([_, last]) if id <= last.saturating_add(1) => *last = id,
                _ => ranges.push([id, id]),
            }
        }
        Self(ranges)
    }
}

impl From<Identities> for String {
    fn from(identities: Identities) -> Self {
        let range = |[first, last]: &[u64; 2]| match last - first {
            0 => first.to_string(),
            _ => format!("{first}-{last}"),
        };
        identities.0.iter().map(range).collect::<Vec<String>>().join(" ")
    }
}

impl TryFrom<String> for Identities {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let range = |range: &str| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            Some([first.parse().ok()?, last.parse().ok()?]).filter(|[first, last]: &[u64; 2]| first <= last)
        };
        let ranges: Option<Vec<[u64; 2]>> = text.split_whitespace().map(range).collect();
        ranges
            .filter(|ranges| ranges.is_sorted_by(|a, b| a[1].saturating_add(1) < b[0]))
            .map(Self)
            .ok_or_else(|| format!("\"{text}\": expected ascending ranges as in \"0-15 32\""))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_ranges_in_order() {
        let some: Identities = [7, 3, 2, 9, 8, 2, u64::MAX].into_iter().collect();
        assert_eq!(String::from(some.clone()), format!("2-3 7-9 {}", u64::MAX));
        assert_eq!((some.len(), some.last()), (6, Some(u64::MAX)));
        let held: Vec<u64> = (0..12).chain([u64::MAX]).filter(|&id| some.contains(id)).collect();
        assert_eq!(held, [2, 3, 7, 8, 9, u64::MAX]);
        assert_eq!(Identities::try_from(String::from(some.clone())), Ok(some));
        assert!(Identities::default().is_empty() && !Identities::default().contains(0));
        for bad in ["3-2", "1 1", "0-1 2-3", "a", "4-", "5 2"] {
            assert!(Identities::try_from(bad.to_owned()).unwrap_err().contains("expected ascending ranges"), "{bad}");
        }
    }
}
