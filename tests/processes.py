"""Whether processes that a test started have ended."""

__all__ = ("is_running",)

import os
import select

from llm_server import PATIENCE


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
