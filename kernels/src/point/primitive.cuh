// Primitive values of a cell, pointwise: the twin of primitive.rs.
#pragma once
#include "point/relaxing_tvd.cuh"

/// Density, velocity along the sweep, the two across it, pressure and specific entropy scalar of a cell whose 1/rho and
/// pressure are known.
template <typename T> INLINE void primitive_with(const T (&u)[6], T inverse, T pressure, const Eos<T> &eos, T (&w)[6]) {
    w[0] = u[0] > eos.density_floor ? u[0] : eos.density_floor;
    w[1] = u[1] * inverse;
    w[2] = u[2] * inverse;
    w[3] = u[3] * inverse;
    w[4] = pressure;
    w[5] = u[5] * inverse;
}

template <typename A, typename T> INLINE void primitive(const T (&u)[6], T shock_indicator, const Eos<T> &eos, T (&w)[6]) {
    T inverse, pressure;
    thermodynamics<A>(u, A::multiply_add(u[1], u[1], u[2] * u[2] + u[3] * u[3]), shock_indicator, eos, inverse, pressure);
    primitive_with(u, inverse, pressure, eos, w);
}

/// A(w) x of the quasi-linear Euler equations; `stiffness` is gamma P.
template <typename A, typename T>
INLINE void quasi_linear(const T (&w)[6], T inverse_density, T stiffness, const T (&x)[6], T (&product)[6]) {
    const T v = w[1];
    product[0] = A::multiply_add(v, x[0], w[0] * x[1]);
    product[1] = A::multiply_add(v, x[1], x[4] * inverse_density);
    product[2] = v * x[2];
    product[3] = v * x[3];
    product[4] = A::multiply_add(v, x[4], stiffness * x[1]);
    product[5] = v * x[5];
}
