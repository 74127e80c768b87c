//! Forces between point masses in a periodic box by Ewald's sums (Hernquist, Bouchet & Suto 1991, ApJS 75, 231, eq.
//! 2.14b).

use std::f64::consts::PI;

/// Sharpness α of the split, in inverse box lengths: both sums then converge equally fast.
const SHARPNESS: f64 = 2.0;
/// Images on either side of the box along each axis: the first left out is damped by erfc(α·3.5) < 10⁻²².
const IMAGES: i32 = 3;
/// Waves on either side of zero along each axis: the first left out is damped by exp(−25π²/α²) < 10⁻²⁶.
const WAVES: i32 = 4;

/// The acceleration at `x`, relative to a unit mass, by all its periodic images but the nearest, and by the uniform
/// negative density that makes the box neutral.
///
/// Box length and Newton's constant are 1; each component of `x` lies in [−1/2, 1/2]. Smooth, and (4π/3) x near the
/// origin.
pub fn image_force(x: [f64; 3]) -> [f64; 3] {
    image_force_with(x, SHARPNESS)
}

fn image_force_with(x: [f64; 3], alpha: f64) -> [f64; 3] {
    let mut force = [0.0; 3];
    for n in lattice(IMAGES) {
        let d: [f64; 3] = std::array::from_fn(|axis| x[axis] - f64::from(n[axis]));
        let r = norm(d);
        let u = alpha * r;
        // erf(u) − 2u/√π e^(−u²) is what the short range leaves of 1/r²; the nearest image loses it to the waves
        let long_range = long_range(u);
        let share = if n == [0; 3] { long_range } else { long_range - 1.0 };
        // u³ and not r³ below: the ratio stays finite at the origin
        let factor = if u > 0.0 { share / u.powi(3) } else { 4.0 / (3.0 * PI.sqrt()) } * alpha.powi(3);
        for axis in 0..3 {
            force[axis] += factor * d[axis];
        }
    }
    for h in lattice(WAVES).filter(|h| *h != [0; 3]) {
        let h = h.map(f64::from);
        let square = norm(h).powi(2);
        let phase: f64 = 2.0 * PI * (0..3).map(|axis| h[axis] * x[axis]).sum::<f64>();
        let amplitude = 2.0 / square * (-PI * PI * square / (alpha * alpha)).exp() * phase.sin();
        for axis in 0..3 {
            force[axis] -= amplitude * h[axis];
        }
    }
    force
}

/// erf(u) − 2u/√π e^(−u²) = (4/√π) ∫₀ᵘ t² e^(−t²) dt.
fn long_range(u: f64) -> f64 {
    if u < 0.03 {
        // its series, where the difference would lose digits
        let square = u * u;
        return 4.0 / PI.sqrt()
            * u
            * square
            * (1.0 / 3.0 - square * (1.0 / 5.0 - square * (1.0 / 14.0 - square / 54.0)));
    }
    1.0 - libm::erfc(u) - 2.0 * u / PI.sqrt() * (-u * u).exp()
}

/// Every integer vector with components of at most `reach`.
fn lattice(reach: i32) -> impl Iterator<Item = [i32; 3]> {
    (-reach..=reach).flat_map(move |z| (-reach..=reach).flat_map(move |y| (-reach..=reach).map(move |x| [x, y, z])))
}

fn norm(x: [f64; 3]) -> f64 {
    x.iter().map(|x| x * x).sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    const POINTS: [[f64; 3]; 4] = [[0.1, 0.05, -0.02], [0.3, -0.2, 0.15], [0.5, 0.4, 0.1], [0.45, 0.5, -0.5]];

    /// The split is arbitrary.
    #[test]
    fn sharpness_does_not_matter() {
        for x in POINTS {
            let (one, other) = (image_force(x), image_force_with(x, 2.2));
            for axis in 0..3 {
                assert!((one[axis] - other[axis]).abs() < 1e-12, "{x:?}: {one:?} {other:?}");
            }
        }
    }

    /// Cubes of images of growing size: the background of the same cube pulls by −(4π/3) x, up to terms of the fourth
    /// harmonic that fall as the square of its size, which Richardson's extrapolation takes off.
    #[test]
    fn direct_sums_agree() {
        for x in POINTS {
            let direct = |reach: i32| {
                let mut force = x.map(|x| 4.0 * PI / 3.0 * x);
                for n in lattice(reach).filter(|n| *n != [0; 3]) {
                    let d: [f64; 3] = std::array::from_fn(|axis| x[axis] - f64::from(n[axis]));
                    for axis in 0..3 {
                        force[axis] -= d[axis] / norm(d).powi(3);
                    }
                }
                force
            };
            let (small, large, ewald) = (direct(7), direct(22), image_force(x)); // cubes of 15 and 45 boxes
            for axis in 0..3 {
                let limit = (9.0 * large[axis] - small[axis]) / 8.0;
                assert!((limit - ewald[axis]).abs() < 1e-5, "{x:?}: {limit} {ewald:?}");
            }
        }
    }

    /// Halfway to the next image forces balance: the images pull back as the nearest mass does.
    #[test]
    fn forces_balance_halfway() {
        for [y, z] in [[0.0, 0.0], [0.2, -0.3], [0.5, 0.5]] {
            let x = [0.5, y, z];
            assert!((image_force(x)[0] - 0.5 / norm(x).powi(3)).abs() < 1e-12);
        }
    }

    /// (4π/3) x at the origin, where the series takes over smoothly.
    #[test]
    fn smooth_at_the_origin() {
        assert!(norm(image_force([0.0; 3])) < 1e-16);
        for r in [1e-9, 1e-4, 1e-3] {
            let force = image_force([r, -r, 0.5 * r]);
            assert!((force[0] / (4.0 * PI / 3.0 * r) - 1.0).abs() < 1e-5, "{r}: {force:?}");
            assert!((force[1] + force[0]).abs() < 1e-12);
        }
        let at = |u: f64| long_range(u) / u.powi(3);
        assert!((at(0.029_999_999) / at(0.030_000_001) - 1.0).abs() < 1e-9);
    }
}
