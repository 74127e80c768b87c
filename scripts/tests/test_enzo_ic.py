"""Initial conditions for Enzo, written by enzo_files.py: read back, run, and refused where they are wrong."""

import subprocess

import enzo_files as files
import gadget_files as universe
import h5py
import numpy as np
import pytest
from test_gadget_ic import MPIEXEC, N, PROGRAM, assert_refused, done, pytestmark, run  # noqa: F401
from test_generic_ic import ACCURACY
from test_grafic_ic import assert_particles, read_back


@pytest.mark.parametrize(("how", "options"), [({}, ""), ({"dtype": "f4", "component": False}, ', format: "enzo"')])
def test_a_mesh_comes_back(tmp_path, how, options):
    position, velocity, _ = files.write(tmp_path / "ics", N, **how)
    said = done(tmp_path / "run", tmp_path / "ics", options)
    assert "times those of" not in said, said
    read = read_back(tmp_path / "run")
    assert np.array_equal(read["id"], np.arange(N**3))
    assert_particles(read, position, velocity, ACCURACY)


def test_gas_comes_back(tmp_path):
    position, velocity, delta = files.write(tmp_path / "ics", 2 * N, gas=True)
    done(tmp_path / "run", tmp_path / "ics", f", cells: {2 * N}", root=2 * N)
    read = read_back(tmp_path / "run")
    assert_particles(read, position, velocity, ACCURACY)
    density = files.SHARE * (1 + delta)
    assert np.allclose(read["density"], density, rtol=1e-6, atol=0)
    for i, axis in enumerate("xyz"):
        momentum = density.ravel() * velocity[:, i] * universe.A / 100
        assert np.allclose(read[f"momentum_{axis}"].ravel(), momentum, rtol=1e-5, atol=1e-9)


@pytest.mark.skipif(not MPIEXEC, reason="no mpiexec")
def test_two_processes_have_the_bits_of_one(tmp_path):
    files.write(tmp_path / "ics", 2 * N, gas=True)
    options = f", cells: {2 * N}"
    done(tmp_path / "one", tmp_path / "ics", options, root=2 * N)
    done(tmp_path / "two", tmp_path / "ics", options, root=2 * N, launcher=[MPIEXEC, "-n", "2"])
    first, second = read_back(tmp_path / "one"), read_back(tmp_path / "two")
    assert all(np.array_equal(first[name], second[name]) for name in first)


def test_folders_are_examined_without_a_recipe(tmp_path):
    files.write(tmp_path / "ics", N)
    said = subprocess.run([PROGRAM, "inspect", tmp_path / "ics", "--cosmology", "sigma8=0.9,n_s=1"], capture_output=True, text=True)
    text = said.stdout + said.stderr
    assert said.returncode == 0 and "enzo" in text and "velocity" in text, text


def enzo(edit=None, **how):
    def write(folder):
        files.write(folder, N, **how)
        if edit:
            edit(folder)

    return write


def stated(**header):
    return enzo(header=header)


def renamed(name, to):
    return enzo(lambda folder: (folder / name).rename(folder / to))


def put(name, at, value):
    def edit(folder):
        with h5py.File(folder / name, "r+") as file:
            file[name][at] = value

    return enzo(edit)


def cut(folder):
    files.write(folder, N)
    whole = (folder / "ParticleVelocities_y").read_bytes()
    (folder / "ParticleVelocities_y").write_bytes(whole[: len(whole) // 2])


MISTAKES = {
    "a": (stated(a_start=0.05), {}, ['"a_start" is 0.05', "0.04"]),
    "h": (stated(h0=0.72), {}, ['"h0" is 0.72', "h = 0.7"]),
    "omega": (stated(omega_m=0.31), {}, ['"omega_m" is 0.31', "omega_m = 0.3"]),
    "lambda": (stated(omega_v=0.6), {}, ['"omega_v" is 0.6', "omega_lambda = 0.7"]),
    "box": (stated(dx=universe.BOX / N), {}, ['"dx" is 1.25', "box_mpc_h/h/cells"]),
    "baryons": (enzo(gas=True, header={"omega_b": 0.05}), {"options": f", cells: {N}"}, ['"omega_b" is 0.05', "0.045"]),
    "component missing": (enzo(lambda folder: (folder / "ParticleDisplacements_z").unlink()), {}, ["ParticleDisplacements_z", "No such file"]),
    "foreign file": (enzo(lambda folder: (folder / "ParticleVelocities_x").write_bytes(bytes(200))), {}, ["ParticleVelocities_x"]),
    "another name": (enzo(lambda folder: (folder / "ParticleVelocities_x").write_bytes((folder / "ParticleVelocities_y").read_bytes())),
                     {}, ['"ParticleVelocities_x" is missing', "[16, 16, 16]"]),
    "another mesh": (enzo(lambda folder: files.write_file(folder / "ParticleVelocities_z", np.zeros((8, 16, 16)))), {},
                     ['"ParticleVelocities_z" has shape [1, 8, 16, 16]', "[1, 16, 16, 16]"]),
    "nested": (renamed("ParticleVelocities_x", "ParticleVelocities_x.0"), {}, ["nested grids are not read", "grafic2"]),
    "positions": (renamed("ParticleDisplacements_x", "ParticlePositions"), {}, ["positions of particles are not read"]),
    "three components": (renamed("ParticleVelocities_x", "ParticleVelocities"), {}, ["three components in one file"]),
    "not finite": (put("ParticleVelocities_z", (0, 3, 2, 1), np.nan), {},
                   ['"ParticleVelocities_z" has NaN in cell [1, 2, 3]', "expected less than 1e30"]),
    "large": (put("ParticleDisplacements_x", (0, 3, 2, 1), -0.7), {}, ['"ParticleDisplacements_x" has -7e-1 in cell [1, 2, 3]']),
    "cells": (enzo(gas=True), {"options": ", cells: 32", "root": 32}, ["[16, 16, 16] cells", "[32, 32, 32]"]),
    "truncated": (cut, {}, ["ParticleVelocities_y", "truncated"]),
    "format": (enzo(), {"options": ', format: "grafic"'}, ["format = enzo", "grafic"]),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_named(tmp_path, mistake):
    write, values, expected = MISTAKES[mistake]
    write(tmp_path / "ics")
    said = run(tmp_path / "run", tmp_path / "ics", **values)
    assert_refused(said, [*expected, "ics"])
