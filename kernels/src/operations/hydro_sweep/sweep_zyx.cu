// The sweeps along z, y, x, one of the two that steps take by default.
#include "operations/hydro_sweep/sweep.cuh"

SWEEP(hydro_sweep_group_zyx_f32, RelaxingTvd, Fast, float, 16, 16, false, 210, 512, 1)
SWEEP(hydro_sweep_quarter_zyx_f32, RelaxingTvd, Fast, float, 8, 8, false, 210, 256, 2)
SWEEP(hydro_sweep_quarter_zyx_f64, RelaxingTvd, Fast, double, 8, 8, false, 210, 256, 1)
