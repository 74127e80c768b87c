//! Coarse grids against their equation.

use super::padded::Around;
use super::*;
use crate::layout::{CENTRE, DIRECTIONS, direction};
use crate::level::level_topology::NONE;

/// Two groups side by side along x and nothing around them.
fn pair() -> LevelTopology {
    let mut neighbours = vec![NONE; 2 * DIRECTIONS];
    neighbours[CENTRE] = 0;
    neighbours[direction(1, 0, 0)] = 1;
    neighbours[DIRECTIONS + CENTRE] = 1;
    neighbours[DIRECTIONS + direction(-1, 0, 0)] = 0;
    LevelTopology {
        slots: vec![0, 1].into(),
        neighbours: neighbours.into(),
        parents: vec![0; 2 * DIRECTIONS].into(),
        octants: vec![0, 1].into(),
        outside: vec![0; 2].into(),
        leaves: vec![0xff; 2].into(),
        ..LevelTopology::default()
    }
}

fn grid(width: usize, error: &[f64]) -> [Buffer<f64>; 3] {
    let zeros = || Buffer::Cpu(vec![0.0; 2 * width.pow(3)]);
    [zeros(), Buffer::Cpu(error.to_vec()), zeros()]
}

/// Beyond a face the cell is −r times the one inside, beyond an edge once more, and a neighbour's cell where there is one.
#[test]
fn cells_around_a_group() {
    let (width, side) = (4, 6);
    let values: Vec<f64> = (0..128).map(|n| 1.0 + f64::from(n)).collect();
    let mut block = vec![0.0; side * side * side];
    Around::<f64>::of(&pair(), 0, width).fill(width, &values, &mut block);
    let at = |x: usize, y: usize, z: usize| block[(z * side + y) * side + x];
    let of = |group: usize, x: usize, y: usize, z: usize| values[64 * group + (z * width + y) * width + x];
    let ratio = 3.0 / 5.0;
    assert_eq!(at(2, 3, 4), of(0, 1, 2, 3));
    assert_eq!(at(5, 3, 4), of(1, 0, 2, 3));
    assert_eq!(at(0, 3, 4), -ratio * of(0, 0, 2, 3));
    assert_eq!(at(5, 0, 4), -ratio * of(1, 0, 0, 3));
    assert_eq!(at(0, 5, 0), -ratio * ratio * ratio * of(0, 0, 3, 0));
}

/// A cell in the middle of a face between the groups spreads its sum over both sides alike, and the correction of a
/// constant jump is half the jump: the V-cycle's sweeps converge to what makes both sides meet.
#[test]
fn sweeps_solve_the_equation() {
    let device = Device::cpu(2).unwrap();
    let tables = pair();
    let mut potential = Buffer::Cpu(vec![0.0; 2 * GROUP_CELLS]);
    potential.host_mut()[GROUP_CELLS..].fill(1.0);
    // each group was solved with ghosts equal to its own cells: the jump is 1 seen from one side and −1 from the other
    let mut ghosts = vec![0.0; 2 * GHOST_CELLS];
    ghosts[GHOST_CELLS..].fill(1.0);
    let mut arrays = grid(8, &[0.0; 1024]);
    let ghosts = Buffer::Cpu(ghosts);
    face_residual(&device, &tables, &ghosts, &potential, 0.0, CoarseGrid { width: 8, arrays: &mut arrays });
    let sum: f64 = arrays[0].host().iter().sum();
    let size: f64 = arrays[0].host().iter().map(|value| value.abs()).sum();
    assert!(sum.abs() < 1e-12 && size == 2.0 * 64.0 * 2.0, "{sum} of {size}");
    for _ in 0..400 {
        smooth(&device, &tables, 0.9, CoarseGrid { width: 8, arrays: &mut arrays });
    }
    // ∇²e = source: restricted, nothing of it is left
    let mut coarse = grid(4, &[0.0; 128]);
    let [fine, to] = [(8, &mut arrays), (4, &mut coarse)].map(|(width, arrays)| CoarseGrid { width, arrays });
    restrict_residual(&device, &tables, 1.0, fine, to);
    let left = coarse[0].host().iter().fold(0.0f64, |most, value| most.max(value.abs()));
    assert!(left < 1e-9, "{left:e}");
    // antisymmetric about the face, and rising towards the group that is higher in the other's eyes
    let at = |group: usize, x: usize| arrays[1].host()[group * 512 + (3 * 8 + 3) * 8 + x];
    for x in 0..8 {
        assert!((at(0, 7 - x) + at(1, x)).abs() < 1e-9, "{x}");
    }
    assert!(at(0, 7) > 0.2 && at(0, 7) > at(0, 0) && at(0, 0) > 0.0, "{} {}", at(0, 7), at(0, 0));
}

/// Linear errors are interpolated exactly away from faces without neighbour.
#[test]
fn linear_errors_are_prolonged_exactly() {
    let device = Device::cpu(1).unwrap();
    let tables = pair();
    for width in [4, 2] {
        let value = |scale: f64, group: usize, [x, y, z]: [usize; 3]| {
            let centre = |c: usize| scale * (c as f64 + 0.5);
            16.0 * group as f64 + centre(x) - 0.3 * centre(y) + 0.1 * centre(z)
        };
        let cells = |n: usize| {
            (0..2 * n.pow(3)).map(move |c| (c / n.pow(3), [c % n, c / n % n, c / n / n % n])).collect::<Vec<_>>()
        };
        let h = 16.0 / width as f64;
        let error: Vec<f64> = cells(width).iter().map(|&(group, at)| value(h, group, at)).collect();
        let (mut coarse, mut fine) = (grid(width, &error), grid(2 * width, &vec![0.0; 2 * (2 * width).pow(3)]));
        let [from, to] =
            [(width, &mut coarse), (2 * width, &mut fine)].map(|(width, arrays)| CoarseGrid { width, arrays });
        prolong_error(&device, &tables, from, to);
        let mut checked = 0;
        for ((group, at), found) in cells(2 * width).into_iter().zip(fine[1].host()) {
            let outermost = |c: usize| c == 0 || c + 1 == 2 * width;
            let beside = if group == 0 { at[0] == 0 } else { at[0] + 1 == 2 * width };
            if !beside && !outermost(at[1]) && !outermost(at[2]) {
                let expected = value(h / 2.0, group, at);
                assert!((found - expected).abs() < 1e-12, "{group} {at:?}: {found} {expected}");
                checked += 1;
            }
        }
        assert!(checked > 0);
    }
}
