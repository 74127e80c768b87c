"""White noise in files: that of `comove noise` is read here, and files of GRAFIC and MUSIC written here make its universe.

COMOVE_PROGRAM is the program, as scripts/test sets it.
"""

import os
import subprocess

import h5py
import numpy as np
import pytest

PROGRAM = os.environ.get("COMOVE_PROGRAM")
pytestmark = pytest.mark.skipif(not PROGRAM, reason="COMOVE_PROGRAM is not set")

N = 16
RECIPE = """
const C = cosmology(#{{ h: 0.7, omega_m: 0.3, omega_b: 0.045, sigma8: 0.9, n_s: 1 }});
const IC = ic_gaussian(C, #{{ box_mpc_h: 20, cells: {n}, z: 49, baryons_only: true, {source} }});
campaign("noise", [ic_report(IC)])
"""


def contrast(folder, source):
    """δ `[z, y, x]` of an initial condition."""
    folder.mkdir()
    (folder / "noise.rhai").write_text(RECIPE.format(n=N, source=source))
    said = subprocess.run([PROGRAM, "run", "noise.rhai"], cwd=folder, capture_output=True, text=True)
    assert said.returncode == 0, said.stderr + said.stdout
    (file,) = (folder / "noise").glob("ic_gaussian-*/initial_condition.h5")
    with h5py.File(file) as read:
        return read["density"][:] - 1


def read_records(path):
    """Records of a little-endian Fortran file."""
    data, at, records = path.read_bytes(), 0, []
    while at < len(data):
        (length,) = np.frombuffer(data, "<i4", 1, at)
        records.append(data[at + 4:at + 4 + length])
        assert np.frombuffer(data, "<i4", 1, at + 4 + length)[0] == length
        at += length + 8
    return records


def write_grafic(path, noise, order, kind):
    def record(values):
        length = np.array([values.nbytes], order + "i4").tobytes()
        return length + values.tobytes() + length

    header = np.array([*noise.shape[::-1], 0], order + "i4")
    path.write_bytes(record(header) + b"".join(record(plane.astype(order + kind)) for plane in noise))


def write_music(path, noise, kind):
    path.write_bytes(np.array(noise.shape[::-1], "<i4").tobytes() + noise.transpose(2, 1, 0).astype("<" + kind).tobytes())


@pytest.fixture(scope="module")
def seeded(tmp_path_factory):
    """Noise of a seed as `comove noise` writes it, and δ of the seed."""
    folder = tmp_path_factory.mktemp("seeded")
    command = [PROGRAM, "noise", "noise.bin", "--cells", str(N), "--seed", "7"]
    subprocess.run(command, cwd=folder, check=True)
    header, *planes = read_records(folder / "noise.bin")
    assert list(np.frombuffer(header, "<i4")) == [N, N, N, 7]
    noise = np.array([np.frombuffer(plane, "<f8") for plane in planes]).reshape(N, N, N)
    return noise, contrast(folder / "run", "seed: 7")


def test_the_contrast_is_the_noise_times_a_function_of_k(seeded):
    noise, delta = seeded
    assert abs(noise.mean()) < 1e-12 and abs(noise.var() - (1 - 1 / N)**3) < 0.1
    k = np.fft.fftfreq(N, 1 / N)
    square = k[:, None, None]**2 + k[None, :, None]**2 + k**2
    whole = (np.abs(k) < N / 2)
    kept = whole[:, None, None] & whole[None, :, None] & whole & (square > 0)
    ratio = np.fft.fftn(delta)[kept] / np.fft.fftn(noise)[kept]
    for n in np.unique(square[kept]):
        shell = ratio[square[kept] == n]
        assert np.allclose(shell, shell[0].real, rtol=1e-9, atol=0) and shell[0].real > 0


@pytest.mark.parametrize("kind", ["grafic big-endian", "grafic inverted", "music"])
def test_a_file_makes_the_universe_of_its_noise(tmp_path, seeded, kind):
    noise, delta = seeded
    path = tmp_path / "wnoise_0004.bin"
    options = ""
    if kind == "music":
        write_music(path, noise, "f8")
    elif kind == "grafic inverted":
        write_grafic(path, -noise, "<", "f8")
        options = ', noise_sign: "music"'
    else:
        write_grafic(path, noise, ">", "f4")
    found = contrast(tmp_path / "run", f'noise: "{path}"{options}')
    assert np.abs(found - delta).max() < np.abs(delta).max() * (1e-6 if "big" in kind else 1e-13)
