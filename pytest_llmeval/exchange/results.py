"""The record of results of any runner, its published form, and the check of its rows.

A row is one score of one case: `ResultRow`. Gates, snapshots, comparison, history, comment, page and merge start from
rows, without a suite and an evaluator: `exchange/gating.py` makes a run of them.

The seam to other tools is `exchange/_readers.py`, which reads files in their formats and in this one. It adds what it
reads to a `ResultReader`. This checks every value, refuses what is said twice, and knows the place of each fault.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

from msgspec import Struct

from pytest_llmeval.core import Fault, JsonNumber, counted, is_finite_number, listed, printable, suggest
from pytest_llmeval.data import CaseId, FaultLog, describe, json_text, render_path
from pytest_llmeval.exchange._ledger import SourcePath

SUITE: Final = "results"
"""The suite of rows that name none."""


class ResultRow(Struct, frozen=True, omit_defaults=True):
    """One score of one case, or why there is none: of `score`, `error`, `abstained` and `skipped` exactly one is set.

    Attributes:
        case: Id of the case.
        metric: Name of the metric; an error without one is an error of all metrics of the case.
        score: The value.
        error: Why it could not be computed: a rate limit, a crash, a judge that failed. It never counts as a score.
        abstained: Why there is nothing to score although everything worked.
        skipped: Why the case did not run.
        suite: Name of the suite.
        repeat: The run of the case, counted from 0 or 1. Repeats are no cases of their own.
        system: The system, model or arm that answered; empty where there is only one.
        cost: Of the answer, in US dollars; ``None`` if unknown.
        latency: Of the answer, in seconds; ``None`` if unknown.
        labels: Of the case, for groups and clusters.
        signature: How the metric is computed. Scores of different signatures are not compared.
        input: The question; it names cases whose ids count.
        expected: The expected answer.
        output: The answer.
        content: The input as a name of the case; empty without one.
        tool: The format of the file, if a tool wrote it.
        lower_is_better: Whether lower is better; only reports of this package say so.
    """

    case: str
    metric: str = ""
    score: JsonNumber | None = None
    error: str = ""
    abstained: str = ""
    skipped: str = ""
    suite: str = SUITE
    repeat: int = 1
    system: str = ""
    cost: JsonNumber | None = None
    latency: JsonNumber | None = None
    labels: Mapping[str, str] = {}
    signature: str = ""
    input: Any = None
    expected: Any = None
    output: Any = None
    content: str = ""
    tool: str = ""
    lower_is_better: bool = False

    @property
    def key(self) -> tuple[str, str, int, str, str]:
        """What only one row of a run has."""
        return self.suite, self.case, self.repeat, self.system, self.metric

    def __str__(self) -> str:
        system = f", system {self.system!r}" if self.system else ""
        return f"case {self.case!r}, metric {self.metric!r}, repeat {self.repeat}{system}"


class _FieldKind(NamedTuple):
    """The kind of a field in the published form of results.

    Attributes:
        read: Returns the value; ``None`` if it does not fit.
        expected: What fits, for messages.
        schema: Its JSON Schema, without null.
    """

    read: Callable[[Any], Any]
    expected: str
    schema: Mapping[str, Any]


def is_usual_name(text: str) -> bool:
    """Whether a text is a name in a result row as it is, as nearly all are: visible ASCII characters."""
    return text.isascii() and text.isprintable() and text.strip() != ""


def is_usual_id(text: str) -> bool:
    """Whether a text is a case id in a result row as it is."""
    return is_usual_name(text) and text == text.strip() and "::" not in text and not text.endswith(".0")


def _name(value: Any) -> str | None:
    """A name in a result row; ``None`` if it is empty or has control characters."""
    if type(value) is str and is_usual_name(value):
        return value
    text = CaseId.read(value)
    return text if text and text.strip() and not _CONTROL.search(text) else None


def _case(value: Any) -> str | None:
    """The case id in a result row; pytest splits at two colons, as ids of its own tests have them."""
    name = _name(value)
    return name if name is None else CaseId(name.strip().replace("::", ":")).canonical()


def _reason(value: Any) -> str | None:
    """The reason of an error, abstention or skip in a result row; ``None`` if it is no text, or blank."""
    return value if isinstance(value, str) and value.strip() else None


def _score(value: Any) -> JsonNumber | None:
    """The score in a result row, where true is 1 and false is 0; ``None`` if it is no finite number."""
    return int(value) if isinstance(value, bool) else value if is_finite_number(value) else None


def _amount(value: Any) -> JsonNumber | None:
    """The cost or latency in a result row; ``None`` if it is no number of at least 0."""
    return value if is_finite_number(value) and value >= 0 else None


def _count(value: Any) -> int | None:
    """The number of the repeat in a result row; ``None`` if it is no whole number of at least 0."""
    if type(value) is int and 0 <= value < _EXACT:
        return value
    amount = _amount(value)
    return int(amount) if amount is not None and amount == int(amount) else None


def _labels(value: Any) -> dict[str, str] | None:
    """The labels in a result row as texts; ``None`` if they are no object of scalars."""
    if not isinstance(value, Mapping) or any(isinstance(label, Mapping | list | tuple) for label in value.values()):
        return None
    return {str(name): json_text(label) for name, label in value.items() if label is not None}


def _unchanged(value: Any) -> Any:
    """The value of a field in a result row that can have any."""
    return value


_EXACT: Final = 1 << 53
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_NAME: Final = _FieldKind(
    _name, "a text without control characters, or a whole number", {"type": ["string", "integer"], "minLength": 1}
)
_REASON: Final = _FieldKind(_reason, "a text that is not empty", {"type": ["string"], "minLength": 1})
_SCORE: Final = _FieldKind(_score, "a finite number, or true or false", {"type": ["number", "boolean"]})
_AMOUNT: Final = _FieldKind(_amount, "a number of at least 0", {"type": ["number"], "minimum": 0})
_COUNT: Final = _FieldKind(_count, "a whole number of at least 0", {"type": ["integer"], "minimum": 0})
_ANY: Final = _FieldKind(_unchanged, "any value", {"type": ["string", "number", "boolean", "object", "array"]})
_LABELS: Final = _FieldKind(
    _labels,
    "an object of texts, numbers and booleans",
    {"type": ["object"], "additionalProperties": {"type": ["string", "number", "boolean", "null"]}},
)

FIELDS: Final[Mapping[str, tuple[_FieldKind, str]]] = {
    "suite": (_NAME, f"Name of the suite; default: `{SUITE}`."),
    "case": (_NAME._replace(read=_case), "Id of the case: the same in every run, so never its position."),
    "repeat": (_COUNT, "The run of the case, counted from 0 or 1; default: 1."),
    "system": (_NAME, "The system, model or arm that answered, such as `with` and `without`."),
    "metric": (_NAME, "Name of the metric; may be absent beside `error` and `skipped`: all metrics."),
    "score": (_SCORE, "The value; true is 1, false is 0."),
    "error": (_REASON, "Why the score could not be computed. It never counts as 0."),
    "abstained": (_REASON, "Why there is nothing to score although everything worked."),
    "skipped": (_REASON, "Why the case did not run: a case that has a score in the baseline is missing."),
    "cost": (_AMOUNT, "Of the answer, in US dollars."),
    "latency": (_AMOUNT, "Of the answer, in seconds."),
    "labels": (_LABELS, "Of the case, for groups and clusters; in tables, columns `label.NAME`."),
    "signature": (_REASON, "How the metric is computed: another signature is not compared."),
    "input": (_ANY, "The question. It is shown, and names cases whose ids only count."),
    "expected": (_ANY, "The expected answer, which is shown."),
    "output": (_ANY, "The answer, which is shown."),
}
"""The fields of a row with their meaning, from which the reader, the schema and the documentation are made."""
_READERS: Final = {name: kind.read for name, (kind, _) in FIELDS.items()}

OUTCOMES: Final = ("score", "error", "abstained", "skipped")
"""Of these fields a row has exactly one."""
_OF_ALL_METRICS: Final = ("error", "skipped")
"""Outcomes that a row may have without a metric."""

LABEL: Final = "label."
"""What the names of columns begin with that hold labels."""
_MOST_ALIKE: Final = 3


def results_schema() -> dict[str, Any]:
    """Return the JSON Schema, draft 2020-12, of a row: a line of a JSONL file."""
    kinds = {name: FIELDS[name][0].schema["type"] for name in OUTCOMES}
    forms = [
        {
            "properties": {outcome: {"type": kinds[outcome] if outcome == name else "null"} for outcome in OUTCOMES},
            "required": [name] if name in _OF_ALL_METRICS else [name, "metric"],
        }
        for name in OUTCOMES
    ]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Result of a case",
        "description": "One score of one case of any runner, or why there is none. A file has one row per line.",
        "type": "object",
        "properties": {
            name: {**kind.schema, "type": [*kind.schema["type"], "null"], "description": meaning}
            for name, (kind, meaning) in FIELDS.items()
        },
        "required": ["case"],
        "oneOf": forms,
    }


def is_own(data: Any) -> bool:
    """Whether a row has the fields by which the published form of results is known."""
    return isinstance(data, Mapping) and "case" in data and any(name in data for name in OUTCOMES)


_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|nan|[+-]?inf(?:inity)?")


def cell_number(value: Any) -> Any:
    """The number, or the truth, that a cell of a results table says; other values and texts unchanged."""
    if not isinstance(value, str):
        return value
    lowered = value.strip().lower()
    if lowered in ("", "none", "null", "true", "false"):
        return {"true": True, "false": False}.get(lowered)
    return float(lowered) if _NUMBER.fullmatch(lowered) else value


def cells_of(row: Mapping[str, str]) -> dict[str, Any]:
    """The values in a row of a results table: numbers where a field has numbers, nothing for blank cells."""
    texts = {name: text for name, text in row.items() if text.strip()}
    numbers = (_SCORE, _AMOUNT, _COUNT)
    return {
        name: cell_number(text) if name in FIELDS and FIELDS[name][0] in numbers else text
        for name, text in texts.items()
    }


_LONGEST: Final = 60


def content_name(value: Any) -> str:
    """The name of a case in results that is known by its content alone; empty if there is none.

    Of a long one, the beginning and a digest of all.
    """
    if value in (None, "", {}, []):
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
    clean = printable(" ".join(text.split()))
    if len(clean) <= _LONGEST and (clean == text or not isinstance(value, str)):
        return clean
    return f"{clean[:_LONGEST].strip()} #{hashlib.sha256(text.encode()).hexdigest()[:8]}"


class ResultReader:
    """A reader that checks result rows and collects them with the faults of a file.

    Attributes:
        rows: The good ones.
        log: What is wrong with the others.
    """

    def __init__(
        self,
        file: str,
        locate: Callable[[SourcePath], tuple[int, int]] = lambda _: (0, 0),
        faults: Iterable[Fault] = (),
        *,
        by_line: bool = False,
    ) -> None:
        """Begin without rows.

        Args:
            file: Name of the file.
            locate: From the path of a value to line and column; 0 if unknown.
            faults: What is wrong with the file already.
            by_line: Whether a line tells which row it is.
        """
        self.rows: list[ResultRow] = []
        self.log = FaultLog(file)
        self.log.extend(faults)
        self._locate = locate
        self._by_line = by_line
        self._first: dict[tuple[str, str, int, str, str], SourcePath] = {}
        self._signatures: dict[tuple[str, str], str] = {}
        self._alike: Counter[tuple[SourcePath, str]] = Counter()
        self._ignored: dict[str, None] = {}

    def fault(self, steps: SourcePath, message: str) -> None:
        """Add a fault of the value at a path; of those that are alike, the first three."""
        kind = (tuple(step for step in steps if isinstance(step, str)), message)
        self._alike[kind] += 1
        if self._alike[kind] > _MOST_ALIKE:
            self.log.count += 1  # which the last line tells
            return
        self.log.add(*self._locate(steps), render_path(steps[1:] if self._by_line else steps), message)

    def add(
        self,
        data: Mapping[str, Any],
        steps: SourcePath = (),
        place: Callable[[str], SourcePath | None] = lambda _: None,
        content: str = "",
        tool: str = "",
    ) -> None:
        """Add a row, or its faults.

        Args:
            data: Field to value; a value that is ``None`` is absent, and other fields are ignored.
            steps: Its path in the file.
            place: From a field to the path of its value; ``None`` if that is the field of the row.
            content: The input as a name of the case, if that is known.
            tool: The format of the file.
        """
        before = self.log.count
        if _has_labels(tuple(data)):
            data = _with_labels(data)
        values: dict[str, Any] = {}
        for name, value in data.items():
            if value is None:
                continue
            if name not in _READERS:
                self._ignored.setdefault(name)
                continue
            values[name] = read = _READERS[name](value)
            if read is None:
                self._fault_of(name, f"found {describe(value)}, expected {FIELDS[name][0].expected}", steps, place)
        if self.log.count == before and (message := _form_fault(tuple(values))):
            self.fault(steps, message)
        if self.log.count == before:
            content = content or content_name(values.get("input"))
            self._keep(ResultRow(**values, content=content, tool=tool), steps, place)

    def _fault_of(self, field: str, message: str, steps: SourcePath, place: Callable[[str], SourcePath | None]) -> None:
        path = place(field)
        self.fault((*steps, field) if path is None else path, message)

    def _keep(self, row: ResultRow, steps: SourcePath, place: Callable[[str], SourcePath | None]) -> None:
        key = row.key
        if key in self._first:
            line, _ = self._locate(self._first[key])
            first = f" (first in line {line})" if line else ""
            self._fault_of("case", f"found {row} twice, expected it once{first}: number the repeats", steps, place)
            return
        self._first[key] = steps
        known = self._signatures.setdefault((row.suite, row.metric), row.signature)
        if row.score is not None and known != row.signature:
            message = f"found {row.signature!r}, expected {known!r}, as of other scores of {row.metric!r}"
            self._fault_of("signature", message, steps, place)
            return
        self.rows.append(row)

    def checked(self) -> "ResultRows":
        """Return the rows, with a note on the fields that were ignored.

        Raises:
            SuiteError: Something is wrong with the file, or there is no row; all faults are listed.
        """
        if not self.rows and not self.log.count:
            self.log.add(0, 0, "", "the file has no result")
        self.log.check()
        hints = [f"{printable(name)!r}{_meant(name)}" for name in self._ignored]
        notes = (
            [f"{self.log.file}: ignored {counted(len(hints), 'column')}: {listed(hints, _MOST_ALIKE)}"] if hints else []
        )
        return ResultRows(self.rows, notes)


_USUAL: Final = {
    **dict.fromkeys(("question", "query", "prompt"), "input"),
    **dict.fromkeys(("answer", "prediction", "response"), "output"),
    **dict.fromkeys(("reference", "ground_truth"), "expected"),
}
"""Name of a column in other tools to the field."""


def _meant(name: str) -> str:
    """The field of results that the name of an ignored column probably means, as a question."""
    field = _USUAL.get(name)
    return suggest(name, FIELDS) if field is None else f" (did you mean {field!r}?)"


class ResultRows(list[ResultRow]):
    """The rows of a file of results, or of several.

    Attributes:
        notes: What was ignored in it.
    """

    def __init__(self, rows: Iterable[ResultRow] = (), notes: Sequence[str] = ()) -> None:
        """Keep rows and notes."""
        super().__init__(rows)
        self.notes = list(notes)


@lru_cache(maxsize=1024)
def _has_labels(columns: tuple[Any, ...]) -> bool:
    """Whether a result row has columns of labels."""
    return any(isinstance(name, str) and name.startswith(LABEL) for name in columns)


def _with_labels(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """A result row whose columns of labels are in its field ``labels``."""
    fields = {name: value for name, value in data.items() if value is not None and not name.startswith(LABEL)}
    columns = {name.removeprefix(LABEL): value for name, value in data.items() if name.startswith(LABEL)}
    if isinstance(labels := fields.get("labels", {}), Mapping):
        fields["labels"] = {**labels, **columns}
    return fields


@lru_cache(maxsize=1024)
def _form_fault(fields: tuple[str, ...]) -> str:
    """The fault of a result row's fields as a whole, such as a missing one; empty without one."""
    present = [name for name in OUTCOMES if name in fields]
    if "case" not in fields:
        return "case is missing: the id of the case"
    if len(present) != 1:
        listed = " and ".join(present) or "none"
        return f"found {listed} of {', '.join(OUTCOMES[:-1])} and {OUTCOMES[-1]}, expected exactly one of them"
    return "metric is missing" if "metric" not in fields and present[0] not in _OF_ALL_METRICS else ""
