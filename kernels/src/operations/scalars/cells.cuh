// A group's scalars with the ghost cells around it, cell by cell: the twin of scalars/cells.rs.
#pragma once
#include "level/ghosts/ghosts.cuh"
#include "point/passive_scalar.cuh"

/// What one scalar of the cells in and around a group is read from.
template <typename T> struct ScalarCells {
    const Ghosts<T> &ghosts;
    const T *scalars; // [slots, count, 16, 16, 16]
    const T *earlier; // [places, count, 16, 16, 16]
    int count, index;

    INLINE const T *of_slot(const T *pool, uint32_t slot) const { return pool + (size_t(slot) * count + index) * GROUP_CELLS; }

    /// rho X of the cell at these places, where the gas has that density.
    INLINE T value(AxisPosition x, AxisPosition y, AxisPosition z, T density) const {
        const uint32_t slot = ghosts.slot(x, y, z);
        const bool is_fixed = x.beyond == STATE || y.beyond == STATE || z.beyond == STATE;
        if (slot != NONE) {
            const int at = ::cell(x.cell(), y.cell(), z.cell());
            const T scalar = of_slot(scalars, slot)[at];
            if (!is_fixed) return scalar;
            return density * mass_fraction(scalar, ghosts.fluid[size_t(slot) * GROUP_VALUES + DENSITY * GROUP_CELLS + at]);
        }
        const int i = x.inside, j = y.inside, k = z.inside;
        const uint32_t octant = ghosts.octant;
        const FractionSlopes<T> around = slopes(int(octant & 1) * PATCH + (i >> 1), int(octant >> 1 & 1) * PATCH + (j >> 1),
                                                int(octant >> 2 & 1) * PATCH + (k >> 1));
        const Fraction<T> fine = around.fine((i & 1) | (j & 1) << 1 | (k & 1) << 2);
        return is_fixed ? density * fine.fraction : fine.density * fine.fraction;
    }

    /// The coarse cell at (x, y, z), counted from the parent's first one, with its slopes.
    INLINE FractionSlopes<T> slopes(int x, int y, int z) const {
        const Fraction<T> low[3] = {beside(0, x - 1, x, y, z), beside(1, y - 1, x, y, z), beside(2, z - 1, x, y, z)};
        const Fraction<T> high[3] = {beside(0, x + 1, x, y, z), beside(1, y + 1, x, y, z), beside(2, z + 1, x, y, z)};
        return FractionSlopes<T>(coarse(x, y, z), low, high);
    }

  private:
    /// The coarse cell n along an axis, which may lead beyond a face.
    INLINE Fraction<T> beside(int axis, int n, int x, int y, int z) const {
        const AxisPosition place = place_of(ghosts.ends, axis, n);
        if (axis == 0) x = place.inside;
        if (axis == 1) y = place.inside;
        if (axis == 2) z = place.inside;
        Fraction<T> found = coarse(x, y, z);
        if (place.beyond == STATE) found.density = T(ghosts.level.faces[place.face].state[DENSITY]);
        return found;
    }

    /// A coarse cell inside the domain.
    INLINE Fraction<T> coarse(int x, int y, int z) const {
        const uint32_t slot = ghosts.parents[direction(x >> 4, y >> 4, z >> 4)];
        const int at = ::cell(x & (GROUP - 1), y & (GROUP - 1), z & (GROUP - 1));
        T density = ghosts.fluid[size_t(slot) * GROUP_VALUES + DENSITY * GROUP_CELLS + at];
        T scalar = of_slot(scalars, slot)[at];
        if (ghosts.earlier.fluid != nullptr) {
            const uint32_t place = ghosts.earlier.places[slot];
            T before = ghosts.earlier.fluid[size_t(place) * GROUP_VALUES + DENSITY * GROUP_CELLS + at];
            density = before + ghosts.earlier.weight * (density - before);
            before = of_slot(earlier, place)[at];
            scalar = before + ghosts.earlier.weight * (scalar - before);
        }
        return {density, mass_fraction(scalar, density)};
    }
};
