// Columns of particles, as kernels get them, and counts by warp.
#pragma once
#include "layout.cuh"
#include "point/particle.cuh"

constexpr int COLUMNS = 8;

struct Columns {
    uint32_t *columns[COLUMNS];
    uint64_t count;

    __device__ float velocity(int axis, size_t n) const { return of_bits(columns[3 + axis][n]); }
    __device__ int mass_class(size_t n) const { return class_of(columns[7][n]); }
    __device__ int kind(size_t n) const { return kind_of(columns[7][n]); }
};

__device__ inline size_t particle() { return size_t(blockIdx.x) * blockDim.x + threadIdx.x; }

/// Adds 1 to the count of a number, unless it is NONE, and returns the count before. All threads of a warp call it: most have
/// the number of the first one, and count together.
__device__ inline uint32_t counted(unsigned *counts, uint32_t number) {
    const uint32_t common = __shfl_sync(~0u, number, 0);
    const unsigned alike = __ballot_sync(~0u, number == common && number != NONE);
    const int lane = threadIdx.x % 32;
    uint32_t first = 0;
    if (lane == 0 && alike) first = atomicAdd(counts + common, unsigned(__popc(alike)));
    first = __shfl_sync(~0u, first, 0);
    if (number == NONE) return NONE;
    return number == common ? first + __popc(alike & ((1u << lane) - 1)) : atomicAdd(counts + number, 1u);
}
