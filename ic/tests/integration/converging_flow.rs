//! Streams that meet at Mach 100 are followed through their crossing by the scalar and the first-order redo alone, and
//! stay on their adiabat until they cross.

use crate::converging;

use comove_sim::Precision;
use converging::{Case, run};

#[test]
fn mach_100_needs_neither_floors_nor_retries_and_conserves() {
    for (precision, round_off) in [(Precision::Single, 1e-6), (Precision::Double, 1e-13)] {
        let case = Case { mach: 100.0, cells: 32, max_level: 0, precision, scalar: true, ladder: Some(2) };
        let outcome = run(case).expect("the run ends");
        println!("{precision:?}: {outcome:?}");
        assert_eq!((outcome.floored, outcome.retries), (0, 0), "{precision:?}");
        // none measured; 29% where a cell's own energies decide
        assert!(outcome.off_adiabat < 1e-3, "{precision:?}: {}", outcome.off_adiabat);
        // a few roundings of each of some tens of steps
        assert!(outcome.drift.iter().all(|drift| *drift < round_off), "{precision:?}: {:?}", outcome.drift);
    }
}
