// Min-Mod limited slopes: the twin of minmod.rs.
#pragma once
#include "device/cuda/real.cuh"

template <typename T> INLINE T minmod(T a, T b) {
    const T smaller = absolute(a) < absolute(b) ? a : b;
    return a * b > T(0.0) ? smaller : T(0.0);
}
