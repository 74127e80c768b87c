// A particle's position, its mass class, and the cells that share its mass: the twin of particle.rs.
#pragma once
#include "device/cuda/real.cuh"

constexpr int WEIGHT_BITS = 14;
constexpr int CLASSES = 8;
constexpr int KINDS = 2 * CLASSES;

/// The mass class of a particle, from the upper half of its identity.
INLINE int class_of(uint32_t upper_half) { return int(upper_half >> 28) & (CLASSES - 1); }

/// Class and mark of a particle, likewise.
INLINE int kind_of(uint32_t upper_half) { return int(upper_half >> 27) & (KINDS - 1); }

struct WeightUnit {
    uint32_t bits;
    uint32_t of_kind[KINDS];
};
static_assert(sizeof(WeightUnit) == 68, "as particle.rs has it");

struct Cloud {
    uint32_t cell;
    int lower;
    uint32_t weights[2];

    INLINE Cloud(uint32_t position, uint32_t cells, int bits = WEIGHT_BITS) {
        const uint64_t scaled = uint64_t(position) * cells;
        const uint32_t within = uint32_t(scaled), half = 1u << 31;
        cell = uint32_t(scaled >> 32);
        lower = within < half ? -1 : 0;
        const uint64_t above = within + half;
        weights[1] = uint32_t((uint64_t(uint32_t(above)) + (1u << (31 - bits))) >> (32 - bits));
        weights[0] = (1u << bits) - weights[1];
    }
};

struct WideCloud {
    uint32_t cell;
    uint32_t weights[3];

    INLINE WideCloud(uint32_t position, uint32_t cells, int bits) {
        const Cloud coarse(position, cells / 2, bits);
        const uint32_t half = 1u << (bits - 1);
        const bool is_lower = coarse.lower < 0;
        cell = uint32_t((uint64_t(position) * cells) >> 32);
        weights[0] = coarse.weights[0] - (is_lower ? 0 : half);
        weights[1] = half;
        weights[2] = coarse.weights[1] - (is_lower ? half : 0);
    }
};

INLINE uint32_t drifted(uint32_t position, float velocity, double factor) {
    return position + uint32_t((long long)rint(double(velocity) * factor));
}
