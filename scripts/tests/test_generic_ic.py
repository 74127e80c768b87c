"""Initial conditions of monofonIC's and MUSIC's format generic, written by generic_files.py: read back, run, and refused where
they are wrong."""

import subprocess

import gadget_files as universe
import generic_files as files
import h5py
import numpy as np
import pytest
from generic_files import write_monofonic, write_music
from test_gadget_ic import MPIEXEC, N, PROGRAM, assert_refused, done, moved, one, pytestmark, run, spectrum  # noqa: F401
from test_grafic_ic import assert_particles, read_back

ACCURACY = 1e-6 * universe.BOX / N
ZOOM = {"lengths": [(N, N, N), (N, N, N), (N, N, N // 2)], "offsets": [(0, 0, 0), (4, 4, 4), (4, 4, 5)]}


@pytest.mark.parametrize(("dtype", "options"), [("f8", ""), ("f4", ', format: "monofonic"')])
def test_a_mesh_of_monofonic_comes_back(tmp_path, dtype, options):
    position, velocity, _ = write_monofonic(tmp_path / "ics.hdf5", N, dtype)
    said = done(tmp_path / "run", tmp_path / "ics.hdf5", options)
    assert "times those of" not in said, said
    read = read_back(tmp_path / "run")
    assert np.array_equal(read["id"], np.arange(N**3))
    assert_particles(read, position, velocity, ACCURACY)


@pytest.mark.parametrize(("dtype", "options"), [("f8", ""), ("f4", ', format: "music"')])
def test_a_mesh_of_music_comes_back(tmp_path, dtype, options):
    position, velocity, *_ = write_music(tmp_path / "ics.hdf5", [(N, N, N)], dtype=dtype)
    said = done(tmp_path / "run", tmp_path / "ics.hdf5", options)
    assert "times those of" not in said, said
    read = read_back(tmp_path / "run")
    assert np.array_equal(read["id"], np.arange(N**3))
    assert_particles(read, position, velocity, ACCURACY)


def test_nested_meshes_come_back(tmp_path):
    position, velocity, level, _ = write_music(tmp_path / "ics.hdf5", **ZOOM)
    assert np.sum(8.0**level) == N**3 * 64
    said = done(tmp_path / "run", tmp_path / "ics.hdf5")
    assert "times those of" not in said, said
    read = read_back(tmp_path / "run")
    assert np.array_equal(read["id"] >> np.uint64(60), level.astype("u8"))
    assert_particles(read, position, velocity, ACCURACY)


@pytest.mark.parametrize("program", ["monofonic", "music"])
@pytest.mark.parametrize("dark_matter", [True, False])
def test_gas_comes_back(tmp_path, program, dark_matter):
    n, path = 2 * N, tmp_path / "ics.hdf5"
    if program == "music":
        position, velocity, _, delta = write_music(path, [(n, n, n)], gas=True)
    else:
        particles = [f"DM_{field}{axis}" for field in "dv" for axis in "xyz"]
        position, velocity, delta = write_monofonic(path, n, fields=[*particles, *files.GAS])
    if not dark_matter:
        with h5py.File(path, "r+") as file:
            for name in [name for name in file if "DM_" in name]:
                del file[name]
    refine = "particles_above(1)" if dark_matter else "mass_above(8)"
    said = done(tmp_path / "run", path, f", cells: {n}, baryons_only: true", root=n, refine=refine)
    assert "times those of" not in said, said
    read = read_back(tmp_path / "run")
    if dark_matter:
        assert_particles(read, position, velocity, ACCURACY)
    density = (files.SHARE if dark_matter else 1) * (1 + delta)
    assert np.allclose(read["density"].transpose().ravel(), density, rtol=1e-6, atol=0)
    for i, axis in enumerate("xyz"):
        momentum = density * velocity[:, i] * universe.A / 100
        assert np.allclose(read[f"momentum_{axis}"].transpose().ravel(), momentum, rtol=1e-5, atol=1e-9)


def test_gas_on_nested_meshes_comes_back(tmp_path):
    position, velocity, _, _ = write_music(tmp_path / "ics.hdf5", gas=True, **ZOOM)
    done(tmp_path / "run", tmp_path / "ics.hdf5", f", cells: {N}")
    read = read_back(tmp_path / "run")
    assert_particles(read, position, velocity, ACCURACY)
    first = np.zeros(3, int)
    for n, (length, offset) in enumerate(zip(ZOOM["lengths"], ZOOM["offsets"])):
        first, prefix = 2 * (first + offset) if n else first, f"nest_{n}_" if n else ""
        assert n == 0 or list(read[prefix + "density_first"]) == list(first)
        delta = files.contrast(files.centres(length, first, universe.BOX / N / 2**n))
        density = read[prefix + "density"]
        assert np.allclose(density.transpose().ravel(), files.SHARE * (1 + delta), rtol=1e-6, atol=0)


def test_one_universe_in_three_formats_has_one_spectrum(tmp_path):
    position, velocity, _ = write_monofonic(tmp_path / "a.hdf5", N)
    write_music(tmp_path / "b.hdf5", [(N, N, N)])
    known = universe.Universe(position, velocity, np.arange(N**3, dtype=np.uint64))
    universe.write_gadget(tmp_path / "c.hdf5", known, universe.Gadget(dtype="f8"))
    for name in "abc":
        done(tmp_path / name, tmp_path / f"{name}.hdf5")
    first, second, third = [read_back(tmp_path / name) for name in "abc"]
    for axis in "xyz":
        assert moved(first[f"position_{axis}"] - third[f"position_{axis}"]).max() < ACCURACY
        assert np.allclose(first[f"velocity_{axis}"], third[f"velocity_{axis}"], rtol=1e-6, atol=1e-8)
        assert moved(second[f"position_{axis}"] - third[f"position_{axis}"]).max() < ACCURACY
    gadget = spectrum(tmp_path / "c")
    assert len(gadget) > 3
    for name in "ab":
        assert np.allclose(spectrum(tmp_path / name), gadget, rtol=1e-4, atol=0)


@pytest.mark.skipif(not MPIEXEC, reason="no mpiexec")
@pytest.mark.parametrize("gas", [True, False])
def test_two_processes_have_the_bits_of_one(tmp_path, gas):
    write_music(tmp_path / "ics.hdf5", gas=gas, **ZOOM)
    options = f", cells: {N}" if gas else ""
    done(tmp_path / "one", tmp_path / "ics.hdf5", options)
    done(tmp_path / "two", tmp_path / "ics.hdf5", options, launcher=[MPIEXEC, "-n", "2"])
    first, second = read_back(tmp_path / "one"), read_back(tmp_path / "two")
    assert all(np.array_equal(first[name], second[name]) for name in first)


def test_files_are_examined_without_a_recipe(tmp_path):
    write_monofonic(tmp_path / "a.hdf5", N)
    write_music(tmp_path / "b.hdf5", [(N, N, N)])

    def inspected(name, *options):
        command = [PROGRAM, "inspect", tmp_path / name, "--cosmology", "sigma8=0.9,n_s=1,h=0.7,omega_m=0.3", *options]
        said = subprocess.run(command, capture_output=True, text=True)
        return said.returncode, said.stdout + said.stderr

    code, text = inspected("a.hdf5")
    assert code == 0 and "monofonic" in text and "velocity" in text, text
    code, text = inspected("b.hdf5", "--redshift", "24")
    assert code == 4 and "the length of the box is not in the file; examine it with ic_load" in text, text


def monofonic(edit=None, fields=None, header=None):
    def write(path):
        write_monofonic(path, N, header=header, **({"fields": fields} if fields else {}))
        if edit:
            with h5py.File(path, "r+") as file:
                edit(file)

    return write


def music(edit=None, header=None, lengths=None, **how):
    def write(path):
        write_music(path, lengths or [(N, N, N)], edit=header, **how)
        if edit:
            with h5py.File(path, "r+") as file:
                edit(file)

    return write


def replaced(name, values=None):
    def edit(file):
        del file[name]
        if values is not None:
            file[name] = values

    return edit


def put(name, at, value):
    def edit(file):
        file[name][at] = value

    return edit


def scaled(names, factor):
    def edit(file):
        for name in names:
            file[name][:] *= factor

    return edit


def cut(path):
    write_monofonic(path, N)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])


PARTICLES = [f"DM_{field}{axis}" for field in "dv" for axis in "xyz"]
SPEEDS = ["DM_vx", "DM_vy", "DM_vz"]

MISTAKES = {
    "box": (monofonic(header={"Boxsize": 20000.0}), {}, ['"Boxsize" of /Header is 20000', "box_mpc_h = 20"]),
    "a": (monofonic(header={"astart": 0.05}), {}, ['"astart" of /Header is 0.05', "0.04"]),
    "omega": (monofonic(header={"Omega_m": 0.31}), {}, ['"Omega_m" of /Header is 0.31', "omega_m = 0.3"]),
    "baryons": (monofonic(header={"Omega_b": 0.05}), {}, ['"Omega_b" of /Header is 0.05', "omega_b = 0.045"]),
    "lambda": (monofonic(header={"Omega_L": 0.6}), {}, ['"Omega_L" of /Header is 0.6', "omega_lambda = 0.7"]),
    "no omega": (monofonic(header={"Omega_m": None}), {}, ['"Omega_m" of /Header is missing']),
    "text": (monofonic(header={"Omega_m": "0.3"}), {}, ['"Omega_m" of /Header is of type', "expected numbers"]),
    "Eulerian": (monofonic(fields=["DM_delta", *SPEEDS]), {}, ["the dark matter is Eulerian", "generic_out_eulerian"]),
    "Lagrangian gas": (monofonic(fields=["DM_", *PARTICLES, "BA_", "BA_dx", "BA_delta", *files.GAS[:3]]), {},
                       ["the gas is Lagrangian", "grafic2", "DoBaryons = no"]),
    "masses": (monofonic(fields=["DM_", *PARTICLES]), {}, ['dataset "DM_" has a mass', "DoBaryons = no"]),
    "neutrinos": (monofonic(fields=[*PARTICLES, "NU_dx"]), {}, ["neutrinos", "NU_"]),
    "no fields": (monofonic(fields=["gas_temperature"]), {}, ["neither dark matter nor gas", "DM_dx"]),
    "component": (monofonic(replaced("DM_vy")), {}, ['"DM_vy" is missing', "[16, 16, 16]"]),
    "another mesh": (monofonic(replaced("DM_vy", np.zeros((8, 8, 8)))), {}, ['"DM_vy" has shape [8, 8, 8]', "[16, 16, 16]"]),
    "flat": (monofonic(replaced("DM_delta", np.zeros(8))), {}, ["shape [8]", "three axes"]),
    "whole numbers": (monofonic(replaced("DM_dx", np.zeros((N,) * 3, int))), {}, ['"DM_dx" holds', "floats of 32 or 64 bits"]),
    "not finite": (monofonic(put("DM_vz", (1, 2, 3), np.nan)), {}, ['"DM_vz" has NaN in cell [1, 2, 3]', "expected less than 1e30"]),
    "large": (monofonic(put("DM_dx", (1, 2, 3), 1e308)), {}, ['"DM_dx" has 1e308 in cell [1, 2, 3]', "expected less than 5e-1"]),
    "velocities in km/s": (monofonic(scaled(SPEEDS, universe.BOX)), {}, ["times those of the growing mode", "they look like v_pec in km/s"]),
    "cells": (monofonic(fields=[*PARTICLES, *files.GAS]), {"options": ", cells: 32", "root": 32}, ["[16, 16, 16] cells", "[32, 32, 32]"]),
    "truncated": (cut, {}, ["truncated"]),
    "format": (monofonic(), {"options": ', format: "music"'}, ["format = monofonic", "music"]),
    "music: component": (music(replaced("level_004_DM_dz")), {}, ['"level_004_DM_dz" is missing']),
    "music: no boundary": (music(replaced("level_004_DM_dz", np.zeros((N,) * 3))), {},
                           ['"level_004_DM_dz" has shape [16, 16, 16]', "[24, 24, 24]"]),
    "music: not finite": (music(put("level_004_DM_vx", (5, 6, 7), np.inf)), {}, ['"level_004_DM_vx" has inf in cell [1, 2, 3]']),
    "music: no levelmax": (music(header=lambda header: header.attrs.__delitem__("levelmax")), {}, ['"levelmax" of /header is missing']),
    "music: levels": (music(header=lambda header: header.attrs.update(levelmax=3)), {}, ['"levelmax" of /header is 3', '"levelmin" = 4']),
    "music: lists": (music(header=lambda header: header.attrs.update(levelmax=5)), {}, ['"header/grid_off_x" has shape [1]', "[2]"]),
    "music: a part": (music(header=put("grid_len_y", 0, 8)), {}, ["level 4 has [16, 8, 16] cells", "all 16³ from 0"]),
    "music: outside": (music(header=put("grid_off_z", 2, 14), **ZOOM), {}, ["level 6: cells", "along z", "expected a mesh inside it"]),
    "music: odd": (music(header=put("grid_len_z", 1, 15), **ZOOM), {}, ["level 5: 15 cells along z", "even number"]),
    "music: many levels": (music(header=lambda header: header.attrs.update(levelmax=14)), {}, ["11 nested meshes", "at most 8"]),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_named(tmp_path, mistake):
    write, values, expected = MISTAKES[mistake]
    write(tmp_path / "ics.hdf5")
    said = run(tmp_path / "run", tmp_path / "ics.hdf5", **values)
    assert_refused(said, [*expected, "ics"])
