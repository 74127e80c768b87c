"""Every accessor against the files' own numbers, read here with csv, json, h5py and yt."""

import csv
import json
import re
import warnings

import h5py
import numpy as np
import pandas as pd
import pytest
from conftest import HERE, RECIPE

import comove

H, OMEGA_M, BOX_MPC_H = 0.7, 0.3, 4.0


def rows(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def agrees(table, path):
    """Whether a table has the numbers of a CSV file, entry by entry."""
    expected = rows(path)
    assert len(table) == len(expected) > 0
    assert list(table.columns) == list(expected[0])
    for column in table.columns:
        for found, text in zip(table[column], (row[column] for row in expected)):
            assert pd.isna(found) if text in ("", "NaN") else float(found) == float(text), (column, found, text)


@pytest.fixture
def run(computed):
    return computed["seed 1"]


def test_stages_are_those_of_the_ledger(computed):
    started = [one for one in lines(computed.path / "ledger.jsonl") if one["event"] == "stage_started"]
    assert sorted(stage.name for stage in computed) == sorted(one["name"] for one in started)
    assert {stage.folder.name for stage in computed} == {one["folder"] for one in started}
    assert set(computed.table["state"]) == {"done"} and (computed.table["seconds"] >= 0).all()
    assert (computed.name, computed.state, computed.parameters) == ("small", "finished", {})
    assert [run.name for run in computed.runs] in (["seed 1", "seed 2"], ["seed 2", "seed 1"])
    assert "two seeds" in computed.recipe and computed.report.exists()
    assert "seed 1" in computed._repr_html_() and "finished" in repr(computed)
    for stage in computed:
        assert stage.files and all(path.exists() for path in stage.files)


def test_the_index_has_the_stages_of_the_ledger(computed):
    stages = {stage["fingerprint"]: stage for stage in computed.index["stages"]}
    assert computed.index["state"] == "finished" and set(stages) == {stage.fingerprint for stage in computed}
    for stage in computed:
        indexed = stages[stage.fingerprint]
        assert (indexed["name"], indexed["kind"], indexed["state"]) == (stage.name, stage.kind, "done")
        assert indexed["folder"] == stage.folder.name
        files = {file["file"] for file in indexed["files"] if file["kind"] not in ("output", "checkpoint")}
        assert files == {path.name for path in stage.files}


def test_columns_have_descriptions(run):
    table = run.power_spectrum(z=3, species="gas")
    assert set(table.attrs["descriptions"]) == set(table.columns)
    assert "P(k)" in table.attrs["descriptions"]["power_mpc3_h3"]


def test_members_of_steps_have_units_and_descriptions(run):
    steps = run.steps
    units, descriptions = steps.attrs["units"], steps.attrs["descriptions"]
    assert set(descriptions) == set(steps.columns)
    for column, unit in (
        ("dt", "code time"), ("density_max", "code density"), ("gas.kinetic", "code energy"), ("timing.hydro", "s"),
        ("dark_matter.momentum.1", "code momentum"), ("device_bytes", "byte"),
    ):
        assert units[column] == unit
    assert "groups.0" not in units and "each level" in descriptions["groups.0"]


def test_all_columns_are_listed(computed):
    columns = computed.columns.set_index(["file", "name"])
    for key, unit in (
        (("halos", "mass_msun_h"), "M☉/h"), (("halos", "halos[].mass_msun_h"), "M☉/h"), (("steps", "time"), "code time"),
        (("summary", "sums.mass"), "code mass"), (("power_spectrum", "options.species"), ""),
    ):
        assert columns.loc[key, "unit"] == unit and columns.loc[key, "description"]
    for stage in computed.analyses:
        with (stage.folder / "columns.tsv").open(newline="") as file:
            beside = list(csv.DictReader(file, delimiter="\t"))
        for path in stage.files:
            if path.suffix == ".csv" and stage.kind not in ("measure", "combine"):
                kind = comove.tables.FileName.of(path.name).kind
                names = {row["name"] for row in beside if row["file"] in (path.name, f"{kind}_*.csv")}
                assert names == set(comove.tables.read_table(path).columns)


def test_steps(run):
    records = lines(run.folder / "steps.jsonl")
    steps = run.steps
    assert list(steps.index) == [record["step"] for record in records] and len(steps) > 5
    for name in ("a", "z", "dt", "density_max"):
        assert list(steps[name]) == [record[name] for record in records]
    assert list(steps["timing.hydro"]) == [record["timing"]["hydro"] for record in records]
    assert list(steps["dark_matter.momentum.1"]) == [record["dark_matter"]["momentum"][1] for record in records]
    refined = [record["groups"][1] if len(record["groups"]) > 1 else 0 for record in records]
    assert list(steps["groups.1"].fillna(0)) == refined and max(refined) > 0
    assert steps.attrs["units"]["timing.hydro"] == "s"


def test_outputs_and_snapshots(run):
    outputs = run.outputs
    assert list(outputs["z"]) == [9.5, 3.0]
    for _, output in outputs.iterrows():
        with h5py.File(output["path"]) as file:
            assert file["Comove"].attrs["a"] == output["a"] and file["Comove"].attrs["step"] == output["step"]
        assert run.snapshot(z=output["z"]) == output["path"]
    assert run.snapshot() == outputs["path"].iloc[-1]
    assert len(run.checkpoints) >= 1 and all(path.exists() for path in run.checkpoints["path"])
    with pytest.raises(comove.UnknownStageError, match=r"seed 1: no output at 5; available: z = 9\.5, z = 3"):
        run.snapshot(z=5)


@pytest.mark.parametrize("z, tag", [(9.5, "z9.5"), (3, "z3"), (None, "z3")])
@pytest.mark.parametrize("kind", ["halos", "power_spectrum", "mass_function"])
def test_tables_of_a_run(computed, kind, z, tag):
    for run in computed.runs:
        stage = next(
            one for one in computed.analyses
            if one.kind == kind and run.name in one.name and one.parameters.get("species") != "gas"
        )
        options = {"species": "matter"} if kind == "power_spectrum" else {}
        path = stage.folder / f"{kind}_{tag}.csv"
        if not rows(path):
            assert kind != "power_spectrum" and z == 9.5
            continue
        table = getattr(run, kind)(z=z, **options)
        agrees(table, path)
        assert table.attrs["redshift"] == float(tag[1:]) and table.attrs["stage"] == stage.name
        agrees(stage.table(z=z), path)
        agrees(run.campaign[stage.folder.name].table(z=z), path)
        record = json.loads(path.with_suffix(".json").read_text())
        assert table.attrs["record"]["options"] == record["options"]


def test_the_nearer_of_two_close_outputs_is_taken(copied):
    """As if the outputs were at z = 1.00004 and 1.00001, whose files have these exact names."""
    renamed = {"z9.5": "z1.00004", "z3": "z1.00001"}
    for tag, new in renamed.items():
        for path in copied.glob(f"*/*_{tag}*"):
            path.rename(path.with_name(path.name.replace(f"_{tag}", f"_{new}")))
    ledger, (first, second) = copied / "ledger.jsonl", (1.00004, 1.00001)
    events = lines(ledger)
    for event in events:
        for artefact in event.get("artefacts", []):
            for tag, new in renamed.items():
                artefact["file"] = re.sub(rf"_{tag}(?=[_.])", f"_{new}", artefact["file"])
        if event["event"] == "snapshot_written":
            snapshot = event["snapshot"]
            snapshot["z"] = {9.5: first, 3.0: second}.get(snapshot["z"], snapshot["z"])
    ledger.write_text("".join(f"{json.dumps(event)}\n" for event in events))
    for path in copied.glob("*/result.json"):
        results = json.loads(path.read_text())
        path.write_text(json.dumps([{**one, "z": {9.5: first, 3.0: second}[one["z"]]} for one in results]))
    run = comove.Campaign(copied)["seed 1"]
    outputs, results = run.outputs, next(stage for stage in run.analyses if stage.label == "measure-peak").results()
    assert list(outputs["z"]) == [first, second] == [z for z, _ in results] and results[0][1] != results[1][1]
    halos = next(stage for stage in run.analyses if stage.kind == "halos")
    for n, z in ((0, 1.00004), (1, 1.00001), (0, 1.00003), (0, 1.00008), (1, 1.00002), (1, 1.0)):
        assert run.snapshot(z) == outputs["path"].iloc[n]
        assert run.result("peak", z=z) == results[n][1]
        for table in (run.halos(z), run.mass_function(z), halos.table(z)):
            assert table.attrs["redshift"] == (first, second)[n]
    for read in (run.snapshot, run.halos, halos.table, halos.result):
        with pytest.raises(comove.UnknownStageError):
            read(1.0002)


def test_units(run):
    assert run.halos().attrs["units"] == {
        **{f"{axis}_mpc_h": "Mpc/h" for axis in "xyz"},
        **{f"v{axis}_km_s": "km/s" for axis in "xyz"},
        "mass_msun_h": "Msun/h", "radius_mpc_h": "Mpc/h", "dispersion_km_s": "km/s",
        **{f"mass_{name}_msun_h": "Msun/h" for name in ("200m", "200c", "500c", "vir")},
        **{f"radius_{name}_mpc_h": "Mpc/h" for name in ("200m", "200c", "500c", "vir")},
        **{f"dispersion_{name}_km_s": "km/s" for name in ("200m", "200c", "500c", "vir")},
    }
    spectrum = run.power_spectrum(species="gas")
    assert spectrum.attrs["units"] == {
        "k_h_mpc": "h/Mpc", "power_mpc3_h3": "Mpc**3/h**3", "k_nyquist_h_mpc": "h/Mpc", "shot_noise_mpc3_h3": "Mpc**3/h**3",
    }
    assert (spectrum["shot_noise_mpc3_h3"] == 0).all() and (run.power_spectrum(species="matter")["shot_noise_mpc3_h3"] > 0).all()
    assert run.mass_function().attrs["units"]["dn_dlnm_h3_mpc3"] == "h**3/Mpc**3"


def test_the_shot_noise_of_a_spectrum(run):
    noise = run.power_spectrum(species="matter").attrs["record"]["shot_noise_mpc3_h3"]
    share = 1 - 0.045 / 0.3
    assert noise == pytest.approx(share**2 * BOX_MPC_H**3 / 16**3, rel=1e-6)


def test_spectra_of_several_species_are_told_apart(run):
    both = [run.power_spectrum(z=3, species=species)["power_mpc3_h3"] for species in ("matter", "gas")]
    assert not np.allclose(*both)
    with pytest.raises(comove.AmbiguousStageError, match="species"):
        run.power_spectrum(z=3)
    assert len(run.power_spectrum(z=9.5)) > 0  # one stage has this redshift
    with pytest.raises(comove.UnknownStageError, match=r"no power_spectrum, species = dark_matter; available: .*done"):
        run.power_spectrum(species="dark_matter")


def test_profiles(run):
    profiles = run.profiles
    halos = run.halos(z=3)
    assert profiles.index.names == ["z", "halo", "bin"]
    stage = next(one for one in run.analyses if one.kind == "halos")
    for halo in profiles.loc[3.0].index.unique("halo"):
        agrees(profiles.loc[3.0, halo], stage.folder / f"profile_z3_halo{halo}.csv")
    assert set(profiles.loc[3.0].index.unique("halo")) == set(halos["id"][:2])
    assert profiles.attrs["units"]["r_mpc_h"] == "Mpc/h"


def test_catalogues_of_two_stages_are_not_mixed(copied):
    """As if the halos of both seeds were found in the first run."""
    campaign = comove.Campaign(copied)
    first, second = (campaign[f"seed {n}"].folder.name for n in (1, 2))
    ledger = copied / "ledger.jsonl"
    events = ledger.read_text().splitlines()
    events = [line.replace(second, first) if '"kind":"halos"' in line else line for line in events]
    ledger.write_text("".join(f"{line}\n" for line in events))
    run = campaign["seed 1"]
    for read in (run.halos, lambda: run.profiles):
        with pytest.raises(comove.AmbiguousStageError, match="several stages: Halos, seed 1; Halos, seed 2"):
            read()
    assert len(run.halos(name="Halos, seed 2")) == len(comove.Campaign(copied)["Halos, seed 2"].table()) > 0


def test_particles_are_those_of_yt(run):
    yt = pytest.importorskip("yt")
    yt.set_log_level("error")
    data = run.yt(z=3)
    assert data.current_redshift == pytest.approx(3, rel=1e-12)
    everything = data.all_data()
    identity = everything["io", "particle_index"] if ("io", "particle_index") in data.field_list else None
    particles = run.particles(z=3)
    assert list(particles.index) == list(range(16**3)) and identity is None
    expected = np.column_stack([everything["io", f"particle_position_{axis}"].to_value("Mpccm/h") for axis in "xyz"])
    velocity = np.column_stack([everything["io", f"particle_velocity_{axis}"].to_value("km/s") for axis in "xyz"])
    found = particles[["x_mpc_h", "y_mpc_h", "z_mpc_h"]].to_numpy()
    speed = particles[["vx_km_s", "vy_km_s", "vz_km_s"]].to_numpy()
    # yt has no identities: both are brought to the order of positions
    ours, theirs = np.lexsort(found.T.round(6)), np.lexsort(expected.T.round(6))
    np.testing.assert_allclose(found[ours], expected[theirs], rtol=0, atol=2e-6)  # yt's Mpc differs in the eighth digit
    np.testing.assert_allclose(speed[ours], velocity[theirs], rtol=1e-5)
    mass = everything["io", "particle_mass"].to_value("Msun").sum() * H
    assert particles["mass_msun_h"].sum() == pytest.approx(mass, rel=1e-4)
    critical = 2.77536627e11  # (Msun/h)/(Mpc/h)³
    assert particles["mass_msun_h"].sum() == pytest.approx(critical * (OMEGA_M - 0.045) * BOX_MPC_H**3, rel=1e-3)
    assert particles.attrs["units"]["vx_km_s"] == "km/s" and particles.attrs["redshift"] == pytest.approx(3)


def test_identities_belong_to_their_particles(run):
    """A particle's identity is that of its lattice cell, so an early position is near that cell."""
    moved = run.particles(z=9.5)
    cell = BOX_MPC_H / 16
    lattice = np.stack([np.arange(16**3) % 16, np.arange(16**3) // 16 % 16, np.arange(16**3) // 256], axis=1)
    away = moved[["x_mpc_h", "y_mpc_h", "z_mpc_h"]].to_numpy() / cell - lattice
    away = (away + 8) % 16 - 8
    assert np.abs(away - np.median(away, axis=0)).max() < 4


def test_results(computed):
    for run in computed.runs:
        stage = next(one for one in run.analyses if one.label == "measure-peak")
        written = json.loads((stage.folder / "result.json").read_text())
        assert run.result("peak") == written[-1]["result"] and run.result("peak", z=9.5) == written[0]["result"]
        assert stage.results() == [(one["z"], one["result"]) for one in written]
        assert run.result(stage.name) == written[-1]["result"]
    with pytest.raises(comove.AmbiguousStageError, match=r"'peak': several stages: .*seed 1.*seed 2"):
        computed.result("peak")
    with pytest.raises(comove.UnknownStageError, match=r"no result at 7; available: z = 9\.5, z = 3"):
        run.result("peak", z=7)


def test_observed(run):
    written = lines(run.folder / "observed.jsonl")
    observed = run.observed
    assert len(observed) == len(written)
    steps = observed[observed["hook"] == "on_step"]
    for line in written:
        found = observed[(observed["hook"] == line["hook"]) & (observed["step"] == line["step"])].iloc[0]
        assert found["z"] == line["z"]
        if line["hook"] == "on_step":
            assert (found["peak"], found["at.0"]) == (line["value"]["peak"], line["value"]["at"][0])
        else:
            assert found["value"] == line["value"]
    assert list(steps["peak"]) == list(run.steps.loc[list(steps["step"]), "density_max"])


def test_a_changed_observer_replaces_the_earlier_one(copied):
    run = comove.Campaign(copied)["seed 1"]
    before = run.observed
    with (run.folder / "observed.jsonl").open("a") as file:
        file.write('{"hook":"on_step","by":"0123456789abcdef","step":2,"z":40,"value":{"other":1}}\n')
    after = run.observed
    assert len(after) == (before["hook"] != "on_step").sum() + 1 and after["other"].count() == 1


def test_parameters_and_inputs(computed, run):
    assert run.parameters["run"]["max_level"] == 1 and run.parameters["origin"]["root"] == [16, 16, 16]
    assert [stage.kind for stage in run.inputs] == ["ic_gaussian"]
    kinds = [stage.kind for stage in run.analyses]
    assert sorted(kinds) == ["halos", "mass_function", "measure", "power_spectrum", "power_spectrum", "slice"]
    assert run.summary["steps"] == len(run.steps)
    maps = next(stage for stage in run.analyses if stage.kind == "slice")
    assert maps.figures and next(iter(maps.tables.values())).shape[0] > 0


def test_names_of_stages(computed):
    run = computed["seed 2"]
    assert run.name == "seed 2" and computed[run.folder.name].name == computed[run.fingerprint[:8]].name == "seed 2"
    assert computed["Halos, seed 2"].kind == "halos"
    with pytest.raises(comove.AmbiguousStageError, match=r"'halos': several stages: Halos, seed 1; Halos, seed 2"):
        computed["halos"]
    with pytest.raises(comove.UnknownStageError, match=r"no stage 'seed 3'; available: .*seed 1; seed 2"):
        computed["seed 3"]
    with pytest.raises(comove.CampaignError, match=r"campaign\.json is missing"):
        comove.Campaign(computed.path / run.folder)


def test_parts_of_a_name_select_a_run(copied):
    """As default names have them: `The run, root 16³, seed 1`."""
    ledger = copied / "ledger.jsonl"
    ledger.write_text(ledger.read_text().replace('"name":"seed ', '"name":"The run, root 16³, seed '))
    campaign = comove.Campaign(copied)
    assert campaign["seed 1"].name == "The run, root 16³, seed 1" == campaign["seed 1, root 16³"].name
    with pytest.raises(comove.AmbiguousStageError):
        campaign["root 16³"]


def test_nothing_depends_on_the_names_of_folders(computed, copied):
    ledger = copied / "ledger.jsonl"
    text = ledger.read_text()
    for n, stage in enumerate(computed):
        (copied / stage.folder.name).rename(copied / f"anything {n}")
        text = text.replace(stage.folder.name, f"anything {n}")
    ledger.write_text(text)
    moved, run = comove.Campaign(copied)["seed 1"], computed["seed 1"]
    assert moved.folder.name.startswith("anything")
    for read in (
        lambda run: run.halos(z=3), lambda run: run.mass_function(), lambda run: run.power_spectrum(z=9.5),
        lambda run: run.profiles, lambda run: run.steps, lambda run: run.observed, lambda run: run.particles(z=3),
    ):
        pd.testing.assert_frame_equal(read(moved), read(run))
    assert moved.result("peak") == run.result("peak")


def test_a_later_stage_of_the_same_name_is_taken_with_a_warning(copied):
    campaign = comove.Campaign(copied)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        before = campaign["seed 1"].mass_function()
    campaign = comove.run(RECIPE, dir=copied, bins=10, progress=False)
    assert campaign.parameters == {"bins": "10"}
    with pytest.warns(comove.ComoveWarning, match="2 stages are named '.*seed 1'"):
        after = campaign["seed 1"].mass_function()
    assert after.attrs["record"]["options"]["bins_per_decade"] == 10
    assert before.attrs["record"]["options"]["bins_per_decade"] == 5


def test_a_ledger_is_followed_while_it_grows(copied):
    ledger = copied / "ledger.jsonl"
    whole = ledger.read_bytes()
    campaign = comove.Campaign(copied)
    ends = [n for n, byte in enumerate(whole) if byte == ord("\n")]
    started = next(n for n, line in enumerate(whole.splitlines()) if b'"stage_started"' in line and b'"evolve"' in line)
    ledger.write_bytes(whole[: ends[started] + 40])  # the next line is torn
    assert [run.state for run in campaign.runs] == ["started"] and campaign.state == "open"
    with pytest.raises(comove.UnknownStageError, match="no halos; the recipe has halos"):
        campaign.runs[0].halos()
    ledger.write_bytes(whole)
    assert {run.state for run in campaign.runs} == {"done"}


def test_ledgers_that_cannot_be_read_are_refused(copied):
    ledger = copied / "ledger.jsonl"
    whole = ledger.read_text()
    ledger.write_text('{"version":3,"event":"of a later program"}\n' + whole)
    assert len(comove.Campaign(copied)) > 0
    ledger.write_text(whole[:50] + "\n" + whole)
    with pytest.raises(comove.CampaignError, match=r"ledger\.jsonl: line 1 is not JSON"):
        len(comove.Campaign(copied))
    ledger.write_text('{"version":99,"event":"x"}\n' + whole)
    with pytest.raises(comove.CampaignError, match="line 1 has format 99, this module reads up to 4"):
        len(comove.Campaign(copied))


def test_a_missing_table_is_named(copied):
    campaign = comove.Campaign(copied)
    stage = next(one for one in campaign["seed 1"].analyses if one.kind == "halos")
    (stage.folder / "halos_z3.csv").unlink()
    with pytest.raises(comove.CampaignError, match=r"halos_z3\.csv: missing"):
        campaign["seed 1"].halos()


def test_times_replace_redshifts_in_non_comoving_coordinates(tmp_path):
    run = comove.run(HERE / "tube.rhai", dir=tmp_path / "tube", progress=False).runs[0]
    assert list(run.outputs["t"]) == [0.05, 0.1] and run.snapshot(z=0.05) == run.outputs["path"].iloc[0]
    assert "z" not in run.steps and 0.05 < run.steps["time"].iloc[-1] < 0.1
    assert run.result("mass", z=0.1) == run.result("mass") == pytest.approx(0.5625 / 4)
    maps = next(stage for stage in run.analyses if stage.kind == "slice")
    for t, table in ((0.05, maps.table(z=0.05)), (0.1, maps.table())):
        assert table.attrs["time"] == t
        agrees(table, maps.folder / f"slice_density_t{t}.csv")
    there = r"no table at 0\.07; available kinds: slice_density at t = 0\.05, t = 0\.1"
    with pytest.raises(comove.UnknownStageError, match=there):
        maps.table(z=0.07)
    with pytest.raises(comove.CampaignError, match="the snapshot has no dark matter"):
        run.particles()
