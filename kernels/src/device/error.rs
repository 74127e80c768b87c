//! What can be wrong with an operation's arguments.

/// Errors of this crate. A shape mismatch is a bug in the caller and panics instead.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// The device asked for is not there, or not in this build.
    #[error("device \"{0}\" is not available: {1}")]
    NoDevice(String, String),
    /// The device asked for is not a name this program knows.
    #[error("unknown device \"{0}\": use auto, cpu or cuda:N")]
    UnknownDevice(String),
    /// The device has no room for an array.
    #[error("not enough memory on {device} for {bytes} bytes")]
    OutOfMemory {
        /// Device name.
        device: String,
        /// Bytes asked for.
        bytes: usize,
    },
}
