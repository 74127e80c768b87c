//! Criteria that look at a cell's neighbours: gradient and Löhner's estimator.

use super::Quantity;
use crate::layout::{DENSITY, ENERGY, ENTROPY, GROUP, GROUP_CELLS, HYDRO_BLOCK, HYDRO_GHOSTS, MOMENTUM, cell};
use crate::level::ghosts::{BLOCK_VALUES, block_cell};
use crate::point::dual_energy::pressure;
use crate::point::eos::Eos;
use crate::real::Real;

/// Cells of a row.
pub(super) const LANES: usize = GROUP;
/// A value of each cell of a row.
pub(super) type Lanes<T> = [T; LANES];

const BLOCK_CELLS: usize = BLOCK_VALUES / crate::layout::FIELDS;
/// From a cell of a block to its neighbours along x, y, z.
const STRIDES: [usize; 3] = [1, HYDRO_BLOCK, HYDRO_BLOCK * HYDRO_BLOCK];

/// Offset of the first of the group's own cells in row (j, k) of a block.
#[inline(always)]
fn row_start(j: usize, k: usize) -> usize {
    block_cell(0, HYDRO_GHOSTS, j + HYDRO_GHOSTS, k + HYDRO_GHOSTS)
}

/// Density of dark matter in row (j, k): of all matter less the gas, if there is gas.
#[inline(always)]
pub(super) fn dark_matter<T: Real>(density: &[T], group: &[T], j: usize, k: usize) -> Lanes<T> {
    let row = cell(0, j, k);
    let mut rest: Lanes<T> = density[row..][..LANES].try_into().expect("a row");
    if !group.is_empty() {
        let gas = &group[DENSITY * GROUP_CELLS + row..][..LANES];
        for i in 0..LANES {
            rest[i] -= gas[i];
        }
    }
    rest
}

#[inline(always)]
fn lanes<T>(values: &[T], at: usize) -> &Lanes<T> {
    values[at..at + LANES].try_into().expect("the slice has the array's length")
}

/// A group with its ghost cells, `[6, 22, 22, 22]`, and room for what is derived from them.
pub(crate) struct BlockFields<T> {
    /// Conserved, as [`crate::level::ghosts::gather`] fills it.
    pub(super) block: Box<[T; BLOCK_VALUES]>,
    value: Vec<T>,
    scale: Vec<T>,
}

impl<T: Real> BlockFields<T> {
    pub(super) fn new() -> Self {
        let block = vec![T::zero(); BLOCK_VALUES].into_boxed_slice();
        Self {
            block: block.try_into().expect("the length is the array's"),
            value: vec![T::zero(); BLOCK_CELLS],
            scale: vec![T::zero(); BLOCK_CELLS],
        }
    }

    #[inline(always)]
    fn field(&self, field: usize) -> &[T; BLOCK_CELLS] {
        self.block[field * BLOCK_CELLS..][..BLOCK_CELLS].try_into().expect("a field of the block")
    }

    /// Calls `look` with each component of a quantity and the scale that its changes are compared to: the quantity
    /// itself for density and pressure, |v| + c_s for velocities, which may be zero and look different to a moving
    /// observer. Both `[22, 22, 22]`.
    #[inline(always)]
    pub(super) fn for_each_component(&mut self, of: Quantity, eos: &Eos<T>, mut look: impl FnMut(&[T], &[T])) {
        match of {
            Quantity::Density => look(self.field(DENSITY), self.field(DENSITY)),
            Quantity::Pressure => {
                self.derive(eos, |_, pressure| pressure);
                look(&self.scale, &self.scale);
            }
            Quantity::Velocity => {
                let gamma = eos.gamma;
                self.derive(eos, |u, pressure| {
                    let speed = (u[1] * u[1] + u[2] * u[2] + u[3] * u[3]).sqrt() / u[0];
                    speed + (gamma * pressure / u[0]).sqrt()
                });
                for axis in 0..3 {
                    for e in 0..BLOCK_CELLS {
                        self.value[e] = self.block[(MOMENTUM + axis) * BLOCK_CELLS + e] / self.block[e];
                    }
                    look(&self.value, &self.scale);
                }
            }
        }
    }

    /// Fills `scale` with a function of each cell's conserved values and its pressure.
    #[inline(always)]
    fn derive(&mut self, eos: &Eos<T>, of: impl Fn(&[T; 6], T) -> T) {
        let mut scale = std::mem::take(&mut self.scale);
        let [density, x, y, z] = [DENSITY, MOMENTUM, MOMENTUM + 1, MOMENTUM + 2].map(|f| self.field(f));
        let (energy, entropy) = (self.field(ENERGY), self.field(ENTROPY));
        for (e, scale) in scale.iter_mut().enumerate() {
            let u = [density[e], x[e], y[e], z[e], energy[e], entropy[e]];
            *scale = of(&u, pressure(&u, eos));
        }
        self.scale = scale;
    }

    /// ∇·v in row (j, k) by central differences, code velocity over code length.
    #[inline(always)]
    pub(super) fn divergence(&self, j: usize, k: usize, cell_width: f64) -> Lanes<f64> {
        let at = row_start(j, k);
        let density = self.field(DENSITY);
        let mut sum = [0.0; LANES];
        for axis in 0..3 {
            let momentum = self.field(MOMENTUM + axis);
            let (below, above) = (at - STRIDES[axis], at + STRIDES[axis]);
            let (lower, lower_density) = (lanes(momentum, below), lanes(density, below));
            let (upper, upper_density) = (lanes(momentum, above), lanes(density, above));
            for i in 0..LANES {
                sum[i] += upper[i].as_f64() / upper_density[i].as_f64() - lower[i].as_f64() / lower_density[i].as_f64();
            }
        }
        sum.map(|s| s / (2.0 * cell_width))
    }
}

/// Where in row (j, k) the change of `value` across a cell, |u₊ − u₋|/2 along the axis on which it is largest, is at
/// least `threshold` times `scale` (paper, eqs. of sections 4.2 and 4.3).
#[inline(always)]
pub(super) fn steep<T: Real>(value: &[T], scale: &[T], j: usize, k: usize, threshold: T) -> Lanes<bool> {
    let at = row_start(j, k);
    let mut change = [T::zero(); LANES];
    for stride in STRIDES {
        let (lower, upper) = (lanes(value, at - stride), lanes(value, at + stride));
        for i in 0..LANES {
            let here = (upper[i] - lower[i]).abs();
            change[i] = if here > change[i] { here } else { change[i] };
        }
    }
    let scale = lanes(scale, at);
    let mut flags = [false; LANES];
    for i in 0..LANES {
        flags[i] = T::from_f64(0.5) * change[i] >= threshold * scale[i];
    }
    flags
}

/// Where in row (j, k) Löhner's estimator E exceeds `threshold`: second differences over first differences, with a
/// filter against ripples (Löhner 1987; in three dimensions as in FLASH, Fryxell et al. 2000):
///
/// E² = Σ_pq (D_q D_p u)² / Σ_pq (|D_p u|₊q + |D_p u|₋q + `filter` S_q S_p w)², with D_p u = u₊p − u₋p, S_p w = w₊p +
/// w₋p and the scale w ([`BlockFields::for_each_component`]; |u| where that is positive).
#[inline(always)]
pub(super) fn rough<T: Real>(value: &[T], scale: &[T], j: usize, k: usize, threshold: T, filter: T) -> Lanes<bool> {
    let at = row_start(j, k);
    // in units of the cell's own scale, so that squares stay in range
    let mut unit = [T::zero(); LANES];
    for (unit, &scale) in unit.iter_mut().zip(lanes(scale, at)) {
        *unit = T::one() / scale;
    }
    let mut second = [T::zero(); LANES];
    let mut first = [T::zero(); LANES];
    for p in STRIDES {
        for q in STRIDES {
            let corners = [at + q + p, at + q - p, at - q + p, at - q - p];
            let [pp, pm, mp, mm] = corners.map(|corner| lanes(value, corner));
            let [wpp, wpm, wmp, wmm] = corners.map(|corner| lanes(scale, corner));
            for i in 0..LANES {
                let (above, below) = (pp[i] - pm[i], mp[i] - mm[i]);
                let around = (wpp[i] + wpm[i]) + (wmp[i] + wmm[i]);
                let curvature = (above - below) * unit[i];
                let slope = (above.abs() + below.abs() + filter * around) * unit[i];
                second[i] += curvature * curvature;
                first[i] += slope * slope;
            }
        }
    }
    let limit = threshold * threshold;
    let mut flags = [false; LANES];
    for i in 0..LANES {
        flags[i] = second[i] > limit * first[i];
    }
    flags
}
