"""Writes folders of HDF5 files as MUSIC does for Enzo, of the universe of gadget_files.

Each file has a dataset of its name [1][z][y][x]. The unit of velocities is 122.475 km/s · box √(omega_m (1 + z)), box in Mpc/h.
"""

import generic_files as fields
import h5py
import numpy as np
from gadget_files import A, BOX, H, OMEGA_L, OMEGA_M
from generic_files import SHARE

KM_S = 122.475 * BOX * np.sqrt(OMEGA_M / A)


def write_file(path, values, header=None, component=True):
    """Writes values [z][y][x]."""
    cells = np.array(values.shape[::-1], "i4")
    stated = {"a_start": A, "dx": BOX / H / cells[0], "h0": H, "omega_b": 0.0, "omega_m": OMEGA_M, "omega_v": OMEGA_L,
              "vfact": 1.0} | (header or {})
    with h5py.File(path, "w") as file:
        file.attrs.update({name: np.float32(value) for name, value in stated.items() if value is not None})
        file.attrs.update(Dimensions=cells, Offset=np.zeros(3, "i4"))
        file[path.name] = values[np.newaxis] if component else values
        file[path.name].attrs.update(Component_Rank=1, Component_Size=values.size, Dimensions=cells, Rank=3, TopGridDims=cells,
                                     TopGridStart=np.zeros(3, "i4"), TopGridEnd=cells)


def write(folder, n, gas=False, dtype="f8", **how):
    """Returns positions and velocities of particles, x fastest, and density contrast [z][y][x]."""
    folder.mkdir()
    start = fields.centres((n, n, n))
    values = {name: value.reshape(n, n, n).transpose() for name, value in fields.of_cells(start).items()}
    if gas:
        how["header"] = {"omega_b": SHARE * OMEGA_M} | how.get("header", {})
    for axis in "xyz":
        speed = values[f"v{axis}"] * BOX / KM_S
        write_file(folder / f"ParticleDisplacements_{axis}", values[f"d{axis}"].astype(dtype), **how)
        write_file(folder / f"ParticleVelocities_{axis}", speed.astype(dtype), **how)
        if gas:
            write_file(folder / f"GridVelocities_{axis}", speed.astype(dtype), **how)
    if gas:
        write_file(folder / "GridDensity", (SHARE * (1 + values["delta"])).astype(dtype), **how)
    x_fastest = np.arange(n**3).reshape(n, n, n).transpose().ravel()
    position, velocity = fields.known(start)
    return position[x_fastest], velocity[x_fastest], values["delta"]
