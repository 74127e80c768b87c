// Ghost values of the potential, gathered by a block of FACE_CELLS threads: the twin of cpu.rs and coarse.rs.
#pragma once
#include "level/level.cuh"
#include "device/cuda/real.cuh"

constexpr int GHOST_CELLS = FACES * FACE_CELLS;

/// Coarse cells beyond a patch on each side, the patch with them along one axis, coarse cells along one axis that the
/// tangential parabolas of a face reach.
constexpr int COARSE_MARGIN = 2;
constexpr int COARSE_WIDTH = PATCH + 2 * COARSE_MARGIN;
constexpr int COARSE_CELLS = COARSE_WIDTH * COARSE_WIDTH * COARSE_WIDTH;
constexpr int COARSE_REACH = PATCH + 2;
/// Values of shared memory that the interpolation works in.
constexpr int GHOST_SCRATCH = COARSE_CELLS + FACES * COARSE_REACH * COARSE_REACH;

enum GhostOrigin : int32_t { FROM_COARSE = 0, FROM_SIBLING = 1, AS_HELD = 2 };

/// Which ghosts, and what they come from: the twin of cuda.rs.
template <typename T> struct GhostRequest {
    const T *potential;     // [slots, 16, 16, 16]
    const T *from;          // coarser level at an earlier time, [places, 16, 16, 16]; null: it is in potential
    const T *to;            // at a later time
    const uint32_t *places; // of each slot
    T *held;                // [groups, 6, 16, 16]
    T weight;
    int32_t origin;

    __device__ T coarse(uint32_t slot, int cell) const {
        if (!from) return potential[size_t(slot) * GROUP_CELLS + cell];
        const size_t at = size_t(places[slot]) * GROUP_CELLS + cell;
        return from[at] + weight * (to[at] - from[at]);
    }
};

/// The parabola through three neighbouring coarse centres, a quarter of a cell from the middle one towards near.
template <typename T> INLINE T parabola(T far, T middle, T near) {
    return middle + (T(0.15625) * (near - middle) - T(0.09375) * (far - middle));
}

/// The value one cell further on the parabola through three cells, from the last one back.
template <typename T> INLINE T beyond(T first, T second, T third) { return third + T(3.0) * (first - second); }

/// Distance between cells one apart along an axis, in a cube with n cells a side.
INLINE constexpr int stride(int axis, int n) { return axis == 0 ? 1 : axis == 1 ? n : n * n; }

/// The two axes of a face across `axis`, in the order x, y, z.
INLINE constexpr int first_axis(int axis) { return axis == 0 ? 1 : 0; }
INLINE constexpr int second_axis(int axis) { return axis == 2 ? 1 : 2; }

/// Offset in a group of the cell `depth` cells inside a face, at place (m, n) of it.
INLINE constexpr int face_cell(int face, int depth, int m, int n) {
    const int axis = face / 2, layer = face & 1 ? GROUP - 1 - depth : depth;
    return layer * stride(axis, GROUP) + m * stride(first_axis(axis), GROUP) + n * stride(second_axis(axis), GROUP);
}

/// The entry of the neighbour across a face in a row of neighbours.
INLINE constexpr int face_direction(int face) { return CENTRE + (face & 1 ? 1 : -1) * stride(face / 2, 3); }

/// Copies the surroundings of a group's patch of the coarser level to `values`, [12, 12, 12], and continues them beyond
/// the faces of the domain, axis by axis.
template <typename T>
__device__ void load_coarse_block(const Level &level, uint32_t g, const GhostRequest<T> &request, T *values) {
    const uint32_t *parents = level.parents + size_t(g) * DIRECTIONS;
    const int octant = level.octants[g];
    for (int c = threadIdx.x; c < COARSE_CELLS; c += FACE_CELLS) {
        int at[3] = {c % COARSE_WIDTH, c / COARSE_WIDTH % COARSE_WIDTH, c / (COARSE_WIDTH * COARSE_WIDTH)};
        int towards = CENTRE;
#pragma unroll
        for (int axis = 0; axis < 3; axis++) {
            at[axis] += (octant >> axis & 1) * PATCH - COARSE_MARGIN;
            const int step = at[axis] < 0 ? -1 : at[axis] >= GROUP ? 1 : 0;
            at[axis] -= step * GROUP;
            towards += step * stride(axis, 3);
        }
        const uint32_t slot = parents[towards];
        // where the octree is not nested, what is computed from here shows it
        values[c] = slot == NONE ? T(NAN) : request.coarse(slot, cell(at[0], at[1], at[2]));
    }
    __syncthreads();
    const uint32_t outside = level.outside[g];
    if (!outside) return;
    for (int face = 0; face < FACES; face++) {
        if (!(outside >> face & 1)) continue;
        const int axis = face / 2;
        const int normal = stride(axis, COARSE_WIDTH);
        const int outward = face & 1 ? normal : -normal;
        const int layer = face & 1 ? COARSE_MARGIN + PATCH - 1 : COARSE_MARGIN;
        const int m = threadIdx.x % COARSE_WIDTH, n = threadIdx.x / COARSE_WIDTH;
        if (n < COARSE_WIDTH) {
            T *outermost = values + layer * normal + m * stride(first_axis(axis), COARSE_WIDTH) +
                           n * stride(second_axis(axis), COARSE_WIDTH);
            for (int step = 1; step <= COARSE_MARGIN; step++)
                outermost[step * outward] = beyond(outermost[(step - 1) * outward], outermost[(step - 2) * outward],
                                                   outermost[(step - 3) * outward]);
        }
        __syncthreads();
    }
}

/// Interpolates the faces in the bits of `faces`: across the face, then along its two axes. `scratch` has GHOST_SCRATCH
/// values.
template <typename T>
__device__ void interpolate_ghosts(const Level &level, uint32_t g, const GhostRequest<T> &request, uint32_t faces,
                                   T *ghosts, T *scratch) {
    T *values = scratch;                 // [12, 12, 12]
    T *across = scratch + COARSE_CELLS;  // [6, 10, 10]
    T *along = scratch;                  // [6, 10, 16], when the values are done with
    load_coarse_block(level, g, request, values);
    constexpr int ACROSS = COARSE_REACH * COARSE_REACH, ALONG = COARSE_REACH * GROUP;
    for (int c = threadIdx.x; c < FACES * ACROSS; c += FACE_CELLS) {
        const int face = c / ACROSS, axis = face / 2, m = c % COARSE_REACH, n = c % ACROSS / COARSE_REACH;
        if (!(faces >> face & 1)) continue;
        // the coarse cell just outside, and the direction of the patch from there
        const int layer = face & 1 ? COARSE_MARGIN + PATCH : COARSE_MARGIN - 1;
        const int normal = stride(axis, COARSE_WIDTH), inward = face & 1 ? -normal : normal;
        const T *middle = values + layer * normal + (m + 1) * stride(first_axis(axis), COARSE_WIDTH) +
                          (n + 1) * stride(second_axis(axis), COARSE_WIDTH);
        across[c] = parabola(middle[-inward], middle[0], middle[inward]);
    }
    __syncthreads();
    for (int c = threadIdx.x; c < FACES * ALONG; c += FACE_CELLS) {
        const int face = c / ALONG, n = c % ALONG / GROUP, m = c % GROUP;
        if (!(faces >> face & 1)) continue;
        const T *row = across + (face * COARSE_REACH + n) * COARSE_REACH + m / 2;
        along[c] = m & 1 ? parabola(row[0], row[1], row[2]) : parabola(row[2], row[1], row[0]);
    }
    __syncthreads();
    const int m = threadIdx.x % GROUP, n = threadIdx.x / GROUP;
    for (int face = 0; face < FACES; face++) {
        if (!(faces >> face & 1)) continue;
        const T *column = along + face * ALONG + n / 2 * GROUP + m;
        ghosts[face * FACE_CELLS + threadIdx.x] = n & 1 ? parabola(column[0], column[GROUP], column[2 * GROUP])
                                                        : parabola(column[2 * GROUP], column[GROUP], column[0]);
    }
}

/// Gathers the ghosts of group g into shared memory, [6, 16, 16]: thread t those at place t of each face. Every thread
/// of the block calls it, and waits for the others before it reads theirs or `scratch` changes.
template <typename T>
__device__ void gather_ghosts(const Level &level, uint32_t g, const GhostRequest<T> &request, T *ghosts, T *scratch) {
    const int m = threadIdx.x % GROUP, n = threadIdx.x / GROUP;
    const uint32_t *row = level.neighbours + size_t(g) * DIRECTIONS;
    const uint32_t outside = level.outside[g];
    const bool is_root = level.parents[size_t(g) * DIRECTIONS + CENTRE] == NONE;
    const T *held = request.held + size_t(g) * GHOST_CELLS;
    uint32_t faces = 0;
#pragma unroll
    for (int face = 0; face < FACES; face++) {
        const int at = face * FACE_CELLS + threadIdx.x;
        const bool beside = request.origin == FROM_SIBLING && !(outside >> face & 1);
        const uint32_t sibling = beside ? row[face_direction(face)] : NONE;
        if (sibling != NONE) {
            ghosts[at] = request.potential[size_t(sibling) * GROUP_CELLS + face_cell(face ^ 1, 0, m, n)];
        } else if (request.origin == AS_HELD) {
            ghosts[at] = held[at];
        } else if (is_root) {
            const T *own = request.potential + size_t(level.slots[g]) * GROUP_CELLS;
            ghosts[at] = beyond(own[face_cell(face, 0, m, n)], own[face_cell(face, 1, m, n)],
                                own[face_cell(face, 2, m, n)]);
        } else {
            faces |= 1u << face;
        }
    }
    if (faces) interpolate_ghosts(level, g, request, faces, ghosts, scratch);
}
