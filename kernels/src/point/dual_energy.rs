//! Dual energy formalism: total energy and entropy scalar kept consistent (docs/notes/hydrodynamics.md, *Dual energy*).
//!
//! Little of the total energy of fast gas is thermal, and truncation errors of the kinetic energy end up there, in the
//! fast cell and in slow cells beside it. Such gas takes its pressure from the advected entropy scalar, and its energy is
//! set to match. At a shock, where only the energy equation gives the heating, cold gas keeps both: heat adds up until it
//! is the energy that decides, and a deficit at the foot of a shock is made up behind it.
//!
//! The neighbours along a sweep decide between the two ([`shock_indicator`], [`is_front`]), so only a sweep synchronises energy and
//! entropy scalar; other operations change both and leave the decision to the next sweep. Between levels the scalar gives the
//! energy: interpolated and averaged energies hold the motion within a coarse cell as heat ([`heat_factor`],
//! [`energy_of_mean`]).
//!
//! Written with selects instead of branches, so that a loop over cells vectorizes.

use crate::point::eos::Eos;
use crate::point::symmetric_sum;
use crate::real::Real;

/// A cell's six conserved values: density, three momenta, energy, entropy.
pub type Cell<T> = [T; 6];

/// Shock indicator before the first pass. The entropy scalar then gives the pressure of any gas: it was set from the
/// energy where that was right.
pub const UNSEEN: f64 = f64::INFINITY;
/// Pressures of three cells in a row that differ by a larger factor are a shock, if the gas that it has heated is warm:
/// what differs in cold gas is mostly error, and there is much of it. A weaker one adds so little entropy (7% at a factor
/// of three over the whole shock) that the scalar may ignore it.
const SHOCK_JUMP: f64 = 3.0;

/// Behind a shock the pressure is at least this part of that of ⅛ρ|Δv|².
const WARM: f64 = 0.1;
/// The least that a shock indicator is at a shock, where the velocities do not differ.
const LEAST: f64 = 1e-30;
/// The fall of the velocity at a front is more than so many times the one upstream of it.
const FRONT: f64 = 2.0;
/// What a rise beside a front is of its fall at most.
const RIPPLE: f64 = 0.1;

/// ½ρv².
#[inline(always)]
pub fn kinetic<T: Real>(u: &Cell<T>) -> T {
    T::from_f64(0.5) * symmetric_sum::of_three(u[1] * u[1], u[2] * u[2], u[3] * u[3]) / u[0]
}

/// From the neighbours of a cell along a sweep: the internal energy below which the entropy scalar decides, and that negative
/// at a shock. It is what the differences of velocities beside the cell, and the expansion between them, can make of errors,
/// ⅛ρ(|Δv|² + w²); over passes along several axes the largest of these, and a shock if one of them is.
///
/// * `so_far`: after earlier passes of the sweep, [`UNSEEN`] before the first
/// * `density`: of the cell
/// * `change`: of the velocity from the cell before to the one after
/// * `pressures`: of the cell before, the cell itself and the one after, as the pass begins
#[inline(always)]
pub fn shock_indicator<T: Real>(so_far: T, density: T, change: [T; 3], pressures: [T; 3], eos: &Eos<T>) -> T {
    let squared = change[0] * change[0] + (change[1] * change[1] + change[2] * change[2]);
    let motion = T::from_f64(0.125) * density * (squared + eos.expansion_squared);
    let so_far = if so_far == T::from_f64(UNSEEN) { T::zero() } else { so_far };
    let shock = (so_far < T::zero()) | is_jump(pressures, T::from_f64(WARM) * ((eos.gamma - T::one()) * motion));
    let most = larger(so_far.abs(), motion);
    if shock { -larger(most, T::from_f64(LEAST)) } else { most }
}

/// The [`shock_indicator`] of a cell at a front of the velocity ([`is_front`]): a quarter as much heat decides there.
#[inline(always)]
pub fn at_front<T: Real>(shock_indicator: T) -> T {
    -larger(T::from_f64(0.25) * shock_indicator.abs(), T::from_f64(LEAST))
}

/// Whether three pressures in a row are a shock's: they jump, and the gas behind is as warm as this pressure.
#[inline(always)]
fn is_jump<T: Real>(pressures: [T; 3], warm: T) -> bool {
    let highest = larger(pressures[1], larger(pressures[0], pressures[2]));
    let lowest = smaller(pressures[1], smaller(pressures[0], pressures[2]));
    (highest > T::from_f64(SHOCK_JUMP) * lowest) & (highest >= warm)
}

/// Whether five velocities in a row fall in a supersonic front beside the middle one, and hardly upstream of it: gas that is
/// compressed smoothly has no such side. Then the cell is at a shock, whatever the pressures are ([`at_front`]).
///
/// `velocities`: along the sweep; density and pressure are the middle cell's
#[inline(always)]
pub fn is_front<T: Real>(velocities: [T; 5], density: T, pressure: T) -> bool {
    let [a, b, c, d]: [T; 4] = std::array::from_fn(|n| velocities[n] - velocities[n + 1]);
    let fall = larger(b, c);
    let ripple = T::from_f64(-RIPPLE) * fall;
    let falls = smaller(smaller(a, b), smaller(c, d)) >= ripple;
    let front = ((b >= c) & (b > T::from_f64(FRONT) * a.abs())) | ((c >= b) & (c > T::from_f64(FRONT) * d.abs()));
    (fall > T::zero()) & falls & front & (density * (fall * fall) > pressure)
}

/// Twice the energy of the motion within a coarse cell: a shock indicator for the cell.
///
/// * `moving`: mean kinetic energy of its eight fine cells
/// * `mean`: their mean, the coarse cell
#[inline(always)]
fn motion_within<T: Real>(moving: T, mean: &Cell<T>) -> T {
    let motion = moving - kinetic(mean);
    // round-off of fast gas is no motion
    if motion > T::zero() { T::from_f64(2.0) * motion } else { T::zero() }
}

/// The energy of a coarse cell, the mean of its eight fine cells, whose energy holds the motion of these as heat. Where that
/// is most of it the entropy scalar decides.
///
/// * `moving`: mean kinetic energy of the fine cells
#[inline(always)]
pub fn energy_of_mean<T: Real>(moving: T, mean: &Cell<T>, eos: &Eos<T>) -> T {
    let internal = mean[4] - kinetic(mean);
    let cold = is_cold(internal, T::zero(), motion_within(moving, mean), eos);
    if cold { energy_by_entropy(mean, eos) } else { mean[4] }
}

/// By what the entropy scalars of the eight new cells in a coarse cell are multiplied. Where the coarse cell is warm, by its
/// scalar, that gives their energies its mean; else 1, and energy is added that the motion within the cell takes.
///
/// * `coarse`: the coarse cell
/// * `fine`: the new cells, whose energies do not count
#[inline(always)]
pub fn heat_factor<T: Real>(coarse: &Cell<T>, fine: &[Cell<T>; 8], eos: &Eos<T>) -> T {
    let eighth = T::from_f64(0.125);
    let moving = eighth * symmetric_sum::of_cube(fine.map(|u| kinetic(&u)));
    let pressures = eighth * symmetric_sum::of_cube(fine.map(|u| eos.entropy_pressure(u[0], u[5])));
    let gamma_1 = eos.gamma - T::one();
    let by_scalar = eos.entropy_pressure(coarse[0], coarse[5]) / gamma_1;
    let cold = is_cold(by_scalar, coarse[4], motion_within(moving, coarse), eos);
    let left = gamma_1 * (coarse[4] - moving);
    if !cold & (left > T::from_f64(0.5) * pressures) { left / pressures } else { T::one() }
}

/// Whether the entropy scalar decides in a cell with this internal energy: where it is less than η of the cell's total
/// energy or than the shock indicator, of whichever sign. Never with [`Eos::SCALAR_OFF`].
#[inline(always)]
pub fn is_cold<T: Real>(internal: T, energy: T, shock_indicator: T, eos: &Eos<T>) -> bool {
    (eos.eta > T::zero()) & (internal < larger(eos.eta * energy.abs(), shock_indicator.abs()))
}

/// The total energy of a cell whose pressure is that of its entropy scalar, which may lie behind a coarse–fine boundary or
/// be new: energies that are interpolated or averaged hold motion as heat.
#[inline(always)]
pub fn energy_by_entropy<T: Real>(u: &Cell<T>, eos: &Eos<T>) -> T {
    kinetic(u) + eos.entropy_pressure(u[0], u[5]) / (eos.gamma - T::one())
}

/// Thermal pressure of a cell between sweeps: that of the entropy scalar, which a sweep has set from the energy where the
/// energy is right; from the energy with [`Eos::SCALAR_OFF`]. At a front of cold gas the energy also holds what errors have added,
/// for the sweeps to tell from a shock's heat.
#[inline(always)]
pub fn pressure<T: Real>(u: &Cell<T>, eos: &Eos<T>) -> T {
    let by_energy = (eos.gamma - T::one()) * (u[4] - kinetic(u));
    if eos.eta > T::zero() { eos.entropy_pressure(u[0], u[5]) } else { by_energy }
}

/// What [`synchronise`] did to a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Synchronised<T> {
    /// The cell afterwards.
    pub cell: Cell<T>,
    /// Density or pressure was below its floor and has been raised to it.
    pub floored: bool,
    /// The entropy scalar decided.
    pub cold: bool,
    /// The total energy did not exceed the kinetic one.
    pub negative: bool,
}

/// Makes energy and entropy scalar agree: the scalar decides in cold gas ([`is_cold`]), the energy elsewhere. At a shock
/// cold gas keeps both, and all gas does where the shock indicator is [`UNSEEN`], as long as the energy holds at least
/// half of the motion's: what lacks more would be below zero before a shock has passed. Density and pressure below their floors
/// are raised to them (a raised density keeps the momentum).
///
/// * `shock_indicator`: see [`shock_indicator`], or [`UNSEEN`]
///
/// A cell that is not finite stays so; see [`is_valid`].
#[inline(always)]
pub fn synchronise<T: Real>(u: &Cell<T>, shock_indicator: T, eos: &Eos<T>) -> Synchronised<T> {
    let gamma_1 = eos.gamma - T::one();
    let thin = u[0] < eos.density_floor;
    let density = if thin { eos.density_floor } else { u[0] };
    let kinetic = T::from_f64(0.5) * symmetric_sum::of_three(u[1] * u[1], u[2] * u[2], u[3] * u[3]) / density;
    let internal = u[4] - kinetic;
    let cold = is_cold(internal, u[4], shock_indicator, eos);
    let density_power = density.power(gamma_1);
    let own = if cold { u[5] * density_power } else { gamma_1 * internal };
    let low = own < eos.pressure_floor;
    let pressure = if low { eos.pressure_floor } else { own };
    let unseen = shock_indicator == T::from_f64(UNSEEN);
    let waits = ((shock_indicator < T::zero()) | unseen) & (u[4] > T::from_f64(0.5) * kinetic);
    let keeps_energy = !cold | waits;
    let keeps_entropy = cold | unseen;
    let energy = if keeps_energy & !low { u[4] } else { kinetic + pressure / gamma_1 };
    let entropy = if keeps_entropy & !low { u[5] } else { pressure / density_power };
    let cell = [density, u[1], u[2], u[3], energy, entropy];
    Synchronised { cell, floored: thin | low, cold: cold & !unseen, negative: internal <= T::zero() }
}

/// Whether a cell that a sweep has left without entropy keeps its adiabat ([`on_adiabat`]): where its energy exceeds that
/// of the motion, only the scalar has gone wrong, and that is no conserved quantity.
#[inline(always)]
pub fn keeps_adiabat<T: Real>(u: &Cell<T>) -> bool {
    u[5] <= T::zero() && u[4] > kinetic(u)
}

/// The entropy scalar of a cell that keeps its adiabat, P/ρ^γ = S/ρ, while its density changes.
#[inline(always)]
pub fn on_adiabat<T: Real>(entropy_before: T, density_before: T, density: T) -> T {
    entropy_before * (density / density_before)
}

/// Whether all values are finite and density and energy positive.
#[inline(always)]
pub fn is_valid<T: Real>(u: &Cell<T>) -> bool {
    let sum = u[0] + u[1] + u[2] + u[3] + u[4] + u[5];
    (sum * T::zero() == T::zero()) & (u[0] > T::zero()) & (u[4] > T::zero())
}

#[inline(always)]
fn larger<T: Real>(a: T, b: T) -> T {
    if a > b { a } else { b }
}

#[inline(always)]
fn smaller<T: Real>(a: T, b: T) -> T {
    if a < b { a } else { b }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hot_gas_keeps_its_energy_and_cold_gas_its_entropy() {
        let eos = Eos::<f64>::new(5.0 / 3.0);
        let hot = synchronise(&[2.0, 0.2, 0.0, 0.0, 3.0, 0.0], 0.0, &eos);
        assert_eq!(hot.cell[4], 3.0);
        assert!((pressure(&hot.cell, &eos) - 2.0 / 3.0 * (3.0 - 0.01)).abs() < 1e-14);
        let cold = synchronise(&[2.0, 20.0, 0.0, 0.0, 100.0, 1e-3], 0.0, &eos);
        assert!(cold.cold && cold.cell[5] == 1e-3);
        assert!((cold.cell[4] - 100.0 - 1.5e-3 * 2f64.powf(2.0 / 3.0)).abs() < 1e-12);
        // doing it twice changes nothing
        assert_eq!(synchronise(&cold.cell, 0.0, &eos).cell, cold.cell);
        let floored = synchronise(&[-1.0, 0.0, 0.0, 0.0, 1e-8, 0.0], 0.0, &eos);
        assert!(floored.floored && floored.cell[0] == eos.density_floor);
        // without the scalar gas is never cold, whatever the energies, and falls to the floor instead
        let eos = Eos { eta: Eos::<f64>::SCALAR_OFF, ..eos };
        let off = synchronise(&[2.0, 20.0, 0.0, 0.0, 99.0, 1e-3], 0.0, &eos);
        assert!(off.floored && off.negative && !off.cold && (off.cell[4] - 100.0).abs() < 1e-13);
        assert!(pressure(&[2.0, 20.0, 0.0, 0.0, 99.0, 1e-3], &eos) < 0.0);
        assert!(!is_valid(&[f64::NAN, 0.0, 0.0, 0.0, 1.0, 1.0]) && is_valid(&cold.cell));
    }

    /// Gas at rest whose neighbours differ in velocity, and whose pressures do.
    #[test]
    fn neighbours_tell_slow_gas_beside_fast_gas_from_a_shock() {
        let eos = Eos::<f64>::new(5.0 / 3.0);
        let scalar = 0.5;
        let slow = [1.0, 0.0, 0.0, 0.0, 1.5, scalar];
        let calm = shock_indicator(UNSEEN, 1.0, [0.0; 3], [1.0, 1.0, 2.9], &eos);
        assert_eq!(calm, 0.0);
        assert_eq!(synchronise(&slow, calm, &eos).cell, [1.0, 0.0, 0.0, 0.0, 1.5, 1.0]);
        for change in [[4.0, 0.0, 0.0], [0.0, -4.0, 0.0], [0.0, 0.0, 4.0]] {
            let seen = shock_indicator(UNSEEN, 1.0, change, [1.0; 3], &eos);
            let expanding = Eos { expansion_squared: 8.0, ..eos };
            assert_eq!(shock_indicator(UNSEEN, 1.0, change, [1.0; 3], &expanding), seen + 1.0);
            assert_eq!(seen, 2.0);
            let done = synchronise(&slow, seen, &eos);
            assert!(done.cold && (done.cell[4] - 1.5 * scalar).abs() < 1e-15 && done.cell[5] == scalar);
            // a later pass along which all is calm does not change that, one that sees a shock does
            assert_eq!(shock_indicator(seen, 1.0, [0.0; 3], [1.0; 3], &eos), seen);
            let shock = shock_indicator(seen, 1.0, [0.0; 3], [1.0, 1.0, 3.1], &eos);
            assert_eq!((shock, shock_indicator(shock, 1.0, change, [1.0; 3], &eos)), (-2.0, -2.0));
            let kept = synchronise(&slow, shock, &eos);
            assert!(kept.cold && kept.cell == slow);
            // until there is more heat than the motion's, and at a front a quarter of it
            let heated = [1.0, 0.0, 0.0, 0.0, 3.0, scalar];
            assert_eq!(synchronise(&heated, shock, &eos).cell, [1.0, 0.0, 0.0, 0.0, 3.0, 2.0]);
            assert_eq!(at_front(shock), -0.5);
            assert_eq!(synchronise(&slow, at_front(seen), &eos).cell, [1.0, 0.0, 0.0, 0.0, 1.5, 1.0]);
        }
        // pressures of cold gas differ for many reasons: 3.1 is heat of 4.65, a tenth of ⅛ρ|Δv|² at a change of 19.3
        for (change, warm) in [(19.0, true), (19.6, false)] {
            let seen = shock_indicator(UNSEEN, 1.0, [0.0, change, 0.0], [1.0, 1.0, 3.1], &eos);
            assert_eq!(seen < 0.0, warm);
        }
        let shock = shock_indicator(UNSEEN, 1.0, [0.0; 3], [1.0, 1.0, 3.1], &eos);
        assert!(shock < 0.0);
        // there the energy decides down to η of the cell's own, and is not touched where it does not
        let heated = synchronise(&[1.0, 20.0, 0.0, 0.0, 203.0, scalar], shock, &eos);
        assert!(!heated.cold && (heated.cell[5] - 2.0).abs() < 1e-13);
        let foot = [1.0, 20.0, 0.0, 0.0, 199.0, scalar];
        assert!(synchronise(&foot, shock, &eos).cold && synchronise(&foot, shock, &eos).cell == foot);
        // who sees no neighbours leaves both alone, whichever decides
        for u in [slow, foot] {
            assert_eq!(synchronise(&u, UNSEEN, &eos).cell, u);
        }
        // unless the energy is less than half of the motion's
        let exhausted = [1.0, 20.0, 0.0, 0.0, 99.0, scalar];
        for shock_indicator in [shock, UNSEEN] {
            assert_eq!(synchronise(&exhausted, shock_indicator, &eos).cell, [1.0, 20.0, 0.0, 0.0, 200.75, scalar]);
        }
        // without the scalar nothing is cold
        let off = Eos { eta: Eos::<f64>::SCALAR_OFF, ..eos };
        assert!([UNSEEN, shock, 5.0].iter().all(|&indicator| !is_cold(-1.0, 3.0, indicator, &off)));
    }

    #[test]
    fn a_front_of_the_velocity_is_a_shock_and_smooth_compression_is_none() {
        for (velocities, front) in [
            ([1.0, 1.0, 0.0, 0.0, 0.0], true),
            ([1.0, 1.0, 1.0, 0.0, 0.0], true),
            // not beside the middle
            ([1.0, 0.0, 0.0, 0.0, 0.0], false),
            // spread over two cells
            ([1.0, 1.0, 0.5, 0.0, 0.0], true),
            // gas that meets itself: flat enough upstream, or not
            ([1.25, 1.125, 1.0, -1.0, -1.125], true),
            ([1.5, 1.25, 0.5, -0.5, -1.25], false),
            // gas that collapses evenly, expands, rests
            ([1.0, 0.5, 0.0, -0.5, -1.0], false),
            ([0.0, 0.0, 1.0, 1.0, 1.0], false),
            ([0.0; 5], false),
            // a peak, and a ripple behind a front
            ([0.0, 0.0, 1.0, 0.0, 0.0], false),
            ([1.0, 1.0, 0.0, 0.0625, 0.0], true),
        ] {
            let [a, b, c, d, e] = velocities;
            // in any frame, and mirrored
            for velocities in [velocities, velocities.map(|v| v + 1024.0), [-e, -d, -c, -b, -a]] {
                assert_eq!(is_front(velocities, 2.0, 1e-3), front, "{velocities:?}");
            }
            // nothing slower than sound is
            assert!(!is_front(velocities, 2.0, 10.0), "{velocities:?}");
        }
    }

    /// The mean energy of eight new cells is the coarse cell's where that is warm; in cold gas they have the scalar's
    /// pressure, and so has the mean of fine cells that move apart.
    #[test]
    fn motion_within_a_coarse_cell_is_no_heat() {
        let eos = Eos::<f64>::new(5.0 / 3.0);
        for (pressure, warm) in [(1.0, true), (1e-6, false)] {
            let fine: [Cell<f64>; 8] = std::array::from_fn(|n| {
                let [x, y] = [n & 1, n >> 1 & 1].map(|step| step as f64 - 0.5);
                let density = 1.0 + 0.1 * x;
                let mut u = [density, density * (1.0 + 0.4 * x), 0.2 * y, 0.0, 0.0, pressure / density.powf(2.0 / 3.0)];
                u[4] = energy_by_entropy(&u, &eos);
                u
            });
            let mean: Cell<f64> = std::array::from_fn(|f| fine.iter().map(|u| u[f]).sum::<f64>() / 8.0);
            let moving = fine.iter().map(kinetic).sum::<f64>() / 8.0;
            let by_scalar = energy_by_entropy(&mean, &eos);
            assert_eq!(energy_of_mean(moving, &mean, &eos), if warm { mean[4] } else { by_scalar });
            // a coarse cell whose own energy is right, refined
            let coarse = [mean[0], mean[1], mean[2], mean[3], by_scalar, mean[5]];
            let factor = heat_factor(&coarse, &fine, &eos);
            let energy = fine.iter().map(|u| energy_by_entropy(&[u[0], u[1], u[2], u[3], 0.0, factor * u[5]], &eos));
            let energy = energy.sum::<f64>() / 8.0;
            assert_eq!(factor == 1.0, !warm);
            assert!(!warm || (energy / by_scalar - 1.0).abs() < 1e-15, "{energy} {by_scalar}");
        }
    }

    #[test]
    fn a_cell_without_entropy_keeps_its_adiabat_if_its_energy_exceeds_that_of_the_motion() {
        for (energy, entropy, keeps) in
            [(201.0, -0.5, true), (201.0, 0.0, true), (201.0, 0.5, false), (200.0, -0.5, false)]
        {
            assert_eq!(keeps_adiabat(&[1.0, 20.0, 0.0, 0.0, energy, entropy]), keeps, "{energy} {entropy}");
        }
        // no number is no adiabat
        assert!(
            !keeps_adiabat(&[1.0, 20.0, 0.0, 0.0, f64::NAN, -0.5])
                && !keeps_adiabat(&[1.0, 0.0, 0.0, 0.0, 1.0, f64::NAN])
        );
        // compressed threefold, the pressure rises by 3^γ
        let eos = Eos::<f64>::new(5.0 / 3.0);
        let [before, after] =
            [(2.0, 0.7), (6.0, on_adiabat(0.7, 2.0, 6.0))].map(|(density, s)| eos.entropy_pressure(density, s));
        assert!((after / before - 3f64.powf(5.0 / 3.0)).abs() < 1e-13, "{before} {after}");
    }
}
