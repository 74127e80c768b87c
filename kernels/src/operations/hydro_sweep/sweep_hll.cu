// The first-order HLL scheme, as the CPU computes it, to the last bit.
#include "operations/hydro_sweep/sweep.cuh"

SWEEP(hydro_sweep_hll_exact_f32, Hll, Exact, float, 8, 8, false, -1, 256, 2)
SWEEP(hydro_sweep_hll_exact_f64, Hll, Exact, double, 8, 8, false, -1, 256, 1)
SWEEP(hydro_redo_hll_exact_f32, Hll, Exact, float, 8, 8, true, -1, 256, 1)
SWEEP(hydro_redo_hll_exact_f64, Hll, Exact, double, 8, 8, true, -1, 256, 1)
