//! cuFFT, opened at run time: a program without it transforms on the host.

use super::shape::Shape;
use crate::cuda::CudaDevice;
use crate::cuda::array::Array;
use crate::error::KernelError;
use crate::layout::GROUP;
use cust::sys::CUstream;
use std::ffi::{c_int, c_void};
use std::path::PathBuf;
use std::sync::OnceLock;

/// Names of the library, in the loader's path or a toolkit's folder.
const NAMES: [&str; 2] = ["libcufft.so.12", "libcufft.so.11"];

/// From complex to complex numbers, from real to complex numbers and back, double precision (`cufftType`).
const Z2Z: c_int = 0x69;
const D2Z: c_int = 0x6a;
const Z2D: c_int = 0x6c;
/// `CUFFT_ALLOC_FAILED`.
const OUT_OF_MEMORY: c_int = 2;

type Execute = unsafe extern "C" fn(c_int, *mut c_void, *mut c_void) -> c_int;
/// Handle; rank, lengths; of input and output each the lengths as stored, step and distance; type, batch, work size.
type MakePlanMany = unsafe extern "C" fn(
    c_int,
    c_int,
    *mut c_int,
    *mut c_int,
    c_int,
    c_int,
    *mut c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    *mut usize,
) -> c_int;

/// The functions that are called.
struct Library {
    /// Keeps the functions below where they are.
    _library: libloading::Library,
    create: unsafe extern "C" fn(*mut c_int) -> c_int,
    set_auto_allocation: unsafe extern "C" fn(c_int, c_int) -> c_int,
    make_plan_many: MakePlanMany,
    set_work_area: unsafe extern "C" fn(c_int, *mut c_void) -> c_int,
    set_stream: unsafe extern "C" fn(c_int, CUstream) -> c_int,
    real_to_complex: Execute,
    complex_to_real: Execute,
    complex: unsafe extern "C" fn(c_int, *mut c_void, *mut c_void, c_int) -> c_int,
    destroy: unsafe extern "C" fn(c_int) -> c_int,
    version: c_int,
}

impl Library {
    fn open() -> Option<Self> {
        let toolkit = std::env::var_os("CUDA_HOME").map(PathBuf::from);
        let folders = toolkit.into_iter().chain([PathBuf::from("/usr/local/cuda")]).map(|folder| folder.join("lib64"));
        let everywhere = std::iter::once(PathBuf::new()).chain(folders);
        everywhere
            .flat_map(|folder| NAMES.map(|name| folder.join(name)))
            // SAFETY: the library's initialisation has no demands.
            .find_map(|path| Self::load(unsafe { libloading::Library::new(path) }.ok()?))
    }

    /// None if a function is missing.
    fn load(library: libloading::Library) -> Option<Self> {
        // SAFETY: the types are those of cufft.h, the same in both versions.
        unsafe {
            let get_version: unsafe extern "C" fn(*mut c_int) -> c_int = *library.get(b"cufftGetVersion").ok()?;
            let mut version = 0;
            if get_version(&mut version) != 0 {
                return None;
            }
            Some(Self {
                create: *library.get(b"cufftCreate").ok()?,
                set_auto_allocation: *library.get(b"cufftSetAutoAllocation").ok()?,
                make_plan_many: *library.get(b"cufftMakePlanMany").ok()?,
                set_work_area: *library.get(b"cufftSetWorkArea").ok()?,
                set_stream: *library.get(b"cufftSetStream").ok()?,
                real_to_complex: *library.get(b"cufftExecD2Z").ok()?,
                complex_to_real: *library.get(b"cufftExecZ2D").ok()?,
                complex: *library.get(b"cufftExecZ2Z").ok()?,
                destroy: *library.get(b"cufftDestroy").ok()?,
                version,
                _library: library,
            })
        }
    }
}

/// The library of this process: it is looked for once.
fn library() -> Option<&'static Library> {
    static LIBRARY: OnceLock<Option<Library>> = OnceLock::new();
    LIBRARY.get_or_init(Library::open).as_ref()
}

/// Its version, if it is there.
pub(crate) fn version() -> Option<String> {
    library().map(|library| {
        let version = library.version;
        format!("{}.{}.{}", version / 1000, version / 100 % 10, version % 100)
    })
}

/// Which way a line is transformed (`CUFFT_FORWARD`, `CUFFT_INVERSE`); neither divides by its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(super) enum Direction {
    Forward = -1,
    Backward = 1,
}

/// Transforms in place, in the device's stream, of a layer and of a band at a time. A plan of another batch may round
/// otherwise, so these are the same whatever part of the mesh a rank has, and how much of it is in hand.
pub(super) struct Plans {
    layer: [Plan; 2],
    band: Plan,
    /// Where all of them work.
    area: Array<u8>,
}

impl Plans {
    /// None without the library.
    ///
    /// # Errors
    /// [`KernelError::OutOfMemory`].
    pub(super) fn new(device: &CudaDevice, shape: &Shape) -> Result<Option<Self>, KernelError> {
        let Some(library) = library() else { return Ok(None) };
        let [nx, ny, nz] = shape.lengths().map(int);
        let (modes, slab) = (int(shape.modes()), int(shape.slab()));
        let values = Stored { lengths: [ny, 2 * modes], step: 1, distance: ny * 2 * modes };
        let planes = Stored { lengths: [ny, modes], step: 1, distance: ny * modes };
        let lines = Stored { lengths: [nz, 1], step: slab, distance: 1 };
        let group = int(GROUP);
        let of_layer = |kind, from, to| Batch { kind, lengths: vec![ny, nx], from, to, count: group };
        let of_band = Batch { kind: Z2Z, lengths: vec![nz], from: lines, to: lines, count: slab };
        let (forward, first) = Plan::new(library, device, of_layer(D2Z, values, planes), layer_values(shape))?;
        let (backward, second) = Plan::new(library, device, of_layer(Z2D, planes, values), layer_values(shape))?;
        let (band, third) = Plan::new(library, device, of_band, band_values(shape))?;
        let area = Array::room(device, first.max(second).max(third))?;
        let plans = Self { layer: [forward, backward], band, area };
        plans.layer.iter().chain([&plans.band]).for_each(|plan| plan.work_in(&plans.area));
        Ok(Some(plans))
    }

    /// Bytes that the plans work in.
    pub(super) fn bytes(&self) -> usize {
        self.area.len()
    }

    /// About as much, before there are plans: a copy of what is transformed.
    pub(super) fn bytes_for(shape: &Shape) -> usize {
        layer_values(shape).max(band_values(shape)) * size_of::<f64>()
    }

    /// Layer `n` of a mesh along x and y, between values in rows padded to those of modes and modes.
    pub(super) fn layer(&self, direction: Direction, mesh: &Array<f64>, n: usize) {
        let plan = &self.layer[usize::from(direction == Direction::Backward)];
        let execute = match direction {
            Direction::Forward => plan.library.real_to_complex,
            Direction::Backward => plan.library.complex_to_real,
        };
        // SAFETY: the place is inside the mesh, as `run` checks; it is transformed in the device's stream.
        plan.run(mesh, n, |handle, place| unsafe { execute(handle, place, place) });
    }

    /// Lines along z of band `n`, `[z, 16, modes]`.
    pub(super) fn band(&self, direction: Direction, lines: &Array<f64>, n: usize) {
        let plan = &self.band;
        // SAFETY: as above.
        plan.run(lines, n, |handle, place| unsafe { (plan.library.complex)(handle, place, place, direction as c_int) });
    }
}

/// Values of a layer, `[16, y, 2 · modes]`.
pub(super) fn layer_values(shape: &Shape) -> usize {
    2 * GROUP * shape.lengths()[1] * shape.modes()
}

/// Values of a band's lines along z, `[z, 16, modes, 2]`.
pub(super) fn band_values(shape: &Shape) -> usize {
    2 * shape.lengths()[2] * shape.slab()
}

fn int(n: usize) -> c_int {
    c_int::try_from(n).expect("lengths of a mesh fit 32 bits")
}

/// How the arrays of a batch lie: lengths as stored, from one value of a line to the next, from one array to the next.
#[derive(Clone, Copy)]
struct Stored {
    lengths: [c_int; 2],
    step: c_int,
    distance: c_int,
}

/// `count` transforms of these lengths, the slowest axis first.
struct Batch {
    kind: c_int,
    lengths: Vec<c_int>,
    from: Stored,
    to: Stored,
    count: c_int,
}

/// A plan, destroyed with its owner.
struct Plan {
    library: &'static Library,
    device: CudaDevice,
    handle: c_int,
    /// What it transforms, modes counted as two.
    values: usize,
}

impl Plan {
    /// The plan, and how many bytes it needs to work in.
    fn new(
        library: &'static Library,
        device: &CudaDevice,
        mut batch: Batch,
        values: usize,
    ) -> Result<(Self, usize), KernelError> {
        device.activate();
        let mut handle = 0;
        // SAFETY: the pointer is valid for the call.
        check("make a plan", unsafe { (library.create)(&mut handle) });
        let plan = Self { library, device: device.clone(), handle, values };
        let mut bytes = 0;
        // SAFETY: the plan was just made; the lengths are as many as the call reads, the pointers valid for it; the stream
        // lives as long as the device.
        let result = unsafe {
            check("leave its work space to us", (library.set_auto_allocation)(handle, 0));
            check("take the stream", (library.set_stream)(handle, device.stream()));
            (library.make_plan_many)(
                handle,
                batch.lengths.len() as c_int,
                batch.lengths.as_mut_ptr(),
                batch.from.lengths.as_mut_ptr(),
                batch.from.step,
                batch.from.distance,
                batch.to.lengths.as_mut_ptr(),
                batch.to.step,
                batch.to.distance,
                batch.kind,
                batch.count,
                &mut bytes,
            )
        };
        if result == OUT_OF_MEMORY {
            let bytes = values * size_of::<f64>();
            return Err(KernelError::OutOfMemory { device: device.name().into(), bytes });
        }
        check(&format!("plan {} transforms of {:?} values", batch.count, batch.lengths), result);
        Ok((plan, bytes))
    }

    fn work_in(&self, area: &Array<u8>) {
        if area.len() > 0 {
            self.device.activate();
            let start = area.pointer().address() as *mut c_void;
            // SAFETY: the area is as large as the largest plan needs, and is kept with the plans.
            check("take its work space", unsafe { (self.library.set_work_area)(self.handle, start) });
        }
    }

    /// Executes it where the `n`th of its arrays in a row starts.
    fn run(&self, array: &Array<f64>, n: usize, execute: impl FnOnce(c_int, *mut c_void) -> c_int) {
        assert!((n + 1) * self.values <= array.len(), "part {n} of {} in {} values", self.values, array.len());
        self.device.activate();
        let start = array.pointer().address() + (n * self.values * size_of::<f64>()) as u64;
        check("transform", execute(self.handle, start as *mut c_void));
    }
}

impl Drop for Plan {
    fn drop(&mut self) {
        self.device.activate();
        // SAFETY: nobody else holds the plan; the device waits until it is no longer in use.
        unsafe { (self.library.destroy)(self.handle) };
    }
}

/// # Panics
/// If a call failed where only a bug can make it fail.
fn check(what: &str, result: c_int) {
    assert!(result == 0, "cuFFT failed to {what}: error {result}");
}
