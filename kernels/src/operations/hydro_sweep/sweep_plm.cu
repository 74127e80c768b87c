// Sweeps and redos of one scheme: along x, y, z and z, y, x, which steps take by default; along the axes in any order; and as
// the CPU computes them, to the last bit.
#include "operations/hydro_sweep/sweep.cuh"

SWEEP(hydro_sweep_plm_group_xyz_f32, Plm, Fast, float, 16, 16, false, 12, 512, 1)
SWEEP(hydro_sweep_plm_group_zyx_f32, Plm, Fast, float, 16, 16, false, 210, 512, 1)
SWEEP(hydro_sweep_plm_quarter_xyz_f32, Plm, Fast, float, 8, 8, false, 12, 256, 2)
SWEEP(hydro_sweep_plm_quarter_zyx_f32, Plm, Fast, float, 8, 8, false, 210, 256, 2)
SWEEP(hydro_sweep_plm_quarter_xyz_f64, Plm, Fast, double, 8, 8, false, 12, 256, 1)
SWEEP(hydro_sweep_plm_quarter_zyx_f64, Plm, Fast, double, 8, 8, false, 210, 256, 1)
SWEEP(hydro_sweep_plm_quarter_f32, Plm, Fast, float, 8, 8, false, -1, 256, 2)
SWEEP(hydro_sweep_plm_quarter_f64, Plm, Fast, double, 8, 8, false, -1, 256, 1)
SWEEP(hydro_redo_plm_group_xyz_f32, Plm, Fast, float, 16, 16, true, 12, 512, 1)
SWEEP(hydro_redo_plm_group_zyx_f32, Plm, Fast, float, 16, 16, true, 210, 512, 1)
SWEEP(hydro_redo_plm_quarter_f32, Plm, Fast, float, 8, 8, true, -1, 256, 2)
SWEEP(hydro_redo_plm_quarter_f64, Plm, Fast, double, 8, 8, true, -1, 256, 1)
SWEEP(hydro_sweep_plm_exact_f32, Plm, Exact, float, 8, 8, false, -1, 256, 2)
SWEEP(hydro_sweep_plm_exact_f64, Plm, Exact, double, 8, 8, false, -1, 256, 1)
SWEEP(hydro_redo_plm_exact_f32, Plm, Exact, float, 8, 8, true, -1, 256, 1)
SWEEP(hydro_redo_plm_exact_f64, Plm, Exact, double, 8, 8, true, -1, 256, 1)
