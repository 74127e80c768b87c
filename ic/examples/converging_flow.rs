//! What converging flows at Mach 10, 50 and 100 need of the robustness ladder, with the entropy scalar and without, as a
//! table: `cargo run --release -p comove-ic --example converging_flow -- 64 1 2` for 64³ root cells, one refined level and
//! two retries, with the default scheme, or with relaxing TVD if `relaxing_tvd` stands behind them.

#[path = "../tests/integration/converging/mod.rs"]
mod converging;

use comove_sim::kernels::Scheme;
use comove_sim::{Precision, SimError};
use converging::{Case, run};

fn main() -> Result<(), SimError> {
    let (names, numbers): (Vec<_>, Vec<_>) = std::env::args().skip(1).partition(|argument| argument == "relaxing_tvd");
    let scheme = if names.is_empty() { Scheme::default() } else { Scheme::RelaxingTvd };
    let mut arguments = numbers.iter().map(|n| n.parse::<usize>().expect("root cells, levels, retries"));
    let cells = arguments.next().unwrap_or(64);
    let max_level = arguments.next().unwrap_or(1) as u8;
    let retries = Some(arguments.next().unwrap_or(2) as u32);
    println!("Converging flow, {cells}³ root cells, {max_level} refined levels, to three crossing times");
    println!(
        "| Mach | precision | scalar | ladder | E ≤ E_kin, most | mean | redone | retries | floored | in sweeps | L1 ρ | off adiabat |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|");
    for mach in [10.0, 50.0, 100.0] {
        for precision in [Precision::Single, Precision::Double] {
            for (scalar, ladder) in [(false, None), (true, None), (true, retries)] {
                let outcome = run(Case { scheme, mach, cells, max_level, precision, scalar, ladder })?;
                let updates = outcome.cell_updates as f64;
                println!(
                    "| {mach} | {} | {} | {} | {:.3}% | {:.3}% | {:.2e} | {} | {:.2e} | {:.2e} | {:.2e} | {:.2}% |",
                    format!("{precision:?}").to_lowercase(),
                    if scalar { "on" } else { "off" },
                    if ladder.is_some() { "on" } else { "off" },
                    100.0 * outcome.negative[0],
                    100.0 * outcome.negative[1],
                    outcome.redone as f64 / updates,
                    outcome.retries,
                    outcome.floored as f64 / updates,
                    outcome.floored_in_sweeps as f64 / updates,
                    outcome.density_error,
                    100.0 * outcome.off_adiabat,
                );
            }
        }
    }
    Ok(())
}
