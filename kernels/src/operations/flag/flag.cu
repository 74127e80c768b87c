// Refinement flags: the twin of flag/cpu.rs. One block of 256 threads a group; a thread looks at the cells above each
// other at its place in a plane.
#include "operations/flag/program/program.cuh"
#include "operations/flag/region.cuh"
#include "operations/flag/stencil.cuh"

enum CriterionKind : uint32_t {
    DENSITY_ABOVE,
    GRADIENT_ABOVE,
    LOHNER_ABOVE,
    JEANS_BELOW,
    INSIDE,
    WHERE,
    DARK_MATTER_ABOVE,
    FOLLOWED_ABOVE,
    // steps of a combination that join or make sets of cells
    NOWHERE,
    AND,
    OR,
    NOT,
};
enum Quantity : uint32_t { OF_DENSITY, OF_PRESSURE, OF_VELOCITY };

template <typename T> struct Criterion {
    CriterionKind kind;
    Quantity of;
    /// Of the density, the change or the estimator; for Jeans lengths the factor of the density squared.
    T threshold;
    T filter;
    Region region;
    /// The program's instructions.
    uint32_t first, count;
};

constexpr int FLAG_THREADS = FACE_CELLS;
/// Sets of cells that a combination keeps at a time: STACK of combination.rs.
constexpr int SETS = 16;

/// Fills a block of the group with what a stencil looks at.
template <typename T> __device__ void fill(const Ghosts<T> &ghosts, int look, const Eos<T> &eos, T *block) {
    for (int e = threadIdx.x; e < STENCIL_CELLS; e += FLAG_THREADS) {
        const int i = e % STENCIL_BLOCK, j = e / STENCIL_BLOCK % STENCIL_BLOCK, k = e / (STENCIL_BLOCK * STENCIL_BLOCK);
        T u[FIELDS];
        ghosts.load(ghosts.place(0, i - STENCIL_GHOSTS), ghosts.place(1, j - STENCIL_GHOSTS),
                    ghosts.place(2, k - STENCIL_GHOSTS), eos, u);
        block[e] = looked_at(look, u, eos);
    }
}

/// The cells of this thread, bit k for the one in plane k, where a criterion on neighbours is met.
template <typename T>
__device__ uint32_t met_by_stencil(const Criterion<T> &criterion, const Ghosts<T> &ghosts, const Eos<T> &eos,
                                   T *value, int i, int j) {
    const bool velocity = criterion.of == OF_VELOCITY;
    T *scale = velocity ? value + STENCIL_CELLS : value;
    uint32_t met = 0;
#pragma unroll 1
    for (int component = velocity ? -1 : 0; component < (velocity ? 3 : 1); component++) {
        // the cells may still be in use
        __syncthreads();
        const int look = velocity ? LOOK_VELOCITY + component : int(criterion.of);
        fill(ghosts, look, eos, component < 0 ? scale : value);
        __syncthreads();
        if (component < 0) continue;
#pragma unroll 1
        for (int k = 0; k < GROUP; k++) {
            const int at = stencil_cell(i, j, k);
            const bool here = criterion.kind == GRADIENT_ABOVE
                                  ? steep(value, scale, at, criterion.threshold)
                                  : rough(value, scale, at, criterion.threshold, criterion.filter);
            met |= uint32_t(here) << k;
        }
    }
    return met;
}

/// The mask of a patch from the flagged cells of its group, by all lanes of a warp.
__device__ inline uint32_t patch_mask(const uint16_t *rows, int octant, int buffer) {
    const int lane = threadIdx.x % 32;
    const int x0 = (octant & 1) * PATCH, y0 = (octant >> 1 & 1) * PATCH, z0 = (octant >> 2) * PATCH;
    // cells along an axis that are near its lower and its upper end
    const uint32_t low = (1u << buffer) - 1, high = 0xffu & ~(0xffu >> buffer);
    uint32_t mask = 0;
    for (int n = lane; n < PATCH * PATCH; n += 32) {
        const int j = n % PATCH, k = n / PATCH;
        const uint32_t row = rows[(z0 + k) * GROUP + y0 + j] >> x0 & 0xff;
        if (row == 0) continue;
        const uint32_t along = 2 | (row & low ? 1 : 0) | (row & high ? 4 : 0);
        for (int z = low >> k & 1 ? -1 : 0; z <= int(high >> k & 1); z++) {
            for (int y = low >> j & 1 ? -1 : 0; y <= int(high >> j & 1); y++) mask |= along << direction(-1, y, z);
        }
    }
    return __reduce_or_sync(~0u, mask);
}

template <typename T>
__device__ void flag_group(const Level &level, const FlagLevel<T> &gas, const uint32_t *coordinates, const T *fluid,
                           const T *matter, const uint64_t *followed, const Criterion<T> *criteria, int count,
                           const Instruction *programs, int buffer, uint32_t *masks) {
    // blocks of what stencils look at, or the registers of programs
    extern __shared__ double work[];
    __shared__ uint16_t rows[GROUP * GROUP];
    const int i = threadIdx.x % GROUP, j = threadIdx.x / GROUP;
    const T *group = fluid ? fluid + size_t(level.slots[blockIdx.x]) * GROUP_VALUES : nullptr;
    const T *density = matter ? matter + size_t(level.slots[blockIdx.x]) * GROUP_CELLS : group + DENSITY * GROUP_CELLS;
    const Ghosts<T> ghosts(level, blockIdx.x, fluid, EarlierFluid<T>{nullptr, nullptr, T(0)});
    const uint32_t *place = coordinates + 3 * blockIdx.x;
    const uint32_t coordinate[3] = {place[0], place[1], place[2]};

    // the cells of this thread in each set, bit k for the one in plane k
    uint32_t sets[SETS];
    int top = 0;
    for (int n = 0; n < count; n++) {
        const Criterion<T> &criterion = criteria[n];
        uint32_t met = 0;
        switch (criterion.kind) {
        case DENSITY_ABOVE:
#pragma unroll
            for (int k = 0; k < GROUP; k++) {
                met |= uint32_t(density[cell(i, j, k)] > criterion.threshold) << k;
            }
            break;
        case DARK_MATTER_ABOVE:
#pragma unroll
            for (int k = 0; k < GROUP; k++) {
                met |= uint32_t(dark_matter(density, group, cell(i, j, k)) > criterion.threshold) << k;
            }
            break;
        case FOLLOWED_ABOVE: {
            const uint64_t *weights = followed + size_t(level.slots[blockIdx.x]) * GROUP_CELLS;
            for (int k = 0; k < GROUP; k++) {
                met |= uint32_t(T(double(weights[cell(i, j, k)])) > criterion.threshold) << k;
            }
            break;
        }
        case GRADIENT_ABOVE:
        case LOHNER_ABOVE:
            met |= met_by_stencil(criterion, ghosts, gas.eos, reinterpret_cast<T *>(work), i, j);
            break;
        case JEANS_BELOW:
            for (int k = 0; k < GROUP; k++) {
                T u[FIELDS];
#pragma unroll
                for (int f = 0; f < FIELDS; f++) u[f] = group[f * GROUP_CELLS + cell(i, j, k)];
                met |= uint32_t(pressure(u, gas.eos) < criterion.threshold * u[DENSITY] * u[DENSITY]) << k;
            }
            break;
        case INSIDE: {
            const Region &region = criterion.region;
            const double along = region.distance(gas, coordinate[0], 0, i);
            const double y = region.distance(gas, coordinate[1], 1, j);
            for (int k = 0; k < GROUP; k++) {
                const double across = y + region.distance(gas, coordinate[2], 2, k);
                met |= uint32_t(along + across <= region.radius * region.radius) << k;
            }
            break;
        }
        case WHERE:
            // the registers may lie where a stencil was
            __syncthreads();
#pragma unroll 1
            for (int k = 0; k < GROUP; k++) {
                const CellFields<T> cell{gas, ghosts, group, density, coordinate, i, j, k};
                const Instruction *program = programs + criterion.first;
                const double result = evaluate(program, criterion.count, cell, work + threadIdx.x, FLAG_THREADS);
                met |= uint32_t(result > 0.0) << k;
            }
            break;
        case NOWHERE: break;
        case AND:
            met = sets[top - 2] & sets[top - 1];
            top -= 2;
            break;
        case OR:
            met = sets[top - 2] | sets[top - 1];
            top -= 2;
            break;
        case NOT: met = 0xffffu & ~sets[--top]; break;
        }
        sets[top++] = met;
    }

    const uint32_t met = sets[0];
    for (int k = 0; k < GROUP; k++) {
        const uint32_t two_rows = __ballot_sync(~0u, met >> k & 1);
        if (threadIdx.x % 32 == 0) rows[k * GROUP + j] = uint16_t(two_rows);
        if (threadIdx.x % 32 == 16) rows[k * GROUP + j] = uint16_t(two_rows >> 16);
    }
    __syncthreads();
    const int octant = threadIdx.x / 32;
    const uint32_t mask = patch_mask(rows, octant, buffer);
    if (threadIdx.x % 32 == 0) masks[blockIdx.x * OCTANTS + octant] = mask;
}

#define BOTH(T, suffix)                                                                                                \
    extern "C" __global__ void __launch_bounds__(FLAG_THREADS)                                                         \
        flag_##suffix(const __grid_constant__ Level level, const __grid_constant__ FlagLevel<T> gas,                   \
                      const uint32_t *coordinates, const T *fluid, const T *matter, const uint64_t *followed,          \
                      const Criterion<T> *criteria, int count, const Instruction *programs, int buffer,                \
                      uint32_t *masks) {                                                                               \
        flag_group<T>(level, gas, coordinates, fluid, matter, followed, criteria, count, programs, buffer, masks);     \
    }
BOTH(float, f32)
BOTH(double, f64)
