"""Kills of what runs: what was done, in flight, lost, asked for twice, or written by halves.

A call notes when it has begun, and, in the turn of the event loop after the one in which it returns, that it is done.
Only one that had begun and was not done is in flight, and may be asked for again.
"""

import json
import os
import re
import shutil
import signal
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from running import WITHOUT_UNUSED, Started, wait_for_group
from servers import PATIENCE

CASES = 40
RUNS = ("target", "plain", "world", "approval", "judge", "cascade", "panel")
"""Ways to run that are killed by each signal, in one process and with two workers.

SIGTERM goes to the main process alone, as CI and ``docker stop`` send it; SIGINT to all processes, as a terminal does;
SIGKILL to all.
"""

KINDS = [
    *product(RUNS, (signal.SIGTERM, signal.SIGINT, signal.SIGKILL), (0, 2)),
    ("worker", signal.SIGKILL, 2),
    ("merge", signal.SIGKILL, 0),
    ("review", signal.SIGKILL, 0),
]

APP = """\
import asyncio
import contextlib
import os
import pathlib
import re
import time

NOTES = pathlib.Path(__file__).parent / "notes.txt"


def note(what, word):
    file = os.open(NOTES, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, f"{what} {word} {os.getpid()}\\n".encode())
    os.close(file)


def note_after_return(word):
    asyncio.get_running_loop().call_soon(note, "done", word)


async def answer(word):
    note("begun", word)
    await asyncio.sleep(0.05)
    note_after_return(word)
    return word.upper()


def plain(word):
    note("begun", word)
    time.sleep(0.05)
    return word.upper()


@contextlib.asynccontextmanager
async def world():
    acted = []
    yield acted
    note_after_return(acted[0])


async def answer_in(word, world):
    note("begun", word)
    await asyncio.sleep(0.05)
    world.append(word)
    return word.upper()


async def judge(request):
    word = request.model + re.search(r"w[0-9]+", str(request))[0]
    note("begun", word)
    await asyncio.sleep(0.05)
    note_after_return(word)
    if request.model == "small":
        return '{"reasoning": "r", "score": %s}' % (0.5 if word[-1] in "02468" else 1.0)
    return '{"reasoning": "r", "score": 1.0}' if request.model in ("large", "middle") else "yes"
"""

CONFTEST = """\
import app
import pytest


@pytest.fixture(scope="session")
def judge_client():
    return app.judge
"""

WORDS = [f"w{number:03}" for number in range(CASES)]


class Kill(NamedTuple):
    """One kill.

    Attributes:
        what: Which way to run.
        number: The signal.
        workers: How many; 0: one process.
        after: How many calls are done before, or how long a merge runs, as a share of `CASES`.
    """

    what: str
    number: signal.Signals
    workers: int
    after: int


def kill(folder: Path, given: Kill) -> Counter[str]:
    """Kill once, go on, and count."""
    return {"merge": _merge, "review": _review}.get(given.what, _run)(folder, given)


def write_project(folder: Path, what: str) -> None:
    """Write a suite whose cases are asked for in one way."""
    answered = [{"id": word, "input": word, "expected": word.upper()} for word in WORDS]
    judged = [{"id": word, "input": word, "expected": "yes", "prediction": word} for word in WORDS]
    asked = {"target": "app:answer", "evaluators": [{"text": {"metrics": ["exact_match"]}}], "cases": answered}
    cascade = {"first": "fixture:small", "then": "fixture:large", "when": {"score_between": [0.3, 0.8]}}
    jurors = ["fixture:small", "fixture:large", "fixture:middle"]
    suites: dict[str, dict[str, Any]] = {
        "plain": {**asked, "target": "app:plain"},
        "world": {**asked, "target": {"python": "app:answer_in", "world": "app:world"}},
        "approval": {**asked, "snapshot": True},
        "judge": {"evaluators": [{"judge": {"mode": "default_binary"}}], "cases": judged},
        "cascade": {"judge": cascade, "evaluators": [{"judge": {"mode": "continuous"}}], "cases": judged},
        "panel": {"judges": jurors, "evaluators": [{"judge": {"mode": "continuous"}}], "cases": judged},
    }
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    (folder / "app.py").write_text(APP, encoding="utf-8")
    (folder / "conftest.py").write_text(CONFTEST, encoding="utf-8")
    (folder / "s.eval.json").write_text(json.dumps(suites.get(what, asked)), encoding="utf-8")


def start(folder: Path, *arguments: str, workers: int = 0) -> Started:
    """Start a command of the package, or pytest, as the leader of a group of processes."""
    out = folder / "out.txt"
    out.write_text("", encoding="utf-8")
    return Started(["-m", *arguments], os.environ, folder, out, out, workers=workers, group=True)


def start_run(folder: Path, given: Kill) -> Started:
    options = [*WITHOUT_UNUSED, "--llmeval", "-q", "-pno:cacheprovider", "--llmeval-concurrency=4"]
    options += ["--llmeval-predictions=answers.jsonl", "--llmeval-report=report.json", "--llmeval-texts=all"]
    options += [f"-n{given.workers}"] if given.workers else []
    options += ["--snapshot-update"] if given.what == "approval" else []
    return start(folder, "pytest", *options, workers=given.workers)


class Notes(NamedTuple):
    """What calls have noted.

    Attributes:
        begun: A word and a process for each call.
        done: The same.
    """

    begun: list[tuple[str, int]]
    done: list[tuple[str, int]]

    @classmethod
    def of(cls, folder: Path) -> "Notes":
        path = folder / "notes.txt"
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        notes: dict[str, list[tuple[str, int]]] = {"begun": [], "done": []}
        for what, word, process in map(str.split, lines):
            notes[what].append((word, int(process)))
        return cls(**notes)

    @property
    def words_begun(self) -> Counter[str]:
        return Counter(word for word, _ in self.begun)

    @property
    def words_done(self) -> set[str]:
        return {word for word, _ in self.done}


def answers_on_disk(folder: Path) -> set[str]:
    """Return the cases whose answers a later run finds."""
    journals = [*folder.glob(".llmeval/answers/*/*.jsonl"), folder / "answers.jsonl"]
    kept = set()
    for path in journals:
        for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
            with suppress(ValueError):  # the last line that a kill cut off
                kept.add(json.loads(line)["case"])
    return kept


def half_written(folder: Path) -> list[str]:
    """Return the files that a reader of users cannot read, or that nobody takes away."""
    broken = []
    for path in folder.rglob("*"):
        if path.is_file() and ".llmeval" not in path.parts and path.suffix in (".json", ".jsonl"):
            text = path.read_text(encoding="utf-8")
            try:
                for part in text.splitlines() if path.suffix == ".jsonl" else [text]:
                    json.loads(part)
            except ValueError:
                broken.append(path.name)
    return broken


def left_over(folder: Path) -> list[str]:
    """Return the files between two steps that are there once everything has ended."""
    return [path.name for path in folder.rglob("*") if re.search(r"\.tmp$|^\.llmeval-", path.name)]


def wait_until(is_so: Callable[[], bool], run: Started) -> None:
    """Wait until something is so, or a process has ended."""
    until = time.monotonic() + PATIENCE
    while not is_so() and not run.has_ended() and time.monotonic() < until:
        threading.Event().wait(0.003)


def end(run: Started) -> int:
    """Wait for a process, and end what is left of its group."""
    try:
        return run.wait()
    finally:
        with suppress(ProcessLookupError):
            os.killpg(run.pid, signal.SIGKILL)
        wait_for_group(run.pid)


def _run(folder: Path, given: Kill) -> Counter[str]:
    write_project(folder, given.what)
    run = start_run(folder, given)
    counts_answers = given.what not in ("judge", "cascade", "panel")

    def enough() -> bool:
        notes = Notes.of(folder)
        return len(notes.done if given.what != "plain" else notes.begun) >= given.after

    wait_until(enough, run)
    victim = Notes.of(folder).begun[-1][1] if given.what == "worker" else run.pid
    with suppress(ProcessLookupError):  # the run was faster
        if given.number == signal.SIGTERM or given.what == "worker":
            os.kill(victim, given.number)
        else:
            os.killpg(victim, given.number)
    code = end(run)
    first = Notes.of(folder)
    on_disk = answers_on_disk(folder) if counts_answers else set()
    broken = half_written(folder)
    reported = (folder / "report.json").exists()
    (folder / "notes.txt").unlink(missing_ok=True)
    complete = end(start_run(folder, given)) == 0
    again = Notes.of(folder)
    kept = first.words_done | on_disk
    in_flight = first.words_begun.keys() - kept
    if given.what == "worker":  # the other one goes on
        begun, done = ({word for word, process in noted if process == victim} for noted in (first.begun, first.done))
        in_flight |= begun - done
    asked = {word[-4:] for word in first.words_begun | again.words_begun}
    return Counter(
        kills=1,
        done=len(kept),
        in_flight=len(in_flight),
        again=len(first.words_begun.keys() & again.words_begun.keys()),
        lost=len((in_flight if counts_answers and given.what != "worker" else set()) - again.words_begun.keys())
        + len(again.words_begun.keys() & kept),
        twice=sum(
            count - 1
            for noted in (first, again)
            for word, count in noted.words_begun.items()
            if word not in (in_flight if noted is first and given.what == "worker" else ())
        ),
        halves=len(broken) + len(half_written(folder)) + len(left_over(folder)),
        reported=reported,
        interrupted=code == 2,
        incomplete=not complete or asked != {*WORDS} or (counts_answers and answers_on_disk(folder) != {*WORDS}),
    )


def _merge(folder: Path, given: Kill) -> Counter[str]:
    write_project(folder, "approval")
    parts = [f"{number}.llmeval" for number in (1, 2)]
    for number, part in enumerate(parts, 1):
        options = (f"--llmeval-shard={number}/2", f"--llmeval-report={part}", "--llmeval-predictions=answers.jsonl")
        assert end(start(folder, "pytest", *WITHOUT_UNUSED, "--llmeval", "-q", "-pno:cacheprovider", *options)) == 0
    line = ("pytest_llmeval", "merge", *parts, "--snapshot-update", "--report=report.json", "--report=report.md")
    before = {path.name for path in folder.iterdir()}
    started = time.monotonic()
    assert end(start(folder, *line)) == 0
    seconds = time.monotonic() - started
    for path in [path for path in folder.iterdir() if path.name not in before]:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    run = start(folder, *line)
    run.has_ended(seconds * given.after / CASES)
    with suppress(ProcessLookupError):
        os.killpg(run.pid, given.number)
    end(run)
    broken = half_written(folder)
    reported = (folder / "report.json").exists()
    complete = end(start(folder, *line)) == 0
    suite = json.loads((folder / "report.json").read_text(encoding="utf-8"))["suites"][0]
    return Counter(
        kills=1,
        done=len(WORDS),
        halves=len(broken) + len(half_written(folder)) + len(left_over(folder)),
        reported=reported,
        incomplete=not complete or {case["id"] for case in suite["cases"]} != {*WORDS},
    )


def _review(folder: Path, given: Kill) -> Counter[str]:
    write_project(folder, "judge")
    assert end(start_run(folder, given)) == 0
    line = ("pytest_llmeval", "review", "report.json", "--serve", "-o", "labels.jsonl")
    sent = Counter[str]()

    def serve() -> tuple[Started, str]:
        run = start(folder, *line)
        address = re.compile(r"http://127\.0\.0\.1:\d+/[\w-]+/")
        printed = folder / "out.txt"
        wait_until(lambda: address.search(printed.read_text(encoding="utf-8")) is not None, run)
        found = address.search(printed.read_text(encoding="utf-8"))
        assert found is not None, printed.read_text(encoding="utf-8")
        return run, found[0]

    def save(address: str, places: Iterable[int]) -> None:
        for place in places:
            body = json.dumps({"annotator": "ana", "labels": [{"item": place, "label": "yes"}]}).encode()
            origin = re.match(r"http://[^/]+", address)
            assert origin is not None
            headers = {"Content-Type": "application/json", "Origin": origin[0]}
            sent["begun"] = place + 1
            with urllib.request.urlopen(urllib.request.Request(f"{address}labels", body, headers)) as reply:
                assert reply.read() == b"saved"
            sent["done"] = place + 1

    run, address = serve()

    def click() -> None:
        with suppress(OSError):  # killed
            save(address, range(CASES))

    clicking = threading.Thread(target=click)
    clicking.start()
    wait_until(lambda: sent["done"] >= given.after, run)
    os.killpg(run.pid, given.number)
    end(run)
    clicking.join()
    kept = _labels(folder)
    broken = half_written(folder)
    run, address = serve()
    begun, done = sent["begun"], sent["done"]
    save(address, range(kept, CASES))
    os.killpg(run.pid, signal.SIGINT)
    end(run)
    return Counter(
        kills=1,
        done=done,
        in_flight=begun - done,
        lost=max(done - kept, 0),
        halves=len(broken) + len(half_written(folder)) + len(left_over(folder)),
        incomplete=_labels(folder) != CASES,
    )


def _labels(folder: Path) -> int:
    path = folder / "labels.jsonl"
    return len(path.read_text(encoding="utf-8").splitlines()) if path.exists() else 0
