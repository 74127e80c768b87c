"""Writes initial conditions in files as the documentation of Gadget and SWIFT describes them, and the same in comove_ic.

The universe is given by formulae, so that a reader can be compared with them.
"""

import struct
from dataclasses import dataclass, field

import h5py
import numpy as np

H, OMEGA_M, OMEGA_B, OMEGA_L = 0.7, 0.3, 0.045, 0.7
BOX, Z = 20.0, 24.0  # Mpc/h
A = 1 / (1 + Z)
MPC_CM, MSUN_G, CRITICAL = 3.085678e24, 1.98841e33, 27.7536627  # the last in 10¹⁰ M☉/h per (Mpc/h)³


@dataclass
class Universe:
    """Dark matter: comoving positions in Mpc/h, peculiar velocities in km/s, identities, and levels of a zoom: 0 is the finest."""

    position: np.ndarray
    velocity: np.ndarray
    identity: np.ndarray
    level: np.ndarray | None = None

    @property
    def count(self):
        return len(self.identity)

    @property
    def levels(self):
        return np.zeros(self.count, int) if self.level is None else self.level

    @property
    def mass(self):
        """Of a particle of level 0 in 10¹⁰ M☉/h."""
        return OMEGA_M * CRITICAL * BOX**3 / np.sum(8.0**self.levels)

    @property
    def masses(self):
        """Of each particle in 10¹⁰ M☉/h."""
        return self.mass * 8.0**self.levels


def waves(x):
    """Displacements in Mpc/h: three waves along each axis."""
    phase = 2 * np.pi / BOX
    moved = [0.12 * np.sin(phase * (x[:, i] + 2 * x[:, (i + 1) % 3])) + 0.05 * np.sin(phase * 3 * x[:, i] + i) for i in range(3)]
    return np.stack(moved, axis=1)


def growing(moved):
    """Peculiar velocities in km/s of displacements that grow as a, in a universe of matter alone."""
    return moved * A * 100 * np.sqrt(OMEGA_M / A**3 + OMEGA_L)


def lattice(n):
    """A particle for each cell of n³, displaced from its corner; numbered with x fastest."""
    at = np.arange(n) * BOX / n
    z, y, x = np.meshgrid(at, at, at, indexing="ij")
    corners = np.stack([x.ravel(), y.ravel(), z.ravel()], axis=1)
    moved = waves(corners)
    return Universe((corners + moved) % BOX, growing(moved), np.arange(n**3, dtype=np.uint64))


def off_lattice(n, seed=5, left_out=0):
    """A set without lattice: one particle somewhere in each cell of n³, displaced, in random order, with large identities.

    Without the first `left_out` of them, so that their number is no cube.
    """
    random = np.random.default_rng(seed)
    cells = np.stack(np.unravel_index(random.permutation(n**3), (n, n, n)), axis=1)
    start = (cells + random.uniform(0.1, 0.9, (n**3, 3))) * BOX / n
    moved = waves(start)
    identity = (1 << 40) + random.permutation(n**3).astype(np.uint64) * 3
    rows = slice(left_out, None)
    return Universe(((start + moved) % BOX)[rows], growing(moved)[rows], identity[rows])


def zoom(n):
    """Levels of n³, (2n)³ and (4n)³ particles, each in the middle of the one before, displaced from the centres of their cells."""
    centres, levels = [], []
    for level, size in enumerate([n, 2 * n, 4 * n]):
        at = (np.arange(size) + 0.5) / size
        x = np.stack([axis.ravel() for axis in np.meshgrid(at, at, at, indexing="ij")], axis=1)
        off = np.abs(x - 0.5).max(axis=1)
        keep = (off < [0.5, 0.25, 0.125][level]) & (off > [0.25, 0.125, 0][level])
        centres.append(x[keep] * BOX)
        levels.append(np.full(keep.sum(), 2 - level))
    start, level = np.concatenate(centres), np.concatenate(levels)
    moved = waves(start)
    return Universe((start + moved) % BOX, growing(moved), 5 + np.arange(len(level), dtype=np.uint64), level)


# types of the levels of a zoom
TYPES = [1, 2, 5]


@dataclass
class Gadget:
    """How a Gadget file is written; `header` overrides attributes, and None removes one; `one_type` has all levels in PartType1;
    `unwrapped` leaves particles that have moved out of the box where they are.

    Format 3 is HDF5; `order` is that of the bytes in formats 1 and 2.
    """

    snap_format: int = 3
    order: str = "<"
    ids: str = "u8"

    kpc: bool = False
    dtype: str = "f4"
    files: int = 1
    masses: bool = False
    one_type: bool = False
    unwrapped: bool = False
    units: bool = False
    header: dict = field(default_factory=dict)


def name_of(path, n, files):
    return path if files == 1 else path.with_name(f"{path.stem}.{n}{path.suffix}")


def write_gadget(path, universe, how=None):
    """Returns the first file. Lengths in Mpc/h or kpc/h, v_pec/√a in km/s, masses in 10¹⁰ M☉/h."""
    how = how or Gadget()
    length = 1e3 if how.kpc else 1.0
    position = universe.position - BOX * (how.unwrapped & (universe.position > 0.92 * BOX))
    kinds = np.ones(universe.count, int) if how.one_type else np.array(TYPES)[universe.levels]
    for n, rows in enumerate(np.array_split(np.arange(universe.count), how.files)):
        table = np.zeros(6)
        if not (how.masses or how.one_type):
            table[kinds] = universe.masses
        header = {
            "NumPart_ThisFile": np.bincount(kinds[rows], minlength=6).astype("u4"),
            "NumPart_Total": np.bincount(kinds, minlength=6).astype("u4"), "NumPart_Total_HighWord": np.zeros(6, "u4"),
            "MassTable": table, "Time": A, "Redshift": Z, "BoxSize": BOX * length, "NumFilesPerSnapshot": how.files,
            "Omega0": OMEGA_M, "OmegaLambda": OMEGA_L, "HubbleParam": H,
        }
        if how.units:
            header |= {"UnitLength_in_cm": MPC_CM / (1e3 if how.kpc else 1), "UnitMass_in_g": 1e10 * MSUN_G,
                       "UnitVelocity_in_cm_per_s": 1e5}
        header |= how.header
        arrays = {}
        for kind in np.unique(kinds[rows]):
            own = rows[kinds[rows] == kind]
            arrays[kind] = {
                "Coordinates": (position[own] * length).astype(how.dtype),
                "Velocities": (universe.velocity[own] / np.sqrt(A)).astype(how.dtype),
                "ParticleIDs": universe.identity[own].astype(how.ids),
            }
            if table[kind] == 0:
                arrays[kind]["Masses"] = universe.masses[own].astype(how.dtype)
        file = name_of(path, n, how.files)
        if how.snap_format == 3:
            write_hdf5(file, header, arrays)
        else:
            write_records(file, header, arrays, how)
    return name_of(path, 0, how.files)


def write_hdf5(path, header, arrays):
    with h5py.File(path, "w") as file:
        file.create_group("Header").attrs.update({k: v for k, v in header.items() if v is not None})
        for kind, of_type in arrays.items():
            part = file.create_group(f"PartType{kind}")
            for name, values in of_type.items():
                part[name] = values


BLOCKS = {"POS ": "Coordinates", "VEL ": "Velocities", "ID  ": "ParticleIDs", "MASS": "Masses"}


def write_records(path, header, arrays, how):
    """Formats 1 and 2: a record with the header, and one for each array, those of all types in turn."""
    counts, totals = header["NumPart_ThisFile"], header["NumPart_Total"]
    head = struct.pack(
        how.order + "6I6d2d2i6I2i4d2i6Ii60x", *counts, *header["MassTable"], header["Time"], header["Redshift"], 0, 0, *totals, 0,
        header["NumFilesPerSnapshot"], header["BoxSize"], header["Omega0"], header["OmegaLambda"], header["HubbleParam"], 0, 0,
        *header["NumPart_Total_HighWord"], 0,
    )
    blocks = {"HEAD": head}
    for block, name in BLOCKS.items():
        values = [arrays[kind][name] for kind in sorted(arrays) if name in arrays[kind]]
        if values:
            values = np.concatenate(values)
            blocks[block] = values.astype(values.dtype.newbyteorder(how.order)).tobytes()
    with path.open("wb") as file:
        for name, payload in blocks.items():
            mark = struct.pack(how.order + "I", len(payload))
            if how.snap_format == 2:
                named = struct.pack(how.order + "I4sII", 8, name.encode(), len(payload) + 8, 8)
                file.write(named)
            file.write(mark + payload + mark)
            if how.snap_format == 2 and name == "POS ":
                # a block that readers of dark matter have no use for
                file.write(struct.pack(how.order + "I4sIIIfI", 8, b"POT ", 12, 8, 4, 1.0, 4))


def write_swift(path, universe):
    """Lengths in Mpc, masses in 10¹⁰ M☉, both without h; peculiar velocities in km/s. As MUSIC does, z as `Scale-factor`."""
    kinds = np.minimum(universe.levels, 1) + 1  # dark matter, and that of the background
    with h5py.File(path, "w") as file:
        counts = np.bincount(kinds, minlength=7).astype("u8")
        file.create_group("Header").attrs.update(
            NumPart_ThisFile=counts, NumPart_Total=counts, NumPart_Total_HighWord=np.zeros(7, "u4"),
            MassTable=np.zeros(7), BoxSize=np.full(3, BOX / H), NumFilesPerSnapshot=1, Dimension=3, Redshift=Z,
        )
        file["Header"].attrs["Scale-factor"] = Z
        file.create_group("Units").attrs.update({
            "Unit length in cgs (U_L)": MPC_CM, "Unit mass in cgs (U_M)": 1e10 * MSUN_G,
            "Unit time in cgs (U_t)": MPC_CM / 1e5, "Unit current in cgs (U_I)": 1.0, "Unit temperature in cgs (U_T)": 1.0,
        })
        for kind in np.unique(kinds):
            own = kinds == kind
            part = file.create_group(f"PartType{kind}")
            part["Coordinates"] = universe.position[own] / H
            part["Velocities"] = universe.velocity[own].astype("f4")
            part["Masses"] = universe.masses[own] / H
            part["ParticleIDs"] = universe.identity[own]
    return path


def write_comove(path, n):
    """`lattice(n)` as displacements in the format comove_ic."""
    at = np.arange(n) * BOX / n
    z, y, x = np.meshgrid(at, at, at, indexing="ij")
    moved = waves(np.stack([x.ravel(), y.ravel(), z.ravel()], axis=1))
    velocity = growing(moved) * A / 100
    with h5py.File(path, "w") as file:
        file.attrs.update(format="comove-ic", a=A, box_mpc_h=BOX, h=H, omega_m=OMEGA_M)
        for i, axis in enumerate("xyz"):
            file[f"displacement_{axis}"] = moved[:, i].reshape(n, n, n)
            file[f"velocity_{axis}"] = velocity[:, i].reshape(n, n, n)
    return path
