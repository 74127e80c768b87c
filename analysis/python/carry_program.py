"""Puts the program into the wheel where COMOVE_WHEEL_PROGRAM names it: pip then installs it as the command `comove`.

COMOVE_WHEEL_PLATFORM is the platform tag of that program; scripts/wheel sets both.
"""

import os
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CarryProgram(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        program = os.environ.get("COMOVE_WHEEL_PROGRAM")
        if not program or version == "editable":
            return
        build_data["shared_scripts"][program] = "comove"
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{os.environ['COMOVE_WHEEL_PLATFORM']}"
