"""The notebook of examples/, executed at its smallest size."""

import csv
import json
import os
import pathlib
import shutil

import pytest
from conftest import HERE

import comove

EXAMPLES = HERE.parent / "examples"
NOTEBOOK = EXAMPLES / "two_resolutions.ipynb"
SMALLEST = {"ROOT = 32": "ROOT = 16", "LEVELS = 2": "LEVELS = 0"}


def test_the_stored_notebook_has_no_outputs():
    cells = [cell for cell in json.loads(NOTEBOOK.read_text())["cells"] if cell["cell_type"] == "code"]
    assert len(cells) > 5
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells)


def test_the_notebook_shows_the_numbers_of_the_files(tmp_path, monkeypatch):
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    for file in EXAMPLES.glob("*"):
        shutil.copy(file, tmp_path)
    text = NOTEBOOK.read_text()
    for default, smallest in SMALLEST.items():
        assert text.count(default) == 2 if default == "ROOT = 32" else text.count(default) == 1
        text = text.replace(default, smallest)
    notebook = nbformat.reads(text, as_version=4)
    shown = """import json
points = {f"{seed}-{cells}": spectrum(run, z=0) for (seed, cells), run in runs.items()}
curves = {key: [list(part) for part in zip(*points.items())] for key, points in points.items()}
print(json.dumps(curves))"""
    notebook.cells.append(nbformat.v4.new_code_cell(shown))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(HERE.parent), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setenv("MPLBACKEND", "agg")
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()

    for figure in ("power_spectrum.pdf", "mass_function.pdf"):
        assert (tmp_path / figure).read_bytes().startswith(b"%PDF")
    campaign = comove.Campaign(tmp_path / "two_resolutions")
    curves = json.loads(notebook.cells[-1].outputs[0]["text"])
    assert len(curves) == 4
    for key, (k, power) in curves.items():
        seed, cells = key.split("-")
        stage = campaign[f"Power spectrum, seed {seed}, {cells}³"]
        rows = list(csv.DictReader((pathlib.Path(stage.folder) / "power_spectrum_z0.csv").open()))
        kept = [row for row in rows if float(row["k_h_mpc"]) < 0.5 * float(row["k_nyquist_h_mpc"])]
        assert len(k) > 2 and k == [float(row["k_h_mpc"]) for row in kept]
        assert power == [float(row["power_mpc3_h3"]) for row in kept]
        # on the largest scales the growth is linear
        assert float(rows[0]["modes"]) > 0
