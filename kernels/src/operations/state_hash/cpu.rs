//! Hashes on the processor.

use crate::device::isa::{Isa, Kernel};
use crate::level::level_topology::LevelTopology;
use crate::real::Real;
use rayon::prelude::*;

/// 2⁶⁴ over the golden ratio, odd.
const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

pub(super) fn state_hash<T: Real>(isa: Isa, tables: &LevelTopology, values: usize, pool: &[T], hashes: &mut [u64]) {
    hashes.par_iter_mut().zip(&tables.slots[..]).for_each(|(hash, &slot)| {
        *hash = isa.run(Hash { values: &pool[slot as usize * values..][..values] });
    });
}

struct Hash<'a, T> {
    values: &'a [T],
}

impl<T: Real> Kernel for Hash<'_, T> {
    type Output = u64;

    #[inline(always)]
    fn run(self) -> u64 {
        let mut sum = 0u64;
        let mut factor = FACTOR;
        for value in self.values {
            sum = sum.wrapping_add(value.bits().wrapping_mul(factor));
            factor = factor.wrapping_add(FACTOR.wrapping_mul(2));
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::GROUP_VALUES;

    #[test]
    fn follows_its_formula_and_sees_one_bit() {
        let mut fluid: Vec<f32> = (0..2 * GROUP_VALUES).map(|i| (i as f32).sin()).collect();
        let tables = LevelTopology { slots: vec![1, 0].into(), ..Default::default() };
        let expected = |fluid: &[f32], slot: usize| {
            fluid[slot * GROUP_VALUES..][..GROUP_VALUES].iter().enumerate().fold(0u64, |sum, (i, value)| {
                let odd = (2 * i as u64 + 1).wrapping_mul(FACTOR);
                sum.wrapping_add(u64::from(value.to_bits()).wrapping_mul(odd))
            })
        };
        for isa in Isa::available() {
            let mut hashes = [0; 2];
            state_hash(isa, &tables, GROUP_VALUES, &fluid, &mut hashes);
            assert_eq!(hashes, [expected(&fluid, 1), expected(&fluid, 0)]);
        }
        let before = expected(&fluid, 0);
        fluid[100] = f32::from_bits(fluid[100].to_bits() ^ 1);
        assert_ne!(before, expected(&fluid, 0));
    }
}
