"""The page of performance says what its records say."""

import json
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import performance_page  # noqa: E402


@pytest.fixture(autouse=True)
def images(monkeypatch, tmp_path):
    monkeypatch.setattr(performance_page, "IMAGES", tmp_path)
    return tmp_path


def test_the_page_and_its_pictures_are_those_of_the_records(images):
    records = ROOT / "docs/performance.json"
    if not records.exists():
        pytest.skip("nothing has been measured")
    assert performance_page.page(json.loads(records.read_text())) == (ROOT / "docs/performance.md").read_text()
    pictures = sorted(images.glob("*.svg"))
    kept = sorted((ROOT / "docs/images").glob("performance-*.svg"))
    assert [picture.name for picture in pictures] == [picture.name for picture in kept] != []
    for picture in pictures:
        assert picture.read_text() == (ROOT / "docs/images" / picture.name).read_text(), picture.name


def test_what_was_not_measured_is_said():
    machine = {"device": "cuda:0", "gpu": "GPU", "driver": "1", "processor": "CPU", "cores": 16, "program": "comove", "quick": False}
    page = performance_page.page({"machine": machine})
    assert page.count("\nnot measured\n") == len(performance_page.SECTIONS)


def test_numbers_have_the_digits_that_they_need():
    assert [performance_page.power(value) for value in (0, 1.97e10, 2.5e-4)] == ["0", "1.97·10¹⁰", "2.50·10⁻⁴"]
    assert [performance_page.short(value) for value in (0, 0.01234, 1.5, 123.4, 98765)] == ["0", "0.0123", "1.50", "123", "98765"]
