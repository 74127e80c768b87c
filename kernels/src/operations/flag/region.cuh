// A region of the box: the twin of region.rs.
#pragma once
#include "operations/flag/level.cuh"

struct Region {
    double min[3];
    double max[3];
    double radius;

    /// The squared distance along an axis from cell n of the group at `coordinate` to the region's box.
    template <typename T> INLINE double distance(const FlagLevel<T> &level, uint32_t coordinate, int axis, int n) const {
        const double infinity = of_bits(uint64_t(0x7ff0000000000000ull));
        const double h = level.cell_width, length = level.cells[axis] * h;
        const double lower = (double(coordinate) * 16.0 + double(n)) * h;
        const int images = level.periodic >> axis & 1;
        double gap = infinity;
        for (int image = -images; image <= images; image++) {
            const double shift = double(image) * length;
            gap = fmin(gap, fmax(min[axis] + shift - (lower + h), lower - (max[axis] + shift)));
        }
        return gap < 0.0 ? 0.0 : radius == 0.0 ? infinity : gap * gap;
    }
};
