"""Suites whose target is a service or a command: batches, faults, recordings, processes that end."""

import sys
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from running import is_running
from servers import PATIENCE, Request, SearchAnswer, SearchServer, echo, serving

if TYPE_CHECKING:
    from conftest import Project

FILE = "--llmeval-predictions=recorded.jsonl"
BATCHED = {"queries": {"$each": {"$input": True}}}


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


def shouting(request: Request, _: int) -> SearchAnswer:
    """Fail for a batch with ``boom``, give nothing for ``null``, hang up on ``drop``; else answer in capitals."""
    words = request.json["queries"]
    if "boom" in words:
        return SearchAnswer("boom", 500, {"Retry-After": "0"})
    if "html" in words:
        return SearchAnswer(b"<html>")
    if "drop" in words:
        return SearchAnswer(drop=True)
    return SearchAnswer({"results": [None if word == "null" else word.upper() for word in words]})


@pytest.fixture
def server() -> Iterator[SearchServer]:
    with serving(shouting) as server:
        yield server


def http(server: SearchServer, **options: Any) -> dict[str, Any]:
    return {
        "http": {
            "url": f"{server.url}/search?key=hidden",
            "request": BATCHED,
            "response": "results",
            "batch": 2,
            "retries": 1,
            **options,
        }
    }


def cases(*words: str, **more: Any) -> list[dict[str, Any]]:
    return [{"id": word, "input": word, "expected": word.upper(), **more} for word in words]


def asked(server: SearchServer) -> list[list[str]]:
    """Return the batches sent since the last call, sorted: several are under way at once, and arrive in any order."""
    batches = sorted(request.json["queries"] for request in server.requests)
    server.requests.clear()
    return batches


def reasons(ran: Any, suite: str = "s") -> dict[str, str | None]:
    return {case["id"]: case["reason"] for case in ran.suites[suite]["cases"]}


def test_a_service_is_asked_in_batches_cut_by_position_in_the_file(
    project: "Project", server: SearchServer, workers: int
) -> None:
    given = {"id": "given", "input": "x", "expected": "y", "prediction": "y"}
    project.suite("s.eval.yaml", [*cases("a", "b"), given, *cases("c", "d", "e")], target=http(server))
    ran = project.run(workers=workers)
    assert (ran.code, ran.counts) == (0, {"passed": 6})
    assert asked(server) == [["a", "b"], ["c", "d"], ["e"]]


def test_as_many_batches_are_under_way_as_the_service_may_be_asked_at_once(project: "Project") -> None:
    together = threading.Barrier(3)

    def behave(request: Request, number: int) -> SearchAnswer:
        if number < 3:
            together.wait(PATIENCE)
        return echo(request, number)

    words = [f"w{number}" for number in range(96)]
    with serving(behave) as server:
        project.suite("s.eval.yaml", cases(*words), target=http(server, batch=32, concurrency=3, retries=0))
        assert project.run().counts == {"passed": 96}
        assert server.most == 3


def test_bulk_mode_asks_the_same(project: "Project", server: SearchServer) -> None:
    project.suite("s.eval.yaml", cases("a", "b", "c"), target=http(server), mode="bulk")
    assert project.run().counts == {"passed": 1}
    assert asked(server) == [["a", "b"], ["c"]]


def test_a_batch_that_fails_costs_its_cases_only(project: "Project", server: SearchServer) -> None:
    words = ("a", "boom", "b", "html", "c", "null", "d", "drop", "e", "f")
    project.suite("s.eval.yaml", cases(*words), target=http(server), gates=["exact_match >= 0.1"])
    ran = project.run()
    assert ran.code == 1
    assert "Traceback" not in ran.text
    assert "hidden" not in ran.text
    outcomes = ran.outcomes("s")
    lost = {"a", "boom", "b", "html", "null", "d", "drop"}
    assert {word for word, outcome in outcomes.items() if outcome == "errored"} == lost
    assert {word for word, outcome in outcomes.items() if outcome == "passed"} == {"c", "e", "f"}
    assert ran.gates("s") == {"exact_match >= 0.1": "failed"}
    name = f"POST {server.url}/search"
    told = reasons(ran)
    assert told["boom"] == told["a"] == f"{name} answered 500 Internal Server Error: '\"boom\"' (2 attempts)"
    assert str(told["html"]).startswith(f"{name}: found invalid JSON (")
    assert told["null"] == f"{name}: found null at results[1], expected a prediction"
    assert str(told["drop"]).startswith(f"{name} failed: ServerDisconnectedError: ")


def test_answers_are_recorded_and_replayed_without_the_service(project: "Project", server: SearchServer) -> None:
    project.suite("s.eval.yaml", cases("a", "b", "c"), target=http(server))
    first = project.run(FILE, workers=2)
    assert first.code == 0
    asked(server)
    again = project.run(FILE, "--llmeval-predictions-mode=replay", workers=2)
    assert (again.code, asked(server)) == (0, [])
    assert again.suites["s"]["metrics"] == first.suites["s"]["metrics"]
    project.suite("s.eval.yaml", cases("a", "new", "b", "c"), target=http(server))
    assert project.run(FILE).code == 0
    assert asked(server) == [["new"]]
    assert project.run(FILE, "--llmeval-predictions-mode=record").code == 0
    assert asked(server) == [["a", "new"], ["b", "c"]]


def test_what_failed_is_not_recorded_and_asked_for_again(project: "Project", server: SearchServer) -> None:
    project.suite("s.eval.yaml", cases("a", "null"), target=http(server))
    assert project.run(FILE).outcomes("s") == {"a": "passed", "null": "errored"}
    asked(server)
    project.run(FILE)
    assert asked(server) == [["null"]]


def test_a_case_that_is_run_again_is_asked_for_alone(project: "Project") -> None:
    def behave(request: Request, number: int) -> SearchAnswer:
        return SearchAnswer({"results": ["wrong", "B"]}) if number == 0 else echo(request, number)

    with serving(behave) as server:
        project.suite("s.eval.yaml", cases("a", "b"), target=http(server), thresholds={"exact_match": 1})
        ran = project.run("--reruns=1", without=("syrupy",))
        assert ran.outcomes("s") == {"a": "passed", "b": "passed"}
        assert asked(server) == [["a"], ["a", "b"]]


def test_the_fixture_is_asked_before_the_service(project: "Project", server: SearchServer) -> None:
    project.write("conftest.py", "import pytest\n@pytest.fixture\ndef llmeval_target(): return str.upper\n")
    project.suite("s.eval.yaml", cases("a"), target=http(server))
    assert project.run().counts == {"passed": 1}
    assert asked(server) == []


def test_a_secret_comes_from_the_environment_and_is_shown_nowhere(
    project: "Project", monkeypatch: pytest.MonkeyPatch
) -> None:
    def behave(request: Request, _: int) -> SearchAnswer:
        return SearchAnswer({"you sent": request.headers["authorization"]}, 403)

    with serving(behave) as server:
        target = http(server, headers_from_env={"Authorization": "MY_SEARCH_TOKEN"})
        project.suite("s.eval.yaml", cases("a"), target=target)
        monkeypatch.delenv("MY_SEARCH_TOKEN", raising=False)
        missing = project.run()
        assert str(reasons(missing)["a"]).startswith("environment variable MY_SEARCH_TOKEN is not set, expected the ")
        assert server.requests == []
        monkeypatch.setenv("MY_SEARCH_TOKEN", "Bearer hush-hush-hush")
        refused = project.run(FILE, "--llmeval-report=report.md", "-o", "log_level=DEBUG", "-vv")
        assert server.requests[0].headers["authorization"] == "Bearer hush-hush-hush"
    assert "answered 403 Forbidden" in str(reasons(refused)["a"])
    written = [path.read_text(encoding="utf-8") for path in project.path.iterdir() if path.is_file()]
    assert "hush" not in "\n".join([refused.text, *written])


PROGRAM = """\
import json, os, sys

with open("starts.txt", "a") as file:
    print(os.getpid(), file=file)
for line in sys.stdin:
    asked = json.loads(line)
    if asked["input"] == "crash":
        sys.exit("out of memory")
    print(json.dumps({"id": asked["id"], "prediction": asked["input"].upper()}))
"""


def _starts(project: "Project") -> list[int]:
    return [int(line) for line in (project.path / "evals/starts.txt").read_text().split()]


def test_a_command_is_started_at_most_once_per_process_beside_its_suite_and_ends_with_the_run(
    project: "Project", workers: int
) -> None:
    project.write("evals/program.py", PROGRAM)
    words = [f"w{number}" for number in range(8)]
    project.suite("evals/s.eval.yaml", cases(*words), target={"command": [sys.executable, "program.py"], "timeout": 60})
    ran = project.run(FILE, workers=workers)
    assert (ran.code, ran.counts) == (0, {"passed": 8})
    started = len(_starts(project))
    assert 1 <= started <= max(workers, 1)  # a worker may ask for all, so that the other needs no program
    for process in _starts(project):
        assert not is_running(process)
    again = project.run(FILE, "--llmeval-predictions-mode=replay", workers=workers)
    assert again.code == 0
    assert len(_starts(project)) == started


def test_a_crash_of_a_command_costs_its_case_only(project: "Project") -> None:
    project.write("evals/program.py", PROGRAM)
    project.suite("evals/s.eval.yaml", cases("a", "crash", "b"), target={"command": [sys.executable, "program.py"]})
    ran = project.run()
    assert ran.code == 1
    assert "Traceback" not in ran.text
    assert reasons(ran) == {
        "a": None,
        "b": None,
        "crash": f"command {sys.executable!r} ended with exit code 1 without an answer; stderr: 'out of memory'",
    }


def test_a_command_does_not_outlive_a_run_that_is_interrupted(project: "Project") -> None:
    project.write("evals/program.py", PROGRAM.replace('sys.exit("out of memory")', "os.kill(os.getppid(), 2); input()"))
    project.suite("evals/s.eval.yaml", cases("a", "crash", "b"), target={"command": [sys.executable, "program.py"]})
    ran = project.run()
    assert ran.code == pytest.ExitCode.INTERRUPTED
    for process in _starts(project):
        assert not is_running(process)


def test_a_service_and_a_command_are_systems_of_one_suite(project: "Project", server: SearchServer) -> None:
    project.write("evals/program.py", PROGRAM)
    systems = {"service": http(server), "program": {"command": [sys.executable, "program.py"]}}
    project.suite("evals/s.eval.yaml", cases("a", "boom", "c"), systems=systems)
    ran = project.run(FILE)
    assert ran.outcomes("s[service]") == {"a": "errored", "boom": "errored", "c": "passed"}
    assert ran.outcomes("s[program]") == {"a": "passed", "boom": "passed", "c": "passed"}
    assert [row["system"] for row in ran.report["systems"][0]["systems"]] == ["service", "program"]
    asked(server)
    again = project.run(FILE)
    assert (asked(server), len(_starts(project))) == ([["a", "boom"], ["a", "boom"]], 1)
    assert again.outcomes("s[program]") == ran.outcomes("s[program]")
