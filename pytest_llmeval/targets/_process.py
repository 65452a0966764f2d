"""The state of the process that a call of the user's code leaves as it was."""

import builtins
import inspect
import itertools
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import ModuleType
from typing import Any, Final, TypeAlias

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
_COLLECTIONS: Final = (list, dict)
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
    needed = _read_needed()
    with _lock:
        if _calls == 0:
            _restore.extend(itertools.starmap(_keep_open, itertools.product(_STREAMS, _ENDINGS)))
            _restore.extend((_keep_recursion_limit(), _keep_open_files()))
        _calls += 1
    try:
        yield
    finally:
        lost = _restore_needed(needed)
        with _lock:
            _calls -= 1
            while _calls == 0 and _restore:
                _restore.pop()()
    if lost:
        raise PredictionError(f"the target {lost[0]}, which the cases after it need")


_Needed: TypeAlias = list[tuple[Any, Any]]
"""Each of the needed values, and its content if it is a collection."""


def _read_needed() -> _Needed:
    """What later cases need, before a call of a target."""
    values = [getattr(module, name) or getattr(module, f"__{name}__", None) for module, name in _NEEDED]
    return [(value, _content_of(value) if isinstance(value, _COLLECTIONS) else None) for value in values]


_modules: dict[str, ModuleType] = {}
"""The content of `sys.modules` at an earlier call: to copy 1,000 modules takes most of the time of a guard."""


def _content_of(value: list[Any] | dict[str, Any]) -> list[Any] | dict[str, Any]:
    """The content of a collection that later cases need; `sys.modules` is copied if a module was added."""
    global _modules  # noqa: PLW0603 (of the process)
    if not isinstance(value, dict):
        return value.copy()
    if len(value) != len(_modules) or next(reversed(value), "") != next(reversed(_modules), ""):  # a new one is last
        _modules = value.copy()
    return _modules


def _restore_needed(needed: _Needed) -> list[str]:
    """Put back what later cases need and a target took away; return what happened to it."""
    faults = []
    for (module, name), (value, content) in zip(_NEEDED, needed, strict=True):
        current = getattr(module, name, None)
        if current is None:
            setattr(module, name, value)
            faults.append(f"set {module.__name__}.{name} to None")
        elif content and not current:
            (current.update if isinstance(current, dict) else current.extend)(content)
            faults.append(f"emptied {module.__name__}.{name}")
    return faults


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
