"""Runs: snapshots, records of steps, and the tables of the analyses that read them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from . import snapshots
from .errors import UnknownStageError
from .ledger import read_jsonl
from .stage import Analysis, Stage, ambiguous
from .tables import RECORDS, describe, listed, nearest, read_json, step_units, table_of


class Run(Stage):
    """A run: its snapshots and records, and the tables of the analyses that read it."""

    @property
    def outputs(self) -> pd.DataFrame:
        """Its outputs in the order of time: z (or t), a, step, path."""
        return self._snapshots("output")

    @property
    def checkpoints(self) -> pd.DataFrame:
        """Its checkpoints in the order of time."""
        return self._snapshots("checkpoint")

    @property
    def steps(self) -> pd.DataFrame:
        """The record of every root step so far, by step, in the layout that its `version` names; nested values have dotted
        names: `timing.hydro`, `groups.0`."""
        table = table_of(read_jsonl(self.folder / "steps.jsonl"), "step")
        table.attrs["units"] = step_units(table.columns)
        describe(table, self.campaign._described(RECORDS, "steps"))
        return table

    @property
    def observed(self) -> pd.DataFrame:
        """The values of its observers (`observed.jsonl`) in the order of time: hook, step, z (or t), and each value by
        its dotted name. Of an observer that was changed only the latest version is shown."""
        lines = read_jsonl(self.folder / "observed.jsonl")
        latest = {line["hook"]: line.get("by") for line in lines}
        lines = [line for line in lines if line.get("by") == latest[line["hook"]]]
        lines.sort(key=lambda line: (line["step"], line["hook"]))
        rows = []
        for line in lines:
            value = line.pop("value")
            line.pop("by", None)
            rows.append({**line, **(value if isinstance(value, dict) else {"value": value})})
        return table_of(rows)

    @property
    def summary(self) -> dict[str, Any]:
        """The totals of the run (`summary.json`)."""
        return dict(read_json(self.folder / "summary.json"))

    @property
    def analyses(self) -> list[Analysis]:
        """The stages that read this run, or read what was made of it."""
        reached = {self._record.folder}
        found: list[Analysis] = []
        # an analysis starts after what it reads
        for stage in sorted(self.campaign.analyses, key=lambda stage: stage._record.started):
            if reached.intersection(stage._inputs()):
                reached.add(stage._record.folder)
                found.append(stage)
        return found

    def snapshot(self, z: float | None = None) -> Path:
        """The path of the output at redshift `z` (time, in non-comoving coordinates), by default of the last one."""
        records = [one for one in self._record.snapshots if one.role == "output"]
        found = nearest(records, z, lambda one: one.moment)
        if not found:
            at = f" at {z:g}" if z is not None else ""
            there = listed(one.moment for one in records)
            raise UnknownStageError(f"{self.name}: no output{at}; available: {there}")
        return self.folder / found[-1].file

    def yt(self, z: float | None = None) -> Any:
        """The output at redshift `z` as a yt dataset. Needs yt."""
        return snapshots.yt_dataset(self.snapshot(z))

    def particles(self, z: float | None = None) -> pd.DataFrame:
        """The dark-matter particles of the output at redshift `z`, by identity: comoving positions in Mpc/h, peculiar
        velocities in km/s, masses in Msun/h; code units in non-comoving coordinates."""
        return snapshots.particles(self.snapshot(z))

    def halos(self, z: float | None = None, name: str | None = None, **options: Any) -> pd.DataFrame:
        """The halos at redshift `z`, by default of the last output. `name` (a stage) or options (`finder="fof"`) choose
        between several catalogues."""
        return self._analysed("halos", z, name, options)

    def power_spectrum(self, z: float | None = None, name: str | None = None, **options: Any) -> pd.DataFrame:
        """P(k) at redshift `z`, by default of the last output. `name` (a stage) or options (`species="gas"`) choose
        between several spectra."""
        return self._analysed("power_spectrum", z, name, options)

    def mass_function(self, z: float | None = None, name: str | None = None, **options: Any) -> pd.DataFrame:
        """The halo mass function at redshift `z`, by default of the last output. `name` (a stage) or options
        (`definition="200c"`) choose between several."""
        return self._analysed("mass_function", z, name, options)

    @property
    def profiles(self) -> pd.DataFrame:
        """Radial profiles of halos, indexed by z (or t), halo and bin: `run.profiles.loc[0.0, 1]`."""
        tables: dict[tuple[float, int], pd.DataFrame] = {}
        units: dict[str, str] = {}
        stages = [stage for stage in self.analyses if stage.kind == "halos" and stage.state == "done"]
        if not stages:
            raise UnknownStageError(f"{self.name}: no halos; the recipe has halos(RUN) for profiles")
        made_by: dict[tuple[float, int], Analysis] = {}
        symbol = "z"
        for stage in stages:
            for file, path in stage._tables("profile", None):
                if file.part is None or file.moment is None:
                    continue
                table = stage._read(path)
                units.update(table.attrs["units"])
                symbol = file.moment.symbol
                key = (file.moment.value, int(file.part[len("halo") :]))
                other = made_by.setdefault(key, stage)
                if other.name != stage.name:
                    raise ambiguous([other, stage], f"profiles of {self.name} at {file.moment}")
                tables[key] = _without_attributes(table)
        if not tables:
            return pd.DataFrame()
        joined = pd.concat(tables, names=[symbol, "halo", "bin"])
        joined.attrs["units"] = units
        return joined

    def result(self, name: str, z: float | None = None) -> Any:
        """The result of the measurement or analysis `name` of this run at redshift `z`, by default of the last output."""
        return self.campaign._select(name, self.analyses).result(z)

    def _snapshots(self, role: str) -> pd.DataFrame:
        found = [one for one in self._record.snapshots if one.role == role]
        symbol = next((one.moment.symbol for one in found), "z")
        rows = [
            {symbol: one.moment.value, "a": one.a, "step": one.step, "path": self.folder / one.file} for one in found
        ]
        return pd.DataFrame(rows, columns=[symbol, "a", "step", "path"])

    def _analysed(self, kind: str, z: float | None, name: str | None, options: dict[str, Any]) -> pd.DataFrame:
        """The table of the analysis of this kind that has this redshift, this name and these options."""
        stages = [stage for stage in self.analyses if stage.kind == kind]
        if name is not None:
            stages = [self.campaign._select(name, stages)]
        elif not stages:
            raise UnknownStageError(f"{self.name}: no {kind}; the recipe has {kind}(RUN) for it")
        matching = [stage for stage in stages if all(_has(stage, key, value) for key, value in options.items())]
        tables = [(stage, file, path) for stage in matching for file, path in stage._tables(kind, None)]
        found = nearest(tables, z, lambda one: one[1].moment)
        if not found:
            at = f" at {z:g}" if z is not None else ""
            with_options = "".join(f", {key} = {value}" for key, value in options.items())
            there = [f"{stage.name} ({stage.state}): {stage._moments()}" for stage in stages]
            raise UnknownStageError(f"{self.name}: no {kind}{at}{with_options}; available: {'; '.join(there)}")
        stages = [stage for stage in matching if any(one is stage for one, _, _ in found)]
        stage = self.campaign._one(stages, f"{kind} of {self.name}")
        return stage._read([path for one, _, path in found if one is stage][-1])


def _has(stage: Stage, key: str, value: Any) -> bool:
    """Whether a stage has this option, at any depth: `finder="fof"` also names the variant of an option."""
    defaults = {"species": "matter"}
    for name, found in _options(stage.parameters):
        if name == key:
            return bool(found == value or (isinstance(found, dict) and list(found) == [value]))
    return bool(defaults.get(key) == value)


def _options(parameters: dict[str, Any]) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for key, value in parameters.items():
        found.append((key, value))
        if isinstance(value, dict):
            found.extend(_options(value))
    return found


def _without_attributes(table: pd.DataFrame) -> pd.DataFrame:
    # pandas compares the attributes of what it joins
    table.attrs = {}
    return table
