//! cuFFT, opened at run time, and its plans: a program without it transforms on the host.

use crate::device::cuda::CudaDevice;
use crate::device::cuda::array::Array;
use crate::device::error::KernelError;
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

/// Whether it is there.
pub(crate) fn is_there() -> bool {
    library().is_some()
}

/// Which way a line is transformed (`CUFFT_FORWARD`, `CUFFT_INVERSE`); neither divides by its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum Direction {
    Forward = -1,
    Backward = 1,
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

/// The library that transforms on a GPU, and its version: part of the class within which bits are the same.
pub(crate) fn class() -> String {
    match version() {
        // the plans decide on bits too
        Some(version) => format!("cufft {version} by layers"),
        None => format!("no cufft: rustfft 6.4 {} on the host", crate::device::isa::name()),
    }
}

/// A plan of transforms in place, in the device's stream; destroyed with its owner.
pub(crate) struct Plan {
    library: &'static Library,
    device: CudaDevice,
    handle: c_int,
    kind: c_int,
    /// Layers or bands.
    count: usize,
    /// From the first to the last value that it transforms, modes counted as two.
    values: usize,
    /// What it needs to work in.
    bytes: usize,
}

impl Plan {
    /// Along x and y: `count` layers of so many planes, one behind the other, between values in rows padded to those of modes
    /// and modes.
    ///
    /// * `lengths`: of the transforms along x and y
    ///
    /// # Errors
    /// [`KernelError::OutOfMemory`].
    ///
    /// # Panics
    /// Without the library.
    pub(crate) fn of_layers(
        device: &CudaDevice,
        [nx, ny]: [usize; 2],
        planes: usize,
        direction: Direction,
        count: usize,
    ) -> Result<Self, KernelError> {
        let layer_values = planes * ny * 2 * (nx / 2 + 1);
        let ([nx, ny], modes) = ([nx, ny].map(int), int(nx / 2 + 1));
        let values = Stored { lengths: [ny, 2 * modes], step: 1, distance: ny * 2 * modes };
        let spectra = Stored { lengths: [ny, modes], step: 1, distance: ny * modes };
        let (kind, from, to) = match direction {
            Direction::Forward => (D2Z, values, spectra),
            Direction::Backward => (Z2D, spectra, values),
        };
        let batch = Batch { kind, lengths: vec![ny, nx], from, to, count: int(count * planes) };
        Self::new(device, batch, count, count * layer_values)
    }

    /// Lines along z of `count` bands that follow each other among so many in every plane, `[z, among, slab]`.
    ///
    /// # Errors
    /// [`KernelError::OutOfMemory`].
    ///
    /// # Panics
    /// Without the library.
    pub(crate) fn of_bands(
        device: &CudaDevice,
        (nz, slab): (usize, usize),
        count: usize,
        among: usize,
    ) -> Result<Self, KernelError> {
        let lines = Stored { lengths: [int(nz), 1], step: int(among * slab), distance: 1 };
        let batch = Batch { kind: Z2Z, lengths: vec![int(nz)], from: lines, to: lines, count: int(count * slab) };
        Self::new(device, batch, count, 2 * slab * ((nz - 1) * among + count))
    }

    fn new(device: &CudaDevice, mut batch: Batch, count: usize, values: usize) -> Result<Self, KernelError> {
        let library = library().expect("plans are made where the library is");
        device.activate();
        let mut handle = 0;
        // SAFETY: the pointer is valid for the call.
        check("make a plan", unsafe { (library.create)(&mut handle) });
        let mut plan = Self { library, device: device.clone(), handle, kind: batch.kind, count, values, bytes: 0 };
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
                &mut plan.bytes,
            )
        };
        if result == OUT_OF_MEMORY {
            let bytes = values * size_of::<f64>();
            return Err(KernelError::OutOfMemory { device: device.name().into(), bytes });
        }
        check(&format!("plan {} transforms of {:?} values", batch.count, batch.lengths), result);
        Ok(plan)
    }

    /// Layers or bands.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Bytes that it works in.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// From now on it works there. The area is to be kept as long as it is used.
    pub(crate) fn work_in(&self, area: &Array<u8>) {
        assert!(area.len() >= self.bytes, "{} bytes to work in, {} needed", area.len(), self.bytes);
        if self.bytes > 0 {
            self.device.activate();
            let start = area.pointer().address() as *mut c_void;
            // SAFETY: the area is as large as the plan needs.
            check("take its work space", unsafe { (self.library.set_work_area)(self.handle, start) });
        }
    }

    /// Transforms what begins with this value of an array. Layers know their direction.
    pub(crate) fn run(&self, direction: Direction, array: &Array<f64>, first: usize) {
        let Self { library, handle, .. } = self;
        assert!(first + self.values <= array.len(), "{first} + {} of {} values", self.values, array.len());
        self.device.activate();
        let start = array.pointer_to(first).address() as *mut c_void;
        // SAFETY: the values are in the array; they are transformed in the device's stream.
        let result = unsafe {
            match self.kind {
                D2Z => (library.real_to_complex)(*handle, start, start),
                Z2D => (library.complex_to_real)(*handle, start, start),
                _ => (library.complex)(*handle, start, start, direction as c_int),
            }
        };
        check("transform", result);
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
