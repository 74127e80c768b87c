// Whole blocks of groups and their ghost cells: what tests compare with ghosts.rs. One block a group.
#include "level/ghosts/ghosts.cuh"

template <typename T>
__device__ void gather_blocks(const Level &level, const T *fluid, const EarlierFluid<T> &earlier, const Eos<T> &eos,
                              T *blocks) {
    constexpr size_t VALUES = size_t(FIELDS) * HYDRO_BLOCK * HYDRO_BLOCK * HYDRO_BLOCK;
    gather_block(Ghosts<T>(level, blockIdx.x, fluid, earlier), eos, blocks + blockIdx.x * VALUES);
}

#define BOTH(T, suffix)                                                                                                \
    extern "C" __global__ void gather_blocks_##suffix(const __grid_constant__ Level level, const T *fluid,             \
                                                      const EarlierFluid<T> earlier, const Eos<T> eos, T *blocks) {         \
        gather_blocks<T>(level, fluid, earlier, eos, blocks);                                                          \
    }
BOTH(float, f32)
BOTH(double, f64)
