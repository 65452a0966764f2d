"""Kill runs at random moments, go on with them, and count: answers delivered, kept, and paid twice.

    python benchmarks/kills.py [--times N] [--seed N]

Every combination of SIGTERM, SIGINT and SIGKILL, one process and two workers, and targets, worlds, approvals and judges
is killed N times (default 5: 120 kills). SIGTERM goes to the main process alone, as CI and ``docker stop`` send it;
SIGINT to all processes, as a terminal does; SIGKILL to all. An answer is delivered once the target or judge has
returned it, and kept if the next run does not ask for it again.
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import suppress
from itertools import product
from pathlib import Path

CASES = 40
WHAT = ("target", "world", "approval", "judge")
PATIENCE_S = 120.0

APP = """\
import asyncio
import contextlib
import os
import pathlib
import re

LOG = pathlib.Path(__file__).parent / "delivered.txt"


async def answer(word):
    await asyncio.sleep(0.05)
    file = os.open(LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, f"{word}\\n".encode())
    os.close(file)
    return word.upper()


@contextlib.asynccontextmanager
async def world():
    yield {}


async def answer_in(word, world):
    return await answer(word)


async def judge(request):
    await answer(re.search(r"w[0-9]+", str(request))[0])
    return "yes"
"""

CONFTEST = """\
import app
import pytest


@pytest.fixture(scope="session")
def judge_client():
    return app.judge
"""


def project(folder: Path, what: str) -> None:
    """Write a suite that asks a target, one in a world, or a judge about every case; the answers may be approved."""
    words = [f"w{number:03}" for number in range(CASES)]
    called = {
        "evaluators": [{"text": {"metrics": ["exact_match"]}}],
        "cases": [{"id": word, "input": word, "expected": word.upper()} for word in words],
    }
    suite = {
        "target": {**called, "target": "app:answer"},
        "world": {**called, "target": {"python": "app:answer_in", "world": "app:world"}},
        "approval": {**called, "target": "app:answer", "snapshot": True},
        "judge": {
            "evaluators": [{"judge": {"mode": "default_binary"}}],
            "cases": [{"id": word, "input": word, "expected": "yes", "prediction": word} for word in words],
        },
    }
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    (folder / "app.py").write_text(APP, encoding="utf-8")
    (folder / "conftest.py").write_text(CONFTEST, encoding="utf-8")
    (folder / "s.eval.json").write_text(json.dumps(suite[what]), encoding="utf-8")


def delivered(folder: Path) -> list[str]:
    path = folder / "delivered.txt"
    return path.read_text(encoding="utf-8").split() if path.exists() else []


def start(folder: Path, what: str, workers: int) -> "subprocess.Popen[bytes]":
    line = [sys.executable, "-m", "pytest", "--llmeval", "-q", "-pno:cacheprovider", "--llmeval-concurrency=4"]
    line += ["--llmeval-predictions=answers.jsonl", "--llmeval-report=report.json"]
    line += [f"-n{workers}"] if workers else []
    line += ["--snapshot-update"] if what == "approval" else []
    return subprocess.Popen(
        line, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )


def kill(folder: Path, what: str, number: signal.Signals, workers: int, after: int) -> Counter[str]:
    """Kill one run once so many answers are delivered, go on with it, and count."""
    project(folder, what)
    run = start(folder, what, workers)
    until = time.monotonic() + PATIENCE_S
    while len(delivered(folder)) < after and run.poll() is None and time.monotonic() < until:
        threading.Event().wait(0.005)
    with suppress(ProcessLookupError):  # the run was faster
        if number == signal.SIGTERM:
            run.send_signal(number)
        else:
            os.killpg(run.pid, number)
    try:
        code = run.wait(PATIENCE_S)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(run.pid, signal.SIGKILL)
    first = delivered(folder)
    reported = (folder / "report.json").exists()
    (folder / "delivered.txt").unlink(missing_ok=True)
    again = start(folder, what, workers)
    complete = again.wait(PATIENCE_S) == 0
    twice = Counter(first + delivered(folder))
    return Counter(
        kills=1,
        delivered=len(first),
        kept=len(set(first) - set(delivered(folder))),
        twice=sum(count - 1 for count in twice.values()),
        reported=reported,
        interrupted=code == 2,
        complete=complete and len(twice) == CASES,
    )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--times", type=int, default=5)
    options.add_argument("--seed", type=int, default=1)
    given = options.parse_args()
    chance = random.Random(given.seed)
    columns = ("kills", "delivered", "kept", "twice", "reported", "interrupted", "complete")
    print(f"{'':26}" + "".join(f"{name:>13}" for name in columns))
    total: Counter[str] = Counter()
    for what, number, workers in product(WHAT, (signal.SIGTERM, signal.SIGINT, signal.SIGKILL), (0, 2)):
        found: Counter[str] = Counter()
        for _ in range(given.times):
            folder = Path(tempfile.mkdtemp(prefix="llmeval-kills-"))
            try:
                found += kill(folder, what, number, workers, chance.randint(1, CASES - 8))
            finally:
                shutil.rmtree(folder, ignore_errors=True)
        row = "".join(f"{found[name]:13}" for name in columns)
        print(f"{what:9}{number.name:8}{'-n 2' if workers else 'serial':9}{row}", flush=True)
        total += found
    print(f"{'total':26}" + "".join(f"{total[name]:13}" for name in columns))


if __name__ == "__main__":
    main()
