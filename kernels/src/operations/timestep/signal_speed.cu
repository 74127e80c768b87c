// The fastest signal of each group: the twin of timestep/cpu.rs. One block a group.
#include "level/level.cuh"
#include "point/relaxing_tvd.cuh"

/// What the host gets of each group: the twin of mod.rs.
struct SignalSpeed {
    double speed;
    uint32_t cell;
};

/// The fastest cell so far.
template <typename T> struct Fastest {
    T speed;
    uint32_t cell;

    /// The faster of two, the first cell of equally fast ones.
    __device__ void take(T other_speed, uint32_t other_cell) {
        if (other_speed > speed || (other_speed == speed && other_cell < cell)) {
            speed = other_speed;
            cell = other_cell;
        }
    }
};

template <typename T>
__device__ void fastest_signal(const Level &level, const T *fluid, const Eos<T> &eos, SignalSpeed *speeds) {
    const T *group = fluid + size_t(level.slots[blockIdx.x]) * GROUP_VALUES;
    constexpr T INFINITE = std::numeric_limits<T>::infinity();
    Fastest<T> fastest = {-INFINITE, NONE};
#pragma unroll 4
    for (int c = threadIdx.x; c < GROUP_CELLS; c += blockDim.x) {
        T u[FIELDS];
#pragma unroll
        for (int f = 0; f < FIELDS; f++) u[f] = group[f * GROUP_CELLS + c];
        const T speed = signal_speed(u, eos);
        // a floor must not hide a cell that is no number
        const T sum = speed + u[0] + u[1] + u[2] + u[3] + u[4] + u[5];
        fastest.take(sum * T(0) == T(0) ? speed : INFINITE, c);
    }
    for (int lane = 16; lane > 0; lane /= 2) {
        const T speed = __shfl_down_sync(~0u, fastest.speed, lane);
        const uint32_t cell = __shfl_down_sync(~0u, fastest.cell, lane);
        fastest.take(speed, cell);
    }
    __shared__ Fastest<T> warps[32];
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = fastest;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int warp = 1; warp < blockDim.x / 32; warp++) fastest.take(warps[warp].speed, warps[warp].cell);
        speeds[blockIdx.x] = {double(fastest.speed), fastest.cell};
    }
}

#define BOTH(T, suffix)                                                                                                \
    extern "C" __global__ void signal_speed_##suffix(const __grid_constant__ Level level, const T *fluid,              \
                                                     const Eos<T> eos, SignalSpeed *speeds) {                          \
        fastest_signal<T>(level, fluid, eos, speeds);                                                                  \
    }
BOTH(float, f32)
BOTH(double, f64)
