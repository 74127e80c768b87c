//! Prints how the forces between two point masses on refined meshes compare with those of the root level:
//! `cargo run --release -p comove-ic --example point_masses -- [LEVELS] [PAIRS] [FLAG_BUFFER]`.
//!
//! One table for each way to solve: the default, with a second pass of the mass sheets, without sheets, and without any
//! correction of what the coarser level gives.

use comove_ic::problems::PointMasses;
use comove_sim::{Precision, RunParameters};
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let levels = arguments.next().map_or(Ok(6), |text| text.parse())?;
    let pairs = arguments.next().map_or(Ok(200), |text| text.parse())?;
    let flag_buffer = arguments.next().map_or(Ok(0), |text| text.parse())?;
    let test = PointMasses { pairs, ..PointMasses::default() };
    let default = RunParameters {
        precision: Precision::Double,
        flag_buffer,
        poisson_cycles: Some(4),
        ..RunParameters::default()
    };
    let of = |poisson_cycles, sheet_passes| RunParameters { poisson_cycles, sheet_passes, ..default.clone() };
    for (name, parameters) in [
        ("default", &default),
        ("two passes of the sheets", &of(default.poisson_cycles, 2)),
        ("no mass sheet", &of(default.poisson_cycles, 0)),
        ("no correction", &of(Some(0), 0)),
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
