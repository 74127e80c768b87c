//! Programs: their text, and their values cell by cell.

use super::*;
use crate::layout::{GROUP, GROUP_CELLS, GROUP_VALUES};
use crate::level::ghosts::{CoarseCells, gather};
use crate::operations::flag::FlagLevel;
use crate::operations::flag::stencil::BlockFields;
use crate::point::eos::Eos;
use crate::testing::{Mesh, conserved};

const GAMMA: f64 = 1.4;

/// density > 8 && (level < 3 || !(speed ** 2 > 1.5))
fn sample() -> Program {
    let mut b = ProgramBuilder::default();
    let density = b.push(Op::Density, &[]);
    let eight = b.constant(8.0);
    let dense = b.push(Op::Less, &[eight, density]);
    let level = b.push(Op::Level, &[]);
    let three = b.constant(3.0);
    let coarse = b.push(Op::Less, &[level, three]);
    let speed = b.push(Op::Speed, &[]);
    let two = b.constant(2.0);
    let square = b.push(Op::Power, &[speed, two]);
    let limit = b.constant(1.5);
    let fast = b.push(Op::Less, &[limit, square]);
    let slow = b.push(Op::Not, &[fast]);
    let either = b.push(Op::Or, &[coarse, slow]);
    let result = b.push(Op::And, &[dense, either]);
    b.finish(result).unwrap()
}

#[test]
fn a_program_reads_back_from_its_text() {
    let program = sample();
    let lines = program.lines();
    assert_eq!(lines[..3], ["r0 = density", "r1 = constant 8.0", "r0 = less r1 r0"]);
    assert_eq!(Program::from_lines(&lines).unwrap(), program);
    for op in Op::ALL {
        assert_eq!(Op::ALL.iter().filter(|other| other.name() == op.name()).count(), 1, "{op:?}");
    }
    for number in [0.1, -1e300, 5e-324, f64::INFINITY, 1.0 / 3.0] {
        let instruction = Instruction { op: Op::Constant, to: 31, from: [0; 3], constant: number };
        assert_eq!(instruction.to_string().parse::<Instruction>().unwrap(), instruction);
    }
}

#[test]
fn lines_that_are_no_program_are_refused() {
    for (line, reason) in [
        ("r0 = volume", "no such operation"),
        ("r32 = density", "a register is written r0 … r31"),
        ("r0 density", "after its register comes ="),
        ("r0 = constant eight", "a constant needs a number"),
        ("r1 = abs", "a register is written r0 … r31"),
        ("r1 = density r0", "it has too many operands"),
        ("r1 = abs r0", "it reads what no line before it writes"),
    ] {
        let error = Program::from_lines(&[line]).unwrap_err();
        assert_eq!(error, ProgramError::Line { line: line.into(), reason });
    }
    assert_eq!(Program::from_lines::<&str>(&[]), Err(ProgramError::Empty));
}

#[test]
fn what_is_written_twice_is_computed_once_and_constants_beforehand() {
    let mut b = ProgramBuilder::default();
    let [two, three] = [2.0, 3.0].map(|n| b.constant(n));
    let eight = b.push(Op::Power, &[two, three]);
    assert_eq!(b.constant_of(eight), Some(8.0));
    let density = b.push(Op::Density, &[]);
    let ways = [[density, eight], [eight, density]].map(|operands| b.push(Op::Multiply, &operands));
    assert_eq!(ways[0], ways[1]);
    let unused = b.push(Op::Pressure, &[]);
    b.push(Op::SquareRoot, &[unused]);
    let program = b.finish(ways[0]).unwrap();
    assert_eq!(program.lines(), ["r0 = constant 8.0", "r1 = density", "r0 = multiply r0 r1"]);
}

/// Where gas is all matter, its fields stand for those of all matter, in text as well.
#[test]
fn a_program_of_gas_alone_reads_the_gas() {
    let program = |op: Op| {
        let mut b = ProgramBuilder::default();
        let (value, limit) = (b.push(op, &[]), b.constant(8.0));
        let result = b.push(Op::Less, &[limit, value]);
        b.finish(result).unwrap()
    };
    assert_eq!(program(Op::MatterDensity).of_gas_alone().lines(), program(Op::Density).lines());
    assert_eq!(program(Op::MatterOverdensity).of_gas_alone().lines(), program(Op::Overdensity).lines());
    assert_eq!(program(Op::Pressure).of_gas_alone(), program(Op::Pressure));
}

#[test]
fn registers_serve_again_and_run_out() {
    // a long sum, from the left: two values at a time
    let mut b = ProgramBuilder::default();
    let mut sum = b.push(Op::Density, &[]);
    for n in 1..100 {
        let term = b.constant(f64::from(n));
        sum = b.push(Op::Multiply, &[sum, term]);
    }
    let program = b.finish(sum).unwrap();
    assert!(program.instructions().iter().all(|i| i.to < 2));
    // forty values that are all needed at the end
    let mut b = ProgramBuilder::default();
    let density = b.push(Op::Density, &[]);
    let values: Vec<Value> = (0..40)
        .map(|n| {
            let term = b.constant(f64::from(n));
            b.push(Op::Add, &[density, term])
        })
        .collect();
    let product = values.iter().copied().reduce(|x, y| b.push(Op::Multiply, &[x, y])).unwrap();
    assert_eq!(b.finish(product), Err(ProgramError::TooManyValues));
}

/// Every operation on rows of numbers of every kind, against the same operation cell by cell.
#[test]
fn rows_are_their_cells() {
    let mesh = Mesh::new([1, 1, 1], true);
    let special = [0.0, -1.0, 2.5, f64::INFINITY, f64::NAN, -1e300, 1e-310, 0.3];
    let mut noise = crate::testing::Noise::new(9);
    let mut n = 0;
    let fluid: Vec<f64> = mesh.fill(|_| {
        n += 1;
        std::array::from_fn(|f| if (n + f) % 5 == 0 { special[(n / 5 + f) % 8] } else { 10.0 * noise.next() })
    });
    let level = FlagLevel {
        level: 0,
        cells: [16; 3],
        periodic: [true; 3],
        cell_width: 1.0,
        a: 1.0,
        four_pi_g: 1.0,
        mean_density: 1.0,
        mean_gas_density: 1.0,
        eos: Eos::new(GAMMA),
    };
    let cells = Cells { group: &fluid, density: &fluid[..GROUP_CELLS], block: None, coordinate: [0; 3], level: &level };
    let of = [Op::Density, Op::Energy, Op::Entropy];
    for op in Op::ALL.into_iter().filter(|op| op.operands() > 0) {
        let mut b = ProgramBuilder::default();
        let operands: Vec<Value> = of[..op.operands()].iter().map(|&field| b.push(field, &[])).collect();
        let value = b.push(op, &operands);
        let program = b.finish(value).unwrap();
        for e in 0..GROUP_CELLS {
            let field = |op: Op| fluid[[0, 4, 5][of.iter().position(|&f| f == op).unwrap()] * GROUP_CELLS + e];
            let found = evaluate(&program, &cells, e / GROUP % GROUP, e / GROUP / GROUP)[e % GROUP];
            let expected = program.result(field);
            assert!(found == expected || found.is_nan() && expected.is_nan(), "{op:?}: {found} {expected}");
        }
    }
}

/// Each field as the only instruction, against its definition; linear velocities have the same divergence everywhere.
#[test]
fn fields_are_what_they_are_called() {
    let mesh = Mesh::new([2, 2, 2], false).with_level(vec![[1, 2, 1]]);
    let density = |x: [f64; 3]| 2.0 + 0.1 * (x[0] * x[1] - x[2]).sin();
    let velocity = |x: [f64; 3]| [0.25 * x[0] - 3.0, 0.5 * x[2], 0.125 * x[2] - 0.25 * x[1]];
    let thermal = |x: [f64; 3]| 5.0 + (0.3 * x[1]).cos();
    let fluid: Vec<f64> = mesh.fill(|x| conserved(density(x), velocity(x), thermal(x), GAMMA));
    let level = FlagLevel {
        level: 1,
        cells: [64; 3],
        periodic: [false; 3],
        cell_width: 0.5,
        a: 0.3,
        four_pi_g: 1.0,
        mean_density: 2.0,
        mean_gas_density: 1.6,
        eos: Eos::new(GAMMA),
    };
    let tables = mesh.tables(1);
    let mut block = BlockFields::new();
    gather(&tables, 0, &fluid, None, &Eos::new(5.0 / 3.0), &mut CoarseCells::new(), &mut block.block);
    let group = &fluid[tables.slots[0] as usize * GROUP_VALUES..][..GROUP_VALUES];
    let matter: Vec<f64> = group[..GROUP_CELLS].iter().map(|gas| gas + 0.5).collect();
    let cells = Cells { group, density: &matter, block: Some(&block), coordinate: [1, 2, 1], level: &level };
    for op in Op::ALL.into_iter().filter(|op| op.is_field()) {
        let mut b = ProgramBuilder::default();
        let value = b.push(op, &[]);
        let program = b.finish(value).unwrap();
        for c in 0..GROUP_CELLS {
            let [i, j, k] = [c % GROUP, c / GROUP % GROUP, c / GROUP / GROUP];
            let x = [i as f64 + 16.0, j as f64 + 32.0, k as f64 + 16.0].map(|n| 0.5 * (n + 0.5));
            let (rho, v, p) = (density(x), velocity(x), thermal(x));
            let speed = (v[0] * v[0] + v[1] * v[1] + v[2] * v[2]).sqrt();
            let found = evaluate(&program, &cells, j, k)[i];
            let expected = match op {
                Op::Density => rho,
                Op::Overdensity => rho / 1.6,
                Op::MatterDensity => rho + 0.5,
                Op::MatterOverdensity => (rho + 0.5) / 2.0,
                Op::DarkMatterDensity => 0.5,
                Op::Pressure => p,
                Op::VelocityX => v[0],
                Op::VelocityY => v[1],
                Op::VelocityZ => v[2],
                Op::Speed => speed,
                Op::Energy => p / (GAMMA - 1.0) + 0.5 * rho * speed * speed,
                Op::Entropy => p / rho.powf(GAMMA - 1.0),
                Op::SoundSpeed => (GAMMA * p / rho).sqrt(),
                // momenta are interpolated across the level boundary, not velocities: the inner cells are exact
                Op::DivergenceOfVelocity if [i, j, k].iter().any(|n| *n == 0 || *n == 15) => found,
                Op::DivergenceOfVelocity => 0.25 + 0.125,
                Op::Level => 1.0,
                Op::ScaleFactor => 0.3,
                Op::PositionX => x[0],
                Op::PositionY => x[1],
                Op::PositionZ => x[2],
                Op::CellWidth => 0.5,
                other => unreachable!("{other:?}"),
            };
            // a few roundings; the divergence takes a difference of velocities of order 10
            let tolerance = 1e-12 * expected.abs().max(1.0);
            assert!((found - expected).abs() < tolerance, "{op:?} at {i} {j} {k}: {found} {expected}");
        }
    }
}
