// PLM.
#include "operations/hydro_sweep/sweep.cuh"

FAST_SWEEPS(plm, Plm)
EXACT_SWEEPS(plm, Plm)
