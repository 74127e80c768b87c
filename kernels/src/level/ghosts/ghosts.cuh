// A group with the ghost cells around it, cell by cell: the twin of ghosts.rs, with the same bits.
//
// A thread takes a cell's places along the three axes and asks for its six values. One that walks a pencil keeps two of
// the places and the three slots that the pencil runs through:
//
//     const Ghosts<T> ghosts(level, g, fluid, earlier);
//     const AxisPosition y = ghosts.place(1, j), z = ghosts.place(2, k);
//     for (int i = -3; i < 19; i++) ghosts.load(ghosts.place(0, i), y, z, eos, u);
//
// A kernel that uses it declares its level `const __grid_constant__ Level level`: else threads keep copies of it.
#pragma once
#include "level/face_boundary.cuh"
#include "point/dual_energy.cuh"
#include "point/slopes.cuh"
#include "point/symmetric_sum.cuh"

/// The coarser level at a time between an earlier state of it, kept apart, and the one in the pool.
template <typename T> struct EarlierFluid {
    const T *fluid;         // [places, 6, 16, 16, 16]; null: the pool's state is wanted
    const uint32_t *places; // [slots]
    T weight;
};

/// What the cells in and around group g of a level are read from.
template <typename T> struct Ghosts {
    const Level &level;
    const T *fluid;
    EarlierFluid<T> earlier;
    const uint32_t *row;
    const uint32_t *parents;
    uint32_t ends;
    uint32_t octant;

    INLINE Ghosts(const Level &level, uint32_t g, const T *fluid, const EarlierFluid<T> &earlier)
        : level(level), fluid(fluid), earlier(earlier), row(level.neighbours + size_t(g) * DIRECTIONS),
          parents(level.parents + size_t(g) * DIRECTIONS), ends(ends_of(level, g)), octant(level.octants[g]) {}

    /// The place of a cell's coordinate, from -3 to 18, along an axis.
    INLINE AxisPosition place(int axis, int n) const { return place_of(ends, axis, n); }

    /// The slot of the group that holds the cell at these places, NONE where it is interpolated.
    INLINE uint32_t slot(AxisPosition x, AxisPosition y, AxisPosition z) const { return row[direction(x.step(), y.step(), z.step())]; }

    /// Where six values of a coarse cell are: at the pool's time, at the earlier one, or in the state beyond a face.
    struct Coarse {
        const T *later;
        const T *earlier;
        AxisPosition place;

        INLINE T value(const Ghosts &ghosts, int axis, int f) const {
            if (place.beyond == STATE) return T(ghosts.level.faces[place.face].state[f]);
            T value = later[f * GROUP_CELLS];
            if (earlier != nullptr) {
                const T before = earlier[f * GROUP_CELLS];
                value = before + ghosts.earlier.weight * (value - before);
            }
            return place.beyond == MIRROR && f == MOMENTUM + axis ? -value : value;
        }
    };

    /// A coarse cell and the six beside it: what the eight fine cells that it covers are interpolated from.
    struct Stencil {
        Coarse centre, low[3], high[3];
    };

    /// One field of a coarse cell: its value and its limited slopes, quartered.
    struct Slopes {
        T centre, quarter[3];

        /// The slope along an axis from the values of the coarse cells beside.
        INLINE void limit(int axis, T low, T high) {
            quarter[axis] = T(0.25) * interpolation_slope(centre - low, high - centre);
        }

        /// What fine cell n, at (n & 1, n >> 1 & 1, n >> 2) of the eight, adds to the centre.
        INLINE T rise(int n) const {
            const auto sign = [&](int axis) { return n >> axis & 1 ? quarter[axis] : -quarter[axis]; };
            return sum_of_three(sign(0), sign(1), sign(2));
        }

        /// Fine cell n.
        INLINE T at(int n) const { return centre + rise(n); }

        /// All eight, with half of the sums: those of opposite cells differ in sign alone.
        INLINE void all(T (&cells)[8]) const {
            constexpr int ONE_OF_EACH_PAIR[4] = {0, 1, 2, 4};
#pragma unroll
            for (int pair = 0; pair < 4; pair++) {
                const int n = ONE_OF_EACH_PAIR[pair];
                const T sum = rise(n);
                cells[n] = centre + sum;
                // not −sum: a sum of zero has no sign here either
                cells[7 - n] = centre + (T(0.0) - sum);
            }
        }
    };

    /// The stencil of the coarse cell that covers the fine cell (i, j, k), from -4 to 19, inside the domain.
    INLINE Stencil stencil(int i, int j, int k) const {
        const int x = int(octant & 1) * PATCH + (i >> 1);
        const int y = int(octant >> 1 & 1) * PATCH + (j >> 1);
        const int z = int(octant >> 2 & 1) * PATCH + (k >> 1);
        return {coarse(0, x, x, y, z),
                {coarse(0, x - 1, x, y, z), coarse(1, y - 1, x, y, z), coarse(2, z - 1, x, y, z)},
                {coarse(0, x + 1, x, y, z), coarse(1, y + 1, x, y, z), coarse(2, z + 1, x, y, z)}};
    }

    /// One field of it.
    INLINE Slopes slopes(const Stencil &stencil, int f) const {
        Slopes made;
        made.centre = stencil.centre.value(*this, 0, f);
#pragma unroll
        for (int axis = 0; axis < 3; axis++)
            made.limit(axis, stencil.low[axis].value(*this, axis, f), stencil.high[axis].value(*this, axis, f));
        return made;
    }

    /// The values of the cell at these places.
    INLINE void load(AxisPosition x, AxisPosition y, AxisPosition z, const Eos<T> &eos, T (&u)[FIELDS]) const {
        load(slot(x, y, z), x, y, z, eos, u);
    }

    /// The same with the slot at hand.
    INLINE void load(uint32_t slot, AxisPosition x, AxisPosition y, AxisPosition z, const Eos<T> &eos, T (&u)[FIELDS]) const {
        const Origin origin = origin_of(x, y, z);
        if (origin.face >= 0) {
#pragma unroll
            for (int f = 0; f < FIELDS; f++) u[f] = origin.of(f, T(level.faces[origin.face].state[f]));
            return;
        }
        if (slot != NONE) {
            const T *values = fluid + size_t(slot) * GROUP_VALUES + ::cell(x.cell(), y.cell(), z.cell());
#pragma unroll
            for (int f = 0; f < FIELDS; f++) u[f] = values[f * GROUP_CELLS];
        } else {
            interpolate(x.inside, y.inside, z.inside, eos, u);
        }
#pragma unroll
        for (int f = 0; f < FIELDS; f++) u[f] = origin.of(f, u[f]);
    }

    /// Interpolation from the coarser level to the fine cell (i, j, k), from -3 to 18, inside the domain; the energy follows
    /// from the entropy scalar.
    INLINE void interpolate(int i, int j, int k, const Eos<T> &eos, T (&u)[FIELDS]) const {
        const Stencil around = stencil(i, j, k);
#pragma unroll
        for (int f = 0; f < FIELDS; f++) {
            if (f != ENERGY) u[f] = slopes(around, f).at((i & 1) | (j & 1) << 1 | (k & 1) << 2);
        }
        u[ENERGY] = energy_by_entropy(u, eos);
    }

    /// The values, but for the energy, of the coarse cell at (x, y, z), counted from the first one of the parent group, of which one at
    /// most leads beyond a face of the domain: what a stencil has of it. Whether there is such a cell.
    INLINE bool load_coarse(int x, int y, int z, T (&u)[FIELDS]) const {
        const bool beyond[3] = {place_of(ends, 0, x).beyond != MORE_DOMAIN, place_of(ends, 1, y).beyond != MORE_DOMAIN,
                                place_of(ends, 2, z).beyond != MORE_DOMAIN};
        if (int(beyond[0]) + int(beyond[1]) + int(beyond[2]) > 1) return false;
        const int axis = beyond[2] ? 2 : beyond[1] ? 1 : 0;
        const Coarse found = coarse(axis, axis == 0 ? x : axis == 1 ? y : z, x, y, z);
#pragma unroll
        for (int f = 0; f < FIELDS; f++) u[f] = f == ENERGY ? T(0.0) : found.value(*this, axis, f);
        return true;
    }

  private:
    /// The coarse cell n along `axis`, which alone may lead beyond a face, and at the centre's places along the others.
    INLINE Coarse coarse(int axis, int n, int x, int y, int z) const {
        const AxisPosition place = place_of(ends, axis, n);
        if (axis == 0) x = place.inside;
        if (axis == 1) y = place.inside;
        if (axis == 2) z = place.inside;
        const uint32_t slot = parents[direction(x >> 4, y >> 4, z >> 4)];
        const size_t offset = ::cell(x & (GROUP - 1), y & (GROUP - 1), z & (GROUP - 1));
        const T *before = nullptr;
        if (earlier.fluid != nullptr && place.beyond != STATE) {
            before = earlier.fluid + size_t(earlier.places[slot]) * GROUP_VALUES + offset;
        }
        return {fluid + size_t(slot) * GROUP_VALUES + offset, before, place};
    }
};

#ifdef __CUDACC__
/// Gathers the whole block of group g, [6, 22, 22, 22], with all threads of a block of threads.
template <typename T> __device__ void gather_block(const Ghosts<T> &ghosts, const Eos<T> &eos, T *block) {
    constexpr int CELLS = HYDRO_BLOCK * HYDRO_BLOCK * HYDRO_BLOCK;
    for (int e = threadIdx.x; e < CELLS; e += blockDim.x) {
        const int i = e % HYDRO_BLOCK, j = e / HYDRO_BLOCK % HYDRO_BLOCK, k = e / (HYDRO_BLOCK * HYDRO_BLOCK);
        T u[FIELDS];
        ghosts.load(ghosts.place(0, i - HYDRO_GHOSTS), ghosts.place(1, j - HYDRO_GHOSTS),
                    ghosts.place(2, k - HYDRO_GHOSTS), eos, u);
#pragma unroll
        for (int f = 0; f < FIELDS; f++) block[f * CELLS + e] = u[f];
    }
}
#endif
