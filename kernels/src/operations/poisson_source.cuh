// The right-hand side of a Poisson equation, computed where it is read: the twin of poisson_source.rs.
#pragma once
#include "layout.cuh"
#include "device/cuda/real.cuh"

template <typename T> struct PoissonSource {
    const T *fluid; // [slots, 6, 16, 16, 16]; null: the gas does not count
    const T *field; // [slots, 16, 16, 16]; null: no field
    double four_pi_g;
    double mean;

    /// The value that a source starts from, before arithmetic: it may be read early.
    __device__ T raw(uint32_t slot, int cell) const {
        return fluid ? fluid[size_t(slot) * GROUP_VALUES + DENSITY * GROUP_CELLS + cell]
                     : field[size_t(slot) * GROUP_CELLS + cell];
    }

    /// factor times the source in a cell, given its raw value.
    template <typename U> __device__ U of_raw(T raw, uint32_t slot, int cell, double factor) const {
        if (!fluid) return U(factor) * U(raw);
        const U gas = U(factor * four_pi_g) * (U(raw) - U(mean));
        return field ? gas + U(factor) * U(field[size_t(slot) * GROUP_CELLS + cell]) : gas;
    }
};
