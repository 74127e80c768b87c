# Sourced by the other scripts, and by you before a plain `cargo build`: finds a CMake that can build HDF5.

comove_cmake_version() { "$1" --version 2>/dev/null | sed -n '1s/[^0-9]*\([0-9]*\)\.\([0-9]*\).*/\1 \2/p'; }

# Sets CMAKE to the project's own CMake if there is one; true where CMAKE or the system's is at least 3.26.
comove_cmake_is_new_enough() {
    local own="$PWD/.tools/venv/bin/cmake" major minor
    [ -x "$own" ] && export CMAKE="$own"
    read -r major minor _ <<<"$(comove_cmake_version "${CMAKE:-cmake}") 0 0"
    [ "${major:-0}" -gt 3 ] || { [ "${major:-0}" -eq 3 ] && [ "${minor:-0}" -ge 26 ]; }
}
comove_cmake_is_new_enough || true

# What is checked and tested: all crates, with MPI, and with CUDA where COMOVE_CUDA is set. COMOVE_FAST_BUILD=1
# compiles crate comove without optimisation: a fifth of the build time, and the quickstart takes 5% longer. Of the examples
# only those that tests run are built, because their code is long to build; clippy checks the others.
comove_all=(--workspace --features "comove/mpi,comove-sim/mpi${COMOVE_CUDA:+,comove/cuda,comove-sim/cuda,comove-kernels/cuda}"
    ${COMOVE_FAST_BUILD:+--config profile.release.package.comove.opt-level=0})
comove_tests=("${comove_all[@]}" --lib --bins --tests)
comove_examples=("${comove_all[@]}" --example mpi_check --example snapshot_samples)
