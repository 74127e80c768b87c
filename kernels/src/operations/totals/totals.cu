// Sums over the leaf cells of each group: the twin of totals/cpu.rs, in another order. One block a group.
#include "level/report.cuh"

struct GroupTotals {
    uint32_t cells;
    double mass;
    double momentum[3];
    double kinetic;
    double thermal;
    double energy;
    double density_min;
    double density_max;
};

template <typename T> __device__ void sum_group(const Level &level, const T *fluid, GroupTotals *totals) {
    const T *group = fluid + size_t(level.slots[blockIdx.x]) * GROUP_VALUES;
    const uint32_t leaves = level.leaves[blockIdx.x];
    constexpr int SUMS = 7;
    double sums[SUMS] = {};
    double least = of_bits(uint64_t(0x7ff0000000000000ull)), most = -least;
#pragma unroll 4
    for (int c = threadIdx.x; c < GROUP_CELLS; c += blockDim.x) {
        const int octant = (c >> 3 & 1) | (c >> 7 & 1) << 1 | (c >> 11 & 1) << 2;
        if (!(leaves >> octant & 1)) continue;
        const double density = group[c], energy = group[ENERGY * GROUP_CELLS + c];
        const double x = group[MOMENTUM * GROUP_CELLS + c], y = group[(MOMENTUM + 1) * GROUP_CELLS + c];
        const double z = group[(MOMENTUM + 2) * GROUP_CELLS + c];
        const double kinetic = 0.5 * (x * x + y * y + z * z) / density;
        const double values[SUMS] = {density, x, y, z, energy, kinetic, energy - kinetic};
#pragma unroll
        for (int s = 0; s < SUMS; s++) sums[s] += values[s];
        least = density < least ? density : least;
        most = density > most ? density : most;
    }
    __shared__ double room[32];
#pragma unroll
    for (int s = 0; s < SUMS; s++) sums[s] = sum_of_block(sums[s], room);
    least = least_of_block(least, room);
    most = -least_of_block(-most, room);
    if (threadIdx.x == 0) {
        const uint32_t cells = __popc(leaves) * PATCH * PATCH * PATCH;
        totals[blockIdx.x] = {cells,   sums[0], {sums[1], sums[2], sums[3]}, sums[5], sums[6],
                              sums[4], least,   most};
    }
}

#define BOTH(T, suffix)                                                                                                \
    extern "C" __global__ void totals_##suffix(const __grid_constant__ Level level, const T *fluid,                    \
                                               GroupTotals *totals) {                                                  \
        sum_group<T>(level, fluid, totals);                                                                            \
    }
BOTH(float, f32)
BOTH(double, f64)
