// Coarse grids of a level: the twin of cpu.rs. The grid of 8^3 cells a group has a block a group, which reads its cells and
// those around into shared memory; smaller ones have a thread a cell.
#include "device/cuda/all_blocks.cuh"
#include "operations/coarse_correction/padded.cuh"
#include "operations/potential_ghosts/potential_ghosts.cuh"

/// A coarse cell of a level, by its number: group, slot, and place in the group.
template <int N> struct CoarseCell {
    uint32_t g, slot;
    int c, x, y, z;

    __device__ CoarseCell(const Level &level, size_t number) {
        g = uint32_t(number / (N * N * N));
        slot = level.slots[g];
        c = int(number % (N * N * N));
        x = c % N;
        y = c / N % N;
        z = c / (N * N);
    }

    __device__ size_t place() const { return size_t(slot) * (N * N * N) + c; }
};

/// Calls `work` with the cell of the thread, or does nothing beyond the last.
template <int N, typename Work> __device__ void cell_of_thread(const Level &level, const Work &work) {
    const size_t thread = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (thread / (N * N * N) < level.groups) work(CoarseCell<N>(level, thread));
}

/// To the grid of 8^3 cells: one block a group, which finds the jumps of all faces first.
template <typename T>
__device__ void face_residual(const Level &level, const T *ghosts, const T *potential, const Factors<T> &factors, T *source,
                              T *error) {
    constexpr int N = PATCH, COARSE_FACE = N * N;
    __shared__ T jumps[FACES * COARSE_FACE];
    const uint32_t g = blockIdx.x;
    const Around around(level, g);
    for (int c = threadIdx.x; c < FACES * COARSE_FACE; c += blockDim.x) {
        const int face = c / COARSE_FACE, first = 2 * (c / N % N) * GROUP + 2 * (c % N);
        T sum = T(0);
        if (around.has(CENTRE, face / 2, face & 1 ? 1 : -1)) {
            const T *held = ghosts + size_t(g) * GHOST_CELLS + face * FACE_CELLS + first;
            const size_t neighbour = around.row[face_direction(face)];
            const T *cells = potential + neighbour * GROUP_CELLS + (face ^ 1) * FACE_CELLS + first;
            const auto jump = [&](int at) { return held[at] - cells[at]; };
            const T lower = jump(0) + jump(1);
            const T upper = jump(GROUP) + jump(GROUP + 1);
            sum = T(0.5) * (lower + upper);
        }
        jumps[c] = sum;
    }
    __syncthreads();
    for (int c = threadIdx.x; c < N * N * N; c += blockDim.x) {
        const int at[3] = {c % N, c / N % N, c / (N * N)};
        T sum = T(0);
#pragma unroll
        for (int face = 0; face < FACES; face++) {
            const int axis = face / 2;
            if (at[axis] == (face & 1 ? N - 1 : 0))
                sum += jumps[face * COARSE_FACE + at[second_axis(axis)] * N + at[first_axis(axis)]];
        }
        const size_t place = size_t(level.slots[g]) * (N * N * N) + c;
        source[place] = sum;
        error[place] = -factors.step[around.missing<N>(at[0], at[1], at[2])] * sum;
    }
}

/// A group of a grid with one layer of cells around it, in shared memory.
template <int N, typename T> struct Tile {
    static constexpr int SIDE = N + 2, STRIDE_Z = SIDE * SIDE;
    T values[SIDE * SIDE * SIDE];

    __device__ static int place(int x, int y, int z) { return (z + 1) * STRIDE_Z + (y + 1) * SIDE + x + 1; }

    /// Reads the group's cells and those across its faces.
    __device__ void load_faces(const Around &around, uint32_t slot, const T *pool) {
        const T *own = pool + size_t(slot) * (N * N * N);
        for (int c = threadIdx.x; c < N * N * N; c += blockDim.x)
            values[place(c % N, c / N % N, c / (N * N))] = own[c];
        for (int c = threadIdx.x; c < FACES * N * N; c += blockDim.x) {
            const int face = c / (N * N), axis = face / 2, upper = face & 1;
            const int a = c % N, b = c / N % N, beyond = upper ? N : -1;
            const int x = axis == 0 ? beyond : a, y = axis == 1 ? beyond : axis == 0 ? a : b, z = axis == 2 ? beyond : b;
            values[place(x, y, z)] = around.value<N>(pool, x, y, z);
        }
        __syncthreads();
    }

    /// Reads them with those across edges and corners.
    __device__ void load_all(const Around &around, const T *pool) {
        for (int c = threadIdx.x; c < SIDE * SIDE * SIDE; c += blockDim.x)
            values[c] = around.value<N>(pool, c % SIDE - 1, c / SIDE % SIDE - 1, c / STRIDE_Z - 1);
        __syncthreads();
    }

    __device__ T laplacian(int x, int y, int z) const {
        const T *at = values + place(x, y, z);
        const T along_x = at[-1] + at[1], along_y = at[-SIDE] + at[SIDE], along_z = at[-STRIDE_Z] + at[STRIDE_Z];
        return ((along_x + along_y) + along_z) - T(6) * at[0];
    }
};

/// Of the grid of 8^3 cells: one block a group.
template <typename T>
__device__ void smooth_finest(const Level &level, const Factors<T> &factors, const T *source, const T *error, T *next) {
    constexpr int N = PATCH;
    __shared__ Tile<N, T> tile;
    const uint32_t slot = level.slots[blockIdx.x];
    const Around around(level, blockIdx.x);
    tile.load_faces(around, slot, error);
    for (int c = threadIdx.x; c < N * N * N; c += blockDim.x) {
        const int x = c % N, y = c / N % N, z = c / (N * N);
        const size_t at = size_t(slot) * (N * N * N) + c;
        const T residual = tile.laplacian(x, y, z) - source[at];
        next[at] = tile.values[tile.place(x, y, z)] + factors.step[around.missing<N>(x, y, z)] * residual;
    }
}

/// From the grid of 8^3 cells: one block a group.
template <typename T>
__device__ void restrict_finest(const Level &level, const Factors<T> &factors, const T *fine_source, const T *fine_error,
                                T *source, T *error) {
    constexpr int N = PATCH / 2, F = PATCH;
    __shared__ Tile<F, T> tile;
    const uint32_t slot = level.slots[blockIdx.x];
    const Around around(level, blockIdx.x);
    tile.load_faces(around, slot, fine_error);
    const T *from = fine_source + size_t(slot) * (F * F * F);
    for (int c = threadIdx.x; c < N * N * N; c += blockDim.x) {
        const int x = c % N, y = c / N % N, z = c / (N * N);
        const auto residual = [&](int x, int y, int z) { return from[(z * F + y) * F + x] - tile.laplacian(x, y, z); };
        const auto pair = [&](int dy, int dz) {
            return residual(2 * x, 2 * y + dy, 2 * z + dz) + residual(2 * x + 1, 2 * y + dy, 2 * z + dz);
        };
        const T sum = (pair(0, 0) + pair(1, 0)) + (pair(0, 1) + pair(1, 1));
        const size_t at = size_t(slot) * (N * N * N) + c;
        source[at] = T(0.5) * sum;
        error[at] = -factors.step[around.missing<N>(x, y, z)] * (T(0.5) * sum);
    }
}

/// To the grid of 8^3 cells: one block a group.
template <typename T> __device__ void prolong_finest(const Level &level, const T *coarse, T *fine) {
    constexpr int N = PATCH / 2, F = PATCH;
    __shared__ Tile<N, T> tile;
    const uint32_t slot = level.slots[blockIdx.x];
    tile.load_all(Around(level, blockIdx.x), coarse);
    for (int c = threadIdx.x; c < F * F * F; c += blockDim.x) {
        const int x = c % F, y = c / F % F, z = c / (F * F);
        const T *at = tile.values + tile.place(x / 2, y / 2, z / 2);
        const int dx = x & 1 ? 1 : -1, dy = (y & 1 ? 1 : -1) * tile.SIDE, dz = (z & 1 ? 1 : -1) * tile.STRIDE_Z;
        const auto along_x = [&](int offset) { return quarter_towards(at[offset], at[offset + dx]); };
        const auto along_y = [&](int offset) { return quarter_towards(along_x(offset), along_x(offset + dy)); };
        fine[size_t(slot) * (F * F * F) + c] += quarter_towards(along_y(0), along_y(dz));
    }
}

/// The first sweep from zero.
template <int N, typename T>
__device__ void start_sweep(const Level &level, const CoarseCell<N> &cell, const Factors<T> &factors, const T *source,
                            T *error) {
    const Around around(level, cell.g);
    error[cell.place()] = -factors.step[around.missing<N>(cell.x, cell.y, cell.z)] * source[cell.place()];
}

template <int N, typename T>
__device__ void smooth(const Level &level, const CoarseCell<N> &cell, const Factors<T> &factors, const T *source,
                       const T *error, T *next) {
    const Around around(level, cell.g);
    const T residual = around.laplacian<N>(error, cell.x, cell.y, cell.z) - source[cell.place()];
    next[cell.place()] = error[cell.place()] + factors.step[around.missing<N>(cell.x, cell.y, cell.z)] * residual;
}

template <int N, typename T>
__device__ void restrict_residual(const Level &level, const CoarseCell<N> &cell, const Factors<T> &factors,
                                  const T *fine_source, const T *fine_error, T *source, T *error) {
    constexpr int F = 2 * N;
    const Around around(level, cell.g);
    const T *from = fine_source + size_t(cell.slot) * (F * F * F);
    const int x = 2 * cell.x;
    const auto residual = [&](int x, int y, int z) {
        return from[(z * F + y) * F + x] - around.laplacian<F>(fine_error, x, y, z);
    };
    const auto pair = [&](int y, int z) { return residual(x, y, z) + residual(x + 1, y, z); };
    const int y = 2 * cell.y, z = 2 * cell.z;
    const T sum = (pair(y, z) + pair(y + 1, z)) + (pair(y, z + 1) + pair(y + 1, z + 1));
    source[cell.place()] = T(0.5) * sum;
    error[cell.place()] = -factors.step[around.missing<N>(cell.x, cell.y, cell.z)] * (T(0.5) * sum);
}

/// To a cell of the fine grid, N cells a group.
template <int F, typename T>
__device__ void prolong_error(const Level &level, const CoarseCell<F> &cell, const T *coarse, T *fine) {
    constexpr int N = F / 2;
    const Around around(level, cell.g);
    const int x = cell.x / 2, y = cell.y / 2, z = cell.z / 2;
    const int dx = cell.x & 1 ? 1 : -1, dy = cell.y & 1 ? 1 : -1, dz = cell.z & 1 ? 1 : -1;
    const auto along_x = [&](int y, int z) {
        return quarter_towards(around.value<N>(coarse, x, y, z), around.value<N>(coarse, x + dx, y, z));
    };
    const auto along_y = [&](int z) { return quarter_towards(along_x(y, z), along_x(y + dy, z)); };
    fine[cell.place()] += quarter_towards(along_y(z), along_y(z + dz));
}

/// Groups that a thread has in solve_coarsest, at most: as in cuda.rs.
constexpr int GROUPS_OF_A_THREAD = 4;

/// A group's neighbours on the grid of one cell: slots, the group's own where there is none, and faces without neighbour.
struct SixNeighbours {
    uint32_t slot, beside[FACES], missing;

    __device__ void find(const Level &level, uint32_t g) {
        const Around around(level, g);
        slot = level.slots[g];
        missing = 0;
#pragma unroll
        for (int face = 0; face < FACES; face++) {
            const bool there = around.has(CENTRE, face / 2, face & 1 ? 1 : -1);
            beside[face] = there ? around.row[face_direction(face)] : slot;
            missing |= uint32_t(!there) << face;
        }
    }

    template <typename T> __device__ T laplacian(const T *error) const {
        T sides[FACES];
#pragma unroll
        for (int face = 0; face < FACES; face++)
            sides[face] = (missing >> face & 1 ? beyond_factor<T>(1) : T(1)) * error[beside[face]];
        return (((sides[0] + sides[1]) + (sides[2] + sides[3])) + (sides[4] + sides[5])) - T(6) * error[slot];
    }
};

/// Factors of the sweeps on the coarsest grid, in their order: the twin of cuda.rs.
template <typename T> struct CoarsestFactors {
    Factors<T> sweeps[8];
};

/// All sweeps on the grid of one cell a group by one block, from the residual of the grid of 2^3 cells or, without that, from
/// `source`; the error comes to `next`.
template <typename T>
__device__ void solve_coarsest(const Level &level, const CoarsestFactors<T> &factors, const T *fine_source,
                               const T *fine_error, T *source, T *error, T *next) {
    SixNeighbours neighbours[GROUPS_OF_A_THREAD];
    T right[GROUPS_OF_A_THREAD];
    const auto each_group = [&](const auto &work) {
#pragma unroll
        for (int n = 0; n < GROUPS_OF_A_THREAD; n++) {
            const uint32_t g = threadIdx.x + n * blockDim.x;
            if (g < level.groups) work(g, n);
        }
        __syncthreads();
    };
    each_group([&](uint32_t g, int n) {
        neighbours[n].find(level, g);
        const CoarseCell<1> cell(level, g);
        if (fine_source) restrict_residual<1>(level, cell, factors.sweeps[0], fine_source, fine_error, source, error);
        else start_sweep<1>(level, cell, factors.sweeps[0], source, error);
        right[n] = source[cell.place()];
    });
    for (int sweep = 1; sweep < 8; sweep++) {
        each_group([&](uint32_t, int n) {
            const SixNeighbours &six = neighbours[n];
            const T residual = six.laplacian(error) - right[n];
            next[six.slot] = error[six.slot] + factors.sweeps[sweep].step[__popc(six.missing)] * residual;
        });
        T *swapped = error;
        error = next;
        next = swapped;
    }
}

/// The arrays of a grid.
template <typename T> struct GridArrays {
    T *source, *error, *next;
};

/// The grids of 4^3, 2^3 and 1 cells a group, and the factors of their sweeps in the order of the cycle, the coarsest's last:
/// the twins of cuda.rs.
template <typename T> struct SmallGrids {
    GridArrays<T> four, two, one;
};
template <typename T> struct SmallGridFactors {
    Factors<T> before_four, start_two, before_two, after_two, after_four;
    CoarsestFactors<T> coarsest;
};

/// Calls `work` with all cells of a grid, shared between all threads, and waits for all of these.
template <int N, typename Work> __device__ void each_cell(const Level &level, const Work &work) {
    const size_t cells = size_t(level.groups) * (N * N * N), threads = size_t(gridDim.x) * blockDim.x;
    for (size_t n = size_t(blockIdx.x) * blockDim.x + threadIdx.x; n < cells; n += threads) work(CoarseCell<N>(level, n));
    wait_for_all_blocks();
}

/// The V-cycle from the grid of 4^3 cells on, whose first sweep is done: all of it in one launch, as launches of small grids
/// take longer than their work. The error of the coarsest grid comes to its `next`.
template <typename T>
__device__ void solve_small_grids(const Level &level, const SmallGrids<T> &grids, const SmallGridFactors<T> &factors) {
    const GridArrays<T> &four = grids.four, &two = grids.two, &one = grids.one;
    each_cell<4>(level, [&](const CoarseCell<4> &cell) {
        smooth<4>(level, cell, factors.before_four, four.source, four.error, four.next);
    });
    each_cell<2>(level, [&](const CoarseCell<2> &cell) {
        restrict_residual<2>(level, cell, factors.start_two, four.source, four.next, two.source, two.error);
    });
    each_cell<2>(level, [&](const CoarseCell<2> &cell) {
        smooth<2>(level, cell, factors.before_two, two.source, two.error, two.next);
    });
    if (blockIdx.x == 0) solve_coarsest<T>(level, factors.coarsest, two.source, two.next, one.source, one.error, one.next);
    wait_for_all_blocks();
    each_cell<2>(level, [&](const CoarseCell<2> &cell) { prolong_error<2>(level, cell, one.next, two.next); });
    each_cell<2>(level, [&](const CoarseCell<2> &cell) {
        smooth<2>(level, cell, factors.after_two, two.source, two.next, two.error);
    });
    each_cell<4>(level, [&](const CoarseCell<4> &cell) { prolong_error<4>(level, cell, two.error, four.next); });
    each_cell<4>(level, [&](const CoarseCell<4> &cell) {
        smooth<4>(level, cell, factors.after_four, four.source, four.next, four.error);
    });
}

#define START(N, T, suffix)                                                                                            \
    extern "C" __global__ void start_sweep_##N##_##suffix(Level level, Factors<T> factors, const T *source,            \
                                                          T *error) {                                                  \
        cell_of_thread<N>(level, [&](const CoarseCell<N> &cell) {                                                      \
            start_sweep<N, T>(level, cell, factors, source, error);                                                    \
        });                                                                                                            \
    }
#define FINEST(T, suffix)                                                                                              \
    extern "C" __global__ void face_residual_##suffix(Level level, const T *ghosts, const T *potential,                \
                                                      Factors<T> factors, T *source, T *error) {                       \
        face_residual<T>(level, ghosts, potential, factors, source, error);                                            \
    }                                                                                                                  \
    extern "C" __global__ void smooth_8_##suffix(Level level, Factors<T> factors, const T *source, const T *error,     \
                                                 T *next) {                                                            \
        smooth_finest<T>(level, factors, source, error, next);                                                         \
    }                                                                                                                  \
    extern "C" __global__ void restrict_residual_4_##suffix(Level level, Factors<T> factors, const T *fine_source,     \
                                                            const T *fine_error, T *source, T *error) {                \
        restrict_finest<T>(level, factors, fine_source, fine_error, source, error);                                    \
    }                                                                                                                  \
    extern "C" __global__ void prolong_error_4_##suffix(Level level, const T *coarse, T *fine) {                       \
        prolong_finest<T>(level, coarse, fine);                                                                        \
    }
#define GRID(N, T, suffix)                                                                                             \
    extern "C" __global__ void smooth_##N##_##suffix(Level level, Factors<T> factors, const T *source, const T *error, \
                                                     T *next) {                                                        \
        cell_of_thread<N>(level, [&](const CoarseCell<N> &cell) {                                                      \
            smooth<N, T>(level, cell, factors, source, error, next);                                                   \
        });                                                                                                            \
    }
#define PAIR(N, T, suffix)                                                                                             \
    extern "C" __global__ void restrict_residual_##N##_##suffix(Level level, Factors<T> factors, const T *fine_source, \
                                                                const T *fine_error, T *source, T *error) {            \
        cell_of_thread<N>(level, [&](const CoarseCell<N> &cell) {                                                      \
            restrict_residual<N, T>(level, cell, factors, fine_source, fine_error, source, error);                     \
        });                                                                                                            \
    }                                                                                                                  \
    extern "C" __global__ void prolong_error_##N##_##suffix(Level level, const T *coarse, T *fine) {                   \
        cell_of_thread<2 * N>(level, [&](const CoarseCell<2 * N> &cell) {                                              \
            prolong_error<2 * N, T>(level, cell, coarse, fine);                                                        \
        });                                                                                                            \
    }
#define COARSEST(T, suffix)                                                                                            \
    extern "C" __global__ void __launch_bounds__(1024)                                                                 \
        solve_coarsest_##suffix(Level level, CoarsestFactors<T> factors, const T *fine_source, const T *fine_error,    \
                                T *source, T *error, T *next) {                                                        \
        solve_coarsest<T>(level, factors, fine_source, fine_error, source, error, next);                               \
    }
#define SMALL(T, suffix)                                                                                               \
    extern "C" __global__ void __launch_bounds__(1024)                                                                 \
        solve_small_grids_##suffix(Level level, SmallGrids<T> grids, SmallGridFactors<T> factors) {                    \
        solve_small_grids<T>(level, grids, factors);                                                                   \
    }
#define ALL(T, suffix)                                                                                                 \
    START(8, T, suffix)                                                                                                \
    START(2, T, suffix)                                                                                                \
    START(1, T, suffix)                                                                                                \
    FINEST(T, suffix)                                                                                                  \
    GRID(4, T, suffix)                                                                                                 \
    GRID(2, T, suffix)                                                                                                 \
    GRID(1, T, suffix)                                                                                                 \
    PAIR(2, T, suffix)                                                                                                 \
    PAIR(1, T, suffix)                                                                                                 \
    COARSEST(T, suffix)                                                                                                \
    SMALL(T, suffix)
ALL(float, f32)
ALL(double, f64)
