// Red-black successive overrelaxation in each group of a level: the twin of sor.rs. One block a group, one thread a row
// of both colours.
#include "level/report.cuh"
#include "operations/group_poisson/group.cuh"

/// The group with its ghost cells along one axis, cells of one colour in a row, values of one colour.
constexpr int WIDTH = GROUP + 2;
constexpr int ROW = WIDTH / 2;
constexpr int ACTIVE = GROUP / 2;
constexpr int COLOUR = WIDTH * WIDTH * ROW;
constexpr uint32_t MOST_ITERATIONS = 500;
constexpr uint32_t STALL = 8;

template <typename T> struct SorOptions {
    double tolerance;
    T omega;
    int32_t from_held; // start from what the potential holds
    uint32_t *iterations; // [groups]
};

/// Updates a row's cells of one colour; returns the one-norm of their residual before.
template <typename T>
__device__ double half_step(int colour, T omega, const T (&right_hand_side)[ACTIVE], T *values) {
    const int j = threadIdx.x % GROUP, k = threadIdx.x / GROUP;
    const int odd = (j + k + colour) & 1;
    const int first = ((k + 1) * WIDTH + j + 1) * ROW + 1 - odd;
    const T *others = values + (1 - colour) * COLOUR + first;
    T *own = values + colour * COLOUR + first;
    const T six = T(6.0), sixth = omega / T(6.0);
    double norm = 0.0;
#pragma unroll
    for (int n = 0; n < ACTIVE; n++) {
        const T across = (others[odd - 1 + n] + others[odd + n]) + (others[n - ROW] + others[n + ROW]) +
                         (others[n - WIDTH * ROW] + others[n + WIDTH * ROW]);
        const T residual = across - six * own[n] - right_hand_side[n];
        own[n] += sixth * residual;
        norm += double(absolute(residual));
    }
    return norm;
}

template <typename T>
__device__ void group_poisson_sor(const Level &level, const GhostRequest<T> &request, const PoissonSource<T> &source,
                                  const Solution<T> &solution, const SorOptions<T> &options) {
    extern __shared__ double dynamic[];
    __shared__ BlockRoom room;
    __shared__ T mean_room;
    T *values = reinterpret_cast<T *>(dynamic); // [2, 18, 18, 9]
    T *ghosts = values + 2 * COLOUR;            // [6, 16, 16]
    static_assert(GHOST_SCRATCH <= 2 * COLOUR, "the gather works where the iteration does later");
    const uint32_t g = request.group();
    const uint32_t slot = level.slots[g];
    T *potential = solution.potential + size_t(slot) * GROUP_CELLS;
    const int t = threadIdx.x, j = t % GROUP, k = t / GROUP;
    load_boundary(level, g, request, ghosts, values);
    const T mean = boundary_mean(ghosts, &mean_room);

    double norm = 0.0;
    for (int face = 0; face < FACES; face++) {
        // of the ghost, counted from the first ghost along each axis
        int at[3];
        at[face / 2] = face & 1 ? WIDTH - 1 : 0;
        at[first_axis(face / 2)] = t % GROUP + 1;
        at[second_axis(face / 2)] = t / GROUP + 1;
        const T ghost = ghosts[face * FACE_CELLS + t] - mean;
        values[((at[0] + at[1] + at[2]) & 1) * COLOUR + (at[2] * WIDTH + at[1]) * ROW + at[0] / 2] = ghost;
        norm += double(absolute(ghost));
    }
    // the first cell of each colour in this row
    const int offset[2] = {(j + k + 1) & 1, (j + k) & 1};
    T right_hand_side[2][ACTIVE];
#pragma unroll
    for (int colour = 0; colour < 2; colour++) {
        T *own = values + colour * COLOUR + ((k + 1) * WIDTH + j + 1) * ROW;
#pragma unroll
        for (int n = 0; n < ACTIVE; n++) {
            const int i = 2 * n + offset[colour];
            const T raw = source.raw(slot, cell(i, j, k));
            const T value = source.template of_raw<T>(raw, slot, cell(i, j, k), solution.h * solution.h);
            right_hand_side[colour][n] = value;
            norm += double(absolute(value));
            own[(i + 1) / 2] = options.from_held ? potential[cell(i, j, k)] - mean : T(0);
        }
    }
    norm = sum_of_block(norm, room.reals);

    uint32_t iterations = 0, since_least = 0;
    double least = INFINITY;
    while (iterations < MOST_ITERATIONS) {
        double residual = half_step(0, options.omega, right_hand_side[0], values);
        __syncthreads();
        residual += half_step(1, options.omega, right_hand_side[1], values);
        residual = sum_of_block(residual, room.reals);
        iterations++;
        since_least = residual < least ? 0 : since_least + 1;
        least = residual < least ? residual : least;
        if (residual <= options.tolerance * norm || since_least >= STALL) break;
    }
    if (t == 0) options.iterations[g] = iterations;

    const auto value = [&](int i, int j, int k) {
        return values[((i + j + k + 1) & 1) * COLOUR + ((k + 1) * WIDTH + j + 1) * ROW + (i + 1) / 2];
    };
    for (int c = t; c < GROUP_CELLS; c += FACE_CELLS)
        potential[c] = value(c % GROUP, c / GROUP % GROUP, c / FACE_CELLS) + mean;
    if (!solution.gradients) return;
    for (int face = 0; face < FACES; face++) {
        const int c = face_cell(face, 0, t % GROUP, t / GROUP);
        T &ghost = ghosts[face * FACE_CELLS + t];
        ghost = ghost - mean - value(c % GROUP, c / GROUP % GROUP, c / FACE_CELLS);
    }
    __syncthreads();
    face_gradients(ghosts, solution.h, solution.gradients + size_t(slot) * FACES * PATCH * PATCH);
}

#define BOTH(T, suffix)                                                                                                \
    extern "C" __global__ void __launch_bounds__(FACE_CELLS)                                                           \
        group_poisson_sor_##suffix(Level level, GhostRequest<T> request, PoissonSource<T> source,                      \
                                   Solution<T> solution, SorOptions<T> options) {                                      \
        group_poisson_sor<T>(level, request, source, solution, options);                                               \
    }
BOTH(float, f32)
BOTH(double, f64)
