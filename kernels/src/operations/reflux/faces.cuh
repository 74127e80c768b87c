// The coarse cells beside corrected faces: the twin of reflux/faces.rs.
#pragma once
#include "layout.cuh"
#include "point/symmetric_sum.cuh"

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
__device__ __forceinline__ int cell_of(const CoarseFineFace &face, int n) {
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

/// Notes the place in the list of each patch's six faces, by all threads of a block.
__device__ __forceinline__ void list_faces(const CoarseFineFace *faces, int count, uint32_t *listed) {
    for (int n = threadIdx.x; n < OCTANTS * FACES; n += blockDim.x) listed[n] = NONE;
    __syncthreads();
    for (int n = threadIdx.x; n < count; n += blockDim.x) {
        listed[faces[n].octant * FACES + 2 * faces[n].axis + faces[n].high] = n;
    }
    __syncthreads();
}

/// A cell beside faces, with what corrects it through them: cell n % 64 beside face n / 64 of a list.
template <typename T> struct CorrectedCell {
    int cell;
    Correction<T> corrections[3];
    int visits;
    /// Whether this is the first of its faces: a cell at an edge belongs to that.
    bool is_first;

    /// plane_values: of a flux plane
    __device__ __forceinline__ CorrectedCell(const CoarseFineFace *faces, int n, const uint32_t *listed, const T *fluxes,
                                             int plane_values, T dt_over_dx) {
        const uint32_t own = n / PATCH_FACE;
        const int octant = faces[own].octant;
        cell = cell_of(faces[own], n % PATCH_FACE);
        const int at[3] = {cell % GROUP, cell / GROUP % GROUP, cell / FACE_CELLS};
        uint32_t first = NONE;
        visits = 0;
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
            correction.coarse = fluxes + size_t(faces[face].coarse_plane) * plane_values + b * GROUP + a;
            correction.fine = fluxes + size_t(faces[face].fine_plane) * plane_values + 2 * (b % PATCH) * GROUP + 2 * (a % PATCH);
            correction.factor = high ? -dt_over_dx : dt_over_dx;
            first = min(first, face);
            visits++;
        }
        is_first = first == own;
    }

    /// What a field gains.
    __device__ __forceinline__ T change(int f, T quarter) const {
        return sum_of_three(corrections[0].change(f, quarter), corrections[1].change(f, quarter),
                            corrections[2].change(f, quarter));
    }
};
