//! Streams that meet at Mach 100 are followed through their crossing by the scalar and the first-order redo alone, and
//! stay on their adiabat until they cross.

use crate::converging;

use comove_sim::Precision;
use comove_sim::kernels::Scheme;
use converging::{Case, run};

#[test]
fn mach_100_needs_neither_floors_nor_retries_and_conserves() {
    use Scheme::{Ppm, RelaxingTvd};
    let cases = [
        (RelaxingTvd, Precision::Single, 1e-6, 1e-3),
        (RelaxingTvd, Precision::Double, 1e-13, 1e-3),
        (Ppm, Precision::Single, 1e-6, 1e-2),
    ];
    for (scheme, precision, round_off, off_adiabat) in cases {
        let case = Case { scheme, mach: 100.0, cells: 32, max_level: 0, precision, scalar: true, ladder: Some(2) };
        let outcome = run(case).expect("the run ends");
        println!("{scheme:?}, {precision:?}: {outcome:?}");
        assert_eq!((outcome.floored, outcome.retries), (0, 0), "{precision:?}");
        // relaxing TVD: none measured; 29% where a cell's own energies decide. PPM: 0.85% here, none on 64³ cells
        assert!(outcome.off_adiabat < off_adiabat, "{precision:?}: {}", outcome.off_adiabat);
        // a few roundings of each of some tens of steps
        assert!(outcome.drift.iter().all(|drift| *drift < round_off), "{precision:?}: {:?}", outcome.drift);
    }
}
