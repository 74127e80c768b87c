//! The flux through a face by the Riemann solver of Harten, Lax and van Leer with the contact wave restored (Toro, Spruce &
//! Speares 1994; Toro 2009, section 10.4), pointwise, with the wave speeds of Davis (1988).
//!
//! Speeds are relative to the gas on either side, a_L = v_L − S_L and a_R = S_R − v_R, so that nothing is lost where the gas is
//! much faster than sound. Terms are paired so that a mirrored flow gives mirrored bits.

use crate::point::dual_energy::Cell;
use crate::point::eos::Eos;
use crate::point::primitive::Primitive;
use crate::real::Real;

/// Twice the flux through a face; the entropy scalar goes with the mass.
#[inline(always)]
pub fn hllc_flux<T: Real>(left: &Primitive<T>, right: &Primitive<T>, eos: &Eos<T>) -> Cell<T> {
    let half = T::from_f64(0.5);
    let two = T::from_f64(2.0);
    let larger = |a: T, b: T| if a > b { a } else { b };
    let sound = |w: &Primitive<T>| (eos.gamma * w[4] / w[0]).sqrt();
    let (sound_left, sound_right) = (sound(left), sound(right));
    let closing = left[1] - right[1];
    let speed_left = larger(sound_left, sound_right + closing);
    let speed_right = larger(sound_right, sound_left + closing);
    // mass that the outer waves meet per unit area and time
    let (mass_left, mass_right) = (left[0] * speed_left, right[0] * speed_right);
    let inverse = T::one() / (mass_left + mass_right);
    let contact = ((mass_left * left[1] + mass_right * right[1]) + (left[4] - right[4])) * inverse;
    let pressure = ((mass_right * left[4] + mass_left * right[4]) + (mass_left * mass_right) * closing) * inverse;

    // the side that the contact comes from, its velocities counted towards the other
    let from_left = contact > T::zero();
    let side = |a: T, b: T| if from_left { a } else { b };
    let sign = side(T::one(), -T::one());
    let (density, velocity, own_pressure) = (side(left[0], right[0]), side(left[1], right[1]), side(left[4], right[4]));
    let (speed, mass) = (side(speed_left, speed_right), side(mass_left, mass_right));
    let (across, third, entropy) = (side(left[2], right[2]), side(left[3], right[3]), side(left[5], right[5]));
    let squared = velocity * velocity + (across * across + third * third);
    let energy = half * squared + own_pressure / ((eos.gamma - T::one()) * density);
    // behind the outer wave, unless that runs away from the face as well
    let gain = contact - velocity;
    let star = speed > sign * velocity;
    let pick = |behind: T, ahead: T| if star { behind } else { ahead };
    let energy_behind = gain * (contact - sign * (own_pressure / mass)) + energy;
    let face_density = pick(mass / (speed + sign * gain), density);
    let face_velocity = pick(contact, velocity);
    let face_pressure = two * pick(pressure, own_pressure);
    let face_energy = pick(energy_behind, energy);
    let flow = two * (face_density * face_velocity);
    [
        flow,
        flow * face_velocity + face_pressure,
        flow * across,
        flow * third,
        flow * face_energy + face_pressure * face_velocity,
        flow * entropy,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    const EOS: fn() -> Eos<f64> = || Eos::new(1.4);

    fn physical(w: &Primitive<f64>) -> Cell<f64> {
        let [density, v, across, third, pressure, entropy] = *w;
        let energy = pressure / 0.4 + 0.5 * density * (v * v + across * across + third * third);
        let flow = density * v;
        [flow, flow * v + pressure, flow * across, flow * third, (energy + pressure) * v, flow * entropy]
    }

    fn assert_close(found: Cell<f64>, twice: Cell<f64>) {
        for (found, expected) in found.into_iter().zip(twice.map(|x| 2.0 * x)) {
            assert!((found - expected).abs() < 1e-13 * (1.0 + expected.abs()), "{found} {expected}");
        }
    }

    #[test]
    fn equal_states_have_the_physical_flux_and_fast_ones_the_upwind_one() {
        let w = [2.0, 0.5, -0.25, 0.125, 3.0, 1.5];
        assert_close(hllc_flux(&w, &w, &EOS()), physical(&w));
        let (fast, faster) = ([1.0, 4.0, 0.5, 0.0, 0.7, 1.0], [1.0, 5.0, 0.0, 0.0, 0.7, 2.0]);
        assert_close(hllc_flux(&fast, &faster, &EOS()), physical(&fast));
    }

    #[test]
    fn a_contact_at_rest_stays() {
        let (dense, thin) = ([10.0, 0.0, 1.0, 0.0, 2.0, 0.1], [0.1, 0.0, -1.0, 0.0, 2.0, 7.0]);
        assert_close(hllc_flux(&dense, &thin, &EOS()), [0.0, 2.0, 0.0, 0.0, 0.0, 0.0]);
    }

    #[test]
    fn mirrored_states_have_mirrored_bits() {
        let mirror = |w: Primitive<f64>| [w[0], -w[1], w[2], w[3], w[4], w[5]];
        let (u, v) = ([2.0, 0.3, -0.5, 0.25, 1.0, 3.0], [0.5, -0.4, 0.125, 0.5, 2.0, 1.0]);
        for (u, v) in [(u, v), (v, u)] {
            let (one, other) = (hllc_flux(&u, &v, &EOS()), hllc_flux(&mirror(v), &mirror(u), &EOS()));
            assert_eq!([-one[0], one[1], -one[2], -one[3], -one[4], -one[5]], other);
        }
    }
}
