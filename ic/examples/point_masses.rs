//! Prints how the forces between two point masses on refined meshes compare with those of the root level:
//! `cargo run --release -p comove-ic --example point_masses -- [LEVELS] [PAIRS] [FLAG_BUFFER]`.
//!
//! One table for each way to solve: the default, the paper's, each also without the pseudo mass sheet, and without any
//! correction of what the coarser level gives.

use comove_ic::problems::PointMasses;
use comove_sim::GroupSolver;
use comove_sim::{Precision, RunParameters};
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let levels = arguments.next().map_or(Ok(6), |text| text.parse())?;
    let pairs = arguments.next().map_or(Ok(200), |text| text.parse())?;
    let flag_buffer = arguments.next().map_or(Ok(0), |text| text.parse())?;
    let test = PointMasses { pairs, ..PointMasses::default() };
    let default = RunParameters { precision: Precision::Double, flag_buffer, ..RunParameters::default() };
    let paper = RunParameters { group_solver: GroupSolver::Sor, sibling_steps: [1, 1, 4], ..default.clone() };
    let without_sheet = |parameters: &RunParameters| RunParameters { mass_sheet: false, ..parameters.clone() };
    let uncorrected = RunParameters { sibling_steps: [0; 3], ..without_sheet(&default) };
    for (name, parameters) in [
        ("default", &default),
        ("default, no mass sheet", &without_sheet(&default)),
        ("paper", &paper),
        ("paper, no mass sheet", &without_sheet(&paper)),
        ("no correction", &uncorrected),
    ] {
        let started = Instant::now();
        let table = test.force_test(levels, parameters, || false)?.expect("nobody stops it");
        let seconds = started.elapsed().as_secs_f64();
        println!("{levels} levels, {pairs} pairs, {name}: {seconds:.1} s");
        for bin in &table.bins {
            let (pull, felt) = (bin.to_root, bin.felt_to_root);
            println!(
                "{:8.3} cells  mean {:.4}  rms {:.4}  with own pull: mean {:.4}  rms {:.4}  ({})",
                bin.separation, pull.mean, pull.rms, felt.mean, felt.rms, bin.count
            );
        }
    }
    Ok(())
}
