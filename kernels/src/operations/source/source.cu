// A source of internal energy in each group of a level: one block a group, one thread a column of cells.
#include "level/report.cuh"
#include "point/relaxation.cuh"
#include "point/source.cuh"

/// What the host gets of each group: the twin of mod.rs.
struct SourceReport {
    GroupReport report;
    double energy;
    double relative_change;
    uint32_t cell;
    uint32_t padding; // by name, so that nothing goes to the host that was never written
};

template <typename T, typename S>
__device__ void apply_source(const Level &level, T *fluid, const Eos<T> &eos, SourceReport *reports, const S &source) {
    __shared__ BlockRoom room;
    const uint32_t group = blockIdx.x;
    const uint8_t leaves = level.leaves[group];
    T *own = fluid + size_t(level.slots[group]) * GROUP_VALUES;
    const int i = threadIdx.x % GROUP, j = threadIdx.x / GROUP;
    Booking booking;
    double energy = 0.0, part = 0.0;
    uint32_t where = 0;
    for (int k = 0; k < GROUP; k++) {
        const int c = cell(i, j, k);
        T u[FIELDS];
#pragma unroll
        for (int f = 0; f < FIELDS; f++) u[f] = own[f * GROUP_CELLS + c];
        const T before = u[ENERGY];
        const double changed = double(act(u, source, eos));
        const T density = u[DENSITY], after = u[ENERGY];
        const Synchronised done = synchronise(u, ShockIndicator<T>::UNSEEN, eos);
        if (is_leaf(leaves, i, j, k)) {
            booking.add(density, after, u, done, c);
            energy += double(after) - double(before);
            if (changed > part) part = changed, where = c;
        }
#pragma unroll
        for (int f = 0; f < FIELDS; f++) own[f * GROUP_CELLS + c] = u[f];
    }
    SourceReport report = {};
    sum_bookings(booking, room, report.report);
    report.energy = sum_of_block(energy, room.reals);
    report.relative_change = largest_of_block(part, where, room, report.cell);
    if (threadIdx.x == 0) reports[group] = report;
}

#define SOURCE(name, Source, T, suffix)                                                                                \
    extern "C" __global__ void __launch_bounds__(FACE_CELLS)                                                           \
        source_##name##_##suffix(Level level, T *fluid, Eos<T> eos, SourceReport *reports, Source<T> source) {         \
        apply_source(level, fluid, eos, reports, source);                                                              \
    }
SOURCE(relaxation, Relaxation, float, f32)
SOURCE(relaxation, Relaxation, double, f64)
