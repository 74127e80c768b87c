"""Progress of a campaign: tqdm bars where tqdm is installed, in terminals and notebooks; else lines of text."""

from __future__ import annotations

import math
import re
import sys
import time
from typing import Any

#: Seconds between two lines of text about one run.
INTERVAL_S = 10.0

BAR = "{desc}: {percentage:3.0f}%|{bar}| {elapsed}<{remaining}{postfix}"


class Progress:
    """Shows the events of a campaign: a bar counts its stages, and each run has a bar of its own."""

    def __init__(self, is_shown: bool):
        self._names: dict[str, str] = {}
        self._runs: dict[str, RunProgress] = {}
        self._bars: Any = None
        self._total: Any = None
        self._is_shown = is_shown
        if is_shown:
            try:
                from tqdm.auto import tqdm

                self._bars = tqdm
            except ImportError:
                pass

    def name_of(self, fingerprint: str) -> str:
        return self._names.get(fingerprint, fingerprint[:6])

    def say(self, line: str) -> None:
        """Shows a line above the bars."""
        if self._bars is not None:
            self._bars.write(line)
        elif self._is_shown:
            print(line, flush=True)

    def show(self, event: dict[str, Any]) -> None:
        kind, fingerprint = event["event"], event.get("fingerprint", "")
        if kind == "stage_started":
            self._names[fingerprint] = event.get("name") or event["kind"]
            self._started(fingerprint, event)
        elif kind == "step" and fingerprint in self._runs:
            self._runs[fingerprint].step(event["record"])
        elif kind in ("stage_finished", "stage_failed"):
            self._ended(fingerprint, "done" if kind == "stage_finished" else "failed")

    def close(self) -> None:
        for run in self._runs.values():
            run.close()
        self._runs.clear()
        if self._total is not None:
            self._total.close()

    def _started(self, fingerprint: str, event: dict[str, Any]) -> None:
        name = self._names[fingerprint]
        if self._bars is not None and self._total is None:
            self._total = self._bars(desc="stages done", bar_format="{desc}: {n_fmt} {elapsed}{postfix}", leave=True)
        extent = (event.get("identity") or {}).get("extent") or {}
        end = re.fullmatch(r"([zt]) = (\S+)", str(extent.get("end", "")))
        if end is not None and self._is_shown:
            bar = None
            if self._bars is not None:
                bar = self._bars(desc=name, total=1.0, bar_format=BAR, leave=True)
            self._runs[fingerprint] = RunProgress(name, end.group(1), float(end.group(2)), bar)
        elif self._total is not None:
            self._total.set_postfix_str(name)
        elif self._is_shown:
            self.say(f"{name}: started")

    def _ended(self, fingerprint: str, state: str) -> None:
        run = self._runs.pop(fingerprint, None)
        if run is not None:
            run.close(finished=state == "done")
        if self._total is not None:
            if state == "done":
                self._total.update(1)
            else:
                self.say(f"{self.name_of(fingerprint)}: {state}")
        elif self._is_shown:
            self.say(f"{self.name_of(fingerprint)}: {state}")


class RunProgress:
    """The way of a run to its end: in ln a, or in time in non-comoving coordinates."""

    def __init__(self, name: str, symbol: str, end: float, bar: Any):
        self.name = name
        self.symbol = symbol
        self.end = self._position(end)
        self.start: float | None = None
        self.fraction = 0.0
        self._bar = bar
        self._said = time.monotonic()

    def _position(self, moment: float) -> float:
        return -math.log1p(moment) if self.symbol == "z" else moment

    def step(self, record: dict[str, Any]) -> None:
        moment = record.get("z") if self.symbol == "z" else record["time"]
        now = self._position(float(moment if moment is not None else record["time"]))
        if self.start is None:
            self.start = now
        way = self.end - self.start
        self.fraction = min(max((now - self.start) / way, 0.0), 1.0) if way > 0 else 1.0
        if self._bar is not None:
            self._bar.set_postfix_str(f"{self.symbol} = {moment:.3g}, step {record['step']}", refresh=False)
            self._bar.update(self.fraction - self._bar.n)
        elif time.monotonic() - self._said > INTERVAL_S:
            self._said = time.monotonic()
            print(f"{self.name}: {self.symbol} = {moment:.3g}, {100 * self.fraction:.0f}%", flush=True, file=sys.stdout)

    def close(self, finished: bool = False) -> None:
        if self._bar is not None:
            if finished:
                self._bar.update(1.0 - self._bar.n)
            self._bar.close()
