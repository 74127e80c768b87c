"""A campaign folder."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from .errors import CampaignError, UnknownStageError
from .ledger import History, read, stamp
from .runs import Run
from .stage import Analysis, AnyStage, Stage, ambiguous, newest
from .tables import RECORDS, TABLES, read_json

RUN = "evolve"


class Campaign:
    """The campaign in a folder. `campaign["seed 1"]` is a stage; `campaign.table` lists all of them.

    The ledger is read again when it has changed, so a campaign can be followed while it runs.
    """

    def __init__(self, path: str | Path):
        self.path = Path(path)
        if not (self.path / "campaign.json").is_file():
            raise CampaignError(
                f"{self.path}: not a campaign folder: campaign.json is missing; give the folder that `comove run` made"
            )
        self._read: tuple[tuple[int, int], History] | None = None

    @property
    def _history(self) -> History:
        ledger = self.path / "ledger.jsonl"
        now = stamp(ledger)
        if self._read is None or self._read[0] != now:
            self._read = (now, read(ledger))
        return self._read[1]

    @property
    def name(self) -> str:
        """The name that the recipe gives it."""
        return self._history.name or self.path.name

    @property
    def parameters(self) -> dict[str, str]:
        """The parameters that its command line set."""
        return dict(read_json(self.path / "campaign.json").get("parameters") or {})

    @property
    def recipe(self) -> str:
        """The text of the recipe that was run last."""
        return (self.path / "recipe.rhai").read_text(encoding="utf-8")

    @property
    def report(self) -> Path:
        """The path of the report."""
        return self.path / "report.html"

    @property
    def index(self) -> dict[str, Any]:
        """Stages, files and columns of tables as of the end of the last process: `index.json`."""
        return dict(read_json(self.path / "index.json"))

    @property
    def columns(self) -> pd.DataFrame:
        """The columns of tables and the members of records: the first part of the file's name, name, unit, description."""
        index = self.index
        rows = [
            (file, one["name"], one["unit"], one["description"])
            for part in (TABLES, RECORDS)
            for file, columns in index.get(part, {}).items()
            for one in columns
        ]
        return pd.DataFrame(rows, columns=["file", "name", "unit", "description"])

    def _described(self, part: str, file: str) -> dict[str, tuple[str, str]]:
        """Units and descriptions of the columns of a table (`halos`) or the members of a record (`steps`). None in campaigns
        of older programs."""
        if not (self.path / "index.json").is_file():
            return {}
        columns = self.index.get(part, {}).get(file, [])
        return {column["name"]: (column["unit"], column["description"]) for column in columns}

    @property
    def state(self) -> str:
        """How the last process ended: `finished`, `interrupted`, or `open` while it runs or if it was killed or failed."""
        return self._history.ending or "open"

    @property
    def stages(self) -> list[Stage]:
        """All stages that were ever started, in the order of their latest start."""
        records = sorted(self._history.stages.values(), key=lambda record: record.started)
        # a stage without a start has no folder
        return [_class(one.kind)(self, one.fingerprint) for one in records if one.folder]

    @property
    def runs(self) -> list[Run]:
        """The runs among them."""
        return [stage for stage in self.stages if isinstance(stage, Run)]

    @property
    def analyses(self) -> list[Analysis]:
        """The analyses and measurements among them."""
        return [stage for stage in self.stages if isinstance(stage, Analysis)]

    @property
    def table(self) -> pd.DataFrame:
        """The stages as a table: name, kind, state, seconds, folder."""
        columns = ["name", "kind", "state", "seconds", "folder"]
        rows = [(stage.name, stage.kind, stage.state, stage.seconds, stage.folder.name) for stage in self.stages]
        table = pd.DataFrame(rows, columns=columns)
        table.attrs["units"] = {"seconds": "s"}
        return table

    def __getitem__(self, name: str) -> Any:
        """The stage with this name, folder, label (`measure-peak`, or `peak`) or kind; or whose name has all these
        comma-separated parts, as "seed 1" of "The run, root 16³, seed 1": a run if there is one."""
        return self._select(name, self.stages)

    def __iter__(self) -> Iterator[Stage]:
        return iter(self.stages)

    def __len__(self) -> int:
        return len(self.stages)

    def result(self, name: str, z: float | None = None) -> Any:
        """The result of a measurement or an analysis at redshift `z` (time), by default of the last output."""
        return self._select(name, self.analyses).result(z)

    def stop(self) -> None:
        """Asks the process that computes it to stop with a checkpoint; `comove.resume` continues."""
        (self.path / "stop").touch()

    def _select(self, name: str, stages: Sequence[AnyStage]) -> AnyStage:
        for matches in (_is_called, _has_parts):
            found = [stage for stage in stages if matches(stage, name)]
            if matches is _has_parts:
                found = [stage for stage in found if stage.kind == RUN] or found
            if found:
                return self._one(found, repr(name))
        known = "; ".join(sorted({stage.name for stage in stages}))
        raise UnknownStageError(f"{self.path}: no stage {name!r}; available: {known or 'none'}")

    def _one(self, stages: list[AnyStage], wanted: str) -> AnyStage:
        if len({stage.name for stage in stages}) > 1:
            raise ambiguous(stages, wanted)
        return newest(stages, wanted)

    def __repr__(self) -> str:
        return f"<Campaign {self.name!r} in {self.path}: {len(self)} stages, {self.state}>"

    def _repr_html_(self) -> str:
        heading = f"{self.name}: {self.state}".replace("&", "&amp;").replace("<", "&lt;")
        return f"<p><b>{heading}</b></p>{self.table.to_html(index=False)}"


def _class(kind: str) -> type[Stage]:
    if kind == RUN:
        return Run
    return Stage if kind.startswith("ic_") else Analysis


def _is_called(stage: Stage, name: str) -> bool:
    own = stage.label[len(stage.kind) + 1 :] if stage.label.startswith(f"{stage.kind}-") else stage.label
    is_digits = re.fullmatch(r"[0-9a-f]{4,64}", name) is not None and stage.fingerprint.startswith(name)
    return is_digits or name in (stage.name, stage.folder.name, stage.label, own, stage.kind)


def _has_parts(stage: Stage, name: str) -> bool:
    wanted = {part.strip() for part in name.split(",")}
    return wanted <= {part.strip() for part in stage.name.split(",")}
