// A barrier of all blocks of a kernel that is launched with `Blocks::Together` (mod.rs).
#pragma once
#include <cooperative_groups.h>

/// A barrier of all threads of all blocks. Writes before the barrier are visible after it.
__device__ inline void wait_for_all_blocks() {
    if (gridDim.x == 1) __syncthreads();
    else cooperative_groups::this_grid().sync();
}
