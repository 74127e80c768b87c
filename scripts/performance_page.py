"""The page of performance: tables and pictures from the records that `scripts/performance` makes."""

import math
import re
from pathlib import Path
from typing import NamedTuple

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"

# One H200: operations a second in single precision (a fused multiply-add is one), bytes a second of a copy (read and write).
PEAK, BANDWIDTH = 3.0e13, 4.3e12


class Kernel(NamedTuple):
    """A hot kernel and what it must at least do for an item: a group, unless `name` says otherwise."""
    name: str
    # as `rates kernels` calls it
    operation: str
    mesh: str
    # operations (those in double precision count twice) and bytes of device memory; a sweep's bytes are its
    # cells read and written, with ghost cells from the cache
    operations: float
    bytes: float
    # its names in a profile
    profile: str
    gap: str


UNIFORM, LONE = "uniform", "all ghost cells interpolated"
KERNELS = [
    Kernel("sweep x y z", "sweep x y z", UNIFORM, 9.6e6, 2.0e5, r"hydro_sweep_\w+_xyz",
           "sixteen warps per SM; PPM has more operations"),
    Kernel("sweep z y x", "sweep z y x", UNIFORM, 9.6e6, 2.0e5, r"hydro_sweep_\w+_zyx", "the same"),
    Kernel("sweep x y z, all ghost cells interpolated", "sweep x y z", LONE, 1.02e7, 2.5e5, "",
           "unaligned ghost cells through the L2 cache"),
    Kernel("… between two times", "sweep x y z, between times", LONE, 1.04e7, 3.0e5, "",
           "the same, two coarse states"),
    Kernel("redo of a sweep", "redo of a sweep", UNIFORM, 9.6e6, 2.0e5, r"hydro_redo\w+",
           "the same; spread of troubled cells"),
    Kernel("group solve, ghosts from the coarser level", "group solve, ghosts from the coarser level", UNIFORM, 2.8e5, 7.0e4,
           "group_poisson_sine", "barriers between six transforms, four for the faces' parabolas"),
    Kernel("group solve, ghosts from siblings", "group solve, ghosts from siblings", UNIFORM, 2.6e5, 6.6e4, "",
           "barriers between six transforms; two launches"),
    Kernel("root solve of 128³ (a group's share)", "root solve", UNIFORM, 8.6e5, 5.9e5, r"root_\w+",
           "five launches; timed from the host"),
    Kernel("kick", "kick", UNIFORM, 1.02e6, 2.3e5, "gravity_kick", "two divisions and a power per cell, 60 registers"),
    Kernel("signal speed", "signal speed", UNIFORM, 4.1e5, 9.8e4, "signal_speed", "memory"),
    Kernel("slots copied", "slots copied", UNIFORM, 0, 2.0e5, "copy_slots", "memory"),
    Kernel("flux planes summed (a plane)", "flux planes summed", LONE, 1.5e3, 1.8e4, "add_slots", "memory"),
    Kernel("flux planes cleared (a plane)", "flux planes cleared", LONE, 0, 6.1e3, "clear_slots", "memory"),
    Kernel("restriction (a child)", "restriction", UNIFORM, 6e4, 1.1e5, "restrict", "memory"),
    Kernel("flux correction (a face)", "flux correction", LONE, 3.8e4, 1.1e4, "reflux",
           "32 B sectors across x; four dependent reads"),
    Kernel("prolongation (a new group)", "prolongation", UNIFORM, 1.4e6, 1.22e5, "prolong", "look-ups of the coarse cells"),
    Kernel("totals", "totals", UNIFORM, 3.3e5, 8.2e4, "totals", "sums in double precision"),
    Kernel("hash", "hash", UNIFORM, 2.5e5, 9.8e4, "state_hash", "memory"),
    Kernel("mass sheet, all patches refined", "mass sheet", "all patches refined", 6e4, 1.65e5, "mass_sheet",
           "measured on an eighth of the groups"),
    Kernel("mass sheet, no patch refined", "mass sheet", "no patch refined", 1e4, 3.4e4, "", "memory"),
    Kernel("correction added", "correction added", UNIFORM, 4.1e3, 4.9e4, "add_correction", "memory"),
]

# Kernels that are the solvers': hydro with flux correction, restriction and the reduction for the time step; Poisson; kick.
SOLVERS = (r"hydro_\w+|reflux|add_slots|clear_slots|restrict|signal_speed|"
           r"group_poisson_\w+|start_faces|relax_faces|root_\w+|potential_ghosts|mass_sheet|add_correction|face_residual|smooth_\d|"
           r"restrict_residual_\d|prolong_error_\d|solve_coarsest|gravity_kick|max_acceleration")

# GAMER-2: relaxing TVD, single precision, individual steps, the same campaign on an H200 with 16 cores; its
# step is one sweep.
GAMER_2 = {"seconds": 493, "steps": 470, "sweep_updates": 1.85e10}

# The paper's tables 1 and 2 on its CQSE system: all with four streams, one core; µs a group.
PAPER_GROUPS = [("hydro", 177, 2701), ("Poisson", 51, 1230)]
# Its table 3, the same system: seconds a step.
PAPER_COMPONENTS = [
    ["paper, CQSE, GPU", "10.70", "9.74", "1.86", "0.00", "", "0.35", "", "23.19"],
    ["paper, CQSE, one core", "96.88", "131.49", "1.52", "1.34", "", "0.34", "", "232.10"],
]
PAPER_SPEED_UP = 12.19

MISSING = ["not measured", ""]

HYDRO, POISSON = "hydro of a step", "Poisson solve of a level"
GROUP_CELLS = 4096


def page(records):
    """The page's text; its pictures are written on the way."""
    m = records["machine"]
    driver = f" (driver {m['driver']})" if m["driver"] else ""
    gpu = f"One {m['gpu']}{driver}" if m["gpu"] else f"No GPU (device {m['device']})"
    text = ["# Performance", "",
            f"`scripts/performance` measured this ([performance.json](performance.json)): {gpu}, {m['cores']} cores "
            f"of {m['processor'] or 'an unknown processor'}, {m['program']}, scheme "
            f"`{m.get('scheme', 'relaxing_tvd')}`. *Paper*: Schive, Tsai & Chiueh 2010, ApJS 186, 457, sections 3 and 5. "
            "Attempts: notes on the [GPU](notes/gpu.md), [hydrodynamics](notes/hydrodynamics.md), [gravity](notes/gravity.md).", ""]
    if m["quick"]:
        text += ["**The smallest sizes, to see that everything runs: no measurement.**", ""]
    for title, section in SECTIONS:
        text += [f"## {title}", "", *section(records)]
    return "\n".join(text)


# ---------------------------------------------------------------- sections

def campaign(records):
    found, profile = records.get("campaign"), records.get("profile") or {}
    if not found:
        return MISSING
    kinds = [kind for kind in ("individual", "uniform") if kind in found]
    rows = []
    for kind in kinds:
        run = found[kind]
        kernels = profile.get(kind, {}).get("kernels") or {}
        outside = f"{percent(1 - seconds_in(kernels, SOLVERS) / run['seconds'])}" if kernels else "not measured"
        updates, seconds = run["cell_updates"], run["seconds"]
        rows.append([f"{kind} steps", run["steps"], power(updates), f"{seconds:.1f}", power(updates / seconds),
                     f"{run['wall_seconds']:.1f}", outside])
    updates, seconds = GAMER_2["sweep_updates"] / 2, GAMER_2["seconds"]
    rows.append(["GAMER-2, individual steps (given)", GAMER_2["steps"], power(updates), seconds, power(updates / seconds),
                 "", ""])
    rows.append(["paper, one GeForce 8800 GTX", 2608, "", "16 hours", "", "", ""])
    text = ["`recipes/lcdm_100mpc.rhai` from z = 99 to 0.", ""]
    text += table(["", "root steps", "cell updates", "seconds of steps", "cell updates/s",
                   "seconds from start to report", "outside the solvers' kernels"], rows)
    text += ["A cell update is one cell through one step of its level: two sweeps and a Poisson solve; a step of GAMER-2 is one "
             "sweep, half an update. Solver kernels (hydro, Poisson without cuFFT, kick) are timed in a run that waits for every "
             "kernel.", ""]
    ratio = GAMER_2["seconds"] / found[kinds[0]]["wall_seconds"]
    text += [f"GAMER-2 on an H200 takes {ratio:.1f} times as long as this whole campaign, analyses included.", ""]
    levels = max(len(found[kind]["groups"]) for kind in kinds)
    padded = lambda cells: [*cells, *[""] * (levels - len(cells))]
    text += table(["groups at z = 0 on level", *range(levels), "most at a time"],
                  [[f"{kind} steps", *padded(found[kind]["groups"]), found[kind]["most_groups"]] for kind in kinds])
    stages = found[kinds[0]]["stages"]
    text += [f"Seconds by stage ({kinds[0]} steps; some concurrent):", ""]
    return text + table(stages, [[f"{seconds:.1f}" for seconds in stages.values()]])


def launches(records):
    rates = records.get("rates")
    if not rates:
        return MISSING
    groups = sorted({r["items"] for r in rates if r["part"] == "launches"})
    text = ["Hydro: both sweeps of a step, reports, time-step reduction; µs for all groups.", ""]
    text += by_groups(rates, groups, HYDRO, "hydro")
    text += ["Poisson: a refined level's potential in an individual step; µs for all groups.", ""]
    text += by_groups(rates, groups, POISSON, "poisson")
    # enough to fill the GPU, and no more: as the paper's 240 filled its
    many = max(n for n in groups if n <= 512)
    rows = []
    for (name, total, core), operation, parts in zip(PAPER_GROUPS, (HYDRO, POISSON), (2, 5)):
        on = lambda **where: [r["seconds"] / r["items"] / parts for r in rates
                              if r.get("operation") == operation and r["precision"] == "single"
                              and all(r.get(key) == value for key, value in where.items())]
        [gpu], cores = on(part="launches", items=many), on(part="processor")
        shown = [short(1e6 * cores[0]), *(f"{seconds / gpu:.0f}" for seconds in (cores[0], cores[-1]))] if cores else [""] * 3
        rows.append([f"{name}, {many} groups", short(1e6 * gpu), *shown])
        rows.append([f"{name}, the paper (CQSE, Tesla T10)", total, core, f"{core / total:.1f}", ""])
    text += ["µs per group and sweep or solve; the paper's include copies to and from the GPU, and its solver is SOR.", ""]
    return text + table(["", "GPU", "one core", "speed-up over one core",
                         f"over all {records['machine']['cores']}"], rows)


def by_groups(rates, groups, operation, name):
    """A table and a picture of an operation by the number of groups in a launch."""
    rows, lines = [], {"single": [], "double": []}
    for n in groups:
        row = [n]
        for precision, line in lines.items():
            r = record(rates, part="launches", operation=operation, precision=precision, items=n)
            rate = n * GROUP_CELLS / r["seconds"]
            line.append((math.log2(n), rate))
            row += [short(1e6 * r["seconds"]), power(rate)]
        rows.append(row)
    head = ["groups", *(f"{precision}, {what}" for precision in lines for what in ("µs", "cells/s"))]
    # some are too near to others to be told apart
    ticks = [(math.log2(n), n) for n in groups if n not in (128, 4096)]
    series = [(f"{precision} precision", line) for precision, line in lines.items()]
    picture = chart(f"performance-{name}.svg", "groups in a launch", "cells a second", ticks, series)
    return [*table(head, rows), f"![Cells a second by groups: {operation}]({picture})", ""]


def meshes(records):
    rates = [*(records.get("rates") or []), *((records.get("campaign") or {}).get("meshes") or [])]
    found = [r for r in rates if r["part"] == "meshes"]
    if not found:
        return MISSING
    shares = {r["mesh"]: r for r in found if "interpolating" in r}
    # of the campaign's outputs the last one
    for earlier in [name for name in shares if name.startswith("campaign")][:-1]:
        del shares[earlier]
        found = [r for r in found if r["mesh"].split(", ")[0] != earlier]
    uniform = [r for r in rates if r["part"] == "launches" and r["operation"] == HYDRO and r["precision"] == "single"]
    rows = []
    for r in [*uniform[-1:], *found]:
        if "interpolating" in r:
            continue
        name, level = r["mesh"].split(", ")[0], re.search(r"level (\d+)", r["mesh"])
        share = 0.0 if name == "uniform" else 1.0
        if name in shares:
            groups, parts = shares[name]["groups"], shares[name]["interpolating"]
            share = parts[int(level.group(1))] if level else sum(n * part for n, part in zip(groups, parts)) / sum(groups)
        rows.append([r["mesh"], r["items"], percent(share), power(r["items"] * GROUP_CELLS / r["seconds"])])
    text = ["Hydro as above with coarse–fine fluxes; single precision. *Clumps*: four refined levels in 400 spheres. *Campaign*: its "
            "last output. *Between times*: ghost cells from two coarse states. *Interpolating*: groups with interpolated ghost cells.", ""]
    text += table(["mesh", "groups", "interpolating", "cell updates/s"], rows)
    rows = [[name, *(f"{n} ({percent(part)})" for n, part in zip(r["groups"], r["interpolating"]))] for name, r in shares.items()]
    levels = max(len(row) for row in rows) - 1
    return text + table(["groups (interpolating) on level", *range(levels)],
                        [[*row, *[""] * (levels + 1 - len(row))] for row in rows])


COMPONENTS = [("hydro", ["hydro"]), ("Poisson", ["poisson"]), ("kick", ["kick"]), ("time step", ["time_step"]),
              ("flux correction, restriction", ["correction"]), ("regrid", ["regrid"]),
              ("saved state, records", ["save", "records"])]


def components(records):
    runs = [r for r in records.get("redshifts") or [] if r["z"] == 0.88]
    if not runs:
        return MISSING
    rows = []
    for r in runs:
        parts = [sum(r["timing"][part] for part in parts) / r["steps"] for _, parts in COMPONENTS]
        name = r["case"].replace("gpu", "one GPU")
        rows.append([name, *("" if r["case"] == "gpu" else short(part) for part in parts), short(r["seconds"] / r["steps"])])
    text = ["Seconds per root step with individual steps "
            f"({power(runs[0]['cell_updates'] / runs[0]['steps'])} cell updates each); the paper's are uniform.", ""]
    return text + table(["", *(name for name, _ in COMPONENTS), "all"], rows + PAPER_COMPONENTS)


def redshifts(records):
    runs = records.get("redshifts")
    if not runs:
        return MISSING
    by_case = {}
    for r in runs:
        by_case.setdefault(r["case"], {})[r["z"]] = r
    gpu, others = by_case["gpu"], [case for case in ("all cores", "one core") if case in by_case]
    names = {"gpu": "GPU", **{case: f"{next(iter(by_case[case].values()))['threads']} cores" for case in others}}
    if "one core" in names:
        names["one core"] = "one core"
    rate = lambda case, z: by_case[case][z]["cell_updates"] / by_case[case][z]["seconds"]
    ordered = sorted(gpu, reverse=True)
    # a case that ran out of time lacks the last redshifts
    cell = lambda case, z, text: text(rate(case, z)) if z in by_case[case] else ""
    rows = [[z, sum(gpu[z]["groups"]), power(gpu[z]["cell_updates"] / gpu[z]["steps"]),
             *(cell(case, z, power) for case in names),
             *(cell(case, z, lambda other: f"{rate('gpu', z) / other:.1f}") for case in others)]
            for z in ordered]
    steps = ", ".join(f"{next(iter(by_case[case].values()))['steps']} ({name})" for case, name in names.items())
    text = [f"Root steps (individual) from the campaign's outputs, with regrids and records, after the first: {steps}.", ""]
    text += table(["z", "groups", "cell updates a step", *(f"{name}, updates/s" for name in names.values()),
                   *(f"GPU over {names[case]}" for case in others)], rows)
    series = [(f"over {names[case]}", [(n, rate("gpu", z) / rate(case, z)) for n, z in enumerate(ordered) if z in by_case[case]])
              for case in reversed(others)]
    ticks = [(n, f"{z:g}") for n, z in enumerate(ordered)]
    picture = chart("performance-speedup.svg", "redshift", "speed-up of one GPU", ticks, series,
                    [("the paper, at most", PAPER_SPEED_UP)])
    return text + [f"![Speed-up of one GPU by redshift]({picture})", ""]


def refinement(records):
    rows = (records.get("campaign") or {}).get("refinement")
    if not rows:
        return MISSING
    levels = max(len(r["fractions"]) for r in rows)
    padded = lambda cells: [*cells, *[""] * (levels - 1 - len(cells))]
    text = ["Share of the volume on each level. Paper: 10.86% and 0.01% on levels 1 and 2 at z = 9.45.", ""]
    text += table(["z", *(f"level {level}" for level in range(1, levels))],
                  [[f"{r['z']:g}", *padded([percent(share) for share in r["fractions"][1:]])] for r in rows])
    # side by side, so that equal shares can be told apart
    beside = lambda n: 0.02 * (n - (len(rows) - 1) / 2)
    series = [(f"z = {r['z']:g}", [(level + beside(n), share) for level, share in enumerate(r["fractions"])])
              for n, r in enumerate(rows)]
    ticks = [(level, level) for level in range(levels)]
    picture = chart("performance-refinement.svg", "level", "share of the volume", ticks, series)
    return text + [f"![Refinement ratio by level]({picture})", ""]


def kernels(records):
    rates = records.get("kernels")
    if not rates:
        return MISSING
    profile = ((records.get("profile") or {}).get("individual") or {}).get("kernels") or {}
    rows = []
    for kernel in KERNELS:
        by_operations, by_bytes = 1e9 * kernel.operations / PEAK, 1e9 * kernel.bytes / BANDWIDTH
        floor, limit = max((by_operations, "operations"), (by_bytes, "bytes"))
        share = percent(seconds_in(profile, kernel.profile) / seconds_in(profile)) if profile and kernel.profile else ""
        row = [kernel.name, power(kernel.operations), power(kernel.bytes), f"{short(floor, 2)} ({limit})"]
        r = record(rates, operation=kernel.operation, mesh=kernel.mesh)
        if r is None:
            rows.append([*row, "not measured", "", share, kernel.gap])
            continue
        whole = 1e9 * r["seconds"] / r["items"]
        # cuFFT's kernels are not timed
        timed = whole if kernel.operation == "root solve" else 1e9 * sum(r["kernels"].values()) / r["items"]
        rows.append([*row, short(timed), f"{timed / floor:.1f}", share, kernel.gap])
    text = [f"Single precision, {max(r['items'] for r in rates if r['unit'] == 'group')} groups, ns per group or bracketed item. "
            f"Floor: the larger of operations (counted for relaxing TVD) at {power(PEAK)}/s and bytes at {power(BANDWIDTH)}/s "
            "(an H200's; slots are copied in 66 ns there). Share: of the campaign's kernels (individual steps) without "
            "cuFFT's.", ""]
    return text + table(["kernel", "operations", "bytes", "floor", "time", "over floor", "share", "cause of the gap"], rows)


def scaling(records):
    found, weak = records.get("scaling"), records.get("weak_scaling", {})
    if not found:
        return MISSING
    devices = {measured["device"] for measured in [*found.values(), *weak.values()]}
    common = devices.pop() if len(devices) == 1 else ""
    text = ["`scripts/scaling --root N --processes 1 2 --into docs/performance.json` (`--weak` for weak scaling): root steps of the "
            "campaign without outputs and analyses, one process per GPU. *Imbalance*: excess over evenly spread levels, by groups and "
            "their costs; *in sweeps*: excess of the slower GPU's sweeps over the mean."
            + (f" Measured on {common}." if common else ""), ""]
    on = lambda measured: "" if common else f" on {measured['device']}"
    by_root = lambda item: int(item[0])
    largest = max(found.items(), key=by_root)[0]
    for root, measured in sorted(found.items(), key=by_root):
        groups = ", ".join(map(str, measured["runs"][0]["groups"]))
        text += [f"**Strong scaling, root of {root}³**{on(measured)}: groups by level at the end {groups}; "
                 f"{root_steps(measured['runs'])}.", ""]
        text += scaling_table(measured["runs"], by_redshift=root == largest)
    for root, measured in sorted(weak.items(), key=by_root):
        runs = "; ".join(f"{run['root']}³ in {100 * run['root'] / int(root):g} Mpc/h on {run['processes']} ("
                         f"{', '.join(map(str, run['groups']))} groups)" for run in measured["runs"])
        text += [f"**Weak scaling**{on(measured)}: roots of {runs}; {root_steps(measured['runs'])}.", ""]
        text += scaling_table(measured["runs"])
    text += ["Paper: speed-up over as many processor cores 12.19 with one GPU and 10.47 with 16, communication 8–11% with 16 over "
             "Gigabit Ethernet.", ""]
    return text


def root_steps(runs):
    """Seconds of all root steps."""
    return "root steps " + ", ".join(f"{run['all']['seconds']:.1f} s on {run['processes']}" for run in runs)


def scaling_table(runs, by_redshift=True):
    """Runs on several numbers of GPUs, as a whole and by redshift."""
    first = runs[0]
    rate = lambda part: part["updates"] / part["seconds"]
    shared = {"exchanging": "exchange", "imbalance": "imbalance", "in sweeps": "sweep_imbalance"}
    shared = {head: name for head, name in shared.items() if any(run["all"].get(name) is not None for run in runs)}
    several = len(runs) > 2
    rows = []
    for n, part in enumerate([*first["bins"], first["all"]]):
        if not by_redshift and n < len(first["bins"]):
            continue
        name = "all" if n == len(first["bins"]) else f"{part['to']:g}–{part['from']:g}" if part["from"] else f"≥ {part['to']:g}"
        for run in runs[1:]:
            here = [*run["bins"], run["all"]][n]
            speed_up = rate(here) / rate(part)
            efficiency = speed_up * first["processes"] / run["processes"]
            known = [here.get(name) for name in shared.values()]
            count = [run["processes"]] if several else []
            rows.append([name, *count, power(rate(part)), power(rate(here)), f"{speed_up:.2f}", percent(efficiency),
                         *("" if value is None else percent(value) for value in known)])
    there = ["GPUs", "updates/s"] if several else [f"updates/s on {runs[-1]['processes']}"]
    head = ["redshift", *there[:-1], f"updates/s on {first['processes']}", there[-1], "speed-up", "efficiency", *shared]
    return table(head, rows)


SECTIONS = [("The campaign", campaign), ("Several GPUs", scaling), ("Solvers by the number of groups", launches), ("Refined meshes", meshes),
            ("Time by component at z = 0.88", components), ("Speed-up against redshift", redshifts),
            ("Refinement ratio", refinement), ("Kernels: counts, floors, times", kernels)]


# ---------------------------------------------------------------- pieces

def record(records, **wanted):
    """The first record with these members; none if there is none."""
    return next((r for r in records if all(r.get(key) == value for key, value in wanted.items())), None)


def seconds_in(profile, names=r"\w+"):
    """Seconds of the kernels of these names."""
    return 1e-3 * sum(kernel["milliseconds"] for name, kernel in profile.items() if re.fullmatch(names, name))


def table(head, rows):
    line = lambda cells: f"| {' | '.join(str(cell) for cell in cells)} |"
    return [line(head), "|---" * len(head) + "|", *map(line, rows), ""]


def power(value):
    """As 1.97·10¹⁰."""
    if value == 0:
        return "0"
    exponent = math.floor(math.log10(value) + 1e-9)
    raised = str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{value / 10 ** exponent:.2f}·10{raised}"


def short(value, digits=3):
    """In so many digits or more, without an exponent."""
    if value == 0:
        return "0"
    return f"{value:.{max(0, digits - 1 - math.floor(math.log10(value)))}f}"


def percent(share):
    return f"{100 * share:.3g}%" if share < 0.9995 else "100%"


COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"]


def chart(name, x_label, y_label, x_ticks, series, marks=()):
    """Writes lines through points over a logarithmic y axis and gives the picture's place beside the page: `x_ticks` are
    (x, label), `series` (name, [(x, y)]), `marks` horizontal lines (name, y)."""
    width, height, left, right, top, bottom = 720, 420, 78, 190, 20, 56
    values = [y for _, points in series for _, y in points] + [y for _, y in marks]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)) - 1e-9)
    first, last = x_ticks[0][0], x_ticks[-1][0]
    margin = 0.04 * (last - first)
    x = lambda at: left + (at - first + margin) / (last - first + 2 * margin) * (width - left - right)
    y = lambda value: height - bottom - (math.log10(value) - low) / (high - low) * (height - top - bottom)
    decade = lambda n: f"{10.0 ** n:g}" if -4 <= n <= 5 else f'10<tspan dy="-5" font-size="9">{n}</tspan>'
    label = lambda x, y, text, more="": f'<text x="{x:.1f}" y="{y:.1f}"{more}>{text}</text>'
    line = lambda x1, y1, x2, y2, more: f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" {more}/>'
    middle, end = ' text-anchor="middle"', ' text-anchor="end"'

    text = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
            'font-family="sans-serif" font-size="13" fill="#222">', f'<rect width="{width}" height="{height}" fill="white"/>']
    for n in range(low, high + 1):
        text.append(line(left, y(10.0 ** n), width - right, y(10.0 ** n), 'stroke="#ddd"'))
        text.append(label(left - 8, y(10.0 ** n) + 4, decade(n), end))
    for at, tick in x_ticks:
        text.append(line(x(at), height - bottom, x(at), height - bottom + 5, 'stroke="#222"'))
        text.append(label(x(at), height - bottom + 20, tick, middle))
    text.append(f'<rect x="{left}" y="{top}" width="{width - left - right}" height="{height - top - bottom}" fill="none" '
                'stroke="#222"/>')
    text.append(label((left + width - right) / 2, height - 12, x_label, middle))
    text.append(f'<text transform="translate(18 {(top + height - bottom) / 2}) rotate(-90)"{middle}>{y_label}</text>')

    legend = []
    for (title, points), colour in zip(series, COLOURS):
        places = [(x(at), y(value)) for at, value in points]
        stroke = f'stroke="{colour}" stroke-width="2"'
        text.append(f'<polyline points="{" ".join(f"{a:.1f},{b:.1f}" for a, b in places)}" fill="none" {stroke}/>')
        text += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="4" fill="{colour}"/>' for a, b in places]
        legend.append((title, stroke))
    for title, value in marks:
        stroke = 'stroke="#666" stroke-dasharray="5 4"'
        text.append(line(left, y(value), width - right, y(value), stroke))
        legend.append((title, stroke))
    for n, (title, stroke) in enumerate(legend):
        down = top + 14 + 20 * n
        text.append(line(width - right + 14, down, width - right + 34, down, stroke))
        text.append(label(width - right + 40, down + 4, title))
    IMAGES.mkdir(exist_ok=True)
    (IMAGES / name).write_text("\n".join([*text, "</svg>", ""]))
    return f"images/{name}"
