"""Targets that keep state: memory agents, and the limit on calls of the fixture llmeval_target."""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Project

AGENT = """
import threading
from pytest_llmeval.qa import as_target


class Agent:
    def __init__(self):
        self.memory, self.read, self.busy = self, [], threading.Lock()

    def reset(self):
        self.read = []

    def ingest_sample(self, sample):
        self.read.append(sample.conversation)

    def answer(self, question):
        assert self.busy.acquire(blocking=False), "two questions at a time"
        try:
            return f"{question} {' '.join(self.read)}"
        finally:
            self.busy.release()


answer = as_target(Agent)
"""

LIMITED = """
import threading
import pytest


@pytest.fixture(scope="session")
def llmeval_target():
    return lambda word: "turn" if threading.current_thread() is threading.main_thread() else "early"
"""


def test_a_memory_agent_scores_the_same_in_each_run_and_process(project: "Project", workers: int) -> None:
    project.write("app.py", AGENT)
    cases = [
        {
            "id": f"{name}-{number}",
            "input": {"question": f"q{number}", "conversation_id": name, "conversation": f"text-{name}"},
            "expected": f"q{number} text-{name}",
        }
        for number in range(8)
        for name in ("a", "b", "c")
    ]
    project.suite("s.eval.yaml", cases, target="app:answer", thresholds={"exact_match": 1})
    for _ in range(2):
        assert project.run(workers=workers).counts == {"passed": 24}


@pytest.mark.parametrize(("target", "expected"), [({"concurrency": 1}, "turn"), (None, "early")])
def test_a_suite_limits_the_calls_of_the_fixture(
    project: "Project", target: dict[str, int] | None, expected: str
) -> None:
    project.write("conftest.py", LIMITED)
    cases = [{"id": f"c{number}", "input": number, "expected": expected} for number in range(4)]
    project.suite("s.eval.yaml", cases, target=target, thresholds={"exact_match": 1})
    assert project.run().counts == {"passed": 4}


def test_limits_alone_are_no_target(project: "Project") -> None:
    project.suite("s.eval.yaml", [{"id": "a", "input": "a", "expected": "A"}], target={"concurrency": 1})
    ran = project.run()
    assert ran.counts == {"failed": 1}
    assert "no prediction and no target" in ran.text
