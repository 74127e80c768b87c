//! What an operation that changes cells says of each group. Only leaf cells count.

/// Counts and booked energy of one group after one operation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct GroupReport {
    /// Σ over leaf cells of the energy density that synchronisation with the entropy scalar added.
    pub energy_added: f64,
    /// Σ over leaf cells of the energy density that floors added.
    pub floor_energy: f64,
    /// Σ over leaf cells of the mass density that floors added.
    pub floor_mass: f64,
    /// Leaf cells whose density or pressure was raised to its floor.
    pub floored: u32,
    /// Leaf cells whose pressure came from the entropy scalar.
    pub cold: u32,
    /// Leaf cells that are not finite or not positive even so.
    pub invalid: u32,
    /// The first of them: offset in the group ([`crate::layout::cell`]).
    pub first_invalid: u32,
}

impl GroupReport {
    /// Adds what another operation did to the same group.
    pub fn add(&mut self, other: &Self) {
        if self.invalid == 0 {
            self.first_invalid = other.first_invalid;
        }
        self.energy_added += other.energy_added;
        self.floor_energy += other.floor_energy;
        self.floor_mass += other.floor_mass;
        self.floored += other.floored;
        self.cold += other.cold;
        self.invalid += other.invalid;
    }
}
