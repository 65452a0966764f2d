"""One state of a suite, as data."""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, ValidationError, convert, to_builtins

from pytest_llmeval.baselines import SuiteIdentity
from pytest_llmeval.core import MISSING
from pytest_llmeval.data import Document
from pytest_llmeval.gates import RULES, Gate
from pytest_llmeval.numbers import Threshold
from pytest_llmeval.suites import KEYS, LoadedSuite

if TYPE_CHECKING:
    from pytest_llmeval.evaluators import Check

JUDGE_KEYS: Final = ("judge", "judges", "reduce", "min_judges")
_ADDRESS: Final = re.compile(r" at 0x[0-9a-fA-F]+")


class CheckDump(Struct, frozen=True):
    """A check of a suite or case, as data by which ``llmeval guard`` compares two states.

    Attributes:
        name: Under which it is reported.
        key: Its kind, such as ``not_contains``.
        entry: What it was read from.
        each: Whether its list means that every value is looked for.
        line: Of its file; 0 if unknown.
    """

    name: str
    key: str
    entry: Any
    each: bool
    line: int

    @property
    def identity(self) -> str:
        """What it asks, without its name."""
        entry = self.entry
        plain = {key: value for key, value in entry.items() if key != "name"} if isinstance(entry, Mapping) else entry
        return json.dumps(plain, sort_keys=True)


class EvaluatorDump(Struct, frozen=True):
    """An evaluator of a suite, apart from checks, as data by which ``llmeval guard`` compares two states.

    Attributes:
        noun: The kind, for messages.
        definition: Its name and version.
        options: Those that decide its scores, with what it reads.
        line: Of its file; 0 if unknown.
    """

    noun: str
    definition: tuple[str, str]
    options: dict[str, Any]
    line: int


class GateDump(Struct, frozen=True):
    """A gate of a suite, as data by which ``llmeval guard`` compares two states.

    Attributes:
        text: As reports name it.
        rule: The name of its class.
        values: Of its fields.
        line: Of its file; 0 if unknown.
    """

    text: str
    rule: str
    values: dict[str, Any]
    line: int

    def gate(self) -> Gate | None:
        """Return it; ``None`` if this process does not know its rule."""
        known = {rule.__name__: rule for rule in RULES}
        try:
            return convert(self.values, known[self.rule])
        except (KeyError, ValidationError):
            return None


class CaseDump(Struct, frozen=True):
    """A case of a suite, as data by which ``llmeval guard`` compares two states.

    Attributes:
        file: That has it, relative to the folder that is compared.
        line: Where the file has it; 0 if that is unknown.
        content: Fingerprint of what of it decides its scores.
        parts: Its input, and its expectation if it has one.
        labels: By name.
        tags: In their order.
        limits: Its own, by metric.
        checks: Its own.
        answers: What systems have answered it.
        lines: Those of its values, by their place, such as ``checks/0``.
    """

    file: str
    line: int
    content: str
    parts: dict[str, Any]
    labels: dict[str, str]
    tags: list[str]
    limits: dict[str, Threshold]
    checks: list[CheckDump]
    answers: list[Any]
    lines: dict[str, int]

    def place(self, *inside: str | int) -> tuple[str, int]:
        """Return file and line of a value in it, or of what is nearest to it."""
        return self.file, _nearest(self.lines, inside, self.line)


class SuiteDump(Struct, frozen=True):
    """A suite, as data by which ``llmeval guard`` compares two states.

    Attributes:
        file: That declares it, relative to the folder that is compared.
        name: Of the suite.
        settings: Key to value, of those that decide scores or verdicts.
        written: Keys as its file has them.
        evaluators: By label.
        gates: In their order.
        limits: Metric to limit.
        checks: Those of all cases.
        systems: Name to the ids of the cases that it has answers to.
        unread: What the commands of its targets must not read.
        cases: By id.
        lines: Those of its values, by their place, such as ``thresholds/f1``; none for a suite in Python.
    """

    file: str
    name: str
    settings: dict[str, Any]
    written: dict[str, Any]
    evaluators: dict[str, EvaluatorDump]
    gates: list[GateDump]
    limits: dict[str, Threshold]
    checks: list[CheckDump]
    systems: dict[str, list[str]]
    unread: list[str]
    cases: dict[str, CaseDump]
    lines: dict[str, int]

    def line(self, *place: str | int) -> int:
        """Return the line of a value, or of what is nearest to it; 0 if unknown."""
        return _nearest(self.lines, place, self.lines.get("", 0))

    @property
    def contents(self) -> dict[str, str]:
        """The content of each case, by id."""
        return {name: case.content for name, case in self.cases.items()}


def _nearest(lines: Mapping[str, int], place: Sequence[str | int], otherwise: int = 0) -> int:
    """The line of a suite file that has a value, or that of the nearest value around it."""
    names = ("/".join(map(str, place[:length])) for length in range(len(place), 0, -1))
    return next((lines[name] for name in names if name in lines), otherwise)


def dump_suite(suite: LoadedSuite, file: str, document: Document | None = None) -> SuiteDump:
    """Return a suite as data for ``llmeval guard`` that is the same in every process.

    Args:
        suite: The suite.
        file: Its file, relative to the folder that is compared.
        document: The file, if it is no Python file.
    """
    data = {} if document is None else document.data
    lines = {} if document is None else {"": document.locate(())[0], **_lines(document, (), data)}
    settings = {
        name: _plain(data.get(name) if name == "sample" and document else getattr(suite, name))  # it is not drawn here
        for name, key in KEYS.items()
        if (key.carried and key.decides != "form") or name == "mode"
    }
    settings |= {name: _plain(value) for name, value in suite.written("scores", "verdicts").items()}
    checks = [check for evaluator in suite.evaluators.values() for check in getattr(evaluator, "ready", ())]
    return SuiteDump(
        file,
        suite.name,
        settings,
        {name: _plain(data[name]) for name in (*settings, *JUDGE_KEYS) if name in data},
        dict(_evaluators(suite, data.get("evaluators"), lines)),
        [GateDump(str(gate), type(gate).__name__, _plain(gate), gate.line) for gate in suite.gates],
        dict(suite.thresholds),
        _checks(checks, lines),
        {name: [case.id for case in system.cases] for name, system in suite.systems.items()},
        sorted(_unread(suite)),
        dict(_cases(suite, file, document, lines)),
        lines,
    )


def _plain(value: Any) -> Any:
    """A value of a suite as JSON data, without addresses of objects, which differ between processes."""
    return to_builtins(value, enc_hook=lambda other: _ADDRESS.sub("", str(other)))


def _lines(document: Document, place: tuple[str | int, ...], data: Any) -> dict[str, int]:
    """The lines of a value in a suite file, and of all values inside of it."""
    lines = {}
    for key in _keys(data):
        lines[str(key)] = document.locate((*place, key))[0]
        lines |= {f"{key}/{inner}": document.locate((*place, key, inner))[0] for inner in _keys(data[key])}
    return lines


def _keys(data: Any) -> Iterable[str | int]:
    """The keys of a mapping, or the indices of a list, in a suite file."""
    return data if isinstance(data, Mapping) else range(len(data) if isinstance(data, list) else 0)


def _evaluators(suite: LoadedSuite, entries: Any, lines: Mapping[str, int]) -> Iterator[tuple[str, EvaluatorDump]]:
    """Yield the evaluators of a suite by label, as data for ``llmeval guard``; checks are apart."""
    numbers: dict[str, int] = {}
    for number, entry in enumerate(entries if isinstance(entries, list) else ()):
        for name in [entry] if isinstance(entry, str) else [entry.get("as"), *entry]:
            numbers.setdefault(name, number)
    for label, evaluator in SuiteIdentity(suite).evaluators.items():
        if not suite.evaluators[label].asserts:
            noun = "judging evaluator" if suite.evaluators[label].asks else "evaluator"
            line = _nearest(lines, ("evaluators", numbers.get(label, 0)))
            yield label, EvaluatorDump(noun, (evaluator.name, evaluator.version), dict(evaluator.options), line)


def _unread(suite: LoadedSuite) -> Iterator[str]:
    """Yield the files that the commands of a suite's targets must not read, with the system."""
    targets = {"": suite.target, **{name: system.target for name, system in suite.systems.items()}}
    for name, target in targets.items():
        workspace = None if target is None else target.workspace_spec
        yield from (f"{name} {path}".strip() for path in (workspace.must_not_read if workspace is not None else ()))


def _cases(
    suite: LoadedSuite,
    file: str,
    document: Document | None,
    lines: Mapping[str, int],
) -> Iterator[tuple[str, CaseDump]]:
    """Yield the cases of a suite by id, as data for ``llmeval guard``."""
    digests, answers = SuiteIdentity(suite).digests, defaultdict[str, list[Any]](list)
    for case in chain(suite.cases, *(system.cases for system in suite.systems.values())):
        inner = case.prediction.get("answer") if isinstance(case.prediction, dict) else None
        answers[case.id] += [
            answer for answer in (case.prediction, inner) if answer is not MISSING and answer is not None
        ]
    rows = [] if document is None else document.data.get("cases") or []
    numbers = {lines[f"cases/{number}"]: number for number in range(len(rows))}
    for case in suite.cases:
        number = None if case.id in suite.files else numbers.get(case.line)
        inside = {} if document is None or number is None else _lines(document, ("cases", number), rows[number])
        parts = {"input": case.input, "expected": case.expected}
        yield (
            case.id,
            CaseDump(
                suite.files.get(case.id, file),
                case.line,
                digests[case.id].data,
                {name: _plain(value) for name, value in parts.items() if value is not MISSING},
                dict(case.labels),
                list(case.tags),
                dict(case.thresholds),
                _checks(case.checks, inside),
                _plain(answers[case.id]),
                inside,
            ),
        )


def _checks(checks: "Iterable[Check]", lines: Mapping[str, int]) -> list[CheckDump]:
    """The checks of a suite or a case, as data for ``llmeval guard``."""
    return [
        CheckDump(
            check.name,
            check.key,
            _plain(check.entry),
            check.each,
            _nearest(lines, ("checks", number)),
        )
        for number, check in enumerate(checks)
    ]
