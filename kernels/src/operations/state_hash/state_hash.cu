// A hash of each group's bits: the twin of state_hash/cpu.rs. Sums modulo 2^64 have no order. One block a group.
#include "device/cuda/real.cuh"
#include "level/report.cuh"

template <typename T> __device__ void hash_group(const uint32_t *slots, int values, const T *pool, uint64_t *hashes) {
    const T *group = pool + size_t(slots[blockIdx.x]) * values;
    const uint64_t factor = 0x9E3779B97F4A7C15ull;
    uint64_t sum = 0;
#pragma unroll 8
    for (int n = threadIdx.x; n < values; n += blockDim.x) {
        sum += uint64_t(bits_of(group[n])) * (uint64_t(2 * n + 1) * factor);
    }
    __shared__ uint64_t room[32];
    sum = sum_of_block(sum, room);
    if (threadIdx.x == 0) hashes[blockIdx.x] = sum;
}

#define BOTH(T, suffix)                                                                                                \
    extern "C" __global__ void state_hash_##suffix(const uint32_t *slots, int values, const T *pool,                   \
                                                   uint64_t *hashes) {                                                 \
        hash_group<T>(slots, values, pool, hashes);                                                                    \
    }
BOTH(float, f32)
BOTH(double, f64)
