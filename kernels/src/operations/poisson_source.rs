//! The right-hand side of a Poisson equation, computed where it is read.

use crate::device::buffer::Buffer;
#[cfg(feature = "cuda")]
use crate::device::cuda::array::Pointer;
use crate::layout::{DENSITY, GROUP_CELLS, GROUP_VALUES};
use crate::real::Real;

/// 4πG (ρ − ⟨ρ⟩).
#[derive(Clone, Copy, Debug)]
pub struct DensitySource<'a, T> {
    /// A pool whose slots begin with the density in code units, `[16, 16, 16]`.
    pool: &'a Buffer<T>,
    /// Values of a slot.
    stride: usize,
    /// 4πG in code units; comoving: 3/2 Ω_m a.
    pub four_pi_g: f64,
    /// ⟨ρ⟩ over the box; zero where the box is not periodic.
    pub mean: f64,
}

/// The source of ∇²φ = source. Arrays share their slots with the potential.
#[derive(Clone, Copy, Debug)]
pub enum PoissonSource<'a, T> {
    /// The matter attracts itself.
    Density(DensitySource<'a, T>),
    /// Any field, `[slots, 16, 16, 16]`: the pseudo mass sheets.
    Field(&'a Buffer<T>),
    /// The sum of both: what the corrected potential obeys.
    DensityAndField(DensitySource<'a, T>, &'a Buffer<T>),
}

impl<T: Real> PoissonSource<'_, T> {
    /// Slots that every array of this source has.
    pub(crate) fn slots(&self) -> usize {
        match self {
            Self::Density(d) => d.slots(),
            Self::Field(f) => f.len() / GROUP_CELLS,
            Self::DensityAndField(d, f) => d.slots().min(f.len() / GROUP_CELLS),
        }
    }

    /// Writes `factor`·source for the cells of one slot that start at `first`, as many as `out` holds.
    #[inline(always)]
    pub(crate) fn fill<U: Real>(&self, slot: u32, first: usize, factor: f64, out: &mut [U]) {
        let field = |f: &Buffer<T>, out: &mut [U], add: bool| {
            let values = &f.host()[slot as usize * GROUP_CELLS + first..][..out.len()];
            let factor = U::from_f64(factor);
            for (out, &value) in out.iter_mut().zip(values) {
                let term = factor * U::from_f64(value.as_f64());
                *out = if add { *out + term } else { term };
            }
        };
        match self {
            Self::Density(d) => d.fill(slot, first, factor, out),
            Self::Field(f) => field(f, out, false),
            Self::DensityAndField(d, f) => {
                d.fill(slot, first, factor, out);
                field(f, out, true);
            }
        }
    }
}

impl<'a, T: Real> DensitySource<'a, T> {
    /// Of the gas.
    ///
    /// * `fluid`: conserved, `[slots, 6, 16, 16, 16]`
    pub fn of_fluid(fluid: &'a Buffer<T>, four_pi_g: f64, mean: f64) -> Self {
        const { assert!(DENSITY == 0, "the density comes first") };
        Self { pool: fluid, stride: GROUP_VALUES, four_pi_g, mean }
    }

    /// Of all matter.
    ///
    /// * `density`: `[slots, 16, 16, 16]`
    pub fn of_matter(density: &'a Buffer<T>, four_pi_g: f64, mean: f64) -> Self {
        Self { pool: density, stride: GROUP_CELLS, four_pi_g, mean }
    }

    /// Slots of the pool.
    pub(crate) fn slots(&self) -> usize {
        self.pool.len() / self.stride
    }

    /// Writes `factor`·source for the cells of one slot that start at `first`, as many as `out` holds.
    #[inline(always)]
    pub(crate) fn fill<U: Real>(&self, slot: u32, first: usize, factor: f64, out: &mut [U]) {
        let density = &self.pool.host()[slot as usize * self.stride + first..][..out.len()];
        let (factor, mean) = (U::from_f64(factor * self.four_pi_g), U::from_f64(self.mean));
        for (out, &density) in out.iter_mut().zip(density) {
            *out = factor * (U::from_f64(density.as_f64()) - mean);
        }
    }
}

/// A source as kernels get it: the `PoissonSource` of `poisson_source.cuh`.
#[cfg(feature = "cuda")]
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct DeviceSource<T> {
    density: Pointer<T>,
    field: Pointer<T>,
    stride: u64,
    four_pi_g: f64,
    mean: f64,
}

#[cfg(feature = "cuda")]
impl<T: Real> DeviceSource<T> {
    pub(crate) fn new(source: &PoissonSource<T>) -> Self {
        let (density, field) = match source {
            PoissonSource::Density(density) => (Some(density), None),
            PoissonSource::Field(field) => (None, Some(field)),
            PoissonSource::DensityAndField(density, field) => (Some(density), Some(field)),
        };
        Self {
            density: density.map_or(Pointer::NULL, |density| density.pool.pointer()),
            field: field.map_or(Pointer::NULL, |field| field.pointer()),
            stride: density.map_or(0, |density| density.stride as u64),
            four_pi_g: density.map_or(0.0, |density| density.four_pi_g),
            mean: density.map_or(0.0, |density| density.mean),
        }
    }
}
