//! Particles that would leave a box that is not periodic.

/// Particles that are about to leave the box.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Strays {
    /// How many.
    pub count: u64,
    /// The identity of one.
    pub id: u64,
    /// Where it is, code length.
    pub place: [f64; 3],
}

impl std::fmt::Display for Strays {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { count, id, place: [x, y, z] } = self;
        write!(f, "particle {id} at ({x}, {y}, {z})")?;
        if *count > 1 {
            write!(f, " and {} others", count - 1)?;
        }
        write!(f, " within two root cells of a face of the box that is not periodic: take a larger box")
    }
}
