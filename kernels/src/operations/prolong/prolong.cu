// New groups from the patches they refine: the twin of prolong/cpu.rs. Several blocks a group; a thread makes the eight
// cells of a coarse cell as ghost cells there would be made.
#include "level/ghosts/ghosts.cuh"
#include "point/dual_energy.cuh"

template <typename T>
__device__ void prolong(const Level &fine, int blocks_a_group, const uint32_t *groups, T *fluid, const Eos<T> &eos) {
    constexpr int COARSE_CELLS = PATCH * PATCH * PATCH;
    const uint32_t g = groups[blockIdx.x / blocks_a_group];
    const Ghosts<T> ghosts(fine, g, fluid, EarlierFluid<T>{nullptr, nullptr, T(0)});
    T *group = fluid + size_t(fine.slots[g]) * GROUP_VALUES;
    const int count = COARSE_CELLS / blocks_a_group, first = blockIdx.x % blocks_a_group * count;
    for (int c = first + threadIdx.x; c < first + count; c += blockDim.x) {
        const int i = 2 * (c % PATCH), j = 2 * (c / PATCH % PATCH), k = 2 * (c / (PATCH * PATCH));
        const auto stencil = ghosts.stencil(i, j, k);
        T parent[FIELDS], cells[8][FIELDS];
#pragma unroll
        for (int f = 0; f < FIELDS; f++) {
            parent[f] = stencil.centre.value(ghosts, 0, f);
            if (f == ENERGY) continue;
            T values[8];
            ghosts.slopes(stencil, f).all(values);
#pragma unroll
            for (int n = 0; n < 8; n++) cells[n][f] = values[n];
        }
        const T factor = heat_factor(parent, cells, eos);
#pragma unroll
        for (int n = 0; n < 8; n++) {
            cells[n][ENTROPY] = factor * cells[n][ENTROPY];
            cells[n][ENERGY] = energy_by_entropy(cells[n], eos);
            T *to = group + cell(i + (n & 1), j + (n >> 1 & 1), k + (n >> 2));
#pragma unroll
            for (int f = 0; f < FIELDS; f++) to[f * GROUP_CELLS] = cells[n][f];
        }
    }
}

#define BOTH(T, suffix)                                                                                                \
    extern "C" __global__ void prolong_##suffix(const __grid_constant__ Level fine, int blocks_a_group,                \
                                                const uint32_t *groups, T *fluid, const Eos<T> eos) {                  \
        prolong<T>(fine, blocks_a_group, groups, fluid, eos);                                                          \
    }
BOTH(float, f32)
BOTH(double, f64)
