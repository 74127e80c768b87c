// The root mesh in double precision: the source gathered from the groups, slabs of modes moved between layers, blocks and
// bands, the Green's function, the potential back.
#include "poisson_source.cuh"

/// How some groups of the root lie in a mesh: the twin of cuda.rs.
struct RootMesh {
    const uint32_t *slots; // [groups z, y, x] of all of them
    double *values;
    uint64_t row;   // values of a row along x; 0: the cells of a group lie together, [groups z, y, x, 16, 16, 16]
    uint64_t plane; // values of a plane
    uint32_t groups_x, groups_y;
    uint32_t first; // the first group of the mesh

    __device__ uint32_t slot(uint32_t group) const { return slots[first + group]; }

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
    const uint32_t slot = mesh.slot(blockIdx.x);
    for (int c = threadIdx.x; c < GROUP_CELLS; c += blockDim.x)
        mesh.at(blockIdx.x, c) = source.template of_raw<double>(source.raw(slot, c), slot, c, 1.0);
}

/// Rounds the mesh to the potential: one block a group.
template <typename T> __device__ void root_potential(const RootMesh &mesh, T *potential) {
    T *own = potential + size_t(mesh.slot(blockIdx.x)) * GROUP_CELLS;
    for (int c = threadIdx.x; c < GROUP_CELLS; c += blockDim.x) own[c] = T(mesh.at(blockIdx.x, c));
}

/// Copies slabs of so many modes from their places in blocks, from the one of index `first` on; those that have no place
/// are padding, zero. One block a slab.
extern "C" __global__ void root_collect_f64(double2 *work, const double2 *blocks, const uint32_t *places,
                                            uint32_t first, uint32_t modes) {
    const uint32_t place = places[first + blockIdx.x];
    const double2 *from = blocks + size_t(place) * modes;
    double2 *to = work + size_t(blockIdx.x) * modes;
    for (uint32_t m = threadIdx.x; m < modes; m += blockDim.x) to[m] = place == NONE ? double2{0.0, 0.0} : from[m];
}

/// Copies them back; what has no place is dropped.
extern "C" __global__ void root_spread_f64(const double2 *work, double2 *blocks, const uint32_t *places,
                                           uint32_t first, uint32_t modes) {
    const uint32_t place = places[first + blockIdx.x];
    if (place == NONE) return;
    const double2 *from = work + size_t(blockIdx.x) * modes;
    double2 *to = blocks + size_t(place) * modes;
    for (uint32_t m = threadIdx.x; m < modes; m += blockDim.x) to[m] = from[m];
}

/// Lengths of the transforms along x, y, z, or those along y and z of a mesh before padding.
struct Lengths {
    uint32_t x, y, z;
};
struct Unpadded {
    uint32_t y, z;
};

/// The wave numbers of a block's row of modes, `[bands, kz, 16]`, where the first band starts with `first`.
struct WaveNumbers {
    uint32_t y, z;

    __device__ WaveNumbers(uint32_t nz, uint32_t first)
        : y(first + blockIdx.x / (nz * GROUP) * GROUP + blockIdx.x % GROUP), z(blockIdx.x / GROUP % nz) {}
};

/// Divides by the eigenvalues, the sums of those of three axes: one block a row of modes.
extern "C" __global__ void root_periodic_f64(double2 *work, const double *eigenvalues, uint32_t modes, Lengths n,
                                             uint32_t first, double factor) {
    const WaveNumbers k(n.z, first);
    const double y = eigenvalues[n.x + k.y], z = eigenvalues[n.x + n.y + k.z];
    double2 *row = work + size_t(blockIdx.x) * modes;
    for (uint32_t kx = threadIdx.x; kx < modes; kx += blockDim.x) {
        const double sum = eigenvalues[kx] + y + z;
        // zero for the mean alone, which neither source nor potential keeps
        const double green = sum > 0.0 ? factor / sum : 0.0;
        row[kx] = {row[kx].x * green, row[kx].y * green};
    }
}

/// Multiplies by the transform of the lattice's Green's function, [rows, N_z + 1, N_x + 1] for a mesh of so many cells
/// before padding, of which |ky| = `first_row` is the first row: one block a row of modes.
extern "C" __global__ void root_isolated_f64(double2 *work, const double *green, uint32_t modes, Unpadded n,
                                             uint32_t first, uint32_t first_row, double factor) {
    const WaveNumbers k(2 * n.z, first);
    const uint32_t y = min(k.y, 2 * n.y - k.y) - first_row, z = min(k.z, 2 * n.z - k.z);
    const double *of_row = green + (size_t(y) * (n.z + 1) + z) * modes;
    double2 *row = work + size_t(blockIdx.x) * modes;
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
