// CUDA C++ as the kernels use it, for a host compiler: included before a `.cu` file, which is otherwise compiled as it
// is, but for `__shared__`: scripts/emulate-gpu turns it into static variables and pointers to `emulator_dynamic`.
//
// | emulated | how |
// |---|---|
// | threads of a block | fibers, one after another; a thread runs until it waits (block.cpp) |
// | barriers, shuffles, votes | a thread waits for the others; one that some never reach ends the program |
// | shared memory | static variables, filled with 0xcd before every block |
// | atomics | plain operations: only one thread runs at a time |
// | a grid | one block after another, from the last to the first |
// | memory | mapped between pages that nobody may touch, filled with 0xcd (memory.cpp) |
//
// Not emulated: time; anything asynchronous; races, unless the order of threads (backward in every other block) or of
// blocks shows them; warp operations by some lanes only, which end the program; and what is in `#ifdef __CUDA_ARCH__`:
// approximate division and root are exact ones here.
#pragma once
#include "block.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#define __CUDACC__ 1
#define __host__
#define __device__
#define __global__
#define __forceinline__ inline
#define __noinline__
#define __grid_constant__
#define __launch_bounds__(...)
#define __align__(bytes)

struct alignas(8) float2 {
    float x, y;
};
struct alignas(16) double2 {
    double x, y;
};

using std::fmax;
using std::fmin;
using std::fmod;
using std::trunc;

/// As CUDA has them for mixed numbers; of real ones the other if one is not a number.
template <typename A, typename B> inline auto min(A a, B b) {
    using C = std::common_type_t<A, B>;
    if constexpr (std::is_floating_point_v<C>) return std::fmin(C(a), C(b));
    else return C(a) < C(b) ? C(a) : C(b);
}
template <typename A, typename B> inline auto max(A a, B b) {
    using C = std::common_type_t<A, B>;
    if constexpr (std::is_floating_point_v<C>) return std::fmax(C(a), C(b));
    else return C(a) > C(b) ? C(a) : C(b);
}

inline void __threadfence_system() {}
inline void __syncthreads() { emulator_barrier(false); }
inline int __syncthreads_or(int vote) { return emulator_barrier(vote != 0); }

/// The values of a warp's lanes.
template <typename V> struct Warp {
    static_assert(sizeof(V) <= sizeof(Lane) && std::is_trivially_copyable_v<V>);
    const Lane *lanes;

    Warp(const char *operation, unsigned mask, V value)
        : lanes(emulator_exchange(operation, mask, &value, sizeof value)) {}
    V operator[](unsigned lane) const {
        V value;
        memcpy(&value, lanes[lane].bytes, sizeof value);
        return value;
    }
    /// All of them combined, in the order of the lanes; `combine` does not mind the lanes that the warp does not have.
    template <typename Combine> V all(Combine combine) const {
        V result = (*this)[0];
        for (unsigned lane = 1; lane < 32; lane++) result = combine(result, (*this)[lane]);
        return result;
    }
};

inline unsigned lane_of_thread() { return threadIdx.x % 32; }

inline void __syncwarp(unsigned mask = ~0u) { Warp<int>("__syncwarp", mask, 0); }
template <typename V> inline V __shfl_sync(unsigned mask, V value, int lane) {
    return Warp<V>("__shfl_sync", mask, value)[unsigned(lane) % 32];
}
template <typename V> inline V __shfl_down_sync(unsigned mask, V value, unsigned distance) {
    const unsigned lane = lane_of_thread() + distance;
    return Warp<V>("__shfl_down_sync", mask, value)[lane < 32 ? lane : lane_of_thread()];
}
template <typename V> inline V __shfl_up_sync(unsigned mask, V value, unsigned distance) {
    const unsigned lane = lane_of_thread();
    return Warp<V>("__shfl_up_sync", mask, value)[lane < distance ? lane : lane - distance];
}
template <typename V> inline V __shfl_xor_sync(unsigned mask, V value, unsigned bits) {
    return Warp<V>("__shfl_xor_sync", mask, value)[(lane_of_thread() ^ bits) % 32];
}
inline unsigned __ballot_sync(unsigned mask, int vote) {
    const Warp<bool> votes("__ballot_sync", mask, vote != 0);
    unsigned ballot = 0;
    for (unsigned lane = 0; lane < 32 && lane < blockDim.x - threadIdx.x / 32 * 32; lane++)
        ballot |= unsigned(votes[lane]) << lane;
    return ballot;
}
inline int __any_sync(unsigned mask, int vote) { return __ballot_sync(mask, vote) != 0; }
inline int __all_sync(unsigned mask, int vote) { return __ballot_sync(mask, !vote) == 0; }
inline unsigned __reduce_add_sync(unsigned mask, unsigned value) {
    const Warp<unsigned> values("__reduce_add_sync", mask, value);
    unsigned sum = 0;
    for (unsigned lane = 0; lane < 32 && lane < blockDim.x - threadIdx.x / 32 * 32; lane++) sum += values[lane];
    return sum;
}
inline unsigned __reduce_min_sync(unsigned mask, unsigned value) {
    return Warp<unsigned>("__reduce_min_sync", mask, value).all([](unsigned a, unsigned b) { return a < b ? a : b; });
}
inline unsigned __reduce_max_sync(unsigned mask, unsigned value) {
    return Warp<unsigned>("__reduce_max_sync", mask, value).all([](unsigned a, unsigned b) { return a > b ? a : b; });
}
inline unsigned __reduce_or_sync(unsigned mask, unsigned value) {
    return Warp<unsigned>("__reduce_or_sync", mask, value).all([](unsigned a, unsigned b) { return a | b; });
}

/// Replaces what is at an address by `change` of it; what was there.
template <typename V, typename Change> inline V replaced(V *at, Change change) {
    const V before = *at;
    *at = change(before);
    return before;
}
inline unsigned atomicAdd(unsigned *at, unsigned value) {
    return replaced(at, [=](unsigned old) { return old + value; });
}
inline unsigned long long atomicAdd(unsigned long long *at, unsigned long long value) {
    return replaced(at, [=](unsigned long long old) { return old + value; });
}
inline unsigned atomicMin(unsigned *at, unsigned value) {
    return replaced(at, [=](unsigned old) { return old < value ? old : value; });
}
inline unsigned atomicMax(unsigned *at, unsigned value) {
    return replaced(at, [=](unsigned old) { return old > value ? old : value; });
}
inline unsigned long long atomicMax(unsigned long long *at, unsigned long long value) {
    return replaced(at, [=](unsigned long long old) { return old > value ? old : value; });
}
inline unsigned atomicOr(unsigned *at, unsigned value) {
    return replaced(at, [=](unsigned old) { return old | value; });
}

inline int __popc(unsigned bits) { return __builtin_popcount(bits); }
inline int __ffs(int bits) { return __builtin_ffs(bits); }
inline int __clz(int bits) { return bits ? __builtin_clz(unsigned(bits)) : 32; }
template <typename V> inline V __ldg(const V *at) { return *at; }

/// Calls a kernel with the parameters that the pointers lead to.
template <typename... A> inline void call_kernel(void (*kernel)(A...), void **arguments) {
    [&]<size_t... N>(std::index_sequence<N...>) {
        kernel(*static_cast<std::remove_cv_t<A> *>(arguments[N])...);
    }(std::index_sequence_for<A...>());
}
