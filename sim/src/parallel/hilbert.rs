//! Hilbert's curve through the groups of a level (Skilling 2004, *Programming the Hilbert curve*, AIP Conf. Proc. 707).

use crate::octree::Key;

/// Most bits of a coordinate.
const BITS: u32 = 21;

/// Position along the curve through a lattice of 2^`bits` groups a side. Of a group's eight children, on a lattice of
/// twice as many, the positions are eight times its own and the seven that follow.
pub fn position(coordinate: [u32; 3], bits: u32) -> u64 {
    debug_assert!(bits <= BITS && coordinate.iter().all(|c| c >> bits == 0));
    let mut x = coordinate;
    // from the coarsest cubes to the finest: into the frame of the cube's own piece of the curve
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
    // the cubes of one piece follow each other in the order of a Gray code
    x[1] ^= x[0];
    x[2] ^= x[1];
    let flips = (1..bits).filter(|bit| x[2] >> bit & 1 == 1).fold(0, |flips, bit| flips ^ ((1 << bit) - 1));
    let [first, second, third] = x.map(|x| x ^ flips);
    Key::new(0, [third, second, first]).morton()
}

#[cfg(test)]
mod tests {
    use super::*;
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
}
