"""A plugin of pytest that takes from a process what Windows lacks, and has open files refuse to go as they do there.

It is no Windows: paths, encodings, event loops and locks stay those of this machine. What our code may not use is gone
or raises; the libraries keep theirs.
"""

__all__ = ()

import asyncio
import os
import selectors
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from pathlib import Path
from types import FrameType
from typing import Any

import aiohttp
import filelock

LOADED = (aiohttp, asyncio, filelock, selectors, shutil, sqlite3, subprocess, tempfile)
"""What looks for POSIX when it is loaded, and does so in vain from now on."""

MODULES = ("fcntl", "grp", "pwd", "resource", "termios", "tty")
GONE = {
    os: ("chown", "fchmod", "killpg", "pread"),
    signal: ("SIGALRM", "SIGHUP", "SIGUSR1", "alarm", "setitimer"),
    time: ("CLOCK_BOOTTIME", "tzset"),
}

BINARY = 0o100000
"""Without it, files that `os.open` opens have their line ends changed."""


def _is_open(path: Any) -> bool:
    target = Path(path).resolve()
    for each in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            if each.readlink() == target:
                return True
    return False


PASSES_ON = "pytest_llmeval.services._uses"
"""Watches the calls of all code, and passes them on."""


def _of_ours(depth: int = 2) -> bool:
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None and frame.f_globals.get("__name__") == PASSES_ON:
        frame = frame.f_back
    return frame is not None and str(frame.f_globals.get("__name__", "")).startswith("pytest_llmeval")


def _refusing_open_files(step: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(step)
    def refusing(*paths: Any, **named: Any) -> Any:
        for path in paths:
            if not isinstance(path, int) and _is_open(path):
                raise PermissionError(13, "The process cannot access the file because it is being used", str(path))
        return step(*paths, **named)

    return refusing


def _never(name: str, step: Callable[..., Any], is_wrong: Callable[..., bool]) -> Callable[..., Any]:
    @wraps(step)
    def checked(*args: Any, **named: Any) -> Any:
        if _of_ours() and is_wrong(*args, **named):
            raise AssertionError(f"{name}{args} does something else on Windows")
        return step(*args, **named)

    return checked


def _take() -> None:
    from pytest_llmeval import core

    vars(core)["WINDOWS"] = True
    for module, names in GONE.items():
        for name in names:
            delattr(module, name)
    for name in MODULES:
        sys.modules[name] = None  # type: ignore[assignment]
    changed: Any = os
    changed.O_BINARY = BINARY
    changed.open = _never("os.open", os.open, lambda *args: not args[1] & BINARY)
    changed.kill = _never("os.kill", os.kill, lambda *args: args[1] == 0)
    changed.set_blocking = _never("os.set_blocking", os.set_blocking, lambda *_: True)
    for name in ("remove", "rename", "replace", "unlink"):
        setattr(os, name, _refusing_open_files(getattr(os, name)))


assert not [name for name in sys.modules if name.startswith("pytest_llmeval.") and "core" not in name], (
    "loaded too late"
)
assert Path("/proc/self/fd").is_dir()
_take()
