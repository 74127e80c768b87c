// The HLLC flux through a face: the twin of hllc.rs.
#pragma once
#include "point/primitive.cuh"

/// Twice the flux through a face between two states; the entropy scalar goes with the mass.
template <typename A, typename T>
INLINE void hllc_flux(const T (&left)[6], const T (&right)[6], const Eos<T> &eos, T (&flux)[6]) {
    const T sound_left = A::root(A::divide(eos.gamma * left[4], left[0]));
    const T sound_right = A::root(A::divide(eos.gamma * right[4], right[0]));
    const T closing = left[1] - right[1];
    const T speed_left = larger(sound_left, sound_right + closing);
    const T speed_right = larger(sound_right, sound_left + closing);
    const T mass_left = left[0] * speed_left, mass_right = right[0] * speed_right;
    const T inverse = A::divide(T(1.0), mass_left + mass_right);
    const T contact = ((mass_left * left[1] + mass_right * right[1]) + (left[4] - right[4])) * inverse;
    const T pressure =
        A::multiply_add(mass_left * mass_right, closing, mass_right * left[4] + mass_left * right[4]) * inverse;

    // the side that the contact comes from, its velocities counted towards the other
    const bool from_left = contact > T(0.0);
    const auto side = [&](T a, T b) { return from_left ? a : b; };
    const T sign = side(T(1.0), T(-1.0));
    const T density = side(left[0], right[0]), velocity = side(left[1], right[1]), own_pressure = side(left[4], right[4]);
    const T speed = side(speed_left, speed_right), mass = side(mass_left, mass_right);
    const T across = side(left[2], right[2]), third = side(left[3], right[3]), entropy = side(left[5], right[5]);
    const T squared = A::multiply_add(velocity, velocity, across * across + third * third);
    const T energy = A::multiply_add(T(0.5), squared, A::divide(own_pressure, (eos.gamma - T(1.0)) * density));
    // behind the outer wave, unless that runs away from the face as well
    const T gain = contact - velocity;
    const bool star = speed > sign * velocity;
    const T energy_behind = A::multiply_add(gain, A::multiply_add(-sign, A::divide(own_pressure, mass), contact), energy);
    const T density_behind = A::divide(mass, A::multiply_add(sign, gain, speed));
    const T face_density = star ? density_behind : density;
    const T face_velocity = star ? contact : velocity;
    const T face_pressure = T(2.0) * (star ? pressure : own_pressure);
    const T face_energy = star ? energy_behind : energy;
    const T flow = T(2.0) * (face_density * face_velocity);
    flux[0] = flow;
    flux[1] = A::multiply_add(flow, face_velocity, face_pressure);
    flux[2] = flow * across;
    flux[3] = flow * third;
    flux[4] = A::multiply_add(flow, face_energy, face_pressure * face_velocity);
    flux[5] = flow * entropy;
}
