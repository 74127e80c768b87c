"""Scripts of the checkout that read records of runs."""

import argparse
import importlib.util
import json
from importlib.machinery import SourceFileLoader

import pytest
from conftest import HERE


def script(name):
    path = HERE.parents[2] / "scripts" / name
    if not path.exists():
        pytest.skip("the module is not in a checkout")
    spec = importlib.util.spec_from_loader(name.replace("-", "_"), SourceFileLoader(name.replace("-", "_"), str(path)))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(autouse=True)
def no_byte_code(monkeypatch):
    """Next to the scripts."""
    monkeypatch.setattr("sys.dont_write_bytecode", True)


def test_gas_is_found_in_records_of_each_layout():
    has_gas = script("cost-reference").has_gas
    for record, expected in (
        ({"sums": {"mass": 1.0}}, True),
        ({"version": 1, "sums": {"mass": 0.0}}, False),
        ({"version": 2, "sums": {"mass": 1.0}, "dark_matter": {"mass": 1.0}}, False),
        ({"version": 2, "sums": {"mass": 1.0}, "gas": {"mass": 0.15}}, True),
    ):
        assert has_gas(record) is expected, record


def test_the_campaign_of_a_program_has_gas(computed):
    assert script("cost-reference").Campaign(computed.path).has_gas


def test_the_time_left_is_that_of_the_last_step_where_outputs_take_the_rest():
    errors_left = script("check-predictions").errors_left
    steps = [(10.0, {"seconds_left": 9.0}), (11.0, {"seconds_left": 8.0}), (16.0, {"seconds_left": 6.0})]
    # 80% of ten seconds end after the last step
    assert errors_left(steps, 20.0) == pytest.approx([8 / 9 - 1, 0.5, 0.5, 0.5])
    assert errors_left([(10.0, {}), (16.0, {"seconds_left": 6.0, "at_least": True})], 20.0) == [None] * 4


@pytest.mark.parametrize("printed", ["", '{"stages": [], "left": {"disk_bytes": 0, "seconds": 0}}'])
def test_a_plan_that_fails_is_named(tmp_path, printed):
    program = tmp_path / "comove"
    program.write_text(f"#!/bin/sh\necho '{printed}'\nexit 4\n")
    program.chmod(0o755)
    arguments = argparse.Namespace(comove=program, threads=1, folder=tmp_path)
    with pytest.raises(SystemExit, match=r"comove plan some\.rhai failed with exit code 4"):
        script("check-predictions").plan(arguments, "some.rhai", [], tmp_path / "campaign")


def test_a_plan_is_read(tmp_path):
    plan = {"stages": [{"cost": {"steps": 3, "cells": 8, "device_bytes": 5}}, {"cost": None}],
            "left": {"disk_bytes": 7, "seconds": 2.5}}
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    program = tmp_path / "comove"
    program.write_text(f"#!/bin/sh\ncat '{tmp_path}/plan.json'\n")
    program.chmod(0o755)
    arguments = argparse.Namespace(comove=program, threads=1, folder=tmp_path)
    found = script("check-predictions").plan(arguments, "some.rhai", [], tmp_path / "campaign")
    assert found == {"steps": 3, "cells": 8, "device memory": 5, "disk": 7, "time": 2.5}
