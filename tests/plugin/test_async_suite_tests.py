"""Async tests over a suite: several cases at a time, with reports as of one after the other."""

import re
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Project

TESTS = """\
import asyncio
import os

import pytest

import pytest_llmeval as ev

CASES = [{{"id": f"c{{n:02}}", "input": n, "expected": "Paris", "labels": {{"half": str(n % 2)}}}} for n in range(48)]
capitals = ev.suite("capitals", cases=CASES, evaluators=[ev.text(metrics=["f1"])], thresholds={{"f1": 0.5}},
                    gates=["f1 >= 0.5"])
calls = []


@pytest.fixture
def names():
    return []


@pytest.fixture
def agent(names):
    async def answer(number):
        names.append(number)
        assert names == [number]
        calls.append(number)
        while len(calls) < {together}:
            await asyncio.sleep(0)
        if number == 5:
            raise ValueError("no answer")
        return "Rome" if number == 7 else "Paris"

    return answer


@capitals.test
{mark}
async def test_agent(case, agent):
    case.score(await asyncio.wait_for(agent(case.input), 60))


def test_after():
    print("calls", len(calls), sorted(calls) == list(range(48)))
"""

SHELLS = {
    "asyncio": (
        "@pytest.mark.asyncio",
        ("-p", "pytest_asyncio.plugin", "-o", "asyncio_default_fixture_loop_scope=module"),
    ),
    "anyio": ("@pytest.mark.anyio", ("-p", "anyio.pytest_plugin", "-k", "not trio")),
    "none": ("", ()),
}


@pytest.mark.parametrize("plugin", SHELLS)
def test_cases_of_an_async_test_run_together(project: "Project", plugin: str) -> None:
    mark, options = SHELLS[plugin]
    project.write("test_capitals.py", TESTS.format(together=16, mark=mark))
    ran = project.run(*options, "-v", "-s", report="report.json")
    assert "calls 48 True" in ran.text, ran.text
    (suite,) = ran.report["suites"]
    assert [case["id"] for case in suite["cases"] if case["outcome"] != "passed"] == ["c05", "c07"]
    ids = [name for each in ran.verdicts() for name in re.findall(r"\bc\d\d\b", each)]
    assert ids == [f"c{n:02}" for n in range(48)]
    assert "ValueError: no answer" in ran.section("FAILURES")


SHARED = """\
import asyncio

import pytest
import pytest_asyncio

import pytest_llmeval as ev

CASES = [{"id": f"c{n:02}", "input": n, "expected": "Paris", "tags": ["skip"] if n == 3 else []} for n in range(40)]
capitals = ev.suite("capitals", cases=CASES, evaluators=[ev.text(metrics=["f1"])])
under_way, most = [], []


class Client:
    def __init__(self):
        self.loop, self.tasks = asyncio.get_running_loop(), set()

    async def answer(self, number):
        assert asyncio.get_running_loop() is self.loop
        under_way.append(number)
        for _ in range(20):
            await asyncio.sleep(0)
        most.append(len(under_way))
        under_way.remove(number)
        return "Paris"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client():
    yield Client()


@pytest_asyncio.fixture(loop_scope="module")
async def own_client(client):
    yield client


@capitals.test(concurrency=4)
@pytest.mark.asyncio
@pytest.mark.parametrize("model", ["small", "large"])
async def test_shared(case, client, model):
    case.score(await client.answer(case.input))


def test_most_of_shared():
    print("most", max(most))
    most.clear()


@capitals.test
@pytest.mark.asyncio(loop_scope="module")
async def test_alone(case, own_client):
    case.score(await own_client.answer(case.input))


def test_most_alone():
    print("alone", max(most))
"""


def test_async_fixtures_that_outlive_tests_are_shared_and_others_let_tests_run_alone(project: "Project") -> None:
    project.write("test_capitals.py", SHARED)
    ran = project.run("-p", "pytest_asyncio.plugin", "-o", "asyncio_default_fixture_loop_scope=module", "-s")
    assert ran.counts == {"passed": 39 * 3 + 2, "skipped": 3}, ran.text
    assert "most 4" in ran.text
    assert "alone 1" in ran.text


def test_workers_stops_and_reruns_of_failures_are_as_of_tests_that_run_alone(project: "Project") -> None:
    project.write("test_capitals.py", TESTS.format(together=0, mark=""))
    alone = project.run("--llmeval-concurrency=1")
    for workers in (0, 2):
        together = project.run(workers=workers)
        (one,), (several,) = alone.report["suites"], together.report["suites"]
        for case in (*one["cases"], *several["cases"]):
            case["duration_s"] = 0
        assert one["cases"] == several["cases"]
        assert one["gates"] == several["gates"]
    failed = project.run("--lf", "-p", "cacheprovider", "-v")
    assert failed.counts["failed"] == 2
    first = project.run("-x", "-v")
    verdicts = [verdict for nodeid, verdict in first.verdicts().items() if "test_agent[" in nodeid]
    assert verdicts == ["PASSED"] * 5 + ["FAILED"]
    assert [case["outcome"] for case in first.report["suites"][0]["cases"]].count("passed") == 5


def test_a_test_that_hangs_meets_its_time_limit_and_the_others_pass(project: "Project") -> None:
    project.write(
        "test_capitals.py",
        TESTS.format(together=0, mark="").replace('raise ValueError("no answer")', "await asyncio.Event().wait()"),
    )
    ran = project.run("-o", "timeout=6", "-v")
    (suite,) = ran.report["suites"]
    assert [each["id"] for each in suite["cases"] if each["outcome"] != "passed"] == ["c05", "c07"], ran.text
    assert "Timeout" in suite["cases"][5]["reason"]


JUDGED = """\
import asyncio

import pytest

import pytest_llmeval as ev

CASES = [{"id": f"c{n}", "input": n, "expected": "Paris"} for n in range(8)]
capitals = ev.suite("capitals", cases=CASES, evaluators=[ev.judge(mode="default_binary")])


@pytest.fixture
def judge_client():
    class Yes:
        name = "yes"

        def complete(self, request):
            return ev.JudgeReply("yes")

    return Yes()


@capitals.test(concurrency=4)
async def test_judged(case):
    for _ in range(3 + 400 * (case.input % 3)):
        await asyncio.sleep(0)
    case.score("Paris")
"""


def test_a_case_that_ends_after_the_turn_it_began_in_has_the_judge_of_the_present_turn(project: "Project") -> None:
    project.write("test_judged.py", JUDGED)
    ran = project.run()
    assert ran.counts["passed"] == 8, ran.text
