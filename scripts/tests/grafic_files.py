"""Writes folders of GRAFIC files as the documentation of RAMSES describes them, of the universe of gadget_files.

A file is a sequence of Fortran records, each between two lengths of four bytes: np1, np2, np3, dx, xoff, yoff, zoff, astart,
omega_m, omega_v, h0; then np3 planes of np1·np2 numbers of 32 bits.
"""

import gadget_files as universe
import numpy as np
from gadget_files import A, BOX, H, OMEGA_B, OMEGA_L, OMEGA_M


def write(path, values, first=(0, 0, 0), width=None, order="<", header=None):
    """Writes values `[z, y, x]` on a mesh of cells of `width` Mpc/h, of which the first cell is at `first`."""
    n = values.shape[::-1]
    dx = (width or BOX / n[0]) / H
    numbers = {"dx": dx, "x": first[0] * dx, "y": first[1] * dx, "z": first[2] * dx, "a": A, "omega_m": OMEGA_M,
               "omega_v": OMEGA_L, "h0": 100 * H} | (header or {})

    def record(data):
        length = np.array([len(data)], order + "i4").tobytes()
        return length + data + length

    with open(path, "wb") as file:
        file.write(record(np.array(n, order + "i4").tobytes() + np.array(list(numbers.values()), order + "f4").tobytes()))
        for plane in values:
            file.write(record(plane.astype(order + "f4").tobytes()))


def centres(shape, first=(0, 0, 0), width=None):
    """Centres of cells in Mpc/h, x fastest."""
    width = width or BOX / shape[0]
    along = [(first[i] + np.arange(shape[i]) + 0.5) * width for i in range(3)]
    z, y, x = np.meshgrid(*along[::-1], indexing="ij")
    return np.stack([x.ravel(), y.ravel(), z.ravel()], axis=1)


def write_mesh(folder, shape, first=(0, 0, 0), width=None, positions=True, gas=False, **how):
    """Dark matter, and gas, on a mesh; returns positions in Mpc/h, velocities in km/s and density contrast."""
    folder.mkdir(exist_ok=True)
    start = centres(shape, first, width)
    moved = universe.waves(start)
    speed = universe.growing(moved)
    mesh = shape[::-1]
    for i, axis in enumerate("xyz"):
        write(folder / f"ic_velc{axis}", speed[:, i].reshape(mesh), first, width, **how)
        if positions:
            write(folder / f"ic_posc{axis}", moved[:, i].reshape(mesh), first, width, **how)
        if gas:
            write(folder / f"ic_velb{axis}", speed[:, i].reshape(mesh), first, width, **how)
    if gas:
        write(folder / "ic_massc", np.full(mesh, 1 - OMEGA_B / OMEGA_M), first, width, **how)
    step = 1e-4
    delta = -sum((universe.waves(start + step * np.eye(3)[i]) - moved)[:, i] / step for i in range(3))
    write(folder / "ic_deltab", delta.reshape(mesh), first, width, **how)
    return (start + moved) % BOX, speed, delta


def nested(n):
    """Cells and first cell of meshes of n³ cells, of n³ in the middle, and of n × n × n/2 in the middle of that."""
    return [((n, n, n), (0, 0, 0)), ((n, n, n), (n // 2,) * 3), ((n, n, n // 2), (3 * n // 2, 3 * n // 2, 3 * n // 2 + 2))]


def write_zoom(folder, n, **how):
    """Nested meshes; returns positions, velocities and levels of particles."""
    folder.mkdir(exist_ok=True)
    meshes = nested(n)
    all_of = [[], [], []]
    for level, (shape, first) in enumerate(meshes):
        width = BOX / n / 2**level
        x, v, _ = write_mesh(folder / f"level_{level + 4:03}", shape, first, width, **how)
        keep = np.ones(len(x), bool)
        if level < 2:
            cell = centres(shape, first, width) / width * 2
            finer, lower = map(np.array, meshes[level + 1])
            upper = lower + finer
            keep = ~((cell > lower) & (cell < upper)).all(axis=1)
        for values, new in zip(all_of, [x[keep], v[keep], np.full(keep.sum(), 2 - level)]):
            values.append(new)
    return [np.concatenate(values) for values in all_of]


SHARE = OMEGA_B / OMEGA_M
