"""A small campaign, computed once by the program: COMOVE_PROGRAM, as scripts/test sets it, or that of the checkout."""

import os
import pathlib
import shutil
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import comove  # noqa: E402

# tests change the working directory
os.environ["COMOVE_PROGRAM"] = str(comove.find_program())
RECIPE = HERE / "small.rhai"


@pytest.fixture(scope="session")
def computed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("campaign") / "small"
    return comove.run(RECIPE, dir=folder, progress=False)


@pytest.fixture
def copied(computed, tmp_path):
    """A copy of the campaign, to change."""
    return pathlib.Path(shutil.copytree(computed.path, tmp_path / "copy"))
