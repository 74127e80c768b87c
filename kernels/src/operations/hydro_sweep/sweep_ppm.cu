// Sweeps and redos of one scheme: along x, y, z and z, y, x, which steps take by default; along the axes in any order; and as
// the CPU computes them, to the last bit.
#include "operations/hydro_sweep/sweep.cuh"

SWEEP(hydro_sweep_ppm_group_xyz_f32, Ppm, Fast, float, 16, 16, false, 12, 512, 1)
SWEEP(hydro_sweep_ppm_group_zyx_f32, Ppm, Fast, float, 16, 16, false, 210, 512, 1)
SWEEP(hydro_sweep_ppm_quarter_xyz_f32, Ppm, Fast, float, 8, 8, false, 12, 256, 2)
SWEEP(hydro_sweep_ppm_quarter_zyx_f32, Ppm, Fast, float, 8, 8, false, 210, 256, 2)
SWEEP(hydro_sweep_ppm_quarter_xyz_f64, Ppm, Fast, double, 8, 8, false, 12, 256, 1)
SWEEP(hydro_sweep_ppm_quarter_zyx_f64, Ppm, Fast, double, 8, 8, false, 210, 256, 1)
SWEEP(hydro_sweep_ppm_quarter_f32, Ppm, Fast, float, 8, 8, false, -1, 256, 2)
SWEEP(hydro_sweep_ppm_quarter_f64, Ppm, Fast, double, 8, 8, false, -1, 256, 1)
SWEEP(hydro_redo_ppm_group_xyz_f32, Ppm, Fast, float, 16, 16, true, 12, 512, 1)
SWEEP(hydro_redo_ppm_group_zyx_f32, Ppm, Fast, float, 16, 16, true, 210, 512, 1)
SWEEP(hydro_redo_ppm_quarter_f32, Ppm, Fast, float, 8, 8, true, -1, 256, 2)
SWEEP(hydro_redo_ppm_quarter_f64, Ppm, Fast, double, 8, 8, true, -1, 256, 1)
SWEEP(hydro_sweep_ppm_exact_f32, Ppm, Exact, float, 8, 8, false, -1, 256, 2)
SWEEP(hydro_sweep_ppm_exact_f64, Ppm, Exact, double, 8, 8, false, -1, 256, 1)
SWEEP(hydro_redo_ppm_exact_f32, Ppm, Exact, float, 8, 8, true, -1, 256, 1)
SWEEP(hydro_redo_ppm_exact_f64, Ppm, Exact, double, 8, 8, true, -1, 256, 1)
