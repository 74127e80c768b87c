// The one-dimensional scheme along a pencil of cells, by one thread: what the files of sheet/ do for many pencils at once.
#pragma once
#include "point/hancock.cuh"
#include "point/hll.cuh"
#include "point/hllc.cuh"
#include "point/ppm.cuh"
#include "point/relaxing_tvd.cuh"

/// The schemes of scheme.rs.
enum class Scheme { Ppm, Plm, RelaxingTvd, Hll };

/// What a pass says about the energy of the cells behind the present one.
template <typename T> struct Behind {
    // shock indicators: of the cell before, after earlier passes; of the second, by one neighbour on either side
    T so_far1 = T(0.0), beside2 = T(0.0);
    // velocities along the pencil of the third and fourth cell before
    T velocity3 = T(0.0), velocity4 = T(0.0);

    /// Takes cell n. Surveys the second cell before; returns the shock indicator of the first by one neighbour on either side.
    /// w, w1, w2: primitive values of cell n and of those before
    template <typename Survey>
    INLINE T take(int n, const T (&w)[FIELDS], const T (&w1)[FIELDS], const T (&w2)[FIELDS], T so_far, const Eos<T> &eos,
                  Survey survey) {
        const T beside = shock_indicator(so_far1, w1[DENSITY], w[MOMENTUM] - w2[MOMENTUM], w[MOMENTUM + 1] - w2[MOMENTUM + 1],
                                         w[MOMENTUM + 2] - w2[MOMENTUM + 2], w2[ENERGY], w1[ENERGY], w[ENERGY], eos);
        const bool front = is_front(velocity4 - velocity3, velocity3 - w2[MOMENTUM], w2[MOMENTUM] - w1[MOMENTUM],
                                    w1[MOMENTUM] - w[MOMENTUM], w2[DENSITY], w2[ENERGY]);
        if (n >= HYDRO_GHOSTS + 2) survey(n - 2, front ? at_front(beside2) : beside2);
        so_far1 = so_far;
        beside2 = beside;
        velocity4 = velocity3;
        velocity3 = w2[MOMENTUM];
        return beside;
    }
};

/// Walks a pencil once. Cell n is loaded one step before it is reached, together with what the scheme still needs of the cells behind
/// it: each cell's fluxes are computed once, and nothing but the new values is written.
/// The arguments are those of `sweep_pencil`.
template <typename A, bool REDO, typename T, typename Load, typename Again, typename Face, typename Store, typename Survey>
__device__ __forceinline__ void relaxing_tvd_pencil(int cells, T dt_over_dx, const Eos<T> &eos, uint32_t first_order, Load load,
                                                    Again again, Face face, Store store, Survey survey) {
    const T half_step = dt_over_dx * T(0.25), step = dt_over_dx * T(0.5);
    // of the cell before the present one: itself, its F^R, the first-order flux through its low face
    T u1[FIELDS], right1[FIELDS], upwind1[FIELDS];
    // first-order fluxes that faces will take, by the last two bits of the face's number: in memory, so that a redo has
    // as many registers as a sweep
    T upwind_of_face[REDO ? 4 : 1][FIELDS];
    // at half time, of the second cell before: F^R and F^L, and their changes from the third
    T right_2[FIELDS], right_change[FIELDS], left_2[FIELDS], left_change[FIELDS];
    // what moves right through the low face of the second cell before; the flux through that of the third
    T moving_right[FIELDS], flux_before[FIELDS];
#pragma unroll
    for (int f = 0; f < FIELDS; f++) {
        u1[f] = right1[f] = upwind1[f] = T(0.0);
        right_2[f] = right_change[f] = left_2[f] = left_change[f] = moving_right[f] = flux_before[f] = T(0.0);
    }
    // primitive values of the cells before
    T w1[FIELDS] = {}, w2[FIELDS] = {};
    Behind<T> behind;
#pragma unroll 1
    for (int n = 0; n < cells; n++) {
        T u[FIELDS], right[FIELDS], left[FIELDS];
        const T so_far = load(n, u);
        T inverse, pressure, w[FIELDS];
        split_flux<A>(u, so_far, eos, right, left, inverse, pressure);
        primitive_with(u, inverse, pressure, eos, w);
        const T beside = behind.take(n, w, w1, w2, so_far, eos, survey);
        T half[FIELDS];
#pragma unroll
        for (int f = 0; f < FIELDS; f++) {
            const T upwind = upwind_flux(right1[f], left[f]);
            half[f] = updated<A>(u1[f], half_step, upwind1[f], upwind);
            upwind1[f] = upwind;
            right1[f] = right[f];
            u1[f] = u[f];
            w2[f] = w1[f];
            w1[f] = w[f];
        }
        if (REDO && first_order >> n & 1) {
#pragma unroll
            for (int f = 0; f < FIELDS; f++) upwind_of_face[n & 3][f] = upwind1[f];
        }
        if (n < 2) continue;
        split_flux<A>(half, beside, eos, right, left, inverse, pressure);
        T flux[FIELDS];
#pragma unroll
        for (int f = 0; f < FIELDS; f++) {
            const T to_right = right[f] - right_2[f], to_left = left[f] - left_2[f];
            flux[f] = moving_right[f] - leftward<A>(left_2[f], left_change[f], to_left);
            moving_right[f] = rightward<A>(right_2[f], right_change[f], to_right);
            right_change[f] = to_right;
            left_change[f] = to_left;
            right_2[f] = right[f];
            left_2[f] = left[f];
        }
        if (n < 5) continue;
        if (REDO && first_order >> (n - 2) & 1) {
#pragma unroll
            for (int f = 0; f < FIELDS; f++) flux[f] = upwind_of_face[(n - 2) & 3][f];
        }
        face(n - 2, flux);
        if (n >= 6) {
            T cell[FIELDS];
            again(n - 3, cell);
#pragma unroll
            for (int f = 0; f < FIELDS; f++) cell[f] = updated<A>(cell[f], step, flux_before[f], flux[f]);
            store(n - 3, cell);
        }
#pragma unroll
        for (int f = 0; f < FIELDS; f++) flux_before[f] = flux[f];
    }
}

/// First order with HLL fluxes, which a redo has nothing to replace with.
template <typename A, typename T, typename Load, typename Again, typename Face, typename Store, typename Survey>
__device__ __forceinline__ void hll_pencil(int cells, T dt_over_dx, const Eos<T> &eos, Load load, Again again, Face face,
                                           Store store, Survey survey) {
    const T step = dt_over_dx * T(0.5);
    CellFlux<T> before = {};
    T flux_before[FIELDS];
    // primitive values of the cells before
    T w1[FIELDS] = {}, w2[FIELDS] = {};
    Behind<T> behind;
#pragma unroll 1
    for (int n = 0; n < cells; n++) {
        CellFlux<T> cell;
        const T so_far = load(n, cell.u);
        cell_flux<A>(so_far, eos, cell);
        T w[FIELDS];
        primitive<A>(cell.u, so_far, eos, w);
        behind.take(n, w, w1, w2, so_far, eos, survey);
        if (n >= 3 && n <= cells - 3) {
            T flux[FIELDS];
            hll_flux<A>(before, cell, flux);
            face(n, flux);
            if (n > 3) {
                T u[FIELDS];
                again(n - 1, u);
#pragma unroll
                for (int f = 0; f < FIELDS; f++) u[f] = updated<A>(u[f], step, flux_before[f], flux[f]);
                store(n - 1, u);
            }
#pragma unroll
            for (int f = 0; f < FIELDS; f++) flux_before[f] = flux[f];
        }
#pragma unroll
        for (int f = 0; f < FIELDS; f++) w2[f] = w1[f], w1[f] = w[f];
        before = cell;
    }
}

/// PLM or PPM: primitive values, their profiles in the cells, Hancock's predictor, HLLC fluxes. Cell n is loaded as the fluxes
/// through the low face of cell n - 2 are made.
template <bool PARABOLIC, typename A, bool REDO, typename T, typename Load, typename Again, typename Face, typename Store,
          typename Survey>
__device__ __forceinline__ void hancock_pencil(int cells, T dt_over_dx, const Eos<T> &eos, uint32_t first_order, Load load,
                                               Again again, Face face, Store store, Survey survey) {
    const T step = dt_over_dx * T(0.5);
    // primitive values of the cells before the present one; of the third and fourth what flattening reads
    T w1[FIELDS], w2[FIELDS], pressure3 = T(1.0), pressure4 = T(1.0);
    // of the second cell before: its slopes, and the values at its low face
    T slope2[FIELDS], low_face[FIELDS];
    // half a step later at the high face of the third cell before; the flux through its low face
    T high_before[FIELDS], flux_before[FIELDS];
    // first-order fluxes that faces will take, by the last two bits of the face's number
    T first_order_of_face[REDO ? 4 : 1][FIELDS];
#pragma unroll
    for (int f = 0; f < FIELDS; f++) {
        w1[f] = w2[f] = f == DENSITY || f == ENERGY ? T(1.0) : T(0.0);
        slope2[f] = low_face[f] = high_before[f] = flux_before[f] = T(0.0);
    }
    Behind<T> behind;
    // whether an earlier pass has seen a shock at the three cells before
    bool shock1 = false, shock2 = false, shock3 = false;
#pragma unroll 1
    for (int n = 0; n < cells; n++) {
        T u[FIELDS], w[FIELDS];
        const T so_far = load(n, u);
        primitive<A>(u, so_far, eos, w);
        if (REDO && n >= HYDRO_GHOSTS && first_order >> n & 1) {
            CellFlux<T> low, high;
            const T low_so_far = load(n - 1, low.u);
            cell_flux<A>(low_so_far, eos, low);
#pragma unroll
            for (int f = 0; f < FIELDS; f++) high.u[f] = u[f];
            cell_flux<A>(so_far, eos, high);
            hll_flux<A>(low, high, first_order_of_face[n & 3]);
        }
        const T flat =
            PARABOLIC ? flattening<A>(behind.velocity3, w1[MOMENTUM], pressure4, pressure3, w1[ENERGY], w[ENERGY]) : T(0.0);
        behind.take(n, w, w1, w2, so_far, eos, survey);
        // of the second cell before
        T low[FIELDS], high[FIELDS];
#pragma unroll
        for (int f = 0; f < FIELDS; f++) {
            const T slope = central_slope(w1[f] - w2[f], w[f] - w1[f], T(2.0));
            if constexpr (PARABOLIC) {
                const T high_face = face_value<A>(w2[f], w1[f], slope2[f], slope);
                low[f] = w2[f] - low_face[f];
                high[f] = high_face - w2[f];
                monotonise(low[f], high[f]);
                low[f] = (T(1.0) - flat) * low[f];
                high[f] = (T(1.0) - flat) * high[f];
                low_face[f] = high_face;
            } else {
                low[f] = high[f] = T(0.5) * slope2[f];
            }
            slope2[f] = slope;
        }
        if (n >= 4) {
            face_values<A>(w2, low, high, dt_over_dx, eos);
            if (n >= 5) {
                T flux[FIELDS];
                if (shock2 || shock3) {
                    // along a shock HLLC would let odd and even rows come apart (Quirk 1994)
                    CellFlux<T> left, right;
                    state_flux<A>(high_before, eos, left);
                    state_flux<A>(low, eos, right);
                    hll_flux<A>(left, right, flux);
                } else {
                    hllc_flux<A>(high_before, low, eos, flux);
                }
                if (REDO && first_order >> (n - 2) & 1) {
#pragma unroll
                    for (int f = 0; f < FIELDS; f++) flux[f] = first_order_of_face[(n - 2) & 3][f];
                }
                face(n - 2, flux);
                if (n >= 6) {
                    T cell[FIELDS];
                    again(n - 3, cell);
#pragma unroll
                    for (int f = 0; f < FIELDS; f++) cell[f] = updated<A>(cell[f], step, flux_before[f], flux[f]);
                    store(n - 3, cell);
                }
#pragma unroll
                for (int f = 0; f < FIELDS; f++) flux_before[f] = flux[f];
            }
#pragma unroll
            for (int f = 0; f < FIELDS; f++) high_before[f] = high[f];
        }
        shock3 = shock2;
        shock2 = shock1;
        shock1 = so_far < T(0.0);
        pressure4 = pressure3;
        pressure3 = w2[ENERGY];
#pragma unroll
        for (int f = 0; f < FIELDS; f++) {
            w2[f] = w1[f];
            w1[f] = w[f];
        }
    }
}

/// Sweeps a pencil by a scheme.
///
/// cells: of the pencil, ghosts included; those from 3 to cells - 4 are advanced
/// first_order: bit n set where the low face of cell n takes the first-order flux
/// load(n, u): a cell, the momentum along the pencil first; returns its shock indicator after earlier passes
/// again(n, u): the same once more, for cells that are advanced
/// face(n, flux): twice the flux through the low face of cell n, from 3 to cells - 3
/// store(n, u): an advanced cell, after `again`
/// survey(n, shock_indicator): a cell's shock indicator with this pass, after `load`; from 3 to cells - 3
template <Scheme SCHEME, typename A, bool REDO, typename T, typename Load, typename Again, typename Face, typename Store,
          typename Survey>
__device__ __forceinline__ void sweep_pencil(int cells, T dt_over_dx, const Eos<T> &eos, uint32_t first_order, Load load,
                                             Again again, Face face, Store store, Survey survey) {
    if constexpr (SCHEME == Scheme::RelaxingTvd)
        relaxing_tvd_pencil<A, REDO>(cells, dt_over_dx, eos, first_order, load, again, face, store, survey);
    else if constexpr (SCHEME == Scheme::Ppm || SCHEME == Scheme::Plm)
        hancock_pencil<SCHEME == Scheme::Ppm, A, REDO>(cells, dt_over_dx, eos, first_order, load, again, face, store, survey);
    else
        hll_pencil<A>(cells, dt_over_dx, eos, load, again, face, store, survey);
}
