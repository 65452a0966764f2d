"""Whether processes that a test started have ended."""

__all__ = ("is_running", "wait_for_group")

import os
import select
import threading
import time
from contextlib import suppress

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


def wait_for_group(group: int) -> None:
    """Wait until no process of a group is left: a run that starts earlier leaves their answers to them."""
    until = time.monotonic() + PATIENCE
    with suppress(ProcessLookupError):
        while time.monotonic() < until:
            os.killpg(group, 0)
            threading.Event().wait(0.01)
