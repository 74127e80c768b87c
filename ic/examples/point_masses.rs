//! Prints how the forces between two point masses on refined meshes compare with those of the root level:
//! `cargo run --release -p comove-ic --example point_masses -- [LEVELS] [PAIRS] [FLAG_BUFFER]`.
//!
//! One table for each solver: the default, the paper's, and both without the pseudo mass sheet.

use comove_ic::problems::PointMasses;
use comove_sim::parameters::GroupSolver;
use comove_sim::{Precision, RunParameters};
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let levels = arguments.next().map_or(Ok(6), |text| text.parse())?;
    let pairs = arguments.next().map_or(Ok(200), |text| text.parse())?;
    let flag_buffer = arguments.next().map_or(Ok(0), |text| text.parse())?;
    let test = PointMasses { pairs, ..PointMasses::default() };
    let sine = RunParameters { precision: Precision::Double, flag_buffer, ..RunParameters::default() };
    let sor = RunParameters { group_solver: GroupSolver::Sor, sibling_steps: [1, 1, 4], ..sine.clone() };
    for (name, parameters) in [("sine, steps 4 2 2", sine), ("sor, steps 1 1 4", sor)] {
        for mass_sheet in [true, false] {
            let started = Instant::now();
            let table = test.force_test(levels, &RunParameters { mass_sheet, ..parameters.clone() })?;
            let seconds = started.elapsed().as_secs_f64();
            println!("{levels} levels, {pairs} pairs, {name}, mass sheet {mass_sheet}: {seconds:.1} s");
            for bin in &table.bins {
                println!("{:8.3} cells  mean {:.4}  rms {:.4}  ({})", bin.separation, bin.mean, bin.rms, bin.count);
            }
        }
    }
    Ok(())
}
