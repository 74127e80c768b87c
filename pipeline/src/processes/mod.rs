//! This process among others, and what is asked of it from outside.
//!
//! | module | what it holds |
//! |---|---|
//! | [`crew`], [`task`] | the processes of MPI, and what they do together besides runs |
//! | [`launchers`] | what `mpiexec` and `srun` leave in the environment |
//! | [`isolated_read`] | files that nobody vouches for, read by a child process first |
//! | [`control`] | signals, files in the folder, a wall-clock limit |
//! | [`machine`] | what a process runs on, for provenance |

pub(crate) mod control;
pub(crate) mod crew;
pub(crate) mod isolated_read;
mod launchers;
pub(crate) mod machine;
pub(crate) mod task;
