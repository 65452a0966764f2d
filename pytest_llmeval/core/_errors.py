"""Exceptions, one small class for each kind of failure."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Final, NamedTuple

from msgspec import Struct

from pytest_llmeval.core.wording import excerpt, quotation

_LONGEST_REPLY: Final = 200
_LONGEST_VALUE: Final = 60


class Fault(Struct, frozen=True, order=True):
    """One fault of one file, with where it is and what would be right.

    Attributes:
        file: The file as the user would name it.
        line: Line counted from 1, or 0 where the fault belongs to the whole file.
        column: Column counted from 1, or 0.
        path: The field, such as ``cases[1].thresholds.f1``; empty for the whole file.
        message: ``found ..., expected ... (did you mean ...?)``.
        spares_case: Whether the case that it is about can run nevertheless.
        is_note: Whether it is only worth knowing, and nothing fails.
        case: The case whose value is wrong, and which is left out unless it is spared; empty for names and files.
        unregistered: Kind and name of what a conftest.py may register, such as ``evaluator length``; empty for others.
    """

    file: str
    line: int
    column: int
    path: str
    message: str
    spares_case: bool = False
    is_note: bool = False
    case: str = ""
    unregistered: str = ""

    def __str__(self) -> str:
        place = self.file
        if self.line:
            place += f":{self.line}:{max(1, self.column)}"
        return f"{place}  {self.path}: {self.message}" if self.path else f"{place}  {self.message}"

    @staticmethod
    def code_of(message: str) -> str:
        """The code of a fault in a user's file, from its message.

        >>> Fault.code_of("unknown key gatse, did you mean gates?"), Fault.code_of("found 3, expected a list")
        ('LE101', 'LE100')
        """
        text = _QUOTED.sub("''", message)  # what a user wrote decides nothing
        return next(code for code, pattern in FAULT_CODES.items() if re.search(pattern, text))


_TURN = " of the conversation"


class FieldsError(ValueError):
    """Fields of a record have values that they cannot have; all of them are listed.

    Attributes:
        faults: Name of a field, perhaps with a path inside it, to ``found ..., expected ...``.
    """

    def __init__(self, faults: Iterable[tuple[str, str]]) -> None:
        self.faults = tuple(faults)
        super().__init__("; ".join(f"{name}: {fault}" for name, fault in self.faults))


class LlmevalError(Exception):
    """Base of all errors of this package."""


_ABSENT: Final = re.compile(r"(\S+) is missing")
_MISSPELT: Final = re.compile(r"unknown key .+, did you mean (\S+)\?")


def _typos_first(faults: Sequence[Fault]) -> Iterator[Fault]:
    """Yield unknown keys before the absent ones of their mapping, without absent keys that are only misspelt."""
    misspelt = {
        (fault.file, fault.path.rpartition(".")[0], name[1]): place
        for place, fault in enumerate(faults)
        if (name := _MISSPELT.match(fault.message))
    }
    last = {(file, mapping): place for (file, mapping, _), place in misspelt.items()}
    absent: dict[int, list[Fault]] = {}
    for place, fault in enumerate(faults):
        name = _ABSENT.fullmatch(fault.message)
        if name is None:
            yield fault
        elif (fault.file, fault.path, name[1]) not in misspelt:
            if place >= last.get((fault.file, fault.path), place):
                yield fault
            else:
                absent.setdefault(last[fault.file, fault.path], []).append(fault)
        yield from absent.pop(place, ())


class SuiteError(LlmevalError):
    """A suite file, or a file that it names, has faults; all of them are listed.

    Attributes:
        faults: The faults.
        texts: What was read of files, by their names in faults, where it is known.
    """

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = tuple(_typos_first(faults))
        self.texts: dict[str, str] = {}
        super().__init__("\n".join(map(str, self.faults)))


class OptionError(LlmevalError):
    """A command cannot use the value of an option."""


class PredictionError(LlmevalError):
    """There is no prediction for a case: the target failed, or nothing was recorded."""

    @staticmethod
    def in_turn(error: Exception, turn: int) -> Exception:
        """An error, such as a target's, with the turn of the conversation in which it happened.

        That of a target stays what it is, and gets a note.
        """
        if isinstance(error, PredictionError):
            return PredictionError(f"turn {turn}: {error}")
        if not isinstance(error, LlmevalError):
            error.add_note(f"turn {turn}{_TURN}")
        return error

    @staticmethod
    def in_its_turn(error: BaseException, reason: str) -> str:
        """The reason in an error, such as a target's, with the turn of the conversation, if it was in one."""
        notes = (note for note in getattr(error, "__notes__", ()) if isinstance(note, str) and note.endswith(_TURN))
        turn = next(notes, "").removesuffix(_TURN)
        return f"{turn}: {reason}" if turn else reason


class EvaluatorError(LlmevalError):
    """An evaluator could not be found or built, or it could not measure a case."""


class JudgeError(LlmevalError):
    """A judge gave no verdict: it could not be asked, or its reply cannot be read.

    Attributes:
        reply: The reply as it came; ``None`` if there is none.
        rejected: Whether the server rejects what was sent, such as too long a text, and would take another request.
    """

    is_unasked: ClassVar[bool] = False
    """Whether the suite has no judge, which evaluators with metrics that need none can ignore."""

    def __init__(self, message: str, reply: str | None = None, *, rejected: bool = False) -> None:
        self.reply = reply
        self.rejected = rejected
        super().__init__(message)

    @classmethod
    def unreadable(cls, reply: str, message: str) -> "JudgeError":
        """The error for a reply that gives no verdict, with the reply in it."""
        return cls(f"{message}; the judge replied {quotation(reply, _LONGEST_REPLY)}", reply)

    @classmethod
    def wrong_value(cls, reply: str, data: Mapping[str, Any], name: str, expected: str) -> "JudgeError":
        """The error for a reply in whose object a value is missing or unexpected."""
        if name not in data:
            return cls.unreadable(reply, f"{name} is missing, expected {expected}")
        value = excerpt(json.dumps(data[name], ensure_ascii=False), _LONGEST_VALUE)
        return cls.unreadable(reply, f"found {value} as {name}, expected {expected}")


class BudgetError(LlmevalError):
    """The budget of the run is spent; the case was not judged."""


class MediaError(LlmevalError):
    """The content of a medium is missing, empty, too large, or not what it is said to be."""


class MissingDataError(LlmevalError):
    """Language data that a metric needs is not installed; the message names the command that installs it."""


class MissingExtraError(LlmevalError, ImportError):
    """An optional dependency is not installed; the message names the command that installs it.

    Args:
        needed_by: What needs it, such as ``a report in Parquet``.
        extra: The extra of this distribution that brings it.
        cause: What importing it said.
        remedy: What installs it; default: the command for the extra.

    Example:
        >>> print(MissingExtraError("a Dask cluster", "dask", "No module named 'distributed'"))
        a Dask cluster needs the extra 'dask' (No module named 'distributed'): pip install 'pytest-llmeval-suite[dask]'
    """

    def __init__(self, needed_by: str, extra: str, cause: object = "", remedy: str = "") -> None:
        super().__init__(needed_by, extra, str(cause), remedy)  # all of them, as a pickle calls the class with these

    def __str__(self) -> str:
        needed_by, extra, cause, remedy = self.args
        reason = f" ({cause})" if cause else ""
        return f"{needed_by} needs the extra {extra!r}{reason}: {remedy or _install(extra)}"

    @classmethod
    @contextmanager
    def unless_installed(cls, needed_by: str, extra: str) -> Iterator[None]:
        """A context for the import of an optional library that an extra of this package installs.

        Raises:
            MissingExtraError: It is not installed.
        """
        try:
            yield
        except ImportError as error:
            raise cls(needed_by, extra, error) from error

    @staticmethod
    def price_hint() -> str:
        """The hint on how to get published prices, for a message about an unknown one; empty where they are there."""
        if find_spec("genai_prices") is not None:
            return ""
        return f"; published prices need the extra 'prices': {_install('prices')}"


def _install(extra: str) -> str:
    """The pip command that installs an optional extra of this package, for error messages."""
    return f"pip install 'pytest-llmeval-suite[{extra}]'"


_INSTALLED = ("site-packages", "dist-packages")


@cache
def _foreign_folders() -> tuple[Path, ...]:
    """The folders of code that is not the user's: this package, the standard library, installed packages."""
    import sysconfig

    paths = sysconfig.get_paths()
    return (Path(__file__).parents[1], *(Path(paths[name]) for name in ("stdlib", "platstdlib", "purelib", "platlib")))


@cache
def _is_users(file: str) -> bool:
    """Whether a file in an error's traceback is the user's code, such as a target or a check."""
    path = Path(file)
    foreign = file.startswith("<") or any(part in _INSTALLED for part in path.parts)
    return not (foreign or any(path.is_relative_to(folder) for folder in _foreign_folders()))


def _frames(error: BaseException) -> Iterator[TracebackType]:
    """Yield the traceback entries of an error, outermost first."""
    here = error.__traceback__
    while here is not None:
        yield here
        here = here.tb_next


def _users_frames(error: BaseException) -> list[TracebackType]:
    """The traceback entries of an error that lie in the user's code, such as a target or a check."""
    return [frame for frame in _frames(error) if not _is_ours(frame) and _is_users(frame.tb_frame.f_code.co_filename)]


def _is_ours(frame: TracebackType) -> bool:
    """Whether a frame of an error's traceback runs our code, whose file may be called like the user's."""
    return str(frame.tb_frame.f_globals.get("__name__")).partition(".")[0] == __name__.partition(".")[0]


def shown_path(path: Path) -> str:
    """The path of a file in messages, as a user in the current directory would write it."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


class AnyError(NamedTuple):
    """An error of any type, ours or of the user's code, as messages and pytest show it.

    Attributes:
        error: The error.
    """

    error: BaseException

    @property
    def text(self) -> str:
        """Type and message, also if the error has no message or none that can be computed."""
        try:
            text = str(self.error)
        except Exception:  # noqa: BLE001 (a broken __str__ must not hide that there was an error)
            text = "(its message is not available)"
        return f"{type(self.error).__name__}: {text}" if text else type(self.error).__name__

    @property
    def line(self) -> str:
        """The user's innermost line of code in the traceback, such as `` (app.py:3 in answer)``; empty without any."""
        frames = _users_frames(self.error)
        if not frames:
            return ""
        last = frames[-1]
        code = last.tb_frame.f_code
        return f" ({shown_path(Path(code.co_filename))}:{last.tb_lineno} in {code.co_name})"

    @property
    def full_text(self) -> str:
        """Type and message with the user's line of code."""
        return self.text + self.line

    def message(self, own: type[BaseException] = LlmevalError) -> str:
        """The message alone of an error of ours; type, message and the user's line of code of any other."""
        return str(self.error) if isinstance(self.error, own) else self.full_text

    def cut_traceback(self) -> None:
        """Cut the tracebacks of the error and its causes to the user's code; one without any of it stays whole."""
        seen: set[int] = set()
        link: BaseException | None = self.error
        while link is not None and id(link) not in seen:
            seen.add(id(link))
            cut: TracebackType | None = None
            for frame in reversed(_users_frames(link)):
                cut = TracebackType(cut, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
            if cut is not None:
                link.__traceback__ = cut
            link = link.__cause__ or link.__context__


_QUOTED: Final = re.compile(r"(?<!\\)'(?:[^'\\]|\\.)*+'")
_NAMES: Final = "key|metric|label|system|check|evaluator|format|mutator|model|part"

FAULT_CODES: Final[Mapping[str, str]] = {
    "LE101": rf"\bunknown (?:{_NAMES})\b",
    "LE102": r"^[\w. ]+ is missing",
    "LE103": r"\btwice\b|a second document",
    "LE104": r"cannot be read: |which cannot be read|found a directory|found a device|found more than [\d.]+ MiB",
    "LE105": r"expected valid|malformed|found a tab|invalid escape|expected UTF-8|NUL character|an empty file"
    r"|without data",
    "LE106": r"expected METRIC OPERATOR NUMBER|beside max_drop|beside min|write it without quotes",
    "LE107": r"the range of|expected a (?:whole )?number\b(?:(?!expected).)*?(?:from|between|of at|above|below)"
    r"|expected at least",
    "LE108": r"the suite has no case|no case has a prediction",
    "LE109": r"apparent secret|user name or password in the address",
    "LE110": r"\bcase '[^']*', evaluator '",
    "LE111": r"outside the folder",
    "LE112": r"regular expression|JMESPath|JSON Schema|does not compile",
    "LE113": r"expected only one|expected both|expected exactly one|expected one of prompt|expected (?:it|them) under",
    "LE100": r"",
}
"""Code to a pattern of the messages of that kind of fault; the first one that matches decides.

Codes keep their meaning in later versions; ``workbench/templates/faults.yaml`` says it to people.
"""
