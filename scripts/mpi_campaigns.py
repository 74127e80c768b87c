#!/usr/bin/env python3
"""Whole campaigns under mpiexec: the same bits on any number of processes and across restarts on others, and no hang
however one of the processes ends. `scripts/test-mpi` runs it:

    mpi_campaigns.py COMOVE -- MPIEXEC [OPTION…]

COMOVE is built with MPI. Needs h5py.
"""

import argparse
import glob
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import h5py

# Levels 1 to 3 appear one after the other at steps 20 to 30, and grow at every second step until the end.
RECIPE = """
const STEPS = param("steps", "uniform", "uniform or individual");
const COSMO = cosmology(#{ h: 0.6774, omega_m: 0.3089, omega_b: 0.0486, sigma8: 0.816, n_s: 0.967 });
const IC = ic_gaussian(COSMO, #{ box_mpc_h: 5, cells: 32, z: 30, seed: 42, baryons_only: true });
const RUN = evolve(IC, #{
    z_end: 7.9, max_delta_a: 0.04, time_steps: STEPS,
    max_level: 3, refine: density_above(|level| 4.2 * 1.5 ** level), regrid_every: 2,
    outputs: #{ at_z: [15] }, checkpoints: #{ every_steps: 5, keep: 100 },
});
campaign("mpi", [
    RUN,
    density_pdf(RUN, #{ at_z: "all" }),
    power_spectrum(RUN, #{ level: 1 }),
    halos(RUN, #{ delta: 6, min_cells: 16, centre: "density_weighted", profiles: 3 }),
    slice(RUN, #{ field: "temperature", axis: "y", pixels: 200, patches: true }),
    projection(RUN, #{ field: "density", pixels: 300, center: [4.9, 0.1, 2], width_mpc_h: 2.5, depth_mpc_h: 3 }),
])
"""
ANALYSES = 5
LEVELS = 4
# A mesh of twice as many cells as the root, of which a run keeps some, and the same mesh from a raw file.
MESH_RECIPE = """
const FILE = param("file", "", "a raw file of the mesh");
const COSMO = cosmology(#{ h: 0.6774, omega_m: 0.3089, omega_b: 0.0486, sigma8: 0.816, n_s: 0.967 });
const IC = if FILE == "" {
    ic_gaussian(COSMO, #{ box_mpc_h: 5, cells: [64, 64, 96], root: [32, 32, 48], z: 60, seed: 42, baryons_only: true })
} else {
    ic_load(COSMO, FILE, #{
        box_mpc_h: 5, cells: [64, 64, 96], root: [32, 32, 48], z: 60, format: #{ um_ic: #{ order: "vzyx" } },
        baryons_only: true,
    })
};
const RUN = evolve(IC, #{
    z_end: 50, max_delta_a: 0.04, max_level: 2, refine: density_above(|level| 1.4 * 1.2 ** level), regrid_every: 2,
    checkpoints: #{ every_steps: 1, keep: 100 },
});
campaign("mesh", [RUN])
"""
# Halos of both finders, most of which are across the parts of processes; all that closures read of dark matter.
DARK_RECIPE = """
const GAS = param("gas", true, "whether there is gas");
const COSMO = cosmology(#{ h: 0.6774, omega_m: 0.3089, omega_b: 0.0486, sigma8: 0.816, n_s: 0.967 });
const IC = ic_gaussian(COSMO, #{ box_mpc_h: 4, cells: 32, z: 30, seed: 7, dark_matter: true, gas: GAS });
let seen = |snapshot| #{
    totals: snapshot.totals(), densest: snapshot.densest(), some: snapshot.particles(#{ most: 5 }),
};
const RUN = evolve(IC, #{
    z_end: 5, max_delta_a: 0.04, time_steps: "individual", max_level: 2, refine: particles_above(8),
    outputs: #{ at_z: [7] }, observe: #{ on_output: seen },
});
const FRIENDS = halos(RUN, #{ finder: "fof", at_z: "all", min_particles: 20, profiles: 3 });
const BOTH = if GAS {
    [
        halos(RUN, #{ finder: "peaks", delta: 60, min_cells: 16, profiles: 3 }),
        power_spectrum(RUN, #{ species: "cross" }),
        density_pdf(RUN, #{}),
    ]
} else {
    []
};
campaign("dark", [
    ic_report(IC), RUN, FRIENDS, mass_function(FRIENDS, #{ min_particles: 20 }),
    power_spectrum(RUN, #{ level: 1 }),
    power_spectrum(RUN, #{ species: "dark_matter", name: "dark" }),
    slice(RUN, #{ field: "matter_density", pixels: 200 }),
    projection(RUN, #{ field: "matter_density", pixels: 300 }),
    projection(RUN, #{
        field: "dark_matter_density", pixels: 300, center: [3.9, 0.1, 2], width_mpc_h: 2, depth_mpc_h: 2,
    }),
    measure("seen", RUN, seen),
] + BOTH)
"""
# A rank with so many GiB has room for the root level and some groups of level 1.
LITTLE_MEMORY = "0.01"
# Seconds that a command may take, and that processes may go on after one of them has ended.
PATIENCE, SOON = 180, 10
RESUMABLE = 75


class Launcher:
    """mpiexec, and the program that it starts."""

    def __init__(self, mpiexec, program, folder):
        self.mpiexec, self.program, self.folder = mpiexec, program, folder

    def start(self, ranks, *arguments, last=(), **environment):
        """Starts `ranks` processes; the last one has the arguments `last` as well."""
        command = [self.program, *map(str, arguments)]
        groups = [["-n", str(ranks), *command]]
        if last:
            groups = [["-n", str(ranks - 1), *command], ["-n", "1", *command, *last]]
        line = groups[0] + [word for group in groups[1:] for word in (":", *group)]
        return subprocess.Popen([*self.mpiexec, *line], cwd=self.folder, env=os.environ | environment,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def run(self, ranks, *arguments, **options):
        """Exit code and output of all processes."""
        return ended(self.start(ranks, *arguments, **options))


def ended(process, within=PATIENCE):
    """Exit code and output of what has been started; fails if that takes too long."""
    try:
        output = process.communicate(timeout=within)[0]
    except subprocess.TimeoutExpired:
        for rank in ranks_of(process):
            os.kill(rank, signal.SIGKILL)
        process.kill()
        sys.exit(f"a hang: {process.args} has not ended within {within} s:\n{process.communicate()[0]}")
    return process.returncode, output


def ranks_of(process):
    """The process identifiers of the ranks that an mpiexec has started, by rank."""
    found, parents = {}, {}
    for folder in glob.glob("/proc/[0-9]*"):
        try:
            environment = Path(folder, "environ").read_text(errors="replace").split("\0")
            parents[int(folder[6:])] = int(Path(folder, "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:  # it has ended, or is another user's
            continue
        told = dict(entry.split("=", 1) for entry in environment if "=" in entry)
        rank = told.get("PMI_RANK", told.get("OMPI_COMM_WORLD_RANK"))
        if rank is not None:
            found[int(folder[6:])] = int(rank)

    def descends(identifier):
        while identifier in parents and identifier != process.pid:
            identifier = parents[identifier]
        return identifier == process.pid

    return [identifier for identifier in sorted(found, key=found.get) if descends(identifier)]


def check(holds, what, output=""):
    if not holds:
        sys.exit(f"mpi_campaigns: {what}\n{output}")


def records(campaign):
    """The records of a run's steps, each step once."""
    files = list(campaign.glob("evolve-*/steps.jsonl"))
    lines = files[0].read_text().splitlines(keepends=True) if files else []
    steps = [json.loads(line) for line in lines if line.endswith("\n")]
    return list({step["step"]: step for step in steps}.values())


def digests(campaign):
    """The digest of each dataset of each snapshot, but for that which says who has written it, and when."""
    found = {}
    for path in sorted(campaign.glob("evolve-*/*.h5")):
        with h5py.File(path) as file:
            def note(name, data):
                if "blake3" in data.attrs and name != "Comove/provenance":
                    found[path.name, name] = data.attrs["blake3"]
            file.visititems(note)
    return found


def artefacts(campaign):
    """What the analyses have left, by file."""
    files = [path for path in campaign.glob("*/*") if not path.parent.name.startswith(("evolve-", "ic_gaussian-", "ic_load-"))]
    return {str(path.relative_to(campaign)): path.read_bytes() for path in files}


def outputs(campaign):
    return {key: digest for key, digest in digests(campaign).items() if key[0].startswith("output_")}


def compare(launcher, reference, campaign, what, of=digests, analyses=ANALYSES):
    """Fails unless two campaigns have the same steps, the same bits, and the same files of so many analyses."""
    said = subprocess.run([launcher.program, "diff", reference, campaign], capture_output=True, text=True)
    check(said.returncode == 0, f"{what}: comove diff leaves with {said.returncode}", said.stdout + said.stderr)
    hashes = [[(step["step"], step["state_hash"]) for step in records(one)] for one in (reference, campaign)]
    check(hashes[0] == hashes[1], f"{what}: steps have other state hashes")
    one, other = of(reference), of(campaign)
    differing = sorted(key for key in one.keys() | other.keys() if one.get(key) != other.get(key))
    check(one and not differing, f"{what}: datasets differ: {differing}")
    one, other = artefacts(reference), artefacts(campaign)
    folders = {Path(name).parent for name in one}
    check(len(folders) == analyses, f"{what}: {len(folders)} analyses and not {analyses}")
    differing = sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))
    check(not differing, f"{what}: results of analyses differ: {differing}")


def same_bits(launcher, recipe):
    """On 1 to 4 processes, with one thread or two; returns what later tests compare with."""
    references = {}
    # More processes than cores take their time: MPI waits busily. So each number of them has one kind of steps, and `restarts`
    # has individual ones on 2. Threads are tested with both kinds in sim/tests/integration/bits.rs.
    for steps, teams in (("uniform", ((1, 1), (1, 2), (2, 1), (4, 1))), ("individual", ((1, 1), (3, 1)))):
        for ranks, threads in teams:
            campaign = launcher.folder / f"{steps}-{ranks}-{threads}"
            began = time.monotonic()
            code, output = launcher.run(ranks, "run", recipe, "-p", f"steps={steps}", "--threads", threads,
                                        "--dir", campaign)
            took = time.monotonic() - began
            check(code == 0, f"{campaign.name}: exit code {code}", output)
            check(output.count("campaign \"mpi\"") == 1, f"{campaign.name}: not said once", output)
            reference = references.setdefault(steps, campaign)
            compare(launcher, reference, campaign, campaign.name)
            print(f"{steps} steps, {ranks} processes with {threads} threads: the same bits, {took:.1f} s", flush=True)
        deepest = max(len(step["groups"]) for step in records(references[steps]))
        check(deepest == LEVELS, f"{steps}: the run has {deepest} levels, {LEVELS} are to be tested")
    return references


def raw_copy(mesh, path):
    """Writes a mesh as GAMER's UM_IC: total energies."""
    with h5py.File(mesh) as file:
        density, *momentum, energy = (file[name][()] for name in (
            "density", "momentum_x", "momentum_y", "momentum_z", "internal_energy"))
    energy += 0.5 * sum(p * p for p in momentum) / density
    path.write_bytes(b"".join(field.tobytes() for field in (density, *momentum, energy)))


def initial_conditions(launcher):
    """Mesh, audit and run of an initial condition that processes share, generated and loaded; and a file cut short."""
    recipe, raw = launcher.folder / "mesh.rhai", launcher.folder / "UM_IC"
    recipe.write_text(MESH_RECIPE)
    for kind, arguments in (("generated", ()), ("loaded", ("-p", f"file={raw}"))):
        meshes, audits = [], []
        for ranks in (1, 2, 3):
            campaign = launcher.folder / f"mesh-{kind}-{ranks}"
            code, output = launcher.run(ranks, "run", recipe, *arguments, "--threads", 1, "--dir", campaign)
            check(code == 0, f"{campaign.name}: exit code {code}", output)
            compare(launcher, launcher.folder / f"mesh-{kind}-1", campaign, campaign.name, analyses=0)
            meshes.append(next(campaign.glob("ic_*/initial_condition.h5")))
            audits.append(next(campaign.glob("evolve-*/audit.json")).read_text())
        kept = json.loads(audits[0])["levels"][1]
        check(kept["cells_kept"] > 0 and kept["cells_removed"] > 0, f"{kind}: the run keeps some of level 1: {kept}")
        check(len({mesh.read_bytes() for mesh in meshes}) == 1, f"{kind}: the mesh's file depends on processes")
        check(len(set(audits)) == 1, f"{kind}: the audit depends on processes")
        if kind == "generated":
            raw_copy(meshes[0], raw)
    with open(raw, "r+b") as file:
        file.truncate(1000)
    for ranks in (1, 3):
        code, output = launcher.run(ranks, "run", recipe, "-p", f"file={raw}", "--dir", f"short-{ranks}")
        check(code == 4 and output.count("1000 bytes, expected") == 1, f"a raw file cut short: exit code {code}", output)
    print("initial conditions, generated and loaded on 1 to 3 processes: the same bits", flush=True)


def dark_matter(launcher):
    """Snapshots with dark matter, analysed on 1 to 3 processes."""
    recipe = launcher.folder / "dark.rhai"
    recipe.write_text(DARK_RECIPE)
    for gas, counts, analyses in (("true", (1, 2, 3), 12), ("false", (1, 2), 9)):
        reference = launcher.folder / f"dark-{gas}-1"
        for ranks in counts:
            campaign = launcher.folder / f"dark-{gas}-{ranks}"
            began = time.monotonic()
            code, output = launcher.run(ranks, "run", recipe, "-p", f"gas={gas}", "--threads", 1, "--dir", campaign)
            took = time.monotonic() - began
            check(code == 0, f"{campaign.name}: exit code {code}", output)
            compare(launcher, reference, campaign, campaign.name, analyses=analyses)
            print(f"dark matter, gas {gas}, {ranks} processes: the same bits, {took:.1f} s", flush=True)
        tables = {path: len(path.read_text().splitlines()) for path in reference.glob("halos-*/halos_*.csv")}
        check(tables and min(tables.values()) > 3, f"gas {gas}: few halos are compared: {tables}")


def until(process, campaign, step):
    """Waits until a run has taken this step."""
    while process.poll() is None and len(records(campaign)) < step:
        time.sleep(0.02)
    if process.poll() is not None:
        check(False, f"{campaign.name}: it has ended before it was stopped at step {step}", ended(process)[1])


def stop(launcher, process, campaign, how, at):
    """Sends `how`: a signal, and whom it reaches; returns exit code, output and the seconds that it took to end."""
    until(process, campaign, at)
    number, whom = how
    os.kill(process.pid if whom == "mpiexec" else ranks_of(process)[whom], number)
    began = time.monotonic()
    code, output = ended(process, PATIENCE if number != signal.SIGKILL else SOON)
    return code, output, time.monotonic() - began


def restarts(launcher, recipe, references):
    """Killed on 2 processes, stopped on 3, ended on 1: as if nobody had."""
    rounds = [(1, signal.SIGTERM), (0, signal.SIGINT), (1, signal.SIGUSR2)]
    for n, (victim, number) in enumerate(rounds):
        campaign = launcher.folder / f"restarted-{n}"
        first = launcher.start(2, "run", recipe, "-p", "steps=individual", "--dir", campaign)
        code, output, took = stop(launcher, first, campaign, (signal.SIGKILL, victim), 20 + n)
        check(code not in (0, RESUMABLE), f"rank {victim} was killed: exit code {code}", output)
        print(f"rank {victim} of 2 killed: exit code {code} after {took:.1f} s", flush=True)
        # the records of steps that are taken again stay until then
        done = records(campaign)[-1]["step"]
        second = launcher.start(3, "resume", campaign)
        code, output, took = stop(launcher, second, campaign, (number, 0), max(24, done + 2))
        name = signal.Signals(number).name
        check(code == RESUMABLE and f"stopped by {name}" in output, f"{name} to rank 0: exit code {code}", output)
        last = records(campaign)[-1]["step"]
        check(list(campaign.glob(f"evolve-*/checkpoint_{last:06}.h5")), f"{name}: step {last} was not saved", output)
        code, output = launcher.run(1, "resume", campaign)
        check(code == 0, f"continued after {name}: exit code {code}", output)
        compare(launcher, references["individual"], campaign, f"killed, and stopped by {name}", of=outputs)
        print(f"continued on 3 processes, stopped by {name}, continued on 1: the same bits", flush=True)
    # a follower leaves requests to the first rank, which has got none
    campaign = launcher.folder / "unimpressed"
    process = launcher.start(2, "run", recipe, "--dir", campaign)
    code, output, _ = stop(launcher, process, campaign, (signal.SIGTERM, 1), 10)
    check(code == 0, f"SIGTERM to rank 1 alone: exit code {code}", output)


def out_of_memory(launcher, recipe, references):
    """Of all ranks, and of the last one alone."""
    for name, everyone, last in (("all", ["--memory", LITTLE_MEMORY], ()), ("last", [], ["--memory", LITTLE_MEMORY])):
        campaign = launcher.folder / f"memory-{name}"
        code, output = launcher.run(2, "run", recipe, "--dir", campaign, *everyone, last=last)
        check(code == 8 and output.count("not enough memory to refine level") == 1, f"no memory on {name}: exit code {code}", output)
        step = records(campaign)[-1]["step"]
        check(f"checkpoint_{step:06}.h5 was written" in output, f"no memory on {name}: nothing is saved", output)
        code, output = launcher.run(2, "resume", campaign)
        check(code == 0, f"continued with more memory: exit code {code}", output)
        compare(launcher, references["uniform"], campaign, f"no memory on {name}", of=outputs)
    print("a rank without memory: a checkpoint, and the same bits with more", flush=True)


def errors(launcher, recipe, references):
    """Said once, by exit codes as without MPI."""
    (launcher.folder / "wrong.rhai").write_text(RECIPE.replace("max_level", "max_levl"))
    (launcher.folder / "stop.rhai").write_text(
        RECIPE.replace("max_level: 3", "max_level: 3, stop_when: |step| step.nothing > 3"))
    snapshot = next(references["uniform"].glob("evolve-*/output_z15.h5"))
    nowhere = {"COMOVE_PHASES": "/nowhere/phases"}  # a panic of the first rank
    cases = [
        (["run", "wrong.rhai"], 3, "did you mean", {}),
        (["run", "stop.rhai", "--dir", "stop"], 3, "step.nothing", {}),
        (["run", "missing.rhai"], 2, "no such recipe", {}),
        (["run", recipe, "--jobs", "2"], 2, "--jobs 2: the 2 MPI processes compute one stage at a time; remove --jobs", {}),
        (["run", "--wrong"], 2, "unexpected argument", {}),
        (["run", recipe, "--device", "cuda:99", "--dir", "device"], 8, "cuda:99", {}),
        (["run", recipe, "--dir", "device"], 8, "rank 1: ", {"last": ["--device", "cuda:99"]}),
        (["run", recipe, "--dir", "panic"], 101, "a file for phases", nowhere),
        (["resume", "missing"], 4, "not a campaign folder", {}),
        (["plan", recipe], 0, "left to do", {}),
        (["--help"], 0, "Usage:", {}),
        (["run", "--help", recipe], 0, "uniform or individual", {}),
        # these have a process of their own read the snapshots
        (["inspect", snapshot], 0, "every digest matches", {}),
        (["diff", snapshot, snapshot], 0, "", {}),
    ]
    for arguments, expected, says, options in cases:
        code, output = launcher.run(2, *arguments, **options)
        what = f"{' '.join(map(str, arguments))} {options or ''}"
        check(code == expected, f"{what}: exit code {code} and not {expected}", output)
        check(not says or output.count(says) == 1, f"{what}: not said once: {says}", output)
    print("errors are said once, and end all processes", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("comove", type=Path)
    parser.add_argument("mpiexec", nargs="+")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        launcher = Launcher(arguments.mpiexec, arguments.comove.resolve(), Path(folder))
        recipe = launcher.folder / "mpi.rhai"
        recipe.write_text(RECIPE)
        initial_conditions(launcher)
        dark_matter(launcher)
        references = same_bits(launcher, recipe)
        errors(launcher, recipe, references)
        out_of_memory(launcher, recipe, references)
        restarts(launcher, recipe, references)


if __name__ == "__main__":
    main()
