// The ideal gas: the twin of eos.rs.
#pragma once
#include "point/power.cuh"

template <typename T> struct Eos {
    T gamma;
    T eta;
    T density_floor;
    T pressure_floor;
    T expansion_squared;

    /// P = S rho^(gamma - 1).
    template <typename A = Exact> INLINE T entropy_pressure(T density, T entropy) const {
        return entropy * power<A>(density, gamma - T(1.0));
    }
};
