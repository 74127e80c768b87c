//! Red-black successive overrelaxation in a group (paper, eqs. Residual and SOR, section 3.2).
//!
//! The 18³ cells (ghosts included) are stored as two arrays of one colour each, so that all cells updated together
//! lie next to each other: cell (i, j, k), counted from the ghost, has colour (i+j+k) mod 2 and place i/2 in its row.

use super::Guess;
use super::problem::{Problem, boundary_mean, face_gradients};
use crate::device::isa::{Kernel, compiled_here};
use crate::layout::{FACE_CELLS, FACES, GROUP, GROUP_CELLS, cell};
use crate::operations::potential_ghosts::face_axes;
use crate::real::Real;
use std::f64::consts::PI;

/// The group with its ghost cells, along one axis.
const WIDTH: usize = GROUP + 2;
/// Cells of one colour in a row.
const ROW: usize = WIDTH / 2;
/// Cells of one colour that a half-step updates in a row.
const ACTIVE: usize = GROUP / 2;
/// Values of one colour.
const COLOUR: usize = WIDTH * WIDTH * ROW;
/// Values that a block on a GPU keeps: both colours and the boundary values.
#[cfg(feature = "cuda")]
pub(super) const SHARED_VALUES: usize = 2 * COLOUR + FACES * FACE_CELLS;
/// Far more iterations than convergence to round-off takes.
const MOST_ITERATIONS: u32 = 500;
/// Half-steps of one kind whose residual must have stopped falling before the iteration gives up.
const STALL: u32 = 8;

/// The iteration in one group; gives the number of iterations.
pub(super) struct Solve<'a, T> {
    pub(super) tolerance: f64,
    pub(super) guess: Guess,
    pub(super) problem: Problem<'a, T>,
}

compiled_here!(Solve<'static, f32>, Solve<'static, f64>);

impl<T: Real> Kernel for Solve<'_, T> {
    type Output = u32;

    #[inline(always)]
    fn run(self) -> u32 {
        solve(self.tolerance, self.guess, self.problem)
    }
}

#[inline(always)]
fn solve<T: Real>(tolerance: f64, guess: Guess, problem: Problem<T>) -> u32 {
    let Problem { source, slot, ghosts, h, potential, gradients } = problem;
    let mean = boundary_mean(ghosts);
    let mut source_h2 = [T::zero(); GROUP_CELLS];
    source.fill(slot, 0, h * h, &mut source_h2);
    let mut norm: f64 = source_h2.iter().map(|s| s.as_f64().abs()).sum();
    norm += ghosts.iter().map(|&ghost| (ghost - mean).as_f64().abs()).sum::<f64>();

    let mut values = [[T::zero(); COLOUR]; 2];
    load_ghosts(ghosts, mean, &mut values);
    let mut right_hand_side = [[T::zero(); COLOUR]; 2];
    for (k, j, i) in cells() {
        let (colour, place) = place(i + 1, j + 1, k + 1);
        right_hand_side[colour][place] = source_h2[cell(i, j, k)];
        if guess == Guess::Held {
            values[colour][place] = potential[cell(i, j, k)] - mean;
        }
    }

    let omega = omega();
    let (mut iterations, mut least, mut since_least) = (0, f64::INFINITY, 0);
    while iterations < MOST_ITERATIONS {
        let [red, black] = &mut values;
        let residual =
            half_step(0, omega, &right_hand_side[0], black, red) + half_step(1, omega, &right_hand_side[1], red, black);
        iterations += 1;
        since_least = if residual < least { 0 } else { since_least + 1 };
        least = least.min(residual);
        if residual <= tolerance * norm || since_least >= STALL {
            break;
        }
    }

    for (k, j, i) in cells() {
        let (colour, place) = place(i + 1, j + 1, k + 1);
        potential[cell(i, j, k)] = values[colour][place];
    }
    if let Some(gradients) = gradients {
        face_gradients(ghosts, mean, h, potential, gradients);
    }
    for value in potential {
        *value += mean;
    }
    iterations
}

/// The factor of the overrelaxation.
pub(super) fn omega<T: Real>() -> T {
    T::from_f64(2.0 / (1.0 + (PI / (GROUP + 1) as f64).sin()))
}

/// The cells of a group as (k, j, i).
#[inline(always)]
fn cells() -> impl Iterator<Item = (usize, usize, usize)> {
    (0..GROUP).flat_map(|k| (0..GROUP).flat_map(move |j| (0..GROUP).map(move |i| (k, j, i))))
}

/// Colour and place of a cell counted from the ghost.
#[inline(always)]
fn place(i: usize, j: usize, k: usize) -> (usize, usize) {
    ((i + j + k) & 1, (k * WIDTH + j) * ROW + i / 2)
}

#[inline(always)]
fn load_ghosts<T: Real>(ghosts: &[T], mean: T, values: &mut [[T; COLOUR]; 2]) {
    for face in 0..FACES {
        let axis = face / 2;
        let [a, b] = face_axes(axis);
        for n in 0..FACE_CELLS {
            let mut at = [0; 3];
            at[axis] = if face & 1 == 0 { 0 } else { WIDTH - 1 };
            (at[a], at[b]) = (n % GROUP + 1, n / GROUP + 1);
            let (colour, place) = place(at[0], at[1], at[2]);
            values[colour][place] = ghosts[face * FACE_CELLS + n] - mean;
        }
    }
}

/// Updates the cells of one colour from those of the other; returns the one-norm of the residual they had before.
#[inline(always)]
fn half_step<T: Real>(
    colour: usize,
    omega: T,
    right_hand_side: &[T; COLOUR],
    others: &[T; COLOUR],
    values: &mut [T; COLOUR],
) -> f64 {
    let (six, sixth) = (T::from_f64(6.0), omega / T::from_f64(6.0));
    let mut norm = [T::zero(); ACTIVE];
    for k in 1..=GROUP {
        for j in 1..=GROUP {
            // in an odd row the first active cell is i = 1 (place 0), in an even row i = 2 (place 1)
            let odd = (j + k + colour) & 1;
            let first = (k * WIDTH + j) * ROW + 1 - odd;
            let row = |from: usize| -> &[T] { &others[from..][..ACTIVE] };
            let (west, east) = (row(first + odd - 1), row(first + odd));
            let (south, north) = (row(first - ROW), row(first + ROW));
            let (below, above) = (row(first - WIDTH * ROW), row(first + WIDTH * ROW));
            let right_hand_side = &right_hand_side[first..][..ACTIVE];
            let values = &mut values[first..][..ACTIVE];
            for n in 0..ACTIVE {
                let across = (west[n] + east[n]) + (south[n] + north[n]) + (below[n] + above[n]);
                let residual = across - six * values[n] - right_hand_side[n];
                values[n] += sixth * residual;
                norm[n] += residual.abs();
            }
        }
    }
    norm.iter().map(|n| n.as_f64()).sum()
}
