"""Results in any known form, read into the rows of `exchange/results.py` by the tables of `result_formats.py`."""

import hashlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from msgspec.structs import replace

from pytest_llmeval.core.codec import is_finite_number
from pytest_llmeval.core.errors import Fault, SuiteError
from pytest_llmeval.core.wording import printable, unknown_name
from pytest_llmeval.data.files.documents import load_json, read_bytes, read_csv, read_jsonl
from pytest_llmeval.data.files.places import render_path
from pytest_llmeval.data.files.validation import describe
from pytest_llmeval.data.formats.base import case_id, json_text
from pytest_llmeval.data.formats.frames import rows_of
from pytest_llmeval.exchange.contract import read_parquet
from pytest_llmeval.exchange.inspect_ai import read_eval
from pytest_llmeval.exchange.result_formats import FORMATS, FileResult, ResultFormat, Scores, reason_text
from pytest_llmeval.exchange.results import SUITE, ResultReader, ResultRow, own_rows_of, read_own
from pytest_llmeval.reports.form import RunReport
from pytest_llmeval.reports.json import read_report

Steps: TypeAlias = tuple[str | int, ...]

REPORT: Final = "llmeval"
"""The format of our own JSON reports."""

_ABSENT: Final = object()
_EMPTY: Final[tuple[Any, ...]] = (None, "", {}, [], False)
_KINDS: Final[Mapping[str, tuple[tuple[type, ...], str]]] = {
    "number": ((int, float), "a number"),
    "verdict": ((bool,), "true or false"),
    "either": ((int, float, bool), "a number, true or false"),
}
"""Types that a score may have, and their names in messages."""
_LONGEST: Final = 60
_DEPTH: Final = 12


@lru_cache(maxsize=1024)
def _alternatives(spec: str) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(path.strip().split(".")) for path in spec.split("|")) if spec else ()


def _step(value: Any, key: str) -> tuple[str | int, Any]:
    """Return the key as the data has it, and what is there."""
    if isinstance(value, list):
        number = int(key) if key.isdecimal() else -1
        return (number, value[number]) if 0 <= number < len(value) else (key, _ABSENT)
    return (key, value.get(key, _ABSENT)) if isinstance(value, Mapping) else (key, _ABSENT)


def _walk(value: Any, parts: Sequence[str], steps: Steps = ()) -> Iterator[tuple[Steps, Any]]:
    """Yield path and value of everything that a path means."""
    if not parts or parts[0] == "":
        yield steps, value
    elif parts[0] == "*":
        inner = enumerate(value) if isinstance(value, list) else value.items() if isinstance(value, Mapping) else ()
        for key, each in inner:
            yield from _walk(each, parts[1:], (*steps, key))
    else:
        key, each = _step(value, parts[0])
        if each is not _ABSENT:
            yield from _walk(each, parts[1:], (*steps, key))


def _has(data: Any, mark: str) -> bool:
    """Return whether data has a path, with the value that the mark says."""
    path, _, text = mark.partition("=")
    return any(not text or value == text for _, value in _walk(data, path.split(".")))


class _Result:
    """A result in a file, found by its path."""

    def __init__(self, data: Any, stars: Steps, steps: Steps, value: FileResult) -> None:
        self.data = data
        self.stars = stars
        self.steps = steps
        self.value = value

    def find(self, spec: str, below: Any = None, steps: Steps | None = None) -> tuple[Any, Steps]:
        """Return the first value of some paths that is present, and where it is; ``None`` if there is none."""
        base, at = (self.value, self.steps) if steps is None else (below, steps)
        for parts in _alternatives(spec):
            first = parts[0]
            if first.startswith("="):
                return ".".join(parts)[1:], at
            if first.startswith("@"):
                return (self.stars[int(first[1:])], at) if first[1:] else (at[-1], at)
            stars = iter(self.stars)
            whole = first == "$"
            filled = [str(next(stars, "*")) if part == "*" else part for part in parts[1:]] if whole else parts
            match = next(_walk(self.data if whole else base, filled, () if whole else at), None)
            if match is not None and not any(match[1] is each or match[1] == each for each in (None, "")):
                return match[1], match[0]
        return None, at


class _Named(NamedTuple):
    """A result whose case is known."""

    result: _Result
    case: str
    case_steps: Steps
    content: str


class _TableReader:
    """Reads the results of one file by a table.

    Attributes:
        rows: Takes the rows.
    """

    def __init__(
        self, file: str, data: Any, table: ResultFormat, locate: Callable[[Steps], tuple[int, int]] | None = None
    ) -> None:
        self.data = data
        self.table = table
        self.locate = locate
        self.rows = ResultReader(file)
        self._counts: Counter[tuple[str, str, str]] = Counter()
        self._repeats: set[tuple[str, str, str, float]] = set()

    def fault(self, steps: Steps, message: str) -> None:
        """Add a fault of the value at a path."""
        line, column = self.locate(steps) if self.locate is not None else (0, 0)
        self.rows.log.add(line, column, render_path(steps), message)

    def read(self, items: Sequence[str]) -> None:
        """Read all results."""
        table = self.table
        for path, expected in table.expects.items():
            _, value = next(_walk(self.data, path.split(".")), ((), expected))
            if value != expected or type(value) is not type(expected):
                self.fault(tuple(path.split(".")), f"found {describe(value)}, expected {json.dumps(expected)}")
        cases = [each for path in items for each in self._named(path)]
        contents = defaultdict(set)
        for each in cases:
            contents[each.case].add(each.content)
        varying = [
            spec for spec in table.system[1:] if len({json_text(each.result.find(spec)[0]) for each in cases}) > 1
        ]
        for each in cases:
            ambiguous = len(contents[each.case]) > 1 and each.content
            case = f"{each.case} {each.content}" if ambiguous else each.case
            self._result(each, case, (*table.system[:1], *varying))

    def _named(self, path: str) -> Iterator[_Named]:
        parts = path.split(".")
        places = [number for number, part in enumerate(parts) if part == "*"]
        for steps, value in _walk(self.data, parts):
            if not isinstance(value, Mapping):
                self.fault(steps, f"found {describe(value)}, expected an object: a result")
                continue
            result = _Result(self.data, tuple(steps[place] for place in places), steps, value)
            beside = {name: result.find(spec)[0] for name, spec in self.table.beside.items()}
            adapted = self.table.adapt({**value, **beside}) if self.table.adapt is not None else value
            if adapted is None:
                continue
            result.value = adapted
            contents = (_content_name(result.find(path)[0]) for path in self.table.content.split("|") if path)
            content = next(filter(None, contents), "")
            case, where = self._case(result, content)
            if case:
                yield _Named(result, case, where, content)

    def _case(self, result: _Result, content: str) -> tuple[str, Steps]:
        """Return the id of a case: what the file calls it, unless that is its position; else its content."""
        value, steps = result.find(self.table.case)
        text = case_id(value)
        if value is not None and (text is None or not text.strip()):
            self.fault(steps, f"found {describe(value)}, expected an id: a text or a whole number")
            return "", steps
        if text is not None and not (content and self.table.position and re.fullmatch(self.table.position, text)):
            return printable(text), steps
        if content:
            return content, result.steps
        listed = " or ".join(each for each in (self.table.case, self.table.content) if each).replace(" | ", " or ")
        self.fault(result.steps, f"found no id of the case, expected it at {listed}")
        return "", result.steps

    def _result(self, named: _Named, case: str, system_parts: Sequence[str]) -> None:
        """Add the rows of a result."""
        table, result = self.table, named.result
        base: dict[str, Any] = {"case": case}
        paths = {"": result.steps, "case": named.case_steps}
        for name in ("suite", "cost", "latency", "repeat"):
            if spec := getattr(table, name):
                base[name], paths[name] = result.find(spec)
        if is_finite_number(base.get("latency")):
            base["latency"] *= table.unit
        parts = [result.find(spec) for spec in system_parts]
        if (wrong := next((each for each in parts if isinstance(each[0], Mapping | list | float)), None)) is not None:
            self.fault(wrong[1], f"found {describe(wrong[0])}, expected the name of a system")
            return
        base["system"] = " / ".join(printable(str(value)) for value, _ in parts if value is not None) or None
        base["suite"] = printable(base["suite"]) if isinstance(base.get("suite"), str) else base.get("suite")
        labels = result.find(table.labels)[0]
        if isinstance(labels, Mapping):
            base["labels"] = {key: each for key, each in labels.items() if _is_label(each)}
        key = (str(base["suite"]), base["system"] or "", case)
        self._counts[key] += 1
        if base.get("repeat") is None:
            base["repeat"] = self._counts[key]
        elif is_finite_number(base["repeat"]):
            base["repeat"] += 1 - table.first
            if (*key, base["repeat"]) in self._repeats:
                self.fault(paths["repeat"], f"found repeat {base['repeat']} of case {case!r} twice, expected it once")
                return
            self._repeats.add((*key, base["repeat"]))
        error, _ = result.find(table.error)
        if error is not None and not any(error is each or error == each for each in _EMPTY):
            self._add({**base, "error": reason_text(error)}, paths, result.steps)
            return
        scores = [(each, at) for each in table.scores for at in self._at(result, each)]
        for each, at in scores:
            self._score(base, paths, result, each, at)
        if not scores:
            self._add({**base, "error": "the result has no score"}, paths, result.steps)

    def _at(self, result: _Result, scores: Scores) -> Iterator[tuple[Steps, Any]]:
        """Yield the scores of one kind; the result itself only where it has a value."""
        for steps, value in _walk(result.value, scores.at.split("."), result.steps):
            if scores.at or any(True for parts in _alternatives(scores.value) for _ in _walk(value, parts)):
                yield steps, value

    def _score(
        self, base: dict[str, Any], paths: dict[str, Steps], result: _Result, scores: Scores, at: tuple[Steps, Any]
    ) -> None:
        """Add the row of a score."""
        steps, inner = at
        row, paths = dict(base), dict(paths)
        metric, paths["metric"] = result.find(scores.metric, inner, steps)
        row["metric"] = printable(metric) if isinstance(metric, str) else metric
        if metric is None:
            self.fault(paths["metric"], f"found no name of the metric, expected it at {scores.metric}")
            return
        row["signature"], paths["signature"] = result.find(scores.signature, inner, steps)
        value, place = result.find(scores.value, inner, steps) if scores.value else (inner, steps)
        error, _ = result.find(scores.error, inner, steps)
        paths["score"] = place
        if error is not None and not any(error is each or error == each for each in _EMPTY):
            row["error"] = reason_text(error)
        elif isinstance(value, str) and value in self.table.codes:
            code = self.table.codes[value]
            reason = result.find(scores.reason, inner, steps)[0]
            row |= {code: reason_text(reason or value)} if isinstance(code, str) else {"score": code}
        elif value is None or (isinstance(value, float) and not is_finite_number(value)):
            reason = result.find(scores.reason, inner, steps)[0]
            row[self.table.null if value is None else self.table.nan] = reason_text(
                reason or f"the score is {json.dumps(value)}"
            )
        elif not isinstance(value, _KINDS[scores.kind][0]) or (scores.kind == "number" and isinstance(value, bool)):
            expected = _KINDS[scores.kind][1]
            self.fault(place, f"found {describe(value)}, expected {expected}")
            return
        else:
            row["score"] = value
        self._add(row, paths, place)

    def _add(self, row: dict[str, Any], paths: Mapping[str, Steps], place: Steps) -> None:
        if self.locate is None:
            self.rows.add(row)
            return
        line, column = self.locate(place)
        self.rows.add(row, line, column, paths={name: render_path(steps) for name, steps in paths.items()})


def _is_label(value: Any) -> bool:
    return isinstance(value, str | bool) or is_finite_number(value)


def _content_name(value: Any) -> str:
    """Return a name for a case that is known by its content alone; empty if there is none.

    Of a long one, the beginning and a digest of all.
    """
    if value in (None, "", {}, []):
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
    clean = printable(" ".join(text.split()))
    if len(clean) <= _LONGEST and (clean == text or not isinstance(value, str)):
        return clean
    return f"{clean[:_LONGEST].strip()} #{hashlib.sha256(text.encode()).hexdigest()[:8]}"


class _Source(NamedTuple):
    """A file, or what Python passes, as JSON data.

    Attributes:
        data: The data.
        locate: From a path to line and column; 0 if unknown.
    """

    data: Any
    locate: Callable[[Steps], tuple[int, int]] = lambda _: (0, 0)


def read_results(path: Path, display_path: str, format: str = "") -> list[ResultRow]:  # noqa: A002 (the option's name)
    """Read a file of results, in the published form or in that of another tool.

    Args:
        path: The file; of Harbor, also the folder of a job.
        display_path: Its name in messages.
        format: Name of the form; empty: known by its content.

    Raises:
        SuiteError: It cannot be read, has faults, or is of no known form; all faults are listed.
    """
    if format == SUITE:
        return read_own(path, display_path, chosen=True) or []
    known = (SUITE, REPORT, *FORMATS)
    if format and format not in known:
        raise SuiteError([Fault(display_path, 0, 0, "", unknown_name("format", format, known))])
    source = _load(path, display_path)
    data = source.data
    if format == REPORT or (not format and isinstance(data, Mapping) and data.keys() >= {"schema_version", "suites"}):
        return _rows_of_report(read_report(path), display_path)
    if not format and any(isinstance(each, Mapping) and "case" in each for each in _listed(data)):
        own = read_own(path, display_path)
        if own is not None:
            return own
    return _rows(source, display_path, format)


def _rows_of_report(report: RunReport, display_path: str) -> list[ResultRow]:
    """Return the rows of a JSON report of ``--llmeval-report``: of repeats, a case has its value over all of them.

    Raises:
        SuiteError: It has no case.
    """
    reader = ResultReader(display_path)
    paths, falling = defaultdict(set), set[tuple[str, str]]()
    for suite in report.suites:
        paths[suite.base_name].add(suite.path)
    for suite in report.suites:
        name = suite.base_name if len(paths[suite.base_name]) == 1 else f"{suite.base_name} ({suite.path})"
        for number, case in enumerate(suite.cases):
            base = {"case": case.id, "suite": name, "system": suite.variant or None, "labels": case.labels}
            place = f"suites.{suite.suite}.cases[{number}]"
            if not case.ran or case.outcome == "errored" or not case.metrics:
                reader.add({**base, "error": case.reason or f"the case was {case.outcome}"}, path=place)
                continue
            for metric, score in case.metrics.items():
                value: dict[str, Any] = {"score": score} if score is not None else {"abstained": "nothing to score"}
                if (known := suite.metrics.get(metric)) is not None and known.signature:
                    value["signature"] = known.signature
                reader.add({**base, "metric": metric, **value}, path=place)
            falling |= {(name, metric) for metric in suite.lower_is_better}
    return [replace(row, lower_is_better=(row.suite, row.metric) in falling) for row in reader.checked()]


def results_of(data: Any) -> list[ResultRow]:
    """Return the rows of what Python passes.

    Args:
        data: The report of another runner, as an object or as its JSON data; a data frame of ragas or LangSmith; or
            rows, mappings, or a data frame of the fields of `ResultRow`.

    Raises:
        SuiteError: Rows have faults; all are listed.
        LlmevalError: It is something else.
    """
    plain = _plain(data)
    if plain is None or _known(plain) is None:
        return own_rows_of(data)
    return _rows(_Source(plain), type(data).__name__, "")


def _rows(source: _Source, display_path: str, format_name: str) -> list[ResultRow]:
    """Return the rows of data.

    Raises:
        SuiteError: It has faults, or is of no known form.
    """
    name = format_name or _known(source.data)
    if name is None:
        raise SuiteError([Fault(display_path, 0, 0, "", _unknown(source.data))])
    table = FORMATS[name]
    items = next((paths for marks, paths in table.shapes.items() if _fits(source.data, marks)), None)
    if items is None:
        reason = next((why for marks, why in table.refuses.items() if _fits(source.data, marks)), "")
        message = reason or f"{describe(source.data)}, expected {table.written_by}"
        raise SuiteError([Fault(display_path, 0, 0, "", f"found {message}")])
    data = table.prepare(source.data) if table.prepare is not None else source.data
    reader = _TableReader(display_path, data, table)
    reader.read(items)
    if reader.rows.log.count:  # again, with places, which cost much and are needed only where something is wrong
        reader = _TableReader(display_path, data, table, source.locate)
        reader.read(items)
    return reader.rows.checked()


def _fits(data: Any, marks: str) -> bool:
    return all(_has(data, each) for each in marks.split())


def _known(data: Any) -> str | None:
    """Return the format that data has, by its content."""
    for name, table in FORMATS.items():
        if any(_fits(data, marks) for marks in (*table.shapes, *table.refuses)):
            return name
    return None


def _listed(data: Any) -> list[Any]:
    return data if isinstance(data, list) else [data]


def _unknown(data: Any) -> str:
    first = data[0] if isinstance(data, list) and data else None
    kind = describe(data) + (f" whose first is {describe(first)}" if first is not None else "")
    return (
        f"found {kind}, expected results of one of {', '.join((*FORMATS, REPORT))}, or rows with case, metric and one "
        "of score, error and abstained (llmeval schema results)"
    )


def _load(path: Path, display_path: str) -> _Source:
    """Read a file by what it begins with.

    Raises:
        SuiteError: It cannot be read.
    """
    if path.is_dir():
        return _folder(path, display_path)
    head = read_bytes(path, display_path)[:_HEAD].removeprefix(b"\xef\xbb\xbf").lstrip()
    if head.startswith(b"PK"):
        return _Source(read_eval(path, display_path))
    if head.startswith(b"PAR1"):
        return _Source(read_parquet(path, display_path))
    if head.startswith(b"<"):
        return _Source(_junit_data(path, display_path))
    faults: list[Fault] = []
    lines = path.suffix.lower() in (".jsonl", ".ndjson") or _is_lines(head)
    if head[:1] in (b"{", b"[", b"") and not lines:
        document = load_json(path, display_path, _DEPTH, nan=True)
        return _Source(document.data, document.locate)
    if lines:
        listed = list(read_jsonl(path, display_path, faults, nan=True))
    else:
        delimiter = "\t" if b"\t" in head.split(b"\n", 1)[0] else ","
        listed = list(read_csv(path, display_path, faults, delimiter=delimiter))
    rows = [row for _, row in listed]
    if faults and not any(isinstance(each, Mapping) and "case" in each for each in rows):
        raise SuiteError(faults)
    return _Source(rows, lambda steps: (listed[steps[0]][0], 1) if steps and isinstance(steps[0], int) else (0, 0))


_HEAD: Final = 1 << 16


def _is_lines(head: bytes) -> bool:
    """Return whether a text begins with a JSON value on a line of its own, and another one follows."""
    first, _, others = head.partition(b"\n")
    try:
        json.loads(first)
    except ValueError:
        return False
    return others.lstrip()[:1] in (b"{", b"[") and others.strip() != b""


def _folder(path: Path, display_path: str) -> _Source:
    """Read the trials of a job of Harbor, which are folders with a file each."""
    files = sorted(path.glob("*/result.json"))
    if not files:
        message = (
            "found a folder without trials (*/result.json), expected a file of results, or the job folder of Harbor"
        )
        raise SuiteError([Fault(display_path, 0, 0, "", message)])
    return _Source([load_json(each, f"{display_path}/{each.parent.name}/result.json", nan=True).data for each in files])


_ATTEMPTS: Final = {"flakyFailure": "failed", "flakyError": "error", "rerunFailure": "failed", "rerunError": "error"}
"""Elements of Surefire for attempts that a test was given before, to how they ended."""
_ENDS: Final = {"failure": "failed", "error": "error", "skipped": "skipped"}


def _junit_data(path: Path, display_path: str) -> Mapping[str, Any]:
    """Return the tests of a file of JUnit as JSON data.

    Raises:
        SuiteError: It is no XML, declares entities, or has another root.
    """
    from xml.etree import ElementTree

    text = read_bytes(path, display_path)
    if b"<!ENTITY" in text or b"<!DOCTYPE" in text:
        raise SuiteError([Fault(display_path, 0, 0, "", "found a document type, expected JUnit XML without one")])
    try:
        root = ElementTree.fromstring(text)  # noqa: S314 (as above)
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        line, column = getattr(error, "position", (0, 0))
        raise SuiteError(
            [Fault(display_path, line, column + 1, "", f"found no XML ({error}), expected JUnit XML")]
        ) from None
    if root.tag not in ("testsuites", "testsuite"):
        message = f"found the element {printable(root.tag)!r}, expected testsuites or testsuite: JUnit XML"
        raise SuiteError([Fault(display_path, 0, 0, "", message)])
    tests: list[dict[str, Any]] = []
    for suite in root.iter("testsuite"):
        for case in suite.findall("testcase"):
            tests += _junit_attempts(suite.get("name"), case)
    for this, following in pairwise(tests):
        again = all(this[key] == following[key] for key in ("suite", "classname", "name"))
        if again and this["status"] == "passed" and not this["attempt"]:  # pytest-rerunfailures, where it ran again
            this |= {"status": "error", "message": "it ran again, and the file does not say how this run ended"}
    return {"junit": tests}


def _junit_attempts(suite: str | None, case: Any) -> Iterator[dict[str, Any]]:
    """Yield how a test ended: first its earlier attempts, which some runners list inside of it."""
    base = {"suite": suite, "classname": case.get("classname"), "name": case.get("name")}
    for child in case:
        if child.tag in _ATTEMPTS:
            yield {**base, "status": _ATTEMPTS[child.tag], "message": child.get("message"), "attempt": True}
    seconds = (case.get("time") or "").replace(",", "")
    try:
        time: Any = float(seconds) if seconds else None
    except ValueError:
        time = seconds
    end = next((each for each in case if each.tag in _ENDS), None)
    status = "skipped" if case.get("status") in ("notrun", "disabled") else "passed"
    status = _ENDS[end.tag] if end is not None else status
    message = (end.get("message") or end.text or status) if end is not None else None
    yield {**base, "status": status, "message": message, "time": time, "attempt": False}


def _plain(data: Any) -> Any:
    """Return the report of another runner as JSON data; ``None`` if it is no such object."""
    if hasattr(data, "to_pandas") and not isinstance(data, Mapping) and not hasattr(data, "columns"):
        data = data.to_pandas()
    if hasattr(data, "columns"):
        rows = list(rows_of(data))
        listed = getattr(data, "column_names", data.columns)
        names = dict.fromkeys(
            [*(each for each in listed if isinstance(each, str)), *(name for row in rows for name in row)]
        )
        return [{name: row.get(name) for name in names} for row in rows]
    if hasattr(data, "results") and hasattr(data, "summary"):  # of Braintrust, whose objects know no JSON
        return {"summary": {}, "results": [_jsonable(vars(each)) for each in data.results]}
    if isinstance(data, Mapping | list):
        return data
    if hasattr(data, "model_dump"):
        return data.model_dump(mode="json", warnings=False)
    return _jsonable(data) if hasattr(data, "report_evaluator_failures") else None


def _jsonable(value: Any) -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(type(value)).dump_python(value, mode="json", warnings=False, fallback=str)
