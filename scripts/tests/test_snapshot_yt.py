"""Snapshots as yt sees them.

The files are written by sim/examples/snapshot_samples.rs. Their fields are functions of position, stated here once
more, so that the reader is compared with numbers that our writer never touched. COMOVE_SAMPLES names a folder that has
the files; without it they are written to a temporary one.

Needs yt, h5py, numpy, pytest.
"""

import json
import os
import pathlib
import subprocess

import h5py
import numpy as np
import pytest
import yt

yt.set_log_level("error")

ROOT = pathlib.Path(__file__).resolve().parents[2]

# The cosmological sample: units of cgs, from the definitions and not from our code.
H, OMEGA_M, BOX_MPC_H, MU, GAMMA = 0.7, 0.3, 20.0, 1.22, 5.0 / 3.0
MPC_CM, NEWTON, BOLTZMANN, HYDROGEN_G = 3.0856775814913673e24, 6.6743e-8, 1.380649e-16, 1.6735575e-24
LEVEL_1 = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0], [2, 3, 1], [3, 5, 3], [0, 2, 3]]
LEVEL_2 = [[0, 0, 0], [3, 2, 1], [5, 7, 2], [6, 10, 7]]
ROOT_CELLS = np.array([32, 48, 32])


@pytest.fixture(scope="session")
def samples(tmp_path_factory):
    given = os.environ.get("COMOVE_SAMPLES")
    if given:
        return pathlib.Path(given)
    folder = tmp_path_factory.mktemp("samples")
    command = ["cargo", "run", "--release", "-p", "comove-sim", "--example", "snapshot_samples", "--", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True)
    return folder


def mean_sine(n, x, width):
    """Mean of sin(2 pi n x) over cells of this width."""
    k = 2 * np.pi * n
    return (np.cos(k * (x - width / 2)) - np.cos(k * (x + width / 2))) / (k * width)


def cosmological(x, y, z, width):
    """Code values of the cosmological sample at cell centres, in units of the box along x."""
    density = 1 + 0.4 * mean_sine(1, x, width) + 0.2 * mean_sine(2, y / 1.5, width / 1.5) + 0.1 * mean_sine(3, z, width)
    velocity = [3 + x + 0 * y + 0 * z, -2 + 2 * y + 0 * x + 0 * z, 1 - 3 * z + 0 * x + 0 * y]
    pressure = density * (2 + x + 0.5 * y + 0.25 * z)
    return {
        "Dens": density,
        "MomX": density * velocity[0],
        "MomY": density * velocity[1],
        "MomZ": density * velocity[2],
        "Engy": 1.5 * pressure + 0.5 * density * sum(v**2 for v in velocity),
        "Entropy": pressure / density ** (2 / 3),
        "metals": 0.01 * density * x,  # a passive scalar
        "ParDens": 10 + x - 2 * y + 3 * z,
        "Pote": x - 2 * y + 3 * z,
        "Pres": pressure,
    }


def values_of_level(level):
    """The sample's functions on a whole level, [x, y, z]."""
    cells = ROOT_CELLS * 2**level
    width = 1 / cells[0]
    x, y, z = np.meshgrid(*[(np.arange(n) + 0.5) * width for n in cells], indexing="ij", sparse=True)
    return cosmological(x, y, z, width)


def composite(level):
    """What a covering grid of this level shows: each cell from the finest level that has it, up to this one."""
    fields = values_of_level(0)
    for finer, groups in enumerate([LEVEL_1, LEVEL_2][:level], start=1):
        values = values_of_level(finer)
        for name in fields:
            fields[name] = fields[name].repeat(2, 0).repeat(2, 1).repeat(2, 2)
            for group in groups:
                box = tuple(slice(16 * c, 16 * c + 16) for c in group)
                fields[name][box] = values[name][box]
    return fields


@pytest.fixture(scope="session")
def dataset(samples):
    return yt.load(str(samples / "cosmological.h5"))


def test_epoch_and_box(dataset):
    assert type(dataset).__name__ == "GAMERDataset"
    assert dataset.current_redshift == pytest.approx(3.0, abs=1e-14)
    assert dataset.hubble_constant == H and dataset.omega_matter == OMEGA_M
    width = dataset.domain_width
    assert width.to("Mpccm/h").d == pytest.approx([20, 30, 20], rel=1e-6)  # yt's Mpc differs in the eighth digit
    assert width.to("kpc").d == pytest.approx(np.array([20, 30, 20]) * 1000 / H / 4, rel=1e-6)
    assert tuple(dataset.periodicity) == (True, True, True)
    assert dataset.index.max_level == 2 and dataset.index.num_grids == 12 + 7 + 4


def test_age(dataset):
    # flat, matter and a cosmological constant, in closed form; yt integrates from z = 1e6 with its own constants
    omega_l = 1 - OMEGA_M
    hubble_s = MPC_CM / (H * 1e7)
    age = 2 / (3 * np.sqrt(omega_l)) * np.arcsinh(np.sqrt(omega_l / OMEGA_M) * 0.25**1.5) * hubble_s
    assert float(dataset.current_time.to("s")) == pytest.approx(age, rel=1e-3)


def test_mean_density(dataset):
    critical = 3 * (H * 1e7 / MPC_CM) ** 2 / (8 * np.pi * NEWTON)
    data = dataset.all_data()
    mean = data["gas", "cell_mass"].sum() / data["gas", "cell_volume"].sum()
    assert float(mean.to("g/cm**3")) == pytest.approx(OMEGA_M * critical * 4**3, rel=1e-5)
    box = float(dataset.domain_width.to("cm").prod())
    assert float(data["gas", "cell_volume"].sum()) == pytest.approx(box, rel=1e-12)


@pytest.mark.parametrize("level", [0, 1, 2])
def test_covering_grids(dataset, level):
    grid = dataset.covering_grid(level, dataset.domain_left_edge, ROOT_CELLS * 2**level)
    for name, expected in composite(level).items():
        values = grid["gamer", name].d
        assert values.shape == expected.shape
        # the functions are evaluated twice in double precision
        assert np.abs(values - expected).max() < 1e-13 * np.abs(expected).max(), name


def test_physical_units(dataset):
    grid = dataset.covering_grid(1, dataset.domain_left_edge, ROOT_CELLS * 2)
    expected = composite(1)
    a = 0.25
    velocity = expected["MomY"] / expected["Dens"] * 100 / a  # peculiar, km/s
    np.testing.assert_allclose(grid["gas", "velocity_y"].to("km/s").d, velocity, rtol=1e-6)
    specific = expected["Pres"] / expected["Dens"] * (1e7 / a) ** 2
    temperature = MU * HYDROGEN_G / BOLTZMANN * specific
    # yt's hydrogen mass differs by 1e-4 between its versions
    np.testing.assert_allclose(grid["gas", "temperature"].to("K").d, temperature, rtol=5e-4)
    critical = 3 * (H * 1e7 / MPC_CM) ** 2 / (8 * np.pi * NEWTON)
    pressure = expected["Pres"] * OMEGA_M * critical / a**3 * (1e7 / a) ** 2
    np.testing.assert_allclose(grid["gas", "pressure"].to("erg/cm**3").d, pressure, rtol=1e-5)
    potential = expected["Pote"] * (1e7 / a) ** 2
    # the potential crosses zero: absolute, in units of its range of about 5e15
    np.testing.assert_allclose(grid["gas", "gravitational_potential"].to("cm**2/s**2").d, potential, atol=1e9)


def test_cold_gas_keeps_its_temperature(samples):
    """Where single precision loses the thermal energy in the total, the temperature still is the gas's own."""
    dataset = yt.load(str(samples / "cold.h5"))
    grid = dataset.covering_grid(0, dataset.domain_left_edge, [32, 32, 32])
    x, y, z = np.meshgrid(*[(np.arange(32) + 0.5) / 32] * 3, indexing="ij", sparse=True)
    density, pressure = 1 + 0.5 * x + 0.25 * y + 0 * z, 1e-6 * (1 + x + 2 * y + 3 * z)
    expected = MU * HYDROGEN_G / BOLTZMANN * pressure / density * (1e7 / 0.02) ** 2
    np.testing.assert_allclose(grid["gas", "temperature"].to("K").d, expected, rtol=5e-4)
    internal = grid["gamer", "Engy"].d - 0.5 * sum(grid["gamer", f"Mom{v}"].d ** 2 for v in "XYZ") / density
    assert np.abs(internal * 2 / 3 / pressure - 1).max() > 1  # so the test would see a pressure from the energy


def test_plain_coordinates(samples):
    dataset = yt.load(str(samples / "plain.h5"))
    assert not dataset.cosmological_simulation and float(dataset.current_time.to("s")) == 0.25
    assert dataset.domain_width.to("cm").d == pytest.approx([4, 1, 1], abs=1e-14)
    assert tuple(dataset.periodicity) == (False, False, False) and dataset.gamma == 1.4
    assert ("gamer", "Pote") not in dataset.field_list
    data = dataset.all_data()
    x, y, z = (data["index", axis].to("cm").d / 4 for axis in "xyz")
    np.testing.assert_allclose(data["gas", "density"].to("g/cm**3").d, 1 + x, rtol=1e-13)
    np.testing.assert_allclose(data["gas", "pressure"].to("dyn/cm**2").d, 0.7 + x + y, rtol=1e-13)
    np.testing.assert_allclose(data["gas", "velocity_y"].to("cm/s").d, -y, rtol=1e-13)


def test_metadata_without_our_reader(samples):
    with h5py.File(samples / "cosmological.h5") as file:
        comove = file["Comove"]
        assert comove.attrs["role"] == b"output" and comove.attrs["a"] == 0.25 and comove.attrs["step"] == 12
        assert comove["recipe"][:].tobytes().decode() == "// a sample\n"
        header = json.loads(comove["header"][:].tobytes())
        assert header["tree"]["groups"] == [12, 7, 4]
        assert header["snapshot"]["cosmology"]["omega_m"] == OMEGA_M
        assert file["Info/InputPara"]["Unit_L_Comoving"] == pytest.approx(MPC_CM / H)
        assert file["GridData/Dens"].compression is None and file["GridData/Dens"].shape == (23 * 8, 8, 8, 8)


def test_particles(dataset):
    """11 x 11 x 11 particles at known places, each with a velocity that its place tells."""
    data = dataset.all_data()
    n = np.arange(11**3)
    place = (np.stack([n % 11, n // 11 % 11, n // 121], axis=1) + 0.25) / 11
    found = np.stack([data["io", f"particle_position_{axis}"].to("code_length").d for axis in "xyz"], axis=1)
    assert len(found) == 11**3
    order = np.lexsort((found[:, 0], found[:, 1], found[:, 2]))
    np.testing.assert_allclose(found[order], place * [20, 30, 20], atol=1e-8)
    velocity = np.stack([data["io", f"particle_velocity_{axis}"].to("km/s").d for axis in "xyz"], axis=1)
    expected = [1, -2, 0] + place * [1, 1, 0.5]
    np.testing.assert_allclose(velocity[order], expected * 100 / 0.25, rtol=1e-6, atol=1e-4)
    critical = 3 * (H * 1e7 / MPC_CM) ** 2 / (8 * np.pi * NEWTON)
    unit = OMEGA_M * critical * (MPC_CM / H) ** 3
    np.testing.assert_allclose(data["io", "particle_mass"].to("g").d, 2.5 * unit, rtol=1e-5)
    # every particle lies in the grid that yt gives it to
    for grid in dataset.index.grids:
        position = grid["io", "particle_position"].to("code_length")
        inside = (position >= grid.LeftEdge) & (position < grid.RightEdge)
        assert np.all(inside)
