//! Cells along the three axes, as a recipe gives them: one number for a cube, or a list `[x, y, z]`.

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;

/// Cells along x, y, z.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Extents(pub [usize; 3]);

impl<'de> Deserialize<'de> for Extents {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ExtentsVisitor)
    }
}

struct ExtentsVisitor;

impl<'de> Visitor<'de> for ExtentsVisitor {
    type Value = Extents;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number of cells, or a list of three along x, y, z")
    }

    fn visit_u64<E: Error>(self, n: u64) -> Result<Extents, E> {
        let n = usize::try_from(n).map_err(|_| E::invalid_value(serde::de::Unexpected::Unsigned(n), &self))?;
        Ok(Extents([n; 3]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Extents, A::Error> {
        let mut cells = [0; 3];
        for (n, cells) in cells.iter_mut().enumerate() {
            *cells = list.next_element()?.ok_or_else(|| A::Error::invalid_length(n, &self))?;
        }
        match list.next_element::<usize>()? {
            None => Ok(Extents(cells)),
            Some(_) => Err(A::Error::invalid_length(4, &self)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_number_or_a_list() {
        let read = |value| serde_json::from_value::<Extents>(value).map_err(|error| error.to_string());
        assert_eq!(read(json!(32)), Ok(Extents([32; 3])));
        assert_eq!(read(json!([64, 16, 32])), Ok(Extents([64, 16, 32])));
        for wrong in [json!([64, 16]), json!([1, 2, 3, 4]), json!(-16), json!(1.5), json!("32")] {
            assert!(read(wrong).unwrap_err().contains("a list of three"));
        }
        assert!(read(json!([64, -1, 16])).unwrap_err().contains("usize"));
    }
}
