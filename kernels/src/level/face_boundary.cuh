// What is beyond the faces of the domain that are not periodic: the twin of face_boundary.rs.
#pragma once
#include "level/level.cuh"
#include "device/cuda/real.cuh"

/// What a coordinate beyond an end of a group finds there.
enum Beyond : uint32_t { MORE_DOMAIN = 0, COPY = 1, MIRROR = 2, STATE = 3 };

/// The six ends of a group, two bits each.
INLINE uint32_t ends_of(const Level &level, uint32_t g) {
    const uint32_t outside = level.outside[g];
    uint32_t ends = 0;
#pragma unroll
    for (int face = 0; face < FACES; face++) {
        if (outside >> face & 1) ends |= (uint32_t(level.faces[face].kind) + 1) << 2 * face;
    }
    return ends;
}

/// Where a coordinate of a cell is found along one axis.
struct AxisPosition {
    /// The coordinate in the group; beyond a face, that of the cell inside which is copied or mirrored.
    int inside;
    /// What it is beyond.
    Beyond beyond;
    /// The face that it is beyond.
    int face;

    /// -1, 0 or 1: in which group.
    INLINE int step() const { return inside >> 4; }
    /// Which cell of that group.
    INLINE int cell() const { return inside & (GROUP - 1); }
};

/// The place of cell n, from -16 to 31, of a group with these ends along an axis.
INLINE AxisPosition place_of(uint32_t ends, int axis, int n) {
    const int face = 2 * axis + (n > 0);
    const Beyond beyond = Beyond(n >= 0 && n < GROUP ? 0 : ends >> 2 * face & 3);
    const int mirrored = n < 0 ? -1 - n : 2 * GROUP - 1 - n;
    const int outermost = n < 0 ? 0 : GROUP - 1;
    return {beyond == MORE_DOMAIN ? n : beyond == MIRROR ? mirrored : outermost, beyond, face};
}

/// Where the values of a cell come from: from the cell at its places, or from the state beyond a face.
struct Origin {
    /// The face, or -1 for a cell.
    int face;
    /// Bit a: the momentum along axis a has the other sign.
    uint32_t negated;

    /// Whether a field has the other sign.
    INLINE bool negates(int field) const {
        return field >= MOMENTUM && field < MOMENTUM + 3 && (negated >> (field - MOMENTUM) & 1);
    }
    /// The value of a field from one of the cell or, of the state's where that is given.
    template <typename T> INLINE T of(int field, T value) const { return negates(field) ? -value : value; }
};

/// The origin of the cell at these places: the last axis along which it lies outside decides first.
INLINE Origin origin_of(AxisPosition x, AxisPosition y, AxisPosition z) {
    uint32_t negated = z.beyond == MIRROR ? 4 : 0;
    if (z.beyond == STATE) return {z.face, 0};
    if (y.beyond == STATE) return {y.face, negated};
    negated |= y.beyond == MIRROR ? 2 : 0;
    if (x.beyond == STATE) return {x.face, negated};
    negated |= x.beyond == MIRROR ? 1 : 0;
    return {-1, negated};
}
