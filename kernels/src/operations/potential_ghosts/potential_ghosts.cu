// Ghost values of the potential of a level: one block a group, one thread a place of a face.
#include "operations/potential_ghosts/potential_ghosts.cuh"

template <typename T> __device__ void potential_ghosts(const Level &level, const GhostRequest<T> &request) {
    __shared__ T ghosts[GHOST_CELLS];
    __shared__ T scratch[GHOST_SCRATCH];
    const uint32_t g = blockIdx.x;
    gather_ghosts(level, g, request, ghosts, scratch);
    // what this thread has gathered itself
    T *held = request.held + size_t(g) * GHOST_CELLS;
    for (int c = threadIdx.x; c < GHOST_CELLS; c += FACE_CELLS) held[c] = ghosts[c];
}

#define BOTH(T, suffix)                                                                                                \
    extern "C" __global__ void potential_ghosts_##suffix(Level level, GhostRequest<T> request) {                       \
        potential_ghosts<T>(level, request);                                                                           \
    }
BOTH(float, f32)
BOTH(double, f64)
