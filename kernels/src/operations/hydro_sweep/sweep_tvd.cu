// Relaxing TVD.
#include "operations/hydro_sweep/sweep.cuh"

FAST_SWEEPS(tvd, RelaxingTvd)
EXACT_SWEEPS(tvd, RelaxingTvd)
