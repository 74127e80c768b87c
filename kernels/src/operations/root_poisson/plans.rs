//! Plans of as many layers or bands at once as have the bits of one.
//!
//! cuFFT may round otherwise for another batch or stride, and how much of a mesh a rank has must not decide on bits. They
//! are those of plans of a fixed shape: a layer of 16 planes along x and y, and the lines along z of a band that lies by
//! itself, `[z, 16, modes]`. A plan of several is used if it gives the same bits on this device, which is tried when it is
//! made: every value of a full batch of noise, forward and backward. That is evidence enough for other values: which
//! numbers a transform adds and multiplies, and in which order, does not depend on them, and another order anywhere would
//! round some of the thousands of numbers that pass there otherwise.

use super::shape::Shape;
use crate::device::cuda::array::Array;
use crate::device::cuda::cufft::{Direction, Plan};
use crate::device::cuda::{CudaDevice, launch};
use crate::device::error::KernelError;
use crate::layout::GROUP;
use std::ops::Range;

/// Threads of a block that has a slab.
const THREADS: u32 = 256;

/// Where the slabs of some bands lie: the `Slabs` of `root_poisson.cu`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Slabs {
    modes: u32,
    bands: u32,
    band_step: u32,
    plane_step: u32,
}

impl Slabs {
    /// In planes of all bands: those of layers, `[z, band, 16, modes]`.
    pub(super) fn of_planes(shape: &Shape) -> Self {
        Self::of_bands(shape, shape.all_bands(), Lines::InMesh)
    }

    fn of_bands(shape: &Shape, bands: usize, lines: Lines) -> Self {
        let [band_step, plane_step] = match lines {
            Lines::InMesh => [1, shape.all_bands()],
            Lines::Together => [1, bands],
            Lines::Apart => [shape.lengths()[2], 1],
        };
        let [modes, bands, band_step, plane_step] = [shape.slab(), bands, band_step, plane_step].map(|n| n as u32);
        Self { modes, bands, band_step, plane_step }
    }
}

/// How bands lie while their lines along z are transformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lines {
    /// Where their modes are anyway: the mesh of a rank that has all of it, `[z, all bands, 16, modes]`.
    InMesh,
    /// `[z, bands, 16, modes]`.
    Together,
    /// `[band, z, 16, modes]`.
    Apart,
}

/// The plan of one layer or band, and those of parts of several.
struct Batches {
    one: Plan,
    /// Values from one to the next where `one` is used.
    values: usize,
    /// The first is of a full part, the second of what is left in the end; or none.
    several: Vec<Plan>,
    /// Layers or bands of a full part.
    part: usize,
}

impl Batches {
    fn run(&self, direction: Direction, array: &Array<f64>, first: usize, count: usize) {
        match self.several.iter().find(|plan| plan.count() == count) {
            Some(plan) => plan.run(direction, array, first),
            None => (0..count).for_each(|n| self.one.run(direction, array, first + n * self.values)),
        }
    }

    fn plans(&self) -> impl Iterator<Item = &Plan> {
        std::iter::once(&self.one).chain(&self.several)
    }
}

/// All transforms of a rank.
pub(super) struct Plans {
    forward: Batches,
    backward: Batches,
    bands: Batches,
    lines: Lines,
    /// Where all of them work.
    area: Array<u8>,
}

impl std::fmt::Debug for Plans {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let part = |batches: &Batches| match batches.several.len() {
            0 => "one by one".to_owned(),
            _ => format!("{} at once", batches.part),
        };
        let [forward, backward, bands] = [&self.forward, &self.backward, &self.bands].map(part);
        write!(f, "layers {forward} and {backward}, bands {bands} {:?}", self.lines)
    }
}

impl Plans {
    /// # Errors
    /// [`KernelError::OutOfMemory`].
    ///
    /// # Panics
    /// Without the library.
    pub(super) fn new(device: &CudaDevice, shape: &Shape) -> Result<Self, KernelError> {
        let trial = Trial::new(device, shape)?;
        let [nx, ny, nz] = shape.lengths();
        let (along_xy, along_z) = ([nx, ny], (nz, shape.slab()));
        let layers = |direction| {
            let (n, part) = (shape.layers(shape.rank).len(), shape.layers_at_once());
            let one = Plan::of_layers(device, along_xy, GROUP, direction, 1)?;
            let plan = |count| Plan::of_layers(device, along_xy, GROUP, direction, count);
            let several = several(n, part, 2, plan, |plan| trial.layers_agree(direction, &one, plan))?;
            Ok(Batches { one, values: shape.layer_values(), part: full(&several, part), several })
        };
        let (forward, backward) = (layers(Direction::Forward)?, layers(Direction::Backward)?);

        let (n, part) = (shape.bands(shape.rank).len(), shape.bands_at_once());
        let one = Plan::of_bands(device, along_z, 1, 1)?;
        let (mut lines, mut plans) = (Lines::InMesh, Vec::new());
        if trial.has_mesh {
            let plan = |count| Plan::of_bands(device, along_z, count, n);
            plans = several(n, part, 1, plan, |plan| trial.bands_agree(&one, plan, lines))?;
        }
        if plans.is_empty() {
            lines = Lines::Together;
            let plan = |count| Plan::of_bands(device, along_z, count, count);
            plans = several(n, part, 2, plan, |plan| trial.bands_agree(&one, plan, lines))?;
        }
        if plans.is_empty() {
            lines = Lines::Apart;
        }
        let bands = Batches { one, values: shape.band_values(), part: full(&plans, part), several: plans };

        let all = || [&forward, &backward, &bands].into_iter().flat_map(Batches::plans);
        let area = Array::room(device, all().map(Plan::bytes).max().unwrap_or(0))?;
        all().for_each(|plan| plan.work_in(&area));
        Ok(Self { forward, backward, bands, lines, area })
    }

    /// Bytes that the plans work in.
    pub(super) fn bytes(&self) -> usize {
        self.area.len()
    }

    /// About as much, before there are plans: a copy of what is transformed at once.
    pub(super) fn bytes_for(shape: &Shape) -> usize {
        shape.values_at_once() * size_of::<f64>()
    }

    /// Whether lines along z are transformed where a rank that is alone has its modes, without a copy.
    pub(super) fn lines_stay(&self) -> bool {
        self.lines == Lines::InMesh
    }

    /// Where the slabs of so many bands lie while lines along z are transformed.
    pub(super) fn slabs(&self, shape: &Shape, bands: usize) -> Slabs {
        Slabs::of_bands(shape, bands, self.lines)
    }

    /// `n` layers in the parts in which they are transformed.
    pub(super) fn layers_in_parts(&self, direction: Direction, n: usize) -> impl Iterator<Item = Range<usize>> {
        in_parts(n, self.layers_of(direction).part)
    }

    /// `n` bands likewise.
    pub(super) fn bands_in_parts(&self, n: usize) -> impl Iterator<Item = Range<usize>> {
        in_parts(n, self.bands.part)
    }

    /// A part of `count` layers, along x and y: they begin with value `first` of a mesh.
    pub(super) fn layers(&self, direction: Direction, mesh: &Array<f64>, first: usize, count: usize) {
        self.layers_of(direction).run(direction, mesh, first, count);
    }

    /// A part of `count` bands, along z, in [`Plans::slabs`] that begin with value `first`.
    pub(super) fn bands(&self, direction: Direction, lines: &Array<f64>, first: usize, count: usize) {
        self.bands.run(direction, lines, first, count);
    }

    fn layers_of(&self, direction: Direction) -> &Batches {
        match direction {
            Direction::Forward => &self.forward,
            Direction::Backward => &self.backward,
        }
    }
}

/// `n` things, `most` at a time.
fn in_parts(n: usize, most: usize) -> impl Iterator<Item = Range<usize>> {
    (0..n).step_by(most.max(1)).map(move |first| first..n.min(first + most))
}

/// What full parts have, by their plans if there are any.
fn full(several: &[Plan], part: usize) -> usize {
    several.first().map_or(part, Plan::count)
}

/// Plans for `n` things in parts of `part`, or of a half, a quarter … of it down to `least`, the first that `agree` in
/// full parts and in what is left in the end; none if there are no such.
fn several(
    n: usize,
    part: usize,
    least: usize,
    plan: impl Fn(usize) -> Result<Plan, KernelError>,
    agree: impl Fn(&Plan) -> Result<bool, KernelError>,
) -> Result<Vec<Plan>, KernelError> {
    for part in std::iter::successors(Some(part), |part| Some(part / 2)).take_while(|&part| part >= least) {
        let mut plans = Vec::new();
        for count in [part, n % part].into_iter().filter(|&count| count >= least) {
            let plan = plan(count)?;
            if agree(&plan)? {
                plans.push(plan);
            } else {
                plans.clear();
                break;
            }
        }
        if !plans.is_empty() {
            return Ok(plans);
        }
    }
    Ok(Vec::new())
}

/// Where plans are tried.
struct Trial<'a> {
    device: &'a CudaDevice,
    shape: &'a Shape,
    /// Room for a part, or for a mesh that is transformed where it lies. It is gone before there are blocks.
    room: Array<f64>,
    has_mesh: bool,
}

impl<'a> Trial<'a> {
    fn new(device: &'a CudaDevice, shape: &'a Shape) -> Result<Self, KernelError> {
        // cuFFT counts in 32 bits
        let has_mesh = shape.is_alone() && !shape.isolated && i32::try_from(shape.sent_values()).is_ok();
        let mesh = if has_mesh { shape.sent_values() } else { 0 };
        Ok(Self { device, shape, room: Array::room(device, mesh.max(shape.values_at_once()))?, has_mesh })
    }

    /// Whether a plan of layers has the bits of that of one.
    fn layers_agree(&self, direction: Direction, one: &Plan, several: &Plan) -> Result<bool, KernelError> {
        let (slabs, planes) = (Slabs::of_planes(self.shape), several.count() * GROUP);
        // values are followed by padding
        let used = self.shape.modes() - usize::from(direction == Direction::Backward);
        let _area = self.area_of(one, several)?;
        let expected = self.hashes(slabs, planes, used, || {
            (0..several.count()).for_each(|n| one.run(direction, &self.room, n * self.shape.layer_values()));
        })?;
        Ok(self.hashes(slabs, planes, used, || several.run(direction, &self.room, 0))? == expected)
    }

    /// Whether a plan of bands that lie like this has, in both directions, the bits of that of one.
    fn bands_agree(&self, one: &Plan, several: &Plan, lines: Lines) -> Result<bool, KernelError> {
        let (shape, count) = (self.shape, several.count());
        let [apart, slabs] = [Lines::Apart, lines].map(|lines| Slabs::of_bands(shape, count, lines));
        let (planes, used) = (shape.lengths()[2], shape.modes());
        let _area = self.area_of(one, several)?;
        for direction in [Direction::Forward, Direction::Backward] {
            let expected = self.hashes(apart, planes, used, || {
                (0..count).for_each(|n| one.run(direction, &self.room, n * shape.band_values()));
            })?;
            if self.hashes(slabs, planes, used, || several.run(direction, &self.room, 0))? != expected {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Gives two plans an area to work in.
    fn area_of(&self, one: &Plan, several: &Plan) -> Result<Array<u8>, KernelError> {
        let area = Array::room(self.device, one.bytes().max(several.bytes()))?;
        [one, several].into_iter().for_each(|plan| plan.work_in(&area));
        Ok(area)
    }

    /// Hashes of the slabs in so many planes, of the first `used` of each row of modes, after noise has been transformed.
    fn hashes(
        &self,
        slabs: Slabs,
        planes: usize,
        used: usize,
        transform: impl FnOnce(),
    ) -> Result<Vec<u64>, KernelError> {
        let (device, values) = (self.device, self.room.pointer());
        let count = planes * slabs.bands as usize;
        let hashes = Array::<u64>::room(device, count)?;
        // SAFETY: the parameters are the kernels'; there is room for the slabs, and for a hash of each.
        unsafe {
            launch!(device, f64, "root_noise", count, THREADS, 0; values, slabs);
            transform();
            launch!(device, f64, "root_hash", count, THREADS, 0; values, slabs, used as u32, hashes.pointer());
        }
        Ok(hashes.to_host())
    }
}
