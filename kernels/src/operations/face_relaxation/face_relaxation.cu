// Solutions of groups at their faces: the twin of cpu.rs. One block a group.
//
// Planes of the faces lie in shared memory with cell (column, row) at 272 plane + 16 row + (column ^ row).
#include "operations/coarse_correction/padded.cuh"
#include "operations/group_poisson/group.cuh"

constexpr int PLANES = FACES * PLANE;

/// The place of a cell of a plane.
__device__ constexpr int in_plane(int plane, int column, int row) { return swizzled(column, row, plane); }

/// How ghosts change, and of which groups: the twin of cuda.rs.
template <typename T> struct Relaxation {
    const T *error;         // [slots, 8, 8, 8]
    const uint32_t *groups; // the group of each block
    T factor;
    T neighbours_corrected; // 1: the neighbours were solved with the error, 0: without it
};

/// Half of the coefficients of a line: even-numbered ones, or odd ones.
template <int ODD, typename A, typename T>
INLINE void half_transform(const Sines<T> &sines, const T (&line)[GROUP], T (&out)[GROUP / 2]) {
    T values[GROUP / 2];
#pragma unroll
    for (int n = 0; n < GROUP / 2; n++)
        values[n] = ODD ? line[n] - line[GROUP - 1 - n] : line[n] + line[GROUP - 1 - n];
#pragma unroll
    for (int q = 0; q < GROUP / 2; q++) {
        T sum = sines(2 * q + ODD, 0) * values[0];
#pragma unroll
        for (int n = 1; n < GROUP / 2; n++) sum = A::multiply_add(sines(2 * q + ODD, n), values[n], sum);
        out[q] = sum;
    }
}

/// The same as the processor computes it along rows.
template <int ODD, typename T>
INLINE void half_apply(const Sines<T> &sines, const T (&line)[GROUP], T (&out)[GROUP / 2]) {
#pragma unroll
    for (int q = 0; q < GROUP / 2; q++) {
        T sum = sines(2 * q + ODD, 0) * line[0];
#pragma unroll
        for (int n = 1; n < GROUP; n++) sum += sines(2 * q + ODD, n) * line[n];
        out[q] = sum;
    }
}

/// Transforms all planes along columns or rows, in place: three warps take even coefficients of the lines of two planes
/// each, three more the odd ones.
template <typename A, bool ROWS, typename T>
__device__ __forceinline__ void transform_lines(const Sines<T> &sines, T *planes) {
    const int warp = threadIdx.x / 32, plane = 2 * (warp % 3) + threadIdx.x % 32 / GROUP, at = threadIdx.x % GROUP;
    const bool odd = warp >= 3, works = warp < 6;
    const auto place = [&](int n) { return ROWS ? in_plane(plane, n, at) : in_plane(plane, at, n); };
    T line[GROUP], out[GROUP / 2];
    if (works) {
#pragma unroll
        for (int n = 0; n < GROUP; n++) line[n] = planes[place(n)];
        if constexpr (ROWS && std::is_same<A, Exact>::value) {
            if (odd) half_apply<1>(sines, line, out);
            else half_apply<0>(sines, line, out);
        } else {
            if (odd) half_transform<1, A>(sines, line, out);
            else half_transform<0, A>(sines, line, out);
        }
    }
    __syncthreads();
    if (works) {
#pragma unroll
        for (int q = 0; q < GROUP / 2; q++) planes[place(2 * q + odd)] = out[q];
    }
    __syncthreads();
}

template <typename A, typename T> __device__ __forceinline__ void transform_planes(const Sines<T> &sines, T *planes) {
    transform_lines<A, false>(sines, planes);
    transform_lines<A, true>(sines, planes);
}

/// Sums of a line's modes in the outermost cell, even-numbered ones and odd ones: the two halves, then the halves of what
/// is left.
template <typename A, typename T> INLINE void sum_of_halves(const Sines<T> &sines, const T (&line)[GROUP], T *sums) {
    T terms[GROUP / 2];
#pragma unroll
    for (int k = 0; k < 8; k++) terms[k] = A::multiply_add(sines(k + 8, 0), line[k + 8], sines(k, 0) * line[k]);
#pragma unroll
    for (int k = 0; k < 4; k++) terms[k] = terms[k] + terms[k + 4];
    sums[0] = terms[0] + terms[2];
    sums[1] = terms[1] + terms[3];
}

/// Sums modes along each axis, [2, 2, 2] per thread: at its place of the planes across x, y and z. The modes are complete.
template <typename A, typename T>
__device__ __forceinline__ void sum_modes(const Sines<T> &sines, const T *values, T (&sums)[FACES]) {
    const int column = threadIdx.x % GROUP, row = threadIdx.x / GROUP;
    T line[GROUP];
#pragma unroll
    for (int n = 0; n < GROUP; n++) line[n] = values[swizzled(n, column, row)];
    sum_of_halves<A>(sines, line, sums);
#pragma unroll
    for (int n = 0; n < GROUP; n++) line[n] = values[swizzled(column, n, row)];
    sum_of_halves<A>(sines, line, sums + 2);
#pragma unroll
    for (int n = 0; n < GROUP; n++) line[n] = values[swizzled(column, row, n)];
    sum_of_halves<A>(sines, line, sums + 4);
}

/// The modes of the solution with boundary values and no matter, from transformed planes.
template <typename A, typename T>
__device__ __forceinline__ void boundary_modes(const Sines<T> &sines, const T *inverse, const T *planes, T *values) {
    const int t = threadIdx.x, i = t % GROUP, j = t / GROUP;
    const T outermost_x = sines(i, 0), outermost_y = sines(j, 0);
    const T even = planes[in_plane(4, i, j)], odd = planes[in_plane(5, i, j)];
#pragma unroll
    for (int k = 0; k < GROUP; k++) {
        const T across_x = planes[in_plane(i & 1, j, k)], across_y = planes[in_plane(2 + (j & 1), i, k)];
        const T first = A::multiply_add(outermost_y, across_y, outermost_x * across_x);
        const T sum = A::multiply_add(sines(k, 0), k & 1 ? odd : even, first);
        values[swizzled(i, j, k)] = -(inverse[k * FACE_CELLS + t] * sum);
    }
}

/// The group's faces from its ghosts, which are complete at the beginning of `planes`, and from what its matter alone is
/// there.
template <typename A, typename T>
__device__ __forceinline__ void solve_faces(const Sines<T> &sines, const T *inverse, const T (&own)[FACES], T *planes,
                                            T *values, T *room, T *faces) {
    const int t = threadIdx.x, column = t % GROUP, row = t / GROUP;
    const T mean = boundary_mean(planes, room);
    T here[FACES];
#pragma unroll
    for (int face = 0; face < FACES; face++) here[face] = planes[face * FACE_CELLS + t] - mean;
    __syncthreads();
#pragma unroll
    for (int plane = 0; plane < FACES; plane += 2) {
        planes[in_plane(plane, column, row)] = here[plane] + here[plane + 1];
        planes[in_plane(plane + 1, column, row)] = here[plane] - here[plane + 1];
    }
    __syncthreads();
    transform_planes<A>(sines, planes);
    boundary_modes<A>(sines, inverse, planes, values);
    __syncthreads();
    sum_modes<A>(sines, values, here);
#pragma unroll
    for (int plane = 0; plane < FACES; plane++) planes[in_plane(plane, column, row)] = here[plane] + own[plane];
    __syncthreads();
    transform_planes<A>(sines, planes);
#pragma unroll
    for (int plane = 0; plane < FACES; plane += 2) {
        const T even = planes[in_plane(plane, column, row)], odd = planes[in_plane(plane + 1, column, row)];
        faces[plane * FACE_CELLS + t] = (even + odd) + mean;
        faces[(plane + 1) * FACE_CELLS + t] = (even - odd) + mean;
    }
}

/// `potential`: the faces go there; what the request reads of it is on another level.
template <typename A, typename T>
__device__ __forceinline__ void start_faces(const Level &level, const GhostRequest<T> &request,
                                            const PoissonSource<T> &source, double h, T *own, T *potential,
                                            const T *inverse, const Sines<T> &sines) {
    __shared__ T values[GROUP * PLANE];
    __shared__ T planes[PLANES];
    __shared__ T room;
    static_assert(GHOST_SCRATCH <= GROUP * PLANE, "the gather works where the transforms do later");
    const uint32_t g = blockIdx.x, slot = level.slots[g];
    const int t = threadIdx.x, i = t % GROUP, j = t / GROUP;

    // read before the boundary values, used after them
    T line[GROUP], out[GROUP];
#pragma unroll
    for (int k = 0; k < GROUP; k++) line[k] = source.raw(slot, k * FACE_CELLS + t);
    gather_ghosts(level, g, request, planes, values);
    if (request.origin != AS_HELD) {
        T *held = request.held + size_t(g) * GHOST_CELLS;
        for (int c = t; c < GHOST_CELLS; c += FACE_CELLS) held[c] = planes[c];
    }
    __syncthreads();

#pragma unroll
    for (int k = 0; k < GROUP; k++) line[k] = source.template of_raw<T>(line[k], slot, k * FACE_CELLS + t, h * h);
    transform_along_z_and_y<A>(sines, line, values);
    // along x: the inverse is the same with x and y exchanged
#pragma unroll
    for (int n = 0; n < GROUP; n++) line[n] = values[swizzled(n, i, j)];
    transform_along_x<A>(sines, line, out);
#pragma unroll
    for (int n = 0; n < GROUP; n++) values[swizzled(n, i, j)] = out[n] * inverse[cell(i, n, j)];
    __syncthreads();
    T sums[FACES];
    sum_modes<A>(sines, values, sums);
#pragma unroll
    for (int plane = 0; plane < FACES; plane++) own[size_t(g) * GHOST_CELLS + plane * FACE_CELLS + t] = sums[plane];
    __syncthreads();
    solve_faces<A>(sines, inverse, sums, planes, values, &room, potential + size_t(slot) * GROUP_CELLS);
}

template <typename A, typename T>
__device__ __forceinline__ void relax_faces(const Level &level, const Relaxation<T> &relaxation, const T *own, T *ghosts,
                                            T *potential, const T *inverse, const Sines<T> &sines) {
    __shared__ T values[GROUP * PLANE];
    __shared__ T planes[PLANES];
    __shared__ T room;
    const uint32_t g = relaxation.groups[blockIdx.x], slot = level.slots[g];
    const int t = threadIdx.x;
    T sums[FACES];
#pragma unroll
    for (int plane = 0; plane < FACES; plane++) sums[plane] = own[size_t(g) * GHOST_CELLS + plane * FACE_CELLS + t];
    load_ghost_errors(level, g, relaxation.error, values);
    const uint32_t *row = level.neighbours + size_t(g) * DIRECTIONS;
    const uint32_t outside = level.outside[g];
    T *held = ghosts + size_t(g) * GHOST_CELLS;
#pragma unroll
    for (int face = 0; face < FACES; face++) {
        const int at = face * FACE_CELLS + t;
        const uint32_t neighbour = outside >> face & 1 ? NONE : row[face_direction(face)];
        T ghost = held[at];
        if (neighbour != NONE) {
            const T value = potential[size_t(neighbour) * GROUP_CELLS + (face ^ 1) * FACE_CELLS + t];
            const T error = ghost_error(values, face, t % GROUP, t / GROUP);
            ghost = (ghost + error) + relaxation.factor * ((value - ghost) - relaxation.neighbours_corrected * error);
            held[at] = ghost;
        }
        planes[at] = ghost;
    }
    __syncthreads();
    solve_faces<A>(sines, inverse, sums, planes, values, &room, potential + size_t(slot) * GROUP_CELLS);
}

#define FACES_OF(A, T, suffix, starts, relaxes)                                                                        \
    extern "C" __global__ void __launch_bounds__(FACE_CELLS, starts)                                                   \
        start_faces_##suffix(Level level, GhostRequest<T> request, PoissonSource<T> source, double h, T *own,          \
                             T *potential, const T *inverse, Sines<T> sines) {                                         \
        start_faces<A, T>(level, request, source, h, own, potential, inverse, sines);                                  \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(FACE_CELLS, relaxes)                                                  \
        relax_faces_##suffix(Level level, Relaxation<T> relaxation, const T *own, T *ghosts, T *potential,             \
                             const T *inverse, Sines<T> sines) {                                                       \
        relax_faces<A, T>(level, relaxation, own, ghosts, potential, inverse, sines);                                  \
    }
FACES_OF(Fast, float, f32, 4, 6)
FACES_OF(Fast, double, f64, 2, 2)
FACES_OF(Exact, float, exact_f32, 4, 4)
FACES_OF(Exact, double, exact_f64, 2, 2)
