"""Commands and processes: forked from a warm process, with other rights, on a cluster; and the stores they write."""

import asyncio
import atexit
import gzip
import io
import json
import os
import select
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple
from unittest import mock

from servers import PATIENCE

if TYPE_CHECKING:
    import pytest
    from conftest import Project
    from distributed import LocalCluster


WITHOUT_UNUSED = (
    "-pno:anyio",
    "-pno:asyncio",
    "-pno:hypothesispytest",
    "-pno:platformdirs",
    "-pno:pytest-retry",
    "-pno:recording",
)
"""Arguments of pytest that leave out plugins of other distributions: each takes time, or changes how tests run."""

START = ("LANG", "LC_", "OMP_", "OPENBLAS_", "PYTHON")
"""How the environment variables begin that Python and its libraries read when they start, and only then.

All but `PYTHONPATH`, whose folders a fork can still add.
"""

ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1", **os.environ}
"""What the warm process starts in."""


@dataclass(frozen=True)
class Finished:
    """What a process left behind.

    Attributes:
        code: Exit code; that of a signal is negative.
        out: What it printed.
        err: What it printed to standard error.
    """

    code: int
    out: str
    err: str


def run_python(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    folder: Path,
    *,
    workers: int = 0,
    cold: bool = False,
    libraries: tuple[str, ...] = (),
) -> Finished:
    """Do what ``python ARGUMENTS`` does.

    Args:
        arguments: ``-m MODULE ...`` or ``-c CODE ...``.
        environment: Of the process.
        folder: Where it runs.
        workers: How many the run gives to xdist.
        cold: Whether Python itself has to start, as it does for variables that it reads at that time.
        libraries: What else the process has imported that is forked for the command, as the project imports it anyway.
    """
    environment = {"OPENBLAS_NUM_THREADS": "1", **environment}
    if cold or _at_start(environment) != _at_start(ENVIRONMENT):
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=PATIENCE,
            check=False,
        )
        return Finished(done.returncode, done.stdout, done.stderr)
    with tempfile.TemporaryDirectory() as written:
        out, err = (Path(written, name) for name in ("out", "err"))
        out.touch()
        err.touch()
        code = Started(arguments, environment, folder, out, err, workers=workers, libraries=libraries).wait()
        return Finished(code, out.read_text(encoding="utf-8"), err.read_text(encoding="utf-8"))


_ONE_AT_A_TIME = threading.Lock()
"""The warm process reads one command at a time."""


def warm_run(
    command: Sequence[str], *, env: Mapping[str, str], cwd: "Path | None" = None, **_: object
) -> "subprocess.CompletedProcess[str]":
    """Do what `subprocess.run` does for a command of Python, without a cold start."""
    own = {name: value for name, value in env.items() if name == "PYTHONPATH" or not name.startswith(START)}
    with _ONE_AT_A_TIME:
        done = run_python(command[1:], {**_at_start(ENVIRONMENT), **own}, cwd or Path.cwd())
    return subprocess.CompletedProcess(command, done.code, done.out, done.err)


def _at_start(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(START) and name != "PYTHONPATH"}


def changed_at_start() -> dict[str, str | None]:
    """Return the variables, and their values, for which Python would now have to start anew for every command."""
    now, then = _at_start({"OPENBLAS_NUM_THREADS": "1", **os.environ}), _at_start(ENVIRONMENT)
    return {name: now.get(name) for name in sorted({*now, *then}) if now.get(name) != then.get(name)}


class Warm(NamedTuple):
    """A process that forks for commands.

    Attributes:
        commands: Where they are written to.
        replies: Where it replies, without a buffer: when one of two lines has been read, `select` sees the other.
    """

    commands: io.FileIO
    replies: io.FileIO


@cache
def _warm(libraries: tuple[str, ...]) -> Warm:
    """Return the process that has imported libraries, if any, next to what most commands need."""
    if libraries:
        return _warm_with(libraries)
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("warm_process.py"))],
        env=ENVIRONMENT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
    )
    atexit.register(process.communicate)  # without input, it ends
    assert isinstance(process.stdin, io.FileIO)
    assert isinstance(process.stdout, io.FileIO)
    return Warm(process.stdin, process.stdout)


def _warm_with(libraries: tuple[str, ...]) -> Warm:
    """Have a fork of the warm process import libraries, and return it."""
    with tempfile.TemporaryDirectory() as folder:
        commands, replies = (Path(folder, name) for name in ("commands", "replies"))
        os.mkfifo(commands)
        os.mkfifo(replies)
        asked = {"libraries": libraries, "commands": str(commands), "replies": str(replies)}
        warm = _warm(())
        warm.commands.write(json.dumps(asked).encode() + b"\n")
        warm.replies.readline()
        return Warm(io.FileIO(commands, "w"), io.FileIO(replies))


class Started:
    """What ``python ARGUMENTS`` does, under way; one at a time.

    Attributes:
        pid: Of the process.
        code: Its exit code, once it has ended and `wait` was called.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        folder: Path,
        out: Path,
        err: Path,
        *,
        workers: int = 0,
        group: bool = False,
        libraries: tuple[str, ...] = (),
    ) -> None:
        """Start it.

        Args:
            arguments: ``-m MODULE ...`` or ``-c CODE ...``.
            environment: Of the process, which Python must not need to read when it starts.
            folder: Where it runs.
            out: Where it writes; must exist.
            err: Where it writes errors; must exist.
            workers: How many the run gives to xdist.
            group: Whether it leads a group of processes, which signals can be sent to.
            libraries: What else the process has imported that is forked for the command.
        """
        self.code: int | None = None
        self._warm = _warm(libraries)
        command = {
            "arguments": list(arguments),
            "environment": dict(environment),
            "folder": str(folder),
            "workers": workers,
            "out": str(out),
            "err": str(err),
            "group": group,
        }
        self._warm.commands.write(json.dumps(command).encode() + b"\n")
        self.pid = self._reply()

    def wait(self) -> int:
        """Return the exit code; that of a signal is negative."""
        if self.code is None:
            if not self.has_ended(PATIENCE):
                os.kill(self.pid, signal.SIGKILL)
                self.code = self._reply()
                raise TimeoutError(self.pid)
            self.code = self._reply()
        return self.code

    def has_ended(self, seconds: float = 0) -> bool:
        """Return whether the process has ended, or does so in some seconds."""
        return self.code is not None or bool(select.select([self._warm.replies], [], [], seconds)[0])

    def _reply(self) -> int:
        return int(self._warm.replies.readline())


IS_ROOT: Final = hasattr(os, "geteuid") and not os.geteuid()

_RIGHTS = "-dac_override,-dac_read_search,-fowner"
ORDINARY: Final = ("setpriv", f"--bounding-set={_RIGHTS}", f"--inh-caps={_RIGHTS}") if IS_ROOT else ()
"""What takes root's right to write everywhere from a command; another user has none."""

NAMELESS: Final = 54321
"""A user whom the machine has no name for."""


def run_as(
    prefix: Sequence[str], *arguments: str, environment: "Mapping[str, str] | None" = None
) -> "subprocess.CompletedProcess[str]":
    """Run Python in a process of its own, in the current folder, by a command that changes its rights."""
    return subprocess.run(
        [*prefix, sys.executable, *arguments],
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        env={"PYTHONDONTWRITEBYTECODE": "1", **(os.environ if environment is None else environment)},
        timeout=PATIENCE,
        check=False,
    )


def is_running(pid: int) -> bool:
    """Return whether a process has not ended, given time to do so after a signal; one that nobody waits for has."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    try:
        return not select.select([handle], [], [], PATIENCE)[0]
    finally:
        os.close(handle)


def wait_for_group(group: int) -> None:
    """Wait until no process of a group is left: a run that starts earlier leaves their answers to them."""
    until = time.monotonic() + PATIENCE
    with suppress(ProcessLookupError):
        while time.monotonic() < until:
            os.killpg(group, 0)
            threading.Event().wait(0.01)


OPTIONS = (
    *("--snapshot-update", "--llmeval-predictions=p.jsonl", "--llmeval-predictions-mode=refresh"),
    *("--llmeval-judge=refresh", "--llmeval-texts=all"),
    *(f"--llmeval-report=r.{suffix}" for suffix in ("html", "md", "csv", "llmeval")),
)
"""Arguments of a run that approves, records and reports anew."""

_CONFTEST = """\
import os
import resource

import pytest

if "LIMIT" in os.environ:
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(os.environ["LIMIT"]), resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


@pytest.fixture(scope="session")
def judge_client():
    async def judge(request):
        if "two answers" in str(request):
            return '{"reasoning": "alike", "better": "tie"}'
        return '{"reasoning": "good ' + "and good " * int(os.environ.get("REASONS", "3000")) + '", "score": 4}'

    return judge
"""

_BOT = """\
import os

WRONG = os.environ.get("WRONG", "").split()


def answer(word):
    return " ".join([word] * int(os.environ.get("LENGTH", "3"))) if word not in WRONG else "no"
"""


def fill(project: "Project", environment: "pytest.MonkeyPatch") -> dict[str, bytes]:
    """Run a suite twice, which fills all stores, and return what is in them.

    The environment variable `LENGTH` is the number of words of an answer, `WRONG` lists the words that are answered
    wrong, `REASONS` is the length of the judge's replies and `LIMIT` the most bytes of a file.
    """
    _write(project)
    for wrong in ("", "a b c d"):  # the second approval leaves an anchor, a pool and known failures
        environment.setenv("WRONG", wrong)
        assert project.run(*OPTIONS).code == 0
    before = committed(project.path)
    kinds = {name.partition("-")[0].partition(".")[2] for name in before}
    assert {
        "anchor",
        "answers.jsonl",
        "cases.jsonl",
        "failures.json",
        "judgements.jsonl",
        "pool",
        "scores.json",
    } <= kinds
    assert {"p.jsonl", "r.csv", "r.html", "r.llmeval", "r.md"} <= before.keys()
    return before


def _write(project: "Project") -> None:
    project.write("conftest.py", _CONFTEST)
    project.write("bot.py", _BOT)
    project.suite(
        "s.eval.yaml",
        [{"id": word, "input": word, "expected": word} for word in "abcdefgh"],
        target="bot:answer",
        judge={"model": "fixture:judge_client"},
        evaluators=[
            {"text": {"metrics": ["f1"]}},
            {"judge": {"criteria": "Be good.", "steps": ["Look."]}},
            {"pairwise": {"against": "approved"}},
        ],
        gates=[{"metric": "f1", "max_drop": 0.9}],
        thresholds={"f1": 0.4},
        snapshot={"tolerance": 1, "pool": 2},
        approve={"failures": True},
    )


def is_whole(path: Path) -> bool:
    """Return whether a file can be read to its end; an unreadable one raises."""
    match path.suffix:
        case ".json":
            json.loads(path.read_bytes())
        case ".jsonl":
            return path.read_bytes().endswith(b"\n") and all(map(json.loads, path.read_bytes().splitlines()))
        case ".llmeval" if path.is_file():
            gzip.decompress(path.read_bytes())
        case ".html":
            return path.read_bytes().rstrip().endswith(b"</html>")
        case ".sqlite3":
            with sqlite3.connect(path) as connection:
                return connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    return True


def committed(folder: Path) -> dict[str, bytes]:
    """Return what a project commits, and the reports of it."""
    names = [*folder.glob("__llmeval__/*"), *folder.glob("*.jsonl"), *folder.glob("r.*")]
    return {each.name: each.read_bytes() for each in names}


@contextmanager
def local_cluster(workers: int) -> "Iterator[LocalCluster]":
    """Start worker processes, for which Dask changes the environment of this one; leave that as it was."""
    from distributed import LocalCluster

    with mock.patch.dict(os.environ), LocalCluster(workers, threads_per_worker=1, dashboard_address=":0") as cluster:
        yield cluster


@dataclass
class Clock:
    """A clock that stands still until a test moves it."""

    now: float = 1e9

    def __call__(self) -> float:
        return self.now


def change(path: Path, statement: str, *values: object) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(statement, values)
    connection.close()


@contextmanager
def own_loop() -> Iterator[None]:
    """Give synchronous calls of libraries that keep the current event loop one that is closed afterwards."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        yield
    finally:
        asyncio.set_event_loop(None)
        loop.close()
