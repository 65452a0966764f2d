"""The time at which suites that Python declares are checked."""

__all__ = ("are_checks_deferred", "deferred_checks")

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

_DEFERRED: Final = ContextVar("deferred", default=False)


def are_checks_deferred() -> bool:
    """Return whether the importer of the user's module checks the suites in it, and reports their faults."""
    return _DEFERRED.get()


@contextmanager
def deferred_checks() -> Iterator[None]:
    """Import modules of users without a check of their suites: conftests may register what these name."""
    token = _DEFERRED.set(True)
    try:
        yield
    finally:
        _DEFERRED.reset(token)
