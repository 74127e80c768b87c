// A barrier of all blocks of a kernel, which is launched together (`launch_together` in mod.rs).
#pragma once
#include <cooperative_groups.h>

/// A barrier of all threads of all blocks. What is written before is visible behind it.
__device__ inline void wait_for_all_blocks() {
    if (gridDim.x == 1) __syncthreads();
    else cooperative_groups::this_grid().sync();
}
