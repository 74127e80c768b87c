//! A particle: where it is, its mass, and how this is shared among cells (cloud in cell, Hockney & Eastwood 1988).
//!
//! Positions are fractions of the box in units of 2⁻³², so they are periodic by overflow and equally fine everywhere. Bits 60
//! to 62 of an identity are the particle's mass class: class c has 8ᶜ times the mass of class 0. A zoom simulation with coarser
//! lattices of particles around its region thus needs no column of masses. Bit 59 is set for a particle that refinement does not
//! follow though it may be of class 0: criteria do not count it. Identities stay positive as signed numbers.

/// Bits of a weight along one axis, where no particle is heavier than class 2.
pub const WEIGHT_BITS: u32 = 14;

/// The weights of a particle's eight cells together: a cell of 64 bits holds the mass of four million particles.
pub const WHOLE: u64 = 1 << (3 * WEIGHT_BITS);

/// Mass classes of particles.
pub const CLASSES: usize = 8;

/// Position of the class in an identity.
const CLASS_SHIFT: u32 = 60;

/// Position in an identity of the mark of particles that refinement does not follow.
const MARK_SHIFT: u32 = 59;

/// Kinds of particles: a class, and whether refinement follows it.
const KINDS: usize = 2 * CLASSES;

/// Bits of a weight along one axis and three times the heaviest class together: a cell of 64 bits holds the mass of at least
/// 2¹⁶ particles of the heaviest class.
const HEAVIEST_BITS: u32 = 16;

/// Half a cell, in the units of [`Cloud`]'s arithmetic.
const HALF: u32 = 1 << 31;

/// The mass class of the particle with this identity, 0 to 7.
#[inline(always)]
pub const fn class_of(id: u64) -> usize {
    (id >> CLASS_SHIFT) as usize & (CLASSES - 1)
}

/// The identity, without the mark, of a particle of a class; none for a class above 7 or a number of 2⁵⁹ or more.
pub const fn id_of_class(class: usize, number: u64) -> Option<u64> {
    if class < CLASSES && number_of(number) == number { Some(number | (class as u64) << CLASS_SHIFT) } else { None }
}

/// An identity without its mass class and its mark.
#[inline(always)]
pub const fn number_of(id: u64) -> u64 {
    id & ((1 << MARK_SHIFT) - 1)
}

/// True if refinement follows the particle: its class is 0, and its identity has no mark.
#[inline(always)]
pub const fn is_followed(id: u64) -> bool {
    kind_of(id) == 0
}

/// The identity of the same particle if refinement does not follow it.
pub const fn marked(id: u64) -> u64 {
    id | 1 << MARK_SHIFT
}

/// The identity without that mark.
pub const fn unmarked(id: u64) -> u64 {
    id & !marked(0)
}

#[inline(always)]
const fn kind_of(id: u64) -> usize {
    (id >> MARK_SHIFT) as usize & (KINDS - 1)
}

/// Mass of a particle of a class in units of class 0: 8ᶜ.
#[inline(always)]
pub const fn mass_of_class(class: usize) -> u32 {
    1 << (3 * class)
}

/// Mass of the particle with this identity in units of class 0.
#[inline(always)]
pub const fn mass_of(id: u64) -> u32 {
    mass_of_class(class_of(id))
}

/// Unit of the integers that hold the mass in cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct WeightUnit {
    /// Bits of a weight along one axis, at least 2.
    bits: u32,
    /// Weight of a particle of each kind, twice the class and 1 more with the mark, in weights of class 0.
    of_kind: [u32; KINDS],
}

impl WeightUnit {
    /// For masses up to those of a class: 14 bits along an axis for classes 0 to 2, one bit fewer for each further class.
    pub const fn for_heaviest(class: usize) -> Self {
        let left = HEAVIEST_BITS - class as u32;
        let bits = if left < WEIGHT_BITS { left } else { WEIGHT_BITS };
        let mut of_kind = [0; KINDS];
        let mut kind = 0;
        while kind < KINDS {
            of_kind[kind] = mass_of_class(kind / 2);
            kind += 1;
        }
        Self { bits, of_kind }
    }

    /// Weights in this unit of the particles that refinement follows alone.
    pub const fn followed_alone(self) -> Self {
        let mut of_kind = [0; KINDS];
        of_kind[0] = 1;
        Self { bits: self.bits, of_kind }
    }

    /// Bits of a weight along one axis.
    #[inline(always)]
    pub const fn bits(&self) -> u32 {
        self.bits
    }

    /// The weights of the eight cells of a particle of class 0 together.
    pub const fn whole(&self) -> u64 {
        1 << (3 * self.bits)
    }

    /// Weight of the particle with this identity, in weights of class 0.
    #[inline(always)]
    pub const fn of(&self, id: u64) -> u64 {
        self.of_kind[kind_of(id)] as u64
    }
}

/// Class 0 alone.
impl Default for WeightUnit {
    fn default() -> Self {
        Self::for_heaviest(0)
    }
}

/// The two cells along an axis that a particle's mass is shared between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cloud {
    /// The cell that the particle is in.
    pub cell: u32,
    /// From that cell to the lower of the two: −1 or 0.
    pub lower: i32,
    /// Weights of the lower and of the upper one, together 2 to the number of their bits.
    pub weights: [u32; 2],
}

impl Cloud {
    /// Of a particle at `position`, on a lattice of `cells` cells, with weights of [`WEIGHT_BITS`] bits.
    #[inline(always)]
    pub fn new(position: u32, cells: u32) -> Self {
        Self::with_bits(position, cells, WEIGHT_BITS)
    }

    /// Of a particle at `position`, on a lattice of `cells` cells, with weights of `bits` bits, 1 to 31.
    #[inline(always)]
    pub fn with_bits(position: u32, cells: u32, bits: u32) -> Self {
        let scaled = u64::from(position) * u64::from(cells);
        let (cell, within) = ((scaled >> 32) as u32, scaled as u32);
        let above = u64::from(within.wrapping_add(HALF));
        // to the nearest
        let upper = ((above + (1 << (31 - bits))) >> (32 - bits)) as u32;
        Self { cell, lower: if within < HALF { -1 } else { 0 }, weights: [(1 << bits) - upper, upper] }
    }
}

/// The cells of a level that share the mass of a particle of the next coarser one along an axis, whose cloud is twice as wide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WideCloud {
    /// The cell that the particle is in.
    pub cell: u32,
    /// Weights of the cell before, of this one, and of the one behind, together 2 to the number of their bits: those of a coarse
    /// cell are those of its halves.
    pub weights: [u32; 3],
}

impl WideCloud {
    /// Of a particle at `position`, on a lattice of `cells` cells, with weights of so many bits.
    #[inline(always)]
    pub fn with_bits(position: u32, cells: u32, bits: u32) -> Self {
        let Cloud { lower, weights: [below, above], .. } = Cloud::with_bits(position, cells / 2, bits);
        let cell = ((u64::from(position) * u64::from(cells)) >> 32) as u32;
        let half = 1 << (bits - 1);
        let (before, behind) = match lower {
            -1 => (below, above - half),
            _ => (below - half, above),
        };
        Self { cell, weights: [before, half, behind] }
    }
}

/// The position after a drift.
///
/// * `factor`: time over the length of the box, times 2³²
#[inline(always)]
pub fn drifted(position: u32, velocity: f32, factor: f64) -> u32 {
    let way = f64::from(velocity) * factor;
    if way.abs() < LONGEST_NEAR {
        return drifted_near(position, velocity, factor);
    }
    position.wrapping_add(way.round_ties_even() as i64 as u32)
}

/// The longest way for which [`drifted_near`] is exact, 2⁵¹: half a million times through the box.
pub const LONGEST_NEAR: f64 = (1u64 << 51) as f64;

/// The same as [`drifted`] where the way is shorter than [`LONGEST_NEAR`]. A sum of this size has no bits below 1, so the
/// addition rounds; processors before AVX-512 convert no more than one number to an integer at a time.
#[inline(always)]
pub fn drifted_near(position: u32, velocity: f32, factor: f64) -> u32 {
    position.wrapping_add((f64::from(velocity) * factor + 3.0 * LONGEST_NEAR).to_bits() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_those_of_a_cloud_in_cell() {
        for (cells, bits) in [16, 48, 1 << 20].into_iter().flat_map(|cells| [(cells, WEIGHT_BITS), (cells, 9)]) {
            for n in 0..1000u32 {
                let position = n.wrapping_mul(0x9E37_79B9);
                let cloud = Cloud::with_bits(position, cells, bits);
                let x = f64::from(position) * 2f64.powi(-32) * f64::from(cells);
                assert_eq!(f64::from(cloud.cell), x.floor());
                assert_eq!(cloud.weights[0] + cloud.weights[1], 1 << bits);
                let lower = f64::from(cloud.cell) + f64::from(cloud.lower) + 0.5;
                let upper = f64::from(cloud.weights[1]) / f64::from(1 << bits);
                assert!((x - lower - upper).abs() <= 0.5 / f64::from(1 << bits), "{position} of {cells}");
            }
        }
        // at a centre one cell has it all
        assert_eq!(Cloud::new(HALF / 16, 16).weights, [1 << WEIGHT_BITS, 0]);
    }

    #[test]
    fn a_cloud_weighs_the_same_on_the_next_finer_level() {
        for (n, bits) in (0..1000u32).flat_map(|n| [(n, WEIGHT_BITS), (n, 9)]) {
            let position = n.wrapping_mul(0x9E37_79B9);
            let cells = 48;
            let own = Cloud::with_bits(position, cells, bits);
            let of = |cell: i32| {
                (0..2)
                    .map(|i| if own.cell as i32 + own.lower + i == cell { own.weights[i as usize] } else { 0 })
                    .sum::<u32>()
            };
            let wide = WideCloud::with_bits(position, 2 * cells, bits);
            for cell in -1..=cells as i32 {
                let halves = |half: i32| match half - wide.cell as i32 {
                    step @ -1..=1 => wide.weights[(step + 1) as usize],
                    _ => 0,
                };
                assert_eq!(halves(2 * cell) + halves(2 * cell + 1), of(cell), "{position} {cell}");
            }
        }
    }

    /// Every class in its identity, and head-room for 2¹⁶ particles of the heaviest class in a cell.
    #[test]
    fn identities_have_a_class_and_units_have_head_room() {
        assert_eq!((class_of(0), class_of(1 << 40), class_of((1 << 60) - 1)), (0, 0, 0));
        for class in 0..CLASSES {
            let id = id_of_class(class, 12_345).unwrap();
            assert_eq!((class_of(id), number_of(id), is_followed(id)), (class, 12_345, class == 0));
            let marked = marked(id);
            assert_eq!((class_of(marked), number_of(marked), is_followed(marked)), (class, 12_345, false));
            assert_eq!((unmarked(marked), unmarked(id)), (id, id));
            let unit = WeightUnit::for_heaviest(class);
            assert_eq!(unit.of(marked), unit.of(id));
            let followed = unit.followed_alone();
            assert_eq!((followed.of(id), followed.of(marked)), (u64::from(class == 0), 0));
            let heaviest = u128::from(unit.whole()) * u128::from(unit.of(id));
            assert!(heaviest << 16 <= 1 << 64, "{class}");
            assert!(unit.bits() >= 9 && (unit.bits() == WEIGHT_BITS) == (class <= 2), "{class}");
            assert_eq!(unit.of(id), 8u64.pow(class as u32));
        }
        assert_eq!(WeightUnit::default().whole(), WHOLE);
        assert_eq!((id_of_class(8, 1), id_of_class(1, 1 << 59)), (None, None));
    }

    #[test]
    fn a_drift_passes_the_end_of_the_box() {
        let box_length = 2f64.powi(32);
        assert_eq!(drifted(0, -1.0, 1.0), u32::MAX);
        assert_eq!(drifted(u32::MAX, 0.5, 4.0), 1);
        assert_eq!(drifted(7, 3.0, box_length), 7);
        assert_eq!(drifted(drifted(12_345, 0.77, 9876.5), 0.77, -9876.5), 12_345);
    }

    #[test]
    fn a_near_drift_is_to_the_nearest() {
        let ways = [0.0, 0.5, 1.5, 2.5, -0.5, -1.5, 0.499, 1e6 + 0.5, -7e9 - 0.5, 2f64.powi(33), LONGEST_NEAR - 0.5];
        for way in ways.into_iter().flat_map(|way| [way, -way]) {
            assert_eq!(drifted_near(77, 1.0, way), 77u32.wrapping_add(way.round_ties_even() as i64 as u32), "{way}");
        }
    }
}
