"""The module's types, which other programs rely on."""

import subprocess
import sys

import pytest
from conftest import HERE


def test_types(tmp_path):
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path), "comove"]
    said = subprocess.run(command, cwd=HERE.parent, capture_output=True, text=True)
    assert said.returncode == 0, said.stdout + said.stderr
