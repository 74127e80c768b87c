"""Mass functions of a campaign against Tinker et al. 2008 and Despali et al. 2016 by colossus (Diemer 2018, ApJS 239, 35).

    pip install colossus
    comove run recipes/lcdm_two_species.rhai -p root=256 -p box=100 --dir two
    python scripts/compare_mass_function.py two

Prints, for every mass function of the folder, the number of halos over the predicted one in each bin from 300 particles on
and in all of them together, with the errors of Poisson statistics. The linear spectrum is that of Eisenstein & Hu 1998, as
the recipe's. Friends of friends are compared with Tinker's 200m.
"""

import json
import pathlib
import sys

import numpy as np
from colossus.cosmology import cosmology
from colossus.lss import mass_function

LEAST_PARTICLES = 300
MODELS = {"tinker08": "Tinker 08", "despali16": "Despali 16"}


def expected(model, definition, redshift, low, high, volume):
    """Halos between two masses, or NaN where the model has none for the definition."""
    masses = np.geomspace(low, high, 17)
    if definition == "fof":
        definition = "200m" if model == "tinker08" else None
    try:
        found = mass_function.massFunction(
            masses, redshift, mdef=definition, model=model, q_out="dndlnM", ps_args={"model": "eisenstein98"}
        )
    except Exception:
        return np.nan
    return volume * np.trapezoid(found, np.log(masses))


def row(label, halos, predictions):
    """A line: halos, and their ratio to each prediction with the square root of the number as its error."""
    cells = []
    for prediction in predictions:
        ratio, error = halos / prediction, np.sqrt(halos) / prediction
        cells.append(f"{ratio:.3f} ± {error:.3f}" if np.isfinite(ratio) else "")
    print(label.ljust(22), f"{halos:d}".rjust(7), *(cell.rjust(16) for cell in cells))


def compare(found):
    definition, redshift = found["options"]["definition"], found["redshift"]
    background = found["cosmology"]
    cosmology.setCosmology(
        "run",
        flat=True,
        H0=100 * background["h"],
        Om0=background["omega_m"],
        Ob0=background["omega_b"],
        sigma8=background["sigma8"],
        ns=background["n_s"],
        Tcmb0=background["t_cmb_k"],
        relspecies=False,
    )
    redshift = 0.0 if abs(redshift) < 1e-9 else redshift
    print(f"\n{definition}, z = {redshift:.4g}".ljust(23), "halos".rjust(7), *(name.rjust(16) for name in MODELS.values()))
    particle = found["particle_mass_msun_h"] or 0.0
    total, all_expected = 0, np.zeros(len(MODELS))
    for one in found["bins"]:
        low, high = one["low_msun_h"], one["high_msun_h"]
        # an edge that is hit but for round-off is hit
        if low * (1 + 1e-9) < LEAST_PARTICLES * particle:
            continue
        predictions = [
            expected(model, definition, redshift, low, high, found["volume_mpc3_h3"]) for model in MODELS
        ]
        row(f"{np.log10(low):.2f} to {np.log10(high):.2f}", one["halos"], predictions)
        total, all_expected = total + one["halos"], all_expected + predictions
    row("all", total, all_expected)


def main(folder):
    files = sorted(pathlib.Path(folder).glob("mass_function*/mass_function_z*.json"))
    if not files:
        sys.exit(f"{folder}: no mass functions")
    for file in files:
        compare(json.loads(file.read_text()))


if __name__ == "__main__":
    main(sys.argv[1])
