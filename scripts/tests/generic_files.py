"""Writes HDF5 files as monofonIC and MUSIC do for `format = generic`, of the universe of gadget_files.

Arrays have indices [x][y][z]; displacements are in box lengths, velocities in km/s divided by the box length in Mpc/h.
"""

import gadget_files as universe
import h5py
import numpy as np
from gadget_files import A, BOX, OMEGA_B, OMEGA_L, OMEGA_M

SHARE = OMEGA_B / OMEGA_M
# boundary cells of MUSIC on each side
BORDER = 4


def centres(shape, first=(0, 0, 0), width=None):
    """Centres of cells in Mpc/h, z fastest."""
    width = width or BOX / shape[0]
    along = [(first[i] + np.arange(shape[i]) + 0.5) * width for i in range(3)]
    return np.stack([axis.ravel() for axis in np.meshgrid(*along, indexing="ij")], axis=1)


def contrast(start):
    """Density contrast of linear theory: −div of displacements."""
    step = 1e-4
    moved = universe.waves(start)
    return -sum((universe.waves(start + step * np.eye(3)[i]) - moved)[:, i] / step for i in range(3))


def of_cells(start):
    """Fields by name: displacements, velocities, density contrast."""
    moved = universe.waves(start)
    fields = {"delta": contrast(start)}
    for i, axis in enumerate("xyz"):
        fields[f"d{axis}"] = moved[:, i] / BOX
        fields[f"v{axis}"] = universe.growing(moved)[:, i] / BOX
    return fields


def known(start):
    """Positions in Mpc/h and peculiar velocities in km/s of particles from these places."""
    moved = universe.waves(start)
    return (start + moved) % BOX, universe.growing(moved)


def write_monofonic(path, n, dtype="f8", fields=("DM_dx", "DM_dy", "DM_dz", "DM_vx", "DM_vy", "DM_vz", "DM_delta"), header=None):
    """Returns positions and velocities of dark matter and the density contrast of gas, z fastest."""
    start = centres((n, n, n))
    values = of_cells(start)
    stated = {"Boxsize": BOX, "astart": A, "Omega_b": OMEGA_B, "Omega_m": OMEGA_M, "Omega_L": OMEGA_L} | (header or {})
    with h5py.File(path, "w") as file:
        file.create_group("Header").attrs.update({name: value for name, value in stated.items() if value is not None})
        for name in fields:
            # the masses of particles have no name of their own
            of_field = values.get(name.split("_")[1], np.ones(n**3))
            file[name] = of_field.reshape(n, n, n).astype(dtype)
    return *known(start), values["delta"]


GAS = ("BA_vx", "BA_vy", "BA_vz", "BA_delta")


def write_music(path, lengths, offsets=None, gas=False, dtype="f8", edit=None):
    """Meshes of these numbers of cells from the first level on, which is the whole box.

    * `offsets`: of each, in cells of the coarser one
    * `edit`: changes the header

    Returns positions and velocities of particles, levels of the zoom (0 is the finest), and the density contrast of the first.
    """
    offsets = offsets or [(0, 0, 0)] * len(lengths)
    levelmin = int(np.log2(lengths[0][0]))
    levelmax = levelmin + len(lengths) - 1
    firsts = [np.zeros(3, int)]
    for offset in offsets[1:]:
        firsts.append(2 * (firsts[-1] + np.array(offset)))
    position, velocity, level_of = [], [], []
    with h5py.File(path, "w") as file:
        header = file.create_group("header")
        header.attrs.update(levelmin=np.uint32(levelmin), levelmax=np.uint32(levelmax))
        for i, axis in enumerate("xyz"):
            header[f"grid_off_{axis}"] = np.array([offset[i] for offset in offsets], "u4")
            header[f"grid_len_{axis}"] = np.array([length[i] for length in lengths], "u4")
        if edit:
            edit(header)
        for level in range(levelmax + 1):
            above = max(level - levelmin, 0)
            length = np.array(lengths[above]) if level >= levelmin else np.full(3, 1 << level)
            first = firsts[above] if level >= levelmin else np.zeros(3, int)
            shape, width = length + 2 * BORDER, BOX / (1 << level)
            fields = of_cells(centres(shape, first - BORDER, width))
            # values of cells at the border must not come through
            inside = np.pad(np.ones(length, bool), BORDER).ravel()
            for name, values in fields.items():
                values = np.where(inside, values, 1e3).reshape(shape).astype(dtype)
                file[f"level_{level:03}_DM_{'rho' if name == 'delta' else name}"] = values
                if gas and name[0] != "d":
                    file[f"level_{level:03}_BA_{name}"] = values
            if gas:
                file[f"level_{level:03}_BA_rho"] = np.where(inside, fields["delta"], 1e3).reshape(shape).astype(dtype)
            if level < levelmin:
                continue
            start = centres(length, first, width)
            keep = np.ones(len(start), bool)
            if level < levelmax:
                lower = firsts[above + 1] * width / 2
                upper = lower + np.array(lengths[above + 1]) * width / 2
                keep = ~((start > lower) & (start < upper)).all(axis=1)
            x, v = known(start[keep])
            position.append(x)
            velocity.append(v)
            level_of.append(np.full(len(x), levelmax - level))
    delta = contrast(centres(lengths[0]))
    return np.concatenate(position), np.concatenate(velocity), np.concatenate(level_of), delta
