"""Power spectra of a campaign against HMcode 2020 (Mead et al. 2021, MNRAS 502, 1401).

    pip install camb colossus
    comove run recipes/lcdm_two_species.rhai -p root=256 -p box=200 -p levels=1 -p fixed=true --dir two
    python scripts/compare_power.py two

Prints, for every spectrum of the folder, the mean of P/(P_EH B) in bins of k: P_EH is the linear spectrum that the run
starts from (Eisenstein & Hu 1998), B the non-linear over the linear spectrum by CAMB.
"""

import csv
import json
import pathlib
import sys

import camb
import numpy as np
from colossus.cosmology import cosmology

# as in recipes/lcdm_two_species.rhai
H, OMEGA_M, OMEGA_B, SIGMA8, N_S = 0.6766, 0.3111, 0.04897, 0.8102, 0.9665
BINS = [0.03, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0]


def spectrum(redshift, nonlinear, amplitude):
    """k in h/Mpc and P by CAMB, and sigma8 today."""
    parameters = camb.CAMBparams()
    parameters.set_cosmology(H0=100 * H, ombh2=OMEGA_B * H**2, omch2=(OMEGA_M - OMEGA_B) * H**2, mnu=0)
    parameters.InitPower.set_params(ns=N_S, As=amplitude)
    parameters.set_matter_power(redshifts=sorted({0.0, redshift}, reverse=True), kmax=20)
    parameters.NonLinear = camb.model.NonLinear_both if nonlinear else camb.model.NonLinear_none
    parameters.NonLinearModel.set_params(halofit_version="mead2020")
    results = camb.get_results(parameters)
    k, redshifts, power = results.get_matter_power_spectrum(minkh=1e-3, maxkh=10, npoints=400)
    return k, power[list(redshifts).index(redshift)], results.get_sigma8_0()


def boost(redshift):
    """k and the non-linear over the linear power."""
    amplitude = 2.1e-9
    amplitude *= (SIGMA8 / spectrum(0.0, False, amplitude)[2]) ** 2
    k, linear, _ = spectrum(redshift, False, amplitude)
    return k, spectrum(redshift, True, amplitude)[1] / linear


def main(folder):
    cosmology.setCosmology("run", flat=True, H0=100 * H, Om0=OMEGA_M, Ob0=OMEGA_B, sigma8=SIGMA8, ns=N_S)
    print("spectrum".ljust(34), *(f"{low}-{high}".rjust(9) for low, high in zip(BINS, BINS[1:])))
    for table in sorted(pathlib.Path(folder).glob("power_spectrum-*/power_spectrum_z*.csv")):
        species = json.loads((table.parent / "section.json").read_text())["text"].split("(")[2].split(")")[0]
        redshift = float(table.stem.split("_z")[1])
        rows = list(csv.DictReader(table.open()))
        k, power = (np.array([float(row[name]) for row in rows]) for name in ["k_h_mpc", "power_mpc3_h3"])
        at, ratio = boost(redshift)
        linear = [cosmology.getCurrent().matterPowerSpectrum(x, redshift, model="eisenstein98") for x in k]
        found = power / linear / np.interp(np.log(k), np.log(at), ratio)
        means = [found[(k >= low) & (k < high)] for low, high in zip(BINS, BINS[1:])]
        cells = (f"{mean.mean():.3f}".rjust(9) if len(mean) else "".rjust(9) for mean in means)
        print(f"{species}, z = {redshift:g}".ljust(34), *cells)


main(sys.argv[1])
