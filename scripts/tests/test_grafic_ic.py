"""Initial conditions in GRAFIC files, written by grafic_files.py: read back, run, and refused where they are wrong."""

import gadget_files as universe
import grafic_files as files
import h5py
import numpy as np
import pytest
from test_gadget_ic import MPIEXEC, N, assert_refused, done, moved, one, pytestmark, run, spectrum  # noqa: F401

# digits of the header's numbers of 32 bits, in Mpc/h
SINGLE = 3e-6


def read_back(folder):
    """Datasets of the initial condition; particles in the order of their identities."""
    with h5py.File(one(folder, "ic_load-*/initial_condition.h5")) as read:
        order = np.argsort(read["id"][:] & np.uint64((1 << 59) - 1)) if "id" in read else None
        values = {name: read[name][:] for name in read}
        values |= {f"{name}_first": read[name].attrs["first_cell"] for name in read if "first_cell" in read[name].attrs}
    particles = {"id", "position_x", "position_y", "position_z", "velocity_x", "velocity_y", "velocity_z"}
    return {name: value[order] if name in particles else value for name, value in values.items()}


def assert_particles(read, position, velocity, accuracy):
    for i, axis in enumerate("xyz"):
        assert moved(read[f"position_{axis}"] - position[:, i]).max() < accuracy
        assert np.allclose(read[f"velocity_{axis}"], velocity[:, i] * universe.A / 100, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(("how", "accuracy"), [({}, SINGLE), ({"order": ">"}, SINGLE), ({"positions": False}, 1e-4)])
def test_a_mesh_comes_back(tmp_path, how, accuracy):
    position, velocity, _ = files.write_mesh(tmp_path / "ics", (N, N, N), **how)
    done(tmp_path / "run", tmp_path / "ics")
    read = read_back(tmp_path / "run")
    assert np.array_equal(read["id"], np.arange(N**3))
    assert_particles(read, position, velocity, accuracy)


def test_gas_comes_back(tmp_path):
    position, velocity, delta = files.write_mesh(tmp_path / "ics", (2 * N,) * 3, gas=True)
    done(tmp_path / "run", tmp_path / "ics", f", cells: {2 * N}", root=2 * N)
    read = read_back(tmp_path / "run")
    assert_particles(read, position, velocity, SINGLE)
    density = read["density"].ravel()
    assert np.allclose(density, files.SHARE * (1 + delta), rtol=1e-6, atol=0)
    for i, axis in enumerate("xyz"):
        momentum = density * velocity[:, i] * universe.A / 100
        assert np.allclose(read[f"momentum_{axis}"].ravel(), momentum, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("positions", [True, False])
def test_nested_meshes_come_back(tmp_path, positions):
    position, velocity, level = files.write_zoom(tmp_path / "ics", N, positions=positions)
    assert np.sum(8.0**level) == N**3 * 64
    said = done(tmp_path / "run", tmp_path / "ics")
    assert "times those of" not in said, said
    read = read_back(tmp_path / "run")
    assert np.array_equal(read["id"] >> np.uint64(60), level.astype("u8"))
    assert_particles(read, position, velocity, SINGLE if positions else 1e-4)
    with h5py.File(one(tmp_path / "run", "evolve-*/output_z20.h5")) as written:
        expected = np.sort(8.0**level) * universe.BOX**3 / N**3 / 64
        assert np.allclose(np.sort(written["Particle/ParMass"][:]), expected, rtol=1e-6, atol=0)


def refinement_map(folder, values):
    """Writes the map of the finest of the nested meshes."""
    shape, first = files.nested(N)[-1]
    files.write(folder / "level_006" / "ic_refmap", np.broadcast_to(values, shape[::-1]), first, universe.BOX / N / 4)


def test_refinement_follows_the_map(tmp_path):
    levels = files.write_zoom(tmp_path / "ics", N)[2]
    values = np.zeros(files.nested(N)[-1][0][::-1])
    values[:, 4:9, 2:] = 1
    # as in a map of averages
    values[:, 9, 2:] = 0.5
    refinement_map(tmp_path / "ics", values)
    done(tmp_path / "run", tmp_path / "ics")
    read = read_back(tmp_path / "run")
    assert np.array_equal(read["id"] >> np.uint64(60), levels.astype("u8"))
    is_marked = read["id"] >> np.uint64(59) & np.uint64(1) == 1
    assert not is_marked[levels > 0].any()
    assert np.array_equal(is_marked[levels == 0], values.ravel() < 1)
    if MPIEXEC:
        done(tmp_path / "two", tmp_path / "ics", launcher=[MPIEXEC, "-n", "2"])
        assert np.array_equal(read_back(tmp_path / "two")["id"], read["id"])
        assert np.array_equal(spectrum(tmp_path / "two"), spectrum(tmp_path / "run"))


def test_gas_on_nested_meshes_comes_back(tmp_path):
    position, velocity, _ = files.write_zoom(tmp_path / "ics", N, gas=True)
    done(tmp_path / "run", tmp_path / "ics", f", cells: {N}")
    read = read_back(tmp_path / "run")
    assert_particles(read, position, velocity, SINGLE)
    for n, (shape, first) in enumerate(files.nested(N)):
        prefix = f"nest_{n}_" if n else ""
        _, speed, delta = files.write_mesh(tmp_path / "again", shape, first, universe.BOX / N / 2**n)
        density = read[prefix + "density"]
        assert density.shape == shape[::-1]
        assert n == 0 or tuple(read[prefix + "density_first"]) == first
        assert np.allclose(density.ravel(), files.SHARE * (1 + delta), rtol=1e-6, atol=0)
        momentum = density.ravel() * speed[:, 1] * universe.A / 100
        assert np.allclose(read[prefix + "momentum_y"].ravel(), momentum, rtol=1e-5, atol=1e-9)


@pytest.mark.skipif(not MPIEXEC, reason="no mpiexec")
@pytest.mark.parametrize("gas", [False, True])
def test_two_processes_have_the_bits_of_one(tmp_path, gas):
    options = f", cells: {N}" if gas else ""
    files.write_zoom(tmp_path / "ics", N, gas=gas)
    done(tmp_path / "one", tmp_path / "ics", options)
    done(tmp_path / "two", tmp_path / "ics", options, launcher=[MPIEXEC, "-n", "2"])
    first, second = read_back(tmp_path / "one"), read_back(tmp_path / "two")
    assert all(np.array_equal(first[name], second[name]) for name in first)
    assert np.array_equal(spectrum(tmp_path / "one"), spectrum(tmp_path / "two"))


def mesh(**how):
    return lambda folder: files.write_mesh(folder, (N, N, N), **how)


def stated(**header):
    return mesh(header=header)


def edited(edit):
    def write(folder):
        files.write_mesh(folder, (N, N, N))
        edit(folder)

    return write


def cut(folder):
    whole = (folder / "ic_velcy").read_bytes()
    (folder / "ic_velcy").write_bytes(whole[:-100])


def not_finite(folder):
    values = np.zeros((N, N, N))
    values[3, 2, 1] = np.nan
    files.write(folder / "ic_velcz", values)


def masses_apart(folder):
    files.write(folder / "ic_massc", 0.85 + 0.01 * np.random.default_rng(1).uniform(size=(N, N, N)))


def nested_without_contrast(folder):
    files.write_zoom(folder, N, gas=True)
    (folder / "level_005" / "ic_deltab").unlink()


def nested_with_map(values):
    def write(folder):
        files.write_zoom(folder, N)
        refinement_map(folder, values)

    return write


def nested_askew(first):
    def write(folder):
        folder.mkdir()
        files.write_mesh(folder / "level_004", (N, N, N))
        files.write_mesh(folder / "level_005", (N, N, N), (first, 8, 8), universe.BOX / N / 2)

    return write


# what was done to the files, with which recipe, and what the one sentence says
MISTAKES = {
    "epoch": (stated(a=0.05), {}, ["ic_velcx", "astart = 0.05", "0.04"]),
    "omega": (stated(omega_m=0.25), {}, ["omega_m = 0.25", "0.3"]),
    "h0": (stated(h0=0.7), {}, ["h0 = 0.69", "recipe says 70"]),
    "dx in Mpc/h": (stated(dx=universe.BOX / N), {}, ["a box of 14", "box_mpc_h = 20"]),
    "other cells": (mesh(gas=True), {"root": 32, "options": ", cells: 32"}, ["[16, 16, 16] cells", "[32, 32, 32]"]),
    "cut short": (edited(cut), {}, ["ic_velcy", "bytes, expected", "copy"]),
    "not finite": (edited(not_finite), {}, ["ic_velcz", "cell [1, 2, 3] (from 0) is NaN"]),
    "masses": (edited(masses_apart), {}, ["ic_massc", "masses of particles are 0.85", "species_transfer"]),
    "another mesh": (edited(lambda folder: files.write(folder / "ic_velcy", np.zeros((N, N, N // 2)))), {},
                     ["ic_velcy", "[8, 16, 16] cells", "write all on one mesh"]),
    "no record": (edited(lambda folder: (folder / "ic_velcx").write_bytes(bytes(200))), {}, ["first record has 0 bytes"]),
    "component missing": (edited(lambda folder: (folder / "ic_velcz").unlink()), {}, ["ic_velcz"]),
    "nested gas without contrast": (nested_without_contrast, {"options": ", cells: 16"}, ["level_005", "ic_deltab"]),
    "empty map": (nested_with_map(0.99), {}, ["followed particles = none of 2048"]),
    "map not finite": (nested_with_map(np.nan), {}, ["level_006", "ic_refmap", "cell [0, 0, 0] (from 0) is NaN"]),
    "half a cell": (nested_askew(9), {}, ["begin at", "4.5000 cells of the next coarser mesh"]),
    "empty folder": (lambda folder: folder.mkdir(), {}, ["ic_velcx", "level_NNN"]),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_named(tmp_path, mistake):
    write, values, expected = MISTAKES[mistake]
    write(tmp_path / "ics")
    said = run(tmp_path / "run", tmp_path / "ics", **values)
    assert_refused(said, [*expected, "ics"])
