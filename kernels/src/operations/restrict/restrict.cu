// Means of eight cells: the twin of restrict/cpu.rs. One block a patch of the coarse level.
#include "level/level.cuh"
#include "point/dual_energy.cuh"

/// Two neighbours along x, read at once.
template <typename T> struct alignas(2 * sizeof(T)) Pair {
    T low, high;
};

template <typename T> __device__ void restrict_patch(const Level &coarse, T *fluid, const Eos<T> &eos) {
    const uint32_t child = coarse.children[blockIdx.x];
    if (child == NONE) return;
    const int octant = blockIdx.x % OCTANTS;
    const T *fine = fluid + size_t(child) * GROUP_VALUES;
    T *group = fluid + size_t(coarse.slots[blockIdx.x / OCTANTS]) * GROUP_VALUES;
    const int first = cell((octant & 1) * PATCH, (octant >> 1 & 1) * PATCH, (octant >> 2) * PATCH);
    for (int n = threadIdx.x; n < PATCH * PATCH * PATCH; n += blockDim.x) {
        const int i = n % PATCH, j = n / PATCH % PATCH, k = n / (PATCH * PATCH);
        T u[FIELDS], moving[ENERGY][8];
#pragma unroll
        for (int f = 0; f < FIELDS; f++) {
            T cells[8];
#pragma unroll
            for (int row = 0; row < 4; row++) {
                const T *pair = fine + f * GROUP_CELLS + cell(2 * i, 2 * j + row % 2, 2 * k + row / 2);
                const Pair<T> two = *reinterpret_cast<const Pair<T> *>(pair);
                cells[2 * row] = two.low;
                cells[2 * row + 1] = two.high;
            }
#pragma unroll
            for (int n = 0; n < 8; n++) {
                if (f < ENERGY) moving[f][n] = cells[n];
            }
            u[f] = T(0.125) * sum_of_cube(cells);
        }
        T energies[8];
#pragma unroll
        for (int n = 0; n < 8; n++) {
            const T cell[FIELDS] = {moving[0][n], moving[1][n], moving[2][n], moving[3][n], T(0.0), T(0.0)};
            energies[n] = kinetic(cell);
        }
        u[ENERGY] = energy_of_mean(T(0.125) * sum_of_cube(energies), u, eos);
        synchronise(u, ShockIndicator<T>::UNSEEN, eos);
#pragma unroll
        for (int f = 0; f < FIELDS; f++) group[f * GROUP_CELLS + first + cell(i, j, k)] = u[f];
    }
}

#define BOTH(T, suffix)                                                                                                \
    extern "C" __global__ void restrict_##suffix(const __grid_constant__ Level coarse, T *fluid, const Eos<T> eos) {   \
        restrict_patch<T>(coarse, fluid, eos);                                                                         \
    }
BOTH(float, f32)
BOTH(double, f64)
