// Flux correction: the twin of reflux/cpu.rs. One block a coarse group, one thread for all faces of a cell.
#include "level/report.cuh"
#include "operations/reflux/faces.cuh"
#include "point/dual_energy.cuh"

template <typename T>
__device__ void correct_group(const CoarseFineFace *faces, const RefluxGroup *groups, T *fluid, const T *fluxes,
                              T dt_over_dx, T fine_share, const Eos<T> &eos, GroupReport *reports) {
    const uint32_t start = blockIdx.x == 0 ? 0 : groups[blockIdx.x - 1].end;
    const int count = groups[blockIdx.x].end - start;
    T *group = fluid + size_t(groups[blockIdx.x].slot) * GROUP_VALUES;
    faces += start;
    __shared__ uint32_t listed[OCTANTS * FACES];
    list_faces(faces, count, listed);

    const T quarter = T(0.25) * fine_share;
    Booking booking;
    for (int n = threadIdx.x; n < count * PATCH_FACE; n += blockDim.x) {
        const CorrectedCell<T> corrected(faces, n, listed, fluxes, FLUX_PLANE_VALUES, dt_over_dx);
        if (!corrected.is_first) continue;
        const Correction<T>(&corrections)[3] = corrected.corrections;
        const int c = corrected.cell, visits = corrected.visits;
        T u[FIELDS];
        const T density_before = group[c];
#pragma unroll
        for (int f = 0; f < FIELDS; f++) {
            T change = corrected.change(f, quarter);
            u[f] = group[f * GROUP_CELLS + c];
            // the twin meets the cell once a face, and adds nothing from the second time on
            for (int visit = 0; visit < visits; visit++) {
                const T after = u[f] + change;
                u[f] = f == ENTROPY && after <= T(0) ? on_adiabat(u[f], density_before, u[DENSITY]) : after;
                change = T(0);
            }
        }
        // the same in the order of the faces
        uint32_t places[3] = {corrections[0].place, corrections[1].place, corrections[2].place};
        for (int visit = 0; visit < visits; visit++) {
            const uint32_t place = min(places[0], min(places[1], places[2]));
#pragma unroll
            for (int axis = 0; axis < 3; axis++) places[axis] = places[axis] == place ? NONE : places[axis];
            const T density = u[DENSITY], energy = u[ENERGY];
            const Synchronised done = synchronise(u, ShockIndicator<T>::UNSEEN, eos);
            booking.add(density, energy, u, done, place);
        }
#pragma unroll
        for (int f = 0; f < FIELDS; f++) group[f * GROUP_CELLS + c] = u[f];
    }

    __shared__ BlockRoom room;
    GroupReport report = {};
    sum_bookings(booking, room, report);
    if (threadIdx.x == 0) {
        // places to offsets
        const auto offset = [&](uint32_t place) { return cell_of(faces[place / PATCH_FACE], place % PATCH_FACE); };
        if (report.floored > 0) report.first_floored = offset(report.first_floored);
        if (report.invalid > 0) report.first_invalid = offset(report.first_invalid);
        reports[blockIdx.x] = report;
    }
}

#define BOTH(T, suffix)                                                                                                \
    extern "C" __global__ void reflux_##suffix(const CoarseFineFace *faces, const RefluxGroup *groups, T *fluid,       \
                                               const T *fluxes, T dt_over_dx, T fine_share, const Eos<T> eos,          \
                                               GroupReport *reports) {                                                 \
        correct_group<T>(faces, groups, fluid, fluxes, dt_over_dx, fine_share, eos, reports);                          \
    }
BOTH(float, f32)
BOTH(double, f64)
