// Flux correction: the twin of reflux/cpu.rs. One block a coarse group, one thread for all faces of a cell.
#include "level/report.cuh"
#include "point/dual_energy.cuh"

struct CoarseFineFace {
    uint8_t axis;
    bool high;
    uint8_t octant;
    uint32_t coarse_plane;
    uint32_t fine_plane;
};

struct RefluxGroup {
    uint32_t index;
    uint32_t slot;
    uint32_t end;
};

constexpr int PATCH_FACE = PATCH * PATCH;

/// Offset in the group of cell n of the coarse cells beside a face.
__device__ int cell_of(const CoarseFineFace &face, int n) {
    const int a = n % PATCH, b = n / PATCH, layer = face.high ? PATCH - 1 : 0, o = face.octant;
    const int i = face.axis == 0 ? layer : a;
    const int j = face.axis == 0 ? a : face.axis == 1 ? layer : b;
    const int k = face.axis == 2 ? layer : b;
    return cell((o & 1) * PATCH + i, (o >> 1 & 1) * PATCH + j, (o >> 2) * PATCH + k);
}

/// What corrects a cell through its face across one axis.
template <typename T> struct Correction {
    /// AxisPosition of the cell in the faces' order, 64 a face; NONE where no face is corrected.
    uint32_t place;
    const T *coarse;
    const T *fine;
    T factor;

    __device__ T change(int f, T quarter) const {
        if (place == NONE) return T(0);
        const T *low = fine + f * FACE_CELLS, *high = low + GROUP;
        // along the diagonals, as the twin
        const T four = (low[0] + high[1]) + (low[1] + high[0]);
        return T(0) + factor * (quarter * four - coarse[f * FACE_CELLS]);
    }
};

template <typename T>
__device__ void correct_group(const CoarseFineFace *faces, const RefluxGroup *groups, T *fluid, const T *fluxes,
                              T dt_over_dx, T fine_share, const Eos<T> &eos, GroupReport *reports) {
    const uint32_t start = blockIdx.x == 0 ? 0 : groups[blockIdx.x - 1].end;
    const int count = groups[blockIdx.x].end - start;
    T *group = fluid + size_t(groups[blockIdx.x].slot) * GROUP_VALUES;
    faces += start;
    // the place in the list of each patch's six faces
    __shared__ uint32_t listed[OCTANTS * FACES];
    for (int n = threadIdx.x; n < OCTANTS * FACES; n += blockDim.x) listed[n] = NONE;
    __syncthreads();
    for (int n = threadIdx.x; n < count; n += blockDim.x) {
        listed[faces[n].octant * FACES + 2 * faces[n].axis + faces[n].high] = n;
    }
    __syncthreads();

    const T quarter = T(0.25) * fine_share;
    Booking booking;
    for (int n = threadIdx.x; n < count * PATCH_FACE; n += blockDim.x) {
        const uint32_t own = n / PATCH_FACE;
        const int octant = faces[own].octant, c = cell_of(faces[own], n % PATCH_FACE);
        const int at[3] = {c % GROUP, c / GROUP % GROUP, c / FACE_CELLS};
        Correction<T> corrections[3];
        uint32_t first = NONE;
        int visits = 0;
#pragma unroll
        for (int axis = 0; axis < 3; axis++) {
            const int layer = at[axis] % PATCH;
            const bool edge = layer == 0 || layer == PATCH - 1, high = layer != 0;
            const uint32_t face = edge ? listed[octant * FACES + 2 * axis + high] : NONE;
            Correction<T> &correction = corrections[axis];
            correction.place = NONE;
            if (face == NONE) continue;
            const int a = axis == 0 ? at[1] : at[0], b = axis == 2 ? at[1] : at[2];
            correction.place = face * PATCH_FACE + b % PATCH * PATCH + a % PATCH;
            correction.coarse = fluxes + size_t(faces[face].coarse_plane) * FLUX_PLANE_VALUES + b * GROUP + a;
            correction.fine = fluxes + size_t(faces[face].fine_plane) * FLUX_PLANE_VALUES +
                              2 * (b % PATCH) * GROUP + 2 * (a % PATCH);
            correction.factor = high ? -dt_over_dx : dt_over_dx;
            first = min(first, face);
            visits++;
        }
        // a cell at an edge belongs to the first of its faces
        if (first != own) continue;
        T u[FIELDS];
        const T density_before = group[c];
#pragma unroll
        for (int f = 0; f < FIELDS; f++) {
            T change = sum_of_three(corrections[0].change(f, quarter), corrections[1].change(f, quarter),
                                    corrections[2].change(f, quarter));
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
