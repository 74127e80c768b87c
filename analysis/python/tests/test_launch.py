"""Running the program: its events, errors and interrupts."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import zipfile

import pytest
from conftest import HERE, RECIPE

import comove
from comove.errors import error_class
from comove.progress import Progress, RunProgress

ENDLESS = HERE / "endless.rhai"


def recipe(folder, text):
    path = folder / "tried.rhai"
    path.write_text(text)
    return path


def test_parameters_reach_the_recipe(tmp_path):
    text = """
        const N = param("n", 1, "a whole number"); const X = param("x", 0.5, "a real number");
        const ON = param("on", false, "a choice"); const DIR = param("dir", "a", "a text");
        throw `n = ${N}, x = ${X}, on = ${ON}, dir = ${DIR}`;
    """
    with pytest.raises(comove.RecipeError, match=r"n = 3, x = 2\.5, on = true, dir = b c"):
        path = recipe(tmp_path, text)
        comove.run(path, n=3, x=2.5, on=True, parameters={"dir": "b c"}, dir=tmp_path / "campaign", progress=False)


def test_an_error_of_the_recipe_has_its_place_and_code(tmp_path):
    path = recipe(tmp_path, 'campaign("x",\n  [evolve(1)])')
    with pytest.raises(comove.RecipeError, match=r"tried\.rhai:2:\d+: ") as caught:
        comove.run(path, dir=tmp_path / "campaign", progress=False)
    assert caught.value.exit_code == 3 and "^" in str(caught.value) and caught.value.failed == {}


def test_unknown_parameters_and_recipes_are_usage_errors(tmp_path):
    with pytest.raises(comove.UsageError) as caught:
        comove.run(tmp_path / "none.rhai", progress=False)
    assert caught.value.exit_code == 2 and "none.rhai: no such recipe" in str(caught.value)
    with pytest.raises(comove.ComoveError, match="rooot"):
        comove.run(RECIPE, dir=tmp_path / "c", rooot=32, progress=False)


def test_a_failed_stage_is_named_and_warnings_are_not_its_message(tmp_path, monkeypatch):
    (tmp_path / "mesh.um").write_bytes(b"no mesh")
    text = """
        const COSMO = cosmology(#{ h: 0.7, omega_m: 0.3, omega_b: 0.045, sigma8: 0.9, n_s: 0.96 });
        const IC = ic_load(COSMO, "mesh.um", #{ format: #{ um_ic: #{ order: "vzyx", precision: "single" } }, box_mpc_h: 20, cells: 16, z: 49, baryons_only: true, name: "mesh" });
        campaign("x", [evolve(IC, #{ z_end: 48 })])
    """
    monkeypatch.setenv("SLURM_JOB_END_TIME", "tomorrow")
    with pytest.warns(comove.ComoveWarning, match="SLURM_JOB_END_TIME"), pytest.raises(comove.InputError) as caught:
        comove.run(recipe(tmp_path, text), dir=tmp_path / "campaign", progress=False)
    assert list(caught.value.failed) == ["mesh"] and "SLURM" not in str(caught.value)
    assert "mesh.um" in str(caught.value) and caught.value.failed["mesh"] in str(caught.value)
    stage = comove.Campaign(tmp_path / "campaign")["mesh"]
    assert (stage.state, stage.failure, stage.seconds) == ("failed", caught.value.failed["mesh"], None)


def test_further_options_reach_the_program(tmp_path):
    with pytest.raises(comove.UsageError, match="--of-a-later-program"):
        comove.run(ENDLESS, dir=tmp_path / "campaign", options=["--of-a-later-program"], progress=False)


@pytest.mark.parametrize(
    "code, kind",
    [(7, comove.UnphysicalError), (130, comove.Stopped), (-2, comove.Stopped), (-9, comove.ProgramError)],
)
def test_exit_codes(code, kind):
    assert error_class(code) is kind


SCRIPT = """
    import sys
    sys.path.insert(0, {module!r})
    import comove
    try:
        comove.run({recipe!r}, dir={folder!r}, progress=False)
    except KeyboardInterrupt as error:
        print(type(error.__cause__).__name__, error.__cause__.exit_code, flush=True)
        raise
"""


def wait_for(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "timed out"
        time.sleep(0.05)


def steps_of(folder):
    return sum(len(path.read_text().splitlines()) for path in folder.glob("*/steps.jsonl"))


def test_an_interrupt_leaves_a_checkpoint_and_resume_has_the_same_bits(tmp_path):
    """As Ctrl-C in a terminal: the signal goes to the whole process group of Python."""
    folder = tmp_path / "campaign"
    script = textwrap.dedent(SCRIPT).format(module=str(HERE.parent), recipe=str(ENDLESS), folder=str(folder))
    command = [sys.executable, "-c", script]
    # a shell's background jobs ignore interrupts, and what they start would too
    heeds = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)  # noqa: E731
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True, preexec_fn=heeds)
    wait_for(lambda: steps_of(folder) >= 3)
    os.killpg(child.pid, signal.SIGINT)
    said, _ = child.communicate(timeout=60)
    assert said == "Stopped 75\n" and child.returncode == -signal.SIGINT
    campaign = comove.Campaign(folder)
    assert campaign.state == "interrupted" and campaign["long"].state == "started"
    reached = campaign["long"].steps.index[-1]
    assert list(campaign["long"].checkpoints["step"]) == [reached]

    until = int(reached) + 3
    resumed = comove.run(ENDLESS, dir=folder, steps=until, progress=False)["long"]
    whole = comove.run(ENDLESS, dir=tmp_path / "whole", steps=until, progress=False)["long"]
    assert resumed.state == "done" and resumed.steps.index[-1] == until
    assert list(resumed.steps["state_hash"]) == list(whole.steps["state_hash"])


def test_another_process_is_busy_and_stop_ends_it(tmp_path):
    folder = tmp_path / "campaign"
    program = str(comove.find_program())
    child = subprocess.Popen([program, "run", ENDLESS, "--dir", folder, "-q"], stderr=subprocess.PIPE, text=True)
    wait_for(lambda: list(folder.glob("*/steps.jsonl")))
    with pytest.raises(comove.BusyError) as caught:
        comove.resume(folder, progress=False)
    assert caught.value.exit_code == 5 and str(child.pid) in str(caught.value)
    comove.Campaign(folder).stop()
    child.communicate(timeout=60)
    assert child.returncode == 75
    reached = steps_of(folder)

    def stop_once_it_steps():
        wait_for(lambda: steps_of(folder) > reached)
        comove.Campaign(folder).stop()

    with pytest.raises(comove.Stopped) as stopped:
        threading.Thread(target=stop_once_it_steps).start()
        comove.resume(folder, progress=False)
    assert stopped.value.exit_code == 75 and "resume" in str(stopped.value)


def test_progress_bars(tmp_path, capsys):
    pytest.importorskip("tqdm")
    comove.run(ENDLESS, dir=tmp_path / "campaign", steps=3)
    shown = capsys.readouterr().err
    assert "long: 100%" in shown and "step 3" in shown and "stages done: 2" in shown


def test_progress_without_tqdm(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    comove.run(ENDLESS, dir=tmp_path / "campaign", steps=3)
    said = capsys.readouterr()
    assert said.out.splitlines() == ["Initial condition: started", "Initial condition: done", "long: done"]
    assert said.err == ""
    comove.run(ENDLESS, dir=tmp_path / "campaign", steps=3, progress=False)
    assert capsys.readouterr() == ("", "")


def test_the_way_of_a_run_is_counted_in_the_logarithm_of_a():
    run = RunProgress("x", "z", 0.0, None)
    for z, fraction in ((99.0, 0.0), (9.0, 0.5), (0.0, 1.0)):
        run.step({"z": z, "time": 1.0, "step": 1})
        assert run.fraction == pytest.approx(fraction)
    in_time = RunProgress("x", "t", 4.0, None)
    for t, fraction in ((2.0, 0.0), (3.0, 0.5)):
        in_time.step({"time": t, "step": 1})
        assert in_time.fraction == pytest.approx(fraction)


def test_unknown_events_are_ignored():
    progress = Progress(True)
    progress.show({"event": "of a later program", "fingerprint": "f"})
    progress.show({"event": "stage_started", "fingerprint": "f", "folder": "x", "kind": "halos"})
    assert progress.name_of("f") == "halos"
    progress.close()


def program_at(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_where_the_program_is_looked_for(tmp_path, monkeypatch):
    named, installed, on_path = (program_at(tmp_path / place / "comove") for place in ("named", "scripts", "path"))
    monkeypatch.setattr("sysconfig.get_path", lambda name, scheme="": str(installed.parent if not scheme else tmp_path))
    monkeypatch.setenv("PATH", str(on_path.parent))
    monkeypatch.setenv("COMOVE_PROGRAM", str(named))
    assert comove.find_program() == named
    assert comove.find_program(on_path) == on_path
    monkeypatch.delenv("COMOVE_PROGRAM")
    assert comove.find_program() == installed
    installed.unlink()
    assert comove.find_program() == on_path
    on_path.unlink()
    checkout = tmp_path / "checkout"
    monkeypatch.setattr("comove.program.__file__", str(checkout / "analysis/python/comove/program.py"))
    monkeypatch.setenv("CARGO_TARGET_DIR", "target")
    built = program_at(checkout / "target/release/comove")
    with pytest.raises(comove.ProgramNotFoundError, match="set COMOVE_PROGRAM"):
        comove.find_program()
    (checkout / "Cargo.toml").write_text("")
    assert comove.find_program() == built
    monkeypatch.setenv("COMOVE_PROGRAM", str(tmp_path / "none"))
    with pytest.raises(comove.ProgramNotFoundError, match="none: not a program; correct COMOVE_PROGRAM"):
        comove.find_program()


def test_the_wheel_carries_the_program_and_the_crates_version(tmp_path):
    pytest.importorskip("hatchling")
    carried = program_at(tmp_path / "comove")
    environment = {**os.environ, "COMOVE_WHEEL_PROGRAM": str(carried), "COMOVE_WHEEL_PLATFORM": "manylinux_2_28_x86_64"}
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=HERE.parent, env=environment, check=True, capture_output=True)
    packages = json.loads(
        subprocess.run(
            ["cargo", "metadata", "--no-deps", "--format-version", "1", "--offline"],
            cwd=HERE, check=True, capture_output=True, text=True,
        ).stdout
    )["packages"]
    version = next(package["version"] for package in packages if package["name"] == "comove")
    name = f"comove-{version}"
    assert f"\nversion: {version}\n" in (HERE.parents[2] / "CITATION.cff").read_text()
    with zipfile.ZipFile(tmp_path / f"{name}-py3-none-manylinux_2_28_x86_64.whl") as wheel:
        assert wheel.read(f"{name}.data/scripts/comove") == carried.read_bytes()
        assert b"Root-Is-Purelib: false" in wheel.read(f"{name}.dist-info/WHEEL")
        assert {"comove/__init__.py", "comove/py.typed"} <= set(wheel.namelist())
