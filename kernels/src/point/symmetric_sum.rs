//! Sums whose bits do not depend on the order of the terms, and whose sign follows the terms' signs: what makes a
//! rotated or mirrored flow give rotated or mirrored bits.
//!
//! Each is the median of the three ways to add in pairs: a change of order permutes the three, and a change of sign
//! changes the sign of each.

use crate::real::Real;

/// a + b + c.
#[inline(always)]
pub fn of_three<T: Real>(a: T, b: T, c: T) -> T {
    median((a + b) + c, (b + c) + a, (c + a) + b)
}

/// a + b + c + d.
#[inline(always)]
pub fn of_four<T: Real>(a: T, b: T, c: T, d: T) -> T {
    median((a + b) + (c + d), (a + c) + (b + d), (a + d) + (b + c))
}

/// The sum of the eight cells of a cube, cell (x, y, z) at x + 2y + 4z: the same bits when the cube is rotated or
/// mirrored. Its four diagonals, each a sum of two, are permuted then.
#[inline(always)]
pub fn of_cube<T: Real>(cells: [T; 8]) -> T {
    let diagonal = |n: usize| cells[n] + cells[7 - n];
    of_four(diagonal(0), diagonal(1), diagonal(2), diagonal(3))
}

#[inline(always)]
fn median<T: Real>(a: T, b: T, c: T) -> T {
    let (low, high) = if a < b { (a, b) } else { (b, a) };
    let capped = if c < high { c } else { high };
    if low > capped { low } else { capped }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Noise;

    /// All 48 rotations and reflections of a cube, as permutations of its cells.
    fn symmetries() -> Vec<[usize; 8]> {
        let axes = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
        let image = |cell: usize, axes: [usize; 3], flips: usize| {
            (0..3).map(|a| ((cell >> axes[a] & 1) ^ (flips >> a & 1)) << a).sum::<usize>()
        };
        axes.into_iter()
            .flat_map(|axes| (0..8).map(move |flips| std::array::from_fn(|cell| image(cell, axes, flips))))
            .collect()
    }

    #[test]
    fn order_and_sign_do_not_matter() {
        let mut noise = Noise::new(7);
        let mut differs = 0;
        for n in 0..2000 {
            // every third set holds equal and opposite values, as symmetric flows do
            let cells: [f32; 8] = std::array::from_fn(|i| {
                let value = (noise.next() as f32 - 0.5) * 10f32.powi(i as i32 % 4);
                if n % 3 == 0 && i % 2 == 1 { -1.0 } else { value }
            });
            let sum = of_cube(cells);
            for symmetry in symmetries() {
                assert_eq!(of_cube(symmetry.map(|i| cells[i])), sum);
            }
            assert_eq!(of_cube(cells.map(|x| -x)), -sum);
            let [a, b, c, ..] = cells;
            let three = of_three(a, b, c);
            for other in [of_three(a, c, b), of_three(b, a, c), of_three(c, b, a), -of_three(-b, -c, -a)] {
                assert_eq!(other, three);
            }
            differs += usize::from((a + b) + c != (a + c) + b);
            let exact: f64 = cells.iter().map(|&x| f64::from(x)).sum();
            let scale: f64 = cells.iter().map(|&x| f64::from(x).abs()).sum();
            assert!((f64::from(sum) - exact).abs() <= 4.0 * f64::from(f32::EPSILON) * scale);
        }
        assert!(differs > 100, "the test needs sums whose order matters: {differs}");
    }
}
