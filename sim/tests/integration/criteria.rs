//! Runs refined by each kind of criterion.

use crate::common;

use common::{initial, plain_parameters};
use comove_kernels::flag::program::{Op, ProgramBuilder};
use comove_sim::criterion::{Program, Quantity};
use comove_sim::{Criterion, Precision, RunParameters, Simulation, Snapshot};

/// A dense blob that moves through the box in thin gas of the same pressure.
fn blob() -> Snapshot {
    initial(2, [true; 3], None, 1.0, |x| {
        let r2: f64 = (0..3).map(|a| (x[a] - 0.3).powi(2)).sum();
        (1.0 + 3.0 * (-r2 / 0.01).exp(), [1.0, 0.5, -0.25], 1.0)
    })
}

fn run(refine: Vec<Criterion>, max_level: u8, steps: usize) -> (Snapshot, Vec<String>) {
    let parameters = RunParameters { refine, ..plain_parameters(Precision::Double, max_level, Vec::new()) };
    let mut simulation = Simulation::start(common::device(2), &blob(), parameters).unwrap();
    let hashes = (0..steps).map(|_| simulation.step().unwrap().state_hash).collect();
    (simulation.checkpoint().unwrap(), hashes)
}

/// Before and after the gas has moved, the regions are at their levels and most of the box is not.
#[test]
fn a_static_region_keeps_its_levels() {
    let ball = Criterion::InsideBall { center: [0.75, 0.75, 0.75], radius: 0.1, level: 2 };
    let slab = Criterion::InsideBox { min: [-0.05, 0.0, 0.0], max: [0.05, 1.0, 1.0], level: 1 };
    for steps in [0, 9] {
        let (snapshot, _) = run(vec![ball.clone(), slab.clone()], 2, steps);
        let tree = &snapshot.state.tree;
        assert_eq!(tree.level_count(), 3);
        for patch in tree.leaf_patches() {
            let cells = tree.cells(patch.level);
            let h = 1.0 / cells[0] as f64;
            let [low, high] = [0.0, 8.0].map(|n| patch.first_cell.map(|c| (c as f64 + n) * h));
            let to_ball: f64 = (0..3).map(|a| (0.75f64.clamp(low[a], high[a]) - 0.75).powi(2)).sum();
            if to_ball < 0.1 * 0.1 {
                assert_eq!(patch.level, 2, "{low:?}");
            }
            if low[0] < 0.05 || high[0] > 0.95 {
                assert!(patch.level >= 1, "{low:?}");
            }
        }
        // a patch of the root and its buffer around the slab, and the ball's surroundings: not the whole box
        assert!(tree.level(1).len() < 64 && tree.level(2).len() < 8 * tree.level(1).len());
    }
}

/// Three ways to ask for the same cells give the same bits.
#[test]
fn the_same_question_has_the_same_answer() {
    // numbers that both precisions hold exactly
    let thresholds = vec![1.5, 2.25];
    let (_, by_density) = run(vec![Criterion::DensityAbove { thresholds: thresholds.clone() }], 2, 6);
    let mut b = ProgramBuilder::default();
    let (density, level) = (b.push(Op::Density, &[]), b.push(Op::Level, &[]));
    let [first, second] = [1.5, 0.75].map(|number| b.constant(number));
    let rise = b.push(Op::Multiply, &[level, second]);
    let threshold = b.push(Op::Add, &[first, rise]);
    let dense = b.push(Op::Less, &[threshold, density]);
    let program = Program(b.finish(dense).unwrap());
    let (_, by_program) = run(vec![Criterion::Where { program, source: String::new() }], 2, 6);
    assert_eq!(by_density, by_program);
    let (uniform, _) = run(Vec::new(), 2, 0);
    assert_eq!(uniform.state.tree.level_count(), 1);
    let mass: f64 = (0..8).map(|g| uniform.state.field(g, 0).sum()).sum();
    let mean = mass / (8.0 * 4096.0);
    let relative = thresholds.iter().map(|t| t / mean).collect();
    let (_, by_overdensity) = run(vec![Criterion::OverdensityAbove { thresholds: relative }], 2, 6);
    assert_eq!(by_density, by_overdensity);
}

/// A combination flags the cells that the same expression flags, buffer and nesting included.
#[test]
fn combinations_are_their_expressions() {
    let dense = |thresholds: Vec<f64>| Criterion::DensityAbove { thresholds };
    let low = Criterion::InsideBox { min: [0.0; 3], max: [0.25, 1.0, 1.0], level: 2 };
    let joined = Criterion::All(vec![
        Criterion::Any(vec![dense(vec![1.5, 1.5]), dense(vec![3.0, 3.0])]),
        Criterion::Not(Box::new(low)),
    ]);
    let (start, _) = run(vec![joined.clone()], 2, 0);
    let tree = &start.state.tree;
    // beyond the cut at x = 1/4 there is the buffer, a patch of the root wide, and its nesting; the blob there is not refined
    let below: Vec<_> = tree.leaf_patches().filter(|patch| patch.level > 0 && patch.first_cell[0] == 0).collect();
    assert!(tree.level_count() == 3 && !below.is_empty(), "the buffer reaches beyond the cut");
    let (whole, _) = run(vec![dense(vec![1.5, 1.5])], 2, 0);
    assert!(whole.state.tree.level(2).len() > tree.level(2).len(), "the cut leaves cells out");

    let mut b = ProgramBuilder::default();
    let [density, x] = [Op::Density, Op::PositionX].map(|field| b.push(field, &[]));
    let [limit, cut] = [1.5, 0.25].map(|number| b.constant(number));
    let dense_there = b.push(Op::Less, &[limit, density]);
    let inside = b.push(Op::Less, &[x, cut]);
    let outside = b.push(Op::Not, &[inside]);
    let both = b.push(Op::And, &[dense_there, outside]);
    let expression = Criterion::Where { program: Program(b.finish(both).unwrap()), source: String::new() };
    assert_eq!(run(vec![joined.clone()], 2, 6).1, run(vec![expression], 2, 6).1);

    // within a number of cells: thresholds are raised, those within `not` lowered
    let shell = Criterion::All(vec![dense(vec![1.2, 1.2]), Criterion::Not(Box::new(dense(vec![3.5, 3.5])))]);
    let groups = |max_cells: Option<u64>| {
        let parameters = RunParameters {
            refine: vec![shell.clone()],
            max_cells,
            ..plain_parameters(Precision::Double, 2, Vec::new())
        };
        let mut simulation = Simulation::start(common::device(2), &blob(), parameters).unwrap();
        simulation.checkpoint().unwrap().state.tree.groups()
    };
    let all = groups(None);
    let most = all[0] + all[1] + all[2] / 2;
    let within = groups(Some(4096 * most as u64));
    // fewer groups of level 2 need fewer of level 1 around them
    assert!(
        within[0] == all[0] && within[1] <= all[1] && within.iter().sum::<usize>() <= most,
        "{within:?} of {all:?}"
    );
    assert!(within[2] > 0 && within[2] < all[2], "{within:?} of {all:?}");
}

/// The edge of the blob is refined and followed; pressure is the same everywhere and asks for nothing.
#[test]
fn gradients_follow_the_gas() {
    let gradient = |of, t: f64| Criterion::GradientAbove { of, thresholds: vec![t; 2] };
    let lohner = |of, t: f64| Criterion::LohnerAbove { of, thresholds: vec![t; 2], filter: 0.05 };
    for criterion in [gradient(Quantity::Density, 0.1), lohner(Quantity::Density, 0.25)] {
        let (snapshot, _) = run(vec![criterion.clone()], 2, 8);
        let tree = &snapshot.state.tree;
        assert_eq!(tree.level_count(), 3, "{criterion:?}");
        let t = snapshot.header.time;
        let edge = [0.3 + t + 0.08, 0.3 + 0.5 * t, 0.3 - 0.25 * t];
        let at_edge = tree.leaf_patches().find(|patch| {
            let h = 1.0 / tree.cells(patch.level)[0] as f64;
            (0..3).all(|a| ((edge[a] / h) as usize).wrapping_sub(patch.first_cell[a]) < 8)
        });
        assert_eq!(at_edge.unwrap().level, 2, "{criterion:?}");
        assert!(tree.level(2).len() < 512 / 2, "{criterion:?}");
    }
    for criterion in [gradient(Quantity::Pressure, 0.1), lohner(Quantity::Pressure, 0.5)] {
        assert_eq!(run(vec![criterion], 2, 2).0.state.tree.level_count(), 1);
    }
}
