// New groups from the patches they refine: the twin of prolong/cpu.rs. Several blocks a group; a thread makes a cell as
// a ghost cell there would be made.
#include "ghosts.cuh"
#include "point/dual_energy.cuh"

template <typename T>
__device__ void prolong(const Level &fine, int blocks_a_group, const uint32_t *groups, T *fluid, const Eos<T> &eos) {
    const uint32_t g = groups[blockIdx.x / blocks_a_group];
    const Ghosts<T> coarse(fine, g, fluid, Earlier<T>{nullptr, nullptr, T(0)});
    T *group = fluid + size_t(fine.slots[g]) * GROUP_VALUES;
    const int cells = GROUP_CELLS / blocks_a_group, first = blockIdx.x % blocks_a_group * cells;
    for (int c = first + threadIdx.x; c < first + cells; c += blockDim.x) {
        T u[FIELDS];
        coarse.interpolate(c % GROUP, c / GROUP % GROUP, c / FACE_CELLS, u);
        synchronise(u, eos);
#pragma unroll
        for (int f = 0; f < FIELDS; f++) group[f * GROUP_CELLS + c] = u[f];
    }
}

#define BOTH(T, suffix)                                                                                                \
    extern "C" __global__ void prolong_##suffix(const __grid_constant__ Level fine, int blocks_a_group,                \
                                                const uint32_t *groups, T *fluid, const Eos<T> eos) {                  \
        prolong<T>(fine, blocks_a_group, groups, fluid, eos);                                                          \
    }
BOTH(float, f32)
BOTH(double, f64)
