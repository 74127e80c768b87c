// PPM.
#include "operations/hydro_sweep/sweep.cuh"

FAST_SWEEPS(ppm, Ppm)
EXACT_SWEEPS(ppm, Ppm)
