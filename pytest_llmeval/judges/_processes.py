"""Names of processes, whether they live, and a clock that all processes of a machine share."""

import hashlib
import os
import time
from functools import cache
from pathlib import Path

_PROCESSES = Path("/proc")
_BOOT_ID = _PROCESSES / "sys" / "kernel" / "random" / "boot_id"
_ENDED = ("X", "Z")
_STARTED = 18
"""Position of the start among the fields of ``/proc/PID/stat`` that follow the name."""


def ticks() -> float:
    """Return seconds that continue while the machine sleeps, and that no clock setting changes.

    Every boot counts from a start of its own, so that times of different boots lie far apart. Where a boot has no name,
    as on macOS and Windows, they are those of the clock: the time since a restart would lie before what it left.
    """
    if not _boot():
        return time.time()
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return _start_of_boot() + (time.monotonic() if clock is None else time.clock_gettime(clock))


def process_name() -> str:
    """Return a name of this process, without spaces, by which `is_dead` recognizes it."""
    process = os.getpid()
    return f"{process}:{_start(process) or ''}:{_place()}"


def is_dead(name: str) -> bool:
    """Whether the process of a name has ended for certain; of another machine or container it is never known."""
    process, _, remainder = name.partition(":")
    started, _, place = remainder.partition(":")
    if not (process.isdecimal() and started and place == _place()):
        return False
    actual = _start(int(process))
    return _is_gone(int(process)) if actual is None else actual != started


def _start(process: int) -> str | None:
    """The start of a process, in ticks of the kernel; empty for one that only waits to be reaped."""
    try:
        text = (_PROCESSES / str(process) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    state, *fields = text.rpartition(")")[2].split()
    return "" if state in _ENDED else fields[_STARTED]


def _is_gone(process: int) -> bool:
    """Whether there is no such process: those of other users may be hidden. Only called where there is /proc."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


@cache
def _place() -> str:
    """An identity that two processes share if they see each other's ids: the boot and the namespace of processes."""
    try:
        namespace = str((_PROCESSES / "self" / "ns" / "pid").readlink())
    except OSError:
        return ""
    return hashlib.sha256(f"{_boot()} {namespace}".encode()).hexdigest()[:12]


@cache
def _boot() -> str:
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return ""


@cache
def _start_of_boot() -> float:
    return float(int(hashlib.sha256(_boot().encode()).hexdigest()[:8], 16))
