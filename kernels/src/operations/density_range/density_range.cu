// Range of the density over the leaf cells of each group: the twin of density_range/cpu.rs. One block a group.
#include "level/report.cuh"

template <typename T> __device__ void range_of_group(const Level &level, const T *density, double *ranges) {
    const T *group = density + size_t(level.slots[blockIdx.x]) * GROUP_CELLS;
    const uint32_t leaves = level.leaves[blockIdx.x];
    double least = of_bits(uint64_t(0x7ff0000000000000ull)), most = -least;
    for (int c = threadIdx.x; c < GROUP_CELLS; c += blockDim.x) {
        const int octant = (c >> 3 & 1) | (c >> 7 & 1) << 1 | (c >> 11 & 1) << 2;
        if (!(leaves >> octant & 1)) continue;
        const double rho = group[c];
        least = rho < least ? rho : least;
        most = rho > most ? rho : most;
    }
    __shared__ double room[32];
    least = least_of_block(least, room);
    most = -least_of_block(-most, room);
    if (threadIdx.x == 0) {
        ranges[2 * blockIdx.x] = least;
        ranges[2 * blockIdx.x + 1] = most;
    }
}

#define BOTH(T, suffix)                                                                                                \
    extern "C" __global__ void density_range_##suffix(const __grid_constant__ Level level, const T *density,           \
                                                      double *ranges) {                                                \
        range_of_group<T>(level, density, ranges);                                                                     \
    }
BOTH(float, f32)
BOTH(double, f64)
