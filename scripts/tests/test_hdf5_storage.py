"""One initial condition in every storage that HDF5 has: read alike, and refused by the child process where HDF5 cannot decode it.

COMOVE_PROGRAM is the program, as scripts/test sets it.
"""

import hashlib
import os
import subprocess
from pathlib import Path

import h5py
import numpy as np
import pytest
from h5py import h5d, h5p, h5s, h5t

PROGRAM = os.environ.get("COMOVE_PROGRAM")
pytestmark = pytest.mark.skipif(not PROGRAM, reason="COMOVE_PROGRAM is not set")

COSMOLOGY = "const C = cosmology(#{ h: 0.7, omega_m: 0.3, omega_b: 0.045, sigma8: 0.9, n_s: 1 });\n"
MADE = COSMOLOGY + 'campaign("made", [ic_gaussian(C, #{ box_mpc_h: 50, cells: 16, z: 49, seed: 5, dark_matter: true })])'
READ = COSMOLOGY + 'campaign("read", [ic_load(C, "ic.h5", #{ box_mpc_h: 50, cells: 16, z: 49, format: "comove_ic" })])'


def comove(folder, recipe):
    folder.mkdir(exist_ok=True)
    (folder / "recipe.rhai").write_text(recipe)
    done = subprocess.run([PROGRAM, "run", "recipe.rhai", "--device", "cpu"], cwd=folder, capture_output=True, text=True)
    return done.returncode, done.stderr + done.stdout


def digest(folder):
    [file] = folder.glob("recipe/ic_*/initial_condition.h5")
    return file, hashlib.sha256(file.read_bytes()).hexdigest()


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    code, said = comove(folder, MADE)
    assert code == 0, said
    return digest(folder)


def with_list(group, name, values, change):
    properties = h5p.create(h5p.DATASET_CREATE)
    change(properties)
    space = h5s.create_simple(values.shape)
    return h5d.create(group.id, name.encode(), h5t.IEEE_F64LE, space, properties)


def compact(file, name, values):
    dataset = with_list(file, name, values, lambda properties: properties.set_layout(h5d.COMPACT))
    dataset.write(h5s.ALL, h5s.ALL, np.ascontiguousarray(values))


def outside(file, name, values):
    raw = Path(file.filename).with_name(f"{name}.bin")
    raw.write_bytes(values.tobytes())
    with_list(file, name, values, lambda properties: properties.set_external(raw.name.encode(), 0, values.nbytes))


def linked(file, name, values):
    with h5py.File(Path(file.filename).with_name("other.h5"), "a") as other:
        other.create_dataset("a_longer_name_" + name, data=values, chunks=(4, 16, 16), compression="gzip")
    file[name] = h5py.ExternalLink("other.h5", "a_longer_name_" + name)


def virtual(file, name, values):
    with h5py.File(Path(file.filename).with_name("source.h5"), "a") as source:
        source[name] = values
    layout = h5py.VirtualLayout(shape=values.shape, dtype="f8")
    layout[...] = h5py.VirtualSource("source.h5", name, shape=values.shape)
    file.create_virtual_dataset(name, layout)


WAYS = {
    "contiguous": lambda file, name, values: file.create_dataset(name, data=values),
    "big_endian": lambda file, name, values: file.create_dataset(name, data=values.astype(">f8")),
    "compressed": lambda file, name, values: file.create_dataset(name, data=values, chunks=(4, 16, 16), compression="gzip"),
    "soft_link": lambda file, name, values: file.update({"data/" + name: values, name: h5py.SoftLink("/data/" + name)}),
    "compact": compact,
    "external_file": outside,
    "external_link": linked,
    "virtual": virtual,
}


def write(folder, source, way):
    folder.mkdir(exist_ok=True)
    with h5py.File(source) as made, h5py.File(folder / "ic.h5", "w") as file:
        file.attrs.update(made.attrs)
        for name, values in made.items():
            way(file, name, values[:])


@pytest.mark.parametrize("way", WAYS)
def test_values_do_not_depend_on_their_storage(tmp_path, made, way):
    source, expected = made
    write(tmp_path, source, WAYS[way])
    code, said = comove(tmp_path, READ)
    assert code == 0, said
    assert digest(tmp_path)[1] == expected


def test_what_hdf5_cannot_decode_is_refused_by_the_child_process(tmp_path, made):
    write(tmp_path, made[0], WAYS["compressed"])
    with h5py.File(tmp_path / "ic.h5") as file:
        chunk = file["velocity_z"].id.get_chunk_info(2)
    with (tmp_path / "ic.h5").open("r+b") as file:
        file.seek(chunk.byte_offset + chunk.size // 2)
        file.write(bytes(64))
    code, said = comove(tmp_path, READ)
    assert code == 4 and "ic.h5" in said, said


@pytest.mark.parametrize("way", ["contiguous", "compressed"])
def test_a_bad_value_is_named_with_its_file(tmp_path, made, way):
    write(tmp_path, made[0], WAYS[way])
    with h5py.File(tmp_path / "ic.h5", "r+") as file:
        file["momentum_y"][3, 2, 1] = np.nan
    code, said = comove(tmp_path, READ)
    assert code == 4, said
    assert "ic.h5: " in said and "cell [1, 2, 3]" in said and "momentum along y" in said, said
