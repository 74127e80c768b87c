"""Stages of a campaign, and the tables and results of analyses."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, TypeVar

import pandas as pd

from .errors import AmbiguousStageError, ComoveWarning, UnknownStageError
from .ledger import StageRecord
from .tables import TABLES, FileName, Moment, describe, listed, nearest, read_json, read_table

if TYPE_CHECKING:
    from .campaign import Campaign

AnyStage = TypeVar("AnyStage", bound="Stage")
RESULT = "result.json"
#: A stage's part of the report, which is no result.
SECTION = "section.json"


class Stage:
    """A stage of a campaign."""

    def __init__(self, campaign: Campaign, fingerprint: str):
        self.campaign = campaign
        self.fingerprint = fingerprint

    @property
    def _record(self) -> StageRecord:
        try:
            return self.campaign._history.stages[self.fingerprint]
        except KeyError:
            raise UnknownStageError(f"{self.campaign.path}: the stage {self.fingerprint[:6]} was removed") from None

    @property
    def name(self) -> str:
        """Its name, as `comove plan` shows it."""
        return self._record.name

    @property
    def kind(self) -> str:
        """Its kind: `evolve`, `halos`, ...."""
        return self._record.kind

    @property
    def label(self) -> str:
        """Its kind, with the name of a measurement: `measure-peak`."""
        return self._record.label

    @property
    def folder(self) -> Path:
        """Its folder."""
        return self.campaign.path / self._record.folder

    @property
    def state(self) -> str:
        """`done`, `failed`, or `started`: running, interrupted or killed."""
        record = self._record
        return "done" if record.files is not None else "failed" if record.failure else "started"

    @property
    def failure(self) -> str | None:
        """The reason of its failure."""
        return self._record.failure

    @property
    def seconds(self) -> float | None:
        """Seconds from its latest start to its end."""
        return self._record.seconds

    @property
    def files(self) -> list[Path]:
        """All files that it has made, without snapshots."""
        return [self.folder / file for file in self._record.files or []]

    @property
    def figures(self) -> list[Path]:
        """Its figures."""
        return [path for path in self.files if path.suffix in (".png", ".svg", ".pdf")]

    @property
    def parameters(self) -> dict[str, Any]:
        """The options that decide its results."""
        return dict(self._record.identity.get("parameters") or {})

    @property
    def inputs(self) -> list[Stage]:
        """The stages that it reads."""
        return [stage for stage in self.campaign.stages if stage._made_any(self._inputs())]

    def _inputs(self) -> list[str]:
        return [PurePosixPath(one["file"]).parent.as_posix() for one in self._record.identity.get("inputs") or []]

    def _made_any(self, folders: list[str]) -> bool:
        return self._record.folder in folders

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}, {self.kind}, {self.state}, {self.folder.name}>"


class Analysis(Stage):
    """An analysis or a measurement: its tables and results."""

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """All its tables, by file name without `.csv`."""
        return {path.stem: read_table(path) for path in self.files if path.suffix == ".csv"}

    def table(self, z: float | None = None, kind: str | None = None) -> pd.DataFrame:
        """Its table at redshift `z` (time, in non-comoving coordinates), by default the last one. `kind` is the first
        part of the file's name where a stage has several kinds of tables: `profile`."""
        found = self._tables(kind, z)
        kinds = {name.kind for name, _ in found}
        if self.kind in kinds:
            found = [one for one in found if one[0].kind == self.kind]
        elif len(kinds) > 1:
            raise AmbiguousStageError(f"{self.name}: several kinds of tables: {', '.join(sorted(kinds))}; give `kind`")
        if not found:
            at = f" at {z:g}" if z is not None else ""
            there = self._tables(None, None)
            raise UnknownStageError(
                f"{self.name}: no table{f' {kind}' if kind else ''}{at}; available kinds: "
                f"{', '.join(sorted({name.kind for name, _ in there})) or 'none'} at {self._moments()}"
            )
        return self._read(found[-1][1])

    def result(self, z: float | None = None) -> Any:
        """Of a measurement the value of its closure at redshift `z` (time), by default at the last output; of another
        analysis its JSON file."""
        results = self._results()
        found = nearest(results, z, lambda one: one[0])
        if not found:
            known = listed(moment for moment, _ in results)
            at = f" at {z:g}; available: {known}" if z is not None else f": it is not done ({self.state})"
            raise UnknownStageError(f"{self.name}: no result{at}")
        return found[-1][1]

    def results(self) -> list[tuple[float | None, Any]]:
        """Its results, output by output: redshift (or time) and value."""
        return [(None if moment is None else moment.value, value) for moment, value in self._results()]

    def _results(self) -> list[tuple[Moment | None, Any]]:
        made = {path.name: path for path in self.files}
        if RESULT in made:
            found = [(_moment(one), one["result"]) for one in read_json(made[RESULT])]
        else:
            names = [(FileName.of(file), path) for file, path in made.items() if file.endswith(".json") and file != SECTION]
            found = [(name.moment, read_json(path)) for name, path in names if name.part is None]
        return sorted(found, key=lambda one: _order(one[0]))

    def _moments(self) -> str:
        return listed(name.moment for name, _ in self._tables(None, None))

    def _tables(self, kind: str | None, z: float | None) -> list[tuple[FileName, Path]]:
        """Its tables of a kind, in the order of time."""
        names = [(FileName.of(path.name), path) for path in self.files if path.suffix == ".csv"]
        found = [one for one in names if kind is None or one[0].kind == kind]
        found = nearest(found, z, lambda one: one[0].moment)
        return sorted(found, key=lambda one: _order(one[0].moment))

    def _read(self, path: Path) -> pd.DataFrame:
        table = read_table(path)
        table.attrs["stage"] = self.name
        describe(table, self.campaign._described(TABLES, FileName.of(path.name).kind))
        return table


def _moment(result: dict[str, Any]) -> Moment | None:
    return next((Moment(symbol, result[symbol]) for symbol in ("z", "t") if symbol in result), None)


def _order(moment: Moment | None) -> float:
    return float("-inf") if moment is None else moment.order


def newest(stages: list[AnyStage], wanted: str) -> AnyStage:
    """The stage that was started last among some of one name."""
    stages = sorted(stages, key=lambda stage: stage._record.started)
    if len(stages) > 1:
        others = ", ".join(stage.folder.name for stage in stages[:-1])
        warnings.warn(
            f"{wanted}: {len(stages)} stages are named {stages[-1].name!r}; {stages[-1].folder.name} was started last "
            f"and is taken, not {others}. A folder's name selects one",
            ComoveWarning,
            stacklevel=4,
        )
    return stages[-1]


def ambiguous(stages: Sequence[Stage], wanted: str) -> AmbiguousStageError:
    names = "; ".join(sorted({stage.name for stage in stages}))
    return AmbiguousStageError(f"{wanted}: several stages: {names}. Give one of these names")
