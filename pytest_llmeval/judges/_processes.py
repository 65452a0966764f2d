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
    """The clock of judge leases: seconds that continue while the machine sleeps, and that no clock setting changes.

    Every boot counts from a start of its own, so that times of different boots lie far apart. Where a boot has no name,
    as on macOS and Windows, they are those of the clock: the time since a restart would lie before what it left.
    """
    if not _boot():
        return time.time()
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return _start_of_boot() + (time.monotonic() if clock is None else time.clock_gettime(clock))


def process_name() -> str:
    """The name of this process for the owners of judge leases, without spaces, which `is_dead` recognizes."""
    process = os.getpid()
    return f"{process}:{_start(process) or ''}:{_place()}"


def is_dead(name: str) -> bool:
    """Whether the process that owns a judge lease has certainly ended; false for another machine or container."""
    process, _, remainder = name.partition(":")
    started, _, place = remainder.partition(":")
    if not (process.isdecimal() and started and place == _place()):
        return False
    actual = _start(int(process))
    return _is_gone(int(process)) if actual is None else actual != started


def _start(process: int) -> str | None:
    """The start of a process in kernel ticks, which tells a lease owner from a reused id; empty for a zombie."""
    try:
        text = (_PROCESSES / str(process) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    state, *fields = text.rpartition(")")[2].split()
    return "" if state in _ENDED else fields[_STARTED]


def _is_gone(process: int) -> bool:
    """Whether a lease owner's process id is free: /proc may hide processes of other users. Only called with /proc."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


@cache
def _place() -> str:
    """A digest of boot and process namespace, shared by lease owners that see each other's process ids."""
    try:
        namespace = str((_PROCESSES / "self" / "ns" / "pid").readlink())
    except OSError:
        return ""
    return hashlib.sha256(f"{_boot()} {namespace}".encode()).hexdigest()[:12]


@cache
def _boot() -> str:
    """The kernel's id of this boot, for the clock of judge leases; empty on macOS and Windows."""
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return ""


@cache
def _start_of_boot() -> float:
    """The seconds at which the clock of judge leases begins in this boot, derived from the boot id."""
    return float(int(hashlib.sha256(_boot().encode()).hexdigest()[:8], 16))
