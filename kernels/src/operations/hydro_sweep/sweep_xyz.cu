// The sweeps along x, y, z, one of the two that steps take by default.
#include "operations/hydro_sweep/sweep.cuh"

SWEEP(hydro_sweep_group_xyz_f32, RelaxingTvd, Fast, float, 16, 16, false, 12, 512, 1)
SWEEP(hydro_sweep_quarter_xyz_f32, RelaxingTvd, Fast, float, 8, 8, false, 12, 256, 2)
SWEEP(hydro_sweep_quarter_xyz_f64, RelaxingTvd, Fast, double, 8, 8, false, 12, 256, 1)
