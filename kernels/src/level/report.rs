//! What an operation that changes cells says of each group. Only leaf cells count.

/// Counts and booked energy of one group after one operation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct GroupReport {
    /// Σ over leaf cells of the energy density that synchronisation with the entropy scalar added.
    pub energy_added: f64,
    /// Σ over leaf cells of the energy density that floors added.
    pub floor_energy: f64,
    /// Σ over leaf cells of the mass density that floors added.
    pub floor_mass: f64,
    /// Leaf cells whose density or pressure was raised to its floor.
    pub floored: u32,
    /// The first of them: offset in the group ([`crate::layout::cell`]).
    pub first_floored: u32,
    /// Leaf cells whose pressure came from the entropy scalar.
    pub cold: u32,
    /// Leaf cells whose total energy did not exceed the kinetic one before.
    pub negative: u32,
    /// Leaf cells that are not finite or not positive even so.
    pub invalid: u32,
    /// The first of them, as above.
    pub first_invalid: u32,
    /// Leaf cells that a sweep has marked ([`crate::level::troubled_cells`]) and that were not marked before.
    pub marked: u32,
    /// The groups whose sweep sees one of these marks, this one included: bits by [`crate::layout::direction`].
    pub marks_reach: u32,
    /// Leaf cells that were marked before a sweep and so had all their faces swept at first order.
    pub redone: u32,
    /// The first of them, as above.
    pub first_redone: u32,
    /// Faces, pass by pass, that were swept at first order: each is counted by the group of the cell above it.
    pub redone_faces: u32,
}

impl GroupReport {
    /// Adds the report of other cells of the same group; the first of a kind is the one with the lowest offset.
    pub fn add(&mut self, other: &Self) {
        for (cells, first, other_cells, other_first) in [
            (self.invalid, &mut self.first_invalid, other.invalid, other.first_invalid),
            (self.floored, &mut self.first_floored, other.floored, other.first_floored),
            (self.redone, &mut self.first_redone, other.redone, other.first_redone),
        ] {
            if other_cells > 0 && (cells == 0 || other_first < *first) {
                *first = other_first;
            }
        }
        self.energy_added += other.energy_added;
        self.floor_energy += other.floor_energy;
        self.floor_mass += other.floor_mass;
        self.floored += other.floored;
        self.cold += other.cold;
        self.negative += other.negative;
        self.invalid += other.invalid;
        self.marked += other.marked;
        self.marks_reach |= other.marks_reach;
        self.redone += other.redone;
        self.redone_faces += other.redone_faces;
    }
}
