//! What `mpiexec` and `srun` leave in the environment of the processes that they start.

/// The variables in which launchers say how many processes they have started, and that of PMIx, which says that they have.
pub(crate) const SIZES: [&str; 3] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS"];
pub(crate) const PMIX: &str = "PMIX_RANK";

/// Has a process that this one starts be none of those that the launcher has started.
pub(crate) fn apart(command: &mut std::process::Command) {
    SIZES.iter().chain(&[PMIX]).for_each(|name| _ = command.env_remove(name));
}
