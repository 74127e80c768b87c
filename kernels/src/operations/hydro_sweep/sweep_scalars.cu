// Sweeps of gas with passive scalars.
#include "operations/scalars/sweep.cuh"

SWEEP_SCALARS(hydro_sweep_scalars_group_xyz_f32, RelaxingTvd, Fast, float, 16, 16, false, 12, 512, 1)
SWEEP_SCALARS(hydro_sweep_scalars_group_zyx_f32, RelaxingTvd, Fast, float, 16, 16, false, 210, 512, 1)
SWEEP_SCALARS(hydro_sweep_scalars_f32, RelaxingTvd, Fast, float, 8, 8, false, -1, 256, 2)
SWEEP_SCALARS(hydro_sweep_scalars_f64, RelaxingTvd, Fast, double, 8, 8, false, -1, 256, 1)
SWEEP_SCALARS(hydro_redo_scalars_f32, RelaxingTvd, Fast, float, 8, 8, true, -1, 256, 1)
SWEEP_SCALARS(hydro_redo_scalars_f64, RelaxingTvd, Fast, double, 8, 8, true, -1, 256, 1)
SWEEP_SCALARS(hydro_sweep_scalars_exact_f32, RelaxingTvd, Exact, float, 8, 8, false, -1, 256, 1)
SWEEP_SCALARS(hydro_sweep_scalars_exact_f64, RelaxingTvd, Exact, double, 8, 8, false, -1, 256, 1)
SWEEP_SCALARS(hydro_redo_scalars_exact_f32, RelaxingTvd, Exact, float, 8, 8, true, -1, 256, 1)
SWEEP_SCALARS(hydro_redo_scalars_exact_f64, RelaxingTvd, Exact, double, 8, 8, true, -1, 256, 1)
SWEEP_SCALARS(hydro_sweep_scalars_hll_f32, Hll, Exact, float, 8, 8, false, -1, 256, 1)
SWEEP_SCALARS(hydro_sweep_scalars_hll_f64, Hll, Exact, double, 8, 8, false, -1, 256, 1)
SWEEP_SCALARS(hydro_redo_scalars_hll_f32, Hll, Exact, float, 8, 8, true, -1, 256, 1)
SWEEP_SCALARS(hydro_redo_scalars_hll_f64, Hll, Exact, double, 8, 8, true, -1, 256, 1)
