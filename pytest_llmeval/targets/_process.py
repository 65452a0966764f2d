"""The state of the process that a call of the user's code leaves as it was."""

import inspect
import itertools
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

from pytest_llmeval.core import PredictionError

_STREAMS: Final = ("stdout", "stderr", "__stdout__", "__stderr__")
_ENDINGS: Final = {"close": "closes", "detach": "detaches"}
"""Methods after which a stream can no longer be written to, and what a call of them does."""
_HOOKED: Final[tuple[Any, ...]] = (threading, sys)
_lock = threading.Lock()
_restore: list[Callable[[], object]] = []
_calls = 0


@contextmanager
def kept_process() -> Iterator[None]:
    """Refuse, or undo, what would break the cases after this one; calls may overlap.

    ``sys.stdout`` and ``sys.stderr`` stay open, the recursion limit is not lowered, and threads can be started.

    Raises:
        PredictionError: The call has changed what cannot be refused.
    """
    global _calls  # noqa: PLW0603 (of the process)
    hooks: list[tuple[Any, Any]] = [(module, module.excepthook or module.__excepthook__) for module in _HOOKED]
    with _lock:
        if _calls == 0:
            _restore.extend(itertools.starmap(_keep_open, itertools.product(_STREAMS, _ENDINGS)))
            _restore.append(_keep_recursion_limit())
        _calls += 1
    try:
        yield
    finally:
        lost = [module for module, _ in hooks if module.excepthook is None]
        for module, hook in hooks:
            module.excepthook = module.excepthook or hook
        with _lock:
            _calls -= 1
            while _calls == 0 and _restore:
                _restore.pop()()
    if lost:
        name = lost[0].__name__
        raise PredictionError(f"the target set {name}.excepthook to None, without which no thread can start")


def _keep_open(name: str, ending: str) -> Callable[[], object]:
    """Have a stream refuse to be ended by others than pytest, which made it; return what ends that."""
    stream = getattr(sys, name)
    original: Callable[[], object] = getattr(stream, ending, lambda: None)

    def refuse() -> object:
        frame = inspect.currentframe()
        caller = frame.f_back if frame else None
        if caller is None or not str(caller.f_globals.get("__name__")).startswith("_pytest."):
            raise ValueError(f"the target {_ENDINGS[ending]} sys.{name}, which the cases after it need")
        return original()  # at the end of a run that leaves a call behind

    def end() -> None:
        with suppress(AttributeError):
            delattr(stream, ending)

    with suppress(AttributeError):
        setattr(stream, ending, refuse)
    return end


def _keep_recursion_limit() -> Callable[[], object]:
    """Refuse a lower recursion limit; return what ends that."""
    original, least = sys.setrecursionlimit, sys.getrecursionlimit()

    def set_limit(limit: int, /) -> None:
        if limit < least:
            raise ValueError(f"the target sets a recursion limit of {limit}, below the {least} of the run")
        original(limit)

    def end() -> None:
        sys.setrecursionlimit = original

    sys.setrecursionlimit = set_limit
    return end
