"""The history of a campaign, as its ledger (`ledger.jsonl`) records it.

The ledger names the folder and the files of every stage, so nothing here depends on how folders are named.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .errors import CampaignError
from .tables import Moment

#: The latest format of ledgers that this module reads.
VERSION = 4


@dataclass
class SnapshotRecord:
    """A snapshot of a run. `z` is the redshift that the recipe asked for; `time` replaces it in non-comoving coordinates."""

    file: str
    role: str
    a: float
    z: float
    time: float | None
    step: int

    @property
    def moment(self) -> Moment:
        return Moment("z", self.z) if self.time is None else Moment("t", self.time)


@dataclass
class StageRecord:
    """A stage: its latest start, and its files once it is done."""

    fingerprint: str
    folder: str = ""
    kind: str = ""
    name: str = ""
    identity: dict[str, Any] = field(default_factory=dict)
    files: list[str] | None = None
    snapshots: list[SnapshotRecord] = field(default_factory=list)
    failure: str | None = None
    started: int = 0
    started_at: float | None = None
    seconds: float | None = None

    @property
    def label(self) -> str:
        return str(self.identity.get("label") or self.kind)


@dataclass
class History:
    """The state of a campaign after all events of its ledger."""

    name: str = ""
    program: str = ""
    device: str = ""
    stages: dict[str, StageRecord] = field(default_factory=dict)
    ending: str | None = None
    _started: int = 0

    def stage(self, fingerprint: str) -> StageRecord:
        return self.stages.setdefault(fingerprint, StageRecord(fingerprint))

    def add(self, event: dict[str, Any]) -> None:
        """Applies an event; unknown ones are ignored."""
        kind = event.get("event")
        if kind == "campaign_started":
            self.name, self.program, self.device = event["name"], event.get("program", ""), event.get("device", "")
            self.ending = None
        elif kind in ("campaign_finished", "campaign_interrupted"):
            self.ending = kind[len("campaign_") :]
        elif kind == "stage_removed":
            self.stages.pop(event["fingerprint"], None)
        elif kind == "stage_started":
            self._started += 1
            stage = self.stage(event["fingerprint"])
            stage.folder, stage.kind = event["folder"], event["kind"]
            stage.identity = event.get("identity") or {}
            stage.name = event.get("name") or stage.label
            stage.files = stage.failure = stage.seconds = None
            stage.started, stage.started_at = self._started, event.get("unix_time_s")
        elif kind == "snapshot_written":
            stage, snapshot = self.stage(event["fingerprint"]), event["snapshot"]
            keys = ("file", "role", "a", "z", "time", "step")
            record = SnapshotRecord(**{key: snapshot.get(key) for key in keys})
            kept = [other for other in stage.snapshots if other.file != record.file]
            stage.snapshots = sorted([*kept, record], key=lambda one: one.moment.order)
        elif kind in ("snapshot_removed", "file_refused"):
            stage = self.stage(event["fingerprint"])
            stage.snapshots = [snapshot for snapshot in stage.snapshots if snapshot.file != event["file"]]
            if kind == "file_refused" and event["file"] in (stage.files or []):
                stage.files = None
        elif kind == "stage_finished":
            stage = self.stage(event["fingerprint"])
            stage.files = [artefact["file"] for artefact in event["artefacts"]]
            stage.failure = None
            if stage.started_at is not None:
                stage.seconds = event["unix_time_s"] - stage.started_at
        elif kind == "stage_failed":
            self.stage(event["fingerprint"]).failure = event["reason"]
        elif kind == "stage_forced":
            stage = self.stage(event["fingerprint"])
            stage.files, stage.snapshots = None, []


def read(path: Path) -> History:
    """Reads a ledger. A torn last line, as a running or killed process leaves it, is skipped."""
    history = History()
    for number, event in enumerate(read_jsonl(path), start=1):
        if int(event.get("version", 0)) > VERSION:
            raise CampaignError(
                f"{path}: line {number} has format {event['version']}, this module reads up to {VERSION}: "
                "update the Python module comove"
            )
        history.add(event)
    return history


def read_jsonl(path: Path) -> list[dict[str, Any]]:
    """The objects of a file with one JSON object per line; none if the file is missing. A torn last line is skipped."""
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return []
    objects = []
    for number, line in enumerate(lines[:-1], start=1):  # the last one ends without a line break
        if line.strip():
            try:
                objects.append(json.loads(line))
            except ValueError as error:
                raise CampaignError(f"{path}: line {number} is not JSON ({error})") from error
    return objects


def stamp(path: Path) -> tuple[int, int]:
    """Changes whenever the file changes."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return (-1, -1)
    return (status.st_size, status.st_mtime_ns)
