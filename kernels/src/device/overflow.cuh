// Sums of weights that may exceed 64 bits: the twin of add_weights in overflow.rs.
#pragma once
#include "device/cuda/real.cuh"

/// Adds a weight to a cell; `overflow` becomes the number behind that of the last cell whose sum has exceeded 64 bits. It is
/// null where none can.
__device__ inline void add_weight(unsigned long long *mass, size_t cell, unsigned long long weight,
                                  unsigned long long *overflow) {
    if (!overflow) {
        // without a result, an addition takes less time
        atomicAdd(mass + cell, weight);
        return;
    }
    const unsigned long long before = atomicAdd(mass + cell, weight);
    if (before + weight < before) atomicMax(overflow, (unsigned long long)(cell + 1));
}
