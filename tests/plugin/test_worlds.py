"""Worlds: set up and torn down for each case and repeat, whatever the target does."""

import os
import signal
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from running import WITHOUT_UNUSED, Started
from servers import PATIENCE

if TYPE_CHECKING:
    from conftest import Project

SHOP = """
import os
import sqlite3
import threading
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path


def log(*words):
    with open("log.txt", "a") as file:
        print(*words, file=file)


@contextmanager
def world(case):
    log("up", case.id)
    with closing(sqlite3.connect(":memory:")) as db:
        db.execute("CREATE TABLE orders (id INTEGER, status TEXT)")
        db.execute("INSERT INTO orders VALUES (7, 'open')")
        yield db
        log("down", case.id, db.execute("SELECT status FROM orders").fetchone()[0])


def state(db):
    return {"orders": [{"id": each, "status": status} for each, status in db.execute("SELECT * FROM orders")]}


def agent(word, db):
    if word == "raise":
        raise ValueError("boom")
    if word == "refund":
        db.execute("UPDATE orders SET status = status || '+'")
    return {"answer": "Done.", "state": state(db)}


def talk(messages, db):
    return agent(messages[-1]["content"], db)


@asynccontextmanager
async def async_world(case):
    with contextmanager(world.__wrapped__)(case) as db:
        yield db


async def async_agent(word, db):
    return agent(word, db)


def thread(word, world):
    here = threading.current_thread() is threading.main_thread()
    return "main" if here and world is threading.main_thread() else "other"


@contextmanager
def thread_world():
    yield threading.current_thread()
"""


@pytest.fixture
def shop(project: "Project") -> "Project":
    project.write("shop.py", SHOP)
    return project


def events(folder: Path) -> Counter[str]:
    return Counter((folder / "log.txt").read_text(encoding="utf-8").splitlines())


def refund(project: "Project", target: Any, **top: Any) -> None:
    cases = [{"id": f"c{number}", "input": "refund"} for number in range(4)]
    checks = [{"equals": "open+", "on": "state.orders[0].status"}]
    project.suite("s.eval.yaml", cases, **{"target": target, "checks": checks, "evaluators": [], **top})


@pytest.mark.parametrize(("agent", "world"), [("agent", "world"), ("async_agent", "async_world")])
def test_each_case_and_repeat_has_a_world_of_its_own(shop: "Project", agent: str, world: str, workers: int) -> None:
    refund(shop, {"python": f"shop:{agent}", "world": f"shop:{world}"}, repeats=3)
    ran = shop.run(workers=workers)
    assert ran.counts == {"passed": 4}
    assert events(shop.path) == {
        f"{what}": 3 for number in range(4) for what in (f"up c{number}", f"down c{number} open+")
    }


def test_a_conversation_has_one_world_for_all_its_turns(shop: "Project", workers: int) -> None:
    checks = [{"equals": "open++", "on": "outcome.orders[0].status"}]
    target = {"python": "shop:talk", "world": "shop:world"}
    cases = [{"id": "c", "messages": ["refund", "wait", "refund"]}]
    shop.suite("s.eval.yaml", cases, target=target, checks=checks, parts={"outcome": "state"}, evaluators=[])
    assert shop.run(workers=workers).counts == {"passed": 1}
    assert events(shop.path) == {"up c": 1, "down c open++": 1}


@pytest.mark.parametrize("concurrency", [1, None])
def test_world_and_target_share_a_thread(shop: "Project", concurrency: int | None) -> None:
    target = {"python": "shop:thread", "world": "shop:thread_world", "concurrency": concurrency}
    cases = [{"id": "c", "input": "x", "expected": "other" if concurrency is None else "main"}]
    shop.suite("s.eval.yaml", cases, target=target, thresholds={"exact_match": 1})
    assert shop.run().counts == {"passed": 1}


def test_a_world_is_torn_down_when_the_target_raises(shop: "Project", workers: int) -> None:
    target = {"python": "shop:agent", "world": "shop:world"}
    shop.suite("s.eval.yaml", [{"id": "c", "input": "raise"}], target=target)
    ran = shop.run(workers=workers)
    assert ran.outcomes("s") == {"c": "errored"}
    assert "ValueError: boom" in ran.text
    assert events(shop.path) == {"up c": 1, "down c open": 1}


HANGING = """
import threading
from contextlib import contextmanager

ended = threading.Event()


@contextmanager
def world():
    yield 1
    ended.set()
    open("torn-down", "w").close()


def agent(word, world):
    ended.wait()
    return word
"""


def test_a_world_is_torn_down_when_the_target_takes_too_long(project: "Project") -> None:
    project.write("app.py", HANGING)
    target = {"python": "app:agent", "world": "app:world", "timeout": 0.2}
    project.suite("s.eval.yaml", [{"id": "c", "input": "x"}], target=target)
    assert "the target took longer than 0.2 s" in project.run().text
    assert (project.path / "torn-down").exists()


BROKEN = """
from contextlib import contextmanager


@contextmanager
def up(case):
    raise OSError("disk full")
    yield


@contextmanager
def down(case):
    yield
    raise OSError("busy")


def plain(case):
    yield


def agent(word):
    if word == "raise":
        raise ValueError("boom")
    return word.upper()
"""


@pytest.mark.parametrize(
    ("world", "word", "reason"),
    [
        ("up", "a", "the world cannot be set up: OSError: disk full (app.py:7 in up)"),
        ("down", "a", "the world cannot be torn down: OSError: busy (app.py:14 in down)"),
        (
            "down",
            "raise",
            "ValueError: boom (app.py:23 in agent); the world cannot be torn down: OSError: busy (app.py:14 in down)",
        ),
        (
            "plain",
            "a",
            "the world is of type generator (app.py:17), expected a context manager, as of contextlib.contextmanager",
        ),
        ("none", "a", "world 'app:none': module 'app' has no callable 'none' (did you mean 'down'?)"),
    ],
)
def test_what_goes_wrong_in_a_world_is_an_error_of_the_case(
    project: "Project", world: str, word: str, reason: str
) -> None:
    project.write("app.py", BROKEN)
    target = {"python": "app:agent", "world": f"app:{world}"}
    project.suite("s.eval.yaml", [{"id": "c", "input": word}], target=target)
    ran = project.run("--llmeval-predictions=p.jsonl")
    assert [(each["outcome"], each["reason"]) for each in ran.suites["s"]["cases"]] == [("errored", reason)]
    recorded = project.path / "p.jsonl"
    assert not recorded.exists() or not recorded.read_text(encoding="utf-8")


def test_a_replay_enters_no_world(shop: "Project") -> None:
    refund(shop, {"python": "shop:agent", "world": "shop:world"})
    first = shop.run("--llmeval-predictions=p.jsonl")
    (shop.path / "log.txt").unlink()
    again = shop.run("--llmeval-predictions=p.jsonl")
    assert first.counts == again.counts == {"passed": 4}
    assert not (shop.path / "log.txt").exists()


SERVICE = """
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.request import urlopen


@contextmanager
def service(case):
    orders = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            orders.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(orders).encode())

        def log_message(self, *args):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def agent(word, *, case, world):
    for path in (word, case.id):
        with urlopen(f"{world}/{path}") as reply:
            seen = json.load(reply)
    return " ".join(seen)
"""


def test_a_world_can_be_a_service(project: "Project", workers: int) -> None:
    project.write("app.py", SERVICE)
    cases = [{"id": f"c{number}", "input": "pay", "expected": f"/pay /c{number}"} for number in range(4)]
    target = {"python": "app:agent", "world": "app:service"}
    project.suite("s.eval.yaml", cases, target=target, thresholds={"exact_match": 1}, repeats=2)
    assert project.run(workers=workers).counts == {"passed": 4}


def test_systems_have_worlds_of_their_own(shop: "Project") -> None:
    systems = {
        "plain": {"python": "shop:agent", "world": "shop:world"},
        "async": {"python": "shop:async_agent", "world": "shop:async_world"},
    }
    refund(shop, None, systems=systems)
    assert shop.run().counts == {"passed": 8}
    assert events(shop.path)["up c0"] == 2


def test_a_target_without_the_argument_has_a_world_all_the_same(shop: "Project") -> None:
    shop.write("app.py", "def agent(word, verbose=False):\n    return word.upper()\n")
    shop.asking("s.eval.yaml", {"python": "app:agent", "world": "shop:world"}, "a")
    assert shop.run().counts == {"passed": 1}
    assert events(shop.path) == {"up a": 1, "down a open": 1}


def test_a_world_that_the_suite_does_not_name_is_missed(shop: "Project") -> None:
    shop.write("app.py", "def agent(word, world):\n    return word.upper()\n")
    shop.asking("s.eval.yaml", "app:agent", "a")
    assert "and with `world` if the suite names one" in shop.run().text


@pytest.mark.parametrize(
    ("target", "fault"),
    [
        ({"command": ["cat"], "world": "a:b"}, "found a world beside command, expected a python target"),
        ({"python": "a:b", "world": "b"}, "target.world: found 'b', expected MODULE:NAME such as"),
    ],
)
def test_a_world_needs_a_python_target(project: "Project", target: dict[str, Any], fault: str) -> None:
    project.asking("s.eval.yaml", target, "a")
    assert fault in project.run().text


SKIPPING = """
from contextlib import contextmanager

import pytest


@contextmanager
def world(case):
    pytest.skip("no database here")
    yield


def agent(word):
    return word
"""


def test_a_world_can_skip_its_case(project: "Project") -> None:
    project.write("app.py", SKIPPING)
    project.asking("s.eval.yaml", {"python": "app:agent", "world": "app:world"}, "a")
    assert project.run().counts == {"skipped": 1}


WAITING = """
import asyncio
import threading
from contextlib import contextmanager


@contextmanager
def world(case):
    open("up", "w").close()
    yield
    open("down", "w").close()


def plain(word):
    threading.Event().wait()


async def waiting(word):
    await asyncio.Event().wait()
"""


@pytest.mark.parametrize(("agent", "concurrency"), [("plain", None), ("plain", 1), ("waiting", None), ("waiting", 1)])
def test_a_world_is_torn_down_when_the_run_is_interrupted(
    project: "Project", agent: str, concurrency: int | None
) -> None:
    project.write("app.py", WAITING)
    target = {"python": f"app:{agent}", "world": "app:world", "concurrency": concurrency}
    project.asking("s.eval.yaml", target, "a")
    nowhere = Path(os.devnull)
    line = ["-m", "pytest", *WITHOUT_UNUSED, "--llmeval", "-pno:cacheprovider"]
    run = Started(line, os.environ, project.path, nowhere, nowhere, group=True)
    try:
        until = time.monotonic() + PATIENCE
        while not (project.path / "up").exists():
            assert time.monotonic() < until
            assert not run.has_ended(0.01)
        os.kill(run.pid, signal.SIGINT)
        assert run.wait() == pytest.ExitCode.INTERRUPTED
    finally:
        if run.code is None:
            os.killpg(run.pid, signal.SIGKILL)
    assert (project.path / "down").exists()


KILLED = """
import os
import signal
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def world(case):
    yield []


def agent(messages, world=None):
    turn = sum(each["role"] == "user" for each in messages)
    with open("asked.txt", "a") as file:
        print(turn, file=file)
    if turn == 2 and not Path("go").exists():
        os.kill(os.getpid(), signal.SIGKILL)
    return f"turn {turn}"
"""


@pytest.mark.parametrize(("world", "asked"), [(None, "1 2 2"), ("app:world", "1 2 1 2")])
def test_a_conversation_that_was_killed_begins_again_in_a_new_world(
    project: "Project", world: str | None, asked: str
) -> None:
    project.write("app.py", KILLED)
    cases = [{"id": "c", "messages": ["a", "b"], "expected": "turn 2"}]
    project.suite("s.eval.yaml", cases, target={"python": "app:agent", "world": world}, thresholds={"exact_match": 1})
    assert project.run("--llmeval-predictions=p.jsonl").code == -signal.SIGKILL
    (project.path / "go").touch()
    assert project.run("--llmeval-predictions=p.jsonl").counts == {"passed": 1}
    assert (project.path / "asked.txt").read_text(encoding="utf-8").split() == asked.split()
