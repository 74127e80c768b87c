// The kick of each group of a level, and where its field is largest: one block a group, one thread a column of cells.
#include "level/report.cuh"
#include "operations/potential_ghosts/potential_ghosts.cuh"

struct Peak {
    double acceleration;
    uint32_t cell;
    uint32_t padding; // by name, so that nothing goes to the host that was never written
};

/// What the host gets of each group: the twin of mod.rs.
struct KickReport {
    GroupReport report;
    double work;
    Peak peak;
};

/// A group's potential and its ghosts in shared memory.
template <typename T> struct Field {
    T *potential; // [16, 16, 16]
    T *ghosts;    // [6, 16, 16]
    T scale;      // -1/(2h)

    /// Loads both; every thread of the block calls it.
    __device__ Field(const Level &level, const GhostRequest<T> &request, T *room, T *ghosts, T scale)
        : potential(room), ghosts(ghosts), scale(scale) {
        static_assert(GHOST_SCRATCH <= GROUP_CELLS, "the gather works where the potential lies later");
        gather_ghosts(level, blockIdx.x, request, ghosts, room);
        __syncthreads();
        const T *own = request.potential + size_t(level.slots[blockIdx.x]) * GROUP_CELLS;
        for (int c = threadIdx.x; c < GROUP_CELLS; c += FACE_CELLS) room[c] = own[c];
        __syncthreads();
    }

    __device__ void acceleration(int i, int j, int k, T (&g)[3]) const {
        const int c = cell(i, j, k), last = GROUP - 1;
        const T west = i > 0 ? potential[c - 1] : ghosts[k * GROUP + j];
        const T east = i < last ? potential[c + 1] : ghosts[FACE_CELLS + k * GROUP + j];
        const T south = j > 0 ? potential[c - GROUP] : ghosts[2 * FACE_CELLS + k * GROUP + i];
        const T north = j < last ? potential[c + GROUP] : ghosts[3 * FACE_CELLS + k * GROUP + i];
        const T below = k > 0 ? potential[c - FACE_CELLS] : ghosts[4 * FACE_CELLS + j * GROUP + i];
        const T above = k < last ? potential[c + FACE_CELLS] : ghosts[5 * FACE_CELLS + j * GROUP + i];
        g[0] = scale * (east - west);
        g[1] = scale * (north - south);
        g[2] = scale * (above - below);
    }
};

/// The largest |g|^2 of a thread's leaf cells, visited in layout order, and where it is.
template <typename T> struct RunningPeak {
    T square = T(0);
    uint32_t cell = 0;

    __device__ void raise(const T (&g)[3], uint32_t at) {
        const T here = g[0] * g[0] + g[1] * g[1] + g[2] * g[2];
        if (here > square) square = here, cell = at;
    }

    /// The largest of the block; the first of equal ones in layout order.
    __device__ Peak finish(BlockRoom &room) const {
        uint32_t first;
        const double largest = largest_of_block(square, cell, room, first);
        return {sqrt(largest), first};
    }
};

template <typename T>
__device__ void gravity_kick(const Level &level, const GhostRequest<T> &request, T *fluid, T scale, double dt,
                             const Eos<T> &eos, KickReport *reports) {
    __shared__ T potential[GROUP_CELLS];
    __shared__ T ghosts[GHOST_CELLS];
    __shared__ BlockRoom room;
    const Field<T> field(level, request, potential, ghosts, scale);
    const uint32_t group = blockIdx.x;
    const uint8_t leaves = level.leaves[group];
    T *own = fluid + size_t(level.slots[group]) * GROUP_VALUES;
    const int i = threadIdx.x % GROUP, j = threadIdx.x / GROUP;
    Booking booking;
    RunningPeak<T> peak;
    double work = 0.0;
    for (int k = 0; k < GROUP; k++) {
        const int c = cell(i, j, k);
        T g[3], u[FIELDS];
        field.acceleration(i, j, k, g);
#pragma unroll
        for (int f = 0; f < FIELDS; f++) u[f] = own[f * GROUP_CELLS + c];
        // m' = m + rho g dt; E' = E + sum (m' + m)(m' - m) / (2 rho), the exact change of the kinetic energy
        T twice_kinetic = T(0);
        double power = 0.0;
#pragma unroll
        for (int axis = 0; axis < 3; axis++) {
            const T before = u[MOMENTUM + axis];
            const T after = before + u[DENSITY] * g[axis] * T(dt);
            twice_kinetic += (after + before) * (after - before);
            power += (double(before) + double(after)) * double(g[axis]);
            u[MOMENTUM + axis] = after;
        }
        u[ENERGY] += twice_kinetic / (u[DENSITY] + u[DENSITY]);
        const T density = u[DENSITY], energy = u[ENERGY];
        const Synchronised done = synchronise(u, ShockIndicator<T>::UNSEEN, eos);
        if (is_leaf(leaves, i, j, k)) {
            booking.add(density, energy, u, done, c);
            peak.raise(g, c);
            work += 0.5 * dt * power;
        }
#pragma unroll
        for (int f = 0; f < FIELDS; f++) own[f * GROUP_CELLS + c] = u[f];
    }
    KickReport report = {};
    sum_bookings(booking, room, report.report);
    report.work = sum_of_block(work, room.reals);
    report.peak = peak.finish(room);
    if (threadIdx.x == 0) reports[group] = report;
}

template <typename T>
__device__ void max_acceleration(const Level &level, const GhostRequest<T> &request, T scale, Peak *peaks) {
    __shared__ T potential[GROUP_CELLS];
    __shared__ T ghosts[GHOST_CELLS];
    __shared__ BlockRoom room;
    const Field<T> field(level, request, potential, ghosts, scale);
    const uint8_t leaves = level.leaves[blockIdx.x];
    const int i = threadIdx.x % GROUP, j = threadIdx.x / GROUP;
    RunningPeak<T> peak;
    for (int k = 0; k < GROUP; k++) {
        T g[3];
        field.acceleration(i, j, k, g);
        if (is_leaf(leaves, i, j, k)) peak.raise(g, cell(i, j, k));
    }
    const Peak largest = peak.finish(room);
    if (threadIdx.x == 0) peaks[blockIdx.x] = largest;
}

#define BOTH(T, suffix)                                                                                                \
    extern "C" __global__ void __launch_bounds__(FACE_CELLS)                                                           \
        gravity_kick_##suffix(Level level, GhostRequest<T> request, T *fluid, T scale, double dt, Eos<T> eos,          \
                              KickReport *reports) {                                                                   \
        gravity_kick<T>(level, request, fluid, scale, dt, eos, reports);                                               \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(FACE_CELLS)                                                           \
        max_acceleration_##suffix(Level level, GhostRequest<T> request, T scale, Peak *peaks) {                        \
        max_acceleration<T>(level, request, scale, peaks);                                                             \
    }
BOTH(float, f32)
BOTH(double, f64)
