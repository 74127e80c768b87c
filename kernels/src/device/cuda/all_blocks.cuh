// Blocks that wait for each other: of kernels that are launched together (`launch_together` in mod.rs).
#pragma once
#include <cooperative_groups.h>

/// Waits until all threads of all blocks are here; they see then what each has written.
__device__ inline void wait_for_all_blocks() {
    if (gridDim.x == 1) __syncthreads();
    else cooperative_groups::this_grid().sync();
}
