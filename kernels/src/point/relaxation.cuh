// Internal energy that relaxes to an equilibrium: the twin of relaxation.rs.
#pragma once
#include "layout.cuh"

template <typename T> struct Relaxation {
    T loss;
    T gain;

    INLINE T change(T density, T internal) const { return gain * density - loss * internal; }
};
