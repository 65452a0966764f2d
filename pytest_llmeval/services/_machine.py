"""The limit of this machine on calls at a time."""

from contextlib import suppress
from typing import Final

_RESERVED_FILES: Final = 64
"""Files that Python, libraries and the judge cache have open."""

_FILES_PER_CALL: Final = 3
"""A connection and two more, or the pipes of a command."""


def calls_that_fit(calls: int) -> int:
    """The number of calls that this process may make at a time, by its limit of open files.

    The limit is raised as far as they need, and as the machine allows.
    """
    try:
        import resource
    except ImportError:  # Windows, where sockets are no files
        return calls
    needed = _RESERVED_FILES + _FILES_PER_CALL * calls
    allowed, highest = resource.getrlimit(resource.RLIMIT_NOFILE)
    if allowed == resource.RLIM_INFINITY or allowed >= needed:
        return calls
    with suppress(OSError, ValueError):  # macOS permits less than it says
        raised = needed if highest == resource.RLIM_INFINITY else min(needed, highest)
        resource.setrlimit(resource.RLIMIT_NOFILE, (raised, highest))
        allowed = raised
    return max(1, min(calls, (allowed - _RESERVED_FILES) // _FILES_PER_CALL))
