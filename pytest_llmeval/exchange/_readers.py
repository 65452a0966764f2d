"""Results in any known form, read into the rows of `exchange/results.py` by the tables of `_result_formats.py`."""

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from msgspec.structs import replace

from pytest_llmeval.core import (
    AnyError,
    Fault,
    LlmevalError,
    SuiteError,
    excerpt,
    is_finite_number,
    printable,
    unknown_name,
)
from pytest_llmeval.data import CaseId, DeclaredType, InputFile, describe, json_text, rows_of
from pytest_llmeval.exchange._inspect_ai import read_eval
from pytest_llmeval.exchange._ledger import FileValue, SourcePath, file_fault, fits, read_parquet, read_rows, walk
from pytest_llmeval.exchange._result_formats import FORMATS, ResultFormat, Scores, reason_text
from pytest_llmeval.exchange.results import (
    FIELDS,
    OUTCOMES,
    SUITE,
    ResultReader,
    ResultRow,
    ResultRows,
    cell_number,
    cells_of,
    content_name,
    is_own,
    is_usual_id,
    is_usual_name,
)
from pytest_llmeval.reports import RunReport
from pytest_llmeval.suites import Registry

REPORT: Final = "llmeval"
"""The format of our own JSON reports."""

_KINDS: Final[Mapping[str, tuple[tuple[type, ...], str]]] = {
    "number": ((int, float), "a number"),
    "verdict": ((bool,), "true or false"),
    "either": ((int, float, bool), "a number, true or false"),
}
"""Types that a score may have, and their names in messages."""
_PLAIN: Final = ("suite", "cost", "latency", "repeat", "labels", "expected", "output")
"""Fields of a row whose value the file has at a path of its own."""
_NUMBERS: Final = (float, int)
_DEPTH: Final = 12
_HEAD: Final = 1 << 16
_MOST_LISTED: Final = 5


@lru_cache(maxsize=1024)
def _alternatives(spec: str) -> tuple[tuple[str, ...], ...]:
    """The alternative paths in a format's table, split at ``|`` and at dots."""
    return tuple(tuple(path.strip().split(".")) for path in spec.split("|")) if spec else ()


_NO_KEYS: Final = ("", "=", "@", "$", "*")
"""What parts of paths begin with that are no keys of a result."""


class _KnownPaths(dict[str, tuple[tuple[str, ...], ...]]):
    """The paths of a format's table to those of their alternatives that a result with some keys can have.

    Results of one file have few sets of keys, and most fields of most results are absent.

    Attributes:
        keys_of_result: The keys.
        plain: Fields of rows that it can have with their paths.
        scores: Where it can have scores, with the parts of their paths.
        bare: The keys of its id and of its scores, if it can have nothing else that the table reads; else ``None``.
    """

    def __init__(self, table: ResultFormat, keys: tuple[Any, ...]) -> None:
        super().__init__()
        self.keys_of_result = frozenset(keys)
        paths = [(name, getattr(table, name)) for name in _PLAIN]
        self.plain = [(name, spec) for name, spec in paths if self[spec]]
        self.scores = [(scores, scores.at.split(".")) for scores in table.scores if self[scores.at or scores.value]]
        self.bare = self._bare_keys(table)

    def _bare_keys(self, table: ResultFormat) -> tuple[str, str] | None:
        more = (*table.content.split("|"), *table.system, table.error, table.apart)
        if table.adapts or table.only or table.codes or self.plain or any(self[spec] for spec in more):
            return None
        cases, known = self[table.case], [(scores, parts[0]) for scores, parts in self.scores]
        if len(cases) != 1 or len(cases[0]) != 1 or len(known) != 1:
            return None
        scores, at = known[0]
        return (cases[0][0], at) if scores == Scores(f"{at}.*", "@", "", "either") else None

    def __missing__(self, spec: str) -> tuple[tuple[str, ...], ...]:
        known = self[spec] = tuple(
            parts for parts in _alternatives(spec) if parts[0] in self.keys_of_result or parts[0][:1] in _NO_KEYS
        )
        return known


@dataclass(slots=True)
class _Result:
    """A result in a file of another runner, before it becomes rows.

    Attributes:
        data: The whole file.
        stars: The keys at the ``*`` of its path.
        at: The result, as `adapt` returns it, and its place.
        paths: Those that it can have.
        case: Id of its case.
        input: What identifies its case by content.
        content: The name of its case by that; empty if there is none.
        is_named: Whether the id is in the file, rather than the name by content.
    """

    data: Any
    stars: SourcePath
    at: FileValue
    paths: _KnownPaths
    case: str = ""
    input: Any = None
    content: str = ""
    is_named: bool = True

    def find(self, spec: str, below: FileValue | None = None) -> FileValue:
        """Return the first value of some paths that is present, and its place; ``None`` if there is none."""
        base = below or self.at
        for parts in _alternatives(spec) if below else self.paths[spec]:
            first = parts[0]
            if first.startswith("="):
                return FileValue(base.steps, ".".join(parts)[1:])
            if first.startswith("@"):
                return FileValue(base.steps, self.stars[int(first[1:])] if first[1:] else base.steps[-1])
            if first == "$":
                stars = iter(self.stars)
                match = next(walk(self.data, [str(next(stars)) if part == "*" else part for part in parts[1:]]), None)
            elif first not in ("", "*") and type(base.value) is dict and first not in base.value:
                continue  # as for most fields of most results
            else:
                match = next(walk(base.value, parts, base.steps), None)
            if match is not None and match.value is not None and match.value != "":
                return match
        return FileValue(base.steps, None)

    def value(self, spec: str) -> Any:
        """Return the value that `find` returns; its place is asked for only where there is a fault."""
        known = self.paths[spec]
        if not known:
            return None
        if len(known) == 1 and len(known[0]) == 1 and known[0][0] in self.paths.keys_of_result:
            value = self.at.value[known[0][0]]
            return None if value == "" else value
        return self.find(spec).value


class _Source(NamedTuple):
    """A file of results, or results that Python passes, as JSON data.

    Attributes:
        data: The data.
        locate: From a path to line and column; 0 if unknown.
        faults: Of parts that could not be read.
        rows: Where each row has a line of its own, whether it is JSON, or cells that are texts.
    """

    data: Any
    locate: Callable[[SourcePath], tuple[int, int]] = lambda _: (0, 0)
    faults: Sequence[Fault] = ()
    rows: Literal["", "json", "cells"] = ""

    def reader(self, display_path: str) -> ResultReader:
        """The reader of its results."""
        return ResultReader(display_path, self.locate, self.faults, by_line=bool(self.rows))


class _TableReader:
    """A reader of the results of one file by the table of its format.

    Attributes:
        rows: Takes the rows.
    """

    def __init__(self, display_path: str, source: _Source, table: ResultFormat, name: str) -> None:
        self.table = table
        self.name = name
        try:
            self.data = table.prepare(source.data)
        except Exception as error:
            raise file_fault(display_path, self._failure("prepare", error)) from error
        self.rows = source.reader(display_path)
        self._contents = table.content.split("|")
        self._paths_of = lru_cache(maxsize=1024)(partial(_KnownPaths, table))
        self._codes: Mapping[Any, float | str] = {None: "error", math.inf: "error", **table.codes}
        self._repeats: dict[tuple[str, ...], list[Any]] = defaultdict(list)

    def _failure(self, function: str, error: Exception) -> str:
        """The message on a function of the format that raised an error."""
        return f"{function} of the results format {self.name!r} failed: {AnyError(error).message()}"

    def read(self, items: Sequence[str]) -> ResultRows:
        """Return the rows of all results.

        Raises:
            SuiteError: Some have faults; all are listed.
        """
        table = self.table
        if items == ("*",) and not self.rows.log.count and (bare := self._bare_rows()):
            return ResultRows(bare)
        for path, expected in table.expects.items():
            for steps, value in walk(self.data, path.split(".")):
                if value != expected or type(value) is not type(expected):
                    self.rows.fault(steps, f"found {describe(value)}, expected {json.dumps(expected)}")
        results = [result for path in items for result in self._results(path.split("."))]
        contents: dict[str, str] = {}
        ambiguous = {
            result.case for result in results if contents.setdefault(result.case, result.content) != result.content
        }
        more = [spec for spec in table.system[1:] if len({json_text(result.value(spec)) for result in results}) > 1]
        system = (*table.system[:1], *more)
        for result in results:
            if result.content and result.case in ambiguous:
                self._result(result, f"{result.case} {result.content}", system)
            else:
                self._result(result, result.case, system)
        return self.rows.checked()

    def _bare_rows(self) -> list[ResultRow]:
        """The rows of results that have but an id of their own and numbers; empty if one of them has more, or a fault.

        Nothing in them needs a place, an excerpt or the check of a field.
        """
        rows, cases, metrics = list[ResultRow](), set[str](), dict[str, str]()
        for result in self.data if type(self.data) is list and not self.table.expects else ():
            bare = self._paths_of(tuple(result)).bare if type(result) is dict else None
            if bare is None:
                return []
            case, scores = result[bare[0]], result[bare[1]]
            if type(case) is not str or not is_usual_id(case) or type(scores) is not dict or not scores:
                return []
            cases.add(case)
            for name, score in scores.items():
                if (metric := metrics.get(name)) is None:
                    if not is_usual_name(name):
                        return []
                    metric = metrics[name] = name
                if type(score) not in _NUMBERS or not is_finite_number(score):
                    return []
                rows.append(ResultRow(case, metric, score, tool=self.name))
        return rows if len(cases) == len(self.data) else []

    def _results(self, parts: Sequence[str]) -> Iterator[_Result]:
        """Yield the results at a path whose case has a name."""
        table, places = self.table, [number for number, part in enumerate(parts) if part == "*"]
        for at in walk(self.data, parts):
            if not isinstance(at.value, Mapping):
                self.rows.fault(at.steps, f"found {describe(at.value)}, expected an object: a result")
                continue
            stars = tuple([at.steps[place] for place in places])
            if not fits(at.value, table.only):
                continue
            if table.adapts:
                result = _Result(self.data, stars, at, self._paths_of(tuple(at.value)))
                beside = {name: result.value(spec) for name, spec in table.beside.items()}
                try:
                    adapted = table.adapt({**at.value, **beside})
                except Exception as error:  # noqa: BLE001 (a plugin's: the other results are read for their faults)
                    self.rows.fault(at.steps, self._failure("adapt", error))
                    continue
                if adapted is None:
                    continue
                result = _Result(self.data, stars, FileValue(at.steps, adapted), self._paths_of(tuple(adapted)))
            else:
                result = _Result(self.data, stars, at, self._paths_of(tuple(at.value)))
            for spec in self._contents:
                result.input = result.value(spec)
                result.content = content_name(result.input)
                if result.content:
                    break
            else:
                result.input = None
            if self._has_case(result):
                yield result

    def _has_case(self, result: _Result) -> bool:
        """Set the id of a case: what the file calls it, unless that is its position; else its content.

        Returns:
            Whether it has one; if not, that is a fault.
        """
        value = result.value(self.table.case)
        text, position = CaseId.read(value), self.table.position
        if value is not None and (text is None or not text.strip()):
            message = f"found {describe(value)}, expected an id: a text or a whole number"
            self.rows.fault(result.find(self.table.case).steps, message)
            return False
        if text is not None and not (result.content and position and re.fullmatch(position, text)):
            result.case = printable(text)
            return True
        if result.content:
            result.case, result.is_named = result.content, False
            return True
        listed = " or ".join(path for path in (self.table.case, self.table.content) if path).replace(" | ", " or ")
        self.rows.fault(result.at.steps, f"the id of the case is missing: the format has it at {listed}")
        return False

    def _place(self, result: _Result, scores: Scores | None, at: FileValue | None, field: str) -> SourcePath | None:
        """The path of the value of a row's field, for a fault; ``None`` if it is a key of the result."""
        if field == "case":
            return result.find(self.table.case).steps if result.is_named else result.at.steps
        if field in _PLAIN:
            return result.find(getattr(self.table, field)).steps
        if scores is None or at is None or field not in ("metric", "signature", "score"):
            return None
        spec = {"metric": scores.metric, "signature": scores.signature, "score": scores.value}[field]
        return result.find(spec, at).steps if spec or field != "score" else at.steps

    def _result(self, result: _Result, case: str, system_parts: Sequence[str]) -> None:
        """Add the rows of a result."""
        table = self.table
        row: dict[str, Any] = {"case": case}
        for name, spec in result.paths.plain:
            if (value := result.value(spec)) is not None:
                row[name] = value
        if "latency" in row and is_finite_number(row["latency"]):
            row["latency"] *= table.unit
        system = self._system(result, system_parts)
        if system is None:
            return
        row["system"] = system or None
        if isinstance(row.get("suite"), str):
            row["suite"] = printable(row["suite"])
        if "labels" in row:
            labels = row["labels"].items() if isinstance(row["labels"], Mapping) else ()
            row["labels"] = {
                key: label for key, label in labels if isinstance(label, str | bool) or is_finite_number(label)
            }
        row["input"] = result.input
        earlier = self._repeats[str(row.get("suite")), system, case, str(result.value(table.apart))]
        if "repeat" not in row:
            row["repeat"] = len(earlier) + 1
        elif is_finite_number(row["repeat"]):
            row["repeat"] += 1 - table.first
            if row["repeat"] in earlier:
                message = f"found repeat {row['repeat']} of case {case!r} twice, expected it once"
                self.rows.fault(result.find(table.repeat).steps, message)
                return
        earlier.append(row["repeat"])
        scores = [(score, at) for score, parts in result.paths.scores for at in _scores(result, score, parts)]
        error = reason_text(result.value(table.error)) or ("" if scores else "the result has no score")
        if error:
            row["error"] = error
            place = partial(self._place, result, None, None)
            self.rows.add(row, result.at.steps, place, result.content, self.name)
            return
        for score, at in scores:
            self._score(row, result, score, at)

    def _system(self, result: _Result, parts: Sequence[str]) -> str | None:
        """Return the name of the system, empty without one; ``None`` if a part of it is a fault."""
        names = []
        for spec in parts:
            value = result.value(spec)
            if isinstance(value, Mapping | list | float):
                self.rows.fault(result.find(spec).steps, f"found {describe(value)}, expected the name of a system")
                return None
            if value is not None:
                names.append(printable(str(value)))
        return " / ".join(names)

    def _score(self, row: Mapping[str, Any], result: _Result, scores: Scores, at: FileValue) -> None:
        """Add the row of a score."""
        metric = at.steps[-1] if scores.metric == "@" else result.find(scores.metric, at).value
        if metric is None:
            message = f"the name of the metric is missing: the format has it at {scores.metric}"
            self.rows.fault(result.find(scores.metric, at).steps, message)
            return
        value = result.find(scores.value, at).value if scores.value else at.value
        word = math.inf if isinstance(value, float) and not math.isfinite(value) else value
        kinds, expected = _KINDS[scores.kind]
        outcome: dict[str, Any]
        if error := reason_text(result.find(scores.error, at).value) if scores.error else "":
            outcome = {"error": error}
        elif (word is None or isinstance(word, str | float)) and word in self._codes:
            why = value if isinstance(value, str) else f"the score is {json.dumps(value)}"
            code, reason = self._codes[word], result.find(scores.reason, at).value
            outcome = {code: reason_text(reason or why)} if isinstance(code, str) else {"score": code}
        elif type(value) not in kinds:
            place = result.find(scores.value, at).steps if scores.value else at.steps
            self.rows.fault(place, f"found {describe(value)}, expected {expected}")
            return
        else:
            outcome = {"score": value}
        if isinstance(metric, str):
            metric = printable(re.sub(scores.without, "", metric) if scores.without else metric)
        signature = result.find(scores.signature, at).value if scores.signature else None
        place_of = partial(self._place, result, scores, at)
        data = {**row, "metric": metric, "signature": signature, **outcome}
        self.rows.add(data, result.at.steps, place_of, result.content, self.name)


def _scores(result: _Result, scores: Scores, parts: Sequence[str]) -> Iterator[FileValue]:
    """Yield the scores of one kind in a runner's result; the result itself only where it has a value."""
    matches = walk(result.at.value, parts, result.at.steps)
    if scores.at:
        return matches
    return (at for at in matches if any(True for path in _alternatives(scores.value) for _ in walk(at.value, path)))


def read_results(
    path: Path,
    display_path: str,
    format: str = "",  # noqa: A002 (the option's name)
    columns: Mapping[str, str] = {},
) -> ResultRows:
    """Read a file of results, in the published form or in that of another tool.

    Args:
        path: The file; of Harbor, also the folder of a job; of other tools, a folder with a file of results, of which
            the newest is read if their names begin with a time.
        display_path: Its name in messages.
        format: Name of the form; empty: known by its content.
        columns: Column of rows to the field that it holds, such as ``id`` to ``case``.

    Raises:
        SuiteError: It cannot be read, has faults, or is of no known form; all faults are listed.
    """
    known = (SUITE, REPORT, *_tables())
    if format and format not in known:
        raise file_fault(display_path, unknown_name("format", format, known))
    if path.is_dir() and not any(path.glob(_TRIALS)):
        path = _file_of(path, display_path)
        rows = read_results(path, f"{display_path}/{path.name}", format, columns)
        return ResultRows(rows, [*rows.notes, f"{display_path}: read {path.name}"])
    if InputFile(path).looks_like_suite():
        message = "found a suite file, expected results of its cases, such as those of --llmeval-report=report.json"
        raise file_fault(display_path, message, 1, 1)
    source = _load(path, display_path)
    if columns:
        source = source._replace(data=_with_fields(source.data, columns, display_path))
    name = format or _known(source.data)
    return _rows_of_report(path, display_path) if name == REPORT else _rows(source, display_path, name)


def _with_fields(data: Any, columns: Mapping[str, str], display_path: str) -> list[Any]:
    """Rows of results with the fields that ``--map`` gives their columns, and a row for each column of scores.

    A score whose row names no metric is one of the metric that its column is called.

    Raises:
        SuiteError: No row has one of the columns.
    """
    rows = data if isinstance(data, list) else [data]
    known = list(dict.fromkeys(str(name) for row in rows if isinstance(row, Mapping) for name in row))
    if unknown := [name for name in columns if name not in known]:
        raise file_fault(display_path, "\n".join(unknown_name("column", name, known) for name in unknown))
    scores = [name for name, field in columns.items() if field == "score"]
    listed: list[Any] = []
    for row in rows:
        if not isinstance(row, Mapping):
            listed.append(row)
            continue
        named = {columns.get(name, name): value for name, value in row.items() if name not in scores}
        metric = {} if "metric" in named else dict.fromkeys(["metric"])
        for name in scores:
            value = row.get(name)
            outcome = {"error": "no value"} if value is None or value == "" else {"score": value}
            listed.append({**named, **dict.fromkeys(metric, name), **outcome})
        if not scores:
            listed.append(named)
    return listed


_ID_COLUMNS: Final = ("id", "case_id", "question_id", "test_id", "qid", "key", "name", "test", "question")
_UNSCORED: Final = FIELDS.keys() - {*OUTCOMES}
"""Fields that a row has besides its score, such as its latency."""
_MOST_MAPPED: Final = 3
_LONGEST_FAULT: Final = 200


def _map_hint(data: Any) -> str:
    """The hint to name the columns of results by ``--map``, for columns that are recognised; else empty."""
    rows = [row for row in data if isinstance(row, Mapping)] if isinstance(data, list) else []
    columns = list(dict.fromkeys(str(name) for row in rows for name in row))
    case = next((name for usual in ("case", *_ID_COLUMNS) for name in columns if name.lower() == usual), None)
    if case is None:
        return ""
    scores = [
        name
        for name in columns
        if name not in {case, *_UNSCORED}
        and all(_is_score(value) for row in rows if (value := row.get(name)) not in (None, ""))
    ]
    objects = [
        name
        for name in columns
        if name not in FIELDS
        and any(row.get(name) for row in rows)
        and all(_has_scores(row.get(name, {})) for row in rows)
    ]
    if not scores:
        return f"{objects[0]!r} holds scores: rename it to 'scores'" if objects else ""
    pairs = [*([] if case == "case" else [f"{case}=case"]), *(f"{name}=score" for name in scores[:_MOST_MAPPED])]
    return f"the rows are not those of llmeval schema results: name the columns with --map {','.join(pairs)}"


def _has_scores(value: Any) -> bool:
    """Whether a value of a row is an object whose members are scores, if it has any."""
    return isinstance(value, Mapping) and all(map(_is_score, value.values()))


def _is_score(value: Any) -> bool:
    """Whether a cell of a table of results is a score: a finite number or a truth value."""
    number = cell_number(value)
    return isinstance(number, bool) or is_finite_number(number)


_TRIALS: Final = "*/result.json"
_RESULT_FILES: Final = (".eval", ".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".parquet", ".xml")
_TIME: Final = re.compile(r"\d{4}-?\d{2}-?\d{2}\D?\d{2}")
"""How the name of a file begins that says when it was written."""


def _file_of(folder: Path, display_path: str) -> Path:
    """The file of results in a folder: the only one, or the newest if all names begin with a time.

    Raises:
        SuiteError: There is none, or there are several.
    """
    files = sorted(path for path in folder.iterdir() if path.suffix in _RESULT_FILES and path.is_file())
    if not files:
        message = f"a folder without files of results ({', '.join(_RESULT_FILES)}), and without trials ({_TRIALS})"
        raise file_fault(display_path, message)
    if len(files) == 1 or all(_TIME.match(file.name) for file in files):
        return files[-1]
    names = ", ".join(file.name for file in files[:_MOST_LISTED])
    more = f" and {len(files) - _MOST_LISTED} more" if len(files) > _MOST_LISTED else ""
    raise file_fault(display_path, f"{len(files)} files are in this folder: pass one, such as {names}{more}")


def read_files(paths: Sequence[Path], format_name: str, columns: Mapping[str, str] = {}) -> ResultRows:
    """Read files of results, which together are one run.

    Args:
        paths: The files, or patterns of their names.
        format_name: Name of their form; empty: known by their content.
        columns: As in `read_results`.

    Raises:
        SuiteError: Some cannot be read, or two have the same result; all faults are listed.
    """
    faults: list[Fault] = []
    first: dict[tuple[str, str, int, str, str], Path] = {}
    rows = ResultRows()
    files = dict.fromkeys(match for pattern in paths for match in _matching(pattern))
    for path in files:
        try:
            of_file = read_results(path, str(path), format_name, columns)
        except SuiteError as error:
            faults += error.faults
            continue
        rows += of_file
        rows.notes += of_file.notes
        faults += [
            Fault(str(path), 0, 0, "case", f"found {row}, expected it once: {first[row.key]} has it too")
            for row in (of_file if len(files) > 1 else ())
            if first.setdefault(row.key, path) != path
        ]
    if faults:
        raise SuiteError(faults)
    return rows


def _matching(path: Path) -> list[Path]:
    """The files of results that a pattern means, where no shell has replaced it; of a path, the path itself."""
    if path.exists() or not _is_pattern(path):
        return [path]
    parts = path.parts[len(Path(path.anchor).parts) :]
    start = Path(path.anchor) if path.anchor else Path()
    return sorted(start.glob(str(Path(*parts)))) or [path]


def _is_pattern(path: Path) -> bool:
    """Whether the path of results is a pattern of file names."""
    return any(character in str(path) for character in "*?[")


def results_of(data: Any) -> ResultRows:
    """Convert results that Python passes, such as to ``gate()``, to rows.

    Args:
        data: The report of another runner, as an object or as its JSON data; a data frame of ragas or LangSmith; or
            rows, mappings, or a data frame of the fields of `ResultRow`.

    Raises:
        SuiteError: Rows have faults; all are listed.
        LlmevalError: It is something else.
    """
    if isinstance(data, Sequence) and data and all(isinstance(row, ResultRow) for row in data):
        return ResultRows(data)
    plain = _plain(data)
    if plain is not None and (name := _known(plain)) in _tables():
        return _rows(_Source(plain), type(data).__name__, name)
    rows = list(rows_of(data))
    if rows and not any(map(is_own, rows)):
        columns = ", ".join(dict.fromkeys(name for row in rows for name in row))
        raise LlmevalError(f"found the columns {columns}, expected case, metric and one of {', '.join(OUTCOMES)}")
    return _rows(_Source(rows), "data frame", SUITE)


def _rows(source: _Source, display_path: str, name: str | None) -> ResultRows:
    """The rows of results in a file's data, by the format that it names or has.

    Raises:
        SuiteError: It has faults, or is of no known form.
    """
    data = source.data
    if name == SUITE:
        reader = source.reader(display_path)
        for number, row in enumerate(data if isinstance(data, list) else [data]):
            if isinstance(row, Mapping):
                reader.add(cells_of(row) if source.rows == "cells" else row, (number,))
            else:
                reader.fault((number,), f"found {describe(row)}, expected an object")
        return reader.checked()
    hint = _map_hint(data) if name is None else ""
    if hint and not source.faults:
        raise file_fault(display_path, hint)
    message = f"{describe(data)}{f' whose first is {describe(data[0])}' if isinstance(data, list) and data else ''}"
    if name is None:
        message += (
            f", expected results of one of {', '.join((*_tables(), REPORT))}, or rows with case, metric and one of "
            f"{', '.join(OUTCOMES)} (llmeval schema results)"
        )
    else:
        table = _tables()[name]
        items = next((paths for marks, paths in table.shapes.items() if fits(data, marks)), None)
        if items is not None:
            return _TableReader(display_path, source, table, name).read(items)
        reason = next((why for marks, why in table.refuses.items() if fits(data, marks)), "")
        message = reason or f"{message}, expected {table.written_by}"
    raise SuiteError(source.faults) if source.faults else file_fault(display_path, f"found {message}")


def _tables() -> Mapping[str, ResultFormat]:
    """The tables of all registered formats of results.

    Raises:
        LlmevalError: What is registered is no table.
    """
    tables = Registry.installed().results_formats
    for name, table in tables.items():
        if not isinstance(table, ResultFormat):
            raise LlmevalError(f"found {describe(table)} as results format {name!r}, expected a ResultFormat")
        if FORMATS.get(name) is not table and (fault := _table_fault(table)):
            raise LlmevalError(f"results format {name!r}: {fault}")
    return tables


def _table_fault(table: ResultFormat) -> str:
    """What is wrong with a plugin's table of a results format; empty if it can be used."""
    try:
        DeclaredType(ResultFormat).convert(table._asdict())
    except LlmevalError as error:
        return excerpt(str(error), _LONGEST_FAULT)
    if not table.scores:
        return "scores is empty, expected where a result has its scores"
    return "" if table.case or table.content else "case and content are empty, expected what identifies a case"


def _known(data: Any) -> str | None:
    """The format of results that data has, by its content."""
    if isinstance(data, Mapping) and data.keys() >= {"schema_version", "suites"}:
        return REPORT
    rows = data if isinstance(data, list) else [data]
    keys = {key for row in rows if isinstance(row, Mapping) for key in row}
    if "case" in keys and any(map(is_own, rows)):
        return SUITE
    for name, table in _tables().items():
        for marks in (*table.shapes, *table.refuses):
            # Else every row is asked for what none has.
            if (data is not rows or _are_known(marks, keys)) and fits(data, marks):
                return name
    return None


def _are_known(marks: str, keys: AbstractSet[str]) -> bool:
    """Whether rows of results that have these keys can have the paths by which a format is known."""
    return all(mark.removeprefix("*.").partition("=")[0].partition(".")[0] in keys for mark in marks.split())


def _rows_of_report(path: Path, display_path: str) -> ResultRows:
    """The rows of results in a JSON report of ``--llmeval-report``; a case has its value over all repeats.

    Raises:
        SuiteError: It cannot be read, or has no case.
    """
    report, reader, falling = RunReport.read(path), ResultReader(display_path), set[tuple[str, str]]()
    files = Counter(name for name, _ in {(suite.base_name, suite.path) for suite in report.suites})
    for suite in report.suites:
        name = suite.base_name if files[suite.base_name] == 1 else f"{suite.base_name} ({suite.path})"
        falling |= {(name, metric) for metric in suite.lower_is_better}
        for number, case in enumerate(suite.cases):
            base = {"case": case.id, "suite": name, "system": suite.variant or None, "labels": case.labels}
            steps = ("suites", suite.suite, "cases", number)
            if not case.ran or case.outcome == "errored" or not case.metrics:
                reader.add({**base, "error": case.reason or f"the case was {case.outcome}"}, steps)
                continue
            for metric, score in case.metrics.items():
                signature = suite.metrics[metric].signature if metric in suite.metrics else ""
                value = {"abstained": "nothing to score"} if score is None else {"score": score}
                reader.add({**base, "metric": metric, "signature": signature or None, **value}, steps)
    return ResultRows(
        replace(row, lower_is_better=(row.suite, row.metric) in falling, tool=REPORT) for row in reader.checked()
    )


def _load(path: Path, display_path: str) -> _Source:
    """Read a file of results by what it begins with.

    Raises:
        SuiteError: It cannot be read.
    """
    if path.is_dir():
        return _folder(path, display_path)
    file = InputFile(path, display_path)
    head = file.read_bytes()[:_HEAD].removeprefix(b"\xef\xbb\xbf").lstrip()
    if head.startswith(b"PK"):
        return _Source(read_eval(path, display_path))
    if head.startswith(b"PAR1"):
        return _Source(read_parquet(path, display_path))
    if head.startswith(b"<"):
        return _Source({"junit": _xml(path, display_path)})
    faults: list[Fault] = []
    lines = path.suffix.lower() in (".jsonl", ".ndjson") or _is_lines(head)
    if head[:1] in (b"{", b"[", b"") and not lines:
        document = file.read_json(_DEPTH, nan=True)
        return _Source(document.data, document.locate)
    first = head.split(b"\n", 1)[0]
    cells = "tsv" if b"\t" in first else "ssv" if first.count(b";") > first.count(b",") else "csv"
    listed = read_rows(path, display_path, "jsonl" if lines else cells, faults, nan=True)
    if cells == "ssv" and not lines:  # where numbers have commas
        listed = [(number, {name: _with_point(cell) for name, cell in row.items()}) for number, row in listed]
    numbers = [number for number, _ in listed]

    def locate(steps: SourcePath) -> tuple[int, int]:
        return (numbers[steps[0]], 1) if steps and isinstance(steps[0], int) else (0, 0)

    return _Source([row for _, row in listed], locate, faults, "json" if lines else "cells")


_WITH_COMMA: Final = re.compile(r"[+-]?\d+,\d+")


def _with_point(cell: Any) -> Any:
    """A cell of a results table with a decimal point in place of a comma."""
    return cell.replace(",", ".") if isinstance(cell, str) and _WITH_COMMA.fullmatch(cell.strip()) else cell


def _is_lines(head: bytes) -> bool:
    """Whether a file of results begins with a JSON value on a line of its own, and another one follows."""
    first, _, others = head.partition(b"\n")
    try:
        json.loads(first)
    except ValueError:
        return False
    return others.lstrip()[:1] in (b"{", b"[") and others.strip() != b""


def _folder(path: Path, display_path: str) -> _Source:
    """Read the trials of a Harbor job, which are folders with a file of results each."""
    files = (
        InputFile(trial, f"{display_path}/{trial.parent.name}/result.json") for trial in sorted(path.glob(_TRIALS))
    )
    return _Source([file.read_json(nan=True).data for file in files])


def _xml(path: Path, display_path: str) -> Any:
    """The root of a JUnit file of results.

    Raises:
        SuiteError: It is no XML, declares entities, or has another root.
    """
    from xml.etree import ElementTree

    text = InputFile(path, display_path).read_bytes()
    if b"<!ENTITY" in text or b"<!DOCTYPE" in text:
        raise file_fault(display_path, "found a document type, expected JUnit XML without one")
    try:
        root = ElementTree.fromstring(text)  # noqa: S314 (as above)
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        line, column = getattr(error, "position", (0, -1))
        raise file_fault(display_path, f"found invalid XML ({error}), expected JUnit XML", line, column + 1) from None
    if root.tag not in ("testsuites", "testsuite"):
        message = f"found the element {printable(root.tag)!r}, expected testsuites or testsuite: JUnit XML"
        raise file_fault(display_path, message)
    return root


def _plain(data: Any) -> Any:
    """The report object of another runner as JSON data; ``None`` if it is no such object."""
    if hasattr(data, "to_pandas") and not isinstance(data, Mapping) and not hasattr(data, "columns"):
        data = data.to_pandas()
    if hasattr(data, "columns"):
        columns = getattr(data, "column_names", data.columns)
        names = dict.fromkeys(column for column in columns if isinstance(column, str))  # of errors only, rows lack them
        return [{**names, **row} for row in rows_of(data)]
    if hasattr(data, "results") and hasattr(data, "summary"):  # of Braintrust, whose objects know no JSON
        return {"summary": {}, "results": [_jsonable(vars(result)) for result in data.results]}
    if isinstance(data, Mapping | list):
        return data
    if hasattr(data, "model_dump"):
        return data.model_dump(mode="json", warnings=False)
    return _jsonable(data) if hasattr(data, "report_evaluator_failures") else None


def _jsonable(value: Any) -> Any:
    """The report object of another runner as JSON data, converted by pydantic."""
    from pydantic import TypeAdapter

    return TypeAdapter(type(value)).dump_python(value, mode="json", warnings=False, fallback=str)
