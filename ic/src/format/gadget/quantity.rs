//! Arrays of particles, and their names in either container.

/// An array of particles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quantity {
    Positions,
    Velocities,
    Ids,
    Masses,
}

impl Quantity {
    /// In the order of blocks.
    pub(super) const ALL: [Self; 4] = [Self::Positions, Self::Velocities, Self::Ids, Self::Masses];

    pub(super) fn dataset(self) -> &'static str {
        match self {
            Self::Positions => "Coordinates",
            Self::Velocities => "Velocities",
            Self::Ids => "ParticleIDs",
            Self::Masses => "Masses",
        }
    }

    pub(super) fn block(self) -> &'static str {
        match self {
            Self::Positions => "POS ",
            Self::Velocities => "VEL ",
            Self::Ids => "ID  ",
            Self::Masses => "MASS",
        }
    }

    /// Numbers of a particle.
    pub(super) fn width(self) -> usize {
        if matches!(self, Self::Positions | Self::Velocities) { 3 } else { 1 }
    }
}
