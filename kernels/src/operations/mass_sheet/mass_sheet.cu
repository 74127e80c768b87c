// Mass sheets of a level: one block a group, one thread a column of cells.
#include "operations/potential_ghosts/potential_ghosts.cuh"

constexpr int FACE_GRADIENTS = FACES * PATCH * PATCH;

/// The right-hand side of the correction in each cell: the mean of the finer cells, then what the faces of the cell's
/// patch add, in their order.
template <typename T>
__device__ void mass_sheet(const Level &level, double h, const T *potential, const T *gradients, T *sheet) {
    const uint32_t g = blockIdx.x, slot = level.slots[g];
    const uint32_t *neighbours = level.neighbours + size_t(g) * DIRECTIONS;
    const T *outside = potential + size_t(slot) * GROUP_CELLS;
    const T inverse_h = T(1.0 / h), eighth = T(0.125);
    const int i = threadIdx.x % GROUP, j = threadIdx.x / GROUP;
    for (int k = 0; k < GROUP; k++) {
        const int at[3] = {i, j, k};
        const int octant = i / PATCH + 2 * (j / PATCH) + 4 * (k / PATCH);
        T value = T(0);
        const uint32_t child = level.children[size_t(g) * OCTANTS + octant];
        if (child != NONE) {
            const int first = cell(2 * (i % PATCH), 2 * (j % PATCH), 2 * (k % PATCH));
            const T *fine = sheet + size_t(child) * GROUP_CELLS + first;
            const auto row = [&](int dy, int dz) { return fine[cell(0, dy, dz)] + fine[cell(1, dy, dz)]; };
            value += eighth * ((row(0, 0) + row(1, 0)) + (row(0, 1) + row(1, 1)));
        } else if (!(level.leaves[g] >> octant & 1)) {
            // refined elsewhere: what came from there
            value = sheet[size_t(slot) * GROUP_CELLS + cell(i, j, k)];
        }
        const uint32_t *beyond = level.beyond + (size_t(g) * OCTANTS + octant) * FACES;
#pragma unroll
        for (int face = 0; face < FACES; face++) {
            const int axis = face / 2, upper = face & 1, layer = at[axis];
            if (layer % PATCH != (upper ? PATCH - 1 : 0)) continue;
            const uint32_t finer = beyond[face];
            if (finer == NONE) continue;
            const int next = layer + (upper ? 1 : -1), wrapped = next & (GROUP - 1);
            const uint32_t other = next == wrapped ? slot : neighbours[face_direction(face)];
            const int across = cell(i, j, k) + (wrapped - layer) * stride(axis, GROUP);
            const T inside = potential[size_t(other) * GROUP_CELLS + across];
            const T coarse = inverse_h * (outside[cell(i, j, k)] - inside);
            const int m = at[first_axis(axis)] % PATCH, n = at[second_axis(axis)] % PATCH;
            const T fine = gradients[size_t(finer) * FACE_GRADIENTS + ((face ^ 1) * PATCH + n) * PATCH + m];
            value -= inverse_h * (coarse - fine);
        }
        sheet[size_t(slot) * GROUP_CELLS + cell(i, j, k)] = value;
    }
}

#define BOTH(T, suffix)                                                                                                \
    extern "C" __global__ void mass_sheet_##suffix(Level level, double h, const T *potential, const T *gradients,      \
                                                   T *sheet) {                                                         \
        mass_sheet<T>(level, h, potential, gradients, sheet);                                                          \
    }
BOTH(float, f32)
BOTH(double, f64)
