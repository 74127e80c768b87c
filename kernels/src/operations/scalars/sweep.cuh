// The scalars of a tile through the three passes of a sweep: the twin of scalars/sweep.rs, after the gas of the tile.
#pragma once
#include "operations/hydro_sweep/sweep.cuh"
#include "operations/scalars/cells.cuh"

/// What a sweep gets of scalars, as scalars/cuda.rs passes it.
template <typename T> struct ScalarPools {
    const T *before;  // [slots, count, 16, 16, 16]
    const T *earlier; // [places, count, 16, 16, 16]
    T *after;         // as before
    T *fluxes;        // [planes, count, 16, 16]
    T *mass_fluxes;   // room of three MassFluxes for each block
    int count;

    /// Sweeps the scalars of a tile, by all threads, once its gas has been written; `memory` is shared and free by then.
    template <typename A, int Y, int Z, int AXES>
    __device__ __forceinline__ void sweep(const Sweep<T> &sweep, const SweptTile<T, Y, Z, AXES> &tile,
                                          const Surrounded &around, const T *mass_fluxes, T *memory) const;
};

/// Densities of a tile and its ghost cells in shared memory: of the gas, then of a scalar.
template <int Y, int Z> struct ScalarTile {
    static constexpr int X_CELLS = GROUP + 2 * HYDRO_GHOSTS, Y_CELLS = Y + 2 * HYDRO_GHOSTS, Z_CELLS = Z + 2 * HYDRO_GHOSTS;
    // odd: columns of cells use all banks
    static constexpr int ROW = X_CELLS | 1, PLANE = ROW * Y_CELLS, CELLS = PLANE * Z_CELLS;

    __device__ __forceinline__ static int stride(int axis) { return axis == 0 ? 1 : axis == 1 ? ROW : PLANE; }
};

/// One directional pass of one scalar, one thread a pencil, in place.
template <typename A, typename T, int Y, int Z, int AXES>
__device__ __forceinline__ void scalar_pass(const Sweep<T> &sweep, const SweptTile<T, Y, Z, AXES> &tile, int pass,
                                            const ScalarPools<T> &scalars, int index, const T *mass_flux, T *density, T *scalar) {
    using Cells = ScalarTile<Y, Z>;
    const int axis = axis_of<AXES>(sweep, pass), outer = first_other(axis), other = second_other(axis);
    const auto swept = [&](int axis) { return (pass > 0 && axis == tile.first) || (pass > 1 && axis == tile.second); };
    const int low_a = swept(outer) ? 0 : -HYDRO_GHOSTS, low_b = swept(other) ? 0 : -HYDRO_GHOSTS;
    const int width_a = tile.size[outer] - 2 * low_a, width_b = tile.size[other] - 2 * low_b, pencils = width_a * width_b;
    const int cells = tile.size[axis] + 2 * HYDRO_GHOSTS, stride = Cells::stride(axis);
    const T step = sweep.dt_over_dx * T(0.5);
    for (int pencil = threadIdx.x; pencil < pencils; pencil += blockDim.x) {
        const int a = pencil % width_a + low_a, b = pencil / width_a + low_b;
        const int line = (a + HYDRO_GHOSTS) * Cells::stride(outer) + (b + HYDRO_GHOSTS) * Cells::stride(other);
        const bool own = a >= 0 && a < tile.size[outer] && b >= 0 && b < tile.size[other];
        const auto fraction = [&](int n) { return mass_fraction(scalar[line + n * stride], density[line + n * stride]); };
        // of the cells around face n: fractions of n - 2 to n + 1, densities of n - 1 and n
        T x0 = fraction(HYDRO_GHOSTS - 2), x1 = fraction(HYDRO_GHOSTS - 1), x2 = fraction(HYDRO_GHOSTS);
        T density_1 = density[line + (HYDRO_GHOSTS - 1) * stride], flux_before = T(0.0), mass_flux_before = T(0.0);
#pragma unroll 1
        for (int n = HYDRO_GHOSTS; n <= cells - HYDRO_GHOSTS; n++) {
            const T x3 = fraction(n + 1), density_2 = density[line + n * stride];
            const T mass = mass_flux[(n - HYDRO_GHOSTS) * pencils + pencil];
            const T flux = mass * carried_fraction(mass, step, density_1, density_2, x0, x1, x2, x3);
            const int at = tile.origin[axis] + n - HYDRO_GHOSTS;
            // the tile above writes the flux between the two
            if (at % PATCH == 0 && own && !(n == cells - HYDRO_GHOSTS && at != GROUP)) {
                const int place = axis * FLUX_PLANES_PER_AXIS + at / PATCH;
                const uint32_t plane = sweep.flux_slots[size_t(tile.g) * FLUX_PLANES + place];
                if (plane != NONE)
                    scalars.fluxes[(size_t(plane) * scalars.count + index) * FACE_CELLS + (b + tile.origin[other]) * GROUP + a +
                                   tile.origin[outer]] = T(0.5) * flux;
            }
            if (n > HYDRO_GHOSTS) {
                const int before = line + (n - 1) * stride;
                density[before] = updated<A>(density_1, step, mass_flux_before, mass);
                scalar[before] = updated<A>(scalar[before], step, flux_before, flux);
            }
            x0 = x1, x1 = x2, x2 = x3;
            density_1 = density_2, flux_before = flux, mass_flux_before = mass;
        }
    }
    __syncthreads();
}

template <typename T>
template <typename A, int Y, int Z, int AXES>
__device__ __forceinline__ void ScalarPools<T>::sweep(const Sweep<T> &sweep, const SweptTile<T, Y, Z, AXES> &tile,
                                                      const Surrounded &around, const T *mass_fluxes, T *memory) const {
    using Cells = ScalarTile<Y, Z>;
    T *density = memory, *scalar = memory + Cells::CELLS;
    const Ghosts<T> ghosts(sweep.level, tile.g, sweep.fluid, sweep.earlier);
#pragma unroll 1
    for (int index = 0; index < count; index++) {
        const ScalarCells<T> from{ghosts, before, earlier, count, index};
        for (int e = threadIdx.x; e < Cells::X_CELLS * Cells::Y_CELLS * Cells::Z_CELLS; e += blockDim.x) {
            const int x = e % Cells::X_CELLS, y = e / Cells::X_CELLS % Cells::Y_CELLS, z = e / (Cells::X_CELLS * Cells::Y_CELLS);
            const int i = x - HYDRO_GHOSTS, j = y - HYDRO_GHOSTS + tile.origin.y, k = z - HYDRO_GHOSTS + tile.origin.z;
            const int at = z * Cells::PLANE + y * Cells::ROW + x;
            const T mass = *tile.region(sweep, around, step_of(i), step_of(j), step_of(k)).at(i, j, k);
            density[at] = mass;
            scalar[at] = from.value(ghosts.place(0, i), ghosts.place(1, j), ghosts.place(2, k), mass);
        }
        __syncthreads();
#pragma unroll 1
        for (int pass = 0; pass < 3; pass++)
            scalar_pass<A>(sweep, tile, pass, *this, index, mass_fluxes + pass * MassFluxes<Y, Z>::OF_PASS, density, scalar);
        T *out = after + (size_t(tile.slot) * count + index) * GROUP_CELLS;
        for (int n = threadIdx.x; n < GROUP * Y * Z; n += blockDim.x) {
            const int i = n % GROUP, j = n / GROUP % Y, k = n / (GROUP * Y);
            const int at = (k + HYDRO_GHOSTS) * Cells::PLANE + (j + HYDRO_GHOSTS) * Cells::ROW + i + HYDRO_GHOSTS;
            out[cell(i, j + tile.origin.y, k + tile.origin.z)] = scalar[at];
        }
        __syncthreads();
    }
}

/// Declares a kernel as SWEEP does, with scalars.
#define SWEEP_SCALARS(name, SCHEME, A, T, Y, Z, REDO, AXES, threads, blocks)                                           \
    extern "C" __global__ void __launch_bounds__(threads, blocks)                                                      \
        name(const __grid_constant__ Sweep<T> sweep, const __grid_constant__ ScalarPools<T> scalars) {                 \
        hydro_sweep<Scheme::SCHEME, A, T, Y, Z, REDO, AXES, true>(sweep, scalars);                                     \
    }
