//! Hilbert's curve through the groups of a level (Skilling 2004, *Programming the Hilbert curve*, AIP Conf. Proc. 707).

use crate::mesh::Key;
use comove_kernels::layout::OCTANTS;

/// Most bits of a coordinate.
const BITS: u32 = 21;

/// How a cube's own piece of the curve lies in the cube: each of its axes is one of the lattice's, with its direction turned
/// where that is said, and the curve runs through the cube's octants from the first to the last, or back.
#[derive(Clone, Copy)]
struct Frame {
    axes: [usize; 3],
    turned: [bool; 3],
    back: bool,
}

/// Frames that there could be.
const FRAMES: usize = 3 * 3 * 3 * 16;

impl Frame {
    const FIRST: Self = Self { axes: [0, 1, 2], turned: [false; 3], back: false };

    const fn number(self) -> usize {
        let Self { axes: [a, b, c], turned: [x, y, z], back } = self;
        (a + 3 * b + 9 * c) * 16 + x as usize + 2 * y as usize + 4 * z as usize + 8 * back as usize
    }

    const fn of_number(n: usize) -> Self {
        let axes = n / 16;
        Self {
            axes: [axes % 3, axes / 3 % 3, axes / 9],
            turned: [n & 1 == 1, n >> 1 & 1 == 1, n >> 2 & 1 == 1],
            back: n >> 3 & 1 == 1,
        }
    }

    /// Of an octant of the lattice: which one it is along the curve, and the frame of its own piece.
    const fn of_octant(self, octant: usize) -> (u8, Self) {
        let (mut inside, mut at, mut axis) = (self, [false; 3], 0);
        while axis < 3 {
            at[axis] = (octant >> self.axes[axis] & 1 == 1) != self.turned[axis];
            if at[axis] {
                inside.turned[0] = !inside.turned[0];
            } else {
                (inside.axes[0], inside.axes[axis]) = (inside.axes[axis], inside.axes[0]);
                (inside.turned[0], inside.turned[axis]) = (inside.turned[axis], inside.turned[0]);
            }
            axis += 1;
        }
        // octants follow each other in the order of a Gray code
        let first = at[0];
        let second = at[1] != first;
        let third = at[2] != second;
        inside.back = self.back != third;
        let digit = ((first != self.back) as u8) << 2 | ((second != self.back) as u8) << 1 | (third != self.back) as u8;
        (digit, inside)
    }
}

/// By frame and octant: the octant's place along the curve, and the number of its frame.
static OCTANT: [[(u8, u16); OCTANTS]; FRAMES] = {
    let mut all = [[(0, 0); OCTANTS]; FRAMES];
    let mut n = 0;
    while n < FRAMES * OCTANTS {
        let (digit, inside) = Frame::of_number(n / OCTANTS).of_octant(n % OCTANTS);
        all[n / OCTANTS][n % OCTANTS] = (digit, inside.number() as u16);
        n += 1;
    }
    all
};

/// Position along the curve through a lattice of 2^`bits` groups a side. Of a group's eight children, on a lattice of
/// twice as many, the positions are eight times its own and the seven that follow.
pub(crate) fn position(coordinate: [u32; 3], bits: u32) -> u64 {
    debug_assert!(bits <= BITS && coordinate.iter().all(|c| c >> bits == 0));
    let octants = Key::new(0, coordinate).morton();
    // from the coarsest cubes to the finest
    let (mut position, mut frame) = (0, Frame::FIRST.number());
    for bit in (0..bits).rev() {
        let (digit, inside) = OCTANT[frame][(octants >> (3 * bit)) as usize % OCTANTS];
        position = position << 3 | u64::from(digit);
        frame = usize::from(inside);
    }
    position
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn curve(bits: u32) -> Vec<[u32; 3]> {
        let n = 1 << bits;
        let lattice = (0..n * n * n).map(|c| [c % n, c / n % n, c / (n * n)]);
        let at: BTreeMap<u64, [u32; 3]> = lattice.map(|c| (position(c, bits), c)).collect();
        assert!(at.keys().copied().eq(0..u64::from(n).pow(3)), "each position once");
        at.into_values().collect()
    }

    #[test]
    fn the_curve_goes_from_neighbour_to_neighbour() {
        for bits in 0..5 {
            for pair in curve(bits).windows(2) {
                let steps: u32 = (0..3).map(|a| pair[0][a].abs_diff(pair[1][a])).sum();
                assert_eq!(steps, 1, "{pair:?}");
            }
        }
    }

    #[test]
    fn children_follow_each_other_where_their_parent_is() {
        for bits in 0..4 {
            for (at, c) in curve(bits + 1).into_iter().enumerate() {
                assert_eq!(at as u64 / 8, position(c.map(|x| x / 2), bits), "{c:?}");
            }
        }
    }

    /// The transformation as it is published.
    fn of_skilling(coordinate: [u32; 3], bits: u32) -> u64 {
        let mut x = coordinate;
        for bit in (1..bits).rev() {
            let finer = (1 << bit) - 1;
            for axis in 0..3 {
                if x[axis] >> bit & 1 == 1 {
                    x[0] ^= finer;
                } else {
                    let differing = (x[0] ^ x[axis]) & finer;
                    x[0] ^= differing;
                    x[axis] ^= differing;
                }
            }
        }
        x[1] ^= x[0];
        x[2] ^= x[1];
        let flips = (1..bits).filter(|bit| x[2] >> bit & 1 == 1).fold(0, |flips, bit| flips ^ ((1 << bit) - 1));
        let [first, second, third] = x.map(|x| x ^ flips);
        Key::new(0, [third, second, first]).morton()
    }

    proptest! {
        #[test]
        fn positions_are_those_of_the_published_curve(x in 0u32..1 << 21, y in 0u32..1 << 21, z in 0u32..1 << 21) {
            for bits in 0..=BITS {
                let coordinate = [x, y, z].map(|c| c >> (BITS - bits));
                prop_assert_eq!(position(coordinate, bits), of_skilling(coordinate, bits));
            }
        }
    }
}
