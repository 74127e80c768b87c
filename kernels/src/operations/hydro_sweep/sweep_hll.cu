// The first-order HLL scheme, for tests: as the CPU computes it only.
#include "operations/hydro_sweep/sweep.cuh"

EXACT_SWEEPS(hll, Hll)
