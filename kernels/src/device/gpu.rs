//! A GPU of this machine, as the driver describes it.

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
