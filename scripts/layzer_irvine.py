"""Residual of the Layzer–Irvine equation d(E + K + W)/d ln a = W of runs with dark matter (docs/equations.md).

    comove run recipes/lcdm_dark_matter.rhai --dir dark
    python scripts/layzer_irvine.py dark

Prints, for every run of the folder, (E + K + W − ∫W d ln a)/|W| less its value in the second step, at some redshifts: K is the
kinetic energy of particles and gas, E the gas's thermal one, less what its scheme, floors and regrids have added.
"""

import json
import math
import pathlib
import sys


def energies(records):
    """ln a, E + K and W at the middle of every step, where the potential is solved."""
    before = None
    for record in records:
        if not record.get("dark_matter") or not record.get("potential"):
            return
        ledger, potential = record["ledger"], record["potential"]
        added = sum(ledger[name] for name in ("entropy_energy", "floor_energy", "regrid_energy"))
        added += sum(ledger.get("sources", {}).values())
        # records before version 2 have the gas alone in their sums
        of_particles = 0.0 if record.get("version", 0) >= 2 else record["dark_matter"]["kinetic"]
        now = math.log(record["a"]), record["sums"]["energy"] - added + of_particles
        middle = math.log(potential["a"])
        if before:
            part = (middle - before[0]) / (now[0] - before[0])
            yield middle, before[1] + part * (now[1] - before[1]), potential["energy"]
        before = now


for file in sorted(pathlib.Path(sys.argv[1]).glob("*/steps.jsonl")):
    seen = list(energies(map(json.loads, file.open())))
    residuals, integral = [], 0.0
    for (a0, _, w0), (a1, kinetic, w1) in zip(seen, seen[1:]):
        integral += 0.5 * (w0 + w1) * (a1 - a0)
        residuals.append((a1, (kinetic + w1 - seen[0][1] - seen[0][2] - integral) / abs(w1)))
    if not residuals:
        continue
    print(file.parent.name)
    for redshift in (9, 4, 2, 1, 0.5, 0):
        a, residual = min(residuals, key=lambda one: abs(one[0] + math.log(1 + redshift)))
        print(f"  z = {math.exp(-a) - 1:.3f}: {residual:+.5f}")
