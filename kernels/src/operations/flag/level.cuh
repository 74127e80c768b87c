// The level that is looked at, as flag/cuda.rs passes it.
#pragma once
#include "point/eos.cuh"

template <typename T> struct FlagLevel {
    double level;
    double cell_width;
    double a;
    double mean_density;
    double mean_gas_density;
    /// Of the whole box at this level.
    double cells[3];
    /// Bit a: the box ends at itself along axis a.
    uint32_t periodic;
    Eos<T> eos;
};
