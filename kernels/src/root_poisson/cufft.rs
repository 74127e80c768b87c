//! cuFFT, opened at run time: a program without it transforms on the host.

use crate::cuda::CudaDevice;
use crate::cuda::array::Array;
use cust::sys::CUstream;
use std::ffi::{c_int, c_void};
use std::path::PathBuf;
use std::sync::OnceLock;

/// Names of the library, in the loader's path or a toolkit's folder.
const NAMES: [&str; 2] = ["libcufft.so.12", "libcufft.so.11"];

/// From real to complex numbers and back, double precision (`cufftType`).
const D2Z: c_int = 0x6a;
const Z2D: c_int = 0x6c;
/// `CUFFT_ALLOC_FAILED`.
const OUT_OF_MEMORY: c_int = 2;

type Execute = unsafe extern "C" fn(c_int, *mut c_void, *mut c_void) -> c_int;

/// The functions that are called.
struct Library {
    /// Keeps the functions below where they are.
    _library: libloading::Library,
    plan_3d: unsafe extern "C" fn(*mut c_int, c_int, c_int, c_int, c_int) -> c_int,
    set_stream: unsafe extern "C" fn(c_int, CUstream) -> c_int,
    forward: Execute,
    backward: Execute,
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
                plan_3d: *library.get(b"cufftPlan3d").ok()?,
                set_stream: *library.get(b"cufftSetStream").ok()?,
                forward: *library.get(b"cufftExecD2Z").ok()?,
                backward: *library.get(b"cufftExecZ2D").ok()?,
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

/// Transforms of one mesh in place, forward and backward, in the device's stream.
pub(super) struct Plans {
    library: &'static Library,
    device: CudaDevice,
    forward: c_int,
    backward: c_int,
}

/// Why there is no plan.
pub(super) enum NoPlan {
    NoLibrary,
    OutOfMemory,
}

impl Plans {
    /// For a mesh of so many values along x, y, z.
    pub(super) fn new(device: &CudaDevice, lengths: [usize; 3]) -> Result<Self, NoPlan> {
        let library = library().ok_or(NoPlan::NoLibrary)?;
        let forward = plan(library, device, lengths, D2Z)?;
        match plan(library, device, lengths, Z2D) {
            Ok(backward) => Ok(Self { library, device: device.clone(), forward, backward }),
            Err(reason) => {
                // SAFETY: the plan was just made.
                unsafe { (library.destroy)(forward) };
                Err(reason)
            }
        }
    }

    /// From rows of real values, padded to an even number beyond their length, to modes.
    pub(super) fn forward(&self, mesh: &Array<f64>) {
        self.execute("forward", self.library.forward, self.forward, mesh);
    }

    /// Back, without the division by the number of values.
    pub(super) fn backward(&self, mesh: &Array<f64>) {
        self.execute("backward", self.library.backward, self.backward, mesh);
    }

    fn execute(&self, what: &str, execute: Execute, plan: c_int, mesh: &Array<f64>) {
        self.device.activate();
        let values = mesh.pointer().address() as *mut c_void;
        // SAFETY: the mesh was made for the plan; it is transformed in the device's stream.
        let result = unsafe { execute(plan, values, values) };
        assert!(result == 0, "cuFFT failed to transform {what}: error {result}");
    }
}

impl Drop for Plans {
    fn drop(&mut self) {
        self.device.activate();
        // SAFETY: nobody else holds the plans; the device waits until they are no longer in use.
        unsafe {
            (self.library.destroy)(self.forward);
            (self.library.destroy)(self.backward);
        }
    }
}

fn plan(library: &Library, device: &CudaDevice, lengths: [usize; 3], kind: c_int) -> Result<c_int, NoPlan> {
    device.activate();
    let [nx, ny, nz] = lengths.map(|n| n as c_int);
    let mut plan = 0;
    // SAFETY: the pointer is valid for the call; the slowest axis comes first.
    match unsafe { (library.plan_3d)(&mut plan, nz, ny, nx, kind) } {
        0 => {}
        OUT_OF_MEMORY => return Err(NoPlan::OutOfMemory),
        error => panic!("cuFFT failed to plan {nx}×{ny}×{nz} values: error {error}"),
    }
    // SAFETY: the plan was just made, the stream lives as long as the device.
    let result = unsafe { (library.set_stream)(plan, device.stream()) };
    assert!(result == 0, "cuFFT refused the stream: error {result}");
    Ok(plan)
}
