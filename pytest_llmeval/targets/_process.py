"""The state of the process that a call of the user's code leaves as it was."""

import builtins
import inspect
import itertools
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import ModuleType
from typing import Any, Final, NamedTuple

from pytest_llmeval.core import PredictionError

_STREAMS: Final = ("stdout", "stderr", "__stdout__", "__stderr__")
_ENDINGS: Final = {"close": "closes", "detach": "detaches"}
"""Methods after which a stream can no longer be written to, and what a call of them does."""
_NEEDED: Final = (
    (threading, "excepthook"),
    (sys, "excepthook"),
    (sys, "path"),
    (sys, "path_hooks"),
    (sys, "meta_path"),
    (sys, "modules"),
    (builtins, "open"),
    (builtins, "__import__"),
)
"""What no thread can start without, and no module be imported."""
_FEWEST_FILES: Final = 256
"""Open files that a target may limit the process to: the least that an operating system allows by default, macOS."""
_lock = threading.Lock()
_restore: list[Callable[[], object]] = []
_calls = 0


@contextmanager
def kept_process() -> Iterator[None]:
    """Refuse, or undo, changes of a target to the process that would break later cases; calls may overlap.

    ``sys.stdout`` and ``sys.stderr`` stay open, the limits of recursion and open files are not lowered, threads can be
    started, and modules imported.

    Raises:
        PredictionError: The call has changed what cannot be refused.
    """
    global _calls  # noqa: PLW0603 (of the process)
    needed = [_Needed.read(module, name) for module, name in _NEEDED]
    with _lock:
        if _calls == 0:
            _restore.extend(itertools.starmap(_keep_open, itertools.product(_STREAMS, _ENDINGS)))
            _restore.extend((_keep_recursion_limit(), _keep_open_files()))
        _calls += 1
    try:
        yield
    finally:
        lost = [fault for value in needed if (fault := value.restore())]
        with _lock:
            _calls -= 1
            while _calls == 0 and _restore:
                _restore.pop()()
    if lost:
        raise PredictionError(f"the target {lost[0]}, which the cases after it need")


class _Needed(NamedTuple):
    """A module's value that later cases need, from before a target's call, and its content if it is a collection."""

    module: ModuleType
    name: str
    value: Any
    content: Any

    @classmethod
    def read(cls, module: ModuleType, name: str) -> "_Needed":
        value = getattr(module, name) or getattr(module, f"__{name}__", None)
        return cls(module, name, value, value.copy() if isinstance(value, list | dict) else None)

    def restore(self) -> str:
        """Put the value back if it is gone; return what happened to it, or nothing."""
        place = f"{self.module.__name__}.{self.name}"
        value = getattr(self.module, self.name, None)
        if value is None:
            setattr(self.module, self.name, self.value)
            return f"set {place} to None"
        if self.content and not value:
            (value.update if isinstance(value, dict) else value.extend)(self.content)
            return f"emptied {place}"
        return ""


def _keep_open(name: str, ending: str) -> Callable[[], object]:
    """Refuse that a target ends a standard stream, which pytest made; return a function that lifts the guard."""
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
    """Refuse that a target lowers the recursion limit; return a function that lifts the guard."""
    original, least = sys.setrecursionlimit, sys.getrecursionlimit()

    def set_limit(limit: int, /) -> None:
        if limit < least:
            raise ValueError(f"the target sets a recursion limit of {limit}, below the {least} of the run")
        original(limit)

    def end() -> None:
        sys.setrecursionlimit = original

    sys.setrecursionlimit = set_limit
    return end


def _keep_open_files() -> Callable[[], object]:
    """Refuse that a target limits open files below a run's need; return a function that lifts the guard."""
    try:
        import resource
    except ModuleNotFoundError:  # Windows has no such limit
        return lambda: None
    original = resource.setrlimit

    def set_limit(kind: int, limits: tuple[int, int], /) -> None:
        least = min(resource.getrlimit(kind)[0], _FEWEST_FILES)
        if kind == resource.RLIMIT_NOFILE and 0 <= limits[0] < least:
            raise ValueError(f"the target sets a limit of {limits[0]} open files, below the {least} that the run needs")
        original(kind, limits)

    def end() -> None:
        resource.setrlimit = original

    resource.setrlimit = set_limit
    return end
