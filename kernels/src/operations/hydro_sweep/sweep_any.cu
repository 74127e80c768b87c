// Sweeps along the axes in any order, redos, and both as the CPU computes them, to the last bit.
#include "operations/hydro_sweep/sweep.cuh"

SWEEP(hydro_sweep_quarter_f32, RelaxingTvd, Fast, float, 8, 8, false, -1, 256, 2)
SWEEP(hydro_sweep_quarter_f64, RelaxingTvd, Fast, double, 8, 8, false, -1, 256, 1)
SWEEP(hydro_redo_group_xyz_f32, RelaxingTvd, Fast, float, 16, 16, true, 12, 512, 1)
SWEEP(hydro_redo_group_zyx_f32, RelaxingTvd, Fast, float, 16, 16, true, 210, 512, 1)
SWEEP(hydro_redo_quarter_f32, RelaxingTvd, Fast, float, 8, 8, true, -1, 256, 2)
SWEEP(hydro_redo_quarter_f64, RelaxingTvd, Fast, double, 8, 8, true, -1, 256, 1)
SWEEP(hydro_sweep_exact_f32, RelaxingTvd, Exact, float, 8, 8, false, -1, 256, 2)
SWEEP(hydro_sweep_exact_f64, RelaxingTvd, Exact, double, 8, 8, false, -1, 256, 1)
SWEEP(hydro_redo_exact_f32, RelaxingTvd, Exact, float, 8, 8, true, -1, 256, 1)
SWEEP(hydro_redo_exact_f64, RelaxingTvd, Exact, double, 8, 8, true, -1, 256, 1)
