//! Orders of Lagrangian perturbation theory against closed forms and against the equations of motion.

use super::*;
use comove_sim::Cosmology;
use comove_sim::parallel::on_ranks;
use std::f64::consts::TAU;

/// Einstein–de Sitter: D = a, f_n = n.
fn matter() -> Cosmology {
    Cosmology::flat(0.7, 1.0, 0.0, 0.8, 1.0)
}

/// The modes of a density contrast that is given at cell centres, in a box of length 2π along x.
fn modes_of(communicator: &Communicator, cells: [usize; 3], contrast: impl Fn([f64; 3]) -> f64) -> LinearModes<'_> {
    let planes = crate::slab::planes(cells, communicator.rank(), communicator.size());
    let place = |i: usize| (i as f64 + 0.5) * TAU / cells[0] as f64;
    let row = |j: usize, k: usize| (0..cells[0]).map(move |i| [place(i), place(j), place(k)]);
    let places = planes.flat_map(|k| (0..cells[1]).flat_map(move |j| row(j, k)));
    LinearModes::zero(communicator, cells, TAU).of_product(&places.map(contrast).collect::<Vec<_>>())
}

fn largest<'a>(values: impl IntoIterator<Item = &'a f64>) -> f64 {
    values.into_iter().fold(0.0, |most, value| most.max(value.abs()))
}

#[test]
fn a_plane_wave_has_first_order_alone() {
    let alone = Communicator::alone();
    let modes = modes_of(&alone, [16; 3], |[x, y, z]| 0.3 * (2.0 * x - 3.0 * y + z).cos());
    for order in [2, 3] {
        let flow = HigherOrders::new(&modes, &matter(), 0.1, order).velocity(&modes);
        for axis in 0..3 {
            let [all, first] = [flow.velocity(axis, 1.0), modes.velocity(axis, 1.0)];
            assert!(largest(&all.iter().zip(&first).map(|(a, b)| a - b).collect::<Vec<_>>()) < 1e-15, "{order}");
            assert!(largest(&first) > 0.02);
        }
    }
}

/// δ = a cos kx + b cos ly: φ_,xx and φ_,yy are its terms, φ⁽²⁾ = −ab cos kx cos ly/(k² + l²), and third order has the waves
/// (k, 0), (0, l), (2k, l), (k, 2l). With k = 6 on 16 cells the mesh lacks the third, which would fold onto (−4, l).
#[test]
fn crossed_waves_have_their_closed_form() {
    let (a, b, k, l) = (0.2, 0.15, 6.0, 3.0);
    let alone = Communicator::alone();
    let modes = modes_of(&alone, [16; 3], |[x, y, _]| a * (k * x).cos() + b * (l * y).cos());
    let square = k * k + l * l;
    // gradient of −C cos px cos qy/(p² + q²), and curl of the z axis times C sin px sin qy/(p² + q²)
    let gradient = |c: f64, [p, q]: [f64; 2], [x, y]: [f64; 2]| {
        let size = c / (p * p + q * q);
        [size * p * (p * x).sin() * (q * y).cos(), size * q * (p * x).cos() * (q * y).sin()]
    };
    let curl = |c: f64, [p, q]: [f64; 2], [x, y]: [f64; 2]| {
        let size = c / (p * p + q * q);
        [size * q * (p * x).sin() * (q * y).cos(), -size * p * (p * x).cos() * (q * y).sin()]
    };
    let terms = |at: [f64; 2]| {
        let first = [gradient(-a, [k, 0.0], at), gradient(-b, [0.0, l], at)];
        let second = [gradient(-3.0 / 7.0 * a * b, [k, l], at)];
        let mixed = -5.0 / 42.0 * a * b / square;
        let transverse = 1.0 / 14.0 * a * b * k * l / square;
        let third = [
            gradient(mixed * a * l * l, [0.0, l], at),
            gradient(mixed * b * k * k, [k, 0.0], at),
            gradient(mixed * b * k * k, [k, 2.0 * l], at),
            curl(transverse * b, [k, 2.0 * l], at),
        ];
        let sum = |terms: &[[f64; 2]]| [0, 1].map(|axis| terms.iter().map(|term| term[axis]).sum::<f64>());
        [sum(&first), sum(&second), sum(&third)]
    };
    let orders = HigherOrders::new(&modes, &matter(), 0.1, 3);
    for (flow, factors) in [(orders.displacement(&modes), [1.0; 3]), (orders.velocity(&modes), [1.0, 2.0, 3.0])] {
        let found = [0, 1, 2].map(|axis| flow.velocity(axis, 1.0));
        assert!(largest(&found[2]) < 1e-16);
        for n in 0..16 * 16 {
            let at = [n % 16, n / 16].map(|i| (i as f64 + 0.5) * TAU / 16.0);
            let terms = terms(at);
            for axis in 0..2 {
                let expected: f64 = (0..3).map(|order| factors[order] * terms[order][axis]).sum();
                assert!((found[axis][n] - expected).abs() < 1e-11, "{at:?}: {} {expected}", found[axis][n]);
            }
        }
    }
}

/// Residuals of the equations of motion in Lagrangian coordinates, J ∇ₓ·T ψ = J − 1 and ∇ₓ × T ψ = 0 with T Dⁿ = n(2n + 1)/3 Dⁿ,
/// fall as the next power of the amplitude: ψ is a solution up to its order.
#[test]
fn orders_solve_the_equations_of_motion() {
    let alone = Communicator::alone();
    let contrast = |[x, y, z]: [f64; 3]| {
        (x + 0.3).cos()
            + 0.8 * (y - 2.0 * z).sin()
            + 0.7 * (x + y + z).cos()
            + 0.6 * (2.0 * x - y).sin()
            + 0.5 * z.cos()
    };
    let residual = |amplitude: f64, order: u8| {
        let modes = modes_of(&alone, [16; 3], |at| amplitude * contrast(at));
        let displacement = |order: u8| {
            let flow = HigherOrders::new(&modes, &matter(), 0.1, order).displacement(&modes);
            [0, 1, 2].map(|axis| flow.velocity(axis, 1.0))
        };
        let sums: Vec<[Vec<f64>; 3]> = (1..=order).map(displacement).collect();
        let count = sums[0][0].len();
        let mut accelerated = [0, 1, 2].map(|_| vec![0.0; count]);
        for n in 0..sums.len() {
            let factor = [1.0, 10.0 / 3.0, 7.0][n];
            for (axis, sum) in accelerated.iter_mut().enumerate() {
                let before = |m: usize| if n == 0 { 0.0 } else { sums[n - 1][axis][m] };
                (0..count).for_each(|m| sum[m] += factor * (sums[n][axis][m] - before(m)));
            }
        }
        let gradients = |fields: &[Vec<f64>; 3]| {
            fields.each_ref().map(|field| {
                let modes = modes.of_product(field);
                [0, 1, 2].map(|axis| modes.derived(|k| Complex::new(0.0, k[axis])))
            })
        };
        let (moved, forced) = (gradients(sums.last().unwrap()), gradients(&accelerated));
        let (mut expansion, mut rotation): (f64, f64) = (0.0, 0.0);
        for n in 0..count {
            let f = |i: usize, j: usize| moved[i][j][n] + if i == j { 1.0 } else { 0.0 };
            let t = |i: usize, j: usize| forced[i][j][n];
            let next = |i: usize| [(i + 1) % 3, (i + 2) % 3];
            let cofactor = |i: usize, j: usize| {
                let ([p, q], [r, s]) = (next(i), next(j));
                f(p, r) * f(q, s) - f(p, s) * f(q, r)
            };
            let determinant: f64 = (0..3).map(|j| f(0, j) * cofactor(0, j)).sum();
            let pairs = || (0..3).flat_map(|i| (0..3).map(move |j| (i, j)));
            let divergence: f64 = pairs().map(|(i, j)| cofactor(i, j) * t(i, j)).sum();
            expansion = expansion.max((divergence - determinant + 1.0).abs());
            for i in 0..3 {
                let [j, k] = next(i);
                let curl: f64 = (0..3).map(|l| f(l, j) * t(l, k) - f(l, k) * t(l, j)).sum();
                rotation = rotation.max(curl.abs());
            }
        }
        [expansion, rotation]
    };
    for order in 1..=3 {
        let [coarse, fine] = [0.02, 0.01].map(|amplitude| residual(amplitude, order));
        println!("order {order}: expansion {coarse:?}, at half the amplitude {fine:?}");
        let power = [0, 1].map(|n| (coarse[n] / fine[n]).log2());
        assert!((power[0] - f64::from(order + 1)).abs() < 0.15, "order {order}: {power:?}");
        // gradients have no curl, so the second order brings one in at third
        let of_rotation = f64::from(order + 1).max(3.0);
        assert!((power[1] - of_rotation).abs() < 0.15 || fine[1] < 1e-13, "order {order}: {power:?}");
    }
}

/// Third order, which is made of all transforms.
#[test]
fn third_order_does_not_depend_on_ranks() {
    let cells = [16, 24, 8];
    let flows = |communicator: &Communicator| {
        let modes =
            modes_of(communicator, cells, |[x, y, z]| (x + 2.0 * y).sin() + (7.0 * x - z).cos() + (y + z).cos());
        let flow = HigherOrders::new(&modes, &Cosmology::flat(0.7, 0.3, 0.045, 0.9, 1.0), 0.5, 3).velocity(&modes);
        [flow.velocity(0, 1.0), flow.velocity_at_corners(2, 0.5)]
    };
    let whole = flows(&Communicator::alone());
    for ranks in [2, 5] {
        let slabs = on_ranks(ranks, |communicator| flows(&communicator));
        for (n, whole) in whole.iter().enumerate() {
            assert!(slabs.iter().map(|slab| slab[n].as_slice()).collect::<Vec<_>>().concat() == *whole, "{ranks}");
        }
    }
}
