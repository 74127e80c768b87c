//! Statistics over modes: amplitude, growth and direction of a species' velocity, and the shift of one field from another.

use super::fields::{Grid, SpeciesModes};
use rustfft::num_complex::Complex;
use std::f64::consts::TAU;

/// Modes that are compared, as a fraction of the Nyquist wave number: windows and aliases are small below.
pub(super) const WITHIN: (f64, f64) = (0.0, 0.5);

/// Modes beside the Nyquist wave number.
const OUTERMOST: (f64, f64) = (0.75, 1.0);

/// Share of the growing mode's power along an axis, below which there is nothing to compare.
const ALONG: f64 = 1e-3;

/// Power spectrum in bins.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spectrum {
    /// Mean wave number of a bin in h/Mpc.
    pub k_h_mpc: Vec<f64>,
    /// P(k) in (Mpc/h)³.
    pub power_mpc3_h3: Vec<f64>,
    /// P(k) of linear theory in (Mpc/h)³.
    pub linear_mpc3_h3: Vec<f64>,
    /// Modes of a bin, n and −n counted as two.
    pub modes: Vec<f64>,
}

/// Density contrast beside linear theory.
pub(super) struct Amplitude {
    /// Independent modes.
    pub pairs: f64,
    /// √(P/P_linear), mean over modes.
    pub ratio: f64,
    /// Exponent of k of P/P_linear.
    pub tilt: f64,
    /// Number of modes of equal P/P_linear that would have its mean square, over all: ½ of a Gaussian field.
    pub participation: f64,
    /// P/P_linear beside the Nyquist wave number.
    pub outermost: f64,
}

/// Velocity beside the growing mode of the density contrast.
pub(super) struct Motion {
    /// Slope of θ = −∇·ṽ/(a²E f) with δ.
    pub slope: f64,
    /// Correlation of θ and δ.
    pub correlation: f64,
    /// √(Σ|θ|²/P_linear) over modes, beside linear theory.
    pub amplitude: f64,
    /// Rms velocity over a²E f times the rms displacement, of which modes are not weighted.
    pub speed: f64,
    /// Rms displacement along an axis in Mpc/h.
    pub displacement: f64,
    /// Correlation of component b with the growing mode's component a, `[a][b]`; rows of axes without growing
    /// mode are those of the identity.
    pub directions: [[f64; 3]; 3],
    /// Slope of each component with the growing mode's.
    pub slopes: [f64; 3],
    /// Place of the velocity less that of the density, in cells of the mesh.
    pub shift: [f64; 3],
    /// The order of axes of the density that correlates best with the velocity, and its correlation.
    pub transposed: Option<([usize; 3], f64)>,
}

/// Two density contrasts.
pub(super) struct Likeness {
    pub correlation: f64,
    /// √(P/P) of the first over the second.
    pub ratio: f64,
    /// Place of the first less that of the second, in cells of the mesh.
    pub shift: [f64; 3],
}

/// θ of a mode.
fn convergence(species: &SpeciesModes, k: [f64; 3], index: usize, rate: f64) -> Complex<f64> {
    (0..3).map(|a| species.velocity[a][index] * Complex::new(0.0, -k[a] / rate)).sum()
}

fn size(k: [f64; 3]) -> f64 {
    k.iter().map(|k| k * k).sum::<f64>().sqrt()
}

impl Grid {
    fn volume(&self) -> f64 {
        self.lengths.iter().product()
    }

    /// Rms density contrast of compared modes in linear theory.
    ///
    /// * `linear`: P(k) in (Mpc/h)³ at the epoch
    pub(super) fn linear_rms(&self, linear: &dyn Fn(f64) -> f64) -> f64 {
        let mut sum = 0.0;
        self.for_each_mode(WITHIN, |_, k, _, weight| sum += weight * linear(size(k)) / self.volume());
        sum.sqrt()
    }

    /// * `linear`: P(k) in (Mpc/h)³ at the epoch
    pub(super) fn amplitude(&self, delta: &[Complex<f64>], linear: &dyn Fn(f64) -> f64) -> Amplitude {
        let ratio = |k: [f64; 3], index: usize| delta[index].norm_sqr() * self.volume() / linear(size(k));
        let (mut weights, mut sum, mut squares) = (0.0, 0.0, 0.0);
        // ratios by wave number, in shells, for the tilt
        let mut shells = vec![[0.0; 3]; 2 * self.cells.into_iter().max().unwrap_or(1)];
        let spacing = TAU / self.lengths.iter().fold(0.0, |most: f64, l| most.max(*l));
        self.for_each_mode(WITHIN, |_, k, index, weight| {
            let y = ratio(k, index);
            weights += weight;
            sum += weight * y;
            squares += weight * y * y;
            let last = shells.len() - 1;
            let shell = &mut shells[((size(k) / spacing) as usize).min(last)];
            let new = [weight, weight * y, weight * size(k).ln()];
            shell.iter_mut().zip(new).for_each(|(sum, new)| *sum += new);
        });
        let points: Vec<[f64; 3]> = (shells.into_iter().filter(|[n, y, _]| *n > 0.0 && *y > 0.0))
            .map(|[n, y, x]| [n, x / n, (y / n).ln()])
            .collect();
        let total: f64 = points.iter().map(|p| p[0]).sum();
        let mean = |of: usize| points.iter().map(|p| p[0] * p[of]).sum::<f64>() / total;
        let (x, y) = (mean(1), mean(2));
        let product = |of: usize, from: f64| points.iter().map(|p| p[0] * (p[1] - x) * (p[of] - from)).sum::<f64>();
        let (mut outer_weights, mut outer) = (0.0, 0.0);
        self.for_each_mode(OUTERMOST, |_, k, index, weight| {
            outer_weights += weight;
            outer += weight * ratio(k, index);
        });
        Amplitude {
            pairs: weights / 2.0,
            ratio: (sum / weights).sqrt(),
            tilt: product(2, y) / product(1, x),
            participation: sum * sum / squares / weights,
            outermost: outer / outer_weights,
        }
    }

    /// * `rate`: a²E f, which a growing mode's code velocity has of its displacement in Mpc/h
    pub(super) fn motion(&self, species: &SpeciesModes, rate: f64, linear: &dyn Fn(f64) -> f64) -> Motion {
        let (mut weights, mut dd, mut tt, mut dt) = (0.0, 0.0, 0.0, 0.0);
        let mut products = [[0.0; 3]; 3];
        let (mut growing, mut moving) = ([0.0; 3], [0.0; 3]);
        let (mut squares, mut displacements) = (0.0, 0.0);
        let row = self.cells[0] / 2 + 1;
        let mut orders = [[0.0; 2]; 6];
        let is_cube = self.cells.iter().all(|n| *n == self.cells[0]);
        self.for_each_mode(WITHIN, |n, k, index, weight| {
            let w = weight / linear(size(k));
            let (delta, theta) = (species.delta[index], convergence(species, k, index, rate));
            weights += weight;
            dd += w * delta.norm_sqr();
            tt += w * theta.norm_sqr();
            dt += w * (theta * delta.conj()).re;
            let speed = size(k) / rate;
            squares += weight * (0..3).map(|a| species.velocity[a][index].norm_sqr()).sum::<f64>();
            let displacement = |a: usize| match &species.displacement {
                Some(displacement) => displacement[a][index],
                None => delta * Complex::new(0.0, k[a] / size(k).powi(2)),
            };
            displacements += weight * (0..3).map(|a| displacement(a).norm_sqr()).sum::<f64>();
            for a in 0..3 {
                let u = displacement(a) * size(k);
                growing[a] += w * u.norm_sqr();
                moving[a] += w * species.velocity[a][index].norm_sqr() * speed * speed;
                for b in 0..3 {
                    products[a][b] += w * (species.velocity[b][index] * u.conj()).re * speed;
                }
            }
            if is_cube {
                for (order, sums) in ORDERS.iter().zip(&mut orders) {
                    let m = order.map(|a| n[a]);
                    let other = mode(&species.delta, m, self.cells, row);
                    sums[0] += w * other.norm_sqr();
                    sums[1] += w * (theta * other.conj()).re;
                }
            }
        });
        let correlated = |product: f64, one: f64, other: f64| {
            if one > 0.0 && other > 0.0 { product / (one * other).sqrt() } else { 0.0 }
        };
        let of_order =
            |(order, [square, product]): (&[usize; 3], &[f64; 2])| (*order, correlated(*product, *square, tt));
        let transposed = ORDERS.iter().zip(&orders).skip(1).map(of_order);
        let slope = if dd > 0.0 { dt / dd } else { 0.0 };
        // a plane wave has no growing mode along the other axes
        let is_along = |a: usize| growing[a] > ALONG * growing.iter().sum::<f64>();
        Motion {
            slope,
            correlation: correlated(dt, dd, tt),
            amplitude: (tt * self.volume() / weights).sqrt(),
            displacement: (displacements / 3.0).sqrt(),
            speed: (squares / displacements).sqrt() / rate,
            directions: std::array::from_fn(|a| {
                let along = |b| match is_along(a) {
                    true => correlated(products[a][b], growing[a], moving[b]),
                    false => f64::from(u8::from(a == b)),
                };
                std::array::from_fn(along)
            }),
            slopes: std::array::from_fn(|a| if is_along(a) { products[a][a] / growing[a] } else { slope }),
            shift: self
                .shift(|k, index| convergence(species, k, index, rate) * species.delta[index].conj() / linear(size(k))),
            transposed: is_cube.then(|| transposed.max_by(|x, y| x.1.total_cmp(&y.1))).flatten(),
        }
    }

    /// θ of the compared modes.
    pub(super) fn convergence(&self, species: &SpeciesModes, rate: f64) -> Vec<Complex<f64>> {
        let mut modes = vec![Complex::ZERO; species.delta.len()];
        self.for_each_mode(WITHIN, |_, k, index, _| modes[index] = convergence(species, k, index, rate));
        modes
    }

    pub(super) fn likeness(
        &self,
        one: &[Complex<f64>],
        other: &[Complex<f64>],
        linear: &dyn Fn(f64) -> f64,
    ) -> Likeness {
        let mut sums = [0.0; 3];
        self.for_each_mode(WITHIN, |_, k, index, weight| {
            let w = weight / linear(size(k));
            let (x, y) = (one[index], other[index]);
            let new = [x.norm_sqr(), y.norm_sqr(), (x * y.conj()).norm()];
            sums.iter_mut().zip(new).for_each(|(sum, new)| *sum += w * new);
        });
        let shift = self.shift(|k, index| one[index] * other[index].conj() / linear(size(k)));
        // of modes moved to the same place
        let mut product = 0.0;
        self.for_each_mode(WITHIN, |n, k, index, weight| {
            let phase: f64 = (0..3).map(|a| TAU * n[a] as f64 / self.cells[a] as f64 * shift[a]).sum();
            let moved = one[index] * Complex::from_polar(1.0, phase);
            product += weight / linear(size(k)) * (moved * other[index].conj()).re;
        });
        let good = sums[0] > 0.0 && sums[1] > 0.0;
        Likeness {
            correlation: if good { product / (sums[0] * sums[1]).sqrt() } else { 0.0 },
            ratio: if good { (sums[0] / sums[1]).sqrt() } else { 0.0 },
            shift,
        }
    }

    /// The shift d in cells that gives products of modes, x y*, the phases −k·d.
    fn shift(&self, product: impl Fn([f64; 3], usize) -> Complex<f64>) -> [f64; 3] {
        let mut normal = [[0.0; 3]; 3];
        let mut right = [0.0; 3];
        self.for_each_mode(WITHIN, |n, k, index, weight| {
            let z = product(k, index);
            let w = weight * z.norm();
            let x: [f64; 3] = std::array::from_fn(|a| TAU * n[a] as f64 / self.cells[a] as f64);
            for a in 0..3 {
                right[a] -= w * z.arg() * x[a];
                (0..3).for_each(|b| normal[a][b] += w * x[a] * x[b]);
            }
        });
        // other elements vanish by the symmetry of waves but for scatter
        std::array::from_fn(|a| if normal[a][a] > 0.0 { right[a] / normal[a][a] } else { 0.0 })
    }

    /// Spectrum in bins as wide as the smallest wave number.
    pub(super) fn spectrum(&self, delta: &[Complex<f64>], linear: &dyn Fn(f64) -> f64) -> Spectrum {
        let spacing = TAU / self.lengths[0];
        let mut bins = vec![[0.0; 4]; self.cells[0] / 2];
        self.for_each_mode((0.0, 1.0), |_, k, index, weight| {
            let bin = (size(k) / spacing - 0.5).floor() as usize;
            let Some(bin) = bins.get_mut(bin) else { return };
            let new = [1.0, size(k), delta[index].norm_sqr() * self.volume(), linear(size(k))];
            bin.iter_mut().zip(new).for_each(|(sum, new)| *sum += weight * new);
        });
        bins.retain(|[n, ..]| *n > 0.0);
        let of = |column: usize| bins.iter().map(|bin| bin[column] / bin[0]).collect();
        let modes = bins.iter().map(|bin| bin[0]).collect();
        Spectrum { k_h_mpc: of(1), power_mpc3_h3: of(2), linear_mpc3_h3: of(3), modes }
    }
}

/// Orders of axes.
const ORDERS: [[usize; 3]; 6] = [[0, 1, 2], [2, 1, 0], [1, 0, 2], [0, 2, 1], [1, 2, 0], [2, 0, 1]];

/// The mode of a wave vector.
fn mode(modes: &[Complex<f64>], n: [i64; 3], cells: [usize; 3], row: usize) -> Complex<f64> {
    let (n, conjugate) = if n[0] < 0 { (n.map(|n| -n), true) } else { (n, false) };
    let [y, z] = [1, 2].map(|a| n[a].rem_euclid(cells[a] as i64) as usize);
    let mode = modes[(y * cells[2] + z) * row + n[0] as usize];
    if conjugate { mode.conj() } else { mode }
}
