// What both solvers of a group's equation share: the twin of cpu.rs. Blocks of FACE_CELLS threads.
#pragma once
#include "operations/poisson_source.cuh"
#include "operations/potential_ghosts/potential_ghosts.cuh"

/// Where the solution goes: the twin of cuda.rs.
template <typename T> struct Solution {
    T *potential; // [slots, 16, 16, 16]
    T *gradients; // [slots, 6, 8, 8]; null: not asked for
    double h;
};

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

/// Gathers a group's boundary values and keeps them where they are held.
template <typename T>
__device__ void load_boundary(const Level &level, uint32_t g, const GhostRequest<T> &request, T *ghosts, T *scratch) {
    gather_ghosts(level, g, request, ghosts, scratch);
    if (request.origin != AS_HELD) {
        T *held = request.held + size_t(g) * GHOST_CELLS;
        for (int c = threadIdx.x; c < GHOST_CELLS; c += FACE_CELLS) held[c] = ghosts[c];
    }
    __syncthreads();
}

/// Outward normal derivatives on coarse faces from the jumps of all fine faces, [6, 16, 16], which are complete.
template <typename T> __device__ void face_gradients(const T *jumps, double h, T *gradients) {
    constexpr int COARSE_FACE = PATCH * PATCH;
    const T scale = T(0.25 / h);
    for (int c = threadIdx.x; c < FACES * COARSE_FACE; c += FACE_CELLS) {
        const int m = c % PATCH, n = c % COARSE_FACE / PATCH;
        const T *four = jumps + c / COARSE_FACE * FACE_CELLS + 2 * n * GROUP + 2 * m;
        const T lower = four[0] + four[1];
        const T upper = four[GROUP] + four[GROUP + 1];
        gradients[c] = scale * (lower + upper);
    }
}
