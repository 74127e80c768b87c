// A particle's position and the cells that share its mass: the twin of particle.rs.
#pragma once
#include "device/cuda/real.cuh"

constexpr int WEIGHT_BITS = 14;

struct Cloud {
    uint32_t cell;
    int lower;
    uint32_t weights[2];

    INLINE Cloud(uint32_t position, uint32_t cells) {
        const uint64_t scaled = uint64_t(position) * cells;
        const uint32_t within = uint32_t(scaled), half = 1u << 31;
        cell = uint32_t(scaled >> 32);
        lower = within < half ? -1 : 0;
        const uint64_t above = within + half;
        weights[1] = uint32_t((uint64_t(uint32_t(above)) + (1u << (31 - WEIGHT_BITS))) >> (32 - WEIGHT_BITS));
        weights[0] = (1u << WEIGHT_BITS) - weights[1];
    }
};

INLINE uint32_t drifted(uint32_t position, float velocity, double factor) {
    return position + uint32_t((long long)rint(double(velocity) * factor));
}
