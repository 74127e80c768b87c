// What the solvers of a group's equation share: blocks of FACE_CELLS threads.
//
// Cell (i, j, k) lies at 272 k + 16 j + (i ^ j) of shared memory: lines along every axis are then read without bank
// conflicts.
#pragma once
#include "operations/group_poisson/sine.cuh"
#include "operations/poisson_source.cuh"
#include "operations/potential_ghosts/potential_ghosts.cuh"
#include <type_traits>

constexpr int PLANE = FACE_CELLS + GROUP;

__device__ constexpr int swizzled(int i, int j, int k) { return k * PLANE + j * GROUP + (i ^ j); }

/// Mean of the boundary values, summed in 16 fixed columns: to every thread, from a room for one value. The boundary
/// values are complete.
template <typename T> __device__ T boundary_mean(const T *ghosts, T *room) {
    if (threadIdx.x < 32) {
        const int column = threadIdx.x % GROUP;
        T sum = T(0);
#pragma unroll 16
        for (int row = 0; row < GHOST_CELLS / GROUP; row++) sum += ghosts[row * GROUP + column];
        T total = __shfl_sync(~0u, sum, 0);
#pragma unroll
        for (int n = 1; n < GROUP; n++) total += __shfl_sync(~0u, sum, n);
        if (threadIdx.x == 0) *room = total / T(GHOST_CELLS);
    }
    __syncthreads();
    return *room;
}

/// Transforms the lines along y, one a thread, in place.
template <typename A, typename T> __device__ __forceinline__ void transform_along_y(const Sines<T> &sines, T *values) {
    const int i = threadIdx.x % GROUP, k = threadIdx.x / GROUP;
    T line[GROUP], out[GROUP];
#pragma unroll
    for (int j = 0; j < GROUP; j++) line[j] = values[swizzled(i, j, k)];
    transform<A>(sines, line, out);
#pragma unroll
    for (int j = 0; j < GROUP; j++) values[swizzled(i, j, k)] = out[j];
}

/// Transforms the lines along z, each thread's own in `line`, and then those along y, into shared memory.
template <typename A, typename T>
__device__ __forceinline__ void transform_along_z_and_y(const Sines<T> &sines, const T (&line)[GROUP], T *values) {
    const int i = threadIdx.x % GROUP, j = threadIdx.x / GROUP;
    T out[GROUP];
    transform<A>(sines, line, out);
#pragma unroll
    for (int k = 0; k < GROUP; k++) values[swizzled(i, j, k)] = out[k];
    __syncthreads();
    transform_along_y<A>(sines, values);
    __syncthreads();
}

/// The transform of a line along x: the exact form is the processor's, whose lanes are coefficients there.
template <typename A, typename T>
INLINE void transform_along_x(const Sines<T> &sines, const T (&line)[GROUP], T (&out)[GROUP]) {
    if constexpr (std::is_same<A, Exact>::value) apply(sines, line, out);
    else transform<A>(sines, line, out);
}
