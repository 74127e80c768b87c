"""Tables of a campaign as pandas DataFrames. `attrs["units"]` has the unit of every column that has one."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pandas as pd

from .errors import CampaignError

One = TypeVar("One")

#: Units by the ends of column names, the longest first. Lengths are comoving.
UNITS = (
    ("_mpc3_h3", "Mpc**3/h**3"),
    ("_h3_mpc3", "h**3/Mpc**3"),
    ("_msun_h", "Msun/h"),
    ("_h_mpc", "h/Mpc"),
    ("_mpc_h", "Mpc/h"),
    ("_km_s", "km/s"),
    ("_gyr", "Gyr"),
    ("_k", "K"),
)

#: The parts of `index.json` that describe columns of tables and members of records.
TABLES, RECORDS = "tables", "records"

#: Units of step records where `index.json` has none, as in campaigns of older programs; all else is in code units.
STEP_UNITS = {"device_bytes": "byte", "cell_updates_per_second": "1/s"}


#: Options with which pandas reads floating-point numbers exactly, as later versions do by themselves.
EXACT: dict[str, Any] = (
    {"float_precision": "round_trip"} if tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1) else {}
)


class Moment(NamedTuple):
    """A redshift (`z`), or a time in non-comoving coordinates (`t`)."""

    symbol: str
    value: float

    @property
    def order(self) -> float:
        """Grows in the order of time."""
        return self.value if self.symbol == "t" else -self.value

    def is_at(self, wanted: float) -> bool:
        """Whether this can be the wanted redshift or time, which may be rounded to four decimals of one, six digits of the
        other."""
        return abs(self.value - wanted) <= (1e-5 * abs(wanted) if self.symbol == "t" else 0.6e-4)

    def __str__(self) -> str:
        return f"{self.symbol} = {self.value:g}"


class FileName(NamedTuple):
    """A file of an analysis: `halos_z0.csv` has the kind `halos` and the redshift 0, `profile_z0_halo1.csv` also the
    part `halo1`."""

    kind: str
    moment: Moment | None
    part: str | None

    @classmethod
    def of(cls, file: str) -> FileName:
        words = file.rsplit(".", 1)[0].split("_")
        for n, word in enumerate(words):
            if re.fullmatch(r"[zt]-?\d\S*", word):
                try:
                    moment = Moment(word[0], float(word[1:]))
                except ValueError:
                    continue
                return cls("_".join(words[:n]), moment, "_".join(words[n + 1 :]) or None)
        return cls("_".join(words), None, None)


def nearest(found: Iterable[One], wanted: float | None, moment_of: Callable[[One], Moment | None]) -> list[One]:
    """Those of the moment that is nearest to the wanted redshift or time and can be it; all if none is wanted."""
    if wanted is None:
        return list(found)
    near = [(moment, one) for one in found if (moment := moment_of(one)) is not None and moment.is_at(wanted)]
    closest = min((moment for moment, _ in near), key=lambda moment: abs(moment.value - wanted), default=None)
    return [one for moment, one in near if moment == closest]


def listed(moments: Iterable[Moment | None]) -> str:
    """Moments in a few words."""
    found = sorted({moment for moment in moments if moment is not None}, key=lambda moment: moment.order)
    return ", ".join(map(str, found)) or "none"


def unit_of(column: str) -> str | None:
    """The unit that the end of a column's name states."""
    return next((unit for end, unit in UNITS if column.endswith(end)), None)


def read_table(path: Path) -> pd.DataFrame:
    """Reads a table. What its JSON twin has besides the rows is in `attrs["record"]`: options, box, shot noise, ...."""
    try:
        table: pd.DataFrame = pd.read_csv(path, **EXACT)
    except pd.errors.EmptyDataError:
        table = pd.DataFrame()
    except FileNotFoundError as error:
        raise CampaignError(f"{path}: missing; `comove resume` computes it again") from error
    if "parent" in table:  # an index, or nothing
        table["parent"] = table["parent"].astype("Int64")
    moment = FileName.of(path.name).moment
    in_code_units = moment is not None and moment.symbol == "t"
    units = {str(column): unit_of(str(column)) for column in table.columns}
    table.attrs["units"] = {
        column: "code units" if in_code_units else unit for column, unit in units.items() if unit is not None
    }
    if moment is not None:
        table.attrs["redshift" if moment.symbol == "z" else "time"] = moment.value
    table.attrs["file"] = str(path)
    twin = path.with_suffix(".json")
    if twin.exists():
        record = read_json(twin)
        if isinstance(record, dict):
            table.attrs["record"] = {key: value for key, value in record.items() if not _are_rows(value)}
    return table


def read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CampaignError(f"{path}: {error}") from error


def flat(value: Any, name: str = "") -> Iterable[tuple[str, Any]]:
    """The leaves of nested objects and lists, by dotted names: `timing.hydro`, `groups.0`."""
    if isinstance(value, dict):
        items: Iterable[tuple[str | int, Any]] = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    else:
        yield name, value
        return
    for key, inner in items:
        yield from flat(inner, f"{name}.{key}" if name else str(key))


def table_of(records: Sequence[dict[str, Any]], index: str | None = None) -> pd.DataFrame:
    """One row per record, columns in the order in which the records have them first."""
    rows: list[dict[str, Any]] = [dict(flat(record)) for record in records]
    table = pd.DataFrame(rows)
    return table.set_index(index) if index is not None and index in table else table


def step_units(columns: Iterable[str]) -> dict[str, str]:
    units = {column: STEP_UNITS.get(column) for column in columns}
    units.update({column: "s" for column in units if column.startswith("timing.")})
    return {column: unit for column, unit in units.items() if unit is not None}


def describe(table: pd.DataFrame, described: dict[str, tuple[str, str]]) -> None:
    """Adds units, where the columns' names have none, and descriptions to the attributes of a table. A column of an entry
    of a list, `groups.0`, has those of the list."""
    units, descriptions = table.attrs.setdefault("units", {}), {}
    for column in map(str, table.columns):
        member = re.sub(r"\.\d+(?=\.|$)", "[]", column)
        found = described.get(member) or described.get(member.removesuffix("[]"))
        if found is not None:
            descriptions[column] = found[1]
            if found[0]:
                units.setdefault(column, found[0])
    table.attrs["descriptions"] = descriptions


def _are_rows(value: Any) -> bool:
    return isinstance(value, list) and any(isinstance(one, dict) for one in value)
