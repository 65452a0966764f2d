"""Two sides of a comparison: commands, their processor time, and a ratio with its spread. Shared by benchmarks."""

__all__ = ("clean_environment", "pytest_command", "ratio_line", "run_s")

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path


@cache
def _bytecode() -> "tempfile.TemporaryDirectory[str]":
    return tempfile.TemporaryDirectory(prefix="llmeval-bytecode-")


def clean_environment() -> dict[str, str]:
    """Return an environment in which bytecode is kept, as in an installed package, and no other plugin is loaded."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "PYTHON", "COV"))}
    return {**kept, "PYTHONPYCACHEPREFIX": _bytecode().name, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


def pytest_command(folder: Path, *options: str, ours: bool = True, plugins: Sequence[str] = ()) -> list[str]:
    """Return the command of a quiet pytest run.

    Args:
        folder: Of the tests.
        options: More options.
        ours: Whether this plugin is installed.
        plugins: Names of other plugins besides those that it brings.
    """
    names = [*("xdist.plugin", "syrupy"), *plugins, *(["pytest_llmeval_suite"] if ours else [])]
    loaded = [part for name in names for part in ("-p", name)]
    return [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *loaded, *options, str(folder)]


def run_s(command: list[str]) -> tuple[float, float]:
    """Run a command; return its processor seconds, user and system, and its wall seconds.

    Raises:
        SystemExit: It failed.
    """
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    where = _bytecode().name  # peers leave files where they run
    done = subprocess.run(command, cwd=where, env=clean_environment(), capture_output=True, text=True, check=False)
    wall = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall


def ratio_line(what: str, pairs: Sequence[tuple[float, float]]) -> str:
    """Return a line: median seconds of both sides, and the ratio of the pairs with its spread.

    Args:
        what: Is compared.
        pairs: Seconds of the one side and of the other, round by round.
    """
    ratios = sorted(one / other for one, other in pairs)
    seconds = [statistics.median(side) for side in zip(*pairs, strict=True)]
    spread = f"{ratios[0]:.2f} to {ratios[-1]:.2f}"
    return f"{what:48} {seconds[0]:7.2f} s / {seconds[1]:7.2f} s  ratio {statistics.median(ratios):6.2f}  ({spread})"
