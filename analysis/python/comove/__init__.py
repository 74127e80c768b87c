"""Campaigns of comove in Python: runs them, and reads their results as pandas tables.

>>> import comove
>>> campaign = comove.run("recipe.rhai", root=64)       # or comove.Campaign("folder") of one that was run before
>>> campaign["seed 1"].halos(z=0)
"""

from importlib.metadata import PackageNotFoundError, version

from .campaign import Campaign
from .errors import (
    AmbiguousStageError,
    BusyError,
    CampaignError,
    ComoveError,
    ComoveWarning,
    DeviceError,
    FileError,
    InputError,
    OutOfTimeError,
    ProgramError,
    ProgramNotFoundError,
    RecipeError,
    Stopped,
    UnknownStageError,
    UnphysicalError,
    UsageError,
)
from .launch import resume, run
from .program import find_program
from .runs import Run
from .stage import Analysis, Stage

try:
    __version__ = version("comove")
except PackageNotFoundError:  # imported from a checkout
    __version__ = "unknown"

__all__ = [
    "AmbiguousStageError",
    "Analysis",
    "BusyError",
    "Campaign",
    "CampaignError",
    "ComoveError",
    "ComoveWarning",
    "DeviceError",
    "FileError",
    "InputError",
    "OutOfTimeError",
    "ProgramError",
    "ProgramNotFoundError",
    "RecipeError",
    "Run",
    "Stage",
    "Stopped",
    "UnknownStageError",
    "UnphysicalError",
    "UsageError",
    "find_program",
    "resume",
    "run",
]
