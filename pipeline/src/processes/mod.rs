//! Processes of MPI, child processes, and requests from outside.
//!
//! | module | what it holds |
//! |---|---|
//! | [`crew`], [`task`] | the processes of MPI, and their common work besides runs |
//! | [`launchers`] | environment variables of `mpiexec` and `srun` |
//! | [`isolated_read`] | untrusted files, read by a child process first |
//! | [`control`] | signals, files in the folder, a wall-clock limit |
//! | [`machine`] | machine and build, for provenance |

pub(crate) mod control;
pub(crate) mod crew;
pub(crate) mod isolated_read;
mod launchers;
pub(crate) mod machine;
pub(crate) mod task;
