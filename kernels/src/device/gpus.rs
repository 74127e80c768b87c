//! Which GPUs this machine has: what a program with CUDA finds, and what one without it answers.

pub use super::gpu::Gpu;

/// The NVIDIA driver and its GPUs.
#[derive(Clone, Debug)]
pub struct Gpus {
    /// The version of CUDA that the driver speaks, major and minor.
    pub cuda_version: [i32; 2],
    /// Every GPU, whether it can be used or not ([`crate::Device::cuda`] tells).
    pub gpus: Vec<Gpu>,
    /// The version of cuFFT, where it is found.
    pub cufft: Option<String>,
}

/// Asks the driver.
///
/// # Errors
/// A line for people: why there are none.
#[cfg(feature = "cuda")]
pub fn gpus() -> Result<Gpus, String> {
    let (cuda_version, gpus) = crate::device::cuda::summaries()?;
    Ok(Gpus { cuda_version, gpus, cufft: crate::device::cuda::cufft::version() })
}

/// There is nothing to ask with.
///
/// # Errors
/// Always.
#[cfg(not(feature = "cuda"))]
pub fn gpus() -> Result<Gpus, String> {
    Err("this program was built without CUDA".into())
}
