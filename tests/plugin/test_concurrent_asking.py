"""Calls of judges and targets at the same time: as many as the user allows, none twice, and none too early."""

import json
import sqlite3
import threading
from typing import TYPE_CHECKING

import pytest
from scripted_judges import case, shown_to
from servers import PATIENCE, Answer, Call, LlmServer, Sent, reply

if TYPE_CHECKING:
    from scripted_judges import Judged

BOT = """\
import json
import os
import threading
import urllib.request


def remote(word):
    body = json.dumps({{"model": "t", "messages": [{{"content": json.dumps({{"answer": "for " + word}})}}]}})
    request = urllib.request.Request("{url}/chat/completions", body.encode(), {{"content-type": "application/json"}})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["choices"][0]["message"]["content"] + word


def noted(word):
    with open("asked.txt", "a") as file:
        file.write(word + " " + str(threading.current_thread() is threading.main_thread()) + "\\n")
    return word
"""


def crowd(server: LlmServer, size: int) -> Answer:
    """Answer only when so many have asked, and one more has had its chance to ask at the same time."""
    changed = threading.Condition()

    def answer(call: Call) -> Sent:
        with changed:
            changed.notify_all()
            assert changed.wait_for(lambda: len(server.calls) >= size, PATIENCE)
            changed.wait_for(lambda: server.most_in_flight > size, 0.1)
        return reply("yes")(call)

    return answer


@pytest.fixture
def asking(judged: "Judged") -> "Judged":
    """A project with targets that note what they are asked, or ask the server themselves."""
    judged.project.write("bot.py", BOT.format(url=judged.server.base_url))
    return judged


def _noted(judged: "Judged") -> list[list[str]]:
    lines = (judged.project.path / "asked.txt").read_text(encoding="utf-8").splitlines()
    return [line.split() for line in lines]


@pytest.mark.parametrize("limit", [1, 4])
def test_calls_in_flight_reach_the_limit_of_the_run_and_never_exceed_it(
    asking: "Judged", limit: int, workers: int
) -> None:
    asking.server.script(crowd(asking.server, limit))
    words = [f"w{number}" for number in range(6)]
    asking.suite("judge.eval.yaml", words)
    asked = [{"id": word, "input": word, "expected": word} for word in words]
    asking.suite("target.eval.yaml", asked, target="bot:remote")
    ran = asking.project.run(f"--llmeval-concurrency={limit}", workers=workers)
    assert ran.counts == {"passed": 12}
    assert asking.server.most_in_flight == limit
    assert len(asking.server.calls) == 18


def test_two_workers_ask_neither_judge_nor_target_twice(asking: "Judged") -> None:
    words = [f"w{number}" for number in range(30)]
    asking.suite("s.eval.yaml", [{"id": word, "input": word, "expected": word} for word in words], target="bot:noted")
    ran = asking.project.run("--llmeval-concurrency=4", workers=2)
    assert ran.counts == {"passed": 30}
    assert sorted(word for word, _ in _noted(asking)) == sorted(words)
    assert asking.asked() == dict.fromkeys(sorted(words), 1)
    usage = ran.suites["s"]["usage"]
    assert (usage["verdicts"], usage["calls"]) == (30, 30)


ONE_ANSWER = """\
import pytest


@pytest.fixture(params=["low", "up"])
def llmeval_target(request):
    return lambda word: "same"
"""


def test_what_got_no_verdict_is_asked_once_whatever_suites_and_variants_ask_it(asking: "Judged") -> None:
    asking.server.script(reply("perhaps"))
    asking.project.write("conftest.py", ONE_ANSWER)
    for name in ("s.eval.yaml", "t.eval.yaml"):
        asking.suite(name, [{"id": "x", "input": "x", "expected": "x"}])
    ran = asking.project.run(workers=2)
    assert ran.counts == {"failed": 4}
    assert asking.asked() == {"same": 1}


def test_what_workers_tell_each_other_is_forgotten_when_the_run_ends(asking: "Judged") -> None:
    asking.server.script(reply("perhaps"))
    asking.suite("s.eval.yaml", [{"id": word, "input": word, "expected": word} for word in "abc"], target="bot:noted")
    ran = asking.project.run(workers=2)
    assert ran.counts == {"failed": 3}
    connection = sqlite3.connect(asking.cache)
    tables = ("answers", "entries", "leases", "slots")
    left = {table: connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0] for table in tables}
    connection.close()
    assert left == dict.fromkeys(tables, 0)


LATE = """\
import os
import pathlib
import threading

import pytest


def pytest_runtest_setup(item):
    if os.environ["PYTEST_XDIST_WORKER"] == "gw1":
        while not pathlib.Path("asked").exists():
            threading.Event().wait(0.01)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish():
    pathlib.Path("ended").touch()
"""


@pytest.mark.parametrize("target", [None, "bot:remote"])
def test_a_worker_that_is_done_finishes_what_it_has_asked_for_others(asking: "Judged", target: str | None) -> None:
    # The first worker runs a and b and looks at the cases of the second one, which begins only when that has asked.
    again = threading.Event()

    def answer(call: Call) -> Sent:
        if json.loads(call.prompt.removeprefix("<data>").removesuffix("</data>"))["answer"].endswith("last"):
            if (asking.project.path / "asked").exists():
                again.set()
            asking.project.write("asked", "")
            while not (asking.project.path / "ended").exists() and not again.wait(0.01):
                pass
            again.wait(1.0)
        return reply("yes")(call)

    asking.server.script(answer)
    asking.project.write("conftest.py", LATE)
    words = ("a", "b", "last", "z")
    cases = [{"id": x, "input": x, "expected": x} for x in words] if target else words
    asking.suite("s.eval.yaml", cases, target=target)
    assert asking.project.run(workers=2).counts == {"passed": 4}
    assert set(asking.asked().values()) == {1}


FIXTURES = """\
import pytest


@pytest.fixture(autouse=True)
def each(request):
    with open("asked.txt", "a") as file:
        file.write(request.node.name + " begins\\n")
    yield
    with open("asked.txt", "a") as file:
        file.write(request.node.name + " ends\\n")
"""


def test_a_target_is_not_called_before_the_fixtures_of_its_own_test(asking: "Judged") -> None:
    asking.project.write("conftest.py", FIXTURES)
    asking.suite("s.eval.yaml", [{"id": x, "input": x, "expected": x} for x in "abc"], target="bot:noted")
    ran = asking.project.run()
    assert ran.code == 0
    assert _noted(asking) == [part for x in "abc" for part in ([x, "begins"], [x, "True"], [x, "ends"])]


def test_a_judge_is_asked_early_whatever_fixtures_the_tests_have(asking: "Judged") -> None:
    asking.server.script(crowd(asking.server, 3))
    asking.project.write("conftest.py", FIXTURES)
    asking.suite("s.eval.yaml", "abc")
    assert asking.project.run().code == 0
    assert asking.server.most_in_flight == 3


OWN_JUDGE = """\
import pytest


@pytest.fixture
def judge_client():
    def judge(request):
        note("asked")
        return "yes"

    note("opens")
    yield judge
    note("closes")


def note(word):
    with open("asked.txt", "a") as file:
        file.write(word + "\\n")
"""


def test_a_judge_that_lives_for_one_test_is_asked_within_it(asking: "Judged") -> None:
    asking.project.write("conftest.py", OWN_JUDGE)
    asking.suite("s.eval.yaml", "abc", judge=None)
    assert asking.project.run().code == 0
    assert [word for (word,) in _noted(asking)] == ["opens", "asked", "closes"] * 3


@pytest.mark.parametrize("how", ["--llmeval-concurrency=1", "target.concurrency"])
def test_one_at_a_time_means_in_the_main_thread_and_in_order(asking: "Judged", how: str) -> None:
    cases = [{"id": x, "input": x, "expected": x} for x in "cab"]
    of_suite = how == "target.concurrency"
    target = {"python": "bot:noted", "concurrency": 1} if of_suite else "bot:noted"
    asking.suite("s.eval.yaml", cases, target=target)
    ran = asking.project.run(*([] if of_suite else [how]))
    assert ran.code == 0
    assert _noted(asking) == [[x, "True"] for x in "cab"]
    assert [shown_to(call)["answer"] for call in asking.server.calls] == ["c", "a", "b"]


def test_stopping_at_the_first_failure_wastes_no_more_than_the_window(asking: "Judged", workers: int) -> None:
    asking.server.script(reply("no"))
    asking.suite("s.eval.yaml", [f"w{number}" for number in range(100)], thresholds={"judge_score": 1})
    ran = asking.project.run("-x", "--llmeval-concurrency=2", workers=workers)
    assert ran.code != 0
    assert "failed" in ran.outcomes("s").values()  # with workers, of whichever is heard first
    # A window is twice the concurrency; a second worker has one of its own, and starts a case or two more.
    assert 1 <= len(asking.server.calls) <= (5 if not workers else 14)


SKIPS = """\
import pytest


def pytest_collection_modifyitems(items):
    for item in items:
        if item.name == "b":
            item.add_marker(pytest.mark.skip(reason="not today"))
        if item.name == "d":
            item.add_marker(pytest.mark.skipif(True, reason="nor this"))
"""


def test_what_a_mark_skips_is_never_asked(asking: "Judged") -> None:
    asking.project.write("conftest.py", SKIPS)
    asking.suite("s.eval.yaml", "abcde")
    ran = asking.project.run()
    assert ran.counts == {"passed": 3, "skipped": 2}
    assert asking.asked() == {"a": 1, "c": 1, "e": 1}


def test_deselected_cases_are_never_asked(asking: "Judged") -> None:
    asking.suite("s.eval.yaml", [case("a", tags=["smoke"]), "b", case("c", tags=["smoke"])])
    assert asking.project.run("-m", "smoke").counts == {"passed": 2, "deselected": 1}
    assert asking.asked() == {"a": 1, "c": 1}


def test_a_model_matrix_asks_early_and_every_variant_for_itself(asking: "Judged", workers: int) -> None:
    asking.project.write(
        "conftest.py",
        """\
        import pytest

        @pytest.fixture(params=["low", "up"])
        def llmeval_target(request):
            return {"low": str.lower, "up": str.upper}[request.param]
        """,
    )
    asking.suite("s.eval.yaml", [{"id": x, "input": x, "expected": x} for x in "abcd"])
    if not workers:
        asking.server.script(crowd(asking.server, 4))
    ran = asking.project.run(workers=workers)
    assert ran.counts == {"passed": 8}
    assert asking.asked() == dict.fromkeys("ABCDabcd", 1)
    assert workers or asking.server.most_in_flight >= 4
