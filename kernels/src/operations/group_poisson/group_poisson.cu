// The equation of each group of a level by sine transforms, with given boundary values: one block a group, one thread a
// line.
//
// The working set lies in shared memory. The first transform (along z) takes its input from memory, the last leaves its
// output there; the one along x stays in registers until it is undone.
#include "operations/group_poisson/group.cuh"

/// Where the solution goes: the twin of cuda.rs.
template <typename T> struct Solution {
    T *potential; // [slots, 16, 16, 16]
    T *gradients; // [slots, 6, 8, 8]; null: not asked for
    double h;
};

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

/// Transforms the lines along x, divides by the eigenvalues, transforms back. `inverse` is the same with x and y
/// exchanged: threads of a warp differ in y.
template <typename A, typename T>
__device__ __forceinline__ void divide_along_x(const Sines<T> &sines, const T *inverse, T *values) {
    const int j = threadIdx.x % GROUP, k = threadIdx.x / GROUP;
    T line[GROUP], out[GROUP];
#pragma unroll
    for (int i = 0; i < GROUP; i++) line[i] = values[swizzled(i, j, k)];
    transform_along_x<A>(sines, line, out);
#pragma unroll
    for (int i = 0; i < GROUP; i++) out[i] *= inverse[cell(j, i, k)];
    transform_along_x<A>(sines, out, line);
#pragma unroll
    for (int i = 0; i < GROUP; i++) values[swizzled(i, j, k)] = line[i];
}

template <typename A, typename T>
__device__ __forceinline__ void group_poisson_sine(const Level &level, const T *held,
                                                   const PoissonSource<T> &source, const Solution<T> &solution,
                                                   const T *inverse, const Sines<T> &sines) {
    __shared__ T values[GROUP * PLANE];
    __shared__ T ghosts[GHOST_CELLS];
    __shared__ T room;
    const uint32_t slot = level.slots[blockIdx.x];
    const int t = threadIdx.x, i = t % GROUP, j = t / GROUP;

    // read before the boundary values, used after them
    T line[GROUP], out[GROUP];
#pragma unroll
    for (int k = 0; k < GROUP; k++) line[k] = source.raw(slot, k * FACE_CELLS + t);
    held += size_t(blockIdx.x) * GHOST_CELLS;
    for (int c = t; c < GHOST_CELLS; c += FACE_CELLS) ghosts[c] = held[c];
    __syncthreads();
    const T mean = boundary_mean(ghosts, &room);
#pragma unroll
    for (int k = 0; k < GROUP; k++) {
        line[k] = source.template of_raw<T>(line[k], slot, k * FACE_CELLS + t, solution.h * solution.h);
        if (i == 0) line[k] -= ghosts[k * GROUP + j] - mean;
        if (i == GROUP - 1) line[k] -= ghosts[FACE_CELLS + k * GROUP + j] - mean;
        if (j == 0) line[k] -= ghosts[2 * FACE_CELLS + k * GROUP + i] - mean;
        if (j == GROUP - 1) line[k] -= ghosts[3 * FACE_CELLS + k * GROUP + i] - mean;
    }
    line[0] -= ghosts[4 * FACE_CELLS + t] - mean;
    line[GROUP - 1] -= ghosts[5 * FACE_CELLS + t] - mean;

    transform_along_z_and_y<A>(sines, line, values);
    divide_along_x<A>(sines, inverse, values);
    __syncthreads();
    transform_along_y<A>(sines, values);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < GROUP; k++) line[k] = values[swizzled(i, j, k)];
    transform<A>(sines, line, out);

    T *potential = solution.potential + size_t(slot) * GROUP_CELLS + t;
#pragma unroll
    for (int k = 0; k < GROUP; k++) potential[k * FACE_CELLS] = out[k] + mean;
    if (!solution.gradients) return;
    // each ghost is beside one cell: it becomes the jump towards it
    const auto jump = [&](int ghost, T value) { ghosts[ghost] = ghosts[ghost] - mean - value; };
#pragma unroll
    for (int k = 0; k < GROUP; k++) {
        if (i == 0) jump(k * GROUP + j, out[k]);
        if (i == GROUP - 1) jump(FACE_CELLS + k * GROUP + j, out[k]);
        if (j == 0) jump(2 * FACE_CELLS + k * GROUP + i, out[k]);
        if (j == GROUP - 1) jump(3 * FACE_CELLS + k * GROUP + i, out[k]);
    }
    jump(4 * FACE_CELLS + t, out[0]);
    jump(5 * FACE_CELLS + t, out[GROUP - 1]);
    __syncthreads();
    face_gradients(ghosts, solution.h, solution.gradients + size_t(slot) * FACES * PATCH * PATCH);
}

#define SOLVE(name, A, T, blocks)                                                                                      \
    extern "C" __global__ void __launch_bounds__(FACE_CELLS, blocks)                                                   \
        name(Level level, const T *held, PoissonSource<T> source, Solution<T> solution, const T *inverse,              \
             Sines<T> sines) {                                                                                         \
        group_poisson_sine<A, T>(level, held, source, solution, inverse, sines);                                       \
    }
SOLVE(group_poisson_sine_f32, Fast, float, 4)
SOLVE(group_poisson_sine_f64, Fast, double, 2)
SOLVE(group_poisson_sine_exact_f32, Exact, float, 3)
SOLVE(group_poisson_sine_exact_f64, Exact, double, 2)
