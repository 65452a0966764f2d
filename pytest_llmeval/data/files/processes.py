"""Process names in file names, which show whether the process that wrote a file has ended."""

__all__ = ("STALE_S", "has_ended", "writer_name")

import os
import socket
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Final

STALE_S: Final = 86_400.0
"""Age at which a file is taken for abandoned although its process may run: on another machine, or under a used id."""


def writer_name() -> str:
    """Return a name of this process, such as ``1f0c5ad2-4711``."""
    return f"{_machine()}-{os.getpid()}"


def has_ended(name: str) -> bool:
    """Return whether a process of this machine has ended; one of another machine, or in doubt, has not."""
    machine, _, number = name.partition("-")
    if machine != _machine():
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return False


@cache
def _machine() -> str:
    """Return a digest of where process ids mean the same: containers may share a host's name, and a folder."""
    space = ""
    with suppress(OSError):
        space = str(Path("/proc/self/ns/pid").readlink())
    return sha256(f"{socket.gethostname()} {space}".encode()).hexdigest()[:8]
