// The equation of each group of a level by sine transforms, its boundary values gathered first: one block a group, one
// thread a line.
//
// The working set lies in shared memory with cell (i, j, k) at 272 k + 16 j + (i ^ j): lines along every axis are then
// read without bank conflicts. The first transform (along z) takes its input from memory, the last leaves its output
// there; the one along x stays in registers until it is undone.
#include "operations/group_poisson/group.cuh"
#include "operations/group_poisson/sine.cuh"
#include <type_traits>

constexpr int PLANE = FACE_CELLS + GROUP;

__device__ constexpr int swizzled(int i, int j, int k) { return k * PLANE + j * GROUP + (i ^ j); }

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

/// Transforms the lines along x, divides by the eigenvalues, transforms back. `inverse` is the same with x and y
/// exchanged: threads of a warp differ in y.
template <typename A, typename T>
__device__ __forceinline__ void divide_along_x(const Sines<T> &sines, const T *inverse, T *values) {
    const int j = threadIdx.x % GROUP, k = threadIdx.x / GROUP;
    T line[GROUP], out[GROUP];
#pragma unroll
    for (int i = 0; i < GROUP; i++) line[i] = values[swizzled(i, j, k)];
    const auto along_x = [&](const T(&from)[GROUP], T(&to)[GROUP]) {
        if constexpr (std::is_same<A, Exact>::value) apply(sines, from, to);
        else transform<A>(sines, from, to);
    };
    along_x(line, out);
#pragma unroll
    for (int i = 0; i < GROUP; i++) out[i] *= inverse[cell(j, i, k)];
    along_x(out, line);
#pragma unroll
    for (int i = 0; i < GROUP; i++) values[swizzled(i, j, k)] = line[i];
}

template <typename A, typename T>
__device__ __forceinline__ void group_poisson_sine(const Level &level, const GhostRequest<T> &request,
                                                   const PoissonSource<T> &source, const Solution<T> &solution,
                                                   const T *inverse, const Sines<T> &sines) {
    __shared__ T values[GROUP * PLANE];
    __shared__ T ghosts[GHOST_CELLS];
    __shared__ T room;
    static_assert(GHOST_SCRATCH <= GROUP * PLANE, "the gather works where the transforms do later");
    const uint32_t g = request.group();
    const uint32_t slot = level.slots[g];
    const int t = threadIdx.x, i = t % GROUP, j = t / GROUP;

    // read before the boundary values, used after them
    T line[GROUP], out[GROUP];
#pragma unroll
    for (int k = 0; k < GROUP; k++) line[k] = source.raw(slot, k * FACE_CELLS + t);
    load_boundary(level, g, request, ghosts, values);
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

    transform<A>(sines, line, out);
#pragma unroll
    for (int k = 0; k < GROUP; k++) values[swizzled(i, j, k)] = out[k];
    __syncthreads();
    transform_along_y<A>(sines, values);
    __syncthreads();
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
        name(Level level, GhostRequest<T> request, PoissonSource<T> source, Solution<T> solution, const T *inverse,    \
             Sines<T> sines) {                                                                                         \
        group_poisson_sine<A, T>(level, request, source, solution, inverse, sines);                                    \
    }
SOLVE(group_poisson_sine_f32, Fast, float, 4)
SOLVE(group_poisson_sine_f64, Fast, double, 2)
SOLVE(group_poisson_sine_exact_f32, Exact, float, 3)
SOLVE(group_poisson_sine_exact_f64, Exact, double, 2)
