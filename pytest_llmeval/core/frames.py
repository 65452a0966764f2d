"""The origin of exceptions in the user's code, as opposed to this package, Python and installed packages."""

__all__ = ("defined_at", "origin", "users_frame", "users_only")

import inspect
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import FrameType, TracebackType

_INSTALLED = ("site-packages", "dist-packages")


@cache
def _foreign_folders() -> tuple[Path, ...]:
    import sysconfig

    paths = sysconfig.get_paths()
    return (Path(__file__).parents[1], *(Path(paths[name]) for name in ("stdlib", "platstdlib", "purelib", "platlib")))


@cache
def _is_users(file: str) -> bool:
    path = Path(file)
    foreign = file.startswith("<") or any(part in _INSTALLED for part in path.parts)
    return not (foreign or any(path.is_relative_to(folder) for folder in _foreign_folders()))


def _frames(error: BaseException) -> Iterator[TracebackType]:
    here = error.__traceback__
    while here is not None:
        yield here
        here = here.tb_next


def _users_frames(error: BaseException) -> list[TracebackType]:
    return [each for each in _frames(error) if not _is_ours(each) and _is_users(each.tb_frame.f_code.co_filename)]


def _is_ours(frame: TracebackType) -> bool:
    """Return whether a frame runs our code, whose file may be called like the user's: a case like its suite file."""
    return str(frame.tb_frame.f_globals.get("__name__")).partition(".")[0] == __name__.partition(".")[0]


def _shown(file: str) -> str:
    path, here = Path(file), Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def users_frame() -> FrameType:
    """Return the frame that has called this package."""
    package = __name__.partition(".")[0]
    frame = sys._getframe(1)  # noqa: SLF001 (no public function gives the frame of a caller)
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == package:
        frame = frame.f_back
    return frame


def origin(error: BaseException) -> str:
    """Return the innermost line of the user's code that an exception passed, such as `` (app.py:3 in answer)``.

    Empty if it passed none.
    """
    frames = _users_frames(error)
    if not frames:
        return ""
    last = frames[-1]
    code = last.tb_frame.f_code
    return f" ({_shown(code.co_filename)}:{last.tb_lineno} in {code.co_name})"


def defined_at(function: object) -> str:
    """Return where a function is defined, such as `` (app.py:3)``; empty if that is unknown."""
    code = getattr(inspect.unwrap(function) if callable(function) else function, "__code__", None)
    return f" ({_shown(code.co_filename)}:{code.co_firstlineno})" if code is not None else ""


def users_only(error: BaseException) -> None:
    """Cut an exception's traceback, and those of its causes, down to the user's code; one without any stays whole."""
    seen: set[int] = set()
    found: BaseException | None = error
    while found is not None and id(found) not in seen:
        seen.add(id(found))
        cut: TracebackType | None = None
        for each in reversed(_users_frames(found)):
            cut = TracebackType(cut, each.tb_frame, each.tb_lasti, each.tb_lineno)
        if cut is not None:
            found.__traceback__ = cut
        found = found.__cause__ or found.__context__
