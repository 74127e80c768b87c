// Restriction, prolongation and flux correction of scalars: the twin of scalars/cpu.rs.
#include "operations/reflux/faces.cuh"
#include "operations/scalars/cells.cuh"

/// Means of eight cells. One block a patch of the coarse level.
template <typename T> __device__ void restrict_patch(const Level &coarse, int count, T *scalars) {
    const uint32_t child = coarse.children[blockIdx.x];
    if (child == NONE) return;
    const int octant = blockIdx.x % OCTANTS;
    const T *fine = scalars + size_t(child) * count * GROUP_CELLS;
    T *group = scalars + size_t(coarse.slots[blockIdx.x / OCTANTS]) * count * GROUP_CELLS;
    const int first = cell((octant & 1) * PATCH, (octant >> 1 & 1) * PATCH, (octant >> 2) * PATCH);
    constexpr int CELLS = PATCH * PATCH * PATCH;
    for (int e = threadIdx.x; e < count * CELLS; e += blockDim.x) {
        const int i = e % PATCH, j = e / PATCH % PATCH, k = e / (PATCH * PATCH) % PATCH, of = e / CELLS * GROUP_CELLS;
        T cells[8];
#pragma unroll
        for (int n = 0; n < 8; n++) cells[n] = fine[of + cell(2 * i + (n & 1), 2 * j + (n >> 1 & 1), 2 * k + (n >> 2))];
        group[of + first + cell(i, j, k)] = T(0.125) * sum_of_cube(cells);
    }
}

/// New groups from the patches they refine. Several blocks a group; a thread makes the eight cells of a coarse cell.
template <typename T>
__device__ void prolong_group(const Level &fine, int blocks_a_group, const uint32_t *groups, const T *fluid, int count,
                              T *scalars) {
    constexpr int COARSE_CELLS = PATCH * PATCH * PATCH;
    const uint32_t g = groups[blockIdx.x / blocks_a_group];
    const Ghosts<T> ghosts(fine, g, fluid, EarlierFluid<T>{nullptr, nullptr, T(0)});
    const int cells = COARSE_CELLS / blocks_a_group, first = blockIdx.x % blocks_a_group * cells;
    for (int e = threadIdx.x; e < count * cells; e += blockDim.x) {
        const int c = first + e % cells, index = e / cells;
        const int x = c % PATCH, y = c / PATCH % PATCH, z = c / (PATCH * PATCH);
        const ScalarCells<T> from{ghosts, scalars, nullptr, count, index};
        const uint32_t octant = ghosts.octant;
        const FractionSlopes<T> slopes = from.slopes(int(octant & 1) * PATCH + x, int(octant >> 1 & 1) * PATCH + y,
                                                     int(octant >> 2 & 1) * PATCH + z);
        T *group = scalars + (size_t(fine.slots[g]) * count + index) * GROUP_CELLS;
#pragma unroll
        for (int n = 0; n < 8; n++) {
            const Fraction<T> made = slopes.fine(n);
            group[cell(2 * x + (n & 1), 2 * y + (n >> 1 & 1), 2 * z + (n >> 2))] = made.density * made.fraction;
        }
    }
}

/// Flux correction. One block a coarse group, one thread for all faces of a cell.
template <typename T>
__device__ void correct_scalars(const CoarseFineFace *faces, const RefluxGroup *groups, T *scalars, const T *fluxes, int count,
                                T dt_over_dx, T fine_share) {
    const uint32_t start = blockIdx.x == 0 ? 0 : groups[blockIdx.x - 1].end;
    const int face_count = groups[blockIdx.x].end - start;
    T *group = scalars + size_t(groups[blockIdx.x].slot) * count * GROUP_CELLS;
    faces += start;
    __shared__ uint32_t listed[OCTANTS * FACES];
    list_faces(faces, face_count, listed);
    const T quarter = T(0.25) * fine_share;
    for (int n = threadIdx.x; n < face_count * PATCH_FACE; n += blockDim.x) {
        const CorrectedCell<T> corrected(faces, n, listed, fluxes, count * FACE_CELLS, dt_over_dx);
        if (!corrected.is_first) continue;
        for (int f = 0; f < count; f++) {
            // met again at its other faces it gains nothing
            group[f * GROUP_CELLS + corrected.cell] += corrected.change(f, quarter);
        }
    }
}

#define BOTH(T, suffix)                                                                                                \
    extern "C" __global__ void restrict_scalars_##suffix(const __grid_constant__ Level coarse, int count, T *scalars) { \
        restrict_patch<T>(coarse, count, scalars);                                                                     \
    }                                                                                                                  \
    extern "C" __global__ void prolong_scalars_##suffix(const __grid_constant__ Level fine, int blocks_a_group,        \
                                                        const uint32_t *groups, const T *fluid, int count,             \
                                                        T *scalars) {                                                  \
        prolong_group<T>(fine, blocks_a_group, groups, fluid, count, scalars);                                         \
    }                                                                                                                  \
    extern "C" __global__ void reflux_scalars_##suffix(const CoarseFineFace *faces, const RefluxGroup *groups,         \
                                                       T *scalars, const T *fluxes, int count, T dt_over_dx,           \
                                                       T fine_share) {                                                 \
        correct_scalars<T>(faces, groups, scalars, fluxes, count, dt_over_dx, fine_share);                             \
    }
BOTH(float, f32)
BOTH(double, f64)
