// The root mesh in double precision: the source gathered from the groups, slabs of modes moved between layers, blocks and
// bands, the Green's function, the potential back.
#include "level/report.cuh"
#include "operations/poisson_source.cuh"

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

/// Where the slabs of some bands lie, in slabs from one band and from one plane to the next: the twin of cuda.rs. One
/// block each, `[plane, band]`.
struct Slabs {
    uint32_t modes; // of a slab
    uint32_t bands;
    uint32_t band_step, plane_step;

    __device__ uint32_t band(uint32_t slab) const { return slab % bands; }
    __device__ uint32_t plane(uint32_t slab) const { return slab / bands; }
    __device__ size_t start(uint32_t slab) const {
        return (size_t(band(slab)) * band_step + size_t(plane(slab)) * plane_step) * modes;
    }
};

/// The place of a block's slab: from the one of index `first` on, of each plane so many that follow each other among
/// `all`.
struct Places {
    const uint32_t *places;
    uint32_t first, all;

    __device__ uint32_t of(const Slabs &slabs) const {
        return places[first + slabs.plane(blockIdx.x) * all + slabs.band(blockIdx.x)];
    }
};

/// Copies slabs from their places in blocks; those that have no place are padding, zero.
extern "C" __global__ void root_collect_f64(double2 *work, Slabs slabs, const double2 *blocks, Places places) {
    const uint32_t place = places.of(slabs);
    const double2 *from = blocks + size_t(place) * slabs.modes;
    double2 *to = work + slabs.start(blockIdx.x);
    for (uint32_t m = threadIdx.x; m < slabs.modes; m += blockDim.x) to[m] = place == NONE ? double2{0.0, 0.0} : from[m];
}

/// Copies them back; what has no place is dropped.
extern "C" __global__ void root_spread_f64(const double2 *work, Slabs slabs, double2 *blocks, Places places) {
    const uint32_t place = places.of(slabs);
    if (place == NONE) return;
    const double2 *from = work + slabs.start(blockIdx.x);
    double2 *to = blocks + size_t(place) * slabs.modes;
    for (uint32_t m = threadIdx.x; m < slabs.modes; m += blockDim.x) to[m] = from[m];
}

/// Any number of 64 bits for each n.
__device__ inline uint64_t scrambled(uint64_t n) {
    n = (n + 1) * 0x9E3779B97F4A7C15ull;
    n = (n ^ n >> 30) * 0xBF58476D1CE4E5B9ull;
    n = (n ^ n >> 27) * 0x94D049BB133111EBull;
    return n ^ n >> 31;
}

/// Noise of both signs over five decades. It depends on a slab's number, not on where it lies.
extern "C" __global__ void root_noise_f64(double2 *work, Slabs slabs) {
    double2 *to = work + slabs.start(blockIdx.x);
    const auto noise = [](uint64_t n) {
        const uint64_t bits = scrambled(n);
        return ldexp(double(bits >> 11) * 0x1p-53 - 0.5, -int(bits & 15));
    };
    for (uint32_t m = threadIdx.x; m < slabs.modes; m += blockDim.x) {
        const uint64_t n = 2 * (uint64_t(blockIdx.x) * slabs.modes + m);
        to[m] = {noise(n), noise(n + 1)};
    }
}

/// A hash of each slab's bits: of the first `used` of each row of modes.
extern "C" __global__ void root_hash_f64(const double2 *work, Slabs slabs, uint32_t used, uint64_t *hashes) {
    const double2 *from = work + slabs.start(blockIdx.x);
    const uint32_t row = slabs.modes / GROUP;
    uint64_t sum = 0;
    for (uint32_t m = threadIdx.x; m < slabs.modes; m += blockDim.x) {
        if (m % row >= used) continue;
        sum += bits_of(from[m].x) * (scrambled(2 * m) | 1) + bits_of(from[m].y) * (scrambled(2 * m + 1) | 1);
    }
    __shared__ uint64_t room[32];
    sum = sum_of_block(sum, room);
    if (threadIdx.x == 0) hashes[blockIdx.x] = sum;
}

/// Lengths of the transforms along x, y, z, or those along y and z of a mesh before padding.
struct Lengths {
    uint32_t x, y, z;
};
struct Unpadded {
    uint32_t y, z;
};

/// The row of modes of a block, `[kz, band, 16]`, where the first band starts with the wave number `first`.
struct Row {
    uint32_t y, z;
    uint32_t modes;
    size_t start;

    __device__ Row(const Slabs &slabs, uint32_t first) : modes(slabs.modes / GROUP) {
        const uint32_t slab = blockIdx.x / GROUP, row = blockIdx.x % GROUP;
        y = first + slabs.band(slab) * GROUP + row;
        z = slabs.plane(slab);
        start = slabs.start(slab) + size_t(row) * modes;
    }
};

/// Divides by the sums of three axes and multiplies by their factors, which follow the sums in `tables`: one block a row of
/// modes.
extern "C" __global__ void root_periodic_f64(double2 *work, Slabs slabs, const double *tables, Lengths n,
                                             uint32_t first, double factor) {
    const Row k(slabs, first);
    const double y = tables[n.x + k.y], z = tables[n.x + n.y + k.z];
    const double *factors = tables + n.x + n.y + n.z;
    const double of_y = factors[n.x + k.y], of_z = factors[n.x + n.y + k.z];
    double2 *row = work + k.start;
    for (uint32_t kx = threadIdx.x; kx < k.modes; kx += blockDim.x) {
        const double sum = tables[kx] + y + z;
        // zero for the mean alone, which neither source nor potential keeps
        const double green = sum > 0.0 ? factor * (factors[kx] * of_y * of_z) / sum : 0.0;
        row[kx] = {row[kx].x * green, row[kx].y * green};
    }
}

/// Multiplies by the transform of the lattice's Green's function, [rows, N_z + 1, N_x + 1] for a mesh of so many cells
/// before padding, of which |ky| = `first_row` is the first row: one block a row of modes.
extern "C" __global__ void root_isolated_f64(double2 *work, Slabs slabs, const double *green, Unpadded n,
                                             uint32_t first, uint32_t first_row, double factor) {
    const Row k(slabs, first);
    const uint32_t y = min(k.y, 2 * n.y - k.y) - first_row, z = min(k.z, 2 * n.z - k.z);
    const double *of_row = green + (size_t(y) * (n.z + 1) + z) * k.modes;
    double2 *row = work + k.start;
    for (uint32_t kx = threadIdx.x; kx < k.modes; kx += blockDim.x) {
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
