"""Initial conditions written by a Python program, as recipes/own_ic shows: to their exact solution.

COMOVE_PROGRAM is the program, as scripts/test sets it.
"""

import csv
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "recipes" / "own_ic"
PROGRAM = os.environ.get("COMOVE_PROGRAM")


@pytest.mark.skipif(not PROGRAM, reason="COMOVE_PROGRAM is not set")
def test_plane_wave(tmp_path):
    file = tmp_path / "wave.h5"
    subprocess.run([sys.executable, FOLDER / "plane_wave.py", "--cells", "64", "--file", file], check=True)
    said = subprocess.run(
        [PROGRAM, "run", FOLDER / "plane_wave.rhai", "--dir", tmp_path / "campaign", "-p", "cells=64", "-p", f"file={file}"],
        capture_output=True, text=True,
    )
    assert said.returncode == 0, said.stderr
    tables = {path.stem: path for path in (tmp_path / "campaign").glob("measure-phase_space-*/*.csv")}
    before = [path for name, path in tables.items() if "1.5" in name]
    assert len(tables) == 3 and len(before) == 1, tables
    rows = list(csv.DictReader(before[0].open()))
    assert len(rows) == 64
    # Zel'dovich's solution at z = 1.5: a = 0.4, four fifths of the way to the caustic
    wave = 0.8 * 64 / (2 * math.pi)
    for row in rows:
        q = float(row["id"]) % 64
        moved = -wave * math.sin(2 * math.pi * (q / 64 - 0.5))
        away = (float(row["x_mpc_h"]) - q - moved + 32) % 64 - 32
        speed = 100 * moved * math.sqrt(0.4) / 0.4
        assert abs(away) < 0.03 * wave and abs(float(row["v_km_s"]) - speed) < 0.03 * 158 * wave
    assert list((tmp_path / "campaign").glob("measure-phase_space-*/*.png"))
