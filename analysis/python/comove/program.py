"""The program `comove`, wherever it is installed."""

from __future__ import annotations

import os
import shutil
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from .errors import ProgramNotFoundError

VARIABLE = "COMOVE_PROGRAM"


def find_program(program: str | Path | None = None) -> Path:
    """The path of the program: `program` if given, else COMOVE_PROGRAM, else the one that was installed with this
    module, the one on the PATH, or target/release/comove of the checkout that this module belongs to."""
    named = program or os.environ.get(VARIABLE)
    if named:
        found = shutil.which(str(named))
        if found is None:
            raise ProgramNotFoundError(f"{named}: not a program; correct {'program' if program else VARIABLE}")
        return Path(found).absolute()
    for candidate in _candidates():
        if os.access(candidate, os.X_OK) and candidate.is_file():
            return candidate.absolute()
    raise ProgramNotFoundError(
        "the program comove is neither installed with this module nor on the PATH: "
        f"install a wheel that carries it, or set {VARIABLE} to its path"
    )


def _candidates() -> Iterator[Path]:
    for scripts in (sysconfig.get_path("scripts"), sysconfig.get_path("scripts", _user_scheme())):
        yield Path(scripts) / "comove"
    on_path = shutil.which("comove")
    if on_path:
        yield Path(on_path)
    checkout = Path(__file__).resolve().parents[3]
    if (checkout / "Cargo.toml").is_file():
        yield checkout / os.environ.get("CARGO_TARGET_DIR", "target") / "release" / "comove"


def _user_scheme() -> str:
    if hasattr(sysconfig, "get_preferred_scheme"):
        return sysconfig.get_preferred_scheme("user")
    return "nt_user" if os.name == "nt" else "posix_user"
