"""Snapshot files: yt datasets, and particles as a table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas as pd

from .errors import CampaignError
from .tables import unit_of

#: Unit of code velocities a v_pec.
VELOCITY_KM_S = 100.0
MSUN_G = 1.98840987e33


def yt_dataset(path: Path) -> Any:
    try:
        import yt
    except ImportError as error:
        raise ImportError("yt is not installed: pip install 'comove[yt]'") from error
    return yt.load(str(path))  # type: ignore[attr-defined]


def particles(path: Path) -> pd.DataFrame:
    with h5py.File(path, "r") as file:
        if "Particle/ParPosX" not in file:
            raise CampaignError(f"{path}: the snapshot has no dark matter")
        head = dict(json.loads(file["Comove/header"][:].tobytes())["snapshot"])
        names = {"x": "ParPosX", "y": "ParPosY", "z": "ParPosZ", "vx": "ParVelX", "vy": "ParVelY", "vz": "ParVelZ"}
        columns = {name: file["Particle"][dataset][:] for name, dataset in names.items()}
        mass = file["Particle/ParMass"][:]
        # without the mark of particles that refinement does not follow
        identity = pd.Index(file["Comove/particle_id"][:] & ~np.uint64(1 << 59), name="id")
        grams = float(file["Info/InputPara"]["Unit_M"])
    cosmology = head.get("cosmology")
    if cosmology is None:
        table = pd.DataFrame({**columns, "mass": mass}, index=identity)
        table.attrs["units"] = {column: "code units" for column in table.columns}
        table.attrs["time"] = head["time"]
        return table.sort_index()
    velocity, msun_h = VELOCITY_KM_S / head["a"], grams / MSUN_G * cosmology["h"]
    values = {f"{axis}_mpc_h": columns[axis] for axis in "xyz"}
    values.update({f"v{axis}_km_s": columns[f"v{axis}"].astype(np.float64) * velocity for axis in "xyz"})
    table = pd.DataFrame({**values, "mass_msun_h": mass * msun_h}, index=identity).sort_index()
    table.attrs["units"] = {column: unit_of(column) for column in table.columns}
    table.attrs["redshift"] = 1 / head["a"] - 1
    table.attrs["box_mpc_h"] = head["box_length"]
    return table
