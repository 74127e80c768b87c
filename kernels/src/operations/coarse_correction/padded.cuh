// A group of a coarse grid with one layer of cells around it: the twin of padded.rs.
#pragma once
#include "device/cuda/real.cuh"
#include "level/level.cuh"

/// Step of a sweep per residual, by number of faces without neighbour: the twin of mod.rs.
template <typename T> struct Factors {
    T step[FACES + 1];
};

/// -r of a grid with so many cells a group: the cell beyond a face without neighbour over the one inside.
template <typename T> INLINE constexpr T beyond_factor(int cells) {
    return T(-((double(GROUP / cells) - 1) / (double(GROUP / cells) + 1)));
}

/// Linear interpolation a quarter of a cell from a centre towards its neighbour.
template <typename T> INLINE T quarter_towards(T centre, T neighbour) { return T(0.75) * centre + T(0.25) * neighbour; }

/// The tables of group g that coarse grids read.
struct Around {
    const uint32_t *row;
    uint32_t outside;

    __device__ Around(const Level &level, uint32_t g)
        : row(level.neighbours + size_t(g) * DIRECTIONS), outside(level.outside[g]) {}

    /// Whether there is a group a step further along an axis than in the direction `from`.
    __device__ bool has(int from, int axis, int step) const {
        const int stride = axis == 0 ? 1 : axis == 1 ? 3 : 9;
        return !(outside >> (2 * axis + (step > 0)) & 1) && row[from + step * stride] != NONE;
    }

    /// The value of cell (x, y, z) of N^3, each from -1 to N: the step along x is taken if there is a group, then from there
    /// the one along y, then the one along z.
    template <int N, typename T> __device__ T value(const T *pool, int x, int y, int z) const {
        int at[3] = {x, y, z}, towards = CENTRE;
        T factor = T(1);
#pragma unroll
        for (int axis = 0; axis < 3; axis++) {
            const int step = at[axis] < 0 ? -1 : at[axis] >= N ? 1 : 0;
            if (step == 0) continue;
            if (has(towards, axis, step)) {
                towards += step * (axis == 0 ? 1 : axis == 1 ? 3 : 9);
                at[axis] -= step * N;
            } else {
                factor *= beyond_factor<T>(N);
                at[axis] -= step;
            }
        }
        return factor * pool[size_t(row[towards]) * (N * N * N) + (at[2] * N + at[1]) * N + at[0]];
    }

    /// The neighbours across faces that a cell lacks.
    template <int N> __device__ int missing(int x, int y, int z) const {
        const int at[3] = {x, y, z};
        int count = 0;
#pragma unroll
        for (int axis = 0; axis < 3; axis++) {
            if (at[axis] == 0 && !has(CENTRE, axis, -1)) count++;
            if (at[axis] == N - 1 && !has(CENTRE, axis, 1)) count++;
        }
        return count;
    }

    /// Sum over the six neighbours - 6 times the value.
    template <int N, typename T> __device__ T laplacian(const T *pool, int x, int y, int z) const {
        const T along_x = value<N>(pool, x - 1, y, z) + value<N>(pool, x + 1, y, z);
        const T along_y = value<N>(pool, x, y - 1, z) + value<N>(pool, x, y + 1, z);
        const T along_z = value<N>(pool, x, y, z - 1) + value<N>(pool, x, y, z + 1);
        return ((along_x + along_y) + along_z) - T(6) * value<N>(pool, x, y, z);
    }
};

/// Where the errors in each direction around a group are: the first of a run of cells along the axes without a step, and the
/// factor of each.
template <typename T> struct ErrorsAround {
    size_t first[DIRECTIONS];
    T factor[DIRECTIONS];

    /// Of group g; a thread a direction. All threads of the block call it.
    __device__ void find(const Level &level, uint32_t g) {
        if (threadIdx.x < DIRECTIONS) {
            const Around around(level, g);
            const int d = threadIdx.x, steps[3] = {d % 3 - 1, d / 3 % 3 - 1, d / 9 - 1};
            int towards = CENTRE, place = 0;
            T product = T(1);
#pragma unroll
            for (int axis = 0; axis < 3; axis++) {
                if (steps[axis] == 0) continue;
                const bool taken = around.has(towards, axis, steps[axis]);
                if (taken) towards += steps[axis] * (axis == 0 ? 1 : axis == 1 ? 3 : 9);
                else product *= beyond_factor<T>(PATCH);
                // the neighbour's nearest layer, or the group's own last one
                if (taken != (steps[axis] > 0)) place += (PATCH - 1) * (axis == 0 ? 1 : axis == 1 ? PATCH : PATCH * PATCH);
            }
            first[d] = size_t(around.row[towards]) * (PATCH * PATCH * PATCH) + place;
            factor[d] = product;
        }
        __syncthreads();
    }

    /// The error in cell (x, y, z), each from -1 to PATCH.
    __device__ T at(const T *error, int x, int y, int z) const {
        const auto step = [](int c) { return c < 0 ? -1 : c >= PATCH ? 1 : 0; };
        const int sx = step(x), sy = step(y), sz = step(z), d = CENTRE + sx + 3 * sy + 9 * sz;
        const int place = (sx ? 0 : x) + (sy ? 0 : y * PATCH) + (sz ? 0 : z * PATCH * PATCH);
        return factor[d] * error[first[d] + place];
    }
};

/// Errors on the ghost layers of all faces before they are interpolated along the faces: [6, 10, 10].
constexpr int ERROR_SIDE = PATCH + 2;
constexpr int ERROR_PLANE = ERROR_SIDE * ERROR_SIDE;

/// Fills them from `error`, [slots, 8, 8, 8]. Every thread of a block of FACE_CELLS calls it.
template <typename T> __device__ void load_ghost_errors(const Level &level, uint32_t g, const T *error, T *planes) {
    __shared__ ErrorsAround<T> around;
    around.find(level, g);
    for (int c = threadIdx.x; c < FACES * ERROR_PLANE; c += FACE_CELLS) {
        const int face = c / ERROR_PLANE, axis = face / 2;
        const int a = c % ERROR_SIDE - 1, b = c % ERROR_PLANE / ERROR_SIDE - 1;
        const auto at = [&](int layer) {
            return axis == 0   ? around.at(error, layer, a, b)
                   : axis == 1 ? around.at(error, a, layer, b)
                               : around.at(error, a, b, layer);
        };
        planes[c] = quarter_towards(at(face & 1 ? PATCH : -1), at(face & 1 ? PATCH - 1 : 0));
    }
    __syncthreads();
}

/// The error at ghost (m, n) of a face.
template <typename T> __device__ T ghost_error(const T *planes, int face, int m, int n) {
    const T *plane = planes + face * ERROR_PLANE;
    const int column = m / 2 + 1, beside = m & 1 ? m / 2 + 2 : m / 2;
    const int row = n / 2 + 1, next = n & 1 ? n / 2 + 2 : n / 2;
    const auto along = [&](int row) {
        return quarter_towards(plane[row * ERROR_SIDE + column], plane[row * ERROR_SIDE + beside]);
    };
    return quarter_towards(along(row), along(next));
}
