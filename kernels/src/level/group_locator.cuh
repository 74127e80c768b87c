// Finds the group at a place of the box: the twin of group_locator.rs.
#pragma once
#include "layout.cuh"

struct GroupLocator {
    uint32_t root[3];
    uint32_t slots;             // of the pools; numbers from here on are of groups without one
    const uint32_t *root_slots; // [z, y, x]
    const uint32_t *children;   // [slots, 8]
    const uint32_t *numbers;    // [slots]

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

    /// The slot of the finest group, of levels up to `level`, at a position; its level goes to `level`.
    __device__ uint32_t finest(const uint32_t (&position)[3], int &level) const {
        uint64_t at[3];
        for (int axis = 0; axis < 3; axis++) at[axis] = uint64_t(position[axis]) * root[axis];
        uint32_t slot = root_slots[((at[2] >> 32) * root[1] + (at[1] >> 32)) * root[0] + (at[0] >> 32)];
        for (int coarser = 0; coarser < level; coarser++) {
            const int shift = 31 - coarser;
            const uint32_t octant = (at[0] >> shift & 1) | (at[1] >> shift & 1) << 1 | (at[2] >> shift & 1) << 2;
            const uint32_t child = children[size_t(slot) * OCTANTS + octant];
            if (child == NONE) {
                level = coarser;
                return slot;
            }
            slot = child;
        }
        return slot;
    }
};
