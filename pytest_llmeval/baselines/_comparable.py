"""Identity of runs."""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from datetime import UTC, datetime
from enum import Enum
from hashlib import sha256
from json.encoder import encode_basestring_ascii
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from pytest_llmeval.core import Case, Evaluator, Reading
from pytest_llmeval.suites import KEYS, LoadedSuite

if TYPE_CHECKING:
    from pytest_llmeval.numbers import CaseDigest

_SELECTS = "metrics"
"""The option that selects the reported metrics; it changes none of them."""

_DIGITS = 32


@dataclass(frozen=True)
class EvaluatorPrint:
    """The identity of an evaluator in a score file: all settings that decide its numbers.

    Attributes:
        name: Of the evaluator.
        version: Of its definition.
        options: Those that differ from their defaults, with what it reads where the suite says so.
    """

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    name: str
    version: str
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Comparable:
    """The identity of a suite in a score file: fingerprints of all that decides whether two runs can be compared.

    Attributes:
        cases: Fingerprint of the ids of the cases.
        data: Fingerprint of their input, expected, labels and checks.
        thresholds: Fingerprint of the limits of cases, which decide the pass rate; nothing where there is none.
        evaluators: Label to what decides its numbers.
        judges: Label of an evaluator to its judge, such as ``{"model": ..., "prompt": fingerprint}``.
        repeats: How often each case runs and how its scores become one; nothing where it runs once.
    """

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    cases: str
    data: str
    thresholds: str
    evaluators: Mapping[str, EvaluatorPrint]
    judges: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    repeats: str = ""


def fingerprint(data: Any, shared: "SharedTexts | None" = None) -> str:
    """A fingerprint of JSON data, by which runs are compared; it does not depend on the order of keys.

    Args:
        data: The data.
        shared: Texts of large objects that others of a series of calls share, such as the conversation of a question.
    """
    text = data if isinstance(data, str) else _sorted_json(data) if shared is None else shared.json(data, _SHARED_DEPTH)
    return f"sha256:{sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:_DIGITS]}"


def _sorted_json(data: Any) -> str:
    """Encode data of a suite as JSON with sorted keys, so that equal data has one fingerprint."""
    return _SORTED.encode(plain(data))


_SORTED = json.JSONEncoder(sort_keys=True)


_SHARED_DEPTH = 3
"""Levels of lists and objects that are written anew: cases, their parts, and fields of these."""
_LONG, _MOST_SHARED = 1_000, 16


class SharedTexts:
    """JSON texts of large objects of cases, so that one that neighbouring cases share is encoded once."""

    def __init__(self) -> None:
        self._texts: dict[int, tuple[Any, str]] = {}

    def json(self, value: Any, depth: int) -> str:
        """The text of a case's value whose objects are large `depth` levels down."""
        if type(value) is str:
            return encode_basestring_ascii(value)
        if type(value) is list and depth:
            if all(map(_is_small, value)):
                return _SORTED.encode(value)
            return f"[{', '.join([self.json(element, depth - 1) for element in value])}]"
        if type(value) is not dict or not all(type(name) is str for name in value):
            return _sorted_json(value)
        known = self._texts.get(id(value))
        if known is not None and known[0] is value:
            self._texts[id(value)] = self._texts.pop(id(value))  # the one that is used longest ago goes first
            return known[1]
        if depth:
            parts = (f"{encode_basestring_ascii(name)}: {self.json(value[name], depth - 1)}" for name in sorted(value))
            text = f"{{{', '.join(parts)}}}"
        else:
            text = _sorted_json(value)
        if len(text) > _LONG:
            if len(self._texts) >= _MOST_SHARED:
                del self._texts[next(iter(self._texts))]
            self._texts[id(value)] = value, text
        return text


_NUMBERS: Final = frozenset({int, float, bool, type(None)})


def _is_small(value: Any) -> bool:
    """Whether a value in a case's data is JSON without lists or objects in it, and too short to be shared."""
    parts: Iterable[Any] = (value,)
    if type(value) is list:
        parts = value
    elif type(value) is dict and all(type(name) is str for name in value):
        parts = value.values()
    length = 0
    for part in parts:
        if type(part) is str:
            length += len(part)
        elif type(part) not in _NUMBERS:
            return False
    return length < _LONG


_AS_DECLARED: Final = ("on", "turns", "types")
"""Fields of a suite that decide its scores and come from several keys."""


class SuiteIdentity(NamedTuple):
    """The parts of a suite that decide its scores, as fingerprints by which runs and states of it are compared.

    Attributes:
        suite: The suite.
    """

    suite: LoadedSuite

    @property
    def evaluators(self) -> dict[str, EvaluatorPrint]:
        """The settings of each evaluator that decide its scores, by label."""
        return {
            label: _evaluator_print(evaluator, self.suite.readings[label], self.suite.path.parent)
            for label, evaluator in self.suite.evaluators.items()
        }

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that decide its scores as JSON data, by field and by the key of a plugin."""
        keys = [name for name, key in KEYS.items() if key.carried and key.decides == "scores"]
        own = {name: getattr(self.suite, name) for name in (*keys, *_AS_DECLARED)}
        return {name: plain(value) for name, value in {**own, **self.suite.written("scores")}.items()}

    @property
    def digests(self) -> "dict[str, CaseDigest]":
        """A digest of each case by its id, by which a later run knows the cases that were edited."""
        from pytest_llmeval.numbers import CaseDigest

        shared, bare, digests = SharedTexts(), "", {}
        for case in self.suite.cases:
            if case.input is None and case.expected is None and not case.labels and not case.checks:
                bare = content = bare or fingerprint(_content(case), shared)  # as of other runners
            else:
                content = fingerprint(_content(case), shared)
            limits = _case_limits(self.suite, case)
            digests[case.id] = CaseDigest(content, fingerprint(limits) if limits else "")
        return digests

    def comparable(self, judges: Mapping[str, Mapping[str, str]] = {}) -> Comparable:
        """The settings that two runs of the suite must share to be comparable.

        Args:
            judges: Label of an evaluator to what is known of its judge.
        """
        cases = sorted(self.suite.cases, key=lambda case: case.id)  # their order changes no metric
        limits = {case.id: _case_limits(self.suite, case) for case in cases}
        shared = SharedTexts()
        return Comparable(
            cases=fingerprint([case.id for case in cases]),
            data=fingerprint([[case.id, *_content(case)] for case in cases], shared),
            thresholds=fingerprint(limits) if any(limits.values()) else "",
            evaluators=self.evaluators,
            judges={label: dict(judge) for label, judge in judges.items()},
            repeats=str(self.suite.repeats) if self.suite.repeats.times > 1 else "",
        )


def basis_of(comparable: Comparable) -> dict[str, str]:
    """The settings that decide a suite's scores besides predictions, as fingerprints that show changes in a history."""
    return {
        "data": fingerprint([comparable.cases, comparable.data]),
        "evaluator": fingerprint(comparable.evaluators),
        "judge": fingerprint(comparable.judges),
    }


def _content(case: Case) -> list[Any]:
    """The parts of a case that decide its scores, with its own checks if it has any, for its digest."""
    checks = [check.entry for check in case.checks]
    return [case.input, case.expected, case.labels, *([checks] if checks else [])]


def _case_limits(suite: LoadedSuite, case: Case) -> dict[str, str]:
    """The thresholds of a case by metric, as text for its digest."""
    return {name: str(limit) for name, limit in suite.limits(case).items()}


def _evaluator_print(evaluator: Evaluator, reading: Reading, folder: Path) -> EvaluatorPrint:
    """An evaluator's identity for score files: its name, version and the options that are not defaults."""
    options = reading.settings
    for option in fields(evaluator):
        value = getattr(evaluator, option.name)
        if option.compare and option.name != _SELECTS and value != _option_default(option):
            options[option.name] = _file(value, folder) if option.metadata.get("path") else plain(value)
    return EvaluatorPrint(evaluator.name, evaluator.version, json.loads(json.dumps(options, sort_keys=True)))


def _option_default(option: "Field[Any]") -> Any:
    """The default of an evaluator's option; options equal to it are not part of the evaluator's identity."""
    return option.default_factory() if option.default_factory is not MISSING else option.default


def _file(value: Any, folder: Path) -> Any:
    """The relative path and content digest of a file that an evaluator option names, equal on every machine."""
    if value is None:
        return None
    if isinstance(value, tuple):
        return [_file(file, folder) for file in value]
    if isinstance(value, Mapping):
        return {name: _file(file, folder) for name, file in value.items()}
    path = Path(value)
    try:
        name = Path(os.path.relpath(path, folder)).as_posix()
    except ValueError:  # on another drive
        name = path.as_posix()
    try:
        content = path.read_bytes().replace(b"\r\n", b"\n")  # even if git changed line ends
        return f"{name} sha256:{sha256(content).hexdigest()[:_DIGITS]}"
    except OSError:  # a folder, such as that of a dictionary
        return name


_SCALARS: Final = frozenset((str, int, float, bool, type(None)))


def plain(value: Any) -> Any:
    """JSON data for a value of an option or case, equal in every process, so that it can be fingerprinted."""
    if isinstance(value, Enum):
        value = value.value
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if type(value) is list:
        return [element if type(element) in _SCALARS else plain(element) for element in value]
    if type(value) is dict:
        return {str(key): element if type(element) in _SCALARS else plain(element) for key, element in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        value = {attribute.name: getattr(value, attribute.name) for attribute in fields(value) if attribute.compare}
    if isinstance(value, Mapping):
        return {str(key): plain(element) for key, element in value.items()}
    if isinstance(value, Sequence | AbstractSet):
        items = [plain(element) for element in value]
        return sorted(items, key=repr) if isinstance(value, AbstractSet) else items
    # A function or a class has a name; of anything else its text may hold an address, its kind does not.
    named = value if hasattr(value, "__qualname__") else type(value)
    return f"{named.__module__}.{named.__qualname__}"


class Stamp(NamedTuple):
    """The day and commit of an approval, as score files store them.

    Attributes:
        day: ISO 8601, UTC; finer times would make equal files differ.
        commit: What was checked out; ``None`` outside a repository.
    """

    day: str
    commit: str | None

    @classmethod
    def of_checkout(cls, moment: datetime, root: Path) -> "Stamp":
        """The stamp of an approval at a moment, of what is checked out at a folder."""
        return cls(cls.day_of(moment), cls.head_commit(root))

    @staticmethod
    def day_of(moment: datetime) -> str:
        """The day that an approval is dated with: of the moment, or what the environment fixes for its builds.

        ``SOURCE_DATE_EPOCH`` is the convention of https://reproducible-builds.org/specs/source-date-epoch/.
        """
        fixed = os.environ.get("SOURCE_DATE_EPOCH", "")
        return (datetime.fromtimestamp(int(fixed), UTC) if fixed.isdecimal() else moment).date().isoformat()

    @staticmethod
    def moment_of(text: str) -> datetime | None:
        """The time or day in a history or score file, ISO 8601, in UTC; ``None`` if the text is none."""
        try:
            moment = datetime.fromisoformat(text)
            return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
        except (ValueError, OverflowError):
            return None

    @staticmethod
    def head_commit(root: Path) -> str | None:
        """The commit that is checked out, for the stamp of an approval; ``None`` outside a repository."""
        from pytest_llmeval.data import repository_top

        if repository_top(root) is None and "GIT_DIR" not in os.environ:
            return None  # without a process of git
        from pytest_llmeval.services import GitError, run_git

        try:
            return run_git(root, "rev-parse", "HEAD").strip() or None
        except GitError:
            return None
