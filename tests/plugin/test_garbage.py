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


SETTLING = """\
import gc, pathlib
from pytest_llmeval.plugin import _run_hooks as run_hooks

run_hooks._SETTLED_AT_ONCE = 2
counts = []

def pytest_runtest_logreport(report):
    if report.when == "teardown":
        counts.append(gc.get_freeze_count())

def pytest_sessionfinish():
    grown = [after > before for before, after in zip(counts, counts[1:])]
    pathlib.Path("grown.txt").write_text(str(grown))
"""


def test_results_are_settled_some_at_a_time(capitals: "Project") -> None:
    capitals.write("conftest.py", SETTLING)
    capitals.write("test_plain.py", "import pytest\n@pytest.mark.parametrize('n', range(4))\ndef test_plain(n): pass\n")
    capitals.run("capitals.eval.yaml", "test_plain.py")
    grown = (capitals.path / "grown.txt").read_text()
    assert "True" in grown  # after two results of cases
    assert grown.endswith("False, False, False]")  # plain tests leave no results
