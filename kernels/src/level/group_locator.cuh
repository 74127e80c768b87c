// Finds the group at a place of the box: the twin of group_locator.rs.
#pragma once
#include "layout.cuh"

/// Width of the buffer inside the faces of a level, in 2^-32 of a group: two cells.
constexpr uint32_t BUFFER = 2u << 28;

struct GroupLocator {
    uint32_t root[3];
    uint32_t slots;             // of the pools; numbers from here on are of groups without one
    const uint32_t *root_slots; // [z, y, x]
    const uint32_t *children;   // [slots, 8]
    const uint32_t *numbers;    // [slots]
    const uint32_t *buffers;    // [slots]

    __device__ uint32_t cells(int axis, int level) const { return (root[axis] * GROUP) << level; }

    __device__ uint32_t slot(int level, const uint32_t (&group)[3]) const {
        uint32_t slot = root_slots[((group[2] >> level) * root[1] + (group[1] >> level)) * root[0] + (group[0] >> level)];
        for (int finer = level - 1; finer >= 0 && slot != NONE; finer--) {
            const uint32_t octant =
                (group[0] >> finer & 1) | (group[1] >> finer & 1) << 1 | (group[2] >> finer & 1) << 2;
            slot = children[size_t(slot) * OCTANTS + octant];
        }
        return slot < slots ? slot : NONE;
    }

    /// True where a place in a group, in 2^-32 of the group's width, is in the buffer of one of `sides`.
    __device__ static bool is_in_buffer(uint32_t sides, const uint32_t (&place)[3]) {
        if (sides == 0) return false;
        int side[3];
        for (int axis = 0; axis < 3; axis++) side[axis] = int(place[axis] >= 0u - BUFFER) - int(place[axis] < BUFFER);
        return sides >> direction(side[0], side[1], side[2]) & 1;
    }

    /// The slot of the group, of levels up to `level`, that a particle at a position belongs to; its level goes to `level`.
    __device__ uint32_t home(const uint32_t (&position)[3], int &level) const {
        uint64_t at[3];
        for (int axis = 0; axis < 3; axis++) at[axis] = uint64_t(position[axis]) * root[axis];
        uint32_t slot = root_slots[((at[2] >> 32) * root[1] + (at[1] >> 32)) * root[0] + (at[0] >> 32)];
        uint32_t parent = slot;
        for (int coarser = 0; coarser < level; coarser++) {
            const int shift = 31 - coarser;
            const uint32_t octant = (at[0] >> shift & 1) | (at[1] >> shift & 1) << 1 | (at[2] >> shift & 1) << 2;
            const uint32_t child = children[size_t(slot) * OCTANTS + octant];
            if (child == NONE) {
                level = coarser;
                break;
            }
            parent = slot;
            slot = child;
        }
        if (level == 0) return slot;
        const uint32_t place[3] = {uint32_t(at[0] << level), uint32_t(at[1] << level), uint32_t(at[2] << level)};
        if (!is_in_buffer(buffers[slot], place)) return slot;
        level--;
        return parent;
    }
};
