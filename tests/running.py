"""Commands of Python in processes of their own, forked from a warm process where a cold start would prove nothing."""

__all__ = ("WITHOUT_UNUSED", "Finished", "Started", "changed_at_start", "run_python")

import atexit
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from llm_server import PATIENCE

WITHOUT_UNUSED = ("-pno:anyio", "-pno:asyncio", "-pno:hypothesispytest", "-pno:platformdirs")
"""Arguments of pytest that leave out plugins of other distributions; each would take its time to load."""

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
    arguments: Sequence[str], environment: Mapping[str, str], folder: Path, *, workers: int = 0, cold: bool = False
) -> Finished:
    """Do what ``python ARGUMENTS`` does.

    Args:
        arguments: ``-m MODULE ...`` or ``-c CODE ...``.
        environment: Of the process.
        folder: Where it runs.
        workers: How many the run gives to xdist.
        cold: Whether Python itself has to start, as it does for variables that it reads at that time.
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
        code = Started(arguments, environment, folder, out, err, workers=workers).wait()
        return Finished(code, out.read_text(encoding="utf-8"), err.read_text(encoding="utf-8"))


def _at_start(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(START) and name != "PYTHONPATH"}


def changed_at_start() -> dict[str, str | None]:
    """Return the variables, and their values, for which Python would now have to start anew for every command."""
    now, then = _at_start({"OPENBLAS_NUM_THREADS": "1", **os.environ}), _at_start(ENVIRONMENT)
    return {name: now.get(name) for name in sorted({*now, *then}) if now.get(name) != then.get(name)}


@cache
def _warm() -> "subprocess.Popen[bytes]":
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("warm_process.py"))],
        env=ENVIRONMENT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,  # of two lines that have come, one is read: `select` does not see what a buffer holds
    )
    atexit.register(process.communicate)  # without input, it ends
    return process


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
        """
        self.code: int | None = None
        self._warm = _warm()
        command = {
            "arguments": list(arguments),
            "environment": dict(environment),
            "folder": str(folder),
            "workers": workers,
            "out": str(out),
            "err": str(err),
            "group": group,
        }
        assert self._warm.stdin is not None
        self._warm.stdin.write(json.dumps(command).encode() + b"\n")
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
        return self.code is not None or bool(select.select([self._warm.stdout], [], [], seconds)[0])

    def _reply(self) -> int:
        assert self._warm.stdout is not None
        return int(self._warm.stdout.readline())
