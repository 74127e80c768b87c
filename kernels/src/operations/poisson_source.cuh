// The right-hand side of a Poisson equation, computed where it is read: the twin of poisson_source.rs.
#pragma once
#include "layout.cuh"
#include "device/cuda/real.cuh"

template <typename T> struct PoissonSource {
    const T *density; // [slots, stride], beginning with [16, 16, 16]; null: matter does not count
    const T *field;   // [slots, 16, 16, 16]; null: no field
    uint64_t stride;
    double four_pi_g;
    double mean;

    /// The value that a source starts from, before arithmetic: it may be read early.
    __device__ T raw(uint32_t slot, int cell) const {
        return density ? density[slot * stride + cell] : field[size_t(slot) * GROUP_CELLS + cell];
    }

    /// factor times the source in a cell, given its raw value.
    template <typename U> __device__ U of_raw(T raw, uint32_t slot, int cell, double factor) const {
        if (!density) return U(factor) * U(raw);
        const U matter = U(factor * four_pi_g) * (U(raw) - U(mean));
        return field ? matter + U(factor) * U(field[size_t(slot) * GROUP_CELLS + cell]) : matter;
    }
};
