//! Which GPUs this machine has: what a program with CUDA finds, and what one without it answers.

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

/// What can be said of a GPU without using it.
#[derive(Clone, Debug)]
pub struct Gpu {
    /// `cuda:N` names it by this number.
    pub ordinal: u32,
    /// As the driver calls it.
    pub name: String,
    /// Memory in bytes.
    pub memory: u64,
    /// Compute capability, major and minor.
    pub capability: [i32; 2],
}

/// Asks the driver.
///
/// # Errors
/// A line for people: why there are none.
#[cfg(feature = "cuda")]
pub fn gpus() -> Result<Gpus, String> {
    let (cuda_version, gpus) = crate::cuda::summaries()?;
    Ok(Gpus { cuda_version, gpus, cufft: crate::root_poisson::cufft::version() })
}

/// There is nothing to ask with.
///
/// # Errors
/// Always.
#[cfg(not(feature = "cuda"))]
pub fn gpus() -> Result<Gpus, String> {
    Err("this program was built without CUDA".into())
}
