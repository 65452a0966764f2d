"""Test cases of promptfoo."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any, Final, NamedTuple

from pytest_llmeval.core import is_finite_number
from pytest_llmeval.exchange._ledger import (
    LeftOutError,
    SourceLedger,
    SourcePath,
    as_mapping,
    as_text,
    each_of,
    first_text,
    is_scalar,
    read_records,
)
from pytest_llmeval.exchange._templates import SPACES, Direction, TemplateError, VerdictDifference, filled, is_template
from pytest_llmeval.exchange.promptfoo._assertions import TYPES
from pytest_llmeval.exchange.promptfoo._outcomes import Outcome, comma_list, constant, described
from pytest_llmeval.exchange.promptfoo._prompts import MEDIA_SUFFIXES, ConfigFiles

_DATA_SUFFIXES = frozenset({".csv", ".json", ".jsonl", ".yaml", ".yml"})
_MOST_EXPANDED = 10_000
_REFERENCE = re.compile(r"\{\{\s*([A-Za-z_]\w*)\s*\}\}", re.ASCII)
_NUMBER = re.compile(rf"[{SPACES}]*[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[{SPACES}]*")
_TYPE = "|".join(map(re.escape, sorted(TYPES, reverse=True)))
_CELL = re.compile(rf"(not-)?({_TYPE})(?:\(([0-9]+(?:\.[0-9]+)?)\))?(?::(.*))?", re.DOTALL)
_SCORED_CELLS: Final = {"similar": 0.8}
_THRESHOLD_TYPES = frozenset(
    {
        "answer-relevance",
        "classifier",
        "context-faithfulness",
        "context-recall",
        "context-relevance",
        "cost",
        "latency",
        "levenshtein",
        "perplexity",
        "perplexity-score",
        "rouge-n",
        "similar",
        "starts-with",
    }
)
_PREFIXES: Final = {
    "javascript:": "javascript",
    "fn:": "javascript",
    "eval:": "javascript",
    "python:": "python",
    "grade:": "llm-rubric",
    "llm-rubric:": "llm-rubric",
}
_OPTIONS: Final = {
    "delay": "calls are limited by retries and --llmeval-concurrency",
    "prefix": "write it into the prompt",
    "rubricPrompt": "the judge has instructions of its own; for others, use evaluator judge with prompt: FILE",
    "runSerially": "use target: {concurrency: 1}",
    "storeOutputAs": "a case does not see answers of others; write a conversation (messages)",
    "suffix": "write it into the prompt",
    "transformVars": "it is code, which is never executed; write the final values into the cases",
}


_COLUMNS: Final = {
    "__description": "ids of the cases",
    "__metric": "names of the checks",
    "__providerOutput": "predictions of the cases",
    "__threshold": "how many checks must be met",
}


class Noted(NamedTuple):
    """A value of a promptfoo configuration with its place there."""

    value: Any
    path: SourcePath
    ledger: SourceLedger


@dataclass
class TestRow:
    """A test case of promptfoo, or the settings that all share.

    Attributes:
        place: Its place.
        variables: Name to value.
        asserts: Its assertions.
        description: A text for people.
        labels: From its metadata.
        threshold: Least mean score of its assertions.
        prediction: Its recorded answer.
        changed: A change of the answers before assertions see them.
        judge: The provider that grades.
        alone: Whether it leaves out the assertions that all share.
        expands: Whether lists among the variables expand to several cases.
    """

    __test__ = False  # pytest takes the name for that of tests

    place: Noted | None = None
    variables: dict[str, Any] = field(default_factory=dict)
    asserts: list[Noted] = field(default_factory=list)
    description: str = ""
    labels: dict[str, Any] = field(default_factory=dict)
    threshold: Noted | None = None
    prediction: Any = None
    changed: str = ""
    judge: Noted | None = None
    alone: bool = False
    expands: bool = True

    def variable_path(self, name: str) -> SourcePath:
        """Return the path of a variable of this test."""
        assert self.place is not None  # a test without a place has no variables
        _, path, ledger = self.place
        if path[1:] and path[1] in as_mapping(as_mapping(ledger.data).get(str(path[0]))):  # a table
            return name, path[1]
        return *path, "vars", name

    def over(self, shared: "TestRow") -> "TestRow":
        """Return this test with what all of them share, except the assertions."""
        return replace(
            self,
            variables={**shared.variables, **self.variables},
            labels={**shared.labels, **self.labels},
            threshold=self.threshold or shared.threshold,
            changed=self.changed or shared.changed,
            judge=self.judge or shared.judge,
            expands=self.expands and shared.expands,
        )


@dataclass
class TestReader:
    """A reader of the tests in one configuration of promptfoo.

    Attributes:
        files: Files of the configuration.
        templates: Assertions that others refer to.
        tables: Ledgers of the tables that were read.
    """

    __test__ = False  # pytest takes the name for that of tests

    files: ConfigFiles
    templates: Mapping[str, Any] = field(default_factory=dict)
    tables: list[SourceLedger] = field(default_factory=list)

    def rows(self, value: Any, path: SourcePath, ledger: SourceLedger) -> Iterator[TestRow]:
        """Yield the tests of ``tests``: one, a list, or names of files."""
        for entry, place in each_of(value, path):
            if isinstance(entry, str):
                yield from self._named(entry, place, ledger)
            elif (code := first_text(as_mapping(entry), "path")) and "vars" not in entry:
                ledger.lost(place, "tests", f"{code} is code, which is never executed; save its cases as JSONL")
            elif isinstance(entry, Mapping):
                yield self.row(entry, place, ledger)
            else:
                ledger.lost(place, "test", "neither a mapping nor the name of a file")

    def _named(self, name: str, path: SourcePath, ledger: SourceLedger) -> Iterator[TestRow]:
        kind = f"tests {name}"
        scheme = name.partition("://")[0] if "://" in name else ""
        if scheme not in ("", "file"):
            ledger.lost(path, kind, "it is fetched over the network; save the cases as CSV or JSONL, and import again")
            return
        rows: list[TestRow] = []
        with ledger.losing(path, kind):
            rows = [row for file in self.files.paths(name) for row in self._of_file(file)]
            ledger.same(path, kind, f"{len(rows)} cases of the suite")
        yield from rows

    def _of_file(self, path: Path) -> Iterator[TestRow]:
        suffix = path.suffix.lower()
        if suffix not in _DATA_SUFFIXES:
            raise LeftOutError(f"{path.name} is in a form that is not read; save the cases as CSV or JSONL")
        if suffix == ".csv":
            ledger, records, _ = read_records(path, self.files.name(path))
            self.tables.append(ledger)
            yield from (self._cells(record, number, ledger) for number, record in enumerate(records))
        elif suffix == ".jsonl":
            ledger, records, _ = read_records(path, self.files.name(path))
            by_row = SourceLedger(ledger.file, records, lambda steps: ledger.line(("", *steps)))
            self.tables.append(by_row)
            yield from self.rows(records, (), by_row)
        else:
            inner = self.files.data(path)
            yield from self.rows(inner.data, (), inner)

    def _cells(self, record: Mapping[str, str], number: int, ledger: SourceLedger) -> TestRow:
        """Return the test in a row of a table."""
        row = TestRow(place=Noted(record, (next(iter(record)), number), ledger))
        metric = {"metric": record["__metric"]} if record.get("__metric") else {}
        for column, cell in record.items():
            path: SourcePath = (column, number)
            text = _COLUMNS.get(column, "")
            if column.startswith("__expected"):
                text = "checks of the cases"
                if cell.strip(SPACES):
                    row.asserts.append(Noted({**assertion_of_cell(cell), **metric}, path, ledger))
                    continue
            elif column == "__description":
                row.description = cell
            elif column == "__providerOutput":
                row.prediction = cell or None
            elif column == "__threshold":
                row.threshold = Noted(float(cell.strip(SPACES)), path, ledger) if _NUMBER.fullmatch(cell) else None
            elif column.startswith("__metadata:"):
                row.labels[column.partition(":")[2]], text = cell, "a label"
            elif not column.startswith("__"):
                row.variables[column], text = cell, f"input.{column}"
            if text:
                ledger.same((column,), f"column {column}", text)
            else:
                advice = _OPTIONS.get(column[2:], "see the checks")
                ledger.lost((column,), f"column {column}", f"there is no such column; {advice}")
        return row

    def row(self, raw: Mapping[str, Any], path: SourcePath, ledger: SourceLedger) -> TestRow:
        """Return a test, after noting all of it but its assertions and variables."""
        row = TestRow(place=Noted(raw, path, ledger))
        for key, value in raw.items():
            place = (*path, key)
            match key:
                case "vars":
                    row.variables = self._variables(value, place, ledger)
                case "assert":
                    row.asserts = self._asserts(value, place, ledger)
                case "description" if isinstance(value, str):
                    row.description = value
                    ledger.same(place, "description of a test", "the id of the case")
                case "threshold":
                    row.threshold = Noted(value, place, ledger)
                case "metadata" if isinstance(value, Mapping):
                    self._labels(row, value, place, ledger)
                case "options" if isinstance(value, Mapping):
                    self._options(row, value, place, ledger)
                case "providerOutput" if value in ("", None, 0, False):  # a provider is asked in its place
                    ledger.same(place, "providerOutput", "the case has no recorded answer")
                case "providerOutput":
                    row.prediction = value
                    ledger.same(place, "providerOutput", "the prediction of the case")
                case "provider" | "providers":
                    text = "the case is asked of all systems; write it into a suite of its own"
                    ledger.lost(place, f"{key} of a test", text)
                case "assertScoringFunction":
                    ledger.lost(place, key, "it is code, which is never executed; write an evaluator")
                case _:
                    ledger.lost(place, f"{key} of a test", "a case has no such setting")
        return row

    def _asserts(self, value: Any, path: SourcePath, ledger: SourceLedger) -> list[Noted]:
        assertions = []
        for entry, place in each_of(value, path):
            if as_text(entry).startswith("file://"):
                with ledger.losing(place, f"assertions {entry}"):
                    inner = self.files.data(self.files.path(entry))
                    assertions += self._asserts(inner.data, (), inner)
                    ledger.same(place, f"assertions {entry}", "its content is read")
                continue
            reference = first_text(as_mapping(entry), "$ref")
            if reference and len(entry) == 1:
                name = reference.removeprefix("#/assertionTemplates/")
                if name not in self.templates:
                    ledger.lost(place, f"assertion {reference}", "there is no such template")
                    continue
                assertions.append(Noted(self.templates[name], place, ledger))
            else:
                assertions.append(Noted(entry, place, ledger))
        return assertions

    def _labels(self, row: TestRow, value: Mapping[str, Any], path: SourcePath, ledger: SourceLedger) -> None:
        for name, label in value.items():
            place = (*path, name)
            if name == "conversationId":
                ledger.lost(place, name, "each case is a conversation of its own; write it as messages of one case")
            elif is_scalar(label):
                row.labels[name] = label
                ledger.same(place, f"metadata {name}", "a label")
            else:
                ledger.lost(place, f"metadata {name}", "labels are texts, numbers or booleans")

    def _options(self, row: TestRow, value: Mapping[str, Any], path: SourcePath, ledger: SourceLedger) -> None:
        for name, setting in value.items():
            place = (*path, name)
            if name in ("transform", "postprocess"):
                row.changed = f"options.{name} changes the answer by code, which is never executed"
                ledger.lost(place, f"option {name}", "it is code; let a target return the text that it would make")
            elif name == "provider":
                row.judge = Noted(setting, place, ledger)
            elif name == "disableVarExpansion":
                row.expands = not setting
                ledger.same(place, f"option {name}", "lists stay lists")
            elif name == "disableDefaultAsserts":
                row.alone = bool(setting)
                ledger.same(place, f"option {name}", "the case has its own checks only")
            else:
                ledger.lost(place, f"option {name}", _OPTIONS.get(name, "a case has no such setting"))

    def _variables(self, value: Any, path: SourcePath, ledger: SourceLedger) -> dict[str, Any]:
        if as_text(value).startswith("file://"):
            try:
                value = self.files.value(value)
            except LeftOutError as error:
                ledger.lost(path, f"vars {value}", str(error))
                return {}
        if not isinstance(value, Mapping):
            ledger.lost(path, "vars", "not a mapping of names to values")
            return {}
        ledger.same(path, "vars", "the input of the case")
        return dict(value)

    def expansions(self, row: TestRow) -> Iterable[tuple[dict[str, Any], dict[str, str]]]:
        """Yield the final variables of each case of a test, and those left out with the reasons."""
        values, lost = {}, {}
        for name, value in row.variables.items():
            try:
                values[name] = self._alternatives(value) if row.expands else [value]
            except LeftOutError as error:
                lost[name] = str(error)
        number = math.prod(map(len, values.values()))
        if number > _MOST_EXPANDED:
            yield {}, {"vars": f"they expand to {number} cases, more than {_MOST_EXPANDED}"}
            return
        for combination in product(*values.values()):
            raw = dict(zip(values, combination, strict=True))
            final, faulty = {}, dict(lost)
            for name, value in raw.items():
                try:
                    final[name] = _resolved(value, raw) if is_template(as_text(value)) else value
                except TemplateError as error:
                    faulty[name] = f"it needs {error}, which is never executed"
            yield {name: "" if value is None else value for name, value in final.items()}, faulty

    def _alternatives(self, value: Any) -> list[Any]:
        if isinstance(value, list) and all(map(is_scalar, value)):
            return [alternative for item in value for alternative in self._alternatives(item)] or [""]
        if as_text(value).startswith("file://"):
            return [self._content(path) for path in self.files.paths(value)]
        return [value]

    def _content(self, path: Path) -> Any:
        if path.suffix.lower() in (".yaml", ".yml"):
            return self.files.value(f"file://{path.relative_to(self.files.folder).as_posix()}")
        if path.suffix.lower() in MEDIA_SUFFIXES:
            return self.files.media.of_file(path.relative_to(self.files.folder).as_posix())
        return self.files.text(path)


def _resolved(text: str, variables: Mapping[str, Any]) -> str:
    """The value of a promptfoo variable, filled with the variables that it names.

    Raises:
        TemplateError: It names what is no variable: there, prompts and assertions see different texts.
    """
    pending, names = [text], set[str]()
    while pending:
        bare = _REFERENCE.sub("", pending[-1])
        if is_template(bare):
            raise TemplateError(f"more than names of variables, {bare}")
        for name in dict.fromkeys(_REFERENCE.findall(pending.pop())):
            if name in names:
                continue
            if variables.get(name) is None:
                raise TemplateError(f"{{{{ {name} }}}}, which is no variable")
            names.add(name)
            pending.append(str(variables[name]))
    return filled(text, variables)


def assertion_of_cell(cell: str) -> dict[str, Any]:
    """The promptfoo assertion in a cell of a column ``__expected``.

    Example:
        >>> assertion_of_cell("icontains:bonjour"), assertion_of_cell("Paris")
        ({'type': 'icontains', 'value': 'bonjour'}, {'type': 'equals', 'value': 'Paris'})
    """
    cell = cell.strip(SPACES)
    for prefix, kind in _PREFIXES.items():
        if cell.startswith(prefix):
            value = cell[len(prefix) :]
            return {"type": kind, "value": value if kind == "llm-rubric" else value.strip(SPACES)}
    if cell.startswith("file://"):
        return {"type": "python" if ".py" in cell else "javascript", "value": cell}
    match = _CELL.fullmatch(cell)
    if match is None:
        return {"type": "equals", "value": cell}
    negated, kind, threshold, value = match.groups()
    if value is not None and kind not in ("contains-json", "is-json"):
        value = value.strip(SPACES)
    assertion: dict[str, Any] = {"type": f"{negated or ''}{kind}", "value": value}
    if kind.endswith(("-all", "-any")) and value:
        assertion["value"] = comma_list(value)
    if kind in _THRESHOLD_TYPES:
        assertion["threshold"] = float(threshold) if threshold else _SCORED_CELLS.get(kind, 0.75)
    return assertion


_MOST_COUNTED = 200
"""Checks in one composition: a weight of 0.5 next to one of 1 counts twice."""


def is_reached_always(threshold: Any) -> bool:
    """Whether every mean score reaches the threshold of a promptfoo test or set."""
    return is_finite_number(threshold) and threshold <= 0


def together(
    outcomes: Sequence[tuple[Outcome, Any]], threshold: Any, total: int
) -> tuple[dict[str, Any], str, list[VerdictDifference]]:
    """Combine the checks of a promptfoo test or set into one, with its meaning and differences.

    Args:
        outcomes: Each with its weight.
        threshold: Least weighted mean score; ``None`` if all must hold.
        total: How many assertions there were.

    Raises:
        LeftOutError: The threshold cannot be had.
    """
    if not total:
        raise LeftOutError("there is no assertion")
    is_number = is_finite_number(threshold)
    if is_number and not 0 < threshold <= 1:
        decided = constant(f"its threshold is {threshold:g}", met=threshold <= 0)
        return dict(decided.entry or {}), decided.text, []
    entries = [(_bare(outcome.entry), outcome) for outcome, _ in outcomes if outcome.entry is not None]
    if not entries and len(outcomes) < total:
        raise LeftOutError("none of its assertions is imported as a check")
    if not entries or (is_number and not any(_weight(weight) for _, weight in outcomes)):
        decided = constant("the weight of all its assertions is 0", met=threshold is None)
        return dict(decided.entry or {}), decided.text, []
    differences = []
    if len(outcomes) < total:
        direction = Direction.LOOSER if threshold is None else Direction.EITHER
        differences.append(VerdictDifference("of those imported", direction))
    if threshold is None:
        return {"all_of": [entry for entry, _ in entries]}, "check all_of", differences
    if not is_number:
        raise LeftOutError(f"its threshold is {described(threshold)}, expected a number")
    counted = _counted(outcomes)
    least = next(number for number in range(len(counted) + 1) if number / len(counted) >= threshold)
    text = f"check at_least: {least} of {len(counted)}"
    if len(counted) > len(entries):
        text += "; a check counts as often as its share of the mean needs"
    if any(outcome.judged for _, outcome in entries):
        differences.append(VerdictDifference("a criterion is met or not, in place of a score between 0 and 1"))
    return {"at_least": {"n": least, "of": counted}}, text, differences


def _counted(outcomes: Sequence[tuple[Outcome, Any]]) -> list[dict[str, Any]]:
    """The checks of a promptfoo test, each as often as its weight is of the smallest common share.

    Raises:
        LeftOutError: That would be too many, or a weight is no number.
    """
    shares = list(_shares(outcomes, Fraction(1)))
    unit = Fraction(
        math.gcd(*(share.numerator for _, share in shares)), math.lcm(*(share.denominator for _, share in shares))
    )
    counts = [(entry, int(share / unit)) for entry, share in shares]
    if sum(count for _, count in counts) > _MOST_COUNTED:
        raise LeftOutError(f"its weights would need more than {_MOST_COUNTED} checks")
    return [entry for entry, count in counts for _ in range(count)]


def _shares(outcomes: Sequence[tuple[Outcome, Any]], share: Fraction) -> Iterator[tuple[dict[str, Any], Fraction]]:
    """Yield the checks of a promptfoo test with their weights in its mean; members of a set share the set's weight."""
    for outcome, weight in outcomes:
        own = share * _weight(weight)
        if outcome.members:
            total = sum(_weight(member_weight) for _, member_weight in outcome.members)
            if total:
                yield from _shares(outcome.members, own / total)
            else:
                yield dict(constant("", met=False).entry or {}), own
        elif outcome.entry is not None:
            yield _bare(outcome.entry), own


def _weight(value: Any) -> Fraction:
    """The weight of a promptfoo assertion as a fraction.

    Raises:
        LeftOutError: It is no number of at least 0.
    """
    if is_finite_number(value) and value >= 0:
        return Fraction(str(value))
    raise LeftOutError(f"a weight is {described(value)}, expected a number of at least 0")


def _bare(entry: Mapping[str, Any]) -> dict[str, Any]:
    """An imported check without the keys that only the outermost may have."""
    return {key: value for key, value in entry.items() if key not in ("name", "weight")}
