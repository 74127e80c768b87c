// Potential energy of the leaf cells of each group: the twin of potential_energy/cpu.rs, in another order. One block a group.
#include "level/report.cuh"
#include "operations/poisson_source.cuh"

template <typename T>
__device__ void sum_group(const Level &level, const PoissonSource<T> &source, const T *potential, double *sums) {
    const uint32_t slot = level.slots[blockIdx.x], leaves = level.leaves[blockIdx.x];
    double sum = 0.0;
    for (int c = threadIdx.x; c < GROUP_CELLS; c += blockDim.x) {
        const int octant = (c >> 3 & 1) | (c >> 7 & 1) << 1 | (c >> 11 & 1) << 2;
        if (!(leaves >> octant & 1)) continue;
        const double density = source.template of_raw<double>(source.raw(slot, c), slot, c, 1.0);
        sum += density * double(potential[size_t(slot) * GROUP_CELLS + c]);
    }
    __shared__ double room[32];
    sum = sum_of_block(sum, room);
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

#define BOTH(T, suffix)                                                                                                \
    extern "C" __global__ void potential_energy_##suffix(const __grid_constant__ Level level, PoissonSource<T> source, \
                                                         const T *potential, double *sums) {                           \
        sum_group<T>(level, source, potential, sums);                                                                  \
    }
BOTH(float, f32)
BOTH(double, f64)
