"""Complete runs whose evaluator asks in rounds: recorded, replayed, bulk, early, in parallel."""

import shutil
from pathlib import Path
from typing import Any

from scripted_judges import Judged, entries_of, shown_to
from servers import Call, Sent, reply

CONFTEST = """
    from builders import Chain

    def pytest_llmeval_register(registry):
        registry.register(Chain)
"""


def chained(judged: Judged, **top: Any) -> None:
    project = judged.project
    tests = Path(__file__).parents[1]
    shutil.copy(tests / "builders.py", project.path / "builders.py")
    project.write("conftest.py", CONFTEST)
    answers = ["stop", *(f"go {number}" for number in range(3))]
    judged.suite("s.eval.yaml", answers, evaluators=["chain"], judge=judged.judge(), **top)


def says(call: Call) -> Sent:
    """Let the chain of ``stop`` end at its second link."""
    shown = shown_to(call)
    return reply("0" if (shown["answer"], shown["link"]) == ("stop", "second") else "1")(call)


def totals(ran: Any) -> tuple[float, int]:
    suite = ran.suites["s"]
    return suite["metrics"]["links"]["value"], suite["usage"]["calls"]


def test_rounds_are_asked_recorded_and_replayed_whole(judged: Judged) -> None:
    chained(judged)
    judged.server.script(says)
    ran = judged.project.run("--llmeval-judge=record")
    assert totals(ran) == (2.5, 11)
    assert judged.asked() == {"stop": 2, "go 0": 3, "go 1": 3, "go 2": 3}
    assert len(entries_of(judged.recordings())) == 11
    shutil.rmtree(judged.cache.parent)
    assert totals(judged.project.run(workers=2)) == (2.5, 0)
    assert totals(judged.project.run("--llmeval-judge=replay")) == (2.5, 0)
    assert judged.asked() == {}
    lines = judged.recordings().read_text("utf-8").splitlines(keepends=True)
    judged.recordings().write_text("".join(lines[:-1]), "utf-8")
    lacking = judged.project.run("--llmeval-judge=replay").outcomes("s")
    assert sorted(lacking.values()) == ["errored", "passed", "passed", "passed"]


def test_rounds_are_asked_in_bulk_and_in_parallel_and_none_of_them_where_judges_are_off(judged: Judged) -> None:
    chained(judged, mode="bulk")
    judged.server.script(says)
    off = judged.project.run("--llmeval-judge=off")
    assert off.suites["s"]["metrics"]["links"]["undefined"] == 4
    assert judged.asked() == {}
    assert totals(judged.project.run()) == (2.5, 11)
    chained(judged)
    assert totals(judged.project.run("--llmeval-judge=refresh", workers=2)) == (2.5, 11)
    assert judged.asked() == {"stop": 4, "go 0": 6, "go 1": 6, "go 2": 6}


def test_a_budget_that_ends_between_two_rounds_ends_the_run_there(judged: Judged) -> None:
    chained(judged)
    judged.server.script(says)
    ran = judged.project.run("--llmeval-budget=calls=3", "--llmeval-concurrency=1")
    assert sum(judged.asked().values()) == 3
    outcomes = ran.outcomes("s")
    assert (outcomes["stop"], outcomes["go 2"]) == ("passed", "not_run")
