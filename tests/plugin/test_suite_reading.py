"""How often a process reads a suite file: once, whatever collects it, runs it and judges it."""

from collections import Counter
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Project

COUNTING = """
import os, sys
from pathlib import Path

log = Path(__file__).with_name("opened.txt")
role = os.environ.get("PYTEST_XDIST_WORKER", "main")

def note(event, arguments):
    if event == "open" and str(arguments[0]).endswith("s.eval.yaml"):
        with log.open("a") as file:
            file.write(role + "\\n")

sys.addaudithook(note)
"""

TESTS = """
import pytest

@pytest.mark.llmeval("s.eval.yaml")
@pytest.mark.parametrize("times", [1, 2])
def test_one(eval_case, times): eval_case.score("x" * times)

@pytest.mark.llmeval("s.eval.yaml")
def test_other(eval_case): eval_case.score("x")
"""

GATED = """
evaluators: [{text: {metrics: [f1]}}]
gates: [f1 >= 0]
cases: [{id: a, expected: x, prediction: x}, {id: b, expected: x, prediction: x}]
"""


def opened(project: "Project") -> Counter[str]:
    return Counter((project.path / "opened.txt").read_text().split())


@pytest.fixture
def counting(project: "Project") -> "Project":
    project.write("conftest.py", COUNTING)
    project.write("test_them.py", TESTS)
    project.write("s.eval.yaml", GATED)
    return project


def test_a_suite_is_read_once_and_not_again_to_judge_its_gates(counting: "Project") -> None:
    ran = counting.run()
    assert (ran.code, ran.counts["passed"]) == (0, 8 + 4)
    assert opened(counting) == {"main": 1}


def test_with_workers_each_process_reads_it_once_the_main_one_to_judge_it(counting: "Project") -> None:
    ran = counting.run(workers=2)
    assert (ran.code, ran.counts["passed"]) == (0, 8 + 4)
    assert opened(counting) == {"main": 1, "gw0": 1, "gw1": 1}


def test_a_faulty_suite_is_read_once_too(counting: "Project") -> None:
    counting.write("s.eval.yaml", "evaluators: [nonsense]\ncases: []\n")
    assert counting.run().code == 1
    assert opened(counting) == {"main": 1}
