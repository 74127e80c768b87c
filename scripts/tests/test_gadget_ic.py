"""Initial conditions of Gadget, in HDF5 and in records, and of SWIFT, written by gadget_files.py: read back, run, and refused where they are wrong.

COMOVE_PROGRAM is the program, as scripts/test sets it; MPIEXEC starts it on two processes, if it is built with MPI.
"""

import csv
import json
import os
import shutil
import struct
import subprocess

import gadget_files as files
import h5py
import numpy as np
import pytest
from gadget_files import Gadget, write_gadget

PROGRAM = os.environ.get("COMOVE_PROGRAM")
MPIEXEC = os.environ.get("MPIEXEC") or shutil.which("mpiexec")
pytestmark = pytest.mark.skipif(not PROGRAM, reason="COMOVE_PROGRAM is not set")

N = 16
RECIPE = """
const C = cosmology(#{{ h: {h}, omega_m: {omega_m}, omega_b: 0.045, sigma8: 0.9, n_s: 1 }});
const IC = ic_load(C, "{file}", #{{ box_mpc_h: 20, root: {root}, z: {z}{options} }});
const RUN = evolve(IC, #{{ z_end: 20, max_delta_a: 0.05, max_level: 1, refine: {refine} }});
campaign("gadget", [RUN, power_spectrum(RUN, #{{ level: 1 }})])
"""


def run(folder, file, options="", launcher=(), **values):
    """Runs the recipe in a folder of its own."""
    folder.mkdir(exist_ok=True)
    values = {"root": 16, "refine": "particles_above(1)", "h": files.H, "omega_m": files.OMEGA_M, "z": files.Z} | values
    (folder / "gadget.rhai").write_text(RECIPE.format(file=file, options=options, **values))
    return subprocess.run([*launcher, PROGRAM, "run", "gadget.rhai"], cwd=folder, capture_output=True, text=True)


def done(folder, *arguments, **values):
    said = run(folder, *arguments, **values)
    assert said.returncode == 0, said.stderr + said.stdout
    return said.stderr + said.stdout


def one(folder, pattern):
    found = list((folder / "gadget").glob(pattern))
    assert len(found) == 1, (pattern, found)
    return found[0]


def spectrum(folder):
    rows = list(csv.DictReader(one(folder, "power_spectrum-*/*.csv").open()))
    return np.array([[float(row[name]) for name in row if name.startswith(("k_", "power"))] for row in rows])


def moved(x):
    """The shorter way around the box."""
    return np.abs((x + files.BOX / 2) % files.BOX - files.BOX / 2)


UNIVERSES = {"lattice": files.lattice, "off_lattice": lambda n: files.off_lattice(n, left_out=13), "zoom": files.zoom}
WAYS = [
    ("single", Gadget(), ""),
    ("double", Gadget(dtype="f8"), 'format: "gadget"'),
    ("kpc", Gadget(kpc=True, dtype="f8"), 'length_unit: "kpc_h"'),
    ("units", Gadget(kpc=True, units=True, dtype="f8"), ""),
    ("masses", Gadget(masses=True), ""),
    ("unwrapped", Gadget(unwrapped=True, dtype="f8"), ""),
    ("one_type", Gadget(one_type=True), ""),
    ("three_files", Gadget(files=3, dtype="f8"), ""),
    ("format_1", Gadget(snap_format=1, masses=True), ""),
    ("format_1_double", Gadget(snap_format=1, order=">", dtype="f8", kpc=True), 'length_unit: "kpc_h"'),
    ("format_2", Gadget(snap_format=2, order=">", one_type=True), ""),
    ("format_2_files", Gadget(snap_format=2, dtype="f8", files=3), 'format: "gadget"'),
    ("swift", None, ""),
]


@pytest.mark.parametrize("universe", UNIVERSES)
@pytest.mark.parametrize("way", WAYS, ids=[way[0] for way in WAYS])
def test_a_known_universe_comes_back(tmp_path, universe, way):
    name, how, options = way
    known = UNIVERSES[universe](N)
    path = tmp_path / f"{name}.hdf5"
    file = write_gadget(path, known, how) if how else files.write_swift(path, known)
    said = done(tmp_path / "run", file, f", {options}" if options else "")
    assert "times those of" not in said and "dark matter" not in said, said
    single = how is not None and how.dtype == "f4"
    with h5py.File(one(tmp_path / "run", "ic_load-*/initial_condition.h5")) as read:
        order = np.argsort(read["id"][:])
        identity = known.identity | known.levels.astype("u8") << np.uint64(60)
        assert np.array_equal(read["id"][:][order], np.sort(identity))
        expected = np.argsort(identity)
        for i, axis in enumerate("xyz"):
            away = moved(read[f"position_{axis}"][:][order] - known.position[expected, i])
            assert away.max() < (3e-7 * files.BOX if single else 1e-6 * files.BOX / N)
            velocity = known.velocity[expected, i] * files.A / 100
            assert np.allclose(read[f"velocity_{axis}"][:][order], velocity, rtol=5e-7, atol=1e-9)


def test_one_lattice_in_two_formats_has_one_spectrum(tmp_path):
    write_gadget(tmp_path / "g.hdf5", files.lattice(N), Gadget(dtype="f8"))
    files.write_comove(tmp_path / "c.h5", N)
    done(tmp_path / "g", tmp_path / "g.hdf5")
    done(tmp_path / "c", tmp_path / "c.h5", ", cells: 16")
    gadget, own = spectrum(tmp_path / "g"), spectrum(tmp_path / "c")
    assert gadget.shape == own.shape and len(own) > 3 and gadget.shape[1] >= 2
    assert np.allclose(gadget, own, rtol=1e-5, atol=0), np.abs(gadget / own - 1).max()


@pytest.mark.parametrize(("snap_format", "order"), [(1, ">"), (2, "<")])
@pytest.mark.parametrize("how", [{}, {"masses": True, "ids": "u4", "files": 2}], ids=["table", "masses"])
def test_all_containers_have_the_same_bits(tmp_path, snap_format, order, how):
    loaded = []
    for name, container in [("g.hdf5", {}), ("g", {"snap_format": snap_format, "order": order})]:
        file = write_gadget(tmp_path / name, files.zoom(N), Gadget(**how, **container))
        done(tmp_path / f"run_{name}", file)
        with h5py.File(one(tmp_path / f"run_{name}", "ic_load-*/initial_condition.h5")) as read:
            loaded.append({name: read[name][:] for name in read})
    assert len(loaded[0]) >= 7 and loaded[0].keys() == loaded[1].keys()
    assert all(np.array_equal(loaded[0][name], loaded[1][name]) for name in loaded[0])


@pytest.mark.parametrize("how", [Gadget(snap_format=1), Gadget(snap_format=2, order=">", kpc=True, dtype="f8", files=2)])
def test_records_are_examined_without_a_recipe(tmp_path, how):
    file = write_gadget(tmp_path / "g", files.lattice(N), how)
    cosmology = "sigma8=0.9,n_s=1,omega_b=0.045"
    said = subprocess.run([PROGRAM, "inspect", file, "--cosmology", cosmology], capture_output=True, text=True)
    text = said.stdout + said.stderr
    assert said.returncode == 0 and "gadget" in text and "20" in text and "velocity" in text, text


@pytest.mark.skipif(not MPIEXEC, reason="no mpiexec")
@pytest.mark.parametrize("root", [16, 32])
@pytest.mark.parametrize("snap_format", [1, 3])
@pytest.mark.parametrize("universe", UNIVERSES)
def test_two_processes_have_the_bits_of_one(tmp_path, universe, snap_format, root):
    file = write_gadget(tmp_path / "g.hdf5", UNIVERSES[universe](N), Gadget(files=2, snap_format=snap_format))
    done(tmp_path / "one", file, root=root)
    version = subprocess.run([MPIEXEC, "--version"], capture_output=True, text=True).stdout
    extra = ["--oversubscribe", "--allow-run-as-root"] if "Open MPI" in version or "OpenRTE" in version else []
    done(tmp_path / "two", file, launcher=[MPIEXEC, *extra, "-n", "2"], root=root)
    known = UNIVERSES[universe](N)
    with h5py.File(one(tmp_path / "one", "evolve-*/output_z20.h5")) as written:
        # mean density of all matter is 1
        expected = np.sort(known.masses) * files.BOX**3 / known.masses.sum()
        assert np.allclose(np.sort(written["Particle/ParMass"][:]), expected, rtol=1e-6, atol=0)
    for name in ["ic_load-*/initial_condition.h5", "evolve-*/output_z20.h5"]:
        with h5py.File(one(tmp_path / "one", name)) as first, h5py.File(one(tmp_path / "two", name)) as second:
            found = []
            first.visititems(lambda key, item: found.append(key) if isinstance(item, h5py.Dataset) else None)
            particles = [key for key in found if key in ("id", "position_x", "velocity_z") or key.startswith("Particle/")]
            assert len(particles) >= 3
            for key in particles:
                assert np.array_equal(first[key][:], second[key][:]), (name, key)
    assert np.array_equal(spectrum(tmp_path / "one"), spectrum(tmp_path / "two"))


def changed(**header):
    return lambda path: write_gadget(path, files.lattice(N), Gadget(dtype="f8", header=header))


def edited(edit, how=None):
    def write(path):
        path = write_gadget(path, files.lattice(N), how or Gadget(dtype="f8"))
        with h5py.File(path, "r+") as file:
            edit(file)
        return path

    return write


def values(name, row, value, masses=False):
    def edit(file):
        file[f"PartType1/{name}"][row] = value

    return edited(edit, Gadget(dtype="f8", masses=masses))


def counts(**of_types):
    number = np.array([of_types.get(f"type{n}", N**3 if n == 1 else 0) for n in range(6)], "u4")
    return changed(NumPart_Total=number, NumPart_ThisFile=number)


def replaced(name, shape):
    def edit(file):
        del file[name]
        if shape:
            file[name] = np.zeros(shape, "f4")

    return edited(edit)


def cut(path):
    write_gadget(path, files.lattice(N))
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    return path


def foreign(path):
    with h5py.File(path, "w") as file:
        file["temperature"] = np.zeros((4, 4))
    return path


def raw(path):
    np.zeros(5 * N**3, "f4").tofile(path)
    return path


def without_second(path):
    first = write_gadget(path, files.lattice(N), Gadget(files=2))
    path.with_name(f"{path.stem}.1{path.suffix}").unlink()
    return first


def records(snap_format, edit=lambda file: None, **how):
    """A file of records, whose bytes `edit` changes."""

    def write(path):
        path = write_gadget(path, files.lattice(N), Gadget(snap_format=snap_format, **how))
        file = bytearray(path.read_bytes())
        edit(file)
        path.write_bytes(file)
        return path

    return write


def put(at, form, *values):
    return lambda file: struct.pack_into(form, file, at, *values)


def shortened(count):
    def edit(file):
        del file[-count:]

    return edit


# bytes of a format 1 file: header with its marks, and those of positions
HEAD, POS = 264, 12 * N**3 + 8


def without_velocities(file):
    del file[16 + HEAD + 16 + POS + 28 : 16 + HEAD + 16 + POS + 28 + 16 + POS]


def zoomed(edit, **how):
    def write(path):
        path = write_gadget(path, files.zoom(N), Gadget(**how))
        with h5py.File(path, "r+") as file:
            edit(file)
        return path

    return write


def eight_classes_apart(file):
    file["PartType1/Masses"][1] /= 8**4
    file["PartType1/Masses"][2] *= 8**4


def table_of(kind, factor):
    def edit(file):
        table = file["Header"].attrs["MassTable"]
        table[kind] *= factor
        file["Header"].attrs["MassTable"] = table

    return edit


def stars(path):
    files.write_swift(path, files.zoom(N))
    with h5py.File(path, "r+") as file:
        for name in ["NumPart_Total", "NumPart_ThisFile"]:
            counts = file["Header"].attrs[name]
            counts[3] = 7
            file["Header"].attrs[name] = counts
    return path


def masses_times(factor):
    universe = files.lattice(N)
    table = np.zeros(6)
    table[1] = universe.mass * factor
    return changed(MassTable=table)


def positions_in_mpc(path):
    path = write_gadget(path, files.lattice(N), Gadget(kpc=True, units=True, dtype="f8"))
    with h5py.File(path, "r+") as file:
        file["PartType1/Coordinates"][:] /= 1e3
    return path


# what was done to a file, with which options or recipe, and what the one sentence says
MISTAKES = {
    "kpc/h": (lambda path: write_gadget(path, files.lattice(N), Gadget(kpc=True)), {},
              ['"BoxSize" of /Header is 20000 Mpc/h', "box_mpc_h = 20", "1000.000000 times", 'set length_unit: "kpc_h"']),
    "Mpc/h taken for kpc/h": (lambda path: write_gadget(path, files.lattice(N)), {"options": ', length_unit: "kpc_h"'},
                              ['"BoxSize" of /Header is 20 kpc/h', 'set length_unit: "mpc_h"']),
    "unit against option": (lambda path: write_gadget(path, files.lattice(N), Gadget(kpc=True, units=True)),
                            {"options": ', length_unit: "mpc_h"'}, ['"UnitLength_in_cm" is 3.085678e21', "remove that option"]),
    "box without h": (changed(BoxSize=files.BOX / files.H), {}, ['"BoxSize"', "Mpc without h"]),
    "no box": (changed(BoxSize=None), {}, ['"BoxSize"', "missing"]),
    "h": (changed(HubbleParam=0.72), {}, ['"HubbleParam" of /Header is 0.72', "h = 0.7"]),
    "a": (changed(Time=0.05), {}, ['"Time" of /Header is 0.05 (z = 19', "0.04 (z = 24"]),
    "redshift for a": (changed(Time=24.0), {}, ['"Time" of /Header is 24 ', "0.04 (z = 24"]),
    "omega": (changed(Omega0=0.31), {}, ['"Omega0" of /Header is 0.31', "omega_m = 0.3"]),
    "omega of recipe": (changed(), {"omega_m": 0.25}, ['"Omega0" of /Header is 0.3', "omega_m = 0.25"]),
    "lambda": (changed(OmegaLambda=0.0), {}, ['"OmegaLambda" of /Header is 0', "omega_lambda = 0.7"]),
    "no h": (changed(HubbleParam=None), {}, ['"HubbleParam" of /Header is missing', "h = 0.7"]),
    "text": (changed(Omega0="0.3"), {}, ['"Omega0" of /Header is of type', "expected numbers"]),
    "no velocities": (replaced("PartType1/Velocities", None), {}, ['"PartType1/Velocities" is missing', "[4096, 3]"]),
    "short dataset": (replaced("PartType1/Velocities", (4095, 3)), {}, ['"PartType1/Velocities" has shape [4095, 3]', "[4096, 3]"]),
    "identities are floats": (replaced("PartType1/ParticleIDs", (4096,)), {}, ['"PartType1/ParticleIDs" holds float32', "whole"]),
    "truncated": (cut, {}, ["g.hdf5", "truncated: 68432 bytes, expected 136864"]),
    "foreign": (foreign, {}, ["of no known format", '"Header"']),
    "raw": (raw, {}, ["does not begin as HDF5 files do", "um_ic"]),
    "gas": (counts(type0=8), {}, ["8 gas particles (PartType0)", '"comove_ic"']),
    "stars": (counts(type4=64), {}, ["64 particles of PartType4", "expected dark matter, PartType1, 2, 3 or 5"]),
    "sinks": (stars, {}, ["7 particles of PartType3", "expected dark matter, PartType1 or 2"]),
    "no coarser particles": (counts(type2=64), {}, ['"PartType2/Masses" is missing']),
    "no dark matter": (counts(type1=0), {}, ['"NumPart_Total"', "PartType1"]),
    "another mass": (values("Masses", 77, 1.0, True), {},
                     ['"PartType1/Masses" has 1e0 for particle 77 (from 0)', "8ᶜ times the lightest", "spacing doubles"]),
    "mass is NaN": (values("Masses", 77, np.nan, True), {}, ['"PartType1/Masses" has NaN for particle 77 (from 0)']),
    "mass is 0": (values("Masses", 0, 0, True), {}, ['"PartType1/Masses" has 0e0 for particle 0 (from 0)', "positive"]),
    "masses far apart": (edited(eight_classes_apart, Gadget(masses=True)), {}, ["8^8 apart", "at most 8⁷"]),
    "mass of a level": (zoomed(table_of(5, 1.5)), {}, ['"MassTable"[5] is', "96.000000 times", "8ᶜ times the lightest"]),
    "level missing": (zoomed(table_of(5, 1 / 8)), {}, ["mean mass of particles of PartType[1, 2, 5]", "times"]),
    "large identity": (values("ParticleIDs", 4, 1 << 59), {},
                       ['"PartType1/ParticleIDs" has 576460752303423488 for particle 4', "below 2⁵⁹"]),
    "position is NaN": (values("Coordinates", (99, 1), np.nan), {}, ['"PartType1/Coordinates" has particle 99', "y = NaN Mpc/h"]),
    "position outside": (values("Coordinates", (3, 2), 22.6), {}, ["particle 3 (from 0) at z = 22.6 Mpc/h", "expected 0 to 20"]),
    "positions of another unit": (positions_in_mpc, {}, ["positions", "of the box along x", "one unit"]),
    "velocity is NaN": (values("Velocities", (5, 0), np.inf), {}, ['"PartType1/Velocities" has inf for particle 5']),
    "velocities of m/s": (edited(lambda file: file["PartType1/Velocities"].write_direct(file["PartType1/Velocities"][:] * 1e3)),
                          {}, ["times those of the growing mode", "Gadget's convention in m/s"]),
    "one identity twice": (values("ParticleIDs", 9, 8), {}, ["particle identity = 8: belongs to two particles"]),
    "masses of M☉/h": (masses_times(1e10), {}, ['"MassTable"[1]', "10¹⁰ M☉/h"]),
    "masses without h": (masses_times(1 / files.H), {}, ['"MassTable"[1]', "without h"]),
    "masses without baryons": (masses_times(0.85), {}, ["omega_m - omega_b"]),
    "another density": (masses_times(0.5), {}, ["0.500000 times", "check the number of particles"]),
    "second file missing": (without_second, {}, ['"NumFilesPerSnapshot" of /Header is 2', "g.1.hdf5"]),
    "counts differ": (changed(NumPart_Total=np.array([0, 5000, 0, 0, 0, 0], "u4")), {}, ["sums to 4096", "5000"]),
    "records: kpc/h": (records(1, kpc=True), {}, ['"BoxSize" of the header is 20000 Mpc/h', 'set length_unit: "kpc_h"']),
    "records: h": (records(2, put(16 + 4 + 152, "<d", 0.72)), {}, ['"HubbleParam" of the header is 0.72', "h = 0.7"]),
    "records: a is NaN": (records(1, put(4 + 72, "<d", np.nan)), {}, ['"Time" of the header is NaN', "0.04 (z = 24"]),
    "records: gas": (records(1, put(4, "<I", 8)), {}, ["8 gas particles (PartType0)", '"comove_ic"']),
    "records: stars": (records(1, put(4 + 4 * 4, "<I", 8)), {}, ["8 particles of PartType4"]),
    "records: counts": (records(1, put(4 + 4, "<I", 4095)), {},
                        ['block "POS " has 49152 bytes, expected 49140 or 98280 as the header says']),
    "records: masses": (records(1, put(4 + 24 + 8, "<d", 0)), {}, ['block "MASS" is missing', "4096 particles"]),
    "records: mass without h": (records(1, header={"MassTable": np.array([0, files.lattice(N).mass / files.H, 0, 0, 0, 0])}), {},
                                ['"MassTable"[1] of the header', "without h"]),
    "records: header cut": (records(1, lambda file: file.__delitem__(slice(100, None))), {},
                            ["truncated in the header: 100 bytes, expected at least 264"]),
    "records: cut": (records(2, shortened(20000)), {}, ['truncated in block "ID  "', "copy it again"]),
    "records: no identities": (records(1, shortened(8 * N**3 + 8)), {}, ['block "ID  " is missing']),
    "records: no velocities": (records(2, without_velocities), {}, ['block "VEL " is missing']),
    "records: no positions": (records(1, lambda file: file.__delitem__(slice(HEAD, HEAD + POS))), {},
                              ['block "VEL " has 32768 bytes, expected 49152 or 98304']),
    "records: damaged": (records(1, put(HEAD + POS - 4, "<I", 17)), {},
                         ['block "POS " begins with a mark of 49152 bytes and ends with one of 17', "copy it again"]),
    "records: no name": (records(2, put(16 + HEAD, "<I", 12)), {}, ["the name of a block has 12 bytes, expected 8"]),
    "records: position is NaN": (records(1, put(HEAD + 4 + 12 * 99 + 4, "<f", np.nan)), {},
                                 ['block "POS " of type 1 has particle 99', "y = NaN Mpc/h"]),
    "records: velocity": (records(1, put(HEAD + POS + 4 + 12 * 5, "<f", np.inf)), {}, ['block "VEL " of type 1 has inf for particle 5']),
    "records: identity": (records(1, put(HEAD + 2 * POS + 4 + 8 * 4, "<Q", 1 << 59)), {},
                          ['block "ID  " of type 1 has 576460752303423488 for particle 4', "below 2⁵⁹"]),
    "records: second file missing": (records(1, header={"NumFilesPerSnapshot": 2, "NumPart_Total": np.array([0, 8192, 0, 0, 0, 0])}), {},
                                     ['"NumFilesPerSnapshot" of the header is 2', "name.0"]),
    "records: garbage": (lambda path: path.write_bytes(struct.pack("<I", 256) + bytes(range(1, 256)) * 4) and path, {},
                         ["the header begins with a mark of 256 bytes and ends with one of"]),
    "format": (changed(), {"options": ', format: "swift"'}, ["format = gadget", "swift"]),
}


def assert_refused(said, parts):
    """A load has ended with a line that has all parts."""
    text = said.stderr + said.stdout
    assert said.returncode in (3, 4, 6), text
    assert any(all(part in line for part in parts) for line in text.splitlines()), text
    assert "bug" not in text and "panicked" not in text, text


def test_refinement_follows_given_particles(tmp_path):
    known = files.off_lattice(N, left_out=13)
    file = write_gadget(tmp_path / "ics.hdf5", known, Gadget())
    near = known.identity[moved(known.position - files.BOX / 2).max(axis=1) < files.BOX / 8]
    done(tmp_path / "run", file, f", follow: {near.tolist()}", refine="region_of_particles(1)", root=48)
    with h5py.File(one(tmp_path / "run", "ic_load-*/initial_condition.h5")) as read:
        marked = read["id"][:] >> np.uint64(59) & np.uint64(1) == 1
        assert np.array_equal(np.sort(read["id"][:][~marked]), np.sort(near)) and marked.sum() == known.count - len(near)
    # a quarter of the box along each axis, and buffers
    with h5py.File(one(tmp_path / "run", "evolve-*/output_z20.h5")) as written:
        header = json.loads(written["Comove/header"][:].tobytes())
        assert header["snapshot"]["dark_matter"]["not_followed"] == marked.sum()
        patches = len(written["Tree/Corner"])
    done(tmp_path / "all", file, refine="region_of_particles(1)", root=48)
    with h5py.File(one(tmp_path / "all", "evolve-*/output_z20.h5")) as written:
        assert patches < 0.8 * len(written["Tree/Corner"])
    said = run(tmp_path / "bad", file, f", follow: {[*near.tolist(), 77_777_777]}")
    assert_refused(said, ["ics.hdf5", "follow = 77777777: no particle of the lightest mass has this identity"])


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_named(tmp_path, mistake):
    write, values, expected = MISTAKES[mistake]
    said = run(tmp_path / "run", write(tmp_path / "g.hdf5"), **values)
    assert_refused(said, [*expected, "hdf5"])


@pytest.mark.parametrize(("factor", "why"), [(np.sqrt(files.A), "look like v_pec in km/s"), (1 / np.sqrt(files.A), "dx/dt = v_pec/a")])
def test_velocities_of_another_convention_need_trust(tmp_path, factor, why):
    known = files.lattice(N)
    known.velocity *= factor
    file = write_gadget(tmp_path / "g.hdf5", known)
    refused = run(tmp_path / "run", file)
    said = refused.stderr + refused.stdout
    assert refused.returncode == 4 and "times those of the growing mode" in said and why in said, said
    assert why in done(tmp_path / "trust", file, ', trust: "a test"')
