"""Writes initial conditions of one's own: dark matter in a plane wave along x, in an Einstein–de Sitter universe.

    pip install h5py numpy
    python plane_wave.py             # plane_wave.h5: 256 × 64 × 64 particles
    comove run plane_wave.rhai

The format is described in docs/snapshot-format.md. Particles start where Zel'dovich (1970, A&A 5, 84) has them, which is
exact until the caustic at z = 1.
"""

import argparse

import h5py
import numpy as np

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--cells", type=int, default=256, help="particles along the wave, a quarter of them across")
parser.add_argument("--file", default="plane_wave.h5", help="where to write them")
options = parser.parse_args()

A, A_CAUSTIC, BOX = 1 / 50, 1 / 2, 64.0  # scale factors; Mpc/h
nx, ny, nz = options.cells, options.cells // 4, options.cells // 4

q = np.arange(nx) / nx * BOX  # lower corners of the cells, where displacements are zero
displacement = -A / A_CAUSTIC * BOX / (2 * np.pi) * np.sin(2 * np.pi * (q / BOX - 0.5))
velocity = displacement * np.sqrt(A)  # a v_pec/(100 km/s): the displacement grows as a, and H = H0 a^(-3/2)

with h5py.File(options.file, "w") as file:
    file.attrs.update(format="comove-ic", a=A, box_mpc_h=BOX, h=0.7, omega_m=1.0)
    for axis in "xyz":
        for name, values in [("displacement", displacement), ("velocity", velocity)]:
            along_x = values if axis == "x" else np.zeros(nx)
            file[f"{name}_{axis}"] = np.broadcast_to(along_x, (nz, ny, nx))
print(f"{options.file}: {nx * ny * nz} particles")
