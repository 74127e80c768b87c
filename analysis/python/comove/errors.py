"""Exceptions: those of the program by its exit codes, and those of reading a campaign."""

from __future__ import annotations

import signal
from pathlib import Path


class ComoveError(Exception):
    """Base class of all errors of this module."""


class ComoveWarning(UserWarning):
    """A warning of the program, or a choice that this module has made."""


class CampaignError(ComoveError):
    """A folder without a campaign, or a file of it that cannot be read."""


class UnknownStageError(ComoveError, LookupError):
    """No stage, table or output goes by this name or redshift."""


class AmbiguousStageError(ComoveError, LookupError):
    """Several stages go by this name."""


class ProgramNotFoundError(ComoveError, FileNotFoundError):
    """The program `comove` is not installed."""


class ProgramError(ComoveError):
    """The program failed. Its message is the text of the exception.

    `exit_code`: the program's (docs/exit-codes.md), negative for a signal; `folder`: the campaign folder;
    `failed`: reasons of the stages that failed, by name.
    """

    def __init__(self, message: str, exit_code: int, folder: Path, failed: dict[str, str] | None = None):
        super().__init__(message)
        self.exit_code = exit_code
        self.folder = folder
        self.failed = failed or {}


class UsageError(ProgramError):
    """Exit code 2: an unknown option or parameter, a missing recipe."""


class RecipeError(ProgramError):
    """Exit code 3: an error in the recipe, at the line that the message shows."""


class InputError(ProgramError):
    """Exit code 4: a missing, damaged or contradictory input."""


class BusyError(ProgramError):
    """Exit code 5: another process computes this campaign."""


class FileError(ProgramError):
    """Exit code 6: a file cannot be read or written."""


class UnphysicalError(ProgramError):
    """Exit code 7: an unphysical state."""


class DeviceError(ProgramError):
    """Exit code 8: a missing device, or too little memory."""


class OutOfTimeError(ProgramError):
    """Exit code 9: the time limit ended before anything was saved."""


class Stopped(ProgramError):
    """Exit code 75, or 128 and more for a signal: the campaign was stopped on request; `comove.resume` continues it."""


BY_EXIT_CODE: dict[int, type[ProgramError]] = {
    2: UsageError,
    3: RecipeError,
    4: InputError,
    5: BusyError,
    6: FileError,
    7: UnphysicalError,
    8: DeviceError,
    9: OutOfTimeError,
    75: Stopped,
}


def error_class(exit_code: int) -> type[ProgramError]:
    """The exception of an exit code; a negative one is the signal that ended the program."""
    by_signal = exit_code in (-signal.SIGINT, -signal.SIGTERM) or 128 < exit_code < 160
    return Stopped if by_signal else BY_EXIT_CODE.get(exit_code, ProgramError)
