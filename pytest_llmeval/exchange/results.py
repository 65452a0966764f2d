"""The record of results of any runner, its published form, and the reader of that form.

A row is one score of one case: `ResultRow`. Gates, snapshots, comparison, history, comment, page and merge start from
rows, without a suite and an evaluator: `exchange/gating.py` makes a run of them.

The seam to other tools is `exchange/readers.py`, which knows their formats and chooses among them and this one. It adds
what it reads to a `ResultReader`, which checks every value, refuses what is said twice, and keeps the place of each
fault; ``reader.checked()`` then returns the rows, or raises with all faults.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from msgspec import Struct

from pytest_llmeval.core.codec import JsonNumber, is_finite_number
from pytest_llmeval.core.errors import Fault, LlmevalError, SuiteError
from pytest_llmeval.core.wording import expected_name
from pytest_llmeval.data.files.documents import load_json, read_csv, read_jsonl
from pytest_llmeval.data.files.places import FaultLog
from pytest_llmeval.data.files.validation import describe
from pytest_llmeval.data.formats.base import case_id, json_text, same_id
from pytest_llmeval.data.formats.frames import rows_of
from pytest_llmeval.exchange.contract import read_parquet

SUITE: Final = "results"
"""The suite of rows that name none."""


class ResultRow(Struct, frozen=True, omit_defaults=True):
    """One score of one case, or why there is none: of `score`, `error` and `abstained` exactly one is set.

    Attributes:
        case: Id of the case.
        metric: Name of the metric; an error without one is an error of all metrics of the case.
        score: The value.
        error: Why it could not be computed: a rate limit, a crash, a judge that failed. It never counts as a score.
        abstained: Why there is nothing to score although everything worked.
        suite: Name of the suite.
        repeat: The run of the case, counted from 0 or 1. Repeats are no cases of their own.
        system: The system, model or arm that answered; empty where there is only one.
        cost: Of the answer, in US dollars; ``None`` if unknown.
        latency: Of the answer, in seconds; ``None`` if unknown.
        labels: Of the case, for groups and clusters.
        signature: How the metric is computed. Scores of different signatures are not compared.
        lower_is_better: Whether lower is better; only reports of this package say so.
    """

    case: str
    metric: str = ""
    score: JsonNumber | None = None
    error: str = ""
    abstained: str = ""
    suite: str = SUITE
    repeat: int = 1
    system: str = ""
    cost: JsonNumber | None = None
    latency: JsonNumber | None = None
    labels: Mapping[str, str] = {}
    signature: str = ""
    lower_is_better: bool = False


class _Field(NamedTuple):
    """A field of the published form.

    Attributes:
        read: Returns the value; ``None`` if it does not fit.
        cell: Returns what the text of a cell means, for `read`.
        expected: What fits, for messages.
        schema: Its JSON Schema, without null.
        meaning: For the schema and the documentation.
    """

    read: Callable[[Any], Any]
    cell: Callable[[str], Any]
    expected: str
    schema: Mapping[str, Any]
    meaning: str


def _name(value: Any) -> str | None:
    text = case_id(value)
    return text if text and text.strip() and not _CONTROL.search(text) else None


def _case_name(value: Any) -> str | None:
    """Return the id of a case; pytest splits at two colons, as ids of its own tests have them."""
    name = _name(value)
    return name if name is None else same_id(name.strip().replace("::", ":"))


def _reason(value: Any) -> str | None:
    return value if isinstance(value, str) and value.strip() else None


def _score(value: Any) -> JsonNumber | None:
    return int(value) if isinstance(value, bool) else value if is_finite_number(value) else None


def _amount(value: Any) -> JsonNumber | None:
    return value if is_finite_number(value) and value >= 0 else None


def _count(value: Any) -> int | None:
    whole = is_finite_number(value) and value == int(value) and value >= 0
    return int(value) if whole else None


def _labels(value: Any) -> dict[str, str] | None:
    if not isinstance(value, Mapping) or any(isinstance(each, Mapping | list | tuple) for each in value.values()):
        return None
    return {str(name): json_text(each) for name, each in value.items() if each is not None}


def _number_cell(text: str) -> Any:
    lowered = text.strip().lower()
    if lowered in _TRUTHS:
        return _TRUTHS[lowered]
    try:
        return float(lowered) if _FRACTION.search(lowered) else int(lowered)
    except ValueError:
        return text


_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_FRACTION: Final = re.compile(r"[.e]")
_TRUTHS: Final = {"true": True, "false": False}
_TEXT: Final = {"type": "string", "minLength": 1}
_NAME: Final = {"type": ["string", "integer"], "minLength": 1}
_AMOUNT: Final = {"type": "number", "minimum": 0}
_NAMED: Final = "a text without control characters, or a whole number"

FIELDS: Final[Mapping[str, _Field]] = {
    "suite": _Field(_name, str, _NAMED, _NAME, f"Name of the suite; default: `{SUITE}`."),
    "case": _Field(_case_name, str, _NAMED, _NAME, "Id of the case: the same in every run, so never its position."),
    "repeat": _Field(
        _count,
        _number_cell,
        "a whole number of at least 0",
        {"type": "integer", "minimum": 0},
        "The run of the case, counted from 0 or 1; default: 1.",
    ),
    "system": _Field(
        _name, str, _NAMED, _NAME, "The system, model or arm that answered, such as `with` and `without`."
    ),
    "metric": _Field(_name, str, _NAMED, _NAME, "Name of the metric; may be absent beside `error`: all metrics."),
    "score": _Field(
        _score,
        _number_cell,
        "a finite number, or true or false",
        {"type": ["number", "boolean"]},
        "The value; true is 1, false is 0.",
    ),
    "error": _Field(
        _reason, str, "a text that is not empty", _TEXT, "Why the score could not be computed. It never counts as 0."
    ),
    "abstained": _Field(
        _reason, str, "a text that is not empty", _TEXT, "Why there is nothing to score although everything worked."
    ),
    "cost": _Field(_amount, _number_cell, "a number of at least 0", _AMOUNT, "Of the answer, in US dollars."),
    "latency": _Field(_amount, _number_cell, "a number of at least 0", _AMOUNT, "Of the answer, in seconds."),
    "labels": _Field(
        _labels,
        str,
        "an object of texts, numbers and booleans",
        {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean", "null"]}},
        "Of the case, for groups and clusters; in tables, columns `label.NAME`.",
    ),
    "signature": _Field(
        _reason,
        str,
        "a text that is not empty",
        _TEXT,
        "How the metric is computed: another signature is not compared.",
    ),
}
"""The fields of a row, from which the reader, the schema and the documentation are made."""

OUTCOMES: Final = ("score", "error", "abstained")
"""Of these fields a row has exactly one."""

_LABEL: Final = "label."
_FRAME: Final = "data frame"
_SUFFIXES: Final = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet", ".json")
_DEPTH: Final = 3
_MOST_ALIKE: Final = 3


def results_schema() -> dict[str, Any]:
    """Return the JSON Schema, draft 2020-12, of a row: a line of a JSONL file."""
    properties = {}
    for name, field in FIELDS.items():
        kinds = field.schema["type"]
        kinds = [*([kinds] if isinstance(kinds, str) else kinds), "null"]
        properties[name] = {**field.schema, "type": kinds, "description": field.meaning}
    only = {name: {"type": field.schema["type"]} for name, field in FIELDS.items()}
    forms = [
        {
            "properties": {name: only[name], **{each: {"type": "null"} for each in OUTCOMES if each != name}},
            "required": [name] if name == "error" else [name, "metric"],
        }
        for name in OUTCOMES
    ]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Result of a case",
        "description": "One score of one case of any runner, or why there is none. A file has one row per line.",
        "type": "object",
        "properties": properties,
        "required": ["case"],
        "oneOf": forms,
        "additionalProperties": False,
    }


class ResultReader:
    """Checks rows and collects them with the faults of a file.

    Attributes:
        rows: The good ones.
        log: What is wrong with the others.
    """

    def __init__(self, file: str) -> None:
        self.rows: list[ResultRow] = []
        self.log = FaultLog(file)
        self._places: dict[tuple[str, str, int, str, str], int] = {}
        self._signatures: dict[tuple[str, str], str] = {}
        self._alike: Counter[tuple[str, str]] = Counter()

    def add(
        self, data: Mapping[str, Any], line: int = 0, column: int = 1, path: str = "", paths: Mapping[str, str] = {}
    ) -> None:
        """Add a row, or its faults.

        Args:
            data: Field to value; a value that is ``None`` is absent.
            line: Its place in the file, counted from 1; 0 if lines mean nothing there.
            column: Likewise.
            path: Of the row in the file, such as ``results[3]``.
            paths: Field to the path of its value in the file, where a tool names it differently.
        """
        before = self.log.count
        values: dict[str, Any] = {}

        def fault(name: str, message: str) -> None:
            inner = paths.get(name, name)
            self._alike[inner, message] += 1
            if self._alike[inner, message] > _MOST_ALIKE:
                self.log.count += 1  # which the last line tells
                return
            where = f"{path}.{inner}" if path and inner else path or inner
            self.log.add(line, column, where, message)

        labels = {key: value for key, value in data.items() if key.startswith(_LABEL) and value is not None}
        for key, value in data.items():
            field = FIELDS.get(key)
            if value is None or key in labels:
                continue
            if field is None:
                fault(key, f"found the unknown field {key!r}{expected_name(key, FIELDS)}")
            elif (known := field.read(value)) is None:
                fault(key, f"found {describe(value)}, expected {field.expected}")
            else:
                values[key] = known
        for key, value in labels.items():
            if isinstance(value, Mapping | list | tuple):
                fault(key, f"found {describe(value)}, expected text")
            else:
                values["labels"] = {**values.get("labels", {}), key.removeprefix(_LABEL): json_text(value)}
        if self.log.count == before and (message := _form_fault(values)):
            fault("", message)
        if self.log.count == before:
            self._keep(ResultRow(**values), line, fault)

    def _keep(self, row: ResultRow, line: int, fault: Callable[[str, str], None]) -> None:
        key = (row.suite, row.case, row.repeat, row.system, row.metric)
        if key in self._places:
            first = f" (first in line {self._places[key]})" if self._places[key] else ""
            named = f"case {row.case!r}, metric {row.metric!r}, repeat {row.repeat}"
            system = f", system {row.system!r}" if row.system else ""
            fault("case", f"found {named}{system} twice, expected it once{first}: number the repeats")
            return
        self._places[key] = line
        known = self._signatures.setdefault((row.suite, row.metric), row.signature)
        if row.score is not None and known != row.signature:
            fault("signature", f"found {row.signature!r}, expected {known!r}, as of other scores of {row.metric!r}")
            return
        self.rows.append(row)

    def checked(self) -> list[ResultRow]:
        """Return the rows.

        Raises:
            SuiteError: Something is wrong with the file, or there is no row; all faults are listed.
        """
        if not self.rows and not self.log.count:
            self.log.add(0, 0, "", "found no result, expected at least one")
        self.log.check()
        return self.rows


def _form_fault(values: Mapping[str, Any]) -> str:
    """Return what fields lack, or have too much, as a whole; empty if nothing."""
    present = [name for name in OUTCOMES if name in values]
    if "case" not in values:
        return "found no case, expected the id of the case"
    if len(present) != 1:
        listed = " and ".join(present) or "none"
        return f"found {listed} of score, error and abstained, expected exactly one of them"
    return "found no metric, expected the name of one" if "metric" not in values and present != ["error"] else ""


def read_own(path: Path, display_path: str, *, chosen: bool = False) -> list[ResultRow] | None:
    """Read a file in the published form: JSONL, CSV, TSV, Parquet, or JSON with a list of rows.

    Args:
        path: The file.
        display_path: Its name in messages.
        chosen: Whether the user says that the file has this form.

    Returns:
        The rows; ``None`` if no row has the fields by which the form is known, and it is not chosen.

    Raises:
        SuiteError: The file cannot be read, or has faults; all are listed.
    """
    if path.suffix.lower() not in _SUFFIXES and not chosen:
        return None
    faults: list[Fault] = []
    rows = list(_file_rows(path, display_path, faults))
    if not chosen and (rows or not faults) and not any(_is_own(data) for *_, data in rows):
        return None
    reader = ResultReader(display_path)
    reader.log.extend(faults)
    for line, where, data in rows:
        if isinstance(data, Mapping):
            reader.add(data, line, path=where)
        else:
            reader.log.add(line, 1, where, f"found {describe(data)}, expected an object")
    return reader.checked()


def _is_own(data: Any) -> bool:
    """Return whether a row has the fields by which the published form is known."""
    return isinstance(data, Mapping) and "case" in data and any(name in data for name in OUTCOMES)


def _file_rows(path: Path, display_path: str, faults: list[Fault]) -> Iterator[tuple[int, str, Any]]:
    """Yield line, path in the file and content of each row."""
    suffix = path.suffix.lower()
    if suffix in (".csv", ".tsv"):
        for line, cells in read_csv(path, display_path, faults, delimiter="\t" if suffix == ".tsv" else ","):
            yield line, "", {name: _cell(name, text) for name, text in cells.items()}
    elif suffix == ".parquet":
        for number, row in enumerate(read_parquet(path, display_path)):
            yield 0, f"[{number}]", row
    elif suffix == ".json":
        try:
            document = load_json(path, display_path, _DEPTH)
        except SuiteError as error:
            faults.extend(error.faults)
            return
        for number, row in enumerate(document.data if isinstance(document.data, list) else ()):
            yield document.locate([number])[0], f"[{number}]", row
    else:
        yield from ((line, "", row) for line, row in read_jsonl(path, display_path, faults))


def _cell(name: str, text: str) -> Any:
    if not text.strip():
        return None
    return FIELDS[name].cell(text) if name in FIELDS else text


def own_rows_of(data: Any) -> list[ResultRow]:
    """Return the rows of a data frame of the fields of `ResultRow`, of mappings, or of rows.

    Raises:
        SuiteError: Rows have faults; all are listed.
        LlmevalError: It is something else.
    """
    if isinstance(data, Sequence) and data and all(isinstance(each, ResultRow) for each in data):
        return list(data)
    rows = list(rows_of(data))
    if rows and not any(map(_is_own, rows)):
        columns = ", ".join(dict.fromkeys(name for row in rows for name in row))
        raise LlmevalError(f"found the columns {columns}, expected case, metric and one of {', '.join(OUTCOMES)}")
    reader = ResultReader(_FRAME)
    for number, row in enumerate(rows):
        reader.add(row, path=f"[{number}]")
    return reader.checked()
