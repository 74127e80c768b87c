// The root mesh in double precision: the source gathered from the groups, the Green's function, the potential back.
#include "poisson_source.cuh"

/// How the root's groups lie in the mesh: the twin of cuda.rs.
struct RootMesh {
    const uint32_t *slots; // [groups z, y, x]
    double *values;
    uint64_t row;   // values of a row along x; 0: the cells of a group lie together, [groups z, y, x, 16, 16, 16]
    uint64_t plane; // values of a plane
    uint32_t groups_x, groups_y;

    __device__ double &at(uint32_t group, int c) const {
        if (row == 0) return values[size_t(group) * GROUP_CELLS + c];
        const size_t x = group % groups_x * GROUP + c % GROUP;
        const size_t y = group / groups_x % groups_y * GROUP + c / GROUP % GROUP;
        const size_t z = group / (groups_x * groups_y) * GROUP + c / FACE_CELLS;
        return values[z * plane + y * row + x];
    }
};

/// Gathers the source: one block a group.
template <typename T> __device__ void root_source(const PoissonSource<T> &source, const RootMesh &mesh) {
    const uint32_t slot = mesh.slots[blockIdx.x];
    for (int c = threadIdx.x; c < GROUP_CELLS; c += blockDim.x)
        mesh.at(blockIdx.x, c) = source.template of_raw<double>(source.raw(slot, c), slot, c, 1.0);
}

/// Rounds the mesh to the potential: one block a group.
template <typename T> __device__ void root_potential(const RootMesh &mesh, T *potential) {
    T *own = potential + size_t(mesh.slots[blockIdx.x]) * GROUP_CELLS;
    for (int c = threadIdx.x; c < GROUP_CELLS; c += blockDim.x) own[c] = T(mesh.at(blockIdx.x, c));
}

/// Divides by the eigenvalues, the sums of those of three axes: one block a row of modes.
extern "C" __global__ void root_periodic_f64(double2 *mesh, const double *eigenvalues, uint32_t modes, uint32_t nx,
                                             uint32_t ny, double factor) {
    const uint32_t ky = blockIdx.x % ny, kz = blockIdx.x / ny;
    const double y = eigenvalues[nx + ky], z = eigenvalues[nx + ny + kz];
    double2 *row = mesh + size_t(blockIdx.x) * modes;
    for (uint32_t kx = threadIdx.x; kx < modes; kx += blockDim.x) {
        const double sum = eigenvalues[kx] + y + z;
        // zero for the mean alone, which neither source nor potential keeps
        const double green = sum > 0.0 ? factor / sum : 0.0;
        row[kx] = {row[kx].x * green, row[kx].y * green};
    }
}

/// Multiplies by the transform of the lattice's Green's function, [N_y + 1, N_z + 1, N_x + 1] for a mesh of so many
/// cells before padding: one block a row of modes.
extern "C" __global__ void root_isolated_f64(double2 *mesh, const double *green, uint32_t modes, uint32_t ny,
                                             uint32_t nz, double factor) {
    const uint32_t ky = blockIdx.x % (2 * ny), kz = blockIdx.x / (2 * ny);
    const double *of_row = green + (size_t(min(ky, 2 * ny - ky)) * (nz + 1) + min(kz, 2 * nz - kz)) * modes;
    double2 *row = mesh + size_t(blockIdx.x) * modes;
    for (uint32_t kx = threadIdx.x; kx < modes; kx += blockDim.x) {
        const double both = factor * of_row[kx];
        row[kx] = {row[kx].x * both, row[kx].y * both};
    }
}

#define BOTH(T, suffix)                                                                                                \
    extern "C" __global__ void root_source_##suffix(PoissonSource<T> source, RootMesh mesh) {                          \
        root_source<T>(source, mesh);                                                                                  \
    }                                                                                                                  \
    extern "C" __global__ void root_potential_##suffix(RootMesh mesh, T *potential) {                                  \
        root_potential<T>(mesh, potential);                                                                            \
    }
BOTH(float, f32)
BOTH(double, f64)
