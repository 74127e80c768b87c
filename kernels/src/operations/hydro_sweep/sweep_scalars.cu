// Sweeps of gas with passive scalars, by every scheme.
#include "operations/scalars/sweep.cuh"

#define EXACT_WITH_SCALARS(name, SCHEME)                                                                                     \
    SWEEP_SCALARS(hydro_sweep_##name##_scalars_exact_f32, SCHEME, Exact, float, 8, 8, false, -1, 256, 1)               \
    SWEEP_SCALARS(hydro_sweep_##name##_scalars_exact_f64, SCHEME, Exact, double, 8, 8, false, -1, 256, 1)              \
    SWEEP_SCALARS(hydro_redo_##name##_scalars_exact_f32, SCHEME, Exact, float, 8, 8, true, -1, 256, 1)                 \
    SWEEP_SCALARS(hydro_redo_##name##_scalars_exact_f64, SCHEME, Exact, double, 8, 8, true, -1, 256, 1)
#define FAST_WITH_SCALARS(name, SCHEME)                                                                                      \
    SWEEP_SCALARS(hydro_sweep_##name##_scalars_group_xyz_f32, SCHEME, Fast, float, 16, 16, false, 12, 512, 1)          \
    SWEEP_SCALARS(hydro_sweep_##name##_scalars_group_zyx_f32, SCHEME, Fast, float, 16, 16, false, 210, 512, 1)         \
    SWEEP_SCALARS(hydro_sweep_##name##_scalars_quarter_f32, SCHEME, Fast, float, 8, 8, false, -1, 256, 2)              \
    SWEEP_SCALARS(hydro_sweep_##name##_scalars_quarter_f64, SCHEME, Fast, double, 8, 8, false, -1, 256, 1)             \
    SWEEP_SCALARS(hydro_redo_##name##_scalars_quarter_f32, SCHEME, Fast, float, 8, 8, true, -1, 256, 1)                \
    SWEEP_SCALARS(hydro_redo_##name##_scalars_quarter_f64, SCHEME, Fast, double, 8, 8, true, -1, 256, 1)

FAST_WITH_SCALARS(ppm, Ppm)
EXACT_WITH_SCALARS(ppm, Ppm)
FAST_WITH_SCALARS(plm, Plm)
EXACT_WITH_SCALARS(plm, Plm)
FAST_WITH_SCALARS(tvd, RelaxingTvd)
EXACT_WITH_SCALARS(tvd, RelaxingTvd)
EXACT_WITH_SCALARS(hll, Hll)
