// Cells that are swept at first order: the twin of marks.rs.
#pragma once
#include "level/level.cuh"

constexpr int MARK_ROWS = GROUP * GROUP;
/// How far a mark is seen.
constexpr int MARK_DEPTH = HYDRO_GHOSTS + 1;
/// A group with the marks around it, along one axis. A row is one number: bit and row n are cell n - 4 of the group.
constexpr int MARK_WIDTH = GROUP + 2 * MARK_DEPTH;

/// A cube of bits, [24, 24] rows.
using MarkBits = uint32_t[MARK_WIDTH * MARK_WIDTH];

/// The marks of a row across groups at block coordinates (y, z) counted from -4, for directions (., dy, dz).
__device__ inline uint32_t marks_of_row(const uint32_t *row, const uint16_t *known, int y, int z) {
    const int dy = (y >= GROUP) - (y < 0), dz = (z >= GROUP) - (z < 0);
    const int place = (z - dz * GROUP) * GROUP + y - dy * GROUP;
    uint32_t bits = 0;
    for (int dx = -1; dx <= 1; dx++) {
        const uint32_t slot = row[direction(dx, dy, dz)];
        if (slot == NONE) continue;
        const uint32_t marks = known[size_t(slot) * MARK_ROWS + place];
        bits |= dx < 0    ? marks >> (GROUP - MARK_DEPTH)
                : dx == 0 ? marks << MARK_DEPTH
                          : (marks & ((1u << MARK_DEPTH) - 1)) << (GROUP + MARK_DEPTH);
    }
    return bits;
}

/// The place inside whose mirror image lies at n, which is beyond one of these faces of the domain; else n.
__device__ inline int mirrored(int n, bool low, bool high) {
    if (low && n < 0) return -1 - n;
    if (high && n >= GROUP) return 2 * GROUP - 1 - n;
    return n;
}

/// Gathers the marks in and around group g, by all threads of the block.
__device__ inline void gather_marks(const Level &level, uint32_t g, const uint16_t *known, MarkBits &bits) {
    const uint32_t *row = level.neighbours + size_t(g) * DIRECTIONS;
    const uint32_t outside = level.outside[g];
    for (int n = threadIdx.x; n < MARK_WIDTH * MARK_WIDTH; n += blockDim.x) {
        const int y = mirrored(n % MARK_WIDTH - MARK_DEPTH, outside >> 2 & 1, outside >> 3 & 1);
        const int z = mirrored(n / MARK_WIDTH - MARK_DEPTH, outside >> 4 & 1, outside >> 5 & 1);
        uint32_t marks = marks_of_row(row, known, y, z);
        for (int i = 0; i < MARK_DEPTH; i++) {
            if (outside & 1) {
                const int beyond = MARK_DEPTH - 1 - i, inside = MARK_DEPTH + i;
                marks = (marks & ~(1u << beyond)) | (marks >> inside & 1) << beyond;
            }
            if (outside & 2) {
                const int beyond = MARK_WIDTH - MARK_DEPTH + i, inside = MARK_WIDTH - MARK_DEPTH - 1 - i;
                marks = (marks & ~(1u << beyond)) | (marks >> inside & 1) << beyond;
            }
        }
        bits[n] = marks;
    }
}

/// The same cells and their neighbours along an axis, by all threads of the block.
__device__ inline void spread_marks(const MarkBits &from, int axis, MarkBits &to) {
    const int rows = MARK_WIDTH * MARK_WIDTH;
    const int stride = axis == 1 ? 1 : MARK_WIDTH;
    for (int n = threadIdx.x; n < rows; n += blockDim.x) {
        if (axis == 0) {
            to[n] = from[n] | from[n] << 1 | from[n] >> 1;
        } else {
            to[n] = (n >= stride ? from[n - stride] : 0) | from[n] | (n + stride < rows ? from[n + stride] : 0);
        }
    }
}

/// The directions of the groups that see a mark of row (j, k).
__device__ inline uint32_t marks_reach(uint32_t row, int j, int k) {
    const uint32_t low = (1u << MARK_DEPTH) - 1, high = low << (GROUP - MARK_DEPTH);
    uint32_t mask = 0;
    for (int dz = -(k < MARK_DEPTH); dz <= int(k + MARK_DEPTH >= GROUP); dz++)
        for (int dy = -(j < MARK_DEPTH); dy <= int(j + MARK_DEPTH >= GROUP); dy++)
            for (int dx = -int((row & low) != 0); dx <= int((row & high) != 0); dx++) mask |= 1u << direction(dx, dy, dz);
    return mask;
}
