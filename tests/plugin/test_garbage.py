"""Garbage collection while suites run: modules and items, which live until the end, are not walked."""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Project

COUNTING = """\
import gc, pathlib

counts = []

def pytest_configure(config):
    config.add_cleanup(write)
    counts.append(gc.get_freeze_count())

def pytest_runtest_logreport(report):
    if report.when == "call":
        counts.append(gc.get_freeze_count())

def write():
    more = [count > counts[0] for count in [*counts[1:], gc.get_freeze_count()]]
    pathlib.Path("frozen.txt").write_text(f"{more} {gc.isenabled()}")
"""


@pytest.mark.parametrize(
    ("selected", "frozen"), [("capitals.eval.yaml::paris", "[True, False]"), ("test_plain.py", "[False, False]")]
)
def test_modules_and_items_are_frozen_while_cases_run(capitals: "Project", selected: str, frozen: str) -> None:
    capitals.write("conftest.py", COUNTING)
    capitals.write("test_plain.py", "def test_plain(): pass\n")
    assert capitals.run(selected).counts["passed"] == 1
    assert (capitals.path / "frozen.txt").read_text() == f"{frozen} True"
