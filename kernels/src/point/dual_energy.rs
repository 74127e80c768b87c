//! Dual energy formalism: total energy and entropy scalar kept consistent (docs/notes-kernels.md, *Dual energy*).
//!
//! Little of the total energy of fast gas is thermal, and truncation errors of the kinetic energy end up there, in the
//! fast cell and in slow cells beside it. Such gas takes its pressure from the advected entropy scalar, and its energy is
//! set to match. At a shock, where only the energy equation gives the heating, the cell's own energies decide, and the
//! energy is not reset: a deficit at the foot of a shock is made up behind it.
//!
//! The neighbours along a sweep decide between the two ([`shock_indicator`]), so only a sweep synchronises energy and
//! entropy scalar; other operations change both and leave the decision to the next sweep.
//!
//! Written with selects instead of branches, so that a loop over cells vectorizes.

use crate::point::eos::Eos;
use crate::point::symmetric_sum;
use crate::real::Real;

/// A cell's six conserved values: density, three momenta, energy, entropy.
pub type Cell<T> = [T; 6];

/// Shock indicator of a cell at a shock.
pub const SHOCK: f64 = -1.0;
/// Shock indicator before the first pass. The entropy scalar then gives the pressure of any gas: it was set from the
/// energy where that was right.
pub const UNSEEN: f64 = f64::INFINITY;
/// Weight of the total energy of cells beside a cell against its own: η for that is ten times as large.
const BESIDE: f64 = 10.0;
/// Pressures of three cells in a row that differ by a larger factor are a shock, if the gas that it has heated is warm:
/// what differs in cold gas is mostly error, and there is much of it. A weaker one adds so little entropy (7% at a factor
/// of three over the whole shock) that the scalar may ignore it.
const SHOCK_JUMP: f64 = 3.0;

/// ½ρv².
#[inline(always)]
pub fn kinetic<T: Real>(u: &Cell<T>) -> T {
    T::from_f64(0.5) * symmetric_sum::of_three(u[1] * u[1], u[2] * u[2], u[3] * u[3]) / u[0]
}

/// From the neighbours of a cell along a sweep: [`SHOCK`], or a total energy of which a fraction η must be thermal. Over
/// passes along several axes it is the largest such energy, and [`SHOCK`] if one of them is.
///
/// * `so_far`: after earlier passes of the sweep, [`UNSEEN`] before the first
/// * `energies`, `pressures`: of the cell before, the cell itself and the one after, as the pass begins
#[inline(always)]
pub fn shock_indicator<T: Real>(so_far: T, energies: [T; 3], pressures: [T; 3], eos: &Eos<T>) -> T {
    let highest = larger(pressures[1], larger(pressures[0], pressures[2]));
    let lowest = smaller(pressures[1], smaller(pressures[0], pressures[2]));
    let energy = larger(energies[1], larger(energies[0], energies[2]));
    let warm = highest >= (eos.gamma - T::one()) * eos.eta * energy;
    let so_far = if so_far == T::from_f64(UNSEEN) { T::zero() } else { so_far };
    let shock = (so_far < T::zero()) | ((highest > T::from_f64(SHOCK_JUMP) * lowest) & warm);
    if shock { T::from_f64(SHOCK) } else { larger(so_far, T::from_f64(BESIDE) * energy) }
}

/// Whether the entropy scalar decides in a cell with this internal energy: where it is less than η of the cell's total
/// energy or of the shock indicator.
#[inline(always)]
pub fn is_cold<T: Real>(internal: T, energy: T, shock_indicator: T, eos: &Eos<T>) -> bool {
    let own = energy.abs();
    let share = larger(own, shock_indicator);
    internal < eos.eta * share
}

/// Thermal pressure of a cell by itself: from the entropy scalar where the internal energy is less
/// than η of the total, else from the energy.
#[inline(always)]
pub fn pressure<T: Real>(u: &Cell<T>, eos: &Eos<T>) -> T {
    let internal = u[4] - kinetic(u);
    let cold = eos.entropy_pressure(u[0], u[5]);
    if is_cold(internal, u[4], T::zero(), eos) { cold } else { (eos.gamma - T::one()) * internal }
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

    /// Gas at rest beside gas whose kinetic energy is twenty times its own heat, and beside a pressure three times its own.
    #[test]
    fn neighbours_tell_slow_gas_beside_fast_gas_from_a_shock() {
        let eos = Eos::<f64>::new(5.0 / 3.0);
        let scalar = 0.5;
        let slow = [1.0, 0.0, 0.0, 0.0, 1.5, scalar];
        let calm = shock_indicator(UNSEEN, [1.5, 1.5, 1.5], [1.0, 1.0, 2.9], &eos);
        assert_eq!(synchronise(&slow, calm, &eos).cell, [1.0, 0.0, 0.0, 0.0, 1.5, 1.0]);
        for fast in [[30.0, 1.5, 1.5], [1.5, 1.5, 30.0]] {
            let seen = shock_indicator(UNSEEN, fast, [1.0; 3], &eos);
            let done = synchronise(&slow, seen, &eos);
            assert!(done.cold && (done.cell[4] - 1.5 * scalar).abs() < 1e-15 && done.cell[5] == scalar);
            // a later pass along which all is calm does not change that, one that sees a shock does
            assert_eq!(shock_indicator(seen, [1.5; 3], [1.0; 3], &eos), seen);
            let shock = shock_indicator(seen, [1.5; 3], [1.0, 1.0, 3.1], &eos);
            assert_eq!((shock, shock_indicator(shock, fast, [1.0; 3], &eos)), (SHOCK, SHOCK));
            assert_eq!(synchronise(&slow, shock, &eos).cell, [1.0, 0.0, 0.0, 0.0, 1.5, 1.0]);
        }
        // pressures of cold gas differ for many reasons: 3.1 is heat of 4.65, η of an energy of 465
        for (energy, warm) in [(464.0, true), (466.0, false)] {
            let seen = shock_indicator(UNSEEN, [1.5, 1.5, energy], [1.0, 1.0, 3.1], &eos);
            assert_eq!(seen, if warm { SHOCK } else { BESIDE * energy });
        }
        // at a shock the energy decides down to η of the cell's own, and is not touched where it does not
        let heated = synchronise(&[1.0, 20.0, 0.0, 0.0, 203.0, scalar], SHOCK, &eos);
        assert!(!heated.cold && (heated.cell[5] - 2.0).abs() < 1e-13);
        let foot = [1.0, 20.0, 0.0, 0.0, 199.0, scalar];
        assert!(synchronise(&foot, SHOCK, &eos).cold && synchronise(&foot, SHOCK, &eos).cell == foot);
        // who sees no neighbours leaves both alone, whichever decides
        for u in [slow, foot] {
            assert_eq!(synchronise(&u, UNSEEN, &eos).cell, u);
        }
        // unless the energy is less than half of the motion's
        let exhausted = [1.0, 20.0, 0.0, 0.0, 99.0, scalar];
        for shock_indicator in [SHOCK, UNSEEN] {
            assert_eq!(synchronise(&exhausted, shock_indicator, &eos).cell, [1.0, 20.0, 0.0, 0.0, 200.75, scalar]);
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
