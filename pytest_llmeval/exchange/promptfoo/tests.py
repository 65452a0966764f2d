"""Test cases of promptfoo: from YAML, JSON, JSONL and CSV."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any, Final, NamedTuple

from pytest_llmeval.core.errors import SuiteError
from pytest_llmeval.exchange.contract import LeftOutError, SourceLedger, SourcePath, each_of, is_scalar, read_records
from pytest_llmeval.exchange.promptfoo.assertions import TYPES
from pytest_llmeval.exchange.promptfoo.prompts import ConfigFiles
from pytest_llmeval.exchange.templates import TemplateError, filled, is_template

_DATA_SUFFIXES = frozenset({".csv", ".json", ".jsonl", ".yaml", ".yml"})
_MOST_EXPANDED = 10_000
_TYPE = "|".join(map(re.escape, sorted(TYPES, reverse=True)))
_CELL = re.compile(rf"(not-)?({_TYPE})(?:\((\d+(?:\.\d+)?)\))?(?::(.*))?", re.DOTALL)
_SCORED_CELLS: Final = {"similar": 0.8}
_THRESHOLD_TYPES = frozenset(
    {
        "answer-relevance",
        "bleu",
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
    """A value with its place."""

    value: Any
    path: SourcePath
    ledger: SourceLedger


@dataclass
class TestRow:
    """A test case, or the settings that all share.

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
        in_table = isinstance(ledger.data, Mapping) and path[:1] and isinstance(ledger.data.get(path[0]), Mapping)
        if in_table and path[1:] and path[1] in ledger.data[path[0]]:
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
            expands=self.expands and shared.expands,
        )


@dataclass
class TestReader:
    """Reads the tests of one configuration.

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
        for each, place in each_of(value, path):
            if isinstance(each, str):
                yield from self._named(each, place, ledger)
            elif isinstance(each, Mapping) and isinstance(each.get("path"), str) and "vars" not in each:
                ledger.lost(place, "tests", f"{each['path']} is code, which is never executed; save its cases as JSONL")
            elif isinstance(each, Mapping):
                yield self.row(each, place, ledger)
            else:
                ledger.lost(place, "test", "found no mapping and no name of a file")

    def _named(self, name: str, path: SourcePath, ledger: SourceLedger) -> Iterator[TestRow]:
        kind = f"tests {name}"
        scheme = name.partition("://")[0] if "://" in name else ""
        if scheme not in ("", "file"):
            ledger.lost(path, kind, "it is fetched over the network; save the cases as CSV or JSONL, and import again")
            return
        try:
            files = self.files.paths(name)
            rows = [row for file in files for row in self._of_file(file)]
        except (LeftOutError, SuiteError) as error:
            text = str(error.faults[0]) if isinstance(error, SuiteError) else str(error)
            ledger.lost(path, kind, text)
            return
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
                if cell.strip():
                    row.asserts.append(Noted({**assertion_of_cell(cell), **metric}, path, ledger))
                    continue
            elif column == "__description":
                row.description = cell
            elif column == "__providerOutput":
                row.prediction = cell or None
            elif column == "__threshold":
                row.threshold = Noted(_number(cell), path, ledger) if cell.strip() else None
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
        for each, place in each_of(value, path):
            if isinstance(each, str) and each.startswith("file://"):
                try:
                    inner = self.files.data(self.files.path(each))
                    assertions += self._asserts(inner.data, (), inner)
                    ledger.same(place, f"assertions {each}", "its content is read")
                except LeftOutError as error:
                    ledger.lost(place, f"assertions {each}", str(error))
                continue
            reference = each.get("$ref") if isinstance(each, Mapping) else None
            if isinstance(reference, str) and len(each) == 1:
                name = reference.removeprefix("#/assertionTemplates/")
                if name not in self.templates:
                    ledger.lost(place, f"assertion {reference}", "there is no such template")
                    continue
                assertions.append(Noted(self.templates[name], place, ledger))
            else:
                assertions.append(Noted(each, place, ledger))
        return assertions

    def _labels(self, row: TestRow, value: Mapping[str, Any], path: SourcePath, ledger: SourceLedger) -> None:
        for name, each in value.items():
            place = (*path, name)
            if name == "conversationId":
                ledger.lost(place, name, "each case is a conversation of its own; write it as messages of one case")
            elif is_scalar(each):
                row.labels[name] = each
                ledger.same(place, f"metadata {name}", "a label")
            else:
                ledger.lost(place, f"metadata {name}", "labels are texts, numbers or booleans")

    def _options(self, row: TestRow, value: Mapping[str, Any], path: SourcePath, ledger: SourceLedger) -> None:
        for name, each in value.items():
            place = (*path, name)
            if name in ("transform", "postprocess"):
                row.changed = f"options.{name} changes the answer by code, which is never executed"
                ledger.lost(place, f"option {name}", "it is code; let a target return the text that it would make")
            elif name == "provider":
                row.judge = Noted(each, place, ledger)
            elif name == "disableVarExpansion":
                row.expands = not each
                ledger.same(place, f"option {name}", "lists stay lists")
            elif name == "disableDefaultAsserts":
                row.alone = bool(each)
                ledger.same(place, f"option {name}", "the case has its own checks only")
            else:
                ledger.lost(place, f"option {name}", _OPTIONS.get(name, "a case has no such setting"))

    def _variables(self, value: Any, path: SourcePath, ledger: SourceLedger) -> dict[str, Any]:
        if isinstance(value, str) and value.startswith("file://"):
            try:
                value = self.files.value(value)
            except LeftOutError as error:
                ledger.lost(path, f"vars {value}", str(error))
                return {}
        if not isinstance(value, Mapping):
            ledger.lost(path, "vars", "found no mapping of names to values")
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
            yield {}, {"vars": f"they stand for {number} cases, more than {_MOST_EXPANDED}"}
            return
        for combination in product(*values.values()):
            raw = dict(zip(values, combination, strict=True))
            final, faulty = {}, dict(lost)
            for name, value in raw.items():
                try:
                    final[name] = filled(value, raw) if isinstance(value, str) and is_template(value) else value
                except TemplateError as error:
                    faulty[name] = f"it needs {error}, which is never executed"
            yield {name: "" if value is None else value for name, value in final.items()}, faulty

    def _alternatives(self, value: Any) -> list[Any]:
        if isinstance(value, list) and all(isinstance(each, str | int | float) for each in value):
            return [alternative for each in value for alternative in self._alternatives(each)] or [""]
        if isinstance(value, str) and value.startswith("file://"):
            return [self._content(path) for path in self.files.paths(value)]
        return [value]

    def _content(self, path: Path) -> Any:
        if path.suffix.lower() in (".yaml", ".yml"):
            return self.files.value(f"file://{path.relative_to(self.files.folder).as_posix()}")
        return self.files.text(path)


def _number(cell: str) -> float | str:
    try:
        return float(cell)
    except ValueError:
        return cell


def assertion_of_cell(cell: str) -> dict[str, Any]:
    """Return the assertion of a cell ``__expected``.

    Example:
        >>> assertion_of_cell("icontains:bonjour"), assertion_of_cell("Paris")
        ({'type': 'icontains', 'value': 'bonjour'}, {'type': 'equals', 'value': 'Paris'})
    """
    for prefix, kind in _PREFIXES.items():
        if cell.startswith(prefix):
            return {"type": kind, "value": cell[len(prefix) :].strip() if kind != "llm-rubric" else cell[len(prefix) :]}
    if cell.startswith("file://"):
        return {"type": "python" if ".py" in cell else "javascript", "value": cell}
    match = _CELL.fullmatch(cell)
    if match is None:
        return {"type": "equals", "value": cell}
    negated, kind, threshold, value = match.groups()
    assertion: dict[str, Any] = {"type": f"{negated or ''}{kind}", "value": value}
    if kind.endswith(("-all", "-any")):
        assertion["value"] = [each.strip() for each in (value or "").split(",")]
    if kind in _THRESHOLD_TYPES:
        assertion["threshold"] = float(threshold) if threshold else _SCORED_CELLS.get(kind, 0.75)
    return assertion
