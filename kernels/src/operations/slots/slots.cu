// Whole slots of pools copied, added, cleared: the twin of slots/mod.rs. One block a slot.
#include "level/level.cuh"

/// Copies slot from_slots[n] of one pool to slot to_slots[n] of another, n being the block.
template <typename T>
__device__ void copy_slots(int values, const T *from, const uint32_t *from_slots, T *to, const uint32_t *to_slots) {
    const T *source = from + size_t(from_slots[blockIdx.x]) * values;
    T *target = to + size_t(to_slots[blockIdx.x]) * values;
    for (int n = threadIdx.x; n < values; n += blockDim.x) target[n] = source[n];
}

/// Adds slot slots[n] of one pool to the same slot of another.
template <typename T> __device__ void add_slots(int values, const T *from, T *to, const uint32_t *slots) {
    const size_t first = size_t(slots[blockIdx.x]) * values;
    for (int n = threadIdx.x; n < values; n += blockDim.x) to[first + n] += from[first + n];
}

/// Fills slot slots[n] with zeros.
template <typename T> __device__ void clear_slots(int values, T *pool, const uint32_t *slots) {
    T *slot = pool + size_t(slots[blockIdx.x]) * values;
    for (int n = threadIdx.x; n < values; n += blockDim.x) slot[n] = T(0);
}

#define BOTH(T, suffix)                                                                                                \
    extern "C" __global__ void copy_slots_##suffix(int values, const T *from, const uint32_t *from_slots, T *to,       \
                                                   const uint32_t *to_slots) {                                         \
        copy_slots<T>(values, from, from_slots, to, to_slots);                                                         \
    }                                                                                                                  \
    extern "C" __global__ void add_slots_##suffix(int values, const T *from, T *to, const uint32_t *slots) {           \
        add_slots<T>(values, from, to, slots);                                                                         \
    }                                                                                                                  \
    extern "C" __global__ void clear_slots_##suffix(int values, T *pool, const uint32_t *slots) {                      \
        clear_slots<T>(values, pool, slots);                                                                           \
    }
BOTH(float, f32)
BOTH(double, f64)
